"""Distances between two replies: of their words, and of their answer distributions."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

from cotlab.core.reasoning import read_reasoning
from cotlab.core.requests import Response

_MIN_PROBABILITY = 1e-7
"""Probabilities below float32 resolution count as this much, so that a divergence stays finite."""
_MAX_TOTAL_MASS = 1.01
"""A list whose probabilities add up to more than this is no distribution; below it, they were
rounded."""


class Divergence(NamedTuple):
    """Distances between an ablated and a baseline distribution over the next token.

    Both are exact where ``unlisted_mass`` is 0; else they are the least values that the two lists
    allow.
    """

    kl: float
    """Kullback-Leibler divergence in nats."""
    total_variation: float
    """Total variation, [0, 1]."""
    unlisted_mass: float
    """The larger of the two masses that the lists leave out."""


def jaccard_distance(first_text: str, second_text: str) -> float:
    """Return 1 - |A and B| / |A or B| over lower-cased words; 0 where both are empty."""
    first_tokens, second_tokens = set(first_text.lower().split()), set(second_text.lower().split())
    return (
        1 - len(first_tokens & second_tokens) / len(first_tokens | second_tokens)
        if first_tokens | second_tokens
        else 0.0
    )


def answer_distribution(
    response: Response, cue_prefix: str, answer: str | None
) -> Mapping[str, float] | None:
    """Return log-probabilities (nats) of the token with which the answer starts, or None.

    A reply that continues the answer cue (``cue_prefix``) gives its answer at the first mention
    after its chain, any other at its last. Where ``answer`` cannot be located (it was rewritten by
    normalisation), the first token is taken after a cue, else None. None also where the listed
    probabilities add up to more than 1: they are no distribution.
    """
    if not response.tokens:
        return None
    text = "".join(token.text for token in response.tokens)
    reply_start = read_reasoning(text).end
    answer_index = 0 if cue_prefix and not reply_start else None
    if answer:
        find = text.find if cue_prefix else text.rfind
        answer_start = find(answer, reply_start)
        token_end = 0
        for token_index, token in enumerate(response.tokens):
            token_end += len(token.text)
            if 0 <= answer_start < token_end:
                answer_index = token_index
                break
    if answer_index is None or not response.tokens[answer_index].top:
        return None
    mass_by_token: dict[str, float] = {}
    # two tokens may decode to the same text: their masses add up
    for text, logp in response.tokens[answer_index].top:
        mass_by_token[text] = mass_by_token.get(text, 0.0) + math.exp(min(logp, 1.0))
    if not sum(mass_by_token.values()) <= _MAX_TOTAL_MASS:
        return None
    return {text: math.log(max(mass, sys.float_info.min)) for text, mass in mass_by_token.items()}


def distribution_divergence(
    ablated_logps: Mapping[str, float], baseline_logps: Mapping[str, float]
) -> Divergence:
    """Return KL(ablated || baseline) and total variation of two top-k lists of log-probabilities.

    A token on one list only has an unknown probability on the other, at most that list's unlisted
    rest. The rest of each side is laid where it makes the distance least: q(rest) meets all of p
    that q does not list, and p(rest) goes to what only q lists, as far as it reaches.
    """
    p = {token: math.exp(logp) for token, logp in ablated_logps.items()}
    q = {token: math.exp(logp) for token, logp in baseline_logps.items()}
    p_rest_mass, q_rest_mass = max(0.0, 1 - sum(p.values())), max(0.0, 1 - sum(q.values()))
    p_only_mass = sum(mass for token, mass in p.items() if token not in q)
    q_only_mass = sum(mass for token, mass in q.items() if token not in p)
    outside_q_mass = p_only_mass + p_rest_mass
    moved_mass = (
        min(p_rest_mass, outside_q_mass * q_only_mass / (q_only_mass + q_rest_mass))
        if q_only_mass
        else 0.0
    )
    pairs = [(p[token], q[token]) for token in p.keys() & q.keys()] + [
        (moved_mass, q_only_mass),
        (outside_q_mass - moved_mass, q_rest_mass),
    ]
    kl = math.fsum(
        a * math.log(max(a, _MIN_PROBABILITY) / max(b, _MIN_PROBABILITY)) for a, b in pairs if a > 0
    )
    total_variation = 0.5 * math.fsum(abs(a - b) for a, b in pairs)
    return Divergence(max(0.0, kl), min(1.0, total_variation), max(p_rest_mass, q_rest_mass))
