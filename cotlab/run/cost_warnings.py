"""Explain what makes the cost of a run uncertain: servers that report too many or no tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.providers.capabilities import family_of
from cotlab.store.overshoots import Overshoot


def over_reserve(seen: Overshoot) -> dict[str, Any]:
    """Return the entry of ``cost.over_reserve`` of a model whose replies cost more than reserved.

    ``tokens_in`` and ``tokens_out`` are the most tokens of one reply beyond those that its request
    allows, None where requests are redacted.
    """
    headroom = family_of(seen.model["provider"], seen.model["name"]).headroom if seen.model else 0
    return {
        "model": f"{seen.model['provider']}/{seen.model['name']}" if seen.model else None,
        "replies": seen.replies,
        "usd": seen.beyond / 1e6,
        "tokens_in": None if seen.beyond_in is None else max(0, seen.beyond_in),
        "tokens_out": None if seen.beyond_out is None else max(0, seen.beyond_out - headroom),
    }


def over_reserve_lines(cost: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each model that reported more tokens than were allowed."""
    lines = []
    for over in cost.get("over_reserve", ()):
        more = " and ".join(
            f"{over[f'tokens_{way}']:,} {way}put" for way in ("in", "out") if over[f"tokens_{way}"]
        )
        most = f", up to {more} tokens more in a reply" if more else ""
        lines.append(
            f"{over['model'] or 'The server'} reported more tokens than were allowed{most}:"
            f" {_replies(over['replies'])} cost ${over['usd']:,.6f} more than was reserved. The cap"
            " does not cover that; what was sent later reserved as much as had been reported."
        )
    return lines


def cost_warnings(cost: Mapping[str, Any]) -> list[str]:
    """Return all that a reader of the cost has to know, in sentences."""
    lines = over_reserve_lines(cost)
    if cost["held_usd"] and cost["replies_without_count"]:
        lines.append(
            f"{_replies(cost['replies_without_count'])} came without a usable count of tokens: the"
            " full reserve counts as the cost."
        )
    return lines


def _replies(n: int) -> str:
    return f"{n:,} {'reply' if n == 1 else 'replies'}"
