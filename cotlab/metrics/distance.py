"""Distances between two replies: of their words, and of their answer distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from cotlab.core.requests import Response

_FLOOR = 1e-7
"""Probabilities below float32 resolution count as this much, so that a divergence stays finite."""


class Divergence(NamedTuple):
    """Between an ablated and a baseline distribution over the next token.

    ``kl`` in nats, ``total_variation`` in [0, 1], ``rest`` the larger of the two masses that the lists leave out.
    Tokens that are on one list only count with the rest, so both distances are lower bounds when ``rest`` > 0.
    """

    kl: float
    total_variation: float
    rest: float


def jaccard_distance(first: str, second: str) -> float:
    """1 - |A and B| / |A or B| over lower-cased words; 0 where both are empty."""
    a, b = set(first.lower().split()), set(second.lower().split())
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def answer_distribution(response: Response, said_before: str, answer: str | None) -> Mapping[str, float] | None:
    """Log-probabilities (nats) of the token with which the answer starts, or None where the reply has none.

    ``answer`` is sought from the end of the reply; where it cannot be located (it was rewritten by normalisation), the
    first token is taken if the reply continues the answer cue, else None.
    """
    if not response.tokens:
        return None
    at = 0 if said_before else None
    if answer:
        start = "".join(token.text for token in response.tokens).rfind(answer)
        end = 0
        for i, token in enumerate(response.tokens):
            end += len(token.text)
            if 0 <= start < end:
                at = i
                break
    if at is None or not response.tokens[at].top:
        return None
    return dict(response.tokens[at].top)


def diverge(ablated: Mapping[str, float], baseline: Mapping[str, float]) -> Divergence:
    """KL(ablated || baseline) and total variation of two top-k lists of log-probabilities."""
    shared = ablated.keys() & baseline.keys()
    p = [math.exp(ablated[t]) for t in shared]
    q = [math.exp(baseline[t]) for t in shared]
    p_rest, q_rest = max(0.0, 1 - sum(p)), max(0.0, 1 - sum(q))
    pairs = [*zip(p, q, strict=True), (p_rest, q_rest)]
    kl = sum(a * math.log(max(a, _FLOOR) / max(b, _FLOOR)) for a, b in pairs if a > 0)
    rest = max(max(0.0, 1 - sum(map(math.exp, d.values()))) for d in (ablated, baseline))
    return Divergence(max(0.0, kl), min(1.0, 0.5 * sum(abs(a - b) for a, b in pairs)), rest)
