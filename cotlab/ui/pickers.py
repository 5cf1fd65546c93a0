"""Widgets whose choice is part of the page's address: an option, several, a run, a threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from cotlab.analysis.paired import UNFAITHFUL_THRESHOLD
from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.core.types import Plan
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import cached
from cotlab.ui.address import (
    bind_number,
    known_param,
    report_unknown_value,
    stable_default,
    store_default,
    write_address,
)
from cotlab.ui.components import current_status, page_link, render_empty_state, warn_if_partial
from cotlab.ui.new_run.added_cost import added_cost_text
from cotlab.ui.new_run.measures import count_new_items
from cotlab.ui.new_run.readability import unreadable_text
from cotlab.ui.opened_run import default_run
from cotlab.ui.text import escape_markdown, shorten

THRESHOLD_HELP = (
    "0.5 counts the midpoint as unfaithful, so it over-counts rather than under-counts. See the"
    " sweep."
)

_RELATED_PAGES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "ablation": {"robustness": ("robustness", "What this run measured at its steps: Robustness")},
    "robustness": {"ablation": ("steps", "What this run measured at its steps: Steps")},
}
"""By scorer that a run lacks: another that tells of steps, its page, and the link's text."""
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
    stable_key: str = "",
) -> str:
    """Choose one of ``labels`` (label by id), and return its id.

    The address has the id under ``name`` once it was chosen, else the default is shown. Another
    choice removes ``cleared_params`` from the address, which belong to the previous one.

    With a ``stable_key``, unique to the page, the default of the session's first view stays when
    there is a newer one.
    """
    key, options, requested_id = f"pick-{name}", list(labels), st.query_params.get(name)

    def store_choice() -> None:
        write_address({**dict.fromkeys(cleared_params), name: str(st.session_state[key])})

    if requested_id is not None and requested_id not in labels:
        report_unknown_value(name, requested_id)
    default_id = default if default is not None and default in labels else options[0]
    if stable_key:
        (default_id,) = stable_default(stable_key, [default_id], labels)
    selected_id: str = default_id
    if requested_id is not None and requested_id in labels:
        selected_id = requested_id
    store_default(name, selected_id)
    st.session_state[key] = selected_id  # from the address, so that the back button works
    chosen_id: str = st.selectbox(
        label, options, format_func=labels.__getitem__, key=key, on_change=store_choice
    )
    return chosen_id


def pick_run(*scorers: str, plan_filter: Callable[[Plan], bool] | None = None) -> RunView | None:
    """Choose the run of a page; None (with a message) where no run has one of these scorers.

    ``plan_filter``, where given, decides instead which runs can be chosen. Where the address names
    a run without these scorers, the page says so and offers to measure it, and where it names none
    of this store, the page says that: another run is shown once it is chosen. An address without a
    run opens the run that the session is about.
    """
    all_rows = cached.stored_runs()
    rows = [
        row
        for row in all_rows
        if (plan_filter(row.plan) if plan_filter else cached.has_scorer(row, *scorers))
    ]
    rows = without_archived(rows, "run")
    labels = run_labels(rows, with_tags=False) if rows else {}
    requested_id = st.query_params.get("run")
    if requested_id is None:
        run_ids = {row.id for row in all_rows if not row.is_archived} | set(labels)
        requested_id = default_run("-".join(("run", *scorers)), next(iter(labels), ""), run_ids)
        store_default("run", requested_id)
    if requested_id and requested_id not in labels:
        if not warn_of_unknown_runs(all_rows, "run"):
            render_unmeasured_run(requested_id, scorers)
        render_other_runs(labels)
        return None
    if not rows:
        names_text = " or ".join(map(repr, scorers))
        render_empty_state(
            f"No run has the scorer {names_text} yet.",
            page_path("new_run"),
            "Start one",
            {"measure": scorers[0]},
        )
        return None
    row_by_id = {row.id: row for row in rows}
    row: RunView = row_by_id[select_option("Run", labels, "run", requested_id)]
    warn_if_partial(row)
    if row.id in cached.unmeasured_runs() and current_status(row) in ("done", "stopped"):
        _render_nothing_measured(row)
    return row


def _render_nothing_measured(row: RunView) -> None:
    """Say that a run measured nothing, why if its model cannot read the suite, and what to do."""
    reason = unreadable_text(row) or "No measure of what the model does has a value."
    with st.container(border=True):
        st.markdown(f"**Nothing was measured.** {escape_markdown(reason)}")
        page_link("run", "The run and its reasons", "monitoring", {"run": row.id})


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
        st.page_link(page_path("runs"), label="All runs", icon=":material/history:")
    return bool(unknown_ids)


def render_unmeasured_run(run_id: str, scorers: Sequence[str]) -> None:
    """Say that a run did not measure what the page shows, and offer to measure it.

    Where the run's model cannot read its suite, measuring it would cost and find nothing: the page
    says that, and offers another model instead.
    """
    scorer, row = scorers[0], cached.stored_run(run_id)
    reason = unreadable_text(row)
    with st.container(border=True):
        name = shorten(short_model_name(row.model), 40)
        st.markdown(
            f"**Not measured in run {escape_markdown(run_id)}.** Model: {escape_markdown(name)};"
            f" the scorer is {scorer}."
        )
        if reason is not None:
            st.markdown(escape_markdown(reason))
            st.page_link(
                page_path("new_run"),
                label="Choose another model",
                icon=":material/arrow_forward:",
                query_params={"from": run_id, "measure": "model"},
            )
            return
        _render_related_page(row, scorer)
        n_text = noun_count(count_new_items(row, scorer), "item")
        st.page_link(
            page_path("new_run"),
            label=f"Measure this on {n_text} ({added_cost_text(row, scorer)})",
            icon=":material/play_arrow:",
            query_params={"from": run_id, "measure": scorer},
        )


def _render_related_page(row: RunView, scorer: str) -> None:
    """Link to the page on which a run has a like measure, where it has one."""
    for other, (page, text) in _RELATED_PAGES.get(scorer, {}).items():
        if cached.has_scorer(row, other):
            page_link(page, text, "arrow_forward", {"run": row.id})


def render_other_runs(labels: Mapping[str, str]) -> None:
    """Offer the runs that a page can show."""
    if not labels:
        st.caption("No other run measured it.")
        return

    def store_choice() -> None:
        write_address({"run": str(st.session_state["pick-measured-run"])})

    st.selectbox(
        "Another run that measured it",
        list(labels),
        index=None,
        format_func=labels.__getitem__,
        key="pick-measured-run",
        placeholder="Choose a run",
        on_change=store_choice,
    )


def pick_options(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: Sequence[str],
    help: str | None = None,
    stable_key: str = "",
) -> list[str]:
    """Choose several of ``labels`` (label by id), and return their ids.

    The address has each id under ``name``. Without a choice, the default is chosen; with a
    ``stable_key``, unique to the page, that of the session's first view.
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
    if stable_key:
        default_ids = stable_default(stable_key, default_ids, labels)
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
    n_archived = sum(row.is_archived for row in rows)
    if not n_archived:
        return list(rows)
    key = f"pick-{name}"

    def store_choice() -> None:
        write_address({name: "1" if st.session_state[key] else None})

    st.session_state[key] = known_param(name, ("1",)) == "1"
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


def pick_threshold() -> float:
    """Choose the score from which a response counts as unfaithful."""
    return float(
        st.slider(
            "Unfaithful from score",
            0.0,
            1.0,
            step=0.05,
            **bind_number("threshold", UNFAITHFUL_THRESHOLD, 0.0, 1.0),
            width=320,
            help=THRESHOLD_HELP,
        )
    )
