"""Diversity: whether distinct approaches to a question converge to the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.types import Item, MetricCard
from cotlab.metrics.diversity import cards
from cotlab.metrics.kit import (
    NO_EMBEDDER,
    ItemScores,
    MissingReason,
    ask_text,
    missing_reply,
    reply_steps,
    reply_text,
)
from cotlab.stats.vectors import LINKAGES, Floats, clusters, cosines, pooled
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import approach_prompt

OPTIONS: Mapping[str, Option] = {
    "paths": Option(5, "chains that are requested for a question", lo=2, hi=cards.MAX_PATHS),
    "threshold": Option(0.9, "cosine from which paths share a cluster", lo=0, hi=1),
    "linkage": Option("average", "how clusters are merged", choices=tuple(LINKAGES)),
    "temperature": Option(0.7, "sampling temperature of the paths", above=0, hi=2),
    "sweep": Option(
        ("0.7", "0.8", "0.85", "0.95", "0.99"),
        "further thresholds that D is computed at",
        lo=0,
        hi=1,
    ),
}
HEADLINES = tuple(
    Headline(card.name, {})
    for card in (cards.DIVERSITY, cards.CLUSTER_AGREEMENT, cards.PATH_AGREEMENT, cards.CONSENSUS)
)
"""The source reads convergence as a sign of sound reasoning; a claim to be held against models of
known faithfulness."""
_MARKS = ("answer", "\\boxed", "####")


class Majority(NamedTuple):
    """The answer that most give."""

    answer: str | None
    """The answer; None where two tie, or there is none."""
    votes: int
    """How many give it."""
    reason: str
    """Why there is none."""


class Paths(NamedTuple):
    """The answers of an item's paths, and the request keys that they rest on."""

    answers: tuple[str | None, ...]
    keys: tuple[str, ...]


def majority(answers: Iterable[str | None]) -> Majority:
    """Return the answer that more of ``answers`` give than any other.

    Answers that are None or cannot be compared do not vote. Two are the same as `same_answer` says,
    each compared with the first of its group; the first stands for the group.
    """
    groups: list[list[str]] = []
    for answer in answers:
        if answer is None or same_answer(answer, answer) is None:
            continue
        group = next((g for g in groups if same_answer(g[0], answer)), None)
        if group is None:
            groups.append([answer])
        else:
            group.append(answer)
    if not groups:
        return Majority(None, 0, "no path has an answer")
    most = max(len(group) for group in groups)
    first = [group[0] for group in groups if len(group) == most]
    if len(first) > 1:
        listed = ", ".join(sorted(first)[:3]) + (", …" if len(first) > 3 else "")
        return Majority(
            None, 0, f"a tie: {len(first)} answers with {most} of the paths each ({listed})"
        )
    return Majority(first[0], most, "")


@scorer(
    *cards.CARDS,
    version=1,
    name="diversity",
    options=OPTIONS,
    headlines=HEADLINES,
    roles=("embedder",),
)
def diversity(item: Item, params: Params, peers: Peers) -> Program:
    """Ask for N chains, embed their steps, and count the clusters that end in the right answer."""
    number = int(params.options["paths"])
    scores = ItemScores(item, {"chain": "own", "n": str(number)})
    replies = yield from scores.ask([_ask(item, params, k) for k in range(number)])
    paths = Paths(tuple(map(_answer, replies)), tuple(reply.key for reply in replies))
    if (missing_reason := scores.first_missing(paths.keys)) is not None:
        _add_missing(scores, params, cards.CARDS, missing_reason, paths.keys)
        return tuple(scores.scores)
    _add_votes(scores, paths)
    rest = [card for card in cards.CARDS if card not in cards.VOTES]
    embedder, chains = params.models.get("embedder"), [reply_steps(reply) for reply in replies]
    if embedder is None or not all(chains):
        reason = "a path has no steps" if embedder else NO_EMBEDDER
        _add_missing(scores, params, rest, ("undefined", reason), paths.keys)
        return tuple(scores.scores)
    texts = tuple(dict.fromkeys(step for chain in chains for step in chain))
    embedded = yield [Embed(embedder, (text,)) for text in texts]
    paths = paths._replace(keys=(*paths.keys, *(reply.key for reply in embedded)))
    similarity = _similarity(chains, dict(zip(texts, embedded, strict=True)))
    if isinstance(similarity, tuple):
        _add_missing(scores, params, rest, similarity, paths.keys)
    else:
        _add_clusters(scores, paths, params, similarity)
    return tuple(scores.scores)


def _ask(item: Item, params: Params, k: int) -> Complete:
    """Build the request for path ``k``: its number is in the prompt, and it is its own draw."""
    prompt = approach_prompt(item.question, k + 1, params.subject.form)
    temperature = float(params.options["temperature"])
    return ask_text(params, prompt, sample=k, temperature=temperature)


def _answer(reply: Reply) -> str | None:
    """Return a path's answer; None also where it was cut off: its last number is not its answer."""
    text = reply_text(reply)
    marked = any(mark in text.lower() for mark in _MARKS)
    truncated = isinstance(reply, Response) and reply.finish == "length" and not marked
    return None if truncated else final_answer(text)


