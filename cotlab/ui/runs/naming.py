"""The name, note and archiving of a run on the page Run, and its deletion."""

from __future__ import annotations

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.store.run_names import (
    MAX_RUN_NAME_CHARACTERS,
    MAX_RUN_NOTE_CHARACTERS,
    count_run_content,
    delete_run,
    edit_run,
)
from cotlab.ui import access, cached, components
from cotlab.ui.opened_run import forget_run
from cotlab.ui.text import display_errors, escape_markdown

_DELETED_KEY = "deleted-run"


def render_run_note(row: RunView) -> None:
    """Show the note on a run, and that it is archived."""
    if row.is_archived:
        st.info("Archived: lists and pickers leave this run out. Its links still open it.")
    if row.user_note:
        with st.container(border=True):
            st.caption("Note")
            st.markdown(escape_markdown(row.user_note))


def render_run_editing(row: RunView) -> None:
    """Offer to name, note, archive and delete a run."""
    run_id = row.id
    with st.container(horizontal=True):
        with st.popover("Name and note", icon=":material/edit:"):
            _render_name_form(row)
        is_archived = row.is_archived
        if st.button(
            "Unarchive" if is_archived else "Archive",
            icon=f":material/{'unarchive' if is_archived else 'archive'}:",
            key="archive-run",
            **access.role_control("admin", help="Nothing of the run is lost; its links stay."),
        ):
            _store_archived(run_id, not is_archived)
        with st.popover("Delete", icon=":material/delete:"):
            _render_deletion(row)


def render_deletion_notice() -> None:
    """Say on the page that follows which run was deleted."""
    message = st.session_state.pop(_DELETED_KEY, None)
    if message:
        st.success(escape_markdown(message))


def _render_name_form(row: RunView) -> None:
    run_id = row.id
    with st.form(f"name-{run_id}", border=False):
        name = st.text_input(
            "Name",
            row.name,
            MAX_RUN_NAME_CHARACTERS,
            key=f"name-text-{run_id}",
            help="Stands wherever the run is listed or picked; its id stays in every link.",
        )
        note = st.text_area(
            "Note",
            row.user_note,
            max_chars=MAX_RUN_NOTE_CHARACTERS,
            key=f"note-text-{run_id}",
            help="Plain text, shown here and at the end of the report.",
        )
        if st.form_submit_button("Save", type="primary", **access.role_control("admin")):
            _store_name(run_id, name, note)


def _render_deletion(row: RunView) -> None:
    """Say what is lost with a run, and delete it once that is confirmed."""
    run_id = row.id
    if components.current_status(row) == "running":
        st.markdown("A running run cannot be deleted: stop it first.")
        return
    content = count_run_content(cached.store(), run_id)
    label = f"{row.name}, {run_id}" if row.name else run_id
    st.markdown(f"**Delete {escape_markdown(label)}?** This cannot be undone.")
    st.markdown(f"Lost: {content.lost_text}.")
    st.markdown(f"Not lost: {content.preserved_text}.")
    is_confirmed = st.checkbox("Delete what is lost", key=f"confirm-delete-{run_id}")
    if st.button(
        "Delete this run",
        type="primary",
        icon=":material/delete_forever:",
        key=f"delete-{run_id}",
        **access.role_control("admin", disabled=not is_confirmed),
    ):
        _delete_confirmed_run(run_id)


def _store_name(run_id: str, name: str, note: str) -> None:
    author = access.require_role("admin").name
    with display_errors():
        with cached.store().writing() as connection:
            edit_run(connection, run_id, author, name=name, note=note)
        st.rerun()


def _store_archived(run_id: str, is_archived: bool) -> None:
    author = access.require_role("admin").name
    with display_errors():
        with cached.store().writing() as connection:
            edit_run(connection, run_id, author, is_archived=is_archived)
        st.rerun()


def _delete_confirmed_run(run_id: str) -> None:
    author = access.require_role("admin").name
    with display_errors():
        content = delete_run(cached.store(), run_id, author)
        st.session_state[_DELETED_KEY] = f"Deleted run {run_id}: {content.lost_text}."
        forget_run()
        st.switch_page(page_path("runs"))
