"""The runs that the page Compare compares, and what it says of the shown pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from cotlab.analysis.tables.comparison import order_by_epoch
from cotlab.analysis.view import RunView
from cotlab.ui import cached, components, run_notes
from cotlab.ui.address import write_address
from cotlab.ui.navigation import default_run
from cotlab.ui.pair.head import (
    pair_verdict,
    render_missing_measures,
    render_pair_verdict,
    run_names,
)
from cotlab.ui.pair.items import render_item_pairs
from cotlab.ui.pickers import (
    pick_options,
    run_labels,
    select_option,
    warn_of_unknown_runs,
    without_archived,
)
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict import run_verdict


class RunChoice(NamedTuple):
    """The runs that the page compares."""

    base: str
    """Id of the run that others are compared with."""
    others: tuple[str, ...]
    """Ids of the others."""
    pair_run: str
    """Id of the one whose pair with the base the page opens on."""
    label_by_run: dict[str, str]
    """Each run's label, by id."""
    row_by_run: dict[str, RunView]
    """Each run's row of the store, by id."""


def select_runs() -> RunChoice | None:
    """Choose a base and other runs; None (with a message) where there are not two."""
    all_rows = cached.stored_runs()
    if len(all_rows) < 2:
        components.render_heading("Compare", "What differs between two runs on the same items?")
        components.render_empty_state(
            "A comparison needs two runs on the same items.", "new_run", "Start a run"
        )
        return None
    if warn_of_unknown_runs(all_rows, "base", "other"):
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        context = st.empty()
        links = st.container(horizontal=True, vertical_alignment="center", width="content")
    with links:
        popover = st.popover("Change the runs")
    with popover:
        rows = without_archived(all_rows, "base", "other")
        if len(rows) < 2:
            st.info("All other runs are archived.")
            rows = all_rows
        label_by_run = run_labels(rows)
        row_by_id = {row.id: row for row in rows}
        base_id = select_option(
            "Base",
            label_by_run,
            "base",
            default_run(_default_base(rows), _runs_with_partner(rows)),
            cleared_params=_PAIR_PARAMS,
        )
        other_labels = {i: label for i, label in label_by_run.items() if i != base_id}
        proposed_run = _default_other(base_id, other_labels, row_by_id)
        chosen_runs = pick_options(
            "Compared with",
            other_labels,
            "other",
            [proposed_run],
            help="Several runs show how consistent a change is.",
        )
    if not chosen_runs:
        st.info("Choose a run to compare with the base.")
        return None
    chosen_runs = order_by_epoch(
        {i: (row_by_id[i].model, row_by_id[i].plan.tags) for i in chosen_runs}
    )
    pair_run = chosen_runs[0]
    if len(chosen_runs) > 1:
        pair_run = select_option("Run", {i: label_by_run[i] for i in chosen_runs}, "with")
    with links:
        # a link to the same page would leave the browser's address as it was
        st.button(
            "Swap", icon=":material/swap_horiz:", on_click=_open_pair, args=(pair_run, base_id)
        )
        names = run_names(row_by_id[base_id], row_by_id[pair_run])
        for name, run_id in zip(names, (base_id, pair_run), strict=True):
            label = f"Open {escape_markdown(name)}"
            components.page_link("run", label, "monitoring", {"run": run_id})
    suites = dict.fromkeys(row_by_id[i].suite_name for i in (base_id, pair_run))
    base_text, other_text = (
        f"**{escape_markdown(name)}**{_finding_text(row_by_id[run_id])}"
        for name, run_id in zip(names, (base_id, pair_run), strict=True)
    )
    context.caption(
        f"{base_text} compared with {other_text} · {escape_markdown(' and '.join(suites))}"
    )
    return RunChoice(base_id, tuple(chosen_runs), pair_run, label_by_run, row_by_id)


def _finding_text(row: RunView) -> str:
    """Return the verdict on a run in a few words, in brackets; "" where it has none."""
    result = run_verdict(row)
    return "" if result is None else f" (verdict: {escape_markdown(result.verdict.short)})"


def _open_pair(base: str, other: str) -> None:
    """Write a pair of runs into the address."""
    write_address({"base": base, "other": other}, preserved=())


_PAIR_PARAMS = ("item", "show", "q", "sort", "effect", "chain", "with")
"""What of the address belongs to one pair of runs."""


def _runs_with_partner(rows: Sequence[RunView]) -> list[str]:
    """Return the runs on whose suite there is another run."""
    n_by_suite = Counter(row.suite for row in rows)
    return [row.id for row in rows if n_by_suite[row.suite] > 1]


def _default_base(rows: Sequence[RunView]) -> str:
    """Return the older of the last two runs on one suite; without such a pair the oldest run."""
    measured = [row for row in rows if row.id not in cached.unmeasured_runs()] or list(rows)
    suites: set[str] = set()
    for row in measured:
        if row.suite in suites:
            return row.id
        suites.add(row.suite)
    return rows[-1].id


def _default_other(
    base_id: str, other_labels: Mapping[str, str], row_by_id: Mapping[str, RunView]
) -> str:
    """Return the run that is compared with a base where none is chosen: the newest on its suite."""
    suite = row_by_id[base_id].suite
    same_suite = (run for run in other_labels if row_by_id[run].suite == suite)
    return next(same_suite, next(iter(other_labels)))


def render_pair(choice: RunChoice) -> None:
    """Show what differs between the base and the shown run, and their items side by side."""
    base_row, other_row = (choice.row_by_run[i] for i in (choice.base, choice.pair_run))
    for row in (base_row, other_row):
        run_notes.render_run_notes(row, choice.label_by_run[row.id])
    names = run_names(base_row, other_row)
    result = pair_verdict(base_row, other_row)
    _warn_of_two_bad_verdicts(names, (base_row, other_row))
    unread = (_is_unread(base_row), _is_unread(other_row))
    render_pair_verdict(result, names, (base_row, other_row), unread)
    if result.reason is not None:
        st.info(escape_markdown(result.reason))
    if base_row.suite == other_row.suite:
        render_missing_measures(result, dict(zip(names, (base_row, other_row), strict=True)))
    render_item_pairs(base_row, other_row, names, result)


def _is_unread(row: RunView) -> bool:
    """Return whether the verdict on a run is that its answers do not come from its chains."""
    result = run_verdict(row)
    return result is not None and result.lamps[0].mark == "no"


def _warn_of_two_bad_verdicts(names: tuple[str, str], rows: tuple[RunView, RunView]) -> None:
    """Say that neither run's chains can be believed, before one of them looks the better one."""
    verdicts = [result.verdict for row in rows if (result := run_verdict(row)) is not None]
    if [verdict.mark for verdict in verdicts] == ["no", "no"]:
        texts = (f"{name} {v.short}" for name, v in zip(names, verdicts, strict=True))
        st.warning(f"Neither chain can be believed: {escape_markdown('; '.join(texts))}.")
