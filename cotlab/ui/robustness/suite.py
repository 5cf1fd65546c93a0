"""The tab Robustness, the whole suite: means, by perturbation, by position, and by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.declare import FigureChoice, MissingFigure, count_reasons
from cotlab.analysis.tables.reliability import (
    item_cell_table,
    item_step_means,
    with_perturbation,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.robustness import (
    MEASURE_NAMES,
    SERIES_NAMES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.metrics.composite import SCORER_BY_COMPONENT
from cotlab.ui import cached, charts, components
from cotlab.ui.address import step_query, write_address
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.item import evidence
from cotlab.ui.more import render_more
from cotlab.ui.pickers import select_option
from cotlab.ui.places import run_link
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


def load_robustness_scores(run: RunView, *metrics: str, with_evidence: bool = True) -> pd.DataFrame:
    """Return scores of these metrics with a column ``perturbation``, "" where there is none."""
    view = cached.cached_run_view(run)
    return with_perturbation(view.scores(*metrics, with_evidence=with_evidence))


def render_robustness_suite(run: RunView) -> None:
    """Show the means, each perturbation, and behind them each position and its items."""
    render_robustness_summary(run)
    render_perturbations(run)
    render_more(
        "robustness (R), by position and by item",
        lambda: charts.show(run, "robustness_by_perturbation"),
        lambda: _render_cells(run),
        params=("measure", "perturbation", "position"),
    )


def _render_cells(run: RunView) -> None:
    """Show each position, and the items of the chosen cell."""
    cell = render_positions(run)
    if cell is not None:
        render_cell_items(run, cell)
        render_robustness_items(run, cell)


def render_robustness_summary(run: RunView) -> None:
    """Show robustness, dispersion and answer changes over all perturbations together."""
    if load_robustness_scores(run, *SUMMARY_METRICS, with_evidence=False).empty:
        st.info("This run has no scores of the scorer 'robustness'.")
        return
    estimates = _load_mean_estimates(run)
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    reason_by_metric = {
        metric: next(iter(counts))
        for (metric, perturbation), counts in count_undefined_reasons(run, SUMMARY_METRICS).items()
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


def render_perturbations(run: RunView) -> None:
    """Show each perturbation's metrics as a figure, and as a table with undefined scores."""
    estimates = _load_mean_estimates(run)
    if estimates.empty:
        return
    reason_counts = count_undefined_reasons(run, SUMMARY_METRICS)
    charts.show(run, "answer_changes_by_perturbation")
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


def render_positions(run: RunView) -> SelectedCell | None:
    """Show perturbations by position; None without scores.

    A click on a cell, or the choices below it, select its items.
    """
    scores = load_robustness_scores(run, *MEASURE_NAMES)
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
    result = cached.run_figure_table(run.id, run.revision, "perturbation_cells", choice)
    if isinstance(result, MissingFigure):
        return None
    is_selected = (result.table["perturbation"] == perturbation) & (
        result.table["step"] == position
    )
    table, note = result.table.assign(chosen=is_selected), "Click a cell to list its items."
    with figure_slot:
        charts.show_run_figure(
            "perturbation_cells", table, "cells", run, note, _open_clicked_position, choice=choice
        )
    return cell


def render_cell_items(run: RunView, cell: SelectedCell) -> None:
    """List the items of one cell, each with a link."""
    scores = load_robustness_scores(run, cell.measure)
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
            run,
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
                    item_address(run, item_id, cell.position) for item_id in page_rows["item_id"]
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


def render_robustness_items(run: RunView, cell: SelectedCell) -> None:
    """Show items by position under the chosen perturbation, 50 items a page."""
    item_rows = item_step_means(load_robustness_scores(run, cell.measure), cell.perturbation)
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
        evidence=run_link(run.id),
        paper=None if page.start else charts.PaperFigure(run.id, "item_cells", choice),
        on_click=_open_clicked_cell,
    )


TEXTS_COLUMN_CONFIG = {
    "texts": st.column_config.LinkColumn("texts", display_text="side by side", width="small")
}


def render_robustness_notes(run: RunView) -> None:
    """Explain whose chains were perturbed, which steps, and how vectors are pooled."""
    specs = run.plan.scorers
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


def _load_mean_estimates(run: RunView) -> pd.DataFrame:
    estimates = cached.load_estimates(run.id, run.revision)
    return with_perturbation(estimates[estimates["metric"].isin(SUMMARY_METRICS)])


def count_undefined_reasons(
    run: RunView, metrics: Sequence[str]
) -> dict[tuple[str, str], dict[str, int]]:
    """Return, for each (metric, perturbation), how many scores are undefined for which reason."""
    return _reasons_at_revision(run.id, run.revision, tuple(metrics), run)


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


def item_address(run: RunView, item_id: str, step: int | None = None) -> str:
    """Return the address of an item on this page."""
    query = {} if step is None else step_query(step)
    return run_link(run.id, "robustness", item=item_id, **query).address


def _open_clicked_position(cell_data: Sequence[Any]) -> None:
    write_address({"position": str(int(cell_data[0]) + 1), "perturbation": str(cell_data[1])})


def _open_clicked_cell(cell_data: Sequence[Any]) -> None:
    write_address(
        {
            "position": str(int(cell_data[0]) + 1),
            **step_query(int(cell_data[0])),
            "item": str(cell_data[1]),
        }
    )


COMPONENT_LABELS = {"R": "R", "R_sd": "Spread of the divergence"}


def has_only_composite(run: RunView) -> bool:
    """Return whether the composite measured robustness without the robustness scorer."""
    return "R" in evidence.composite_only_components(run)


