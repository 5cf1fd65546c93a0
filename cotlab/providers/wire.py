"""Functions for all vendors: addresses, validation of replies, and the table of HTTP errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httpx2

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    NotFound,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import Form, ModelRef
from cotlab.providers.capabilities import Family
from cotlab.providers.http_client import MAX_BODY_BYTES
from cotlab.providers.keys import key_variable_of, mask_keys

_CONNECTION_ERRORS = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    OSError,
)
"""Errors of a connection; any other error is one of reading what came."""
_NEVER_SENT_ERRORS = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.InvalidURL,
    httpx2.UnsupportedProtocol,
)
"""Errors of a request that did not leave: there was no connection to send it on."""
_BILLABLE_STATUSES = (408, 502, 504, 520, 524)
"""Error statuses of a call that may have been processed: the server's own time-out, and a gateway
that lost the server's reply. Any other error status says that the model did not answer."""
MAX_MESSAGE_CHARS = 300
"""Characters of a server's message that are shown."""
_HOST_PATTERN = re.compile(r"[\w.:%\[\]-]+")
"""Host and port of an address: api.openai.com, 127.0.0.1:8000, [::1]:80."""


def clean_base_url(url: str, *, removed_suffixes: tuple[str, ...] = ()) -> str:
    """Return a base address without the first of the endings ``removed_suffixes`` that it has.

    Raises
    ------
    ConfigError
        If it is no usable address.
    """
    try:
        components = urlsplit(url)
        is_usable = (
            components.scheme in ("http", "https")
            and bool(httpx2.URL(url).host)
            and components.port != 0
        )
    except (ValueError, httpx2.InvalidURL):
        is_usable = False
    if (
        not is_usable
        or not _HOST_PATTERN.fullmatch(components.netloc)
        or components.query
        or components.fragment
    ):
        raise ConfigError(
            "--base-url takes http://HOST/PATH or https://HOST/PATH without a password; keys go"
            " elsewhere."
        )
    url = url.rstrip("/")
    return next(
        (url.removesuffix(suffix) for suffix in removed_suffixes if url.endswith(suffix)), url
    )


def resolve_form(ref: ModelRef, family: Family) -> Form:
    """Return how the model receives a chain: as a chat turn, as a prefill, or as raw text.

    Raises
    ------
    ConfigError
        If a prefill is requested and the model does not accept one.
    """
    if ref.form == "prefill" and not family.prefill:
        raise ConfigError(
            f"{ref} ({family.name}) does not go on from the start of its own turn: leave out"
            " --given prefix."
        )
    if ref.form == "continuation" and ref.endpoint == "completions":
        return "continuation"
    return "prefill" if ref.form == "prefill" else "chat"


class VendorRequest(NamedTuple):
    """A request in the vendor's form."""

    body: dict[str, Any]
    """What is sent."""
    sent_params: dict[str, Any]
    """Record of the parameters that are sent, without texts."""


def build_request(
    text_fields: dict[str, Any],
    parameters: dict[str, Any],
    *,
    has_prefix: bool,
    dropped_params: tuple[str, ...],
) -> VendorRequest:
    """Combine texts and parameters into a vendor's request and its record."""
    form_record = {
        "given": "prefix" if has_prefix else "user",
        **({"not_sent": list(dropped_params)} if dropped_params else {}),
    }
    return VendorRequest({**parameters, **text_fields}, {**parameters, **form_record})


def chat_messages(request: Complete) -> list[dict[str, str]]:
    """Return system prompt and turns of a request as OpenAI's interface writes them."""
    turns = [("system", request.system)] if request.system else []
    turns += [(message.role, message.content) for message in request.messages]
    return [{"role": role, "content": replace_surrogates(content)} for role, content in turns]


def build_response(
    request: Complete, sent_params: Mapping[str, Any], **response_fields: Any
) -> Response:
    """Build a response to ``request``, received now."""
    return Response(
        request.key, sent=sent_params, received_at=datetime.now(UTC).isoformat(), **response_fields
    )


