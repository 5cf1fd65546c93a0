"""The page Robustness, the whole suite: means, by perturbation, by position, and by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import FigureChoice, MissingFigure, count_reasons
from cotlab.analysis.tables.reliability import (
    item_cell_table,
    item_step_means,
    with_perturbation,
)
from cotlab.analysis.tables.reliability import perturbation_table as groups_table
from cotlab.analysis.tables.run import answer_change_rows
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.figures.robustness import (
    MEASURE_NAMES,
    SERIES_NAMES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.ui import cached, charts, components
from cotlab.ui.address import write_address
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.item import evidence
from cotlab.ui.item.step_address import step_changes, step_query
from cotlab.ui.more import render_more
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown

HEADLINE_METRICS = (
    ("robustness", "R"),
    ("robustness_dispersion", "Spread of the divergence"),
    ("perturbed_answer_change", "Answer changes"),
)
SUMMARY_METRICS = ("robustness", "robustness_dispersion", "divergence", "perturbed_answer_change")
ALL_PERTURBATIONS, NO_PERTURBATION = "all", "none"


class SelectedCell(NamedTuple):
    """The selected cell, as in the address of the page."""

    measure: str
    """The metric of the cell."""
    perturbation: str
    """The perturbation, or "all"."""
    position: int
    """Index of the step, from 0."""


def load_robustness_scores(row: RunView, *metrics: str, with_evidence: bool = True) -> pd.DataFrame:
    """Return scores of these metrics with a column ``perturbation``, "" where there is none."""
    view = cached.cached_run_view(row)
    return with_perturbation(view.scores(*metrics, with_evidence=with_evidence))


def render_robustness_suite(row: RunView) -> None:
    """Show the means, each perturbation, and behind them each position and its items."""
    render_robustness_summary(row)
    render_perturbations(row)
    render_more(
        "robustness (R), by position and by item",
        lambda: _render_robustness(row),
        lambda: _render_cells(row),
        params=("measure", "perturbation", "position"),
    )


def _render_robustness(row: RunView) -> None:
    """Show R by perturbation, which does not tell faithful from bypassing models."""
    table = groups_table(
        load_robustness_scores(row, *SUMMARY_METRICS, with_evidence=False),
        cached.load_estimates(row.id, row.revision),
    )
    if not table.empty:
        charts.show_run_figure("robustness_by_perturbation", table, "groups", row)


def _render_cells(row: RunView) -> None:
    """Show each position, and the items of the chosen cell."""
    cell = render_positions(row)
    if cell is not None:
        render_cell_items(row, cell)
        render_robustness_items(row, cell)


def render_robustness_summary(row: RunView) -> None:
    """Show robustness, dispersion and answer changes over all perturbations together."""
    if load_robustness_scores(row, *SUMMARY_METRICS, with_evidence=False).empty:
        st.info("This run has no scores of the scorer 'robustness'.")
        return
    estimates = _load_mean_estimates(row)
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    reason_by_metric = {
        metric: next(iter(counts))
        for (metric, perturbation), counts in count_undefined_reasons(row, SUMMARY_METRICS).items()
        if perturbation == ALL_PERTURBATIONS
    }
    render_headline(
        estimates[estimates["perturbation"] == ALL_PERTURBATIONS],
        HEADLINE_METRICS,
        reason_by_metric,
    )
    confidence = float(estimates["confidence"].iloc[0])
    st.caption(
        f"Means over n items, all chosen perturbations together, with {100 * confidence:g} %"
        " intervals. Here an answer counts as changed if any perturbation changes it;"
        " below, each perturbation counts separately."
    )
    show_cards(*SUMMARY_METRICS)


def render_perturbations(row: RunView) -> None:
    """Show each perturbation's metrics as a figure, and as a table with undefined scores."""
    estimates = _load_mean_estimates(row)
    if estimates.empty:
        return
    reason_counts = count_undefined_reasons(row, SUMMARY_METRICS)
    table = groups_table(
        load_robustness_scores(row, *SUMMARY_METRICS, with_evidence=False),
        cached.load_estimates(row.id, row.revision),
    )
    answer_changes = answer_change_rows(table)
    if not answer_changes.empty:
        charts.show_run_figure("answer_changes_by_perturbation", answer_changes, "answers", row)
    estimate_by_cell = {
        (str(estimate["metric"]), str(estimate["perturbation"])): estimate
        for estimate in estimates.to_dict("records")
    }
    perturbations = order_perturbations(estimates["perturbation"])
    estimate_columns = {
        label: [
            _estimate_with_n_text(estimate_by_cell.get((metric, name))) for name in perturbations
        ]
        for metric, label in (*HEADLINE_METRICS, ("divergence", SERIES_NAMES["divergence"]))
    }
    reason_texts = [
        "; ".join(
            f"{SERIES_NAMES[m]}: {text} ({k})"
            for m in ("divergence", "perturbed_answer_change")
            for text, k in reason_counts.get((m, name), {}).items()
        )
        for name in perturbations
    ]
    with st.expander("All values, and why scores are undefined"):
        st.dataframe(
            pd.DataFrame(
                {
                    "perturbation": [perturbation_label(name) for name in perturbations],
                    **estimate_columns,
                    "steps without a score": reason_texts,
                }
            ),
            hide_index=True,
            height="content",
            key="group-table",
            column_config={
                **dict.fromkeys(
                    estimate_columns, st.column_config.TextColumn(alignment="right", width=200)
                ),
                "steps without a score": st.column_config.TextColumn(width="large"),
            },
        )


