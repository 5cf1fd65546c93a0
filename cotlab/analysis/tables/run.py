"""The table of each figure over a run and its labels."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cotlab.analysis.tables import mediation, reliability
from cotlab.analysis.tables.declare import (
    FigureChoice,
    FigureData,
    FigureTable,
    NoTable,
    figure_table,
    no_scores,
)
from cotlab.analysis.verdict.stored import stored_evidence
from cotlab.analysis.verdict.validated import order_by_validation
from cotlab.analysis.verdict.verdicts import category_shares_text
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


def _split_note(view: RunView) -> str:
    """Return a sentence on categories whose answers behave differently; "" without such."""
    kinds_text = category_shares_text(stored_evidence(view))
    if not kinds_text:
        return ""
    return (
        "Means over items that differ; answers changed by a step that states something else:"
        f" {kinds_text}."
    )


def _ended(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of estimates; NoTable where the run has none yet."""
    if table.empty:
        raise NoTable(NOT_ENDED_REASON)
    return table


@figure_table(CCS_METRICS, scorer="ablation")
def ccs_by_position(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the mean of a step metric by position and mode."""
    metric = choice.select("metric", run_ccs_metrics(view))
    table = with_facet_columns(position_estimates(view, metric), "mode")
    if table.empty:
        raise NoTable("no step has been scored")
    note = f"{_split_note(view)} {absent_modes_note(view, [metric])}".strip()
    return FigureData(table, note, FigureChoice(metric=metric))


@figure_table(CCS_METRICS, scorer="ablation")
def modes_by_metric(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the mean of each step metric by mode."""
    estimates = _ended(view.estimates[view.estimates["metric"].isin(CCS_METRICS)])
    if estimates["mode"].nunique() < 2:
        raise NoTable("the run has one mode only: there is nothing to compare")
    sentences = (
        "Mean over items of each item's mean CCS.",
        _split_note(view),
        absent_modes_note(view, run_ccs_metrics(view)),
    )
    return FigureData(estimates, " ".join(filter(None, sentences)))


@figure_table(CCS_METRICS, scorer="ablation")
def rrr_by_mode(view: RunView, choice: FigureChoice) -> FigureData:
    """Return RRR by mode, with its ceiling."""
    spec = view.scorer("ablation")
    if spec is None:
        raise no_scores("ablation")
    metric = choice.select("metric", run_ccs_metrics(view))
    estimates = view.estimates[view.estimates["ccs"] == metric]
    rrr = _ended(estimates[estimates["metric"] == "rrr"])
    ceilings = estimates[estimates["metric"] == "rrr_ceiling"].set_index("mode")["point"]
    threshold = float(spec.params["ccs_threshold"])
    note = (
        f"A step is redundant where its CCS ({metric}) is below the threshold {threshold:g}."
        f" {absent_modes_note(view, [metric])}"
    )
    table = rrr.assign(ceiling=rrr["mode"].map(ceilings), threshold=threshold)
    return FigureData(table, note.strip(), FigureChoice(metric=metric))


def run_component_scores(view: RunView) -> pd.DataFrame:
    """Return the parts of reliability of each item; NoTable where there are none."""
    rows = reliability.component_scores(view.scores(*reliability.RELIABILITY_METRICS))
    if rows.empty:
        raise no_scores("composite")
    return rows


@figure_table(reliability.RELIABILITY_METRICS, scorer="composite")
def reliability_parts(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the mean of each part of reliability."""
    return FigureData(
        _ended(reliability.component_means(run_component_scores(view), view.estimates))
    )


@figure_table(reliability.RELIABILITY_METRICS, scorer="composite")
def signal_correlation(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the rank correlation of each two parts."""
    pairs = reliability.component_correlations(run_component_scores(view))
    if pairs.empty:
        raise NoTable("fewer than two parts were measured")
    return FigureData(pairs)


@figure_table(("diagnosis",), scorer="composite")
def diagnosis_rates(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how often each diagnosis is made."""
    rates = reliability.diagnosis_means(view.scores("diagnosis"), view.estimates)
    return FigureData(_ended(rates).sort_values("point", ascending=False))


@figure_table(tuple(MEASURE_NAMES), scorer="robustness")
def robustness_by_perturbation(view: RunView, choice: FigureChoice) -> FigureData:
    """Return R and answer changes by perturbation."""
    scores = view.scores(*reliability.CHARTED_METRICS)
    return FigureData(_ended(reliability.perturbation_table(scores, view.estimates)))


@figure_table(RATE_METRICS)
def answer_changes_by_perturbation(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how often the answer changes by perturbation."""
    if view.metrics.isdisjoint(MEASURE_NAMES):
        raise no_scores("robustness")
    scores = view.scores(*reliability.CHARTED_METRICS)
    table = _ended(reliability.perturbation_table(scores, view.estimates))
    table = table[table["metric"].isin(RATE_METRICS)].reset_index(drop=True)
    if table.empty:
        raise NoTable("no answer was compared")
    return FigureData(table)


def select_measure(view: RunView, choice: FigureChoice) -> str:
    """Return the chosen measure of a perturbed step, or the first that the run has."""
    measures = [name for name in MEASURE_NAMES if name in view.step_metrics]
    if not measures:
        raise no_scores("robustness")
    return choice.select("metric", measures)


@figure_table(tuple(MEASURE_NAMES))
def perturbation_cells(view: RunView, choice: FigureChoice) -> FigureData:
    """Return a measure of perturbed steps by perturbation and position."""
    measure = select_measure(view, choice)
    table = position_estimates(view, measure, flag_metrics=reliability.FLAG_METRICS)
    return FigureData(reliability.with_perturbation(table), choice=FigureChoice(metric=measure))


def mediation_settings(view: RunView) -> dict[str, mediation.Setting]:
    """Return the settings of a run that have a CMI, by their keys, the usual one first."""
    groups = mediation.with_facets(view.score_groups)
    return {"~".join(s): s for s in mediation.available_settings(groups)}


def select_mediation_setting(view: RunView, choice: FigureChoice) -> mediation.Setting:
    """Return the chosen setting, or the first; NoTable where the run has none."""
    settings_by_key = mediation_settings(view)
    if not settings_by_key:
        raise no_scores("mediation")
    return settings_by_key[choice.select("setting", list(settings_by_key))]


def _mediation_table(
    figure: str, table_name: str, empty_reason: str, metric: str = "cmi"
) -> FigureTable:
    """Return a table of mediation, by its function in ``tables.mediation``."""
    names_source = table_name not in ("density", "density_in_nats", "spans_of_sources")

    def make(view: RunView, choice: FigureChoice) -> FigureData:
        setting = select_mediation_setting(view, choice)
        scores = mediation.suite_scores(view, *mediation.METRICS_BY_TABLE[table_name])
        means = mediation.with_facets(view.estimates)
        if table_name == "density" and (reason := mediation.refused_cmi_reason(means, setting)):
            raise NoTable(f"CMI by share of positions is not drawn: {reason}")
        table = getattr(mediation, table_name)(scores, means, setting)
        if table_name == "indices":
            table = table[~table["metric"].isin(mediation.UNDRAWN_METRICS)]
        if table.empty:
            raise NoTable(NOT_ENDED_REASON if means.empty else empty_reason)
        if table_name == "spans_of_sources" and table["source"].nunique() < 2:
            raise NoTable("the run has one view only: span_heatmap shows it")
        note = f"Source {metric_label(setting.source)}." if names_source else ""
        return FigureData(table, note, FigureChoice(setting="~".join(setting)))

    return FigureTable(figure, "run", make, (metric,))


_NO_SHARE, _NO_SPAN = "no share of the positions was patched", "no span was patched"
cmi_density = _mediation_table("cmi_density", "density", _NO_SHARE)
drop_density = _mediation_table("drop_density", "density_in_nats", _NO_SHARE, "drop_kept")
span_heatmap = _mediation_table("span_heatmap", "spans", _NO_SPAN)
span_heatmap_sources = _mediation_table("span_heatmap", "spans_of_sources", _NO_SPAN)
layer_profile = _mediation_table("layer_profile", "layers", "no single layer was patched")
mediation_indices = _mediation_table("mediation_indices", "indices", "no index was estimated")


@figure_table(scope="suite")
def chain_lengths(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how many items of the suite have a chain of each length."""
    lengths = pd.Series([len(item.steps) for item in read.get_suite(view.store, view.suite).items])
    if not lengths.any():
        raise NoTable(
            "the suite's items have no chains: they are the model's own, or were not published"
        )
    counts = lengths.value_counts().rename_axis("n_steps").reset_index(name="count")
    return FigureData(counts.sort_values("n_steps"))


@figure_table(scope="store")
def validation_doses(view: RunView, choice: FigureChoice) -> FigureData:
    """Return what a metric reads of models of known dose."""
    report = read_report(view.store.folder)
    if report is None or not report["metrics"]:
        raise NoTable("no metric has been held against the organisms yet; type: cotlab validate")
    metric = choice.select("metric", list(report["metrics"]))
    table = doses_table(metric, report["metrics"][metric])
    return FigureData(table, choice=FigureChoice(metric=metric))


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


@figure_table()
def label_agreement(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how far the raters of a run agree."""
    table = agreement_points(measure_agreement(view.store, runs=[view.run_id]), "reasoning")
    if table.empty:
        raise NoTable("no item of this run has labels of two raters")
    return FigureData(table)
