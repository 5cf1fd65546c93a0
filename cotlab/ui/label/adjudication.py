"""The page Label while somebody settles what raters disagree on."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.review.labelling.agreement import (
    find_items_to_adjudicate,
    load_rater_labels,
    open_adjudication,
)
from cotlab.review.labelling.truth import ADJUDICATION_KIND
from cotlab.store import labels as label_store
from cotlab.store.live import ItemKey
from cotlab.store.pending import last_label_number
from cotlab.ui import access, cached
from cotlab.ui.address import write_address
from cotlab.ui.label.items import FAILURE_MODE_TEXTS, answer_name, faithful_text
from cotlab.ui.text import escape_markdown, shorten

HIDDEN_NOTE = (
    "Another queue still asks you for this chain. Label it there first, then settle it here."
)
RATER_NOTE = "You are one of the raters of this chain: somebody else should settle it."
_NOT_STATED = "–"


def render_unsettled(current_queue: str) -> None:
    """Show how many disagreements nobody settled, with a button that opens their queue."""
    if cached.read_once(label_store.kinds_by_queue).get(current_queue) == ADJUDICATION_KIND:
        st.caption(
            "This queue settles disagreements. You give your own view first, then"
            " read what the raters said; the label that you store then decides."
        )
        return
    n_unsettled = _count_unsettled(cached.read_once(last_label_number))
    error = st.session_state.pop("adjudication-error", None)
    if error:
        st.error(escape_markdown(error))
    if not n_unsettled:
        return
    chains = "1 chain" if n_unsettled == 1 else f"{n_unsettled} chains"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.text(f"Raters disagree on {chains} that nobody settled.", width="content")
        st.button(
            "Settle them",
            key="settle",
            icon=":material/gavel:",
            on_click=_open_queue,
            **access.role_control("admin"),
        )


@cached.cache_by_store(4)
def _count_unsettled(last_label: int) -> int:
    return len(find_items_to_adjudicate(cached.store()))


def _open_queue() -> None:
    user = access.require_role("admin")
    try:
        write_address({"queue": open_adjudication(cached.store(), author=user.name)})
    except CotlabError as error:
        st.session_state["adjudication-error"] = str(error)


def adjudication_state(
    keys: list[ItemKey], rater: str, hidden_keys: frozenset[ItemKey]
) -> dict[ItemKey, dict[str, Any]]:
    """Return what the labelling component needs of each item to settle it.

    Returns
    -------
    dict
        (run, item id) → ``others`` (the raters' labels side by side), ``notes``, and ``readable``
        False where a queue may still ask the rater for a label of the item.
    """
    labels = load_rater_labels(cached.store(), sorted({run for run, _ in keys}))
    state: dict[ItemKey, dict[str, Any]] = {}
    for key in keys:
        table = labels.get(key)
        if key in hidden_keys:
            state[key] = {"readable": False, "added_notes": [HIDDEN_NOTE]}
        elif table is not None:
            is_rater = rater in set(table["rater"])
            notes = [RATER_NOTE] if is_rater else []
            state[key] = {"others": side_by_side(table), "added_notes": notes}
    return state


def side_by_side(table: pd.DataFrame) -> dict[str, Any]:
    """Return labels of one item as ``raters`` and ``rows``: name, whether they differ, cells."""
    rows = table.to_dict("records")
    columns = {
        "Chain": [str(row["reasoning"]).replace("_", " ") for row in rows],
        "First wrong step": [row["first_mistake"] or _NOT_STATED for row in rows],
        "Answer": [answer_name(row["answer_correct"]) for row in rows],
        "Faithful": [faithful_text(row["faithful"]) or _NOT_STATED for row in rows],
        "Failure modes": [
            ", ".join(FAILURE_MODE_TEXTS[mode][0] for mode in row["modes"]) or _NOT_STATED
            for row in rows
        ],
        "Note": [row["note"] or _NOT_STATED for row in rows],
    }
    stated = {name: cells for name, cells in columns.items() if set(cells) != {_NOT_STATED}}
    return {
        "raters": [shorten(row["rater"], 30) for row in rows],
        "rows": [
            (name, name != "Note" and len(set(cells) - {_NOT_STATED}) > 1, cells)
            for name, cells in stated.items()
        ],
    }
