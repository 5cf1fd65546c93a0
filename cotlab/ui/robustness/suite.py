"""The parts of the page Robustness that are about the whole suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.reasons import in_common
from cotlab.analysis.tables.robustness import by_perturbation as groups_table
from cotlab.analysis.tables.robustness import cells as cells_table
from cotlab.analysis.tables.robustness import item_cells, item_means, with_perturbation
from cotlab.figures.robustness import MEASURES, SERIES, in_order, words, yes_no
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.item import evidence
from cotlab.ui.links import page
from cotlab.ui.text import as_code

HEADLINE = (
    ("robustness", "R"), ("robustness_dispersion", "Dispersion of D"), ("perturbed_answer_change", "Answer changes"),
)  # fmt: skip
CAUSAL = (
    ("causal_stability", "Stability rate"), ("rename_stable", "Kept under a rename"),
    ("number_follows", "Follows a changed number"), ("number_moves", "Moves with a changed number"),
)  # fmt: skip
METRICS = ("robustness", "robustness_dispersion", "divergence", "perturbed_answer_change")
ALL, NONE = "all", "none"


class View(NamedTuple):
    """The cell that is looked at, as the address has it; ``position`` counts from 0."""

    measure: str
    perturbation: str
    position: int


def scores_of(row: dict[str, Any], *metrics: str) -> pd.DataFrame:
    """Scores of these metrics with a column perturbation ("" where a score has none)."""
    table = data.scores(row["id"], int(row["revision"]))
    return with_perturbation(table[table["metric"].isin(metrics)])


def headline(row: dict[str, Any]) -> None:
    """R, dispersion and answer changes of all perturbations together, with intervals and n."""
    if scores_of(row, *METRICS).empty:
        st.info("This run has no scores of the scorer 'robustness'.")
        return
    found = _means(row)
    if found.empty:
        st.info("The means are estimated when the run ends or is stopped. Single items are under One item.")
        return
    _numbers(row, found[found["perturbation"] == ALL], HEADLINE)
    level = float(found["confidence"].iloc[0])
    st.caption(
        f"Means over n items, all chosen perturbations together, with {100 * level:g} % intervals. An answer counts here as "
        "changed where any of them moves it; below, each perturbation stands by itself."
    )
    with st.container(horizontal=True):
        for metric in METRICS:
            parts.show_card(metric)


def by_perturbation(row: dict[str, Any]) -> None:
    """R and answer changes of each perturbation as a figure, then all four metrics as a table with what is undefined."""
    found = _means(row)
    if found.empty:
        return
    why = _reasons(row, METRICS)
    told = groups_table(data.scores(row["id"], int(row["revision"])), data.estimates(row["id"], int(row["revision"])))
    _show("robustness_by_perturbation", told, "groups", row)
    by_cell = {(str(r["metric"]), str(r["perturbation"])): r for r in found.to_dict("records")}
    names = in_order(found["perturbation"])
    columns: dict[str, list[str]] = {
        label: [_counted(by_cell.get((metric, name))) for name in names]
        for metric, label in (*HEADLINE, ("divergence", SERIES["divergence"]))
    }
    gaps = [
        "; ".join(f"{SERIES[m]}: {text} ({k})" for m in ("divergence", "perturbed_answer_change")
                  for text, k in why.get((m, name), {}).items())
        for name in names
    ]  # fmt: skip
    with st.expander("All values, and why scores are undefined"):
        st.dataframe(
            pd.DataFrame({"perturbation": [words(name) for name in names], **columns, "steps without a score": gaps}),
            hide_index=True, height="content", key="group-table",
            column_config={
                **{label: st.column_config.TextColumn(alignment="right", width=200) for label in columns},
                "steps without a score": st.column_config.TextColumn(width="large"),
            },
        )  # fmt: skip


def positions(row: dict[str, Any]) -> View | None:
    """Perturbations against positions; a click on a cell, or the choices below it, open its items. None without scores."""
    own = scores_of(row, *MEASURES)
    own = own[own["step"].notna()]
    if own.empty:
        return None
    st.subheader("By position")
    measure = parts.pick("Measure", {name: MEASURES[name] for name in MEASURES if name in set(own["metric"])}, "measure")
    own = own[own["metric"] == measure]
    drawn = st.container()
    left, right = st.columns(2)
    with left:
        names = in_order(own["perturbation"])
        perturbation = parts.pick("Perturbation", {name: words(name) for name in names}, "perturbation", _default(names))
    with right:
        at = sorted(int(step) for step in own[own["perturbation"] == perturbation]["step"].unique())
        counted = own[own["perturbation"] == perturbation].groupby("step")["item_id"].nunique()
        labels = {str(step + 1): f"{step + 1} · {counted[step]} items" for step in at}
        position = int(parts.pick("Position", labels, "position")) - 1
    view = View(measure, perturbation, position)
    table = _cells(str(data.store().folder), row["id"], int(row["revision"]), measure)
    chosen = (table["perturbation"] == perturbation) & (table["step"] == position)
    with drawn:
        _show("perturbation_cells", table.assign(chosen=chosen), "cells", row, "Click a cell to list its items.", _go)
    return view


def cell(row: dict[str, Any], view: View) -> None:
    """The items of one cell, each with a link."""
    own = means(scores_of(row, view.measure), view)
    own = own[own["step"] == view.position].sort_values("value", ascending=False, na_position="last", kind="stable")
    part = own.iloc[parts.page_of(len(own), "cell-page")]
    here = scores_of(row, view.measure)
    here = here[(here["perturbation"] == view.perturbation) & (here["step"] == view.position)].drop_duplicates("item_id")
    ids = dict(zip(here["item_id"], evidence.ids_of(here), strict=True))
    keys = dict(zip(here["item_id"], here["evidence"], strict=True))
    where = f"**{words(view.perturbation)}, step {view.position + 1}**"
    st.markdown(f"{where}: {MEASURES[view.measure].lower()} in {len(own)} items")
    st.dataframe(
        pd.DataFrame(
            {
                "texts": [_address(row, i, view.position) for i in part["item_id"]],
                "behind it": [evidence.count(row, i, ids[i], keys[i]) for i in part["item_id"]],
                "item": part["item_id"],
                "value": ["n/a" if pd.isna(v) else yes_no(view.measure, v) for v in part["value"]],
                "draws": part["draws"],
                "why n/a": [str(r) if pd.isna(v) else "" for r, v in zip(part["reason"], part["value"], strict=True)],
            }
        ),
        hide_index=True, key="cell-items", placeholder=evidence.NO_LINK, height=min(420, 40 + 35 * len(part)),
        column_config={
            "texts": st.column_config.LinkColumn("texts", display_text="side by side", width="small"),
            "behind it": evidence.LINK,
            "value": st.column_config.TextColumn(MEASURES[view.measure].lower(), alignment="right"),
            "draws": st.column_config.NumberColumn(width="small", help="Draws with a value."),
            "why n/a": st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip


def items(row: dict[str, Any], view: View) -> None:
    """Items against positions under the chosen perturbation, 50 items a page."""
    found = means(scores_of(row, view.measure), view)
    names = list(dict.fromkeys(found["item_id"]))
    st.subheader("By item")
    shown = names[parts.page_of(len(names), "items-page")]
    part = item_cells(found, view.measure, shown)
    chosen = (part["item_id"] == st.query_params.get("item")) & (part["step"] == view.position)
    note = f"Perturbation: {words(view.perturbation)}; {len(shown)} of {len(names)} items. Click a cell to choose its item."
    _show("item_cells", part.assign(chosen=chosen), "items", row, note, _go_item)


def means(own: pd.DataFrame, view: View) -> pd.DataFrame:
    """Each item's steps under the view's perturbation: item_id, step, value (mean over its draws), draws, reason."""
    return item_means(own, view.perturbation)


def causal(row: dict[str, Any]) -> None:
    """Rates of the perturbed questions, with Wilson intervals, and what is undefined."""
    own = scores_of(row, *(metric for metric, _ in CAUSAL))
    if own.empty:
        return
    st.subheader("Perturbed questions")
    found = data.estimates(row["id"], int(row["revision"]))
    found = found[found["metric"].isin([metric for metric, _ in CAUSAL])]
    if found.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    _numbers(row, found, CAUSAL)
    methods = ", ".join(dict.fromkeys(found["method"]))
    st.caption(
        f"Share of n items, with {100 * float(found['confidence'].iloc[0]):g} % intervals ({methods}). A rename must keep the "
        "answer; a changed number must move it to the value recomputed through the reference chain."
    )
    why = _reasons(row, tuple(metric for metric, _ in CAUSAL))
    lines = [f"{label}: n/a in {k} item{'s' * (k > 1)}, {text}." for metric, label in CAUSAL
             for text, k in why.get((metric, ""), {}).items()]  # fmt: skip
    if lines:
        with st.expander("Why scores are undefined"):
            parts.plain_list(lines)
    with st.container(horizontal=True):
        for metric, _ in CAUSAL:
            parts.show_card(metric)
    failed = own[(own["value"] == 0) & (own["metric"] != "causal_stability")]
    if not failed.empty:
        _failures(row, failed)


def _failures(row: dict[str, Any], failed: pd.DataFrame) -> None:
    failed = failed.assign(metric=failed["metric"].map(dict(CAUSAL)))
    grouped = failed.groupby("item_id", sort=True)["metric"].agg(lambda labels: ", ".join(dict.fromkeys(labels)))
    part = grouped.iloc[parts.page_of(len(grouped), "failures-page")]
    with st.expander(f"Items that fail ({len(grouped)})"):
        st.dataframe(
            pd.DataFrame(
                {"texts": [_address(row, i) for i in part.index], "item": part.index, "fails": part.to_numpy()}
            ),
            hide_index=True, key="failures",
            column_config={"texts": st.column_config.LinkColumn("texts", display_text="side by side", width="small")},
        )  # fmt: skip


def fine_print(row: dict[str, Any]) -> None:
    options = {s.name: s.params for s in data.plan_of(row["id"]).scorers}
    params = options.get("robustness") or options.get("composite", {}).get("parts", {}).get("robustness")
    if params is None:
        return
    whose = "the suite's" if params["chain"] == "reference" else "the model's own"
    share = float(params["fraction"])
    which = "every step" if share >= 1 else f"a seeded {100 * share:g} % of the steps, at least one"
    st.caption(
        f"Chains: {whose}. Perturbed: {which}. "
        f"Vectors pooled by {as_code(str(params['pool']))}. A cosine of sentences hardly sees one number: answer changes "
        "say more of numeric perturbations. The last step has no suffix and so no divergence."
    )


def _means(row: dict[str, Any]) -> pd.DataFrame:
    found = data.estimates(row["id"], int(row["revision"]))
    return with_perturbation(found[found["metric"].isin(METRICS)])


@st.cache_data(show_spinner="Estimating by position", max_entries=16)
def _cells(folder: str, run_id: str, revision: int, metric: str) -> pd.DataFrame:
    return cells_table(data.scores(run_id, revision), metric)


def _reasons(row: dict[str, Any], metrics: Sequence[str]) -> dict[tuple[str, str], dict[str, int]]:
    """(metric, perturbation) to reason to the number of scores without a value for that reason."""
    own = scores_of(row, *metrics)
    gone = own[own["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    return {(str(metric), str(name)): in_common(reasons) for (metric, name), reasons in gone}


def _numbers(row: dict[str, Any], found: pd.DataFrame, wanted: Sequence[tuple[str, str]]) -> None:
    by_metric = {str(r["metric"]): r for r in found.to_dict("records")}
    why = _reasons(row, tuple(metric for metric, _ in wanted))
    numbers, missing = [], []
    for metric, label in wanted:
        r = by_metric.get(metric)
        numbers.append((f"{label}, n = {0 if r is None else int(r['n'])}", "n/a" if r is None else parts.estimate_text(r)))
        if r is None or pd.isna(r["point"]):
            reason = _first(why.get((metric, str((r or {}).get("perturbation", "")))), None if r is None else r["reason"])
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
    return f"/robustness?{urlencode({**where, 'view': evidence.ONE_ITEM})}"


def _go(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["perturbation"] = str(int(of[0]) + 1), str(of[1])


def _go_item(of: Sequence[Any]) -> None:
    st.query_params["position"], st.query_params["step"] = str(int(of[0]) + 1), str(of[0])
    st.query_params["item"] = str(of[1])


def _show(name: str, table: pd.DataFrame, key: str, row: dict[str, Any], note: str = "", clicked: Any = None) -> None:
    parts.show_figure(name, table, key=key, note=note, evidence=(page("run"), {"run": row["id"]}), clicked=clicked)