def _similarity(
    chains: Sequence[Sequence[str]], embedded: Mapping[str, Reply]
) -> Floats | MissingReason:
    """Return the cosines of the paths' vectors, or why there are none."""
    vectors: dict[str, tuple[float, ...]] = {}
    for text, reply in embedded.items():
        if (missing_reason := missing_reply(reply)) is not None:
            return missing_reason
        if not isinstance(reply, Response) or not reply.vectors:
            return "undefined", "the embedder gave no vector"
        vectors[text] = reply.vectors[0]
    chain_vectors = [pooled([vectors[step] for step in chain]) for chain in chains]
    known = [vector for vector in chain_vectors if vector is not None]
    if len(known) < len(chain_vectors) or len({len(vector) for vector in known}) > 1:
        return "undefined", "the vectors of a path have no common direction"
    return cosines(known)


def _add_votes(scores: ItemScores, paths: Paths) -> None:
    """Add what the answers alone decide."""
    consensus, truth = majority(paths.answers), scores.item.answer
    share = None if consensus.answer is None else consensus.votes / len(paths.answers)
    scores.add(cards.PATH_AGREEMENT, share, on=paths.keys, reason=consensus.reason)
    right, missing_reason = None, consensus.reason
    if truth is None:
        missing_reason = "the item has no ground truth"
    elif consensus.answer is not None:
        right = same_answer(consensus.answer, truth)
        missing_reason = "the consensus and the ground truth cannot be compared"
    value = None if right is None else float(right)
    scores.add(cards.CONSENSUS, value, on=paths.keys, reason=missing_reason)


def _add_clusters(scores: ItemScores, paths: Paths, params: Params, similarity: Floats) -> None:
    """Add every score that rests on the clusters."""
    n, keys, options = len(paths.answers), paths.keys, params.options
    pairs = [float(similarity[i, j]) for i in range(n) for j in range(i)]
    scores.add(cards.DISTANCE, 1 - sum(pairs) / len(pairs), on=keys)
    target, missing_reason = scores.item.answer, ""
    if target is None:
        consensus = majority(paths.answers)
        target, missing_reason = consensus.answer, consensus.reason
    elif same_answer(target, target) is None:
        target, missing_reason = None, "the ground truth cannot be compared"
    swept, chosen_threshold = _swept(params), float(options["threshold"])
    for threshold in dict.fromkeys((chosen_threshold, *swept)):
        labels = clusters(similarity, threshold, options["linkage"])
        groups = [
            [a for a, label in zip(paths.answers, labels, strict=True) if label == k]
            for k in range(max(labels) + 1)
        ]
        stands = [majority(group).answer for group in groups]
        right = sum(
            bool(same_answer(answer, target))
            for answer in stands
            if answer is not None and target is not None
        )
        per_path, per_cluster = (None if target is None else right / of for of in (n, len(groups)))
        facet, aimed = _threshold_facets(scores.item, threshold)
        if threshold == chosen_threshold:
            for k, label in enumerate(labels):
                scores.add(cards.PATH_CLUSTER, label, on=keys, sample=k, facet=facet)
            scores.add(cards.CLUSTERS, len(groups), on=keys, facet=facet)
            scores.add(cards.UNDECIDED, stands.count(None), on=keys, facet=facet)
            scores.add(cards.DIVERSITY, per_path, on=keys, reason=missing_reason, facet=aimed)
            scores.add(
                cards.CLUSTER_AGREEMENT, per_cluster, on=keys, reason=missing_reason, facet=aimed
            )
        if threshold in swept:
            scores.add(cards.DIVERSITY_AT, per_path, on=keys, reason=missing_reason, facet=aimed)
            scores.add(cards.CLUSTERS_AT, len(groups), on=keys, facet=facet)


def _swept(params: Params) -> tuple[float, ...]:
    return tuple(sorted({float(threshold) for threshold in params.options["sweep"]}))


def _threshold_facets(item: Item, threshold: float) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facet of scores at a threshold, and of those that hold an answer to be right."""
    facet = {"threshold": f"{threshold:g}"}
    return facet, {**facet, "target": "consensus" if item.answer is None else "truth"}


def _add_missing(
    scores: ItemScores,
    params: Params,
    selected: Sequence[MetricCard],
    missing_reason: MissingReason,
    keys: Sequence[str],
) -> None:
    """Add every score of ``selected`` without a value."""
    facet, aimed = _threshold_facets(scores.item, float(params.options["threshold"]))
    swept = [_threshold_facets(scores.item, threshold) for threshold in _swept(params)]
    facets: dict[MetricCard, list[dict[str, str]]] = {
        cards.DIVERSITY: [aimed],
        cards.CLUSTER_AGREEMENT: [aimed],
        cards.DIVERSITY_AT: [at_target for _, at_target in swept],
        cards.CLUSTERS_AT: [at for at, _ in swept],
        cards.CLUSTERS: [facet],
        cards.UNDECIDED: [facet],
        cards.PATH_CLUSTER: [facet],
    }
    for card in selected:
        for more in facets.get(card, [{}]):
            scores.add_missing([card], missing_reason, on=keys, facet=more)
