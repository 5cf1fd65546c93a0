"""The numbers of consistency, from cosines and vectors: of one item's chains, and of a run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb, sqrt
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import Params, Preparation, over_run
from cotlab.core.requests import Embed, Reply, Response
from cotlab.core.rng import derive, derive_seed
from cotlab.core.types import Estimate, Suite
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.cards import MAX_FLOOR
from cotlab.metrics.kit import NO_EMBEDDER, facet_of, mean_by_item, missing_reply
from cotlab.stats.resample import bootstrap_mean
from cotlab.stats.vectors import Floats, clusters, cosines, dtw_similarity, pooled
from cotlab.text.answers.extract import same_answer

CHOICES = 200
"""Most choices of public paraphrases that are averaged; beyond it as many are drawn."""
Vectors = Sequence[Sequence[float]]


class Spread(NamedTuple):
    """How similar the pairs of some chains are."""

    mu: float | None
    """Mean; None below one pair."""
    sigma: float | None
    """Standard deviation (ddof 0); None below two pairs."""
    c: float | None
    """mu(1 − sigma), in [-1, 1]; None below two pairs."""


def pair_spread(pairs: Sequence[float]) -> Spread:
    """Return mean, standard deviation and C of similarities in [-1, 1]."""
    if not pairs:
        return Spread(None, None, None)
    mu = fmean(pairs)
    if len(pairs) < 2:
        return Spread(mu, None, None)
    sigma = sqrt(fmean([(pair - mu) ** 2 for pair in pairs]))
    return Spread(mu, sigma, mu * (1 - sigma))


def pair_similarities(similarity: Floats, among: Sequence[int]) -> list[float]:
    """Return the similarities of all pairs of the chains ``among``."""
    return [float(similarity[i, j]) for i, j in combinations(among, 2)]


def rescaled(summary: Spread, floor: float | None) -> float | None:
    """Return (mu − floor)/(1 − floor) · (1 − sigma), in [-39, 1]; None where undefined.

    It is 0 for unrelated chains and 1 for equal ones.
    """
    if summary.mu is None or summary.sigma is None or floor is None or floor > MAX_FLOOR:
        return None
    return (summary.mu - floor) / (1 - floor) * (1 - summary.sigma)


def aligned(chains: Sequence[Vectors]) -> Spread:
    """Return the spread over all pairs of chains, by dynamic time warping over their steps."""
    similarities = [dtw_similarity(first, other) for first, other in combinations(chains, 2)]
    return pair_spread([value for value in similarities if value is not None])


def cluster_drift(chains: Sequence[Vectors], threshold: float) -> float | None:
    """Return how far chains differ in their steps, [0, 1]; None below two chains.

    1 − mean over all steps of the share of the other chains with a step in the same cluster.
    """
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
    """Return the share of pairs of answers that are the same; None if none can be compared."""
    comparisons = [
        same_answer(a, b)
        for a, b in combinations([answer for answer in answers if answer is not None], 2)
    ]
    known = [same for same in comparisons if same is not None]
    return fmean(map(float, known)) if known else None


def public_hidden_difference(
    similarity: Floats, public: Sequence[int], hidden: Sequence[int], rng: random.Random
) -> float | None:
    """Return C of chain 0 with ``public`` chains minus C with as many ``hidden`` ones.

    The public side is the mean over all choices of as many as are hidden. Where the chain and those
    of paraphrases are exchangeable, its expectation is 0: C depends on how many chains there are,
    so both sides have the same number. In [-2, 2]; None with fewer than two hidden chains, or fewer
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


# --- over a run


def unrelated_floor(suite: Suite, params: Params) -> Preparation:
    """Measure the mean cosine of the chains of different items.

    It is what a chain has in common with any other chain of the suite.

    Returns
    -------
    mapping of floor (cosine, None where it is undefined), floor_reason, floor_items (the ids that
    it rests on)
    """
    embedder = params.models.get("embedder")
    with_chain = [item for item in suite.items if any(step.text.strip() for step in item.steps)]
    derive("consistency floor", suite.digest, params.seed).shuffle(with_chain)
    chosen = with_chain[: int(params.options["floor_chains"])]
    if embedder is None or len(chosen) < 2:
        reason = "fewer than two items have a reference chain" if embedder else NO_EMBEDDER
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    steps = {item.id: [step.text for step in item.steps if step.text.strip()] for item in chosen}
    texts = tuple(dict.fromkeys(text for chain in steps.values() for text in chain))
    replies = yield [Embed(embedder, (text,)) for text in texts]
    known = dict(zip(texts, map(reply_vector, replies), strict=True))
    chain_vectors = {
        name: pooled([known[text] or () for text in chain])
        for name, chain in steps.items()
        if all(map(known.get, chain))
    }
    vectors = {name: vector for name, vector in chain_vectors.items() if vector is not None}
    if len(vectors) < 2:
        missing = next(filter(None, map(missing_reply, replies)), None)
        few = "fewer than two reference chains have a vector"
        reason = f"the floor could not be measured: {missing[1] if missing else few}"
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    similarity = cosines(list(vectors.values()))
    return {
        "floor": fmean(pair_similarities(similarity, range(len(vectors)))),
        "floor_reason": "",
        "floor_items": list(vectors),
    }


def reply_vector(reply: Reply) -> tuple[float, ...] | None:
    """Return the vector of a reply to one text; None where there is none with a direction."""
    if (
        not isinstance(reply, Response)
        or reply.refused
        or not reply.vectors
        or len(reply.vectors) != 1
    ):
        return None
    return reply.vectors[0] if pooled(reply.vectors) is not None else None


@over_run(cards.PUBLIC_MINUS_HIDDEN, reads=(cards.HIDDEN.name,))
def public_minus_hidden(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """Estimate public minus hidden C, paired by item; the interval resamples items.

    Its reason is a warning where it exceeds the threshold.
    """
    out = []
    warn = float(options["holdout_warn"])
    for facet, group in mean_by_item(table).groupby("facet", sort=True):
        known = group["value"].dropna()
        interval = bootstrap_mean(known.tolist(), seed=derive_seed("holdout", seed, facet))
        reason = interval.reason
        if (
            interval.point is not None
            and interval.lo is not None
            and interval.lo > 0
            and interval.point > warn
        ):
            reason = (
                f"warning: chains of public paraphrases agree by {interval.point:.3f} more than"
                f" those of hidden ones, past the threshold {warn:g}: the model may have been"
                " fitted to the public ones"
            )
        out.append(
            Estimate(
                cards.PUBLIC_MINUS_HIDDEN.name,
                facet_of(facet, metric="consistency"),
                interval.point,
                interval.lo,
                interval.hi,
                interval.level,
                interval.n,
                len(group) - len(known),
                f"paired by item, {interval.method}",
                "items",
                reason,
            )
        )
    return out
