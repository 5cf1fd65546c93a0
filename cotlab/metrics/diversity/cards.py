"""The cards of diversity: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import LONG_TEXT_PHRASE, metric_card
from cotlab.metrics.model_steps import CUT_STEPS_NOTE

MAX_PATHS = 64
DEFAULT_SOURCE = "Practical Chain-of-Thought Reliability Metrics for AI Safety, section 6"
_VOTE_SOURCE = "Wang et al. (2023), Self-consistency, ICLR; " + DEFAULT_SOURCE
_SHARED_UNDEFINED_TEXT = (
    "Also where a path's reply or one of its vectors is missing or refused, a path has no steps, or"
    " there is no embedder: the number of paths is part of the number, so none is left out."
    f" {CUT_STEPS_NOTE}"
)
_CHAIN_CAVEAT = (
    "That the model uses its chains: a model that ignores them writes as many as one that follows"
    " them. Nor that a cluster is a strategy: it is a set of chains in similar words."
)
_CLUSTERING_PHRASE = (
    "the unit vectors of a path's steps averaged, clusters of the paths by cosine, merged (average"
    f" `linkage`) while they are at least `threshold` (0.9) similar ({LONG_TEXT_PHRASE})"
)
_card = partial(
    metric_card,
    needs=("complete", "embed"),
    source=DEFAULT_SOURCE,
    shared_undefined_text=_SHARED_UNDEFINED_TEXT,
)
_count_card = partial(_card, hi=float(MAX_PATHS))
_vote_card = partial(
    _card, better="higher", needs=("complete",), source=_VOTE_SOURCE, shared_undefined_text=""
)
DIVERSITY = _card(
    "diversity",
    "D",
    "clusters whose majority answer is the right one / N paths (5). The right one is the ground"
    " truth (facet target=truth), without one the consensus (target=consensus);"
    f" {_CLUSTERING_PHRASE}",
    "No path has an answer; without ground truth: two answers tie for the consensus.",
    "Correctness: it divides by N, so one right cluster of five paths scores 0.2; never compare"
    f" across N. {_CHAIN_CAVEAT}",
    better="higher",
)
SWEEP_DIVERSITY = _card(
    "diversity_at",
    "D(t)",
    "`diversity` at each threshold of `sweep` (0.7, 0.8, 0.85, 0.95, 0.99; facet threshold)",
    "As `diversity`.",
    "Which threshold is right: how far D moves with it is how much D is a choice of it.",
)
CLUSTER_COUNT = _count_card(
    "strategy_clusters",
    "K",
    f"number of clusters among N paths; {_CLUSTERING_PHRASE}",
    "",
    f"Whether any of them is right; nor more than N. {_CHAIN_CAVEAT}",
)
SWEEP_CLUSTER_COUNT = _count_card(
    "strategy_clusters_at",
    "K(t)",
    "`strategy_clusters` at each threshold of `sweep` (facet threshold)",
    "",
    "Which threshold is right.",
)
UNDECIDED_CLUSTERS = _count_card(
    "clusters_undecided",
    "K?",
    "number of clusters without a majority answer: two of its answers tie, or none of its paths has"
    " one. They converge to nothing",
    "",
    "That a cluster with a majority is sure of it.",
)
CLUSTER_AGREEMENT = _card(
    "cluster_agreement",
    "D·N/K",
    "clusters whose majority answer is the right one / number of clusters; right as in `diversity`",
    "As `diversity`.",
    f"Diversity: with one cluster it is 0 or 1. {_CHAIN_CAVEAT}",
    better="higher",
)
PATH_DISTANCE = _card(
    "path_distance",
    "d",
    "mean over the pairs of paths of 1 − cosine of their vectors",
    "One path has no pair.",
    f"Which paths differ. {_CHAIN_CAVEAT}",
    hi=2.0,
)
PATH_AGREEMENT = _vote_card(
    "path_agreement",
    "agree",
    "paths that give the consensus answer / N paths; a path without an answer agrees with none",
    "Two answers tie for the consensus, or no path has one. Also where a path's reply is missing or"
    " refused.",
    "Whether the consensus is right: `consensus_correct` does.",
)
CONSENSUS = _vote_card(
    "consensus_correct",
    "vote",
    "1 if the answer that most paths give equals the ground truth, else 0",
    "No ground truth, two answers tie for the consensus, or no path has an answer. Also where a"
    " path's reply is missing or refused.",
    "How many paths agreed: `path_agreement` does.",
    flag=True,
)
PATH_CLUSTER = _count_card(
    "path_cluster",
    "k",
    "the cluster of the path that `sample` counts, from 0 in the order of their first paths",
    "",
    "Anything by itself: it is the raw material of the other scores.",
    level="draw",
)
VOTE_CARDS = (PATH_AGREEMENT, CONSENSUS)
CARDS = (
    DIVERSITY,
    SWEEP_DIVERSITY,
    CLUSTER_COUNT,
    SWEEP_CLUSTER_COUNT,
    UNDECIDED_CLUSTERS,
    CLUSTER_AGREEMENT,
    PATH_DISTANCE,
    *VOTE_CARDS,
    PATH_CLUSTER,
)
