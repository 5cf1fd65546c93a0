"""The table of each figure over a run: steps, reliability, robustness and mediation of the suite, and lengths of its chains."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from cotlab.analysis.tables import mediation, reliability, robustness
from cotlab.analysis.tables.source import Absent, Choice, Drawn, FigureTable, Source, with_mode
from cotlab.figures.mediation import words
from cotlab.figures.robustness import MEASURES
from cotlab.metrics.ablation import redundancy
from cotlab.metrics.ablation.cards import CCS_METRICS
from cotlab.store import read
from cotlab.validation.report import read_report
from cotlab.validation.tables import doses_table

NOT_ENDED = "the means are estimated when the run ends or is stopped"


def needs(scorer: str) -> Absent:
    return Absent(f"the run has no scores of the scorer {scorer}")


def ccs_metrics(source: Source) -> list[str]:
    """The step metrics that can serve as a CCS and that the run has."""
    found = set(source.scores["metric"])
    return [metric for metric in CCS_METRICS if metric in found]


def _positions(source: Source, choice: Choice) -> Drawn | Absent:
    known = ccs_metrics(source)
    if not known:
        return needs("ablation")
    metric = choice.one_of("metric", known)
    table = with_mode(redundancy.position_table(source.scores[source.scores["metric"] == metric]))
    return Drawn(table, choice=Choice(metric=metric)) if len(table) else Absent("no step has been scored")


def _modes(source: Source, choice: Choice) -> Drawn | Absent:
    if not ccs_metrics(source):
        return needs("ablation")
    shown = source.estimates[source.estimates["metric"].isin(CCS_METRICS)]
    if shown.empty:
        return Absent(NOT_ENDED)
    if shown["mode"].nunique() < 2:
        return Absent("the run has one mode only: there is nothing to compare")
    return Drawn(shown, "Mean over items of each item's mean CCS.")


def _rrr(source: Source, choice: Choice) -> Drawn | Absent:
    known, spec = ccs_metrics(source), source.scorer("ablation")
    if not known or spec is None:
        return needs("ablation")
    metric, found = choice.one_of("metric", known), source.estimates
    rrr = found[(found["metric"] == "rrr") & (found["ccs"] == metric)]
    if rrr.empty:
        return Absent(NOT_ENDED)
    ceiling = found[(found["metric"] == "rrr_ceiling") & (found["ccs"] == metric)].set_index("mode")["point"]
    limit = float(spec.params["ccs_threshold"])
    note = f"A step is redundant where its CCS ({metric}) is below the threshold {limit:g}."
    return Drawn(rrr.assign(ceiling=rrr["mode"].map(ceiling), threshold=limit), note, Choice(metric=metric))


def part_scores(source: Source) -> pd.DataFrame:
    """The parts of reliability of each item."""
    return reliability.part_scores(source.scores[source.scores["metric"].isin(reliability.METRICS)])


def _reliability(source: Source, choice: Choice) -> Drawn | Absent:
    rows = part_scores(source)
    if rows.empty:
        return needs("composite")
    found = reliability.part_means(rows, source.estimates)
    return Absent(NOT_ENDED) if found.empty else Drawn(found)


def _correlations(source: Source, choice: Choice) -> Drawn | Absent:
    rows = part_scores(source)
    if rows.empty:
        return needs("composite")
    found = reliability.correlations(rows)
    return Absent("fewer than two parts were measured") if found.empty else Drawn(found)


def _diagnoses(source: Source, choice: Choice) -> Drawn | Absent:
    if not (source.scores["metric"] == "diagnosis").any():
        return needs("composite")
    found = reliability.diagnosis_means(source.scores, source.estimates)
    return Absent(NOT_ENDED) if found.empty else Drawn(found.sort_values("point", ascending=False))


def _perturbations(source: Source, choice: Choice) -> Drawn | Absent:
    if not source.scores["metric"].isin(MEASURES).any():
        return needs("robustness")
    found = robustness.by_perturbation(source.scores, source.estimates)
    return Absent(NOT_ENDED) if found.empty else Drawn(found)


def measures(source: Source) -> list[str]:
    """The measures of a perturbed step that the run has."""
    own = source.scores[source.scores["step"].notna()]
    return [name for name in MEASURES if name in set(own["metric"])]


def _cells(source: Source, choice: Choice) -> Drawn | Absent:
    known = measures(source)
    if not known:
        return needs("robustness")
    measure = choice.one_of("metric", known)
    return Drawn(robustness.cells(source.scores, measure), choice=Choice(metric=measure))


def faceted(source: Source) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and estimates with a column for each part of a facet of mediation."""
    return mediation.with_facets(source.scores), mediation.with_facets(source.estimates)


