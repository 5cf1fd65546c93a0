"""Anthropic's message batches."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import anthropic_wire
import batches
from batches import Batch, Outcome
from http1 import Reply, Request
from state import State

PATH = "/v1/messages"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _json(told: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(told).encode())


def _missing() -> Reply:
    return _json(anthropic_wire.error(404, {"error": {"message": "batch not found"}}), 404)


def create(state: State, request: Request) -> Reply:
    asked = json.loads(request.body)
    state.saw(request, asked)
    requests = [
        (told.get("custom_id"), told.get("params") or {}) for told in asked.get("requests") or ()
    ]
    if why := _wrong([custom_id for custom_id, _ in requests]):
        return _json(anthropic_wire.invalid(why), 400)
    return _json(view(batches.start(state, "msgbatch", anthropic_wire, PATH, requests), request))


def _wrong(names: list[Any]) -> str | None:
    if not names:
        return "requests: List should have at least 1 item"
    for at, name in enumerate(names):
        if not isinstance(name, str) or not _ID.fullmatch(name):
            return f"requests.{at}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    return None if len({*names}) == len(names) else "requests: custom_id must be unique"


def _time(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


def view(batch: Batch, request: Request) -> dict[str, Any]:
    tally, ended = batch.tally(), batch.ended is not None
    url = f"http://{request.headers['host']}{PATH}/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "archived_at": None,
        "cancel_initiated_at": _time(batch.cancelled),
        "created_at": _time(batch.created),
        "ended_at": _time(batch.ended),
        "expires_at": _time(batch.created + 86400),
        "processing_status": (
            "ended" if ended else "in_progress" if batch.cancelled is None else "canceling"
        ),
        "request_counts": {
            "processing": 0 if ended else len(batch.requests),
            "succeeded": tally["done"],
            "errored": tally["errored"],
            "expired": tally["expired"],
            "canceled": tally["cancelled"],
        },
        "results_url": url if ended else None,
    }


def retrieve(state: State, request: Request, batch_id: str) -> Reply:
    state.saw(request, None)
    return (
        _json(view(state.batches[batch_id], request)) if batch_id in state.batches else _missing()
    )


def listed(state: State, request: Request) -> Reply:
    state.saw(request, None)
    ours = [batch for batch in state.batches.values() if batch.wire is anthropic_wire]
    told, more = batches.page(ours, request.query, "after_id")
    ends = {"first_id": told[0].id if told else None, "last_id": told[-1].id if told else None}
    return _json({"data": [view(batch, request) for batch in told], "has_more": more, **ends})


def cancel(state: State, request: Request, batch_id: str) -> Reply:
    state.saw(request, None)
    if batch_id not in state.batches:
        return _missing()
    batch = state.batches[batch_id]
    if batch.ended is not None:
        return _json(anthropic_wire.invalid("Batch has already ended and cannot be canceled."), 400)
    batches.cancel(state, batch)
    return _json(view(batch, request))


def results(state: State, request: Request, batch_id: str) -> Reply:
    state.saw(request, None)
    batch = state.batches.get(batch_id)
    if batch is None or batch.ended is None:
        return _missing()
    lines = (
        json.dumps({"custom_id": told.custom_id, "result": _result(told)})
        for told in batches.shuffled(batch)
    )
    return Reply(200, "".join(f"{line}\n" for line in lines).encode(), "application/x-jsonl")


def _result(outcome: Outcome) -> dict[str, Any]:
    if outcome.kind != "done":
        return {"type": {"cancelled": "canceled"}.get(outcome.kind, outcome.kind)}
    if outcome.status != 200:
        return {"type": "errored", "error": outcome.body}
    return {"type": "succeeded", "message": outcome.body}
