"""The page Mediation, the whole suite: its indices by layer, by position and by source."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.declare import FigureChoice, count_reasons
from cotlab.analysis.tables.mediation import (
    INDEX_METRICS,
    NATS_METRICS,
    UNDRAWN_METRICS,
    Setting,
    all_layer_rows,
)
from cotlab.analysis.view import RunView
from cotlab.figures.mediation import metric_label
from cotlab.ui import cached, charts, components
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown

HEADLINE_METRICS = (
    ("cmi", "CMI, all layers"),
    ("mass_lost", "Mass lost"),
    ("no_cot_drop", "No-CoT drop (nats)"),
)
SOURCE_LABELS = {
    "filler": "dots in the chain's place",
    "interchange": "another item's chain",
    "right": "the run without a chain, right-aligned",
    "mean": "mean of the question",
    "literal": "the same index of the run without a chain",
}
CONTROL_LABELS = {
    "other": "control from another item",
    "own": "control from the item's own run",
    "neutral": "control at dots beside the chain",
    "total": "held against question and chain together",
}
CONTROL_PLACES = {
    "neutral": "at as many dots between question and chain, in a text that has them",
    "total": "at question and chain together",
}
"""Where a control replaces states; any other does at as many positions of the question."""
QUESTION_PLACE = "at as many positions of the question"


def select_setting(row: RunView) -> Setting | None:
    """Choose a patch source and a control; None (with a message) where nothing is scored."""
    settings = cached.mediation_settings(row.id, row.revision)
    setting_by_key = {"~".join(setting): setting for setting in settings}
    if not setting_by_key:
        st.info("No item has been scored for mediation yet.")
        return None
    shows_chain = len({(setting.chain, setting.given) for setting in setting_by_key.values()}) > 1
    labels = {key: _setting_label(setting, shows_chain) for key, setting in setting_by_key.items()}
    return setting_by_key[select_option("Source and control", labels, "source")]


def _setting_label(setting: Setting, shows_chain: bool) -> str:
    source = setting.source
    if source in SOURCE_LABELS:
        source += f" ({SOURCE_LABELS[source]})"
    text = f"{source}, {CONTROL_LABELS.get(setting.control, setting.control)}"
    return f"{text} · {setting.chain} chain, given as {setting.given}" if shows_chain else text


def render_mediation_summary(row: RunView, setting: Setting) -> None:
    """Show the main numbers with all layers patched, with intervals and n."""
    estimates = tables.headline_rows(all_layer_rows(load_setting_estimates(row, setting)))
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    render_headline(estimates, HEADLINE_METRICS)
    confidence = float(estimates["confidence"].iloc[0])
    st.caption(f"Means over n items with {100 * confidence:g} % intervals. {_cmi_note(setting)}")
    show_cards(*(metric for metric, _ in HEADLINE_METRICS))


def _cmi_note(setting: Setting) -> str:
    if setting.control == "total":
        return (
            "CMI is the share of the answer's probability that goes with the chain's states, of"
            " what goes with those of question and chain together: 1 also for a chain that needs"
            " its question. An answer that stands in question and chain alike counts as no use of"
            " the chain."
        )
    if setting.control == "other":
        return (
            "CMI is (Δ chain − Δ control) / (Δ chain + Δ control), not below 0: it is 0 for a chain"
            " that needs its question, as for one that is not used, and near 0 at small doses. Mass"
            " lost is neither; nor is CMI with control=total."
        )
    return "CMI is clamped and blind to small doses; mass lost is not."


def render_mediation_warnings(row: RunView, setting: Setting) -> None:
    """Show what limits the numbers above."""
    scores = cached.mediation_table_scores(
        row.id, row.revision, ("control_is_noop",), with_values=True
    )
    table = setting.select_rows(scores)
    noop_scores = table[(table["span"] == "all") & table["value"].notna()]
    n_noop_items = int((noop_scores["value"] > 0).sum())
    if n_noop_items:
        st.warning(
            f"The control changes nothing in {n_noop_items} of {len(noop_scores)} items: it patches"
            " in the same states. With such a control CMI is 1 for every model, faithful or not."
            " Use the drop and mass lost, or a control from another item."
        )
    if setting.source == "literal":
        st.warning(
            "The source literal is degenerate: up to the chain its states are the same in"
            " both runs, and past the end of the short run there are none. It is there for"
            " comparison; use filler or interchange."
        )
    elif setting.source == "right":
        st.info(
            "The source right has an artefact at single early layers, where states are"
            " patched in from other positions."
        )


def _choice_of(setting: Setting) -> FigureChoice:
    return FigureChoice(setting="~".join(setting))


def render_density(row: RunView, setting: Setting) -> None:
    """Show CMI by the share of positions patched, of every source of this control.

    Where CMI is refused as a headline, the curve would show what the number above may not.
    """
    reason = tables.refused_cmi_reason(load_setting_estimates(row, setting), setting)
    if reason:
        st.caption(f"CMI by share of positions is not drawn: {escape_markdown(reason)}.")
        return
    table = _build_table(row, "density", setting)
    if not table.empty:
        charts.show_run_figure("cmi_density", table, "density", row, choice=_choice_of(setting))


def render_drop_density(row: RunView, setting: Setting) -> None:
    """Show the drop in nats by the share of positions patched."""
    drops = _build_table(row, "density_in_nats", setting)
    if not drops.empty:
        charts.show_run_figure(
            "drop_density", drops, "drop-density", row, choice=_choice_of(setting)
        )


def render_spans(row: RunView, setting: Setting) -> None:
    """Show CMI, share and mass lost by span of layers, then CMI for every source."""
    cells = _build_table(row, "spans", setting)
    if cells.empty:
        return
    charts.show_run_figure(
        "span_heatmap",
        cells,
        "spans",
        row,
        note=f"Source {setting.source}.",
        choice=_choice_of(setting),
    )
    source_cells = _build_table(row, "spans_of_sources", setting)
    if source_cells["source"].nunique() > 1:
        with st.expander("CMI by span, all sources"):
            charts.show_run_figure(
                "span_heatmap",
                source_cells,
                "sources",
                row,
                paper_name="span_heatmap_sources",
                choice=_choice_of(setting),
            )


def render_layers(row: RunView, setting: Setting) -> None:
    """Show the index of each single layer, where the run has them."""
    table = _build_table(row, "layers", setting)
    if not table.empty:
        charts.show_run_figure("layer_profile", table, "layers", row, choice=_choice_of(setting))


def render_indices(row: RunView, setting: Setting) -> None:
    """Show every index with all layers patched, as a figure and a table."""
    table = _build_table(row, "indices", setting)
    if table.empty:
        return
    scores = cached.mediation_table_scores(row.id, row.revision, (*INDEX_METRICS, *NATS_METRICS))
    reasons_by_metric = _undefined_reason_texts(
        all_layer_rows(setting.select_rows(scores)), "metric"
    )
    rows_without_interval = table[table["point"].notna() & table["lo"].isna()]
    for metric, reason in zip(
        rows_without_interval["metric"],
        rows_without_interval["reason"].fillna("too few items"),
        strict=True,
    ):
        reasons_by_metric.setdefault(metric, []).append(f"no interval: {reason}")
    charts.show_run_figure(
        "mediation_indices",
        table[~table["metric"].isin(UNDRAWN_METRICS)],
        "indices",
        row,
        choice=_choice_of(setting),
    )
    labels = [index_label(metric) for metric in table["metric"]]
    _render_estimate_table(
        table, "index", labels, [reasons_by_metric.get(metric, []) for metric in table["metric"]]
    )
    with st.expander("Definition of each index"):
        card_by_name = components.metric_cards_by_name()
        for metric in table["metric"]:
            card = card_by_name[metric]
            st.markdown(
                f"**{metric_label(metric)}**: {escape_markdown(card.formula)}. Does not show:"
                f" {escape_markdown(card.not_shown)}"
            )


def _render_estimate_table(
    table: pd.DataFrame, label_column: str, row_labels: list[str], reasons: list[list[str]]
) -> None:
    """Show estimates as a table, each with the reasons of its undefined values."""
    st.dataframe(
        pd.DataFrame(
            {
                label_column: row_labels,
                "mean [interval]": [components.estimate_text(r) for r in table.to_dict("records")],
                "n": table["n"].tolist(),
                "undefined": table["n_undefined"].tolist(),
                "why undefined": ["; ".join(texts) for texts in reasons],
            }
        ),
        hide_index=True,
        height="content" if label_column == "index" else "auto",
        key=f"{label_column}-table",
        column_config=_COLUMN_CONFIG,
    )


_COLUMN_CONFIG = {
    "index": st.column_config.TextColumn(width=192),
    "mean [interval]": st.column_config.TextColumn(alignment="right", width=214),
    "n": st.column_config.NumberColumn(width=48, help="Items with a value."),
    "undefined": st.column_config.NumberColumn(width=85, help="Items without a value."),
    "why undefined": st.column_config.TextColumn("reasons", width="large"),
}


def index_label(metric: str) -> str:
    """Return the name of an index for a table, with its unit."""
    return f"{metric_label(metric)} (nats)" if metric in NATS_METRICS else metric_label(metric)


def _undefined_reason_texts(scores: pd.DataFrame, column: str) -> dict[str, list[str]]:
    """Return the reasons of undefined scores, with counts, for each value of a column."""
    groups = scores[scores["value"].isna()].groupby(column)["reason"]
    return {
        str(name): [f"{text} ({n})" for text, n in count_reasons(group).items()]
        for name, group in groups
    }


def load_setting_estimates(row: RunView, setting: Setting) -> pd.DataFrame:
    """Return the run's estimates of this setting."""
    return setting.select_rows(cached.mediation_estimates(row.id, row.revision))


def render_mediation_notes(setting: Setting) -> None:
    """Explain what is patched, and what a drop does and does not show."""
    undefined_text = (
        "Items in which question and chain together carry less than 0.01 nat"
        if setting.control == "total"
        else "Items whose two drops add up to less than 0.01 nat"
    )
    st.caption(
        "States at the input of the layers are replaced at the chain's positions (source"
        f" {escape_markdown(setting.source)}) and, as a control,"
        f" {CONTROL_PLACES.get(setting.control, QUESTION_PLACE)}. A drop"
        " shows that log P of the answer depends on these states. The absence"
        " of a drop does not show that the chain is decorative: the answer may also be stored"
        f" elsewhere. {undefined_text} are undefined, not 0."
    )


def _build_table(row: RunView, table_name: str, setting: Setting) -> pd.DataFrame:
    """Return a table of the run by the name of its function in ``tables``."""
    scores = cached.mediation_table_scores(
        row.id, row.revision, tables.METRICS_BY_TABLE[table_name]
    )
    estimates = cached.mediation_estimates(row.id, row.revision)
    table: pd.DataFrame = getattr(tables, table_name)(scores, estimates, setting)
    return table
