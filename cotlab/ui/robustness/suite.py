"""The page Robustness, the whole suite: means, by perturbation, by position, and by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import Choice, NoFigure, count_reasons
from cotlab.analysis.tables.reliability import (
    CHARTED_METRICS,
    item_cell_table,
    item_step_means,
    with_perturbation,
)
from cotlab.analysis.tables.reliability import perturbation_table as groups_table
from cotlab.figures.robustness import (
    MEASURES,
    SERIES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.ui import cached, components
from cotlab.ui.item import evidence
from cotlab.ui.pickers import select_option
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
    """The cell that is shown, as the address names it."""

    measure: str
    """The metric of the cell."""
    perturbation: str
    """The perturbation, or "all"."""
    position: int
    """Index of the step, from 0."""


def robustness_scores(row: dict[str, Any], *metrics: str) -> pd.DataFrame:
    """Return scores of these metrics with a column ``perturbation``, "" where there is none."""
    return with_perturbation(cached.view(row).scores(*metrics))


def render_robustness_suite(row: dict[str, Any]) -> None:
    """Show the means, each perturbation, each position, and the items of the chosen cell."""
    render_robustness_summary(row)
    render_perturbations(row)
    view = render_positions(row)
    if view is not None:
        render_cell_items(row, view)
        render_robustness_items(row, view)


def render_robustness_summary(row: dict[str, Any]) -> None:
    """Show robustness, dispersion and answer changes over all perturbations together."""
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
        f"Means over n items, all chosen perturbations together, with {100 * level:g} %"
        " intervals. Here an answer counts as changed if any perturbation changes it;"
        " below, each perturbation counts separately."
    )
    with st.container(horizontal=True):
        for metric in METRICS:
            components.show_card(metric)


def render_perturbations(row: dict[str, Any]) -> None:
    """Show each perturbation's metrics as a figure, and as a table with undefined scores."""
    estimates = _means(row)
    if estimates.empty:
        return
    reasons = _reasons(row, METRICS)
    table = groups_table(
        robustness_scores(row, *CHARTED_METRICS),
        cached.estimates(row["id"], int(row["revision"])),
    )
    components.show_run_figure("robustness_by_perturbation", table, "groups", row)
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
    """Show perturbations by position; None without scores.

    A click on a cell, or the choices below it, select its items.
    """
    scores = robustness_scores(row, *MEASURES)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return None
    st.subheader("By position")
    measure = select_option(
        "Measure",
        {name: MEASURES[name] for name in MEASURES if name in set(scores["metric"])},
        "measure",
    )
    scores = scores[scores["metric"] == measure]
    figure_slot = st.container()
    left, right = st.columns(2)
    with left:
        names = order_perturbations(scores["perturbation"])
        perturbation = select_option(
            "Perturbation",
            {name: perturbation_label(name) for name in names},
            "perturbation",
            ALL if ALL in names else names[0],
        )
    with right:
        at = sorted(
            int(step) for step in scores[scores["perturbation"] == perturbation]["step"].unique()
        )
        counted = (
            scores[scores["perturbation"] == perturbation].groupby("step")["item_id"].nunique()
        )
        labels = {str(step + 1): f"{step + 1} · {counted[step]} items" for step in at}
        position = int(select_option("Position", labels, "position")) - 1
    view = View(measure, perturbation, position)
    result = cached.table(
        row["id"], int(row["revision"]), "perturbation_cells", Choice(metric=measure)
    )
    if isinstance(result, NoFigure):
        return None
    table = result.table
    chosen = (table["perturbation"] == perturbation) & (table["step"] == position)
    with figure_slot:
        components.show_run_figure(
            "perturbation_cells",
            table.assign(chosen=chosen),
            "cells",
            row,
            "Click a cell to list its items.",
            _go,
        )
    return view


def render_cell_items(row: dict[str, Any], view: View) -> None:
    """List the items of one cell, each with a link."""
    cell_rows = item_step_means(robustness_scores(row, view.measure), view.perturbation)
    cell_rows = cell_rows[cell_rows["step"] == view.position].sort_values(
        "value", ascending=False, na_position="last", kind="stable"
    )
    part = cell_rows.iloc[components.page_slice(len(cell_rows), "cell-page")]
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
            "why n/a": st.column_config.TextColumn("reason", width="large"),
        },
    )


