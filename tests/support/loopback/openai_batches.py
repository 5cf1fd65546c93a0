"""OpenAI's files and batches: a JSONL file of requests goes in, one of replies and one of errors
come out."""

from __future__ import annotations

import json
import time
from typing import Any

import batches
import openai_wire
from batches import Batch, Outcome
from http1 import Reply, Request, form
from state import State

PATH = "/v1/chat/completions"
_CODES = {
    "expired": (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    "cancelled": (
        "batch_cancelled",
        "This request could not be executed before the batch was cancelled.",
    ),
}


def _json(told: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(told).encode())


def _missing(what: str) -> Reply:
    return _json(openai_wire.invalid(f"No such {what}."), 404)


def upload(state: State, request: Request) -> Reply:
    fields = form(request)
    if "file" not in fields or "purpose" not in fields:
        return _json(openai_wire.invalid("'file' and 'purpose' are required", param="file"), 400)
    name, content = fields["file"]
    purpose = fields["purpose"][1].decode()
    state.saw(
        request, {"purpose": purpose, "filename": name, "file": content.decode("utf-8", "replace")}
    )
    return _json(_keep(state, content, purpose, name or "upload"))


def _keep(state: State, content: bytes, purpose: str, name: str) -> dict[str, Any]:
    told = {
        "id": f"file-{len(state.files) + 1:06}",
        "object": "file",
        "bytes": len(content),
        "created_at": int(time.time()),
        "filename": name,
        "purpose": purpose,
        "status": "processed",
    }
    state.files[told["id"]] = (told, content)
    return told


def file(state: State, request: Request, file_id: str) -> Reply:
    state.saw(request, None)
    return _json(state.files[file_id][0]) if file_id in state.files else _missing("File object")


def content(state: State, request: Request, file_id: str) -> Reply:
    state.saw(request, None)
    if file_id not in state.files:
        return _missing("File object")
    return Reply(200, state.files[file_id][1], "application/octet-stream")


def create(state: State, request: Request) -> Reply:
    asked = json.loads(request.body)
    state.saw(request, asked)
    meta, lines = state.files.get(asked.get("input_file_id"), ({}, b""))
    if meta.get("purpose") != "batch":
        return _json(
            openai_wire.invalid(
                "Invalid 'input_file_id': no such batch file.", param="input_file_id"
            ),
            400,
        )
    if asked.get("endpoint") != PATH:
        return _json(openai_wire.invalid("Invalid 'endpoint'.", param="endpoint"), 400)
    requests, wrong = read(lines)
    batch = batches.start(
        state,
        "batch",
        openai_wire,
        PATH,
        () if wrong else requests,
        input_file_id=asked["input_file_id"],
        metadata=asked.get("metadata"),
        completion_window=asked.get("completion_window"),
        wrong=wrong,
        finish=_write,
    )
    return _json(view(batch) | {"status": "validating"})


def read(lines: bytes) -> tuple[list[tuple[str, dict[str, Any]]], list[dict[str, Any]]]:
    """The requests of a file and what is wrong with its lines; the service fails a batch with one
    wrong line whole."""
    requests: dict[str, dict[str, Any]] = {}
    wrong = []
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            told = json.loads(line)
            custom_id, asked = str(told["custom_id"]), dict(told["body"])
        except (ValueError, KeyError, TypeError):
            wrong.append(_wrong("invalid_json_line", "This line is not a request.", number))
            continue
        if told.get("url") != PATH or told.get("method") != "POST":
            wrong.append(
                _wrong(
                    "invalid_url", "The URL or method does not match the batch's endpoint.", number
                )
            )
        if custom_id in requests:
            wrong.append(
                _wrong("duplicate_custom_id", f"The custom_id '{custom_id}' is used twice.", number)
            )
        if requests and asked.get("model") != next(iter(requests.values())).get("model"):
            wrong.append(
                _wrong("mismatched_model", "All requests of a batch must be for one model.", number)
            )
        requests[custom_id] = asked
    if not requests and not wrong:
        wrong.append(_wrong("empty_file", "The file holds no request.", None))
    return list(requests.items()), wrong


def _wrong(code: str, message: str, line: int | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": None, "line": line}


def _write(state: State, batch: Batch) -> None:
    """Makes the two files; either is left out where it would be empty."""
    told = {"output": [], "error": []}
    for outcome in batches.shuffled(batch):
        told["output" if outcome.status == 200 else "error"].append(_line(outcome))
    for name, lines in told.items():
        if lines:
            text = "".join(json.dumps(line) + "\n" for line in lines)
            batch.facts[f"{name}_file_id"] = _keep(
                state, text.encode(), "batch_output", f"{batch.id}_{name}.jsonl"
            )["id"]


def _line(outcome: Outcome) -> dict[str, Any]:
    reply = error = None
    if outcome.kind == "done":
        reply = {
            "status_code": outcome.status,
            "request_id": f"req_{outcome.custom_id}",
            "body": outcome.body,
        }
    else:
        code, message = _CODES[outcome.kind]
        error = {"code": code, "message": message}
    return {
        "id": f"batch_req_{outcome.custom_id}",
        "custom_id": outcome.custom_id,
        "response": reply,
        "error": error,
    }


def _status(batch: Batch) -> str:
    if batch.ended is None:
        if batch.cancelled is not None:
            return "cancelling"
        return (
            "validating"
            if batch.validating()
            else "failed"
            if batch.facts["wrong"]
            else "in_progress"
        )
    if batch.facts["wrong"]:
        return "failed"
    return (
        "cancelled"
        if batch.cancelled is not None
        else "expired"
        if batch.tally()["expired"]
        else "completed"
    )


def view(batch: Batch) -> dict[str, Any]:
    status, tally, facts = _status(batch), batch.tally(), batch.facts
    failed = tally["errored"] + tally["expired"] + tally["cancelled"]
    done = batch.done_by_now() if status in ("in_progress", "cancelling") else tally["done"]
    times = {f"{status}_at": int(batch.ended)} if batch.ended else {}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.path,
        "status": status,
        "input_file_id": facts["input_file_id"],
        "completion_window": facts["completion_window"],
        "metadata": facts["metadata"],
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + 86400,
        "output_file_id": facts.get("output_file_id"),
        "error_file_id": facts.get("error_file_id"),
        "errors": {"object": "list", "data": facts["wrong"]} if status == "failed" else None,
        "request_counts": {"total": len(batch.requests), "completed": done, "failed": failed},
        **times,
    }


def _ours(state: State) -> list[Batch]:
    return [batch for batch in state.batches.values() if batch.wire is openai_wire]


def retrieve(state: State, request: Request, batch_id: str) -> Reply:
    state.saw(request, None)
    return (
        _json(view(state.batches[batch_id]))
        if batch_id in state.batches
        else _missing("Batch object")
    )


def listed(state: State, request: Request) -> Reply:
    state.saw(request, None)
    told, more = batches.page(_ours(state), request.query, "after")
    ends = {"first_id": told[0].id if told else None, "last_id": told[-1].id if told else None}
    return _json(
        {"object": "list", "data": [view(batch) for batch in told], "has_more": more, **ends}
    )


def cancel(state: State, request: Request, batch_id: str) -> Reply:
    state.saw(request, None)
    if batch_id not in state.batches:
        return _missing("Batch object")
    batch = state.batches[batch_id]
    if batch.ended is not None:
        return _json(
            openai_wire.invalid(f"Cannot cancel a batch with status '{_status(batch)}'."), 409
        )
    batches.cancel(state, batch)
    return _json(view(batch))
