"""Choosing several things whose ids stand in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cotlab.export.tabular import disarmed
from cotlab.ui import cached as data
from cotlab.ui.text import as_code, shorten


def pick_many(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: Sequence[str],
    help: str | None = None,
) -> list[str]:
    """Choose some of ``labels`` (label by id); the ids stand in the address as ``name``, once each, and are taken from there.

    Where none is chosen the default is.
    """
    key, requested = f"pick-{name}", list(dict.fromkeys(st.query_params.get_all(name)))

    def chose() -> None:
        st.query_params[name] = list(st.session_state[key])

    unknown = [i for i in requested if i not in labels]
    if unknown:
        st.warning(f"{label}: {as_code(', '.join(map(shorten, unknown)))} cannot be shown here.")
    selected = [i for i in requested if i in labels] or [i for i in default if i in labels]
    if requested != selected:
        st.query_params[name] = selected
    st.session_state[key] = selected  # the address decides, so that back and forward do too
    return st.multiselect(
        label, list(labels), format_func=labels.__getitem__, key=key, on_change=chose, help=help
    )


def run_labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a reader tells runs apart by: model, tags, suite and id."""
    labels = {}
    for row in rows:
        tags = tag_text(data.parse_plan(row["plan"]).tags)
        labels[str(row["id"])] = " · ".join(
            part for part in (row["model"], tags, row["suite_name"], row["id"]) if part
        )
    return labels


def tag_text(tags: Mapping[str, str]) -> str:
    """Tags as they are typed, "epoch=1, condition=base"."""
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def pick_threshold() -> float:
    """The score from which a response counts as unfaithful; it stands in the address."""
    return float(
        st.slider(
            "Unfaithful from score",
            0.0,
            1.0,
            0.5,
            0.05,
            key="threshold",
            bind="query-params",
            width=320,
            help=(
                "0.5 counts the midpoint as unfaithful, so it over-counts rather than under-counts."
                " See the sweep."
            ),
        )
    )


def csv_button(name: str, table: Any, key: str) -> None:
    """A button for a table's rows as CSV; cells that a spreadsheet would run are disarmed."""
    st.download_button(
        "Data (CSV)",
        lambda: disarmed(table).to_csv(index=False),
        f"{name}.csv",
        "text/csv",
        key=f"data-{key}",
        icon=":material/download:",
        on_click="ignore",
    )
