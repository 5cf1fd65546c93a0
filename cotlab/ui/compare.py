"""The page Compare: differences between a base and other runs, with intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import (
    CORRECTION_NOTE,
    Comparison,
    ComparisonSet,
    combine_comparisons,
    compare_by_category,
    compare_runs,
    metric_cards,
)
from cotlab.analysis.paired import (
    RATE_METRIC,
    SCORE_METRIC,
    UNFAITHFUL_THRESHOLD,
    PairedRow,
    changed_values,
    facet_label,
    missing_items_text,
)
from cotlab.analysis.readable import METRIC_LABELS, readable_value
from cotlab.analysis.tables import comparison as tables
from cotlab.analysis.tables.comparison import (
    MAX_BARS,
    bar_row,
    metric_unit,
    row_label,
    version_warning,
)
from cotlab.core.keys import canonical_json
from cotlab.core.types import MetricCard
from cotlab.figures.style import format_number, interval_text
from cotlab.ui import cached, charts, components
from cotlab.ui.components import csv_button
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pair.runs import RunChoice
from cotlab.ui.pickers import select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import display_errors, escape_markdown


def render_all_metrics(choice: RunChoice) -> None:
    """Show every metric of the runs with its difference, and one of them in detail."""
    view = select_comparison(choice)
    if view is None:
        return
    render_matched_items(view)
    render_differences(view)
    render_comparison_table(view)
    render_directions(view)
    metric_choice = select_compared_metric(view)
    render_category_differences(view, metric_choice)
    render_changed_items(view, metric_choice)
    render_plan_differences(view)
    render_comparison_notes(view)


class ComparisonView(NamedTuple):
    """What the page Compare shows."""

    results: ComparisonSet
    """The differences of each run from the base."""
    card_by_metric: dict[str, MetricCard]
    """The cards of the compared metrics, by name."""
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
    labels = {name: name for name in scorer_names}
    scorer = select_option("Scorer", labels, "scorer", SCORE_METRIC)
    revision_by_run = {i: choice.row_by_run[i].revision for i in run_ids}
    tags_by_run = dict(zip(choice.others, (plan.tags for plan in plans[1:]), strict=True))
    with display_errors(st.info):
        base_run, *other_runs = revision_by_run.items()
        results = combine_comparisons([_compare_pair(base_run, r, scorer) for r in other_runs])
        return ComparisonView(
            results, metric_cards(plans), tags_by_run, revision_by_run, choice.pair_run
        )
    return None


@cached.cache_by_store(64, "Comparing")
def _compare_pair(base_run: tuple[str, int], other_run: tuple[str, int], scorer: str) -> Comparison:
    """Compare two runs, each with its revision: one more run is cheap."""
    results = compare_runs(cached.store(), base_run[0], [other_run[0]], scorers=(scorer,))
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
    note = tables.threshold_note(view.results, UNFAITHFUL_THRESHOLD)
    evidence = run_link(view.results.comparisons[0].other)
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


class MetricChoice(NamedTuple):
    """The comparison and the metric that are shown in detail."""

    comparison: Comparison
    """One run compared with the base."""
    row: PairedRow
    """The metric, with its difference."""


@cached.cache_by_store(16, "Comparing by category")
def _category_rows(
    run_revisions: tuple[tuple[str, int], ...], _comparison: Comparison, metric: str, facet: str
) -> tuple[PairedRow, ...]:
    pairs = _comparison.pairs
    filtered_comparison = replace(
        _comparison, pairs=pairs[(pairs["metric"] == metric) & (pairs["facet"] == facet)]
    )
    results = compare_by_category(
        cached.store(), ComparisonSet(_comparison.base, (filtered_comparison,), ())
    )
    return results.comparisons[0].rows


def select_compared_metric(view: ComparisonView) -> MetricChoice:
    """Choose the comparison and the metric to show in detail."""
    st.header("One metric in detail")
    with st.container(horizontal=True):
        comparison = next(c for c in view.results.comparisons if c.other == view.pair_run)
        row_by_key = {
            f"{row.metric} {canonical_json(dict(row.facet))}": row for row in comparison.rows
        }
        labels = {key: _metric_label(row, comparison) for key, row in row_by_key.items()}
        p_key_pairs = sorted(
            (2.0 if row.p is None else row.p, key)
            for key, row in row_by_key.items()
            if row.metric == RATE_METRIC
        )
        chosen_key = select_option(
            "Metric", labels, "metric", p_key_pairs[0][1] if p_key_pairs else None
        )
    return MetricChoice(comparison, row_by_key[chosen_key])


def render_category_differences(view: ComparisonView, choice: MetricChoice) -> None:
    """Show the metric's difference within each category."""
    facet = canonical_json(dict(choice.row.facet))
    run_revisions = tuple(
        (i, view.revision_by_run[i]) for i in (choice.comparison.base, choice.comparison.other)
    )
    rows = _category_rows(run_revisions, choice.comparison, choice.row.metric, facet)
    if len(rows) < 2:
        common_category = rows and rows[0].category
        st.caption(
            "All matched items have the same category."
            if common_category
            else "The items have no categories."
        )
        return
    unit = metric_unit(view.card_by_metric, choice.row.metric)
    bars = pd.DataFrame([bar_row(row, row.category or "(no category)", unit) for row in rows])
    bars = bars.assign(of=f"{row_label(choice.row, choice.comparison.rows)} by category")
    page_rows = bars.iloc[components.page_slice(len(bars), "category-bars", MAX_BARS)]
    adjusted_ps = [row.adjusted for row in rows if row.adjusted is not None]
    charts.show_figure(
        "paired_differences",
        page_rows,
        key="categories",
        note=(
            f"{len(adjusted_ps)} tests over the categories; smallest BH p:"
            f" {format_number(min(adjusted_ps)) if adjusted_ps else 'n/a'}."
        ),
        evidence=run_link(choice.comparison.other),
    )


