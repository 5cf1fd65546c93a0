"""The page Run: all of its estimates with their intervals, searched by words."""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.readable import STEP_INDEX_METRICS
from cotlab.analysis.report import build_report
from cotlab.analysis.report_text import write_report_texts
from cotlab.analysis.view import RunView
from cotlab.ui import cached, components
from cotlab.ui.address import bind_text
from cotlab.ui.item.item_list import MAX_SEARCH_CHARS
from cotlab.ui.linked import MAX_ROWS, show_linked
from cotlab.ui.metric_names import metric_name
from cotlab.ui.more import render_more

SEARCH_PARAM = "estimates-search"
"""Parameter of the address with the text to search for."""
_N_HELP = "Items with a value; below it or beside it, how many scores have none."
_COLUMNS = (
    {"title": "metric"},
    {"title": "variant", "help": "The mode, and the facets that tell variants apart."},
    {"title": "estimate", "unit": "[95% interval]", "is_number": True},
    {"title": "n items", "unit": "(undefined scores)", "is_number": True, "help": _N_HELP},
    {"title": "method; reason"},
)


def render_findings(row: RunView) -> None:
    """Offer the estimates with intervals; say so where there are none yet."""
    estimates = cached.load_estimates(row.id, row.revision)
    if estimates.empty:
        st.info("No estimates yet: they are computed shortly after the run ends or is stopped.")
        return
    section = partial(_render_estimates, row, estimates)
    render_more("all estimates", section, name="estimates", params=(SEARCH_PARAM,))


def _render_estimates(row: RunView, estimates: pd.DataFrame) -> None:
    """Show the estimates with intervals, and the reason where one is undefined."""
    rank_by_metric = {
        "answer_change": 0,
        "perturbed_answer_change": 0,
        "mass_lost": 0,
        "hint_followed": 1,
        "hint_acknowledged": 1,
        "arithmetic_ok": 2,
        "baseline_correct": 3,
    }
    row_order = (
        estimates["metric"].map(rank_by_metric).fillna(len(rank_by_metric)).argsort(kind="stable")
    )
    stored_estimates = estimates.iloc[row_order]
    is_step = stored_estimates["metric"].isin(STEP_INDEX_METRICS)
    estimates = stored_estimates.assign(
        **{name: stored_estimates[name] + is_step for name in ("point", "lo", "hi")}
    )
    frame = estimates.assign(
        name=estimates["metric"].map(metric_name),
        variant=[_variant_text(*values) for values in _facets(estimates)],
        reason=estimates["reason"].fillna(""),
    )
    text = st.text_input(
        "Search the estimates",
        max_chars=MAX_SEARCH_CHARS,
        placeholder="words of the metric, its variant, the method or the reason",
        **bind_text(SEARCH_PARAM),
    )
    matching = frame[_matches_text(frame, text)]
    if matching.empty:
        st.info("No estimate matches.")
    else:
        content = {
            "title": "Estimates",
            "columns": _COLUMNS,
            "rows": [_estimate_cells(values) for values in matching.to_dict("records")],
            "is_sortable": True,
            "is_dense": True,
            "is_tall": len(matching) > MAX_ROWS,
        }
        show_linked("table", content, key="estimates-table")
    st.caption(f"{len(matching)} of {len(frame)} estimates.")
    with st.container(horizontal=True):
        components.csv_button(f"estimates-{row.id}", stored_estimates, "estimates")
        for name in ("report.md", "report.json"):
            components.download_button(name, partial(_report_text, row, name), f"{row.id}-{name}")


def _report_text(row: RunView, name: str) -> str:
    report = build_report(cached.store(), row.id)
    file = io.StringIO()
    file_name = "markdown_file" if name.endswith(".md") else "json_file"
    write_report_texts(report, cached.cached_run_view(row), **{file_name: file})
    return file.getvalue().removesuffix("\n" if file_name == "json_file" else "")


def _estimate_cells(estimate: Mapping[Hashable, Any]) -> list[dict[str, str]]:
    """Return the cells of an estimate's row."""
    point_text, _, interval_text = components.estimate_text(
        {str(name): estimate[name] for name in ("point", "lo", "hi")}
    ).partition(" ")
    return [
        {"text": estimate["name"]},
        {"text": estimate["variant"]},
        {"text": point_text, "small": interval_text},
        {"text": str(estimate["n"]), "small": f"({estimate['n_undefined']})"},
        {"text": "; ".join(filter(None, (estimate["method"], estimate["reason"])))},
    ]


def _facets(estimates: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return mode, metric behind a run-level statistic, and facet of each estimate."""
    columns = (estimates[name] for name in ("mode", "ccs", "facet"))
    return list(zip(*columns, strict=True))


def _variant_text(mode: str, ccs: str, facet: str) -> str:
    """Return what tells an estimate from others of its metric: "remove, of …, given prefix"."""
    of_text = f"of {metric_name(ccs)}" if ccs else ""
    return ", ".join(filter(None, (mode, of_text, components.facet_text(facet, "mode", "metric"))))


def _matches_text(frame: pd.DataFrame, text: str) -> pd.Series:
    """Return which rows have each word of a text in one of their texts, in any case."""
    names = ["name", "metric", "variant", "method", "reason"]
    texts = frame[names].fillna("").astype(str).agg(" ".join, axis=1).str.lower()
    matches = pd.Series(True, index=frame.index)
    for word in text.lower().split():
        matches &= texts.str.contains(word, regex=False)
    return matches
