"""Diversity: do distinct approaches to one question converge to the same answer?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Status
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing_reply, model_chain
from cotlab.metrics.diversity import cards
from cotlab.stats.vectors import LINKAGES, Floats, clusters, cosines, pooled
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.rewrite import ask_approach

OPTIONS: Mapping[str, Any] = {
    "paths": 5,
    "threshold": 0.9,
    "linkage": "average",
    "temperature": 0.7,
    "sweep": ("0.7", "0.8", "0.85", "0.95", "0.99"),
}
HEADLINES = tuple(
    Headline(card.name, {})
    for card in (cards.DIVERSITY, cards.CLUSTER_AGREEMENT, cards.PATH_AGREEMENT, cards.CONSENSUS)
)
"""The source reads convergence as a sign of sound reasoning; a claim to be held against models of
known faithfulness."""
MissingReason = tuple[Status, str]
_MARKS = ("answer", "\\boxed", "####")
_NO_EMBEDDER = "no model embeds the steps: --embedder"


class Majority(NamedTuple):
    """What most give: the answer and how many give it, or None with the reason."""

    answer: str | None
    votes: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Paths:
    """The replies of one item, read: each path's answer, and what all scores of them rest on."""

    item: Item
    facet: Mapping[str, str]
    keys: tuple[str, ...]
    answers: tuple[str | None, ...] = ()

    @property
    def target(self) -> str:
        return "consensus" if self.item.answer is None else "truth"


def majority(answers: Iterable[str | None]) -> Majority:
    """The answer that more of ``answers`` give than any other; those that are None or cannot be compared do not vote.

    Answers are the same as `same_answer` says, each compared with the first of its group; the first
    stands for the group.
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


def validate_diversity_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    if not 2 <= options["paths"] <= cards.MAX_PATHS:
        raise ConfigError(
            f"diversity.paths must lie in [2, {cards.MAX_PATHS}], got {options['paths']}"
        )
    if not 0 < options["temperature"] <= 2:
        raise ConfigError(f"diversity.temperature must lie in (0, 2], got {options['temperature']}")
    if options["linkage"] not in LINKAGES:
        raise UnknownName("linkage", options["linkage"], LINKAGES)
    for threshold in (options["threshold"], *_swept(options)):
        if not 0 <= threshold <= 1:
            raise ConfigError(f"a threshold of diversity must lie in [0, 1], got {threshold}")


@scorer(
    *cards.CARDS,
    version=1,
    name="diversity",
    options=OPTIONS,
    headlines=HEADLINES,
    check=validate_diversity_options,
    roles=("embedder",),
)
def diversity(item: Item, params: Params, peers: Peers) -> Program:
    """Ask for N chains by number, embed each of their steps once, and count the clusters that end in one answer."""
    number = int(params.options["paths"])
    replies = yield [_ask(item, params, k) for k in range(number)]
    paths = _Paths(item, {"chain": "own", "n": str(number)}, tuple(reply.key for reply in replies))
    for reply in replies:
        if (missing_reason := missing_reply(reply)) is not None:
            return tuple(_none(paths, params, cards.CARDS, missing_reason))
    responses = [reply for reply in replies if isinstance(reply, Response)]
    paths = _Paths(item, paths.facet, paths.keys, tuple(_answer(reply) for reply in responses))
    votes = tuple(_votes(paths))
    rest = [card for card in cards.CARDS if card not in cards.VOTES]
    embedder, chains = params.models.get("embedder"), [model_chain(reply) for reply in responses]
    if embedder is None or not all(chains):
        reason = "a path has no steps" if embedder else _NO_EMBEDDER
        return (*votes, *_none(paths, params, rest, ("undefined", reason)))
    texts = tuple(dict.fromkeys(step for chain in chains for step in chain))
    embedded = yield [Embed(embedder, (text,)) for text in texts]
    paths = _Paths(
        item, paths.facet, (*paths.keys, *(reply.key for reply in embedded)), paths.answers
    )
    similarity = _similarity(chains, dict(zip(texts, embedded, strict=True)))
    if isinstance(similarity, tuple):
        return (*votes, *_none(paths, params, rest, similarity))
    return (*votes, *_clustered(paths, params, similarity))


def _ask(item: Item, params: Params, k: int) -> Complete:
    """Path ``k``: by its number where the model follows instructions, and a draw of its own in any case."""
    form = params.subject.form
    prompt = ask_approach(item.question, k + 1, form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS,
        sample=k,
        seed=params.seed,
        temperature=float(params.options["temperature"]),
        stop=("\nQ:",) if form == "continuation" else (),
    )


def _answer(reply: Response) -> str | None:
    """None also where a chain was cut off: its last number is not its answer."""
    text = reply.text or ""
    truncated = reply.finish == "length" and not any(mark in text.lower() for mark in _MARKS)
    return None if truncated else final_answer(text)


def _swept(options: Mapping[str, Any]) -> tuple[float, ...]:
    try:
        return tuple(sorted({float(threshold) for threshold in options["sweep"]}))
    except ValueError as bad:
        raise ConfigError(f"diversity.sweep takes numbers with commas between them: {bad}") from bad


def _similarity(
    chains: Sequence[Sequence[str]], embedded: Mapping[str, Reply]
) -> Floats | MissingReason:
    """Cosines of the paths' vectors, or why there are none."""
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


