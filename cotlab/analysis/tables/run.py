"""The table of each figure over a run and its labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from cotlab.analysis.tables import mediation, reliability
from cotlab.analysis.tables.declare import FigureChoice, FigureData, FigureTable, MissingFigure
from cotlab.analysis.verdict.category_split import category_shares_text
from cotlab.analysis.verdict.headlines import order_by_validation
from cotlab.analysis.verdict.stored import stored_evidence
from cotlab.analysis.view import RunView, position_estimates, with_facet_columns
from cotlab.core.types import CCS_METRICS, MODE_ORDER
from cotlab.figures.mediation import metric_label
from cotlab.figures.robustness import MEASURE_NAMES, RATE_METRICS
from cotlab.figures.steps import step_metric_label
from cotlab.figures.style import truncate_text
from cotlab.review.labelling.agreement import AFTER_MISTAKE, Agreement, measure_agreement
from cotlab.stats.intervals import interval_columns
from cotlab.store import read
from cotlab.validation.report import doses_table, read_report

_ABSENT_REASONS = {
    "corrupt": ": the model writes the rest of the chain anew, so there is no reply to compare word"
    " by word or token by token"
}
"""Why a mode has answers but no scores of words and probabilities."""
NOT_ENDED_REASON = "the means are estimated when the run ends or is stopped"


def missing_scorer_reason(scorer: str) -> MissingFigure:
    """Return that a run has no scores of a scorer."""
    return MissingFigure(f"the run has no scores of the scorer {scorer}")


def run_ccs_metrics(view: RunView) -> list[str]:
    """Return the step metrics of the run that can serve as a CCS, the best validated first."""
    metrics = [metric for metric in CCS_METRICS if metric in view.metrics]
    return order_by_validation(metrics, view.store.folder)


def absent_modes_note(view: RunView, metrics: Sequence[str]) -> str:
    """Return sentences that name the modes of the run without scores of a step metric, or ""."""
    spec, groups = view.scorer("ablation"), view.score_groups
    sentences = []
    for mode in MODE_ORDER if spec is not None else ():
        scored_metrics = set(groups[groups["mode"] == mode]["metric"])
        absent_metrics = [name for name in metrics if name not in scored_metrics]
        if spec is None or mode not in spec.params["modes"] or not absent_metrics:
            continue
        reason = _ABSENT_REASONS.get(mode, "") if scored_metrics else ": nothing is scored yet"
        names = ", ".join(map(step_metric_label, absent_metrics))
        sentences.append(f"{mode} has no {names}{reason}.")
    return " ".join(sentences)


def _positions_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    ccs_metrics = run_ccs_metrics(view)
    if not ccs_metrics:
        return missing_scorer_reason("ablation")
    metric = choice.select("metric", ccs_metrics)
    table = with_facet_columns(position_estimates(view, metric), "mode")
    if table.empty:
        return MissingFigure("no step has been scored")
    note = f"{_split_note(view)} {absent_modes_note(view, [metric])}".strip()
    return FigureData(table, note, FigureChoice(metric=metric))


def modes_note(view: RunView) -> str:
    """Return what the means of modes are over, and which modes have no scores of a metric."""
    sentences = (
        "Mean over items of each item's mean CCS.",
        _split_note(view),
        absent_modes_note(view, run_ccs_metrics(view)),
    )
    return " ".join(filter(None, sentences))


def _split_note(view: RunView) -> str:
    """Return a sentence on categories whose answers behave differently; "" without such."""
    kinds_text = category_shares_text(stored_evidence(view))
    if not kinds_text:
        return ""
    return (
        "Means over items that differ; answers changed by a step that states something else:"
        f" {kinds_text}."
    )


def _modes_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    if not run_ccs_metrics(view):
        return missing_scorer_reason("ablation")
    estimates = view.estimates[view.estimates["metric"].isin(CCS_METRICS)]
    if estimates.empty:
        return MissingFigure(NOT_ENDED_REASON)
    if estimates["mode"].nunique() < 2:
        return MissingFigure("the run has one mode only: there is nothing to compare")
    return FigureData(estimates, modes_note(view))


def _rrr_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    ccs_metrics, spec = run_ccs_metrics(view), view.scorer("ablation")
    if not ccs_metrics or spec is None:
        return missing_scorer_reason("ablation")
    metric, estimates = choice.select("metric", ccs_metrics), view.estimates
    rrr = estimates[(estimates["metric"] == "rrr") & (estimates["ccs"] == metric)]
    if rrr.empty:
        return MissingFigure(NOT_ENDED_REASON)
    ceiling_by_mode = estimates[
        (estimates["metric"] == "rrr_ceiling") & (estimates["ccs"] == metric)
    ].set_index("mode")["point"]
    ccs_threshold = float(spec.params["ccs_threshold"])
    note = (
        f"A step is redundant where its CCS ({metric}) is below the threshold {ccs_threshold:g}."
        f" {absent_modes_note(view, [metric])}"
    ).strip()
    return FigureData(
        rrr.assign(ceiling=rrr["mode"].map(ceiling_by_mode), threshold=ccs_threshold),
        note,
        FigureChoice(metric=metric),
    )


def run_component_scores(view: RunView) -> pd.DataFrame:
    """Return the parts of reliability of each item."""
    return reliability.component_scores(view.scores(*reliability.RELIABILITY_METRICS))


def _reliability_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer_reason("composite")
    means = reliability.component_means(rows, view.estimates)
    return MissingFigure(NOT_ENDED_REASON) if means.empty else FigureData(means)


def _correlations_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer_reason("composite")
    pairs = reliability.component_correlations(rows)
    return MissingFigure("fewer than two parts were measured") if pairs.empty else FigureData(pairs)


def _diagnoses_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    if "diagnosis" not in view.metrics:
        return missing_scorer_reason("composite")
    rates = reliability.diagnosis_means(view.scores("diagnosis"), view.estimates)
    return (
        MissingFigure(NOT_ENDED_REASON)
        if rates.empty
        else FigureData(rates.sort_values("point", ascending=False))
    )


def _perturbations_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    if view.metrics.isdisjoint(MEASURE_NAMES):
        return missing_scorer_reason("robustness")
    table = reliability.perturbation_table(
        view.scores(*reliability.CHARTED_METRICS), view.estimates
    )
    return MissingFigure(NOT_ENDED_REASON) if table.empty else FigureData(table)


def _answer_changes_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    result = _perturbations_data(view, choice)
    if isinstance(result, MissingFigure):
        return result
    table = answer_change_rows(result.table)
    return MissingFigure("no answer was compared") if table.empty else FigureData(table)


def answer_change_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table by perturbation that say how often the answer changes."""
    return table[table["metric"].isin(RATE_METRICS)].reset_index(drop=True)


