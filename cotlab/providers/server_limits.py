"""What servers state in the headers of their replies: rate limits, and how long to wait."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from cotlab.core.provider import ServerLimits

_RATE_LIMIT_HEADERS = (
    (
        (
            "x-ratelimit-limit-requests",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ),
        "x-ratelimit-limit-tokens",
    ),
    (
        (
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ),
        "anthropic-ratelimit-tokens-limit",
    ),
)
"""Headers of the limit of requests, of those left and of the time when it is full again; and of the
limit of tokens. OpenAI, Groq, Together and vLLM's gateways use the first ones."""
_DURATION_PATTERN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ms|s|m|h|d)")
"""One part of a duration: 6m, 0.5s, 120ms."""
_SECONDS_BY_UNIT = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def read_server_limits(headers: Mapping[str, str]) -> ServerLimits | None:
    """Return the rate limits that a reply states in its headers; None where it states none."""
    for requests_names, tokens_name in _RATE_LIMIT_HEADERS:
        max_requests, requests_left, reset = (headers.get(name, "") for name in requests_names)
        server_limits = ServerLimits(
            _parse_count(max_requests),
            _parse_count(requests_left),
            parse_duration_s(reset),
            _parse_count(headers.get(tokens_name, "")),
        )
        if any(value is not None for value in server_limits):
            return server_limits
    return None


def parse_duration_s(text: str) -> float | None:
    """Return the seconds of a duration like 6m0s, of a number, or until a time; None otherwise."""
    parts = _DURATION_PATTERN.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _SECONDS_BY_UNIT[unit] for number, unit in parts)
    try:
        reset_at = datetime.fromisoformat(text)
    except ValueError:
        return parse_wait_s(text)
    if reset_at.tzinfo is None:
        return parse_wait_s(text)
    return max(0.0, (reset_at - datetime.now(UTC)).total_seconds())


def _parse_count(text: str) -> int | None:
    """Return a header's count; None where it holds none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the server requests; None if it requests none.

    The headers give milliseconds, seconds or a date.
    """
    wait_s = parse_wait_s(headers.get("retry-after-ms", ""), 1e-3)
    return parse_wait_s(headers.get("retry-after", "")) if wait_s is None else wait_s


def parse_wait_s(header: str, unit_s: float = 1.0) -> float | None:
    """Return the seconds of a number (times ``unit_s``) or a date; None if there is no wait."""
    try:
        wait_s = float(header) * unit_s
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return wait_s if 0 <= wait_s < math.inf else None
