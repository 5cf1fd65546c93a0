"""The head of a run on each of its tabs: what it is, its verdict in five words, and its actions."""

from __future__ import annotations

import json
from datetime import UTC
from functools import partial

import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.export.chrome import find_chrome, print_page
from cotlab.export.run_report.page import report_html
from cotlab.review.labelling.truth import LABEL_KEYS
from cotlab.store.item_metadata import has_item_metadata
from cotlab.store.pending import labelled_runs, last_label_number
from cotlab.store.recorded_models import short_model_name
from cotlab.store.run_names import (
    MAX_RUN_NAME_CHARACTERS,
    MAX_RUN_NOTE_CHARACTERS,
    count_run_content,
    delete_run,
    edit_run,
    is_run_deleted,
)
from cotlab.ui import access, cached, components, run_notes
from cotlab.ui.address import store_default
from cotlab.ui.linked import show_linked
from cotlab.ui.navigation import default_run, forget_run
from cotlab.ui.new_run import processes
from cotlab.ui.new_run.form import AGAIN_PARAM
from cotlab.ui.places import TAB_PARAM
from cotlab.ui.runs.measured import TAB_MEASURES
from cotlab.ui.text import display_errors, escape_markdown, shorten
from cotlab.ui.verdict import count_measured_items, run_verdict, verdict_cell

LOADING_POLL_S = 1.0
STOP_HELP = "Stops cleanly: finished work is stored, and the run can be resumed."
_DELETED_KEY = "deleted-run"


def select_run() -> RunView | None:
    """Return the run of the address, else the open or the newest one; None (with a message)."""
    run_id = st.query_params.get("run")
    if run_id is None:
        run_ids = [run.id for run in cached.stored_runs() if not run.is_archived]
        if not run_ids:
            components.render_heading("Run", "What did a run find, and on what does that rest?")
            measure = TAB_MEASURES.get(st.query_params.get(TAB_PARAM, ""))
            query = None if measure is None else {"measure": measure.scorers[0]}
            components.render_empty_state("There is no run yet.", "new_run", "Start a run", query)
            return None
        run_id = default_run(run_ids[0], run_ids)
        store_default("run", run_id)
    return _load_run(run_id)


def _load_run(run_id: str) -> RunView | None:
    """Return a run; None (with its process's output) while it is still loading."""
    try:
        return cached.stored_run(run_id)
    except UnknownName:
        if is_run_deleted(cached.store(), run_id) or not processes.has_started(
            cached.store(), run_id
        ):
            components.render_heading("Run", "What did a run find, and on what does that rest?")
            text = f"There is no run {escape_markdown(shorten(run_id))} in this store."
            components.render_empty_state(text, "runs", "All runs")
            return None
    components.render_heading("Run", "The run is being started.")
    output = processes.process_output(cached.store(), run_id)
    if "error:" in output or processes.has_ended(run_id):
        st.error(escape_markdown(output))
        components.page_link("new_run", "Back to New run", "arrow_back", {AGAIN_PARAM: "true"})
    else:
        _render_loading(run_id)
    return None


@st.fragment(run_every=LOADING_POLL_S)
def _render_loading(run_id: str) -> None:
    try:
        cached.stored_run(run_id)
    except UnknownName:
        output = processes.process_output(cached.store(), run_id)
        if "error:" not in output and not processes.has_ended(run_id):
            st.info("Loading the model and the suite …")
            return
    st.rerun()


def render_header(run: RunView) -> None:
    """Show what a run is, its verdict in a few words, one action, and the others in a menu."""
    if st.session_state.pop("resumed", None) == run.id:
        st.toast("Resuming: the model is being loaded.")
    status = components.current_status(run)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        with st.container(width="stretch", gap="xxsmall"):
            _render_facts(run)
        with st.container(horizontal=True, width="content", gap="small"):
            _render_state_action(run, status)
            with st.popover("More", icon=":material/more_horiz:"):
                _render_menu(run)
    if run.note:
        st.warning(escape_markdown(run.note))
    if status != "running":
        components.warn_if_partial(run)
    run_notes.render_run_notes(run)


def _render_facts(run: RunView) -> None:
    result = run_verdict(run)
    status = components.display_status(run)
    status_text = components.STATUS_LABELS.get(status, status)
    errors_text = " with errors" if status == "done" and run.n_errors else ""
    ended = "" if run.ended_at is None else f" {run.ended_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    n_measured = count_measured_items(run, result)
    facts = [
        escape_markdown(f"{shorten(run.model, 60)} · {shorten(run.suite_name, 60)}"),
        f"{n_measured:,} of {noun_count(run.n_items, 'item')}",
        f"{status_text}{errors_text}{ended}",
        escape_markdown(run.id),
    ]
    st.caption(" · ".join(facts))
    model, suite_name = short_model_name(run.model), run.suite_name
    st.title(escape_markdown(run.name or f"{shorten(model, 60)} on {shorten(suite_name, 60)}"))
    show_linked("short", verdict_cell(result), key=f"short-{run.id}")


