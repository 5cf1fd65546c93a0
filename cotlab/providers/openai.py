"""OpenAI: the chat interface, and batches, which cost half and take up to a day."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from cotlab.core.errors import ProviderError, RateLimited, Unavailable
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Request, Response
from cotlab.providers import wire
from cotlab.providers.openai_compat import (
    OpenAICompat,
    error_from_body,
    map_openai_error,
    read_completion,
)

_CHAT_PATH = "/v1/chat/completions"
_ENDED_STATUSES = ("completed", "failed", "expired", "cancelled")
_QUEUE_FULL_CODES = ("token_limit_exceeded", "request_limit_exceeded")
"""Error codes of a batch that failed because too many tokens or requests are waiting."""


class _Batch(wire.Body):
    id: str
    status: wire.Lenient[str] = None
    name: wire.Lenient[str] = wire.field_at("metadata.cotlab")
    n_completed: wire.Count = wire.field_at("request_counts.completed")
    n_failed: wire.Count = wire.field_at("request_counts.failed")
    n_requests: wire.Count = wire.field_at("request_counts.total")
    output_file_id: str | None = None
    error_file_id: str | None = None
    error: wire.Lenient[wire.ServerError] = wire.field_at("errors.data.0")
    """Why it was rejected as a whole after it was accepted."""


class _BatchPage(wire.Body):
    data: list[_Batch]
    has_more: wire.Lenient[bool] = None


class _BatchLine(wire.Body):
    status: wire.Count = wire.field_at("response.status_code")
    body: Any = wire.field_at("response.body")
    body_error: wire.Lenient[wire.ServerError] = wire.field_at("response.body.error")
    response: wire.Lenient[dict[str, Any]] = None
    """None where the batch expired or was cancelled before this request was answered."""
    error: wire.Lenient[wire.ServerError] = None


class OpenAI(OpenAICompat):
    """A model of OpenAI.

    The key comes from OPENAI_API_KEY; ``ref.base_url`` may name a proxy.
    """

    answers = frozenset({Complete.kind})
    default_base_url: ClassVar[str | None] = "https://api.openai.com/v1"
    max_tokens_name: ClassVar[str] = "max_completion_tokens"

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit a batch: a file with one request a line, identified by ``request.key``."""
        lines = "".join(
            json.dumps(
                {
                    "custom_id": request.key,
                    "method": "POST",
                    "url": _CHAT_PATH,
                    "body": self._parameters(request).body,
                }
            )
            + "\n"
            for request in requests
            if isinstance(request, Complete)
        )
        with wire.mapped_errors(map_openai_error, self._key_variable):
            upload_response = await self._client.files.with_raw_response.create(
                file=(f"{name}.jsonl", lines.encode(), "application/jsonl"), purpose="batch"
            )
        body = {
            "input_file_id": wire.read_body(
                wire.Named, wire.decode_body(upload_response.content)
            ).id,
            "endpoint": _CHAT_PATH,
            "completion_window": "24h",
            "metadata": {"cotlab": name},
        }
        return wire.read_body(wire.Named, await self._post("/batches", body)).id

    async def find(self, name: str, keys: Sequence[str], submitted_after: str) -> str | None:
        """Return the id of the batch named ``name``, newest first; None where there is none."""
        page_query: dict[str, str] = {}
        while True:
            page = wire.read_body(_BatchPage, await self._get("/batches", limit=100, **page_query))
            for batch in page.data:
                if batch.name == name:
                    return batch.id
            if not page.data or not page.has_more:
                return None
            page_query = {"after": page.data[-1].id}

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is."""
        batch = await self._batch(batch_id)
        n_done = (batch.n_completed or 0) + (batch.n_failed or 0)
        return BatchState(batch.status in _ENDED_STATUSES, n_done, batch.n_requests or 0)

    async def results(
        self, batch_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        batch = await self._batch(batch_id)
        if batch.status == "failed":
            batch_error = self._batch_error(batch.error or wire.ServerError())
            return dict.fromkeys((request.key for request in requests), batch_error)
        outcomes: dict[str, Response | ProviderError] = {}
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            stream = self._client.files.with_streaming_response.content(file_id)
            outcomes |= await self._read_outcomes(stream, requests, self._read_result)
        return outcomes

    async def _batch(self, batch_id: str) -> _Batch:
        return wire.read_body(_Batch, await self._get(f"/batches/{batch_id}"))

    def _batch_error(self, error: wire.ServerError) -> ProviderError:
        if error.code in _QUEUE_FULL_CODES:
            return RateLimited(wire.shorten_message(error.message or ""))
        return error_from_body(400, error, self._key_variable)

    def _read_result(
        self, request: Complete, line: Any, sent_params: Mapping[str, Any]
    ) -> Response:
        outcome = wire.read_body(_BatchLine, line)
        if not outcome.response:
            error = outcome.error or wire.ServerError()
            raise Unavailable(wire.shorten_message(f"{error.code}: {error.message}"))
        status = outcome.status or 500
        if status != 200:
            error = outcome.body_error or wire.ServerError()
            raise error_from_body(status, error, self._key_variable)
        return read_completion(request, outcome.body, sent_params, self._key_variable)
