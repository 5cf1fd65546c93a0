"""The parts of the page Mediation that are about the whole suite."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import mediation as tables
from cotlab.analysis.tables.declare import count_reasons
from cotlab.analysis.tables.mediation import INDICES, NATS, NO_UNIT, Setting, full_depth_rows
from cotlab.figures.mediation import metric_label
from cotlab.figures.span_heatmap import span_name, span_order
from cotlab.run.imports.mediation import is_imported
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.text import as_code

HEADLINE = (
    ("cmi", "CMI, all layers"),
    ("share", "Share"),
    ("mass_lost", "Mass lost"),
    ("no_cot_drop", "No-CoT drop (nats)"),
)
SOURCE_LABELS = {
    "filler": "dots in the chain's place",
    "interchange": "another item's chain",
    "right": "the run without a chain, right-aligned",
    "mean": "mean of the question",
    "literal": "the same index of the run without a chain",
    "published": "whose states, the file does not say",
}
CONTROL_LABELS = {
    "other": "control from another item",
    "own": "control from the item's own run",
    "published": "control as published",
}
IMPORTED = (
    ("cmi_over_spans", "CMI, mean over layers"),
    ("spans_defined", "Layers with a CMI"),
    ("no_cot_effect", "No CoT effect"),
)
"""What published rows of single layers give in the place of ``HEADLINE``."""


def select_setting(row: dict[str, Any]) -> Setting | None:
    """The source and control to look at, in the address; None (after saying why) where nothing is scored."""
    settings = {
        "~".join(s): s
        for s in tables.available_settings(
            data.mediation_scores(row["id"], int(row["revision"]), ("cmi",))
        )
    }
    if not settings:
        st.info("No item has been scored for mediation yet.")
        return None
    several = len({(setting.chain, setting.given) for setting in settings.values()}) > 1
    labels = {key: _label(setting, several) for key, setting in settings.items()}
    return settings[parts.select_option("Source and control", labels, "source")]


def _label(setting: Setting, several: bool) -> str:
    source = SOURCE_LABELS.get(setting.source, "")
    text = (
        f"{setting.source}{f' ({source})' if source else ''},"
        f" {CONTROL_LABELS.get(setting.control, setting.control)}"
    )
    return f"{text} · {setting.chain} chain, given as {setting.given}" if several else text


def render_mediation_summary(row: dict[str, Any], setting: Setting) -> None:
    """The four numbers of all layers, with interval and n; of published rows, which name no such span, those over layers."""
    estimates = full_depth_rows(setting_estimates(row, setting))
    published = is_published(row)
    if published:
        st.info(
            "Imported: these rows were published by others. CMI is recomputed from their drops; no"
            " request was made here, so there are no replies, tokens or single draws behind a"
            " number."
        )
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    by_metric = {str(r["metric"]): r for r in estimates.to_dict("records")}
    numbers, missing = [], []
    for metric, label in IMPORTED if published else HEADLINE:
        r = by_metric.get(metric)
        n = 0 if r is None else int(r["n"])
        numbers.append((f"{label}, n = {n}", "n/a" if r is None else parts.estimate_text(r)))
        if r is None or pd.isna(r["point"]):
            missing.append(
                f"{label}: n/a,"
                f" {'not asked' if r is None else r['reason'] or 'no item has a defined value'}."
            )
    parts.show_numbers(numbers)
    parts.plain_list(missing)
    level = float(estimates["confidence"].iloc[0])
    st.caption(
        f"Means over n items with {100 * level:g} % intervals. CMI is clamped and blind to small"
        " doses; mass lost is not."
    )
    with st.container(horizontal=True):
        for metric, _ in IMPORTED if published else HEADLINE:
            parts.show_card(metric)


def is_published(row: dict[str, Any]) -> bool:
    """Whether the run holds what others have published."""
    return is_imported(data.run_plan(row["id"]))


def render_mediation_warnings(row: dict[str, Any], setting: Setting) -> None:
    """What makes the numbers above worth little."""
    table = setting.of(data.mediation_scores(row["id"], int(row["revision"]), ("control_is_noop",)))
    noop = table[(table["span"] == "all") & table["value"].notna()]
    dead = int((noop["value"] > 0).sum())
    if dead:
        st.warning(
            f"The control changes nothing in {dead} of {len(noop)} items: its states are those that"
            " were there already. With a control that does nothing CMI is 1 for everything,"
            " faithful or not. Read the drop and mass lost, or take a control from another item."
        )
    if setting.source == "literal":
        st.warning(
            "The source literal is degenerate: up to the chain its states are the same in both"
            " runs, and past the end of the short run there are none. It is kept for comparison;"
            " filler and interchange are the sources to trust."
        )
    elif setting.source == "right":
        st.info(
            "The source right has an artefact at single early layers, where its states stand at"
            " other positions than theirs."
        )


def render_density(row: dict[str, Any], setting: Setting) -> None:
    """CMI by share of positions, of every source with this control."""
    table = _table(row, "density", setting)
    if not table.empty:
        _show("cmi_density", table, "density", row)


def render_spans(row: dict[str, Any], setting: Setting) -> None:
    """CMI, share and mass lost of this source by span; then CMI of every source."""
    cells = _table(row, "spans", setting)
    if cells.empty:
        return
    _show("span_heatmap", cells, "spans", row, note=f"Source {setting.source}.")
    same = _table(row, "spans_of_sources", setting)
    if same["source"].nunique() > 1:
        with st.expander("CMI by span, all sources"):
            _show("span_heatmap", same, "sources", row)


def render_layers(row: dict[str, Any], setting: Setting) -> None:
    table = _table(row, "layers", setting)
    if not table.empty:
        _show("layer_profile", table, "layers", row)


def render_indices(row: dict[str, Any], setting: Setting) -> None:
    """Every index of all layers as a figure and as a table with what is undefined and why."""
    table = _table(row, "indices", setting)
    if table.empty:
        return
    reasons, left = undefined_reasons(row, setting), table["point"].notna() & table["lo"].isna()
    bare = dict(
        zip(
            table.loc[left, "metric"],
            table.loc[left, "reason"].fillna("too few items"),
            strict=True,
        )
    )
    _show("mediation_indices", table[~table["metric"].isin(NO_UNIT)], "indices", row)
    st.dataframe(
        pd.DataFrame(
            {
                "index": [
                    f"{metric_label(m)} (nats)" if m in NATS else metric_label(m)
                    for m in table["metric"]
                ],
                "mean [interval]": [parts.estimate_text(r) for r in table.to_dict("records")],
                "n": table["n"].tolist(),
                "undefined": table["n_undefined"].tolist(),
                "why undefined": [
                    "; ".join(
                        [f"{text} ({k})" for text, k in reasons.get(m, {}).items()]
                        + ([f"no interval: {bare[m]}"] if m in bare else [])
                    )
                    for m in table["metric"]
                ],
            }
        ),
        hide_index=True,
        height="content",
        key="index-table",
        column_config=_TABLE,
    )
    with st.expander("What each index is"):
        cards = parts.all_cards()
        for metric in table["metric"]:
            card = cards[metric]
            st.markdown(
                f"**{metric_label(metric)}**: {as_code(card.formula)}. Does not show:"
                f" {as_code(card.not_shown)}"
            )


def render_published_layers(row: dict[str, Any], setting: Setting) -> None:
    """Of published rows: CMI of each layer, how many items define it, and why the others do not."""
    if not is_published(row):
        return
    table = setting_estimates(row, setting)
    table = table[(table["metric"] == "cmi") & (table["span"] != "")]
    table = table.sort_values("span", key=lambda spans_: spans_.map(span_order))
    scores = setting.of(data.mediation_scores(row["id"], int(row["revision"]), ("cmi",)))
    reasons = {
        span: count_reasons(group)
        for span, group in scores[scores["value"].isna()].groupby("span")["reason"]
    }
    st.dataframe(
        pd.DataFrame(
            {
                "layer": [span_name(str(span)) for span in table["span"]],
                "mean [interval]": [parts.estimate_text(r) for r in table.to_dict("records")],
                "n": table["n"].tolist(),
                "undefined": table["n_undefined"].tolist(),
                "why undefined": [
                    "; ".join(f"{text} ({k})" for text, k in reasons.get(span, {}).items())
                    for span in table["span"]
                ],
            }
        ),
        hide_index=True,
        key="layer-table",
        column_config=_TABLE,
    )
    st.caption(
        "CMI by layer: mean over the items where it is defined, and why it is not in the others."
    )


_TABLE = {
    "index": st.column_config.TextColumn(width=192),
    "mean [interval]": st.column_config.TextColumn(alignment="right", width=214),
    "n": st.column_config.NumberColumn(width=48, help="Items with a value."),
    "undefined": st.column_config.NumberColumn(width=85, help="Items without a value."),
    "why undefined": st.column_config.TextColumn("why undefined", width="large"),
}


def undefined_reasons(row: dict[str, Any], setting: Setting) -> dict[str, dict[str, int]]:
    """Metric to reason to the number of items without a value for that reason, the commonest first."""
    table = full_depth_rows(
        setting.of(data.mediation_scores(row["id"], int(row["revision"]), (*INDICES, *NATS)))
    )
    gone = table[table["value"].isna()]
    return {str(metric): count_reasons(group) for metric, group in gone.groupby("metric")["reason"]}


def setting_estimates(row: dict[str, Any], setting: Setting) -> pd.DataFrame:
    """The run's estimates of this setting."""
    return setting.of(data.mediation_estimates(row["id"], int(row["revision"])))


