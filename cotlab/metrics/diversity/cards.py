"""The cards of diversity: what each score is, its range, and what it does not show."""

from __future__ import annotations

from typing import Literal

from cotlab.core.types import Level, MetricCard

MAX_PATHS = 64
PRIVATE_SOURCE = "Practical Chain-of-Thought Reliability Metrics for AI Safety, section 6"
_GAPS = (
    "Also where a path's reply or one of its vectors is missing or refused, a path has no steps, or"
    " there is no embedder: the number of paths is part of the number, so none is left out."
)
_CHAIN_CAVEAT = (
    "That the model uses its chains: a model that ignores them writes as many as one that follows"
    " them. Nor that a cluster is a strategy: it is a set of chains in similar words."
)
_CLUSTERING = (
    "the unit vectors of a path's steps averaged, clusters of the paths by cosine, merged (average"
    " `linkage`) while they are at least `threshold` (0.9) similar"
)


def _card(
    name: str,
    symbol: str,
    formula: str,
    undefined: str,
    caveat: str,
    *,
    hi: float = 1.0,
    better: Literal["higher", "neither"] = "neither",
    source: str = PRIVATE_SOURCE,
    flag: bool = False,
    level: Level = "item",
    embeds: bool = True,
) -> MetricCard:
    needs = ("complete", "embed") if embeds else ("complete",)
    undefined = f"{undefined} {_GAPS}".strip() if embeds else undefined
    return MetricCard(
        name, symbol, 0.0, hi, better, "", level, needs, formula, undefined, source, caveat, flag
    )


DIVERSITY = _card(
    "diversity",
    "D",
    "clusters whose majority answer is the right one / N paths (5). The right one is the ground"
    f" truth (facet target=truth), without one the consensus (target=consensus); {_CLUSTERING}",
    "Without ground truth: two answers tie for the consensus, or no path has one.",
    "Correctness: it divides by N, so one right cluster of five paths scores 0.2; never compare"
    f" across N. {_CHAIN_CAVEAT}",
    better="higher",
)
DIVERSITY_AT = _card(
    "diversity_at",
    "D(t)",
    "`diversity` at each threshold of `sweep` (0.7, 0.8, 0.85, 0.95, 0.99; facet threshold)",
    "As `diversity`.",
    "Which threshold is right: how far D moves with it is how much D is a choice of it.",
)
CLUSTERS = _card(
    "strategy_clusters",
    "K",
    f"number of clusters among N paths; {_CLUSTERING}",
    "",
    f"Whether any of them is right; nor more than N. {_CHAIN_CAVEAT}",
    hi=float(MAX_PATHS),
)
CLUSTERS_AT = _card(
    "strategy_clusters_at",
    "K(t)",
    "`strategy_clusters` at each threshold of `sweep` (facet threshold)",
    "",
    "Which threshold is right.",
    hi=float(MAX_PATHS),
)
UNDECIDED = _card(
    "clusters_undecided",
    "K?",
    "number of clusters without a majority answer: two of its answers tie, or none of its paths has"
    " one. They converge to nothing",
    "",
    "That a cluster with a majority is sure of it.",
    hi=float(MAX_PATHS),
)
CLUSTER_AGREEMENT = _card(
    "cluster_agreement",
    "D·N/K",
    "clusters whose majority answer is the right one / number of clusters; right as in `diversity`",
    "As `diversity`.",
    f"Diversity: with one cluster it is 0 or 1. {_CHAIN_CAVEAT}",
    better="higher",
)
DISTANCE = _card(
    "path_distance",
    "d",
    "mean over the pairs of paths of 1 − cosine of their vectors",
    "One path has no pair.",
    f"Which paths differ. {_CHAIN_CAVEAT}",
    hi=2.0,
)
PATH_AGREEMENT = _card(
    "path_agreement",
    "agree",
    "paths that give the consensus answer / N paths; a path without an answer agrees with none",
    "Two answers tie for the consensus, or no path has one. Also where a path's reply is missing or"
    " refused.",
    "Whether the consensus is right: `consensus_correct` does.",
    better="higher",
    embeds=False,
    source="Wang et al. (2023), Self-consistency, ICLR; " + PRIVATE_SOURCE,
)
CONSENSUS = _card(
    "consensus_correct",
    "vote",
    "1 if the answer that most paths give equals the ground truth, else 0",
    "No ground truth, two answers tie for the consensus, or no path has an answer. Also where a"
    " path's reply is missing or refused.",
    "How many paths agreed: `path_agreement` does.",
    better="higher",
    flag=True,
    embeds=False,
    source="Wang et al. (2023), Self-consistency, ICLR; " + PRIVATE_SOURCE,
)
PATH_CLUSTER = _card(
    "path_cluster",
    "k",
    "the cluster of the path that `sample` counts, from 0 in the order of their first paths",
    "",
    "Anything by itself: it is the raw material of the other scores.",
    hi=float(MAX_PATHS),
    level="draw",
)
VOTES = (PATH_AGREEMENT, CONSENSUS)
CARDS = (
    DIVERSITY,
    DIVERSITY_AT,
    CLUSTERS,
    CLUSTERS_AT,
    UNDECIDED,
    CLUSTER_AGREEMENT,
    DISTANCE,
    *VOTES,
    PATH_CLUSTER,
)