def refusal_response(request: Complete, sent_params: Mapping[str, Any]) -> Response:
    """Return the response for a prompt that was rejected for its content."""
    return build_response(request, sent_params, finish="content_filter", refused=True)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which files, databases and servers reject."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# Validation of replies


def decode_body(body: bytes | str) -> Any:
    """Parse a JSON body.

    Raises
    ------
    Unavailable
        If it is not JSON: it was cut off, or comes from something between us and the vendor.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(
            f"the server's reply was cut or is not JSON: {str(error)[:MAX_MESSAGE_CHARS]}"
        ) from error


def require_object(value: Any, field_name: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object; BadReply otherwise."""
    return value if isinstance(value, dict) else _raise_bad_reply(field_name, "object")


def require_list(value: Any, field_name: str) -> list[Any]:
    """Return ``value`` if it is a list; BadReply otherwise."""
    return value if isinstance(value, list) else _raise_bad_reply(field_name, "list")


def require_objects(value: Any, field_name: str, entry_name: str) -> list[Mapping[str, Any]]:
    """Return ``value`` if it is a list of JSON objects; BadReply otherwise."""
    return [require_object(item, entry_name) for item in require_list(value, field_name)]


def require_id(value: Any) -> str:
    """Return the id of a JSON object; BadReply where ``value`` is none or has none."""
    return require_text(require_object(value, "it").get("id"), "id")


def require_text(value: Any, field_name: str) -> str:
    """Return ``value`` if it is text; BadReply otherwise."""
    return (
        replace_surrogates(value)
        if isinstance(value, str)
        else _raise_bad_reply(field_name, "text")
    )


def read_parts(parts: list[Any]) -> tuple[str | None, str]:
    """Return the text, None where there is none, and the reasoning of a list of content parts.

    Mistral sends ``{"type": "text", "text": …}`` and ``{"type": "thinking", "thinking": [parts]}``.

    Raises
    ------
    BadReply
        If a part is of another type, such as a tool call: a text without it may say something else.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    for part in require_objects(parts, "content", "part of the content"):
        part_type = part.get("type")
        if part_type == "text":
            texts.append(require_text(part.get("text"), "text"))
        elif part_type == "thinking":
            text, thought = read_parts(require_list(part.get("thinking"), "thinking"))
            thoughts.append((text or "") + thought)
        else:
            raise BadReply(
                "the server's reply holds a part that is neither text nor thinking:"
                f" {shorten_message(str(part_type))}"
            )
    return "".join(texts) if texts else None, "\n".join(thoughts)


def require_logprob(value: Any) -> float:
    """Return ``value`` if it is a finite number; BadReply otherwise."""
    return require_number(value, "log-probability")


def require_number(value: Any, field_name: str) -> float:
    """Return ``value`` if it is a finite number; BadReply otherwise."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1e300 < value < 1e300:
        _raise_bad_reply(field_name, "finite number")
    return float(value)


def has_logprob(value: Any) -> bool:
    """Return whether an alternative has a finite log-probability; some servers send -inf."""
    return not isinstance(value, float) or math.isfinite(value)