def _render_menu(run: RunView) -> None:
    """Show what else can be done with a run."""
    components.page_link("new_run", "Clone", "content_copy", {"from": run.id})
    components.page_link("compare", "Compare", "compare_arrows", {"base": run.id})
    if _has_labels(run.id, cached.read_once(last_label_number)):
        components.page_link("evaluation", "Your labels", "rule", {"runs": run.id})
    if run.revision:
        components.download_button("Report", partial(_page_html, run.id), f"{run.id}-report.html")
        if find_chrome() is not None:
            name = f"{run.id}-report.pdf"
            components.download_button("Report (PDF)", partial(_page_pdf, run.id), name)
    if st.button(
        "Unarchive" if run.is_archived else "Archive",
        icon=f":material/{'unarchive' if run.is_archived else 'archive'}:",
        key="archive-run",
        **access.role_control("admin", help="Nothing of the run is lost; its links stay."),
    ):
        _store_archived(run.id, not run.is_archived)
    with st.expander("Name and note", icon=":material/edit:"):
        _render_name_form(run)
    with st.expander("Delete", icon=":material/delete:"):
        _render_deletion(run)


def _page_html(run_id: str) -> str:
    return report_html(cached.store(), run_id)


def _page_pdf(run_id: str) -> bytes:
    return print_page(_page_html(run_id))


def render_run_note(run: RunView) -> None:
    """Show the note on a run, and that it is archived."""
    if run.is_archived:
        st.info("Archived: lists and pickers leave this run out. Its links still open it.")
    if run.user_note:
        with st.container(border=True):
            st.caption("Note")
            st.markdown(escape_markdown(run.user_note))


def _render_state_action(run: RunView, status: str) -> None:
    """Show what can be done with a run in this state, in a place that is there in each state."""
    run_id = run.id
    with st.container(horizontal=True, width="content"):
        if status == "running":
            st.button(
                "Stop",
                icon=":material/stop:",
                on_click=_stop_run,
                args=(run_id,),
                **access.role_control("admin", help=STOP_HELP),
            )
        elif status in components.RESUMABLE_STATUSES:
            max_cost = _render_cap_input(run) if status == "budget" else None
            if st.button(
                "Resume",
                type="primary",
                icon=":material/play_arrow:",
                **access.role_control("admin"),
            ):
                _resume_run(run_id, max_cost)
        elif run.n_errors:
            if st.button("Retry failed", icon=":material/refresh:", **access.role_control("admin")):
                _resume_run(run_id)
        else:
            components.page_link("figures", "Use in paper", "print", {"run": run_id})


def _render_cap_input(run: RunView) -> float:
    """Ask for the higher budget with which a run that reached its budget resumes."""
    previous_cap = float(json.loads(run.config_json).get("max_cost") or 0.0)
    return st.number_input(
        "New cap, US dollars",
        0.0,
        None,
        2 * previous_cap,
        format="%.4f",
        key="resume-cap",
        width=180,
        help="For the whole run.",
    )


def _stop_run(run_id: str) -> None:
    """Stop a run: a callback, so that nothing is lost where the page is left while it is drawn."""
    access.require_role("admin")
    cached.request_stop(run_id)


def _resume_run(run_id: str, max_cost: float | None = None) -> None:
    access.require_role("admin")
    processes.spawn_resume(cached.store(), run_id, max_cost=max_cost)
    st.session_state["resumed"] = run_id
    st.rerun()  # from now on the page polls the run


@cached.cache_by_store(64)
def _has_labels(run_id: str, label_number: int) -> bool:
    """Return whether a run's chains have labels, from a file or from raters."""
    store = cached.store()
    return has_item_metadata(store, run_id, LABEL_KEYS) or run_id in labelled_runs(store)


def render_deletion_notice() -> None:
    """Say on the page that follows which run was deleted."""
    message = st.session_state.pop(_DELETED_KEY, None)
    if message:
        st.success(escape_markdown(message))


def _render_name_form(run: RunView) -> None:
    run_id = run.id
    with st.form(f"name-{run_id}", border=False):
        name = st.text_input(
            "Name",
            run.name,
            MAX_RUN_NAME_CHARACTERS,
            key=f"name-text-{run_id}",
            help="Stands wherever the run is listed or picked; its id stays in every link.",
        )
        note = st.text_area(
            "Note",
            run.user_note,
            max_chars=MAX_RUN_NOTE_CHARACTERS,
            key=f"note-text-{run_id}",
            help="Plain text, shown here and at the end of the report.",
        )
        if st.form_submit_button("Save", type="primary", **access.role_control("admin")):
            _store_name(run_id, name, note)


def _render_deletion(run: RunView) -> None:
    """Say what is lost with a run, and delete it once that is confirmed."""
    run_id = run.id
    if components.current_status(run) == "running":
        st.markdown("A running run cannot be deleted: stop it first.")
        return
    content = count_run_content(cached.store(), run_id)
    label = f"{run.name}, {run_id}" if run.name else run_id
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
