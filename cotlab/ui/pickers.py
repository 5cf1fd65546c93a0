"""Widgets whose choice is part of the page's address: an option, several, a run, a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.store import read
from cotlab.ui import cached
from cotlab.ui.address import (
    STEP_PARAM,
    known_param,
    report_unknown_value,
    store_default,
    write_address,
)
from cotlab.ui.components import page_link, render_empty_state, warn_if_partial
from cotlab.ui.navigation import default_run
from cotlab.ui.text import escape_markdown, shorten

ANY = "any"
"""Id of the option of a picker that leaves nothing out."""
ARCHIVED_PARAM = "archived"
"""Parameter of the address that lets lists and pickers have archived runs too."""


def select_option(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: str | None = None,
    cleared_params: Sequence[str] = (),
) -> str:
    """Choose one of ``labels`` (label by id), and return its id.

    The address has the id under ``name`` once it was chosen, else the default is shown. Another
    choice removes ``cleared_params`` from the address, which belong to the previous one.
    """
    key, options, requested_id = f"pick-{name}", list(labels), st.query_params.get(name)

    def store_choice() -> None:
        write_address({**dict.fromkeys(cleared_params), name: str(st.session_state[key])})

    if requested_id is not None and requested_id not in labels:
        report_unknown_value(name, requested_id)
    default_id = default if default is not None and default in labels else options[0]
    selected_id: str = default_id
    if requested_id is not None and requested_id in labels:
        selected_id = requested_id
    store_default(name, selected_id)
    st.session_state[key] = selected_id  # from the address, so that the back button works
    chosen_id: str = st.selectbox(
        label, options, format_func=labels.__getitem__, key=key, on_change=store_choice
    )
    return chosen_id


def pick_run(*scorers: str) -> RunView | None:
    """Choose the run of a page; None (with a message) where no run has one of these scorers.

    An address without a run opens the run that the session is about, where it has them.
    """
    all_rows = cached.stored_runs()
    if warn_of_unknown_runs(all_rows, "run"):
        return None
    rows = without_archived([row for row in all_rows if cached.has_scorer(row, *scorers)], "run")
    labels = run_labels(rows, with_tags=False)
    requested_id = st.query_params.get("run")
    if not rows:
        names_text = " or ".join(map(repr, scorers))
        query = {"measure": scorers[0]}
        render_empty_state(f"No run has the scorer {names_text}.", "new_run", "Start a run", query)
        return None
    default_id = default_run(next(iter(labels)), labels)
    if requested_id is not None and requested_id not in labels:
        st.info(f"Run {escape_markdown(shorten(requested_id))} has no score to decide on.")
        default_id = ""
    chosen_id = requested_id if requested_id in labels else default_id
    if not chosen_id:
        return None
    row_by_id = {row.id: row for row in rows}
    row: RunView = row_by_id[select_option("Run", labels, "run", chosen_id)]
    warn_if_partial(row)
    return row


def warn_of_unknown_runs(rows: Sequence[RunView], *params: str) -> bool:
    """Warn where the address names a run that the store does not have; return whether it does.

    Parameters
    ----------
    rows : sequence of mapping
        All runs of the store.
    *params : str
        The parameters of the address that name runs.
    """
    run_ids = {row.id for row in rows}
    requested_ids = dict.fromkeys(i for name in params for i in st.query_params.get_all(name))
    unknown_ids = [i for i in requested_ids if i not in run_ids]
    if unknown_ids:
        names_text = escape_markdown(", ".join(map(shorten, unknown_ids)))
        st.warning(
            f"There is no run {names_text} in this store: it was deleted, or the address is that of"
            " another store."
        )
        page_link("runs", "All runs", "history")
    return bool(unknown_ids)


def pick_options(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: Sequence[str],
    help: str | None = None,
) -> list[str]:
    """Choose several of ``labels`` (label by id), and return their ids.

    The address has each id under ``name``. Without a choice, the default is chosen.
    """
    key, requested_ids = f"pick-{name}", list(dict.fromkeys(st.query_params.get_all(name)))

    def store_choice() -> None:
        write_address({name: list(st.session_state[key])})

    unknown_ids = [i for i in requested_ids if i not in labels]
    if unknown_ids:
        st.warning(
            f"{label}: {escape_markdown(', '.join(map(shorten, unknown_ids)))} cannot be shown"
            " here."
        )
    default_ids = [i for i in default if i in labels]
    selected_ids = [i for i in requested_ids if i in labels] or default_ids
    if selected_ids:
        store_default(name, selected_ids[0])
    st.session_state[key] = selected_ids  # from the address, so that the back button works
    return st.multiselect(
        label,
        list(labels),
        format_func=labels.__getitem__,
        key=key,
        on_change=store_choice,
        help=help,
    )


def without_archived(
    rows: Sequence[RunView], *params: str, name: str = ARCHIVED_PARAM
) -> list[RunView]:
    """Return the rows without archived runs, unless "archived too" is chosen, which is offered.

    Runs that the address names under ``params`` stay: a link to an archived run still opens it.
    """
    is_requested = known_param(name, ("1",)) == "1"
    n_archived = sum(row.is_archived for row in rows)
    if not n_archived:
        return list(rows)
    key = f"pick-{name}"

    def store_choice() -> None:
        write_address({name: "1" if st.session_state[key] else None})

    st.session_state[key] = is_requested
    includes_archived = st.checkbox(
        f"Archived too ({n_archived} archived)",
        key=key,
        on_change=store_choice,
        help="Archived runs are left out of lists; nothing of them is lost.",
    )
    requested_ids = {i for param in params for i in st.query_params.get_all(param)}
    return [
        row for row in rows if includes_archived or not row.is_archived or row.id in requested_ids
    ]


def run_labels(rows: Sequence[RunView], *, with_tags: bool = True) -> dict[str, str]:
    """Return each run's label: its name where it has one, model, tags, suite and id."""
    labels = {}
    for row in rows:
        tags_text = tag_text(row.plan.tags) if with_tags else ""
        parts = (row.name, row.model, tags_text, row.suite_name, row.id)
        labels[row.id] = " · ".join(part for part in parts if part)
    return labels


def queue_labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the label of each label queue by its id."""
    return {str(row["id"]): f"{row['name']} · {row['n']} items · {row['id']}" for row in rows}


def tag_text(tags: Mapping[str, str]) -> str:
    """Format tags as they are typed: "epoch=1, condition=base"."""
    return ", ".join(f"{name}={value}" for name, value in tags.items())


def select_item(row: RunView) -> Item | None:
    """Choose an item, by default the first."""
    items = cached.read_once(read.list_run_items, row.id)
    if items.empty:
        st.info("No item has been scored yet.")
        return None
    labels = {
        i: f"{i} · {shorten(question, 90)}"
        for i, question in zip(items["id"], items["question"], strict=True)
    }
    item_id = select_option("Item", labels, "item", cleared_params=(STEP_PARAM,))
    return cached.load_item(row.suite, item_id)
