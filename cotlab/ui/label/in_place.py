"""A label given where a chain is read, on the pages Item and Compare, outside of any queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.keys import digest
from cotlab.core.labels import Label, Verdict, steps_digest, verdict_from_steps
from cotlab.core.types import Item
from cotlab.store import labels as label_store
from cotlab.ui import access, cached
from cotlab.ui.label.items import (
    ANSWER_BY_NAME,
    VERDICT_BY_KEY,
    ItemView,
    hidden_item_keys,
    load_item_view,
)
from cotlab.ui.text import display_errors, escape_markdown, shorten

_NOT_JUDGED, _NO_MISTAKE = "not judged", "no step is wrong"
_FAITHFUL_BY_NAME = {"not said": None, "faithful": True, "not faithful": False}
_VERDICT_BY_LABEL: dict[str, Verdict] = {
    label: name  # type: ignore[misc]
    for name, label in VERDICT_BY_KEY.values()
}
_MAX_NOTE_CHARACTERS = 2_000


def render_label_form(row: RunView, item: Item, title: str) -> None:
    """Offer to label the scored chain of an item of a run, in a popover with this title.

    Not offered for a chain that a queue may still ask the user for: there it is read blind.
    """
    run_id = row.id
    with st.popover(escape_markdown(title), icon=":material/rate_review:"):
        if (run_id, item.id) in hidden_item_keys():
            st.caption("A queue may still ask you for this chain: label it on the page Label.")
            return
        view = load_item_view(run_id, item.id)
        if not view.steps:
            st.caption(view.chain_origin)
            return
        if stored_text := st.session_state.pop(_key(run_id, item, "stored"), None):
            st.success(stored_text)
        st.caption(
            "The label is of the chain that was scored, and of the model's answer:"
            f" {escape_markdown(shorten(view.answer, 80))}. It is no blind label: this page names"
            " the model. Your last label of a chain counts."
        )
        with st.form(_key(run_id, item, "form"), border=False):
            _render_fields(row, item, view)


def _render_fields(row: RunView, item: Item, view: ItemView) -> None:
    places = [_NOT_JUDGED, _NO_MISTAKE, *(f"step {i + 1}" for i in range(len(view.steps)))]
    place = st.selectbox(
        "First wrong step", places, help="A chain with a wrong step is not acceptable."
    )
    reasoning = st.segmented_control("Reasoning", list(_VERDICT_BY_LABEL))
    answer = st.segmented_control("Answer", list(ANSWER_BY_NAME), default="cannot tell")
    faithful = st.segmented_control("Faithful", list(_FAITHFUL_BY_NAME), default="not said")
    note = st.text_input("Note", max_chars=_MAX_NOTE_CHARACTERS)
    if st.form_submit_button("Store the label", **access.role_control("labeller")):
        first_step = places.index(place) - 2 if place not in (_NOT_JUDGED, _NO_MISTAKE) else None
        is_judged = place != _NOT_JUDGED
        verdict = _VERDICT_BY_LABEL.get(str(reasoning))
        if (verdict or verdict_from_steps(is_judged, first_step)) is None:
            st.warning("Choose what you say of the reasoning, or of its steps.")
            return
        _store_label(
            row.id,
            item,
            view,
            reasoning=verdict or verdict_from_steps(is_judged, first_step),
            answer_correct=ANSWER_BY_NAME.get(str(answer)),
            faithful=_FAITHFUL_BY_NAME.get(str(faithful)),
            steps_judged=is_judged,
            first_wrong_step=first_step,
            note=note.strip(),
        )


def _store_label(run_id: str, item: Item, view: ItemView, **values: Any) -> None:
    rater = access.require_role("labeller").name
    with display_errors():
        try:
            label = Label(
                digest([run_id, item.id, rater, datetime.now(UTC).isoformat()])[:24],
                run_id,
                item.id,
                rater,
                at=datetime.now(UTC),
                origin="open",
                steps_digest=steps_digest(view.steps) if values["steps_judged"] else None,
                **values,
            )
        except ValueError as error:
            st.warning(escape_markdown(f"{error}."))
            return
        with cached.store().writing() as connection:
            label_store.add_labels(connection, [label])
        st.session_state[_key(run_id, item, "stored")] = "Stored."
        st.rerun()


def _key(run_id: str, item: Item, part: str) -> str:
    return f"label-here-{part}-{digest([run_id, item.id])}"
