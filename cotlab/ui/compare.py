"""The parts of the page Compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd
import streamlit as st

from cotlab.analysis.compare import (
    FAMILY,
    Compared,
    Comparison,
    compare_by_category,
    compare_runs,
    metric_cards,
)
from cotlab.analysis.paired import (
    RATE,
    SCORED,
    THRESHOLD,
    PairedRow,
    changed_values,
    facet_label,
    missing_text,
)
from cotlab.analysis.tables.comparison import (
    MAX_BARS,
    NO_UNIT,
    bar_row,
    bars_by_unit,
    combine_comparisons,
    default_base,
    row_label,
    shared_scorers,
    short_name,
    threshold_note,
    unit_of,
    with_rates,
)
from cotlab.analysis.tables.unfaithfulness import order_by_epoch
from cotlab.analysis.view import RunView
from cotlab.core.errors import CotlabError
from cotlab.core.keys import canonical_json
from cotlab.core.types import MetricCard
from cotlab.figures.style import format_number, interval_text
from cotlab.store import read
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.runs.picking import csv_button, pick_many, pick_threshold, run_labels
from cotlab.ui.text import as_code


class ComparisonView(NamedTuple):
    """What the page compares: the result, the cards of its metrics, and of each run its label, tags and revision.

    ``tags`` are those of the runs held against the base.
    """

    compared: Compared
    cards: dict[str, MetricCard]
    labels: dict[str, str]
    threshold: float
    tags: dict[str, Mapping[str, str]]
    revisions: dict[str, int]

    def short(self, run_id: str) -> str:
        """What tells a run from the others in a few words."""
        return short_name(self.tags, run_id)


class Choice(NamedTuple):
    """The comparison and the metric that the lower half of the page is about."""

    comparison: Comparison
    row: PairedRow


def select_comparison() -> ComparisonView | None:
    """Pick base and others; None (after saying why) where nothing can be compared."""
    rows = read.list_runs(data.store()).to_dict("records")
    if len(rows) < 2:
        parts.empty("It takes two runs on the same items to compare.", page("new_run"), "Start one")
        return None
    labels = run_labels(rows)
    by_id = {str(row["id"]): row for row in rows}
    base = parts.select_option(
        "Base", labels, "base", default_base([RunView.of_row(data.store(), row) for row in rows])
    )
    others = {i: label for i, label in labels.items() if i != base}
    plan_by_id = {i: data.parse_plan(row["plan"]) for i, row in by_id.items()}
    alike = [i for i in others if by_id[i]["suite"] == by_id[base]["suite"]]
    fit = [i for i in alike if shared_scorers((plan_by_id[base], plan_by_id[i]))]
    chosen = pick_many(
        "Compared with it",
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
        scorer = parts.select_option(
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
    """The first run against the others, made of pairs of runs that are kept: one more run, or another threshold, is cheap."""
    (base, *others), pairs = revisions.items(), []
    for other in others:
        pair = _pair(str(data.store().folder), base, other, scorer, (), THRESHOLD)
        if threshold != THRESHOLD and any(row.metric == RATE for row in pair.rows):
            pair = with_rates(
                pair, _pair(str(data.store().folder), base, other, scorer, (RATE,), threshold)
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
        data.store(), base_id, [other_id], scorers=(scorer,), metrics=metrics, threshold=threshold
    )
    return made.comparisons[0]


@st.cache_data(show_spinner="Comparing by category", max_entries=16)
def _by_category(
    folder: str, runs: tuple[tuple[str, int], ...], _comparisons: Compared, metric: str, facet: str
) -> Compared:
    filtered = []
    for c in _comparisons.comparisons:
        mask = (c.pairs["metric"] == metric) & (c.pairs["facet"] == facet)
        filtered.append(replace(c, pairs=c.pairs[mask]))
    return compare_by_category(data.store(), Compared(_comparisons.base, tuple(filtered), ()))


def render_matched_items(view: ComparisonView) -> None:
    """How many items are matched, and what only one side has."""
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
        parts.show_numbers(list(next(iter(counts.values())).items()))
    else:
        frame = pd.DataFrame([{"run": view.short(i), **cells} for i, cells in counts.items()])
        right = {
            name: st.column_config.TextColumn(name, alignment="right") for name in frame.columns[1:]
        }
        st.dataframe(frame, hide_index=True, key="matched", column_config=right)
    for c in view.compared.comparisons:
        if c.unlike:
            st.warning(
                f"{c.unlike} ids stand for another question in each run: they are not matched."
            )
        both = dict.fromkeys((*c.alone_base, *c.alone_other))
        if both:
            st.caption(
                f"Not measured alike in both runs, so not compared: {as_code(', '.join(both))}."
            )


def render_differences(view: ComparisonView) -> None:
    """The differences with their intervals, those of one unit at a time."""
    by_unit = bars_by_unit(view.compared, view.cards, view.tags)
    units = list(by_unit)
    labels = {unit: "no unit (shares and scores)" if unit == NO_UNIT else unit for unit in units}
    unit = parts.select_option("Metrics in", labels, "unit") if len(units) > 1 else units[0]
    bars = by_unit[unit]
    part = bars.iloc[parts.page_slice(len(bars), f"bars-{unit}", MAX_BARS)]
    parts.show_figure(
        "paired_differences",
        part,
        key="differences",
        note=threshold_note(view.compared, view.threshold),
        evidence=(page("run"), {"run": view.compared.comparisons[0].other}),
    )
    with st.container(horizontal=True):
        names = dict.fromkeys(row.metric for c in view.compared.comparisons for row in c.rows)
        for metric in [name for name in names if unit_of(view.cards, name) == unit][:8]:
            parts.show_card(metric)


def render_comparison_table(view: ComparisonView) -> None:
    """Every row with its test, raw and corrected."""
    rows = []
    for c in view.compared.comparisons:
        rows += [_line(view, c, row) for row in c.rows]
    frame = pd.DataFrame(rows)
    part = frame.iloc[parts.page_slice(len(frame), "compare-page")]
    st.dataframe(
        part,
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
                help="Items that are yes in the base only / in the other only.",
            ),
            "missing": st.column_config.TextColumn("missing", width="large"),
        },
    )
    csv_button("comparison", frame, "comparison")
    st.caption(
        "p: McNemar's exact test where items are yes or no and each prompt stands once, else"
        f" Wilcoxon's signed ranks over prompts. BH p: {FAMILY}"
        f" ({sum(row.p is not None for c in view.compared.comparisons for row in c.rows)} tests)."
    )


def render_directions(view: ComparisonView) -> None:
    """How many of several runs differ from the base the same way."""
    if not view.compared.directions:
        return
    st.subheader("Direction")
    frame = pd.DataFrame(
        [
            {"metric": row.metric, "of": facet_label(row.facet), "direction": row.text}
            | {
                view.short(c.other): format_number(d)
                for c, d in zip(view.compared.comparisons, row.differences, strict=False)
            }
            for row in view.compared.directions
        ]
    )
    st.dataframe(frame, hide_index=True, key="directions")
    st.caption(
        "The sign alone, whatever its size. Runs on the same items are not independent of each"
        " other."
    )


def select_compared_metric(view: ComparisonView) -> Choice:
    """Which comparison and metric are looked into."""
    st.subheader("One metric in detail")
    with st.container(horizontal=True):
        others = {c.other: view.labels[c.other] for c in view.compared.comparisons}
        other = (
            parts.select_option("Run", others, "with") if len(others) > 1 else next(iter(others))
        )
        comparison = next(c for c in view.compared.comparisons if c.other == other)
        keys = {f"{row.metric} {canonical_json(dict(row.facet))}": row for row in comparison.rows}
        labels = {key: row_label(row, comparison.rows) for key, row in keys.items()}
        rates = sorted(
            (2.0 if row.p is None else row.p, key)
            for key, row in keys.items()
            if row.metric == RATE
        )
        chosen = parts.select_option("Metric", labels, "metric", rates[0][1] if rates else None)
    return Choice(comparison, keys[chosen])


def render_category_differences(view: ComparisonView, choice: Choice) -> None:
    """The same difference within each category."""
    facet = canonical_json(dict(choice.row.facet))
    runs = tuple((i, view.revisions[i]) for i in (choice.comparison.base, choice.comparison.other))
    compared = _by_category(
        str(data.store().folder),
        runs,
        Compared(view.compared.base, (choice.comparison,), ()),
        choice.row.metric,
        facet,
    )
    rows = compared.comparisons[0].rows
    if len(rows) < 2:
        of = rows[0].category if rows else ""
        st.caption(
            "All matched items are of one category." if of else "The items have no category."
        )
        return
    unit = unit_of(view.cards, choice.row.metric)
    bars = pd.DataFrame([bar_row(row, row.category or "(no category)", unit) for row in rows])
    bars = bars.assign(of=f"{row_label(choice.row, choice.comparison.rows)} by category")
    part = bars.iloc[parts.page_slice(len(bars), "category-bars", MAX_BARS)]
    smallest = [row.adjusted for row in rows if row.adjusted is not None]
    parts.show_figure(
        "paired_differences",
        part,
        key="categories",
        note=(
            f"{len(smallest)} tests over the categories; smallest BH p:"
            f" {format_number(min(smallest)) if smallest else 'n/a'}."
        ),
        evidence=(page("run"), {"run": choice.comparison.other}),
    )


def render_changed_items(view: ComparisonView, choice: Choice) -> None:
    """Items that improved or regressed, each with a link to both sides."""
    card = view.cards.get(choice.row.metric)
    better = card.better if card is not None else "neither"
    moved = changed_values(
        choice.comparison.pairs, choice.row.metric, canonical_json(dict(choice.row.facet)), better
    )
    counts = moved["change"].value_counts().to_dict()
    st.subheader("Changed items")
    if moved.empty:
        st.info("No matched item changed in this metric.")
        return
    counts_text = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    kinds = parts.select_option(
        "Show",
        {"all": f"All: {counts_text}", **{str(name): str(name) for name in sorted(counts)}},
        "change",
    )
    rows = moved if kinds == "all" else moved[moved["change"] == kinds]
    part = rows.iloc[parts.page_slice(len(rows), "changed-page")]
    frame = pd.DataFrame(
        {
            "base item": [_item_link(choice.comparison.base, i) for i in part["item_id"]],
            "other item": [_item_link(choice.comparison.other, i) for i in part["item_id"]],
            "item": part["item_id"],
            "category": part["category"],
            "change": part["change"],
            "base": part["base"].map(format_number),
            "other": part["other"].map(format_number),
            "difference": part["difference"].map(format_number),
        }
    )
    right = {
        name: st.column_config.TextColumn(name, alignment="right")
        for name in ("base", "other", "difference")
    }
    st.dataframe(
        frame,
        hide_index=True,
        key=f"changed-{kinds}",
        height="content" if len(frame) < 13 else 460,
        column_config={
            "base item": st.column_config.LinkColumn(
                "base item", display_text="open", width="small"
            ),
            "other item": st.column_config.LinkColumn(
                "other item", display_text="open", width="small"
            ),
            **right,
        },
    )
    csv_button("changed-items", rows, "changed")
    st.caption(
        f"{len(part)} of {len(rows)} changed items, of {choice.row.n} matched; the largest change"
        " first."
    )


def render_missing_items(view: ComparisonView, choice: Choice) -> None:
    """What has no value on a side, and why."""
    rows = [
        {"side": side, "items": n, "why": reason}
        for side, reasons in (
            ("base", choice.row.missing_base),
            ("other", choice.row.missing_other),
        )
        for reason, n in reasons.items()
    ]
    if not rows:
        st.caption("No item is missing on either side in this metric.")
        return
    st.subheader("Missing items")
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="missing")


def render_plan_differences(view: ComparisonView) -> None:
    """Where the plans differ."""
    for c in view.compared.comparisons:
        with st.expander(
            f"Settings that differ: {len(c.changes)} ({as_code(view.short(c.other))})"
        ):
            if not c.changes:
                st.caption("The two plans are the same.")
            else:
                st.dataframe(
                    pd.DataFrame(
                        [(x.setting, x.base, x.other) for x in c.changes],
                        columns=["setting", "base", "other"],
                    ),
                    hide_index=True,
                    key=f"settings-{c.other}",
                )
            with st.container(horizontal=True):
                for side, run_id in (("Base", c.base), ("Other", c.other)):
                    st.page_link(
                        page("run"),
                        label=side,
                        icon=":material/monitoring:",
                        query_params={"run": run_id},
                    )


def render_comparison_notes(view: ComparisonView) -> None:
    used = dict.fromkeys(
        row.method for c in view.compared.comparisons for row in c.rows if row.lo is not None
    )
    method = f"Intervals: 95 %, by {' or '.join(used)}." if used else ""
    st.caption(
        f"{method} A difference is other − base over items with a value in both runs, so it holds"
        " for those items; where many are missing, look at why. Comparing asks no model. The same"
        " from a shell: cotlab compare BASE OTHER."
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


def _item_link(run_id: str, item: str) -> str:
    return f"/item?run={quote(run_id, safe='')}&item={quote(item, safe='')}"