def render_changed_items(view: ComparisonView, choice: MetricChoice) -> None:
    """List the items that improved or regressed, with links to both runs."""
    card = view.card_by_metric.get(choice.row.metric)
    better_direction = card.better if card is not None else "neither"
    changed_items = changed_values(
        choice.comparison.pairs,
        choice.row.metric,
        canonical_json(dict(choice.row.facet)),
        better_direction,
    )
    st.header("Changed items")
    if changed_items.empty:
        st.info("No matched item changed in this metric.")
        return
    page_rows = changed_items.iloc[components.page_slice(len(changed_items), "changed-page")]
    frame = pd.DataFrame(
        {
            "item": page_rows["item_id"],
            "category": page_rows["category"],
            "change": page_rows["change"],
            **{
                side: [
                    format_number(readable_value(choice.row.metric, value))
                    for value in page_rows[side]
                ]
                for side in ("base", "other")
            },
            "difference": page_rows["difference"].map(format_number),
        }
    )
    links = {
        side: [run_link(run, "items", item=i) for i in page_rows["item_id"]]
        for side, run in (("base", choice.comparison.base), ("other", choice.comparison.other))
    }
    show_linked_frame(
        "Changed items",
        frame,
        links,
        key="changed",
        number_names=("base", "other", "difference"),
        help_by_name=dict.fromkeys(links, "Its value; opens the item in that run."),
    )
    csv_button("changed-items", changed_items, "changed-items")
    st.caption(
        f"{len(page_rows)} of {len(changed_items)} changed items, of {choice.row.n} matched; the"
        " largest change first."
    )


def render_plan_differences(view: ComparisonView) -> None:
    """List the settings in which the plans differ."""
    for comparison in view.results.comparisons:
        if warning := version_warning(comparison):
            st.warning(escape_markdown(f"{view.short_label(comparison.other)}: {warning}"))
        with st.expander(
            f"Settings that differ: {len(comparison.changes)}"
            f" ({escape_markdown(view.short_label(comparison.other))})"
        ):
            if not comparison.changes:
                st.caption("The two plans are the same.")
            else:
                components.show_table(
                    pd.DataFrame(list(comparison.changes)), f"settings-{comparison.other}"
                )
            with st.container(horizontal=True):
                components.page_link("run", "Base", "monitoring", {"run": comparison.base})
                components.page_link("run", "Other", "monitoring", {"run": comparison.other})


def _metric_label(row: PairedRow, comparison: Comparison) -> str:
    """Return the metric's name for readers, with the facet that distinguishes the row."""
    label = row_label(row, comparison.rows)
    return metric_name(row.metric) + label.removeprefix(row.metric)
