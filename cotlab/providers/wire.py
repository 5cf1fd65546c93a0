"""What the vendors share: addresses, validation of replies, and the table of HTTP errors."""

from __future__ import annotations

import json
import math
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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
from cotlab.core.types import Form, ModelRef
from cotlab.providers.capabilities import Family
from cotlab.providers.keys import KEY_VARIABLES, without_keys

LIMITS = httpx2.Limits(max_connections=2_000, max_keepalive_connections=2_000, keepalive_expiry=15)
"""Connection pool: more connections than the runner has in flight, closed before vendors close
theirs."""
CONNECTION_ERRORS = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    ssl.SSLError,
    ConnectionError,
    UnicodeError,
)
"""What a connection may raise through a vendor's package. UnicodeError: a reply that is not in the
encoding it names."""
MAX_MESSAGE_CHARS = 300
"""Characters of a server's message that are shown."""
_HOST = re.compile(r"[\w.:%\[\]-]+")
"""Host and port of an address: api.openai.com, 127.0.0.1:8000, [::1]:80."""


def clean_base_url(url: str, *, without: tuple[str, ...] = ()) -> str:
    """Return a base address without the first of the endings ``without`` that it has.

    Raises
    ------
    ConfigError
        If it is no usable address.
    """
    try:
        components = urlsplit(url)
        usable = (
            components.scheme in ("http", "https")
            and bool(httpx2.URL(url).host)
            and components.port != 0
        )
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if (
        not usable
        or not _HOST.fullmatch(components.netloc)
        or components.query
        or components.fragment
    ):
        raise ConfigError(
            "--base-url takes http://HOST/PATH or https://HOST/PATH without a password; keys go"
            " elsewhere."
        )
    url = url.rstrip("/")
    return next((url.removesuffix(end) for end in without if url.endswith(end)), url)


def form_of(ref: ModelRef, family: Family) -> Form:
    """Return how the model receives a chain: as a chat turn or as a prefill.

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
    return "prefill" if ref.form == "prefill" else "chat"


class VendorRequest(NamedTuple):
    """A request in the vendor's form."""

    body: dict[str, Any]
    """What is sent."""
    sent: dict[str, Any]
    """Record of the parameters that are sent, without texts."""


def build_request(
    texts: dict[str, Any], parameters: dict[str, Any], *, prefix: bool, not_sent: tuple[str, ...]
) -> VendorRequest:
    """Combine texts and parameters into a vendor's request and its record."""
    form = {
        "given": "prefix" if prefix else "user",
        **({"not_sent": list(not_sent)} if not_sent else {}),
    }
    return VendorRequest({**parameters, **texts}, {**parameters, **form})


def build_response(request: Complete, sent: Mapping[str, Any], **fields: Any) -> Response:
    """Build a response to ``request``, received now."""
    return Response(request.key, sent=sent, received_at=datetime.now(UTC).isoformat(), **fields)


def without_surrogates(text: str) -> str:
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


def require_object(value: Any, what: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object; BadReply otherwise."""
    return value if isinstance(value, dict) else _missing(what, "object")


def require_list(value: Any, what: str) -> list[Any]:
    """Return ``value`` if it is a list; BadReply otherwise."""
    return value if isinstance(value, list) else _missing(what, "list")


def require_text(value: Any, what: str) -> str:
    """Return ``value`` if it is text; BadReply otherwise."""
    return without_surrogates(value) if isinstance(value, str) else _missing(what, "text")


def require_logprob(value: Any) -> float:
    """Return ``value`` if it is a finite number; BadReply otherwise."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1e300 < value < 1e300:
        _missing("log-probability", "finite number")
    return float(value)


def has_logprob(value: Any) -> bool:
    """Return whether an alternative has a finite log-probability; some servers send -inf."""
    return not isinstance(value, float) or math.isfinite(value)


def optional_object(value: Any) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def optional_text(value: Any) -> str:
    """Return ``value`` if it is text, else ""."""
    return without_surrogates(value) if isinstance(value, str) else ""


def parse_time(value: Any) -> datetime | None:
    """Return a time with its zone; None where ``value`` is none."""
    try:
        parsed = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else None


def optional_count(value: Any) -> int | None:
    """Return a number of tokens; None where the server sends none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def sum_known(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None where none is known."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the objects of a JSONL stream, skipping lines that are none."""
    rest = b""
    async for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            if (value := _object(line)) is not None:
                yield value
    if (value := _object(rest)) is not None:
        yield value


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _missing(what: str, kind: str) -> Any:
    raise BadReply(f"the server's reply does not have the promised form: {what} is no {kind}")


# Errors


def short_message(text: str) -> str:
    """Return a server's message without keys, on one line, shortened."""
    return " ".join(without_surrogates(without_keys(text)).split())[:MAX_MESSAGE_CHARS]


def error_from_status(
    status: int, message: str, provider: str, after_s: float | None = None
) -> ProviderError:
    """Return the error for an HTTP status.

    Errors of the key, the account, the model or the path, which no request of the run can avoid,
    are
    Unauthorised or NotFound.
    """
    message = short_message(message)
    if status == 401 or status == 403:
        return Unauthorised(
            f"the server refused the key ({status}): check {KEY_VARIABLES[provider]}. It says:"
            f" {message}"
        )
    if status == 402:
        return quota_error(message)
    if status == 404:
        return NotFound(f"the server knows no such model, or --base-url is wrong (404): {message}")
    if status == 429:
        return RateLimited(f"too many requests (429): {message}", after_s)
    if status >= 500 or status < 400 or status in (408, 409):
        return Unavailable(f"the server answered {status}: {message}")
    return Unsupported(f"the server answered {status}: {message}")


def quota_error(message: str) -> Unauthorised:
    """Return the error for an account without money or quota."""
    return Unauthorised(
        f"the account behind the key is out of money or quota: {short_message(message)}"
    )


def error_from_connection(error: BaseException) -> ProviderError:
    """Return the error for a failed connection, from its innermost cause."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    # The vendors' packages report a refused or broken connection as a time-out too, so aiohttp's
    # error decides.
    known = next((e for e in reversed(causes) if isinstance(e, aiohttp.ClientError)), None)
    timed_out = (
        isinstance(known, TimeoutError)
        if known
        else any(isinstance(e, httpx2.TimeoutException) for e in causes)
    )
    message = short_message(str(causes[-1]) or type(causes[-1]).__name__)
    if timed_out:
        return TimedOut(f"the server did not answer in time: {message}")
    return Unavailable(f"the server cannot be reached, or broke off: {message}")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait; None where it names none.

    The headers give milliseconds, seconds or a date.
    """
    wait = parse_wait_s(headers.get("retry-after-ms", ""), 1e-3)
    return parse_wait_s(headers.get("retry-after", "")) if wait is None else wait


def parse_wait_s(header: str, unit: float = 1.0) -> float | None:
    """Return the seconds of a number (times ``unit``) or a date; None if there is no wait."""
    try:
        wait = float(header) * unit
    except ValueError:
        try:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return wait if 0 <= wait < math.inf else None
