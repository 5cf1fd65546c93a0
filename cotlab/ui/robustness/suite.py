"""The parts of the page Robustness that are about the whole suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import Choice, NoFigure, count_reasons
from cotlab.analysis.tables.robustness import (
    CHARTED_METRICS,
    item_cell_table,
    item_step_means,
    with_perturbation,
)
from cotlab.analysis.tables.robustness import perturbation_table as groups_table
from cotlab.figures.robustness import (
    MEASURES,
    SERIES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.links import page
from cotlab.ui.text import as_code

HEADLINE = (
    ("robustness", "R"),
    ("robustness_dispersion", "Dispersion of D"),
    ("perturbed_answer_change", "Answer changes"),
)
CAUSAL = (
    ("causal_stability", "Stability rate"),
    ("rename_stable", "Kept under a rename"),
    ("number_follows", "Follows a changed number"),
    ("number_moves", "Moves with a changed number"),
)
METRICS = ("robustness", "robustness_dispersion", "divergence", "perturbed_answer_change")
ALL, NONE = "all", "none"


class View(NamedTuple):
    """The cell that is looked at, as the address has it; ``position`` counts from 0."""

    measure: str
    perturbation: str
    position: int


def robustness_scores(row: dict[str, Any], *metrics: str) -> pd.DataFrame:
    """Scores of these metrics with a column perturbation ("" where a score has none)."""
    return with_perturbation(data.view(row).scores(*metrics))


def render_robustness_summary(row: dict[str, Any]) -> None:
    """R, dispersion and answer changes of all perturbations together, with intervals and n."""
    if robustness_scores(row, *METRICS).empty:
        st.info("This run has no scores of the scorer 'robustness'.")
        return
    estimates = _means(row)
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    _numbers(row, estimates[estimates["perturbation"] == ALL], HEADLINE)
    level = float(estimates["confidence"].iloc[0])
    st.caption(
        f"Means over n items, all chosen perturbations together, with {100 * level:g} % intervals."
        " An answer counts here as changed where any of them moves it; below, each perturbation"
        " stands by itself."
    )
    with st.container(horizontal=True):
        for metric in METRICS:
            parts.show_card(metric)


def render_perturbations(row: dict[str, Any]) -> None:
    """R and answer changes of each perturbation as a figure, then all four metrics as a table with what is undefined."""
    estimates = _means(row)
    if estimates.empty:
        return
    reasons = _reasons(row, METRICS)
    table = groups_table(
        robustness_scores(row, *CHARTED_METRICS),
        data.estimates(row["id"], int(row["revision"])),
    )
    _show("robustness_by_perturbation", table, "groups", row)
    by_cell = {(str(r["metric"]), str(r["perturbation"])): r for r in estimates.to_dict("records")}
    names = order_perturbations(estimates["perturbation"])
    columns: dict[str, list[str]] = {
        label: [_counted(by_cell.get((metric, name))) for name in names]
        for metric, label in (*HEADLINE, ("divergence", SERIES["divergence"]))
    }
    gaps = [
        "; ".join(
            f"{SERIES[m]}: {text} ({k})"
            for m in ("divergence", "perturbed_answer_change")
            for text, k in reasons.get((m, name), {}).items()
        )
        for name in names
    ]
    with st.expander("All values, and why scores are undefined"):
        st.dataframe(
            pd.DataFrame(
                {
                    "perturbation": [perturbation_label(name) for name in names],
                    **columns,
                    "steps without a score": gaps,
                }
            ),
            hide_index=True,
            height="content",
            key="group-table",
            column_config={
                **{
                    label: st.column_config.TextColumn(alignment="right", width=200)
                    for label in columns
                },
                "steps without a score": st.column_config.TextColumn(width="large"),
            },
        )


def render_positions(row: dict[str, Any]) -> View | None:
    """Perturbations against positions; a click on a cell, or the choices below it, open its items. None without scores."""
    scores = robustness_scores(row, *MEASURES)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return None
    st.subheader("By position")
    measure = parts.select_option(
        "Measure",
        {name: MEASURES[name] for name in MEASURES if name in set(scores["metric"])},
        "measure",
    )
    scores = scores[scores["metric"] == measure]
    figure_slot = st.container()
    left, right = st.columns(2)
    with left:
        names = order_perturbations(scores["perturbation"])
        perturbation = parts.select_option(
            "Perturbation",
            {name: perturbation_label(name) for name in names},
            "perturbation",
            _default(names),
        )
    with right:
        at = sorted(
            int(step) for step in scores[scores["perturbation"] == perturbation]["step"].unique()
        )
        counted = (
            scores[scores["perturbation"] == perturbation].groupby("step")["item_id"].nunique()
        )
        labels = {str(step + 1): f"{step + 1} · {counted[step]} items" for step in at}
        position = int(parts.select_option("Position", labels, "position")) - 1
    view = View(measure, perturbation, position)
    result = data.table(
        row["id"], int(row["revision"]), "perturbation_cells", Choice(metric=measure)
    )
    if isinstance(result, NoFigure):
        return None
    table = result.table
    chosen = (table["perturbation"] == perturbation) & (table["step"] == position)
    with figure_slot:
        _show(
            "perturbation_cells",
            table.assign(chosen=chosen),
            "cells",
            row,
            "Click a cell to list its items.",
            _go,
        )
    return view


def render_cell_items(row: dict[str, Any], view: View) -> None:
    """The items of one cell, each with a link."""
    cell_rows = view_means(robustness_scores(row, view.measure), view)
    cell_rows = cell_rows[cell_rows["step"] == view.position].sort_values(
        "value", ascending=False, na_position="last", kind="stable"
    )
    part = cell_rows.iloc[parts.page_slice(len(cell_rows), "cell-page")]
    here = robustness_scores(row, view.measure)
    here = here[
        (here["perturbation"] == view.perturbation) & (here["step"] == view.position)
    ].drop_duplicates("item_id")
    ids = dict(zip(here["item_id"], evidence.score_ids(here), strict=True))
    keys = dict(zip(here["item_id"], here["evidence"], strict=True))
    where = f"**{perturbation_label(view.perturbation)}, step {view.position + 1}**"
    st.markdown(f"{where}: {MEASURES[view.measure].lower()} in {len(cell_rows)} items")
    st.dataframe(
        pd.DataFrame(
            {
                "texts": [_address(row, i, view.position) for i in part["item_id"]],
                "behind it": [
                    evidence.requests_cell(row, i, ids[i], keys[i]) for i in part["item_id"]
                ],
                "item": part["item_id"],
                "value": [
                    "n/a" if pd.isna(v) else format_measure(view.measure, v) for v in part["value"]
                ],
                "draws": part["draws"],
                "why n/a": [
                    str(r) if pd.isna(v) else ""
                    for r, v in zip(part["reason"], part["value"], strict=True)
                ],
            }
        ),
        hide_index=True,
        key="cell-items",
        placeholder=evidence.NO_LINK,
        height=min(420, 40 + 35 * len(part)),
        column_config={
            "texts": st.column_config.LinkColumn(
                "texts", display_text="side by side", width="small"
            ),
            "behind it": evidence.LINK,
            "value": st.column_config.TextColumn(MEASURES[view.measure].lower(), alignment="right"),
            "draws": st.column_config.NumberColumn(width="small", help="Draws with a value."),
            "why n/a": st.column_config.TextColumn(width="large"),
        },
    )


def render_robustness_items(row: dict[str, Any], view: View) -> None:
    """Items against positions under the chosen perturbation, 50 items a page."""
    item_rows = view_means(robustness_scores(row, view.measure), view)
    names = list(dict.fromkeys(item_rows["item_id"]))
    st.subheader("By item")
    visible = names[parts.page_slice(len(names), "items-page")]
    part = item_cell_table(item_rows, view.measure, visible)
    chosen = (part["item_id"] == st.query_params.get("item")) & (part["step"] == view.position)
    note = (
        f"Perturbation: {perturbation_label(view.perturbation)}; {len(visible)} of {len(names)}"
        " items. Click a cell to choose its item."
    )
    _show("item_cells", part.assign(chosen=chosen), "items", row, note, _go_item)


def view_means(scores: pd.DataFrame, view: View) -> pd.DataFrame:
    """Each item's steps under the view's perturbation: item_id, step, value (mean over its draws), draws, reason."""
    return item_step_means(scores, view.perturbation)


def render_causal(row: dict[str, Any]) -> None:
    """Rates of the perturbed questions, with Wilson intervals, and what is undefined."""
    scores = robustness_scores(row, *(metric for metric, _ in CAUSAL))
    if scores.empty:
        return
    st.subheader("Perturbed questions")
    estimates = data.estimates(row["id"], int(row["revision"]))
    estimates = estimates[estimates["metric"].isin([metric for metric, _ in CAUSAL])]
    if estimates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    _numbers(row, estimates, CAUSAL)
    methods = ", ".join(dict.fromkeys(estimates["method"]))
    st.caption(
        f"Share of n items, with {100 * float(estimates['confidence'].iloc[0]):g} % intervals"
        f" ({methods}). A rename must keep the answer; a changed number must move it to the value"
        " recomputed through the reference chain."
    )
    reasons = _reasons(row, tuple(metric for metric, _ in CAUSAL))
    lines = [
        f"{label}: n/a in {k} item{'s' * (k > 1)}, {text}."
        for metric, label in CAUSAL
        for text, k in reasons.get((metric, ""), {}).items()
    ]
    if lines:
        with st.expander("Why scores are undefined"):
            parts.plain_list(lines)
    with st.container(horizontal=True):
        for metric, _ in CAUSAL:
            parts.show_card(metric)
    failed = scores[(scores["value"] == 0) & (scores["metric"] != "causal_stability")]
    if not failed.empty:
        _failures(row, failed)


def _failures(row: dict[str, Any], failed: pd.DataFrame) -> None:
    failed = failed.assign(metric=failed["metric"].map(dict(CAUSAL)))
    grouped = failed.groupby("item_id", sort=True)["metric"].agg(
        lambda labels: ", ".join(dict.fromkeys(labels))
    )
    part = grouped.iloc[parts.page_slice(len(grouped), "failures-page")]
    with st.expander(f"Items that fail ({len(grouped)})"):
        st.dataframe(
            pd.DataFrame(
                {
                    "texts": [_address(row, i) for i in part.index],
                    "item": part.index,
                    "fails": part.to_numpy(),
                }
            ),
            hide_index=True,
            key="failures",
            column_config={
                "texts": st.column_config.LinkColumn(
                    "texts", display_text="side by side", width="small"
                )
            },
        )


def render_robustness_notes(row: dict[str, Any]) -> None:
    options = {s.name: s.params for s in data.run_plan(row["id"]).scorers}
    params = options.get("robustness") or options.get("composite", {}).get("parts", {}).get(
        "robustness"
    )
    if params is None:
        return
    whose = "the suite's" if params["chain"] == "reference" else "the model's own"
    share = float(params["fraction"])
    which = "every step" if share >= 1 else f"a seeded {100 * share:g} % of the steps, at least one"
    st.caption(
        f"Chains: {whose}. Perturbed: {which}. Vectors pooled by {as_code(str(params['pool']))}. A"
        " cosine of sentences hardly sees one number: answer changes say more of numeric"
        " perturbations. The last step has no suffix and so no divergence."
    )


def _means(row: dict[str, Any]) -> pd.DataFrame:
    estimates = data.estimates(row["id"], int(row["revision"]))
    return with_perturbation(estimates[estimates["metric"].isin(METRICS)])


def _reasons(row: dict[str, Any], metrics: Sequence[str]) -> dict[tuple[str, str], dict[str, int]]:
    """(metric, perturbation) to reason to the number of scores without a value for that reason."""
    scores = robustness_scores(row, *metrics)
    gone = scores[scores["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    return {(str(metric), str(name)): count_reasons(reasons) for (metric, name), reasons in gone}


def _numbers(
    row: dict[str, Any], estimates: pd.DataFrame, headline_metrics: Sequence[tuple[str, str]]
) -> None:
    by_metric = {str(r["metric"]): r for r in estimates.to_dict("records")}
    reasons = _reasons(row, tuple(metric for metric, _ in headline_metrics))
    numbers, missing = [], []
    for metric, label in headline_metrics:
        r = by_metric.get(metric)
        numbers.append(
            (
                f"{label}, n = {0 if r is None else int(r['n'])}",
                "n/a" if r is None else parts.estimate_text(r),
            )
        )
        if r is None or pd.isna(r["point"]):
            reason = _first(
                reasons.get((metric, str((r or {}).get("perturbation", "")))),
                None if r is None else r["reason"],
            )
            missing.append(f"{label}: n/a, {reason or 'not asked'}.")
    parts.show_numbers(numbers)
    parts.plain_list(missing)


def _first(reasons: dict[str, int] | None, other: Any) -> Any:
    return next(iter(reasons), other) if reasons else other


def _counted(r: dict[Any, Any] | None) -> str:
    return "" if r is None else f"{parts.estimate_text(r)}, n = {int(r['n'])}"


def _default(names: Sequence[str]) -> str:
    return ALL if ALL in names else names[0]


def _address(row: dict[str, Any], item_id: str, step: int | None = None) -> str:
    where = {"run": row["id"], "item": item_id} | ({"step": str(step)} if step is not None else {})
    return f"/robustness?{urlencode({**where, 'view': evidence.ITEM_VIEW})}"


def _go(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["perturbation"] = str(int(of[0]) + 1), str(of[1])


def _go_item(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["step"] = str(int(of[0]) + 1), str(of[0])
    st.query_params["item"] = str(of[1])


def _show(
    name: str,
    table: pd.DataFrame,
    key: str,
    row: dict[str, Any],
    note: str = "",
    clicked: Any = None,
) -> None:
    parts.show_figure(
        name, table, key=key, note=note, evidence=(page("run"), {"run": row["id"]}), clicked=clicked
    )
