"""The table of each figure over a run."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from cotlab.analysis.tables import mediation, reliability
from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.view import RunView, position_estimates, with_mode
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.figures.mediation import metric_label
from cotlab.figures.robustness import MEASURES
from cotlab.store import read
from cotlab.validation.report import doses_table, read_report

NOT_ENDED = "the means are estimated when the run ends or is stopped"


def missing_scorer(scorer: str) -> NoFigure:
    """Return that a run has no scores of a scorer."""
    return NoFigure(f"the run has no scores of the scorer {scorer}")


def run_ccs_metrics(view: RunView) -> list[str]:
    """Return the step metrics of the run that can serve as a CCS."""
    return [metric for metric in CCS_METRICS if metric in view.metrics]


def _positions(view: RunView, choice: Choice) -> FigureData | NoFigure:
    known = run_ccs_metrics(view)
    if not known:
        return missing_scorer("ablation")
    metric = choice.select("metric", known)
    table = with_mode(position_estimates(view, metric))
    return (
        FigureData(table, choice=Choice(metric=metric))
        if len(table)
        else NoFigure("no step has been scored")
    )


def _modes(view: RunView, choice: Choice) -> FigureData | NoFigure:
    if not run_ccs_metrics(view):
        return missing_scorer("ablation")
    estimates = view.estimates[view.estimates["metric"].isin(CCS_METRICS)]
    if estimates.empty:
        return NoFigure(NOT_ENDED)
    if estimates["mode"].nunique() < 2:
        return NoFigure("the run has one mode only: there is nothing to compare")
    return FigureData(estimates, "Mean over items of each item's mean CCS.")


def _rrr(view: RunView, choice: Choice) -> FigureData | NoFigure:
    known, spec = run_ccs_metrics(view), view.scorer("ablation")
    if not known or spec is None:
        return missing_scorer("ablation")
    metric, estimates = choice.select("metric", known), view.estimates
    rrr = estimates[(estimates["metric"] == "rrr") & (estimates["ccs"] == metric)]
    if rrr.empty:
        return NoFigure(NOT_ENDED)
    ceiling = estimates[
        (estimates["metric"] == "rrr_ceiling") & (estimates["ccs"] == metric)
    ].set_index("mode")["point"]
    limit = float(spec.params["ccs_threshold"])
    note = f"A step is redundant where its CCS ({metric}) is below the threshold {limit:g}."
    return FigureData(
        rrr.assign(ceiling=rrr["mode"].map(ceiling), threshold=limit), note, Choice(metric=metric)
    )


def run_component_scores(view: RunView) -> pd.DataFrame:
    """Return the parts of reliability of each item."""
    return reliability.component_scores(view.scores(*reliability.METRICS))


def _reliability(view: RunView, choice: Choice) -> FigureData | NoFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer("composite")
    means = reliability.component_means(rows, view.estimates)
    return NoFigure(NOT_ENDED) if means.empty else FigureData(means)


def _correlations(view: RunView, choice: Choice) -> FigureData | NoFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer("composite")
    pairs = reliability.component_correlations(rows)
    return NoFigure("fewer than two parts were measured") if pairs.empty else FigureData(pairs)


def _diagnoses(view: RunView, choice: Choice) -> FigureData | NoFigure:
    if "diagnosis" not in view.metrics:
        return missing_scorer("composite")
    rates = reliability.diagnosis_means(view.scores("diagnosis"), view.estimates)
    return (
        NoFigure(NOT_ENDED)
        if rates.empty
        else FigureData(rates.sort_values("point", ascending=False))
    )


def _perturbations(view: RunView, choice: Choice) -> FigureData | NoFigure:
    if view.metrics.isdisjoint(MEASURES):
        return missing_scorer("robustness")
    table = reliability.perturbation_table(
        view.scores(*reliability.CHARTED_METRICS), view.estimates
    )
    return NoFigure(NOT_ENDED) if table.empty else FigureData(table)


def robustness_measures(view: RunView) -> list[str]:
    """Return the measures of a perturbed step that the run has."""
    return [name for name in MEASURES if name in view.step_metrics]


def _cells(view: RunView, choice: Choice) -> FigureData | NoFigure:
    known = robustness_measures(view)
    if not known:
        return missing_scorer("robustness")
    measure = choice.select("metric", known)
    table = reliability.with_perturbation(
        position_estimates(view, measure, flags=reliability.FLAGS)
    )
    return FigureData(table, choice=Choice(metric=measure))


def chosen_setting(view: RunView, choice: Choice) -> mediation.Setting | None:
    """Return the chosen setting, or the first; None where the run has none."""
    groups = mediation.with_facets(view.score_groups)
    settings_by_key = {"~".join(s): s for s in mediation.available_settings(groups)}
    return (
        settings_by_key[choice.select("setting", list(settings_by_key))]
        if settings_by_key
        else None
    )


def _mediated(kind: str, none: str) -> Callable[[RunView, Choice], FigureData | NoFigure]:
    """Return the maker of a table of mediation, by its function in ``tables.mediation``."""

    def make(view: RunView, choice: Choice) -> FigureData | NoFigure:
        setting = chosen_setting(view, choice)
        if setting is None:
            return missing_scorer("mediation")
        scores = mediation.with_facets(view.scores(*mediation.METRICS_OF[kind]))
        means = mediation.with_facets(view.estimates)
        table = getattr(mediation, kind)(scores, means, setting)
        if kind == "indices":
            table = table[~table["metric"].isin(mediation.NO_UNIT)]
        if table.empty:
            return NoFigure(NOT_ENDED if means.empty else none)
        if kind == "spans_of_sources" and table["source"].nunique() < 2:
            return NoFigure("the run has one view only: span_heatmap shows it")
        note = (
            ""
            if kind in ("density", "spans_of_sources")
            else f"Source {metric_label(setting.source)}."
        )
        return FigureData(table, note, Choice(setting="~".join(setting)))

    return make


def _lengths(view: RunView, choice: Choice) -> FigureData | NoFigure:
    suite = read.get_suite(view.store, view.suite)
    steps = pd.Series([len(item.steps) for item in suite.items])
    if not steps.any():
        return NoFigure(
            "the suite's items have no chains: they are the model's own, or were not published"
        )
    return FigureData(
        steps.value_counts().rename_axis("n_steps").reset_index(name="count").sort_values("n_steps")
    )


def _doses(view: RunView, choice: Choice) -> FigureData | NoFigure:
    report = read_report(view.store.folder)
    if report is None or not report["metrics"]:
        return NoFigure("no metric has been held against the organisms yet; type: cotlab validate")
    metric = choice.select("metric", list(report["metrics"]))
    return FigureData(doses_table(metric, report["metrics"][metric]), choice=Choice(metric=metric))


CCS_BY_POSITION = FigureTable("ccs_by_position", "run", _positions, CCS_METRICS)
MODES_BY_METRIC = FigureTable("modes_by_metric", "run", _modes, CCS_METRICS)
RRR_BY_MODE = FigureTable("rrr_by_mode", "run", _rrr, CCS_METRICS)
RELIABILITY_PARTS = FigureTable("reliability_parts", "run", _reliability, reliability.METRICS)
SIGNAL_CORRELATION = FigureTable("signal_correlation", "run", _correlations, reliability.METRICS)
DIAGNOSIS_RATES = FigureTable("diagnosis_rates", "run", _diagnoses, ("diagnosis",))
ROBUSTNESS_BY_PERTURBATION = FigureTable(
    "robustness_by_perturbation", "run", _perturbations, tuple(MEASURES)
)
PERTURBATION_CELLS = FigureTable("perturbation_cells", "run", _cells, tuple(MEASURES))
CHAIN_LENGTHS = FigureTable("chain_lengths", "suite", _lengths)
VALIDATION_DOSES = FigureTable("validation_doses", "store", _doses)
CMI_DENSITY = FigureTable(
    "cmi_density", "run", _mediated("density", "no share of the positions was patched"), ("cmi",)
)
SPAN_HEATMAP = FigureTable(
    "span_heatmap", "run", _mediated("spans", "no span was patched"), ("cmi",)
)
SPAN_HEATMAP_SOURCES = FigureTable(
    "span_heatmap", "run", _mediated("spans_of_sources", "no span was patched"), ("cmi",)
)
LAYER_PROFILE = FigureTable(
    "layer_profile", "run", _mediated("layers", "no single layer was patched"), ("cmi",)
)
MEDIATION_INDICES = FigureTable(
    "mediation_indices", "run", _mediated("indices", "no index was estimated"), ("cmi",)
)