def render_robustness_items(row: dict[str, Any], view: View) -> None:
    """Show items by position under the chosen perturbation, 50 items a page."""
    item_rows = item_step_means(robustness_scores(row, view.measure), view.perturbation)
    names = list(dict.fromkeys(item_rows["item_id"]))
    st.subheader("By item")
    visible = names[components.page_slice(len(names), "items-page")]
    part = item_cell_table(item_rows, view.measure, visible)
    chosen = (part["item_id"] == st.query_params.get("item")) & (part["step"] == view.position)
    note = (
        f"Perturbation: {perturbation_label(view.perturbation)}; {len(visible)} of {len(names)}"
        " items. Click a cell to choose its item."
    )
    components.show_run_figure(
        "item_cells", part.assign(chosen=chosen), "items", row, note, _open_clicked_cell
    )


def render_causal(row: dict[str, Any]) -> None:
    """Show the rates of the perturbed questions, with Wilson intervals and undefined items."""
    scores = robustness_scores(row, *(metric for metric, _ in CAUSAL))
    if scores.empty:
        return
    st.subheader("Perturbed questions")
    estimates = cached.estimates(row["id"], int(row["revision"]))
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
            components.plain_list(lines)
    with st.container(horizontal=True):
        for metric, _ in CAUSAL:
            components.show_card(metric)
    failed = scores[(scores["value"] == 0) & (scores["metric"] != "causal_stability")]
    if not failed.empty:
        _failures(row, failed)


def _failures(row: dict[str, Any], failed: pd.DataFrame) -> None:
    failed = failed.assign(metric=failed["metric"].map(dict(CAUSAL)))
    grouped = failed.groupby("item_id", sort=True)["metric"].agg(
        lambda labels: ", ".join(dict.fromkeys(labels))
    )
    part = grouped.iloc[components.page_slice(len(grouped), "failures-page")]
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
    """Explain whose chains were perturbed, which steps, and how vectors are pooled."""
    options = {s.name: s.params for s in cached.run_plan(row["id"]).scorers}
    params = options.get("robustness") or options.get("composite", {}).get("parts", {}).get(
        "robustness"
    )
    if params is None:
        return
    whose = "the suite's" if params["chain"] == "reference" else "the model's own"
    share = float(params["fraction"])
    which = "every step" if share >= 1 else f"a seeded {100 * share:g} % of the steps, at least one"
    st.caption(
        f"Chains: {whose}. Perturbed: {which}. Vectors pooled by"
        f" {as_code(str(params['pool']))}. The cosine of two sentences hardly changes with"
        " one number: for numeric perturbations, answer changes are more informative. The"
        " last step has no suffix, so its divergence is undefined."
    )


def _means(row: dict[str, Any]) -> pd.DataFrame:
    estimates = cached.estimates(row["id"], int(row["revision"]))
    return with_perturbation(estimates[estimates["metric"].isin(METRICS)])


def _reasons(row: dict[str, Any], metrics: Sequence[str]) -> dict[tuple[str, str], dict[str, int]]:
    """Return, for each (metric, perturbation), how many scores are undefined for which reason."""
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
                "n/a" if r is None else components.estimate_text(r),
            )
        )
        if r is None or pd.isna(r["point"]):
            counted = reasons.get((metric, str((r or {}).get("perturbation", "")))) or {}
            reason = next(iter(counted), None if r is None else r["reason"])
            missing.append(f"{label}: n/a, {reason or 'not measured'}.")
    components.show_numbers(numbers)
    components.plain_list(missing)


def _counted(r: dict[Any, Any] | None) -> str:
    return "" if r is None else f"{components.estimate_text(r)}, n = {int(r['n'])}"


def _address(row: dict[str, Any], item_id: str, step: int | None = None) -> str:
    where = {"run": row["id"], "item": item_id} | ({"step": str(step)} if step is not None else {})
    return f"/robustness?{urlencode({**where, 'view': evidence.ITEM_VIEW})}"


def _go(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["perturbation"] = str(int(of[0]) + 1), str(of[1])


def _open_clicked_cell(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["step"] = str(int(of[0]) + 1), str(of[0])
    st.query_params["item"] = str(of[1])
