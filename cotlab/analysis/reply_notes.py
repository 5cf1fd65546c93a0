"""What the replies of a run leave open, computed once and kept in the store when the run ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cotlab.analysis.cut_replies import cut_reply_records
from cotlab.analysis.restated_steps import restated_step_record
from cotlab.analysis.view import RunView
from cotlab.store.run_results import ResultKind, RunState, keep_results, read_results

RULES_VERSION = "1"
"""Raised whenever a run would have other notes."""


def stored_cut_replies(view: RunView) -> list[dict[str, Any]]:
    """Return the replies of a run that were cut off, as ``cut_reply_records`` does."""
    records: list[dict[str, Any]] = _stored_value(
        view, "cut_replies", lambda: cut_reply_records(view.store, view.id, view.plan)
    )
    return records


def stored_restated_steps(view: RunView) -> dict[str, Any] | None:
    """Return how many replies restate a removed step, as ``restated_step_record`` does."""
    record: dict[str, Any] | None = _stored_value(
        view, "restated_steps", lambda: restated_step_record(view)
    )
    return record


def _stored_value(view: RunView, kind: ResultKind, compute: Callable[[], Any]) -> Any:
    """Return what is kept of a run; else compute it and keep it, where the run has ended."""
    state = RunState(view.id, view.revision, view.status)
    text = read_results(view.store, kind, [state], RULES_VERSION).get(state)
    if text is not None:
        with suppress(ValueError):  # what cannot be read is computed anew
            return json.loads(text)
    value = compute()
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    keep_results(view.store, kind, {state: text}, RULES_VERSION)
    return value
