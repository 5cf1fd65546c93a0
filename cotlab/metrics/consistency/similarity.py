"""Consistency as numbers, from cosines and vectors alone: mean and spread of pairs, drift of steps, public against hidden."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from math import comb, sqrt
from statistics import fmean
from typing import NamedTuple

from cotlab.metrics.consistency.cards import MAX_FLOOR
from cotlab.stats.vectors import Floats, clusters, cosines, dtw_similarity
from cotlab.text.answers.extract import same_answer

CHOICES = 200
"""Most choices of public paraphrases that are averaged; beyond it as many are drawn."""
Vectors = Sequence[Sequence[float]]


class Spread(NamedTuple):
    """Mean, standard deviation (ddof 0) and C = mu(1 − sigma) of the similarities of all pairs; None where undefined."""

    mu: float | None
    sigma: float | None
    c: float | None


def pair_spread(pairs: Sequence[float]) -> Spread:
    """Of similarities in [-1, 1]: ``mu`` needs one pair, ``sigma`` and ``c`` two. ``c`` lies in [-1, 1]."""
    if not pairs:
        return Spread(None, None, None)
    mu = fmean(pairs)
    if len(pairs) < 2:
        return Spread(mu, None, None)
    sigma = sqrt(fmean([(pair - mu) ** 2 for pair in pairs]))
    return Spread(mu, sigma, mu * (1 - sigma))


def pair_similarities(similarity: Floats, among: Sequence[int]) -> list[float]:
    """The similarities of all pairs of the things ``among``."""
    return [float(similarity[i, j]) for i, j in combinations(among, 2)]


def rescaled(summary: Spread, floor: float | None) -> float | None:
    """(mu − floor)/(1 − floor) · (1 − sigma): 0 for unrelated chains, 1 for equal ones, at least −39; None where undefined."""
    if summary.mu is None or summary.sigma is None or floor is None or floor > MAX_FLOOR:
        return None
    return (summary.mu - floor) / (1 - floor) * (1 - summary.sigma)


def aligned(chains: Sequence[Vectors]) -> Spread:
    """As ``spread``, of the similarities of all pairs of chains by dynamic time warping over their steps."""
    similarities = [dtw_similarity(first, other) for first, other in combinations(chains, 2)]
    return pair_spread([value for value in similarities if value is not None])


def cluster_drift(chains: Sequence[Vectors], threshold: float) -> float | None:
    """1 − mean over all steps of the share of the other chains with a step in the same cluster: [0, 1], None below two."""
    if len(chains) < 2:
        return None
    labels = clusters(cosines([step for chain in chains for step in chain]), threshold)
    ends = [0]
    for chain in chains:
        ends.append(ends[-1] + len(chain))
    sets = [set(labels[start:end]) for start, end in zip(ends, ends[1:], strict=False)]
    shares = [
        fmean([float(label in other) for k, other in enumerate(sets) if k != i])
        for i, (start, end) in enumerate(zip(ends, ends[1:], strict=False))
        for label in labels[start:end]
    ]
    return min(1.0, max(0.0, 1 - fmean(shares)))


def agreement_share(answers: Sequence[str | None]) -> float | None:
    """Share of the comparable pairs of answers that are the same; None where no pair can be compared."""
    comparisons = [
        same_answer(a, b)
        for a, b in combinations([answer for answer in answers if answer is not None], 2)
    ]
    known = [same for same in comparisons if same is not None]
    return fmean(map(float, known)) if known else None


def public_hidden_difference(
    similarity: Floats, public: Sequence[int], hidden: Sequence[int], rng: random.Random
) -> float | None:
    """C of thing 0 with ``public`` things minus C of thing 0 with the ``hidden`` ones, as many at a time.

    The public side is the mean over all choices of as many as are hidden. Where thing and
    paraphrases are exchangeable, its expectation is 0: C depends on how many chains there are, so
    both sides have the same number. In [-2, 2]; None with fewer than two hidden things, or fewer
    public ones.
    """
    size = len(hidden)
    hidden_value = pair_spread(pair_similarities(similarity, (0, *hidden))).c
    if size < 2 or len(public) < size or hidden_value is None:
        return None
    if comb(len(public), size) <= CHOICES:
        chosen = [tuple(choice) for choice in combinations(public, size)]
    else:
        chosen = [tuple(rng.sample(list(public), size)) for _ in range(CHOICES)]
    public_values = [
        summary.c
        for choice in chosen
        if (summary := pair_spread(pair_similarities(similarity, (0, *choice)))).c is not None
    ]
    return fmean([c for c in public_values if c is not None]) - hidden_value
