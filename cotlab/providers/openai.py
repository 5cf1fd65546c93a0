"""OpenAI: the chat interface, and batches, which cost half and take up to a day."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import httpx2

from cotlab.core.errors import ProviderError, RateLimited, Unavailable
from cotlab.core.provider import BatchState
from cotlab.core.requests import Complete, Request, Response
from cotlab.providers import wire
from cotlab.providers.openai_compat import (
    ERRORS,
    OpenAICompat,
    completion_parameters,
    error_from_body,
    is_refusal,
    map_openai_error,
    read_completion,
    refusal_response,
)

_PATH = "/v1/chat/completions"
_ENDED = ("completed", "failed", "expired", "cancelled")
_QUEUE_FULL = ("token_limit_exceeded", "request_limit_exceeded")
"""Error codes of a batch that failed because too many tokens or requests are waiting."""
_NAME = "cotlab"
"""Key of a batch's metadata that holds our name for it."""


class OpenAI(OpenAICompat):
    """A model of OpenAI.

    The key comes from OPENAI_API_KEY; ``ref.base_url`` may name a proxy.
    """

    home: ClassVar[str | None] = "https://api.openai.com/v1"
    limit: ClassVar[str] = "max_completion_tokens"

    async def submit(self, name: str, requests: Sequence[Request]) -> str:
        """Submit a batch: a file with one request a line, identified by ``request.key``."""
        lines = "".join(
            json.dumps(
                {"custom_id": key, "method": "POST", "url": _PATH, "body": vendor_request.body}
            )
            + "\n"
            for key, vendor_request in self._sendable(requests).items()
        )
        try:
            uploaded = await self._client.files.with_raw_response.create(
                file=(f"{name}.jsonl", lines.encode(), "application/jsonl"), purpose="batch"
            )
            created = await self._client.post(
                "/batches",
                cast_to=httpx2.Response,
                body={
                    "input_file_id": _id(wire.decode_body(uploaded.content)),
                    "endpoint": _PATH,
                    "completion_window": "24h",
                    "metadata": {_NAME: name},
                },
            )
        except ERRORS as error:
            raise map_openai_error(error, self.ref.provider) from error
        return _id(wire.decode_body(created.content))

    async def find(self, name: str, keys: Sequence[str], since: str) -> str | None:
        """Return the id of the batch named ``name``, newest first; None where there is none."""
        after: dict[str, str] = {}
        while True:
            page = await self._get("/batches", limit=100, **after)
            batches = [
                wire.require_object(batch, "batch")
                for batch in wire.require_list(page.get("data"), "data")
            ]
            for batch in batches:
                if wire.optional_object(batch.get("metadata")).get(_NAME) == name:
                    return _id(batch)
            if not batches or not page.get("has_more"):
                return None
            after = {"after": _id(batches[-1])}

    async def poll(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        record = await self._get(f"/batches/{batch}")
        counts = wire.optional_object(record.get("request_counts"))
        done = wire.sum_known(
            wire.optional_count(counts.get("completed")), wire.optional_count(counts.get("failed"))
        )
        return BatchState(
            record.get("status") in _ENDED, done or 0, wire.optional_count(counts.get("total")) or 0
        )

    async def results(
        self, batch: str, requests: Sequence[Request]
    ) -> Mapping[str, Response | ProviderError]:
        """Return the outcome of each request of a batch by key."""
        by_key = {request.key: request for request in requests if isinstance(request, Complete)}
        record = await self._get(f"/batches/{batch}")
        if record.get("status") == "failed":
            return dict.fromkeys(by_key, _batch_error(record, self.ref.provider))
        outcomes: dict[str, Response | ProviderError] = {}
        for name in ("output_file_id", "error_file_id"):
            if file_id := record.get(name):
                await self._read_file(str(file_id), by_key, outcomes)
        return outcomes

    def _sendable(self, requests: Sequence[Request]) -> dict[str, wire.VendorRequest]:
        """Return the requests in the vendor's form by key; Unsupported where one is impossible."""
        return {
            r.key: completion_parameters(r, self._family, self.limit)
            for r in requests
            if isinstance(r, Complete)
        }

    async def _read_file(
        self,
        file_id: str,
        by_key: Mapping[str, Complete],
        outcomes: dict[str, Response | ProviderError],
    ) -> None:
        try:
            async with self._client.files.with_streaming_response.content(file_id) as reply:
                async for line in wire.json_lines(reply.iter_bytes()):
                    if (
                        request := by_key.get(wire.optional_text(line.get("custom_id")))
                    ) is not None:
                        outcomes[request.key] = self._result(request, line)
        except ERRORS as error:
            raise map_openai_error(error, self.ref.provider) from error

    def _result(self, request: Complete, line: Mapping[str, Any]) -> Response | ProviderError:
        reply = wire.optional_object(line.get("response"))
        if not reply:  # the batch expired or was cancelled before it was answered
            failed = wire.optional_object(line.get("error"))
            return Unavailable(wire.short_message(f"{failed.get('code')}: {failed.get('message')}"))
        status, body = wire.optional_count(reply.get("status_code")) or 500, reply.get("body")
        error_body = wire.optional_object(wire.optional_object(body).get("error"))
        sent = completion_parameters(request, self._family, self.limit).sent
        if is_refusal(status, error_body.get("code")):
            return refusal_response(request, sent)
        if status != 200:
            return error_from_body(status, error_body, self.ref.provider)
        try:
            return read_completion(request, body, sent, self.ref.provider)
        except ProviderError as error:
            return error


def _id(value: Any) -> str:
    return wire.require_text(wire.require_object(value, "it").get("id"), "id")


def _batch_error(batch: Mapping[str, Any], provider: str) -> ProviderError:
    """Return why a batch was rejected as a whole after it was accepted."""
    listed = wire.optional_object(batch.get("errors")).get("data")
    first = wire.optional_object(listed[0]) if isinstance(listed, list) and listed else {}
    if first.get("code") in _QUEUE_FULL:
        return RateLimited(wire.short_message(wire.optional_text(first.get("message"))))
    return error_from_body(400, first, provider)
