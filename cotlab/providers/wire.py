"""What the vendors' files share: addresses, careful reading of a reply, and the one table from HTTP status to error."""

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
"""More than the runner ever has in flight; a connection is kept no longer than vendors keep their
end open."""
CONNECTION_ERRORS = (
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.InvalidURL,
    aiohttp.ClientError,
    ssl.SSLError,
    ConnectionError,
    UnicodeError,
)
"""What a connection may raise through a vendor's package; the last for a reply that is not in the
encoding it names."""
MAX_MESSAGE_CHARS = 300
_HOST = re.compile(r"[\w.:%\[\]-]+")


def clean_base_url(url: str, *, without: tuple[str, ...] = ()) -> str:
    """A base address without the first of the endings ``without`` that it has; ConfigError where it cannot be used."""
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
    """How the model is given a chain; ConfigError where it was to begin the model's own turn and may not."""
    if ref.form == "prefill" and not family.prefill:
        raise ConfigError(
            f"{ref} ({family.name}) does not go on from the start of its own turn: leave out"
            " --given prefix."
        )
    return "prefill" if ref.form == "prefill" else "chat"


class VendorRequest(NamedTuple):
    """A request in the vendor's form, and the record of what is sent, without texts."""

    body: dict[str, Any]
    sent: dict[str, Any]


def build_request(
    texts: dict[str, Any], parameters: dict[str, Any], *, prefix: bool, not_sent: tuple[str, ...]
) -> VendorRequest:
    form = {
        "given": "prefix" if prefix else "user",
        **({"not_sent": list(not_sent)} if not_sent else {}),
    }
    return VendorRequest({**parameters, **texts}, {**parameters, **form})


def build_response(request: Complete, sent: Mapping[str, Any], **fields: Any) -> Response:
    return Response(request.key, sent=sent, received_at=datetime.now(UTC).isoformat(), **fields)


def without_surrogates(text: str) -> str:
    """``text`` without lone surrogates, which no file, no database and no server takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# Reading


def decode_body(body: bytes | str) -> Any:
    """The JSON of a reply; Unavailable where it is none, for it was cut, or something stands between us and the vendor."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(
            f"the server's reply was cut or is not JSON: {str(error)[:MAX_MESSAGE_CHARS]}"
        ) from error


def require_object(value: Any, what: str) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _missing(what, "object")


def require_list(value: Any, what: str) -> list[Any]:
    return value if isinstance(value, list) else _missing(what, "list")


def require_text(value: Any, what: str) -> str:
    return without_surrogates(value) if isinstance(value, str) else _missing(what, "text")


def require_logprob(value: Any) -> float:
    """A log-probability; BadReply where it is no finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1e300 < value < 1e300:
        _missing("log-probability", "finite number")
    return float(value)


def has_logprob(value: Any) -> bool:
    """Whether an alternative has a log-probability at all: some servers list those that cannot be, with minus infinity."""
    return not isinstance(value, float) or math.isfinite(value)


def optional_object(value: Any) -> Mapping[str, Any]:
    """A part of a reply that may be absent, or of no use."""
    return value if isinstance(value, dict) else {}


def optional_text(value: Any) -> str:
    return without_surrogates(value) if isinstance(value, str) else ""


def parse_time(value: Any) -> datetime | None:
    """A time with its zone, None where it is none."""
    try:
        parsed = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else None


def optional_count(value: Any) -> int | None:
    """A count of tokens, or None where the server gives none or no number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def sum_known(*counts: int | None) -> int | None:
    """The sum of what was told, None where nothing was."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """The objects of a JSONL stream. A line that is none is passed over: whatever it was, nobody can say for which request."""
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
    """A server's words without keys, on one line, and not too many of them."""
    return " ".join(without_surrogates(without_keys(text)).split())[:MAX_MESSAGE_CHARS]


def error_from_status(
    status: int, message: str, provider: str, after_s: float | None = None
) -> ProviderError:
    """The error for an HTTP status. What no request of the run could get past is Unauthorised: key, account, model, path."""
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
    return Unauthorised(
        f"the account behind the key is out of money or quota: {short_message(message)}"
    )


def error_from_connection(error: BaseException) -> ProviderError:
    """The error for a connection that failed, from the innermost of its causes."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    # The vendors' packages call a refused or broken connection a time-out too, so what aiohttp says
    # comes first.
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
    """Seconds to wait as the server asks, given in milliseconds, in seconds or as a date; None where there is no usable one."""
    wait = parse_wait_s(headers.get("retry-after-ms", ""), 1e-3)
    return parse_wait_s(headers.get("retry-after", "")) if wait is None else wait


def parse_wait_s(header: str, unit: float = 1.0) -> float | None:
    """A wait given as a number of ``unit`` seconds or as a date, where it can be waited."""
    try:
        wait = float(header) * unit
    except ValueError:
        try:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return wait if 0 <= wait < math.inf else None