def _votes(paths: _Paths) -> Iterator[Score]:
    consensus = majority(paths.answers)
    share = None if consensus.answer is None else consensus.votes / len(paths.answers)
    yield cards.PATH_AGREEMENT.score(
        paths.item, share, facet=paths.facet, reason=consensus.reason or None, evidence=paths.keys
    )
    reason, right = consensus.reason, None
    if paths.item.answer is None:
        reason = "the item has no ground truth"
    elif consensus.answer is not None:
        right = same_answer(consensus.answer, paths.item.answer)
        reason = (
            "" if right is not None else "the consensus and the ground truth cannot be compared"
        )
    yield cards.CONSENSUS.score(
        paths.item,
        None if right is None else float(right),
        facet=paths.facet,
        reason=reason or None,
        evidence=paths.keys,
    )


def _clustered(paths: _Paths, params: Params, similarity: Floats) -> Iterator[Score]:
    """Every score that rests on the clusters."""
    item, n, keys, options = paths.item, len(paths.answers), paths.keys, params.options
    pairs = [float(similarity[i, j]) for i in range(n) for j in range(i)]
    yield cards.DISTANCE.score(item, 1 - sum(pairs) / len(pairs), facet=paths.facet, evidence=keys)
    target, reason = item.answer, ""
    if target is None:
        consensus = majority(paths.answers)
        target, reason = consensus.answer, consensus.reason
    elif same_answer(target, target) is None:
        target, reason = None, "the ground truth cannot be compared"
    swept, chosen_threshold = _swept(options), float(options["threshold"])
    for threshold in dict.fromkeys((chosen_threshold, *swept)):
        labels = clusters(similarity, threshold, options["linkage"])
        groups = [
            [a for a, label in zip(paths.answers, labels, strict=True) if label == k]
            for k in range(max(labels) + 1)
        ]
        stands = [majority(group).answer for group in groups]
        right = (
            None
            if target is None
            else sum(bool(same_answer(answer, target)) for answer in stands if answer is not None)
        )
        threshold_facet, aimed = _threshold_facets(paths, threshold)
        if threshold == chosen_threshold:
            yield from (
                cards.PATH_CLUSTER.score(
                    item, label, sample=k, facet=threshold_facet, evidence=keys
                )
                for k, label in enumerate(labels)
            )
            yield cards.CLUSTERS.score(item, len(groups), facet=threshold_facet, evidence=keys)
            yield cards.UNDECIDED.score(
                item, stands.count(None), facet=threshold_facet, evidence=keys
            )
            yield _ratio(cards.DIVERSITY, item, right, n, aimed, reason, keys)
            yield _ratio(cards.CLUSTER_AGREEMENT, item, right, len(groups), aimed, reason, keys)
        if threshold in swept:
            yield _ratio(cards.DIVERSITY_AT, item, right, n, aimed, reason, keys)
            yield cards.CLUSTERS_AT.score(item, len(groups), facet=threshold_facet, evidence=keys)


def _threshold_facets(paths: _Paths, threshold: float) -> tuple[dict[str, str], dict[str, str]]:
    """The facet of scores at a threshold, and of those among them that hold an answer to be right."""
    facet = {**paths.facet, "threshold": f"{threshold:g}"}
    return facet, {**facet, "target": paths.target}


def _ratio(
    card: MetricCard,
    item: Item,
    right: int | None,
    of: int,
    facet: Mapping[str, str],
    reason: str,
    keys: tuple[str, ...],
) -> Score:
    return card.score(
        item,
        None if right is None else right / of,
        facet=facet,
        reason=reason or None,
        evidence=keys,
    )


def _none(
    paths: _Paths, params: Params, selected: Sequence[MetricCard], missing_reason: MissingReason
) -> Iterator[Score]:
    """Every score of ``wanted`` that there would have been, without a value."""
    status, reason = missing_reason
    threshold_facet, aimed = _threshold_facets(paths, float(params.options["threshold"]))
    for card in selected:
        facets: list[Mapping[str, str]] = [paths.facet]
        if card in (cards.DIVERSITY, cards.CLUSTER_AGREEMENT):
            facets = [aimed]
        elif card in (cards.DIVERSITY_AT, cards.CLUSTERS_AT):
            facets = [
                _threshold_facets(paths, t)[card is cards.DIVERSITY_AT]
                for t in _swept(params.options)
            ]
        elif card in (cards.CLUSTERS, cards.UNDECIDED, cards.PATH_CLUSTER):
            facets = [threshold_facet]
        for facet in facets:
            yield card.score(
                paths.item, None, facet=facet, status=status, reason=reason, evidence=paths.keys
            )