def render_positions(row: RunView) -> SelectedCell | None:
    """Show perturbations by position; None without scores.

    A click on a cell, or the choices below it, select its items.
    """
    scores = load_robustness_scores(row, *MEASURE_NAMES)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return None
    st.header("By position")
    measure_labels = {
        name: MEASURE_NAMES[name] for name in MEASURE_NAMES if name in set(scores["metric"])
    }
    measure = select_option("Measure", measure_labels, "measure")
    scores = scores[scores["metric"] == measure]
    figure_slot = st.container()
    left_column, right_column = st.columns(2)
    with left_column:
        perturbations = order_perturbations(scores["perturbation"])
        labels = {name: perturbation_label(name) for name in perturbations}
        perturbation = select_option("Perturbation", labels, "perturbation", ALL_PERTURBATIONS)
    with right_column:
        perturbation_scores = scores[scores["perturbation"] == perturbation]
        n_items_by_step = perturbation_scores.groupby(perturbation_scores["step"].astype(int))[
            "item_id"
        ].nunique()
        labels = {str(step + 1): f"{step + 1} · {n} items" for step, n in n_items_by_step.items()}
        position = int(select_option("Position", labels, "position")) - 1
    cell = SelectedCell(measure, perturbation, position)
    choice = FigureChoice(metric=measure)
    result = cached.run_figure_table(row.id, row.revision, "perturbation_cells", choice)
    if isinstance(result, MissingFigure):
        return None
    is_selected = (result.table["perturbation"] == perturbation) & (
        result.table["step"] == position
    )
    table, note = result.table.assign(chosen=is_selected), "Click a cell to list its items."
    with figure_slot:
        charts.show_run_figure(
            "perturbation_cells", table, "cells", row, note, _open_clicked_position, choice=choice
        )
    return cell


def render_cell_items(row: RunView, cell: SelectedCell) -> None:
    """List the items of one cell, each with a link."""
    scores = load_robustness_scores(row, cell.measure)
    cell_rows = item_step_means(scores, cell.perturbation)
    cell_rows = cell_rows[cell_rows["step"] == cell.position].sort_values(
        "value", ascending=False, na_position="last", kind="stable"
    )
    page_rows = cell_rows.iloc[components.page_slice(len(cell_rows), "cell-page")]
    is_in_cell = (scores["perturbation"] == cell.perturbation) & (scores["step"] == cell.position)
    score_by_item = scores[is_in_cell].drop_duplicates("item_id")
    score_by_item = score_by_item.assign(score_id=evidence.score_ids(score_by_item)).set_index(
        "item_id"
    )
    links = [
        evidence.requests_cell(
            row,
            item_id,
            score_by_item.at[item_id, "score_id"],
            score_by_item.at[item_id, "evidence"],
        )
        for item_id in page_rows["item_id"]
    ]
    cell_label = f"**{perturbation_label(cell.perturbation)}, step {cell.position + 1}**"
    st.markdown(f"{cell_label}: {MEASURE_NAMES[cell.measure].lower()} in {len(cell_rows)} items")
    evidence.render_linked_table(
        pd.DataFrame(
            {
                "texts": [
                    item_address(row, item_id, cell.position) for item_id in page_rows["item_id"]
                ],
                "behind it": links,
                "item": page_rows["item_id"],
                "value": [
                    "n/a" if pd.isna(v) else format_measure(cell.measure, v)
                    for v in page_rows["value"]
                ],
                "draws": page_rows["draws"],
                "why n/a": page_rows["reason"].where(page_rows["value"].isna(), ""),
            }
        ),
        "cell-items",
        {
            **TEXTS_COLUMN_CONFIG,
            "value": st.column_config.TextColumn(
                MEASURE_NAMES[cell.measure].lower(), alignment="right"
            ),
            "draws": st.column_config.NumberColumn(width="small", help="Draws with a value."),
        },
        min(420, 40 + 35 * len(page_rows)),
    )


