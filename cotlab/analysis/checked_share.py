"""How much of the chains a composite score checked, as text beside each r_raw."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN_SHARE_TEXT = "share checked not recorded"


def checked_share_text(estimates: Sequence[Mapping[str, Any]], r_raw: Mapping[str, Any]) -> str:
    """Return which share of the weight was checked, on average: "36 % checked".

    Parameters
    ----------
    estimates : sequence of mapping
        Estimates of one run: ``metric``, ``facet`` (a mapping or its JSON) and ``point``.
    r_raw : mapping
        The estimate of ``r_raw`` among them.
    """
    facet = _read_facet(r_raw)
    shares = [
        estimate["point"]
        for estimate in estimates
        if estimate["metric"] == "weight_checked" and _read_facet(estimate) == facet
    ]
    share = shares[0] if shares else None
    # a share is NaN in a table of pandas where it is undefined
    text = UNKNOWN_SHARE_TEXT if share is None or share != share else f"{share:.0%} checked"
    profile = facet.get("profile", "")
    return f"{text}, profile {profile}" if profile == "offline" else text


def composite_lines(estimates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each r_raw of a run: the mean, its items, and what was checked."""
    lines = []
    for estimate in estimates:
        if estimate["metric"] != "r_raw":
            continue
        point_text = "n/a" if estimate["point"] is None else f"{estimate['point']:.3f}"
        if estimate["lo"] is not None:
            point_text += f" [{estimate['lo']:.3f}, {estimate['hi']:.3f}]"
        line = (
            f"r_raw {point_text}, mean of {estimate['n']} items, undefined for"
            f" {estimate['n_undefined']}; {checked_share_text(estimates, estimate)}."
        )
        if _read_facet(estimate).get("profile") == "offline":
            line += (
                " Offline, a high value means that no false equation and no red flag was found, not"
                " that the chains are right."
            )
        lines.append(line)
    return lines


def _read_facet(estimate: Mapping[str, Any]) -> Mapping[str, str]:
    facet = estimate["facet"]
    parsed: Mapping[str, str] = json.loads(facet) if isinstance(facet, str) else facet
    return parsed
