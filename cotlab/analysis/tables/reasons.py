"""Why numbers are missing, counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def in_common(reasons: Iterable[Any]) -> dict[str, int]:
    """Reasons counted, the commonest first; those that differ in their numbers only are one, with "…" where they differ."""
    alike: dict[str, list[str]] = {}
    for reason in map(str, reasons):
        alike.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    found: dict[str, int] = {}
    for own in alike.values():
        columns = zip(*map(_NUMBER.findall, own), strict=True)
        values = [column[0] if len(set(column)) == 1 else "…" for column in columns]
        between = _NUMBER.split(own[0])
        found["".join(text + value for text, value in zip(between, [*values, ""], strict=True))] = len(own)
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
