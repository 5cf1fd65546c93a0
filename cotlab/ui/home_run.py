"""The run on which Home opens, and what it says of other runs of the same model and suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from cotlab.analysis.verdict.planned import measures_reading
from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import cached, components, verdict
from cotlab.ui.text import escape_markdown, shorten

_MAX_CANDIDATES = 3
"""Most other runs of a model whose verdict is looked at, those with the most items first."""
_SHORT_RULES = ("too_few", "no_control")
"""Rules of a run that asks whether its chain is read, and has too little to say so."""


class OpeningRun(NamedTuple):
    """The run that Home opens on."""

    row: RunView
    """The run."""
    unmeasured: RunView | None = None
    """A newer run, which ended and measured nothing; None where there is none."""
    undecided: RunView | None = None
    """A newer run of the same model and suite, of which nothing can be said; None without one."""

    @property
    def label(self) -> str:
        """What Home calls it."""
        if self.undecided is not None:
            return "Another run of this model"
        return "Newest run" if self.unmeasured is None else "Newest run with a value"


def find_opening_run(rows: Sequence[RunView]) -> OpeningRun | None:
    """Return the newest run that is running or measured something; None where no run began.

    Where nothing can be said of it, and something of another run of its model on its suite, it is
    that one. Where every run measured nothing, it is the newest of them.
    """
    began = [row for row in rows if components.current_status(row) != "planned"]
    if not began:
        return None
    unmeasured = cached.unmeasured_runs()
    row = next((row for row in began if not _measured_nothing(row, unmeasured)), began[0])
    newer = None if row is began[0] else began[0]
    judged = _find_judged_run(row, began)
    return OpeningRun(row, newer) if judged is None else OpeningRun(judged, newer, row)


def _measured_nothing(row: RunView, unmeasured: frozenset[str]) -> bool:
    """Return whether a run has ended and measured nothing of its model."""
    return row.id in unmeasured and components.current_status(row) != "running"


def _find_judged_run(row: RunView, rows: Sequence[RunView]) -> RunView | None:
    """Return a run of this model and suite with a finding, where ``row`` has too little for one."""
    result = verdict.run_verdict(row)
    is_short = result is not None and result.verdict.rule in _SHORT_RULES
    if components.current_status(row) != "done" or not is_short:
        return None
    candidates = _runs_of_model(row, rows)[:_MAX_CANDIDATES]
    return next((other for other in candidates if _has_finding(other)), None)


def _has_finding(row: RunView) -> bool:
    result = verdict.run_verdict(row)
    return result is not None and result.verdict.mark != "unknown"


def _runs_of_model(row: RunView, rows: Sequence[RunView]) -> list[RunView]:
    """Return other runs of a model on its suite that measured if it reads its chain, by size."""
    unmeasured = cached.unmeasured_runs()
    others = [
        other
        for other in rows
        if (other.model, other.suite) == (row.model, row.suite)
        and other.id != row.id
        and other.id not in unmeasured
        and components.current_status(other) == "done"
        and measures_reading(other.plan)
    ]
    return sorted(others, key=lambda other: -other.n_items)


def render_opening_notes(opening: OpeningRun, rows: Sequence[RunView]) -> None:
    """Say which newer runs the page does not show, and link to one with more items."""
    if opening.unmeasured is not None:
        _render_note(opening.unmeasured, "A newer run measured nothing", "unmeasured-note")
    if opening.undecided is not None:
        result = verdict.run_verdict(opening.undecided)
        finding = "" if result is None else f" ({result.verdict.headline.rstrip('.')})"
        _render_note(opening.undecided, f"A newer run has no verdict{finding}", "undecided-note")
    _render_larger_run(opening.row, rows, opening.undecided)


def _render_note(row: RunView, text: str, key: str) -> None:
    name = escape_markdown(shorten(short_model_name(row.model), 40))
    suite_name = escape_markdown(shorten(row.suite_name, 40))
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        st.warning(f"{text}: {name} on {suite_name}.", width=560)
        components.page_link("run", "See why", "monitoring", {"run": row.id})


def _render_larger_run(row: RunView, rows: Sequence[RunView], undecided: RunView | None) -> None:
    """Link to a run of the same model and suite with more items, where there is one."""
    n_measured = _count_measured(row)
    candidates = _runs_of_model(row, rows)[:_MAX_CANDIDATES]
    largest = max(candidates, key=_count_measured, default=None)
    if largest is None or largest is undecided or _count_measured(largest) <= n_measured:
        return
    result = verdict.run_verdict(largest)
    finding = "" if result is None else f": {result.verdict.short}"
    n_text = noun_count(_count_measured(largest), "item")
    label = f"Another run of this model on this suite has {n_text}{finding}"
    components.page_link("run", label, "monitoring", {"run": largest.id})


def _count_measured(row: RunView) -> int:
    return verdict.count_measured_items(row, verdict.run_verdict(row))
