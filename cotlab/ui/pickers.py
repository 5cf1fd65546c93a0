"""Widgets whose choice is part of the page's address: an option, several, a run, a threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from cotlab.core.resources import page
from cotlab.core.types import Plan
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.components import empty, partial_banner
from cotlab.ui.text import as_code, shorten


def select_option(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: str | None = None,
    resets: Sequence[str] = (),
) -> str:
    """Choose one of ``labels`` (label by id), and return its id.

    The address has the id under ``name``. Another choice removes ``resets`` from the address,
    which belong to the previous one.

    Streamlit's own binding would write the label into the address, and leave out the first
    option: such an address cannot be shared.
    """
    key, options, requested = f"pick-{name}", list(labels), st.query_params.get(name)

    def chose() -> None:
        st.query_params[name] = str(st.session_state[key])
        for gone in set(resets) & set(st.query_params):
            del st.query_params[gone]

    if requested is not None and requested not in labels:
        st.warning(f"{label} {as_code(shorten(requested))} is not here; another one is shown.")
    selected: str = next(
        (i for i in (requested, default) if i is not None and i in labels), options[0]
    )
    if requested != selected:
        st.query_params[name] = selected
    st.session_state[key] = selected  # from the address, so that the back button works
    chosen: str = st.selectbox(
        label, options, format_func=labels.__getitem__, key=key, on_change=chose
    )
    return chosen


def pick_run(*scorers: str, shows: Callable[[Plan], bool] | None = None) -> dict[str, Any] | None:
    """Choose the run of a page; None (with a message) where no run has one of these scorers.

    ``shows``, where given, decides instead which runs can be chosen.
    """
    plans = (
        (row, cached.parse_plan(row["plan"]))
        for row in read.list_runs(cached.store()).to_dict("records")
    )
    rows = [
        row
        for row, plan in plans
        if (shows(plan) if shows else any(s.name in scorers for s in plan.scorers))
    ]
    if not rows:
        empty(
            f"No run has the scorer {' or '.join(map(repr, scorers))} yet.",
            page("new_run"),
            "Start one",
        )
        return None
    by_id = {row["id"]: row for row in rows}
    labels = {i: f"{row['model']} · {row['suite_name']} · {i}" for i, row in by_id.items()}
    row: dict[str, Any] = by_id[select_option("Run", labels, "run")]
    partial_banner(row)
    return row


def pick_many(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: Sequence[str],
    help: str | None = None,
) -> list[str]:
    """Choose several of ``labels`` (label by id), and return their ids.

    The address has each id under ``name``. Without a choice, the default is chosen.
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
    st.session_state[key] = selected  # from the address, so that the back button works
    return st.multiselect(
        label, list(labels), format_func=labels.__getitem__, key=key, on_change=chose, help=help
    )


def run_labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return each run's label: model, tags, suite and id."""
    labels = {}
    for row in rows:
        tags = tag_text(cached.parse_plan(row["plan"]).tags)
        labels[str(row["id"])] = " · ".join(
            part for part in (row["model"], tags, row["suite_name"], row["id"]) if part
        )
    return labels


def tag_text(tags: Mapping[str, str]) -> str:
    """Format tags as they are typed: "epoch=1, condition=base"."""
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def pick_threshold() -> float:
    """Choose the score from which a response counts as unfaithful."""
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