def setting_of(scores: pd.DataFrame, choice: Choice) -> mediation.Setting | None:
    """The chosen setting, or the first; None where the run has none."""
    found = {"~".join(s): s for s in mediation.settings(scores)}
    return found[choice.one_of("setting", list(found))] if found else None


def _mediated(kind: str, none: str) -> Callable[[Source, Choice], Drawn | Absent]:
    """A table of mediation, by the function of ``mediation_tables`` that makes it."""

    def make(source: Source, choice: Choice) -> Drawn | Absent:
        scores, means = faceted(source)
        setting = setting_of(scores, choice)
        if setting is None:
            return needs("mediation")
        table = getattr(mediation, kind)(scores, means, setting)
        if kind == "indices":
            table = table[~table["metric"].isin(mediation.NO_UNIT)]
        if table.empty:
            return Absent(NOT_ENDED if means.empty else none)
        if kind == "spans_of_sources" and table["source"].nunique() < 2:
            return Absent("the run has one source only: span_heatmap shows it")
        note = "" if kind in ("density", "spans_of_sources") else f"Source {words(setting.source)}."
        return Drawn(table, note, Choice(setting="~".join(setting)))

    return make


def _lengths(source: Source, choice: Choice) -> Drawn | Absent:
    suite = read.suite(source.store, source.row["suite"])
    steps = pd.Series([len(item.steps) for item in suite.items])
    if not steps.any():
        return Absent("the suite's items have no chains: they are the model's own, or were not published")
    return Drawn(steps.value_counts().rename_axis("n_steps").reset_index(name="count").sort_values("n_steps"))


def _doses(source: Source, choice: Choice) -> Drawn | Absent:
    found = read_report(source.store.folder)
    if found is None or not found["metrics"]:
        return Absent("no metric has been held against the organisms yet; type: cotlab validate")
    metric = choice.one_of("metric", list(found["metrics"]))
    return Drawn(doses_table(metric, found["metrics"][metric]), choice=Choice(metric=metric))


CCS_BY_POSITION = FigureTable("ccs_by_position", "run", _positions, CCS_METRICS)
MODES_BY_METRIC = FigureTable("modes_by_metric", "run", _modes, CCS_METRICS)
RRR_BY_MODE = FigureTable("rrr_by_mode", "run", _rrr, CCS_METRICS)
RELIABILITY_PARTS = FigureTable("reliability_parts", "run", _reliability, reliability.METRICS)
SIGNAL_CORRELATION = FigureTable("signal_correlation", "run", _correlations, reliability.METRICS)
DIAGNOSIS_RATES = FigureTable("diagnosis_rates", "run", _diagnoses, ("diagnosis",))
ROBUSTNESS_BY_PERTURBATION = FigureTable("robustness_by_perturbation", "run", _perturbations, tuple(MEASURES))
PERTURBATION_CELLS = FigureTable("perturbation_cells", "run", _cells, tuple(MEASURES))
CHAIN_LENGTHS = FigureTable("chain_lengths", "suite", _lengths)
VALIDATION_DOSES = FigureTable("validation_doses", "store", _doses)
CMI_DENSITY = FigureTable("cmi_density", "run", _mediated("density", "no share of the positions was patched"), ("cmi",))
SPAN_HEATMAP = FigureTable("span_heatmap", "run", _mediated("spans", "no span was patched"), ("cmi",))
SPAN_HEATMAP_SOURCES = FigureTable(
    "span_heatmap", "run", _mediated("spans_of_sources", "no span was patched"), ("cmi",)
)
LAYER_PROFILE = FigureTable("layer_profile", "run", _mediated("layers", "no single layer was patched"), ("cmi",))
MEDIATION_INDICES = FigureTable("mediation_indices", "run", _mediated("indices", "no index was estimated"), ("cmi",))
