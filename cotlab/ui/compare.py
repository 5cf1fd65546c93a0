"""The page Compare: differences between a base and other runs, with intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import (
    FAMILY,
    Compared,
    Comparison,
    compare_runs,
    metric_cards,
)
from cotlab.analysis.paired import (
    RATE,
    SCORED,
    THRESHOLD,
    PairedRow,
    facet_label,
    missing_text,
)
from cotlab.analysis.tables.comparison import (
    MAX_BARS,
    NO_UNIT,
    bars_by_unit,
    combine_comparisons,
    default_base,
    shared_scorers,
    short_name,
    threshold_note,
    unit_of,
    with_rates,
)
from cotlab.analysis.tables.unfaithfulness import order_by_epoch
from cotlab.analysis.view import RunView
from cotlab.core.errors import CotlabError
from cotlab.core.resources import page
from cotlab.core.types import MetricCard
from cotlab.figures.style import format_number, interval_text
from cotlab.store import read
from cotlab.ui import cached, components
from cotlab.ui.components import csv_button
from cotlab.ui.pickers import pick_many, pick_threshold, run_labels, select_option
from cotlab.ui.text import as_code


class ComparisonView(NamedTuple):
    """What the page Compare shows."""

    compared: Compared
    """The differences of each run from the base."""
    cards: dict[str, MetricCard]
    """The cards of the compared metrics, by name."""
    labels: dict[str, str]
    """Each run's label, by id."""
    threshold: float
    """The score from which a response counts as unfaithful."""
    tags: dict[str, Mapping[str, str]]
    """The tags of the runs that are compared with the base, by id."""
    revisions: dict[str, int]
    """Each run's revision in the store, by id."""

    def short(self, run_id: str) -> str:
        """Return a short name that distinguishes the run from the others."""
        return short_name(self.tags, run_id)


def select_comparison() -> ComparisonView | None:
    """Choose a base and other runs; None (with a message) where nothing can be compared."""
    rows = read.list_runs(cached.store()).to_dict("records")
    if len(rows) < 2:
        components.empty(
            "A comparison needs two runs on the same items.", page("new_run"), "Start one"
        )
        return None
    labels = run_labels(rows)
    by_id = {str(row["id"]): row for row in rows}
    base = select_option(
        "Base", labels, "base", default_base([RunView.of_row(cached.store(), row) for row in rows])
    )
    others = {i: label for i, label in labels.items() if i != base}
    plan_by_id = {i: cached.parse_plan(row["plan"]) for i, row in by_id.items()}
    alike = [i for i in others if by_id[i]["suite"] == by_id[base]["suite"]]
    fit = [i for i in alike if shared_scorers((plan_by_id[base], plan_by_id[i]))]
    chosen = pick_many(
        "Compared with",
        others,
        "other",
        (fit or alike or list(others))[:1],
        help="Several runs show how consistent a change is.",
    )
    if not chosen:
        st.info("Choose a run to compare with the base.")
        return None
    chosen = order_by_epoch({i: (str(by_id[i]["model"]), plan_by_id[i].tags) for i in chosen})
    plans = [plan_by_id[i] for i in (base, *chosen)]
    names = shared_scorers(plans)
    if not names:
        scorers_text = "; ".join(
            f"{i}: {', '.join(spec.name for spec in plan.scorers) or 'none'}"
            for i, plan in zip((base, *chosen), plans, strict=True)
        )
        st.info(
            "These runs have no scorer in common, so there is nothing to compare."
            f" {as_code(scorers_text)}."
        )
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scorer = select_option(
            "Scorer",
            {name: name for name in names},
            "scorer",
            SCORED if SCORED in names else names[0],
        )
        threshold = pick_threshold() if scorer == SCORED else 0.5
    revisions = {i: int(by_id[i]["revision"]) for i in (base, *chosen)}
    try:
        compared = _compared(revisions, scorer, threshold)
    except CotlabError as error:
        st.info(as_code(str(error)))
        return None
    tags = {i: plan.tags for i, plan in zip(chosen, plans[1:], strict=True)}
    return ComparisonView(compared, metric_cards(plans), labels, threshold, tags, revisions)


def _compared(revisions: Mapping[str, int], scorer: str, threshold: float) -> Compared:
    """Compare the first run with the others.

    Each pair is cached, so that one more run or another threshold is cheap.
    """
    (base, *others), pairs = revisions.items(), []
    for other in others:
        pair = _pair(str(cached.store().folder), base, other, scorer, (), THRESHOLD)
        if threshold != THRESHOLD and any(row.metric == RATE for row in pair.rows):
            pair = with_rates(
                pair, _pair(str(cached.store().folder), base, other, scorer, (RATE,), threshold)
            )
        pairs.append(pair)
    return combine_comparisons(pairs)


@st.cache_data(show_spinner="Comparing", max_entries=64)
def _pair(
    folder: str,
    base: tuple[str, int],
    other: tuple[str, int],
    scorer: str,
    metrics: tuple[str, ...],
    threshold: float,
) -> Comparison:
    (base_id, _), (other_id, _) = base, other
    made = compare_runs(
        cached.store(), base_id, [other_id], scorers=(scorer,), metrics=metrics, threshold=threshold
    )
    return made.comparisons[0]


