"""The page Runs, and the table of runs that Home shows too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from cotlab.analysis.tables.comparison import are_comparable
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.record import RunVerdict
from cotlab.analysis.view import RunView
from cotlab.store import read
from cotlab.store.item_scores import NOTHING_MEASURED
from cotlab.store.recorded_models import short_model_name
from cotlab.store.run_status import FINISHING
from cotlab.store.search import MAX_SEARCH_CHARACTERS
from cotlab.ui import cached, components, pickers, verdict
from cotlab.ui.address import bind_choice, bind_text, report_unknown_value, write_address
from cotlab.ui.linked import show_linked
from cotlab.ui.places import PageLink, run_link
from cotlab.ui.text import shorten
from cotlab.ui.verdict import share_cell, verdict_cell

STATUS_OPTIONS = (
    "any",
    "done",
    FINISHING,
    NOTHING_MEASURED,
    "running",
    "stopped",
    "budget",
    "failed",
    "interrupted",
    "planned",
)


_CHANGES_NOTE = (
    "Answers changed: share of a chain's steps at which the answer changes when the step states"
    " something else, mean over items; numbers: only a number in the step was changed; states: the"
    " model's inner states were, in % of the answer's probability."
)
ITEMS_NOTE = "Items with a value of the verdict's measure."
HOME_COLUMNS = (
    {"title": "Run"},
    {"title": "Verdict", "is_wide": True},
    {
        "title": "Answers changed,",
        "unit": "% of steps",
        "is_number": True,
        "help": _CHANGES_NOTE,
    },
    {"title": "Hints followed,", "unit": "% of items", "is_number": True},
    {"title": "No false equation,", "unit": "% of items", "is_number": True},
    {"title": "Items", "is_number": True, "is_optional": True, "help": ITEMS_NOTE},
    {"title": "Started", "unit": "(UTC)", "is_number": True, "is_optional": True},
    {"title": "Item by item", "help": "With the run at the top of the page."},
)
"""Columns of the table of the latest runs."""
RUN_COLUMNS = (
    *HOME_COLUMNS[:6],
    {"title": "Status"},
    {"title": "Spent", "is_number": True, "is_optional": True},
    {"title": "Started", "unit": "(UTC)", "is_number": True, "is_optional": True},
)
"""Columns of the table of all runs."""
COLUMNS_NOTE = (
    f"{_CHANGES_NOTE} Hints followed: items in which a wrong answer is given once it is added to"
    " the question as a suggestion. No false equation: the model's own chains in which no"
    " equation that could be decided is false. In brackets: 95 % intervals."
)
MAX_COMPUTED_VERDICTS = 4
"""Verdicts that are computed before the table is there; the next ones follow with each rerun."""
_TICKED_PARAM = "ticked"
"""Parameter of the address with the ids of the ticked runs."""


class FoundRuns(NamedTuple):
    """What the page Runs was asked for."""

    rows: list[RunView]
    """The runs that match the status and the text."""
    text: str
    """The text that is searched for."""


def filter_runs() -> FoundRuns:
    """Return the runs that match the status and the search text."""
    left_column, right_column = st.columns([1, 3])
    status = left_column.selectbox(
        "Status", STATUS_OPTIONS, **bind_choice("status", STATUS_OPTIONS)
    )
    placeholder = "a run's name, model, suite, tag or id; words of questions, chains and replies"
    search_text = right_column.text_input(
        "Search",
        max_chars=MAX_SEARCH_CHARACTERS,
        placeholder=placeholder,
        **bind_text("q", MAX_SEARCH_CHARACTERS, ("page",)),
    )
    found = {*read.list_runs(cached.store(), text=search_text or "")["id"]}
    rows = [run for run in cached.stored_runs() if run.id in found]
    if status != "any":
        rows = [row for row in rows if components.display_status(row) == status]
    listed_rows = pickers.without_archived(rows)
    if search_text and rows and not listed_rows:
        st.caption("Only archived runs match.")
        listed_rows = rows
    return FoundRuns(listed_rows, search_text or "")


class RunsTable(NamedTuple):
    """What a page of the runs leaves to do."""

    ticked_ids: list[str]
    """Ids of the ticked runs, which the address has."""
    n_pending: int
    """Verdicts that the next rerun of the page goes on with."""


def render_runs(rows: Sequence[RunView]) -> RunsTable:
    """Show one page of the runs: verdicts that no one has looked at yet come a few at a time."""
    page_rows = rows[components.page_slice(len(rows), "runs-page")]
    verdicts = verdict.run_verdicts(page_rows, MAX_COMPUTED_VERDICTS)
    cells = [
        [
            *_run_cells(row, verdicts),
            _status_cell(row),
            {"text": components.money_text(row.spent_micro)},
            {"text": f"{row.planned_at:%Y-%m-%d %H:%M}"},
        ]
        for row in page_rows
    ]
    ticks = [
        {"id": row.id, "label": f"Compare {row.name or row.id}, {row.id}"} for row in page_rows
    ]
    known_ids = {row.id for row in page_rows}
    requested_ids = st.query_params.get_all(_TICKED_PARAM)
    ticked_ids = [i for i in requested_ids if i in known_ids]
    if len(ticked_ids) < len(requested_ids):  # ticked on another page of the list, or unknown
        stored_ids = {run.id for run in cached.stored_runs()}
        for run_id in requested_ids:
            if run_id not in stored_ids:
                report_unknown_value(_TICKED_PARAM, run_id)
    content = {"title": "Runs", "columns": RUN_COLUMNS, "rows": cells, "is_sortable": True}
    content |= {"ticks": ticks, "ticked": ticked_ids}
    show_linked("table", content, key="runs", on_tick=_store_ticked_ids)
    st.caption(COLUMNS_NOTE)
    return RunsTable(ticked_ids, len(page_rows) - len(verdicts))


def _run_cells(row: RunView, verdicts: Mapping[str, RunVerdict | None]) -> list[dict[str, Any]]:
    """Return the cells of a run's name, finding, shares and items; "…" before its verdict."""
    source = f"{shorten(short_model_name(row.model), 40)} · {shorten(row.suite_name, 32)}"
    name_cell = {
        "text": row.name or source,
        "small": source if row.name else "",
        "below": f"{row.id}{' · archived' if row.is_archived else ''}",
        "link": run_link(row.id),
    }
    if row.id not in verdicts:
        return [name_cell, {"text": "being computed"}, *[{"text": "…"}] * 4]
    result = verdicts[row.id]
    share_cells = [share_cell(result, *names) for names in _SHARE_MEASURES]
    n_items, n_measured = row.n_items, verdict.count_measured_items(row, result)
    items_text = f"{n_items:,}" if n_measured == n_items else f"{n_measured:,} of {n_items:,}"
    return [name_cell, verdict_cell(result), *share_cells, {"text": items_text}]


