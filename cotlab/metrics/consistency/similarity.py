"""The numbers of consistency, from cosines and vectors: of one item's chains, and of a run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb, sqrt
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import derive, resampling_seed
from cotlab.core.program import Params, Preparation, run_statistic
from cotlab.core.requests import Embed
from cotlab.core.types import Estimate, Item, Suite
from cotlab.metrics.cards import interval_estimate, mean_by_item, parse_facet
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.cards import MAX_FLOOR
from cotlab.metrics.equivalence import NOTHING_SETTLED, SettledAnswers
from cotlab.metrics.kit import NO_EMBEDDER_REASON, missing_reply_reason, reply_vector
from cotlab.stats.resample import bootstrap_mean
from cotlab.stats.vectors import Floats, clusters, cosines, dtw_similarity, pooled

MAX_CHAIN_CHOICES = 200
"""Most choices of public paraphrases that are averaged; beyond it as many are drawn."""
StepVectors = Sequence[Sequence[float]]


class SimilaritySpread(NamedTuple):
    """How similar the pairs of some chains are."""

    mu: float | None
    """Mean; None below one pair."""
    sigma: float | None
    """Standard deviation (ddof 0); None below two pairs."""
    c: float | None
    """mu(1 − sigma), in [-1, 1]; None below two pairs."""


def pair_spread(similarities: Sequence[float]) -> SimilaritySpread:
    """Return mean, standard deviation and C of similarities in [-1, 1]."""
    if not similarities:
        return SimilaritySpread(None, None, None)
    mu = fmean(similarities)
    if len(similarities) < 2:
        return SimilaritySpread(mu, None, None)
    sigma = sqrt(fmean([(similarity - mu) ** 2 for similarity in similarities]))
    return SimilaritySpread(mu, sigma, mu * (1 - sigma))


def pair_similarities(similarity: Floats, indices: Sequence[int]) -> list[float]:
    """Return the similarities of all pairs of the chains ``indices``."""
    return [float(similarity[i, j]) for i, j in combinations(indices, 2)]


def rescaled_consistency(spread: SimilaritySpread, floor: float | None) -> float | None:
    """Return (mu − floor)/(1 − floor) · (1 − sigma), in [-39, 1]; None where undefined.

    It is 0 for unrelated chains and 1 for equal ones.
    """
    if spread.mu is None or spread.sigma is None or floor is None or floor > MAX_FLOOR:
        return None
    return (spread.mu - floor) / (1 - floor) * (1 - spread.sigma)


def aligned_spread(chains: Sequence[StepVectors]) -> SimilaritySpread:
    """Return the spread over all pairs of chains, by dynamic time warping over their steps."""
    similarities = [
        dtw_similarity(first_chain, second_chain)
        for first_chain, second_chain in combinations(chains, 2)
    ]
    return pair_spread([value for value in similarities if value is not None])


def cluster_drift(chains: Sequence[StepVectors], threshold: float) -> float | None:
    """Return how far chains differ in their steps, [0, 1]; None below two chains.

    1 − mean over all steps of the share of the other chains with a step in the same cluster.
    """
    if len(chains) < 2:
        return None
    labels = clusters(cosines([step for chain in chains for step in chain]), threshold)
    chain_ends = [0]
    for chain in chains:
        chain_ends.append(chain_ends[-1] + len(chain))
    label_sets = [
        set(labels[start:end]) for start, end in zip(chain_ends, chain_ends[1:], strict=False)
    ]
    shares = [
        fmean([float(label in other_labels) for k, other_labels in enumerate(label_sets) if k != i])
        for i, (start, end) in enumerate(zip(chain_ends, chain_ends[1:], strict=False))
        for label in labels[start:end]
    ]
    return min(1.0, max(0.0, 1 - fmean(shares)))


def agreement_share(
    item: Item, answers: Sequence[str | None], settled: SettledAnswers = NOTHING_SETTLED
) -> float | None:
    """Return the share of pairs of answers that are the same; None where a pair is undecided."""
    comparisons = [
        settled.same(item, first_answer, second_answer)
        for first_answer, second_answer in combinations(
            [answer for answer in answers if answer is not None], 2
        )
    ]
    if None in comparisons or not comparisons:
        return None  # those that are the same alone would count
    return fmean(float(bool(is_same)) for is_same in comparisons)


def public_hidden_difference(
    similarity: Floats,
    public_indices: Sequence[int],
    hidden_indices: Sequence[int],
    rng: random.Random,
) -> float | None:
    """Return C of chain 0 with ``public_indices`` minus C with as many ``hidden_indices``.

    The public side is the mean over all choices of as many as are hidden. Where the chain and those
    of paraphrases are exchangeable, its expectation is 0: C depends on how many chains there are,
    so both sides have the same number. In [-2, 2]; None with fewer than two hidden chains, or fewer
    public ones.
    """
    n_hidden = len(hidden_indices)
    hidden_c = pair_spread(pair_similarities(similarity, (0, *hidden_indices))).c
    if n_hidden < 2 or len(public_indices) < n_hidden or hidden_c is None:
        return None
    if comb(len(public_indices), n_hidden) <= MAX_CHAIN_CHOICES:
        choices = [tuple(choice) for choice in combinations(public_indices, n_hidden)]
    else:
        choices = [
            tuple(rng.sample(list(public_indices), n_hidden)) for _ in range(MAX_CHAIN_CHOICES)
        ]
    public_spreads = [
        spread.c
        for choice in choices
        if (spread := pair_spread(pair_similarities(similarity, (0, *choice)))).c is not None
    ]
    return fmean([c for c in public_spreads if c is not None]) - hidden_c


# --- over a run


def measure_unrelated_similarity(suite: Suite, params: Params) -> Preparation:
    """Measure the mean cosine of the chains of different items.

    It is what a chain has in common with any other chain of the suite.

    Returns
    -------
    mapping of floor (cosine, None where it is undefined), floor_reason, floor_items (the ids that
    it rests on)
    """
    embedder = params.models.get("embedder")
    items_with_chain = [
        item for item in suite.items if any(step.text.strip() for step in item.steps)
    ]
    derive("consistency floor", suite.digest, params.seed).shuffle(items_with_chain)
    chosen_items = items_with_chain[: int(params.options["floor_chains"])]
    if embedder is None or len(chosen_items) < 2:
        reason = "fewer than two items have a reference chain" if embedder else NO_EMBEDDER_REASON
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    steps_by_item = {
        item.id: [step.text for step in item.steps if step.text.strip()] for item in chosen_items
    }
    texts = tuple(dict.fromkeys(text for chain in steps_by_item.values() for text in chain))
    replies = yield [Embed(embedder, (text,)) for text in texts]
    vector_by_text = dict(zip(texts, map(reply_vector, replies), strict=True))
    vector_by_item = {
        item_id: pooled([vector_by_text[text] or () for text in chain])
        for item_id, chain in steps_by_item.items()
        if all(map(vector_by_text.get, chain))
    }
    defined_vectors = {
        item_id: vector for item_id, vector in vector_by_item.items() if vector is not None
    }
    if len(defined_vectors) < 2:
        first_missing_reason = next(filter(None, map(missing_reply_reason, replies)), None)
        too_few_reason = "fewer than two reference chains have a vector"
        reason = (
            "the floor could not be measured:"
            f" {first_missing_reason[1] if first_missing_reason else too_few_reason}"
        )
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    similarity = cosines(list(defined_vectors.values()))
    return {
        "floor": fmean(pair_similarities(similarity, range(len(defined_vectors)))),
        "floor_reason": "",
        "floor_items": list(defined_vectors),
    }


@run_statistic(cards.PUBLIC_MINUS_HIDDEN, input_metrics=(cards.HOLDOUT_DIFFERENCE.name,))
def public_minus_hidden(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """Estimate public minus hidden C, paired by item; the interval resamples items.

    Its reason is a warning where it exceeds the threshold.
    """
    out = []
    warning_threshold = float(options["holdout_warn"])
    for facet, group in mean_by_item(table).groupby("facet", sort=True):
        defined_values = group["value"].dropna()
        interval = bootstrap_mean(defined_values.tolist(), seed=resampling_seed(seed))
        interval = replace(interval, method=f"paired by item, {interval.method}")
        if (interval.lo or 0) > 0 and (interval.point or 0) > warning_threshold:
            reason = (
                f"warning: chains of public paraphrases agree by {interval.point:.3f} more than"
                f" those of hidden ones, past the threshold {warning_threshold:g}: the model may"
                " have been fitted to the public ones"
            )
            interval = replace(interval, reason=reason)
        group_facet = parse_facet(facet, metric="consistency")
        n_undefined = len(group) - len(defined_values)
        name = cards.PUBLIC_MINUS_HIDDEN.name
        out.append(interval_estimate(name, group_facet, interval, n_undefined))
    return out
