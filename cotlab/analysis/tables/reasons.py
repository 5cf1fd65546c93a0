"""Why numbers are missing, counted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def count_reasons(reasons: Iterable[Any]) -> dict[str, int]:
    """Reasons counted, the commonest first; those that differ in their numbers only are one, with "…" where they differ."""
    groups: dict[str, list[str]] = {}
    for reason in map(str, reasons):
        groups.setdefault(_NUMBER.sub("#", reason), []).append(reason)
    counts: dict[str, int] = {}
    for variants in groups.values():
        columns = zip(*map(_NUMBER.findall, variants), strict=True)
        values = [column[0] if len(set(column)) == 1 else "…" for column in columns]
        between = _NUMBER.split(variants[0])
        counts[
            "".join(text + value for text, value in zip(between, [*values, ""], strict=True))
        ] = len(variants)
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))
