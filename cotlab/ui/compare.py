"""The page Compare: differences between a base and other runs, with intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import (
    CORRECTION_NOTE,
    Comparison,
    ComparisonSet,
    combine_comparisons,
    compare_runs,
    metric_cards,
)
from cotlab.analysis.paired import (
    RATE_METRIC,
    SCORE_METRIC,
    UNFAITHFUL_THRESHOLD,
    PairedRow,
    facet_label,
    missing_items_text,
)
from cotlab.analysis.readable import METRIC_LABELS, readable_value
from cotlab.analysis.tables import comparison as tables
from cotlab.core.resources import page_path
from cotlab.core.types import MetricCard
from cotlab.figures.style import format_number, interval_text
from cotlab.ui import cached, charts, components
from cotlab.ui.components import csv_button
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pair.runs import RunChoice
from cotlab.ui.pickers import pick_threshold, select_option
from cotlab.ui.text import display_errors, escape_markdown


class ComparisonView(NamedTuple):
    """What the page Compare shows."""

    results: ComparisonSet
    """The differences of each run from the base."""
    card_by_metric: dict[str, MetricCard]
    """The cards of the compared metrics, by name."""
    label_by_run: dict[str, str]
    """Each run's label, by id."""
    threshold: float
    """The score from which a response counts as unfaithful."""
    tags_by_run: dict[str, Mapping[str, str]]
    """The tags of the runs that are compared with the base, by id."""
    revision_by_run: dict[str, int]
    """Each run's revision in the store, by id."""
    pair_run: str
    """Id of the run whose metrics are shown in detail."""

    def short_label(self, run_id: str) -> str:
        """Return a short name that distinguishes the run from the others."""
        return tables.short_run_name(self.tags_by_run, run_id)


def select_comparison(choice: RunChoice) -> ComparisonView | None:
    """Choose what is compared of the runs; None (with a message) where nothing can be."""
    run_ids = (choice.base, *choice.others)
    plans = [choice.row_by_run[i].plan for i in run_ids]
    scorer_names = tables.shared_scorers(plans)
    if not scorer_names:
        scorers_text = "; ".join(
            f"{i}: {', '.join(spec.name for spec in plan.scorers) or 'none'}"
            for i, plan in zip(run_ids, plans, strict=True)
        )
        st.info(
            "These runs have no scorer in common, so there is nothing to compare."
            f" {escape_markdown(scorers_text)}."
        )
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scorer = select_option(
            "Scorer", {name: name for name in scorer_names}, "scorer", SCORE_METRIC
        )
        threshold = pick_threshold() if scorer == SCORE_METRIC else 0.5
    revision_by_run = {i: choice.row_by_run[i].revision for i in run_ids}
    tags_by_run = dict(zip(choice.others, (plan.tags for plan in plans[1:]), strict=True))
    with display_errors(st.info):
        results = _compare_with_base(revision_by_run, scorer, threshold)
        return ComparisonView(
            results,
            metric_cards(plans),
            choice.label_by_run,
            threshold,
            tags_by_run,
            revision_by_run,
            choice.pair_run,
        )
    return None


def _compare_with_base(
    revision_by_run: Mapping[str, int], scorer: str, threshold: float
) -> ComparisonSet:
    """Compare the first run with the others.

    Each pair is cached, so that one more run or another threshold is cheap.
    """
    (base_run, *other_runs), comparisons = revision_by_run.items(), []
    for other_run in other_runs:
        comparison = _compare_pair(base_run, other_run, scorer, (), UNFAITHFUL_THRESHOLD)
        if threshold != UNFAITHFUL_THRESHOLD and any(
            row.metric == RATE_METRIC for row in comparison.rows
        ):
            comparison = tables.replace_rates(
                comparison, _compare_pair(base_run, other_run, scorer, (RATE_METRIC,), threshold)
            )
        comparisons.append(comparison)
    return combine_comparisons(comparisons)


@cached.cache_by_store(64, "Comparing")
def _compare_pair(
    base_run: tuple[str, int],
    other_run: tuple[str, int],
    scorer: str,
    metrics: tuple[str, ...],
    threshold: float,
) -> Comparison:
    (base_id, _), (other_id, _) = base_run, other_run
    results = compare_runs(
        cached.store(), base_id, [other_id], scorers=(scorer,), metrics=metrics, threshold=threshold
    )
    return results.comparisons[0]


def render_matched_items(view: ComparisonView) -> None:
    """Show how many items are matched, and how many only one run has."""
    counts_by_run = {
        comparison.other: {
            "Matched items": str(comparison.n_shared - comparison.n_changed_questions),
            "Distinct prompts": str(comparison.n_prompts),
            "Only in the base": str(comparison.n_only_base),
            "Only in the other": str(comparison.n_only_other),
        }
        for comparison in view.results.comparisons
    }
    if len(counts_by_run) == 1:
        components.show_numbers(list(next(iter(counts_by_run.values())).items()))
    else:
        frame = pd.DataFrame(
            [{"run": view.short_label(i), **cells} for i, cells in counts_by_run.items()]
        )
        components.show_table(frame, "matched", right_aligned_names=frame.columns[1:])
    for comparison in view.results.comparisons:
        if comparison.n_changed_questions:
            st.warning(
                f"{comparison.n_changed_questions} item ids belong to different questions in the"
                " two runs: these items are not matched."
            )
        unmatched_metrics = dict.fromkeys(
            (*comparison.metrics_only_base, *comparison.metrics_only_other)
        )
        if unmatched_metrics:
            st.caption(
                "Not measured in the same way in both runs, so not compared:"
                f" {escape_markdown(', '.join(unmatched_metrics))}."
            )