def render_composite_suite(run: RunView) -> None:
    """Show robustness and dispersion over the suite and by item, and how to add the detail."""
    rows = _load_component_rows(run)
    if rows.empty:
        st.info("No item has been scored yet.")
        return
    means = tables.component_means(rows, cached.load_estimates(run.id, run.revision))
    if means.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " below."
        )
    else:
        headline = [(component, COMPONENT_LABELS[component]) for component in means["part"]]
        render_headline(means.assign(metric=means["part"]), headline)
        confidence = float(means["confidence"].iloc[0])
        st.caption(
            f"Means over n items, all perturbations together, with {100 * confidence:g} %"
            " intervals, from the composite."
        )
    show_cards("robustness", "robustness_dispersion")
    evidence.render_missing_detail_help(run, "R")
    st.header("Items")
    _render_item_table(run, rows, "composite-items")


def render_composite_item(run: RunView, item: Item) -> None:
    """Show the item's robustness and dispersion with their requests."""
    rows = _load_component_rows(run)
    _render_item_table(run, rows[rows["item_id"] == item.id], "composite-item")
    evidence.render_missing_detail_help(run, "R")


def _load_component_rows(run: RunView) -> pd.DataFrame:
    scores = cached.selected_scores(run.id, run.revision, ("feature",))
    return tables.component_scores(
        scores[scores["scorer"] != SCORER_BY_COMPONENT["R"]], tuple(COMPONENT_LABELS)
    )


def _render_item_table(run: RunView, rows: pd.DataFrame, key: str) -> None:
    rows_by_component = {
        component: rows[rows["part"] == component].set_index("item_id")
        for component in COMPONENT_LABELS
    }
    page_rows = rows_by_component["R"].iloc[
        components.page_slice(len(rows_by_component["R"]), f"{key}-page")
    ]
    spread = rows_by_component["R_sd"]["value"].reindex(page_rows.index)
    score_ids = map(evidence.score_id, page_rows["metric"], page_rows["facet"])
    table = pd.DataFrame(
        {
            "item": page_rows.index,
            "R": page_rows["value"].map(components.number_text),
            COMPONENT_LABELS["R_sd"]: spread.map(components.number_text),
            "requests": page_rows["evidence"].map(len),
            "behind it": [
                evidence.requests_cell(run, *arguments)
                for arguments in zip(page_rows.index, score_ids, page_rows["evidence"], strict=True)
            ],
            "why n/a": page_rows["reason"].where(page_rows["value"].isna(), ""),
        }
    )
    column_config = dict.fromkeys(COMPONENT_LABELS.values(), evidence.RIGHT_ALIGNED_COLUMN)
    height = "content" if len(table) < 13 else 460
    evidence.render_linked_table(table, key, column_config, height)


CAUSAL_METRICS = (
    ("causal_stability", "Stability rate"),
    ("rename_stable", "Kept under a rename"),
    ("number_follows", "Follows a changed number"),
    ("number_moves", "Moves with a changed number"),
)


def render_causal_rates(run: RunView) -> None:
    """Show the rates of the perturbed questions, with Wilson intervals and undefined items."""
    metrics = tuple(metric for metric, _ in CAUSAL_METRICS)
    scores = load_robustness_scores(run, *metrics, with_evidence=False)
    if scores.empty:
        return
    st.header("Perturbed questions")
    estimates = cached.load_estimates(run.id, run.revision)
    estimates = estimates[estimates["metric"].isin([metric for metric, _ in CAUSAL_METRICS])]
    if estimates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    reason_counts = count_undefined_reasons(run, metrics)
    render_headline(
        estimates,
        CAUSAL_METRICS,
        {metric_name: next(iter(reasons)) for (metric_name, _), reasons in reason_counts.items()},
    )
    methods_text = ", ".join(dict.fromkeys(estimates["method"]))
    st.caption(
        f"Share of n items, with {100 * float(estimates['confidence'].iloc[0]):g} % intervals"
        f" ({methods_text}). A rename must keep the answer; a changed number must move it to the"
        " value recomputed through the reference chain."
    )
    lines = [
        f"{label}: n/a in {k} item{'s' * (k > 1)}, {text}."
        for metric, label in CAUSAL_METRICS
        for text, k in reason_counts.get((metric, ""), {}).items()
    ]
    if lines:
        with st.expander("Why scores are undefined"):
            components.show_escaped_lines(lines)
    show_cards(*(metric for metric, _ in CAUSAL_METRICS))
    failed_scores = scores[(scores["value"] == 0) & (scores["metric"] != "causal_stability")]
    if not failed_scores.empty:
        _render_failures(run, failed_scores)


def _render_failures(run: RunView, failed_scores: pd.DataFrame) -> None:
    failed_scores = failed_scores.assign(metric=failed_scores["metric"].map(dict(CAUSAL_METRICS)))
    failed_metrics = failed_scores.groupby("item_id", sort=True)["metric"].agg(
        lambda labels: ", ".join(dict.fromkeys(labels))
    )
    page_rows = failed_metrics.iloc[components.page_slice(len(failed_metrics), "failures-page")]
    with st.expander(f"Items that fail ({len(failed_metrics)})"):
        st.dataframe(
            pd.DataFrame(
                {
                    "texts": [item_address(run, i) for i in page_rows.index],
                    "item": page_rows.index,
                    "fails": page_rows.to_numpy(),
                }
            ),
            hide_index=True,
            key="failures",
            column_config=TEXTS_COLUMN_CONFIG,
        )
