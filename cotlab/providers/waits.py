"""How long a server asks to wait, in its headers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


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