def render_robustness_items(row: RunView, cell: SelectedCell) -> None:
    """Show items by position under the chosen perturbation, 50 items a page."""
    item_rows = item_step_means(load_robustness_scores(row, cell.measure), cell.perturbation)
    item_ids = list(dict.fromkeys(item_rows["item_id"]))
    st.header("By item")
    page = components.page_slice(len(item_ids), "items-page")
    page_item_ids = item_ids[page]
    page_rows = item_cell_table(item_rows, cell.measure, page_item_ids)
    is_selected = (page_rows["item_id"] == st.query_params.get("item")) & (
        page_rows["step"] == cell.position
    )
    note = (
        f"Perturbation: {perturbation_label(cell.perturbation)}; {len(page_item_ids)} of"
        f" {len(item_ids)} items. Click a cell to choose its item."
    )
    choice = FigureChoice(metric=cell.measure, perturbation=cell.perturbation)
    charts.show_figure(
        "item_cells",
        page_rows.assign(chosen=is_selected),
        key="items",
        note=note,
        evidence=(page_path("run"), {"run": row.id}),
        paper=None if page.start else charts.PaperFigure(row.id, "item_cells", choice),
        on_click=_open_clicked_cell,
    )


TEXTS_COLUMN_CONFIG = {
    "texts": st.column_config.LinkColumn("texts", display_text="side by side", width="small")
}


def render_robustness_notes(row: RunView) -> None:
    """Explain whose chains were perturbed, which steps, and how vectors are pooled."""
    specs = row.plan.scorers
    params_by_scorer = {spec.name: spec.params for spec in specs}
    params = params_by_scorer.get("robustness") or params_by_scorer.get("composite", {}).get(
        "parts", {}
    ).get("robustness")
    if params is None:
        return
    chain_owner = "the suite's" if params["chain"] == "reference" else "the model's own"
    share = float(params["fraction"])
    steps_text = "all" if share >= 1 else f"a seeded {100 * share:g} %, at least one,"
    steps_text += (
        " of the steps; the last has no suffix, so its divergence is undefined"
        if any(spec.version == 1 and spec.name in ("robustness", "composite") for spec in specs)
        else " of the steps that another follows and to which a perturbation applies"
    )
    st.caption(
        f"Chains: {chain_owner}. Perturbed: {steps_text}. Vectors pooled by"
        f" {escape_markdown(str(params['pool']))}. The cosine of two sentences hardly changes with"
        " one number: for numeric perturbations, answer changes are more informative."
    )


def _load_mean_estimates(row: RunView) -> pd.DataFrame:
    estimates = cached.load_estimates(row.id, row.revision)
    return with_perturbation(estimates[estimates["metric"].isin(SUMMARY_METRICS)])


def count_undefined_reasons(
    row: RunView, metrics: Sequence[str]
) -> dict[tuple[str, str], dict[str, int]]:
    """Return, for each (metric, perturbation), how many scores are undefined for which reason."""
    return _reasons_at_revision(row.id, row.revision, tuple(metrics), row)


@cached.cache_by_store(16)
def _reasons_at_revision(
    run_id: str, revision: int, metrics: tuple[str, ...], _row: RunView
) -> dict[tuple[str, str], dict[str, int]]:
    scores = load_robustness_scores(_row, *metrics, with_evidence=False)
    undefined_groups = scores[scores["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    return {
        (str(metric), str(name)): count_reasons(reasons)
        for (metric, name), reasons in undefined_groups
    }


def _estimate_with_n_text(estimate: dict[Any, Any] | None) -> str:
    return (
        ""
        if estimate is None
        else f"{components.estimate_text(estimate)}, n = {int(estimate['n'])}"
    )


def item_address(row: RunView, item_id: str, step: int | None = None) -> str:
    """Return the address of an item on this page."""
    query = {"run": row.id, "item": item_id} | ({} if step is None else step_query(step))
    return f"/robustness?{urlencode({**query, 'view': evidence.ITEM_TAB_LABEL})}"


def _open_clicked_position(cell_data: Sequence[Any]) -> None:
    write_address({"position": str(int(cell_data[0]) + 1), "perturbation": str(cell_data[1])})


def _open_clicked_cell(cell_data: Sequence[Any]) -> None:
    write_address(
        {
            "position": str(int(cell_data[0]) + 1),
            **step_changes(int(cell_data[0])),
            "item": str(cell_data[1]),
        }
    )