def robustness_measures(view: RunView) -> list[str]:
    """Return the measures of a perturbed step that the run has."""
    return [name for name in MEASURE_NAMES if name in view.step_metrics]


def _cells_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    measures = robustness_measures(view)
    if not measures:
        return missing_scorer_reason("robustness")
    measure = choice.select("metric", measures)
    table = reliability.with_perturbation(
        position_estimates(view, measure, flag_metrics=reliability.FLAG_METRICS)
    )
    return FigureData(table, choice=FigureChoice(metric=measure))


def mediation_settings(view: RunView) -> dict[str, mediation.Setting]:
    """Return the settings of a run that have a CMI, by their keys, the usual one first."""
    groups = mediation.with_facets(view.score_groups)
    return {"~".join(s): s for s in mediation.available_settings(groups)}


def select_mediation_setting(view: RunView, choice: FigureChoice) -> mediation.Setting | None:
    """Return the chosen setting, or the first; None where the run has none."""
    settings_by_key = mediation_settings(view)
    return (
        settings_by_key[choice.select("setting", list(settings_by_key))]
        if settings_by_key
        else None
    )


def _mediation_maker(
    table_name: str, empty_reason: str
) -> Callable[[RunView, FigureChoice], FigureData | MissingFigure]:
    """Return the maker of a table of mediation, by its function in ``tables.mediation``."""

    def make(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
        setting = select_mediation_setting(view, choice)
        if setting is None:
            return missing_scorer_reason("mediation")
        scores = mediation.suite_scores(view, *mediation.METRICS_BY_TABLE[table_name])
        means = mediation.with_facets(view.estimates)
        if table_name == "density" and (reason := mediation.refused_cmi_reason(means, setting)):
            return MissingFigure(f"CMI by share of positions is not drawn: {reason}")
        table = getattr(mediation, table_name)(scores, means, setting)
        if table_name == "indices":
            table = table[~table["metric"].isin(mediation.UNDRAWN_METRICS)]
        if table.empty:
            return MissingFigure(NOT_ENDED_REASON if means.empty else empty_reason)
        if table_name == "spans_of_sources" and table["source"].nunique() < 2:
            return MissingFigure("the run has one view only: span_heatmap shows it")
        note = (
            ""
            if table_name in ("density", "density_in_nats", "spans_of_sources")
            else f"Source {metric_label(setting.source)}."
        )
        return FigureData(table, note, FigureChoice(setting="~".join(setting)))

    return make


def _lengths_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    suite = read.get_suite(view.store, view.suite)
    chain_lengths = pd.Series([len(item.steps) for item in suite.items])
    if not chain_lengths.any():
        return MissingFigure(
            "the suite's items have no chains: they are the model's own, or were not published"
        )
    return FigureData(
        chain_lengths.value_counts()
        .rename_axis("n_steps")
        .reset_index(name="count")
        .sort_values("n_steps")
    )


def _doses_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    report = read_report(view.store.folder)
    if report is None or not report["metrics"]:
        return MissingFigure(
            "no metric has been held against the organisms yet; type: cotlab validate"
        )
    metric = choice.select("metric", list(report["metrics"]))
    return FigureData(
        doses_table(metric, report["metrics"][metric]), choice=FigureChoice(metric=metric)
    )


CCS_BY_POSITION = FigureTable("ccs_by_position", "run", _positions_data, CCS_METRICS)
MODES_BY_METRIC = FigureTable("modes_by_metric", "run", _modes_data, CCS_METRICS)
RRR_BY_MODE = FigureTable("rrr_by_mode", "run", _rrr_data, CCS_METRICS)
RELIABILITY_PARTS = FigureTable(
    "reliability_parts", "run", _reliability_data, reliability.RELIABILITY_METRICS
)
SIGNAL_CORRELATION = FigureTable(
    "signal_correlation", "run", _correlations_data, reliability.RELIABILITY_METRICS
)
DIAGNOSIS_RATES = FigureTable("diagnosis_rates", "run", _diagnoses_data, ("diagnosis",))
ROBUSTNESS_BY_PERTURBATION = FigureTable(
    "robustness_by_perturbation", "run", _perturbations_data, tuple(MEASURE_NAMES)
)
ANSWER_CHANGES_BY_PERTURBATION = FigureTable(
    "answer_changes_by_perturbation", "run", _answer_changes_data, RATE_METRICS
)
PERTURBATION_CELLS = FigureTable("perturbation_cells", "run", _cells_data, tuple(MEASURE_NAMES))
CHAIN_LENGTHS = FigureTable("chain_lengths", "suite", _lengths_data)
VALIDATION_DOSES = FigureTable("validation_doses", "store", _doses_data)
CMI_DENSITY = FigureTable(
    "cmi_density",
    "run",
    _mediation_maker("density", "no share of the positions was patched"),
    ("cmi",),
)
DROP_DENSITY = FigureTable(
    "drop_density",
    "run",
    _mediation_maker("density_in_nats", "no share of the positions was patched"),
    ("drop_kept",),
)
SPAN_HEATMAP = FigureTable(
    "span_heatmap", "run", _mediation_maker("spans", "no span was patched"), ("cmi",)
)
SPAN_HEATMAP_SOURCES = FigureTable(
    "span_heatmap", "run", _mediation_maker("spans_of_sources", "no span was patched"), ("cmi",)
)
LAYER_PROFILE = FigureTable(
    "layer_profile", "run", _mediation_maker("layers", "no single layer was patched"), ("cmi",)
)
MEDIATION_INDICES = FigureTable(
    "mediation_indices", "run", _mediation_maker("indices", "no index was estimated"), ("cmi",)
)


QUESTION_LABELS = {
    "reasoning": "the reasoning",
    "target": "the target",
    "first_mistake": "the first mistake",
    "faithful": "faithfulness",
}
"""The question that raters answered, as a label of figures."""
MAX_PAIRS = 20
"""Most pairs in one figure, those with the most items; a table has all of them."""
MAX_NAME_CHARS = 18
"""Most characters of a rater's name in a figure, so that both of a pair fit."""


def agreement_points(result: Agreement, question: str) -> pd.DataFrame:
    """Return alpha of all raters, then kappa of each two.

    Parameters
    ----------
    question : "reasoning", "target", "first_mistake" or "faithful"

    Returns
    -------
    DataFrame
        label, of, point, lo, hi, n, n_undefined, method, confidence, reason; empty where no item
        has two raters.
    """
    n_raters = len({rater.rater for rater in result.raters})
    labelled_intervals = [(f"alpha, {n_raters} raters", result.alpha[question])]
    if question == "first_mistake":
        labelled_intervals.append(("alpha, step by step", result.alpha[AFTER_MISTAKE]))
    pairs = [pair for pair in result.pairs if pair.question == question]
    for pair in sorted(pairs, key=lambda pair: -pair.n)[:MAX_PAIRS]:
        first, second = (truncate_text(name, MAX_NAME_CHARS) for name in (pair.first, pair.second))
        labelled_intervals.append((f"kappa, {first} and {second}", pair.kappa))
    question_label = QUESTION_LABELS[question]
    rows = [
        {"label": label, "of": question_label, **interval_columns(interval)}
        for label, interval in labelled_intervals
    ]
    return pd.DataFrame(rows if pairs else [], columns=list(rows[0]))


def _agreement_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    result = measure_agreement(view.store, runs=[view.run_id])
    table = agreement_points(result, "reasoning")
    if table.empty:
        return MissingFigure("no item of this run has labels of two raters")
    return FigureData(table)


LABEL_AGREEMENT = FigureTable("label_agreement", "run", _agreement_data)