def render_differences(view: ComparisonView) -> None:
    """Show the differences with intervals, for metrics of one unit at a time."""
    bars_by_unit_name = tables.bars_by_unit(view.results, view.card_by_metric, view.tags_by_run)
    units = list(bars_by_unit_name)
    labels = {
        unit: "no unit (shares and scores)" if unit == tables.NO_UNIT_LABEL else unit
        for unit in units
    }
    unit = select_option("Metrics in", labels, "unit") if len(units) > 1 else units[0]
    bars = bars_by_unit_name[unit]
    page_rows = bars.iloc[components.page_slice(len(bars), f"bars-{unit}", tables.MAX_BARS)]
    note = tables.threshold_note(view.results, view.threshold)
    evidence = (page_path("run"), {"run": view.results.comparisons[0].other})
    charts.show_figure(
        "paired_differences", page_rows, key="differences", note=note, evidence=evidence
    )
    metrics = dict.fromkeys(row.metric for c in view.results.comparisons for row in c.rows)
    components.show_cards(
        *[name for name in metrics if tables.metric_unit(view.card_by_metric, name) == unit][:8]
    )


def render_comparison_table(view: ComparisonView) -> None:
    """Show every difference with its test, raw and corrected."""
    comparisons = view.results.comparisons
    frame = pd.DataFrame([_comparison_cells(view, c, row) for c in comparisons for row in c.rows])
    page_rows = frame.iloc[components.page_slice(len(frame), "compare-page")]
    components.show_table(
        page_rows.assign(metric=page_rows["metric"].map(metric_name)),
        f"compare-{page_rows.index[0]}",
        column_config={
            **{
                name: st.column_config.TextColumn(
                    name, alignment="right", help=_COLUMN_HELP.get(name)
                )
                for name in _RIGHT_ALIGNED_COLUMNS
            },
            "of": st.column_config.TextColumn("facet"),
            "missing": st.column_config.TextColumn("missing", width="large"),
            "why n/a": st.column_config.TextColumn("reason"),
        },
    )
    labels = [METRIC_LABELS.get(name, name) for name in frame["metric"]]
    csv_button("comparison", frame.assign(metric=labels), "comparison")
    st.caption(
        "p: McNemar's exact test where values are yes or no and each prompt occurs once,"
        f" else Wilcoxon's signed ranks over prompts. BH p: {CORRECTION_NOTE}"
        f" ({sum(row.p is not None for c in comparisons for row in c.rows)} tests)."
    )


def render_directions(view: ComparisonView) -> None:
    """Show how many of several runs differ from the base in the same direction."""
    if not view.results.directions:
        return
    st.header("Direction")
    frame = pd.DataFrame(
        [
            {"metric": metric_name(row.metric), "of": facet_label(row.facet), "direction": row.text}
            | {
                view.short_label(c.other): format_number(difference)
                for c, difference in zip(view.results.comparisons, row.differences, strict=False)
            }
            for row in view.results.directions
        ]
    )
    components.show_table(frame, "directions")
    st.caption(
        "Only the sign counts, not the size. Runs on the same items are not independent of"
        " each other."
    )


def render_comparison_notes(view: ComparisonView) -> None:
    """Show which intervals were used and what a difference means."""
    used_methods = dict.fromkeys(
        row.method for c in view.results.comparisons for row in c.rows if row.lo is not None
    )
    method_text = f"Intervals: 95 %, by {' or '.join(used_methods)}." if used_methods else ""
    st.caption(
        f"{method_text} A difference is other − base over items with a value in both runs, so it"
        " applies to those items only; where many are missing, see why. A comparison sends"
        " no request. The same from a shell: cotlab compare BASE OTHER."
    )


_COLUMN_HELP = {
    "− / +": "Items with the value yes in the base only / in the other run only.",
    "BH p": "Corrected after Benjamini and Hochberg over all rows of this table.",
    "effect": "Cohen's d_z: mean difference in standard deviations of the differences.",
    "rank effect": "Matched-pairs rank-biserial correlation, −1 to 1.",
    "n": "Matched items; distinct prompts in brackets where prompts repeat.",
}
_RIGHT_ALIGNED_COLUMNS = (
    "n",
    "base",
    "other",
    "difference [95% interval]",
    "p",
    "BH p",
    "− / +",
    "effect",
    "rank effect",
)


def _comparison_cells(
    view: ComparisonView, comparison: Comparison, row: PairedRow
) -> dict[str, str]:
    discordant = row.discordant
    return {
        **(
            {"run": view.short_label(comparison.other)} if len(view.results.comparisons) > 1 else {}
        ),
        "metric": row.metric,
        "of": facet_label(row.facet),
        "n": str(row.n) if row.n == row.prompts else f"{row.n} ({row.prompts})",
        "base": format_number(readable_value(row.metric, row.base)),
        "other": format_number(readable_value(row.metric, row.other)),
        "difference [95% interval]": interval_text(row.difference, row.lo, row.hi),
        "p": format_number(row.p),
        "BH p": format_number(row.adjusted),
        "test": row.test if row.p is not None else "n/a",
        "− / +": (
            f"{discordant.first_only} / {discordant.second_only}" if discordant is not None else ""
        ),
        "effect": format_number(row.effect),
        "rank effect": format_number(row.rank_effect),
        "missing": missing_items_text(row),
        "why n/a": "; ".join(dict.fromkeys(reason for reason in (row.reason, row.no_p) if reason)),
    }