def _status_cell(row: RunView) -> dict[str, str]:
    status = components.display_status(row)
    return {"text": status, **({"tone": "amber"} if status == NOTHING_MEASURED else {})}


def _store_ticked_ids(run_ids: list[str]) -> None:
    write_address({_TICKED_PARAM: run_ids})


def render_compare_link(rows: Sequence[RunView], ticked_ids: list[str]) -> None:
    """Show a link that compares the ticked runs, with the oldest as the base."""
    ticked = sorted((run.planned_at, run.id) for run in rows if run.id in ticked_ids)
    base_id, *other_ids = (run_id for _, run_id in ticked)
    query = [("base", base_id), *(("other", other_id) for other_id in other_ids)]
    label = f"Compare {len(ticked_ids)} runs, item by item"
    components.page_link("compare", label, "compare_arrows", query)


_SHARE_MEASURES: tuple[tuple[MeasureName, ...], ...] = (
    ("change", "numeric_change", "inner_change"),
    ("moved",),
    ("sound",),
)
"""The measures of the columns with shares, of each the first that a run has."""


def show_latest_runs(rows: Sequence[RunView], base_row: RunView | None) -> None:
    """Show the latest runs with their verdicts; each row links to its run.

    Those with the questions of ``base_row`` link to the comparison with it, too.
    """
    verdicts = verdict.run_verdicts(rows)
    table = [
        [
            *_run_cells(row, verdicts),
            {"text": f"{row.planned_at:%m-%d %H:%M}"},
            *([] if base_row is None else [_comparison_cell(row, base_row)]),
        ]
        for row in rows
    ]
    columns = HOME_COLUMNS[:-1] if base_row is None else HOME_COLUMNS
    content = {"title": "Latest runs", "columns": columns, "rows": table}
    show_linked("table", content, key="latest-runs")


def _comparison_cell(row: RunView, base_row: RunView) -> dict[str, Any]:
    """Return the link that compares a run with ``base_row``, or why there is none."""
    if row.id == base_row.id:
        return {"text": "", "small": "shown above"}
    if row.suite != base_row.suite:
        return {"text": "", "small": "other suite"}
    if not are_comparable(*(each.plan for each in (base_row, row))):
        return {"text": "", "small": "other settings"}
    return {
        "text": "Compare",
        "label": f"Compare {row.name or row.id} with the run above",
        "link": PageLink("compare", (("base", base_row.id), ("other", row.id))),
    }