def render_matched_items(view: ComparisonView) -> None:
    """Show how many items are matched, and how many only one run has."""
    counts = {
        c.other: {
            "Matched items": str(c.shared - c.unlike),
            "Distinct prompts": str(c.prompts),
            "Only in the base": str(c.only_base),
            "Only in the other": str(c.only_other),
        }
        for c in view.compared.comparisons
    }
    if len(counts) == 1:
        components.show_numbers(list(next(iter(counts.values())).items()))
    else:
        frame = pd.DataFrame([{"run": view.short(i), **cells} for i, cells in counts.items()])
        right = components.right_aligned(*frame.columns[1:])
        st.dataframe(frame, hide_index=True, key="matched", column_config=right)
    for c in view.compared.comparisons:
        if c.unlike:
            st.warning(
                f"{c.unlike} item ids belong to different questions in the two runs: these"
                " items are not matched."
            )
        both = dict.fromkeys((*c.alone_base, *c.alone_other))
        if both:
            st.caption(
                "Not measured in the same way in both runs, so not compared:"
                f" {as_code(', '.join(both))}."
            )


def render_differences(view: ComparisonView) -> None:
    """Show the differences with intervals, for metrics of one unit at a time."""
    by_unit = bars_by_unit(view.compared, view.cards, view.tags)
    units = list(by_unit)
    labels = {unit: "no unit (shares and scores)" if unit == NO_UNIT else unit for unit in units}
    unit = select_option("Metrics in", labels, "unit") if len(units) > 1 else units[0]
    bars = by_unit[unit]
    part = bars.iloc[components.page_slice(len(bars), f"bars-{unit}", MAX_BARS)]
    components.show_figure(
        "paired_differences",
        part,
        key="differences",
        note=threshold_note(view.compared, view.threshold),
        evidence=(page("run"), {"run": view.compared.comparisons[0].other}),
    )
    with st.container(horizontal=True):
        names = dict.fromkeys(row.metric for c in view.compared.comparisons for row in c.rows)
        for metric in [name for name in names if unit_of(view.cards, name) == unit][:8]:
            components.show_card(metric)


def render_comparison_table(view: ComparisonView) -> None:
    """Show every difference with its test, raw and corrected."""
    rows = []
    for c in view.compared.comparisons:
        rows += [_line(view, c, row) for row in c.rows]
    frame = pd.DataFrame(rows)
    part = frame.iloc[components.page_slice(len(frame), "compare-page")]
    st.dataframe(
        part.assign(metric=part["metric"].map(components.metric_name)),
        hide_index=True,
        key=f"compare-{part.index[0]}",
        height="content" if len(part) < 13 else 460,
        column_config={
            **{
                name: st.column_config.TextColumn(name, alignment="right", help=_HELP.get(name))
                for name in _RIGHT
            },
            "− / +": st.column_config.TextColumn(
                "− / +",
                alignment="right",
                help="Items with the value yes in the base only / in the other run only.",
            ),
            "of": st.column_config.TextColumn("facet"),
            "missing": st.column_config.TextColumn("missing", width="large"),
            "why n/a": st.column_config.TextColumn("reason"),
        },
    )
    csv_button("comparison", frame, "comparison")
    st.caption(
        "p: McNemar's exact test where values are yes or no and each prompt occurs once,"
        f" else Wilcoxon's signed ranks over prompts. BH p: {FAMILY}"
        f" ({sum(row.p is not None for c in view.compared.comparisons for row in c.rows)}"
        " tests)."
    )


def render_directions(view: ComparisonView) -> None:
    """Show how many of several runs differ from the base in the same direction."""
    if not view.compared.directions:
        return
    st.subheader("Direction")
    frame = pd.DataFrame(
        [
            {
                "metric": components.metric_name(row.metric),
                "of": facet_label(row.facet),
                "direction": row.text,
            }
            | {
                view.short(c.other): format_number(d)
                for c, d in zip(view.compared.comparisons, row.differences, strict=False)
            }
            for row in view.compared.directions
        ]
    )
    st.dataframe(frame, hide_index=True, key="directions")
    st.caption(
        "Only the sign counts, not the size. Runs on the same items are not independent of"
        " each other."
    )


def render_comparison_notes(view: ComparisonView) -> None:
    """Show which intervals were used and what a difference means."""
    used = dict.fromkeys(
        row.method for c in view.compared.comparisons for row in c.rows if row.lo is not None
    )
    method = f"Intervals: 95 %, by {' or '.join(used)}." if used else ""
    st.caption(
        f"{method} A difference is other − base over items with a value in both runs, so it"
        " applies to those items only; where many are missing, see why. A comparison sends"
        " no request. The same from a shell: cotlab compare BASE OTHER."
    )


_HELP = {
    "BH p": "Corrected after Benjamini and Hochberg over all rows of this table.",
    "effect": "Cohen's d_z: mean difference in standard deviations of the differences.",
    "rank effect": "Matched-pairs rank-biserial correlation, −1 to 1.",
    "n": "Matched items; distinct prompts in brackets where prompts repeat.",
}
_RIGHT = ("n", "base", "other", "difference [95% interval]", "effect", "rank effect", "p", "BH p")


def _line(view: ComparisonView, c: Comparison, row: PairedRow) -> dict[str, str]:
    d = row.discordant
    return {
        **({"run": view.short(c.other)} if len(view.compared.comparisons) > 1 else {}),
        "metric": row.metric,
        "of": facet_label(row.facet),
        "n": str(row.n) if row.n == row.prompts else f"{row.n} ({row.prompts})",
        "base": format_number(row.base),
        "other": format_number(row.other),
        "difference [95% interval]": interval_text(row.difference, row.lo, row.hi),
        "p": format_number(row.p),
        "BH p": format_number(row.adjusted),
        "test": row.test if row.p is not None else "n/a",
        "− / +": f"{d.first_only} / {d.second_only}" if d is not None else "",
        "effect": format_number(row.effect),
        "rank effect": format_number(row.rank_effect),
        "missing": missing_text(row),
        "why n/a": "; ".join(dict.fromkeys(reason for reason in (row.reason, row.no_p) if reason)),
    }
