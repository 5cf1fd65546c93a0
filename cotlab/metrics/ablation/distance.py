"""Distances between two replies: of their words, and of their answer distributions."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

from cotlab.core.requests import Response

_FLOOR = 1e-7
"""Probabilities below float32 resolution count as this much, so that a divergence stays finite."""
_MAX_MASS = 1.01
"""A list whose probabilities add up to more than this is no distribution; below it, they were
rounded."""


class Divergence(NamedTuple):
    """Distances between an ablated and a baseline distribution over the next token.

    Both are exact where ``rest`` is 0; else they are the least values that the two lists allow.
    """

    kl: float
    """Kullback-Leibler divergence in nats."""
    total_variation: float
    """Total variation, [0, 1]."""
    rest: float
    """The larger of the two masses that the lists leave out."""


def jaccard_distance(first: str, second: str) -> float:
    """Return 1 - |A and B| / |A or B| over lower-cased words; 0 where both are empty."""
    a, b = set(first.lower().split()), set(second.lower().split())
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def answer_distribution(
    response: Response, cue_prefix: str, answer: str | None
) -> Mapping[str, float] | None:
    """Return log-probabilities (nats) of the token with which the answer starts, or None.

    A reply that continues the answer cue (``cue_prefix``) gives its answer at the first mention,
    any other at its last. Where ``answer`` cannot be located (it was rewritten by normalisation),
    the first token is taken after a cue, else None. None also where the listed probabilities add up
    to more than 1: they are no distribution.
    """
    if not response.tokens:
        return None
    at = 0 if cue_prefix else None
    if answer:
        text = "".join(token.text for token in response.tokens)
        start = text.find(answer) if cue_prefix else text.rfind(answer)
        end = 0
        for i, token in enumerate(response.tokens):
            end += len(token.text)
            if 0 <= start < end:
                at = i
                break
    if at is None or not response.tokens[at].top:
        return None
    listed: dict[str, float] = {}
    # two tokens may decode to the same text: their masses add up
    for text, logp in response.tokens[at].top:
        listed[text] = listed.get(text, 0.0) + math.exp(min(logp, 1.0))
    if not sum(listed.values()) <= _MAX_MASS:
        return None
    return {text: math.log(max(mass, sys.float_info.min)) for text, mass in listed.items()}


def diverge(ablated: Mapping[str, float], baseline: Mapping[str, float]) -> Divergence:
    """Return KL(ablated || baseline) and total variation of two top-k lists of log-probabilities.

    A token on one list only has an unknown probability on the other, at most that list's unlisted
    rest. The rest of each side is laid where it makes the distance least: q(rest) meets all of p
    that q does not list, and p(rest) goes to what only q lists, as far as it reaches.
    """
    p = {token: math.exp(logp) for token, logp in ablated.items()}
    q = {token: math.exp(logp) for token, logp in baseline.items()}
    p_rest, q_rest = max(0.0, 1 - sum(p.values())), max(0.0, 1 - sum(q.values()))
    only_p = sum(mass for token, mass in p.items() if token not in q)
    only_q = sum(mass for token, mass in q.items() if token not in p)
    unlisted = only_p + p_rest
    moved = min(p_rest, unlisted * only_q / (only_q + q_rest)) if only_q else 0.0
    pairs = [(p[token], q[token]) for token in p.keys() & q.keys()] + [
        (moved, only_q),
        (unlisted - moved, q_rest),
    ]
    kl = math.fsum(a * math.log(max(a, _FLOOR) / max(b, _FLOOR)) for a, b in pairs if a > 0)
    apart = 0.5 * math.fsum(abs(a - b) for a, b in pairs)
    return Divergence(max(0.0, kl), min(1.0, apart), max(p_rest, q_rest))