def optional_object(value: Any) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def optional_text(value: Any) -> str:
    """Return ``value`` if it is text, else ""."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def parse_time(value: Any) -> datetime | None:
    """Return a time with its zone; None where ``value`` is none."""
    try:
        parsed_time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return parsed_time if parsed_time.tzinfo else None


def optional_count(value: Any) -> int | None:
    """Return a number of tokens; None where the server sends none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def sum_known_counts(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None where none is known."""
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if known_counts else None


def model_ids(page: Mapping[str, Any]) -> list[str]:
    """Return the ids of a listing of models, sorted."""
    rows = require_objects(page.get("data"), "data", "model")
    return sorted(require_text(row.get("id"), "model's id") for row in rows)


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the objects of a JSONL stream, skipping lines that are none.

    Raises
    ------
    ValueError
        If a line is longer than ``MAX_BODY_BYTES``.
    """
    remainder = bytearray()
    async for chunk in chunks:
        remainder += chunk
        if b"\n" in chunk:
            *complete_lines, remainder = remainder.split(b"\n")
            for line in complete_lines:
                if (value := _parse_json_object(line)) is not None:
                    yield value
        elif len(remainder) > MAX_BODY_BYTES:
            raise ValueError(f"a line of it is longer than {MAX_BODY_BYTES:,} bytes")
    if (value := _parse_json_object(remainder)) is not None:
        yield value


def _parse_json_object(line: bytearray) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _raise_bad_reply(field_name: str, type_name: str) -> Any:
    raise BadReply(
        f"the server's reply does not have the promised form: {field_name} is no {type_name}"
    )


# Errors


@contextmanager
def mapped_errors(map_error: Callable[[Exception], ProviderError]) -> Iterator[None]:
    """Raise whatever a vendor's package raises within as what ``map_error`` makes of it.

    Which errors those can be depends on what a server sends: a body that is no UTF-8 or too long is
    a ValueError, one that is nested too deeply a RecursionError.
    """
    try:
        yield
    except Exception as error:
        raise map_error(error) from error


def shorten_message(text: str) -> str:
    """Return a server's message without keys and control characters, on one line, shortened."""
    return printable_line(replace_surrogates(mask_keys(text)))[:MAX_MESSAGE_CHARS]


def error_from_status(
    status: int, message: str, provider: str, retry_wait_s: float | None = None
) -> ProviderError:
    """Return the error for an HTTP status.

    Errors of the key, the account, the model or the path, which no request of the run can avoid,
    are Unauthorised or NotFound.
    """
    message = shorten_message(message)
    if status == 401 or status == 403:
        variable = key_variable_of(provider)
        hint = f"check {variable}" if variable else "name its variable by --role-key-variable"
        return Unauthorised(f"the server refused the key ({status}): {hint}. It says: {message}")
    if status == 402:
        return quota_error(message)
    if status == 404:
        return NotFound(f"the server knows no such model, or --base-url is wrong (404): {message}")
    if status == 429:
        return RateLimited(f"too many requests (429): {message}", retry_wait_s)
    if status >= 500 or status < 400 or status in (408, 409):
        return Unavailable(
            f"the server answered {status}: {message}",
            may_be_billed=status < 400 or status in _BILLABLE_STATUSES,
            retry_wait_s=retry_wait_s,
        )
    return Unsupported(f"the server answered {status}: {message}")


def quota_error(message: str) -> Unauthorised:
    """Return the error for an account without money or quota."""
    return Unauthorised(
        f"the account behind the key is out of money or quota: {shorten_message(message)}"
    )


def error_from_connection(error: BaseException) -> ProviderError:
    """Return the error for a failed connection or a reply that cannot be read.

    It is made from the innermost cause.
    """
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    # The vendors' packages report a refused or broken connection as a time-out too, so aiohttp's
    # error decides.
    aiohttp_error = next((e for e in reversed(causes) if isinstance(e, aiohttp.ClientError)), None)
    is_timeout = (
        isinstance(aiohttp_error, TimeoutError)
        if aiohttp_error
        else any(isinstance(e, httpx2.TimeoutException) for e in causes)
    )
    message = shorten_message(str(causes[-1]) or type(causes[-1]).__name__)
    if not any(isinstance(cause, _CONNECTION_ERRORS) for cause in causes):
        return BadReply(f"the server's reply cannot be read: {message}")
    may_be_billed = not (
        isinstance(aiohttp_error, _NEVER_SENT_ERRORS)
        if aiohttp_error
        else any(isinstance(e, _NEVER_SENT_ERRORS) for e in causes)
    )
    if is_timeout:
        return TimedOut(
            f"the server did not answer in time: {message}", may_be_billed=may_be_billed
        )
    return Unavailable(
        f"the server cannot be reached, or broke off: {message}", may_be_billed=may_be_billed
    )