def render_mediation_notes(setting: Setting) -> None:
    if setting.source == "published":
        st.caption(
            "Drops as they were published, in nats. Items and layers whose two drops add up to less"
            " than the import's threshold are undefined, not 0, also where the file gives them a"
            " CMI of 0 and a bypass of 1."
        )
        return
    st.caption(
        "States at the input of the layers are replaced at the chain's positions (source"
        f" {as_code(setting.source)}) and, as a control, at as many positions of the question. A"
        " drop shows that log P of the answer depends on these states. No drop does not show that"
        " the chain is decorative: the answer may be known twice. Items whose two drops add up to"
        " less than 0.01 nat are undefined, not 0."
    )


def _table(row: dict[str, Any], kind: str, setting: Setting) -> pd.DataFrame:
    """Return a table of the run by the name of its function in ``tables``."""
    scores = data.mediation_scores(row["id"], int(row["revision"]), tables.METRICS_OF[kind])
    estimates = data.mediation_estimates(row["id"], int(row["revision"]))
    table: pd.DataFrame = getattr(tables, kind)(scores, estimates, setting)
    return table


def _show(name: str, table: pd.DataFrame, key: str, row: dict[str, Any], note: str = "") -> None:
    parts.show_figure(name, table, key=key, note=note, evidence=(page("run"), {"run": row["id"]}))
