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
    completion_parameters,
    error_from_body,
    is_refusal,
    read_completion,
)

_CHAT_PATH = "/v1/chat/completions"
_ENDED_STATUSES = ("completed", "failed", "expired", "cancelled")
_QUEUE_FULL_CODES = ("token_limit_exceeded", "request_limit_exceeded")
"""Error codes of a batch that failed because too many tokens or requests are waiting."""
_BATCH_NAME_KEY = "cotlab"
"""Key of a batch's metadata that holds our name for it."""


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
                {"custom_id": key, "method": "POST", "url": _CHAT_PATH, "body": vendor_request.body}
            )
            + "\n"
            for key, vendor_request in self._vendor_requests(requests).items()
        )
        with self._mapped_errors():
            upload_response = await self._client.files.with_raw_response.create(
                file=(f"{name}.jsonl", lines.encode(), "application/jsonl"), purpose="batch"
            )
        body = {
            "input_file_id": wire.require_id(wire.decode_body(upload_response.content)),
            "endpoint": _CHAT_PATH,
            "completion_window": "24h",
            "metadata": {_BATCH_NAME_KEY: name},
        }
        return wire.require_id(await self._post("/batches", body))

    async def find(self, name: str, keys: Sequence[str], submitted_after: str) -> str | None:
        """Return the id of the batch named ``name``, newest first; None where there is none."""
        page_query: dict[str, str] = {}
        while True:
            page = await self._get("/batches", limit=100, **page_query)
            batches = wire.require_objects(page.get("data"), "data", "batch")
            for batch in batches:
                if wire.optional_object(batch.get("metadata")).get(_BATCH_NAME_KEY) == name:
                    return wire.require_id(batch)
            if not batches or not page.get("has_more"):
                return None
            page_query = {"after": wire.require_id(batches[-1])}

    async def poll(self, batch_id: str) -> BatchState:
        """Return how far a batch is."""
        record = await self._get(f"/batches/{batch_id}")
        request_counts = wire.optional_object(record.get("request_counts"))
        n_done = wire.sum_known_counts(
            wire.optional_count(request_counts.get("completed")),
            wire.optional_count(request_counts.get("failed")),
        )
        return BatchState(
            record.get("status") in _ENDED_STATUSES,
            n_done or 0,
            wire.optional_count(request_counts.get("total")) or 0,
        )

    async def results(
        self, batch_id: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        record = await self._get(f"/batches/{batch_id}")
        if record.get("status") == "failed":
            batch_error = _batch_error(record, self.ref.provider)
            return dict.fromkeys((request.key for request in requests), batch_error)
        outcomes: dict[str, Response | ProviderError] = {}
        for name in ("output_file_id", "error_file_id"):
            if file_id := record.get(name):
                stream = self._client.files.with_streaming_response.content(str(file_id))
                outcomes |= await self._read_outcomes(stream, requests, self._read_result)
        return outcomes

    def _vendor_requests(self, requests: Sequence[Request]) -> dict[str, wire.VendorRequest]:
        """Return the requests in the vendor's form by key; Unsupported where one is impossible."""
        return {
            r.key: completion_parameters(r, self._family, self.max_tokens_name)
            for r in requests
            if isinstance(r, Complete)
        }

    def _read_result(self, request: Complete, line: Mapping[str, Any]) -> Response | ProviderError:
        reply = wire.optional_object(line.get("response"))
        if not reply:  # the batch expired or was cancelled before it was answered
            line_error = wire.optional_object(line.get("error"))
            return Unavailable(
                wire.shorten_message(f"{line_error.get('code')}: {line_error.get('message')}")
            )
        status, body = wire.optional_count(reply.get("status_code")) or 500, reply.get("body")
        error_body = wire.optional_object(wire.optional_object(body).get("error"))
        sent_params = completion_parameters(request, self._family, self.max_tokens_name).sent_params
        if is_refusal(status, error_body.get("code")):
            return wire.refusal_response(request, sent_params)
        if status != 200:
            return error_from_body(status, error_body, self.ref.provider)
        try:
            return read_completion(request, body, sent_params, self.ref.provider)
        except ProviderError as error:
            return error


def _batch_error(batch: Mapping[str, Any], provider: str) -> ProviderError:
    """Return why a batch was rejected as a whole after it was accepted."""
    errors = wire.optional_object(batch.get("errors")).get("data")
    first_error = wire.optional_object(errors[0]) if isinstance(errors, list) and errors else {}
    if first_error.get("code") in _QUEUE_FULL_CODES:
        return RateLimited(wire.shorten_message(wire.optional_text(first_error.get("message"))))
    return error_from_body(400, first_error, provider)
