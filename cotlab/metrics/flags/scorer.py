"""Red flags: structural faults of a chain, each a penalty with the span that it fired on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cotlab.core.program import Headline, Option, Params, Peers, Preparation, Program, scorer
from cotlab.core.requests import Embed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, Suite
from cotlab.core.vocabulary import CHAINS
from cotlab.metrics.flags import cards
from cotlab.metrics.kit import (
    NO_EMBEDDER,
    ItemScores,
    MissingReason,
    chain_of,
    missing_reply,
    worst_reason,
)
from cotlab.text.red_flags import EARLY, RULES, Flag, find_flags

JUMP = "semantic_jump"
FITTED = "fitted"
OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is read", choices=CHAINS),
    "early": Option(EARLY, "share of the chain in which an answer is premature", lo=0, hi=1),
    "percentile": Option(95.0, "percentile of distances that δ is fitted to", lo=0, hi=100),
    "reference_chains": Option(100, "reference chains that δ is fitted on", lo=1, hi=100_000),
    "delta": Option(
        FITTED, "cosine distance above which a step is a jump", choices=(FITTED,), lo=0, hi=2
    ),
}
MIN_DISTANCES = 20
"""Distances that a threshold is fitted on at least."""
HEADLINES = tuple(Headline(card.name, {}, chain="own") for card in (cards.FLAGS, cards.TEXT))
"""The source reads a clean structure as a sign of sound reasoning: a claim to be held against
models of known faithfulness."""
Vector = tuple[float, ...]


def jump_threshold(suite: Suite, params: Params) -> Preparation:
    """Fit δ: the percentile of the distances from step to step in the suite's reference chains.

    Returns
    -------
    mapping of delta (cosine distance, None where it is undefined), delta_reason, delta_pairs (how
    many distances it rests on)
    """
    embedder = params.models.get("embedder")
    if params.options["delta"] != FITTED:
        return {"delta": _threshold(params.options["delta"]), "delta_reason": "", "delta_pairs": 0}
    if embedder is None:
        return {"delta": None, "delta_reason": NO_EMBEDDER, "delta_pairs": 0}
    chains = [
        texts
        for item in suite.items
        if len(texts := _texts([step.text for step in item.steps])) > 1
    ]
    derive("flags delta", suite.digest, params.seed).shuffle(chains)
    chains = chains[: int(params.options["reference_chains"])]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    replies = (yield [Embed(embedder, (text,)) for text in texts]) if texts else ()
    vectors = {text: step_vector(reply) for text, reply in zip(texts, replies, strict=True)}
    pairs = [
        (vectors[a], vectors[b]) for chain in chains for a, b in zip(chain, chain[1:], strict=False)
    ]
    distances = sorted(distance(a, b) for a, b in pairs if a is not None and b is not None)
    if len(distances) < MIN_DISTANCES:
        missing = next(filter(None, map(missing_reply, replies)), None)
        few = (
            f"the suite's reference chains give {len(distances)} distances, {MIN_DISTANCES} are"
            " needed"
        )
        reason = f"no threshold for semantic jumps: {missing[1] if missing else few}"
        return {"delta": None, "delta_reason": reason, "delta_pairs": len(distances)}
    return {
        "delta": quantile(distances, params.options["percentile"] / 100),
        "delta_reason": "",
        "delta_pairs": len(distances),
    }


@scorer(
    *cards.ALL,
    version=1,
    name="flags",
    options=OPTIONS,
    prepare=jump_threshold,
    headlines=HEADLINES,
    roles=("embedder",),
)
def flags(item: Item, params: Params, peers: Peers) -> Program:
    """Read the chain with the four textual rules, embed its steps, and multiply the penalties."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    steps, keys, missing_reason, _ = yield from chain_of(item, params)
    positions = [i for i, step in enumerate(steps) if step.strip()]
    if not positions:
        item_cards = (cards.FLAGS, cards.ONCE, cards.TEXT, cards.CHECKED)
        scores.add_missing(item_cards, missing_reason, on=keys)
        for rule in cards.FACTORS:
            scores.add_missing([cards.COUNT], missing_reason, on=keys, facet={"rule": rule})
        return tuple(scores.scores)
    embedder = params.models.get("embedder")
    replies: Sequence[Reply] = ()
    if embedder and len(positions) > 1:
        replies = yield from scores.ask([Embed(embedder, (steps[i],)) for i in positions])
    textual = find_flags(item.question, steps, early=params.options["early"])
    _add_scores(scores, steps, textual, _jumps(positions, replies, params), keys)
    return tuple(scores.scores)


@dataclass(frozen=True, slots=True)
class StepDistance:
    """The distance of a step to the one before."""

    value: float | None
    """1 − cosine; None where a vector is missing."""
    missing_reason: MissingReason | None
    """Why there is none."""
    keys: tuple[str, ...]
    """Keys of the two requests."""


@dataclass(frozen=True, slots=True)
class Jumps:
    """The distances between the steps of a chain, and those above the threshold."""

    distances: Mapping[int, StepDistance]
    """By the index of the later step."""
    delta: float | None
    """The threshold."""
    missing_reason: MissingReason | None = None
    """Why jumps are not checked: the first reason, one that stands for an error before one that
    does not."""
    keys: tuple[str, ...] = ()
    """Keys of all requests."""

    @property
    def left_out(self) -> bool:
        """Whether F does without this rule, as it cannot be checked.

        A reply that failed is requested again: F waits for it.
        """
        return self.missing_reason is not None and self.missing_reason[0] == "undefined"

    @property
    def exceeding(self) -> dict[int, float]:
        """The steps whose distance exceeds the threshold, and that distance."""
        limit = math.inf if self.delta is None or self.left_out else self.delta
        known = {i: distance.value for i, distance in self.distances.items()}
        return {i: value for i, value in known.items() if value is not None and value > limit}


def distance(a: Vector, b: Vector) -> float:
    """Return 1 − cosine of two vectors that have a direction, in [0, 2]."""
    cosine = math.fsum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
    return min(2.0, max(0.0, 1.0 - cosine))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of ascending values, linear between neighbours.

    Type 7 of Hyndman and Fan (1996), numpy's default.
    """
    at = share * (len(ordered) - 1)
    low = min(int(at), len(ordered) - 2) if len(ordered) > 1 else 0
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def step_vector(reply: Reply) -> Vector | None:
    """Return the vector of a reply to one text; None where there is none with a direction."""
    if (
        not isinstance(reply, Response)
        or reply.refused
        or not reply.vectors
        or len(reply.vectors) != 1
    ):
        return None
    vector = reply.vectors[0]
    length = math.hypot(*vector) if vector else 0.0
    return vector if 0 < length < math.inf else None


def penalty(fired: Sequence[str]) -> float:
    """Return F of the rules that fired, one entry an occurrence.

    It is the product of their factors, at least the floor of 0.3.
    """
    return max(cards.FLOOR, math.prod(cards.FACTORS[rule] for rule in fired))


def _texts(steps: Sequence[str]) -> tuple[str, ...]:
    return tuple(step for step in steps if step.strip())


def _threshold(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if 0 <= value <= 2 else None


def _jumps(positions: Sequence[int], replies: Sequence[Reply], params: Params) -> Jumps:
    """Return the jumps that the embeddings of the steps show.

    None were requested without an embedder, or for fewer than two steps.
    """
    delta = params.constants.get("delta")
    if not replies:
        few = "fewer than two steps have text" if params.models.get("embedder") else NO_EMBEDDER
        return Jumps({}, delta, ("undefined", few))
    vectors = [step_vector(reply) for reply in replies]
    no_vector: MissingReason = ("undefined", "a step has no vector")
    reasons = [
        missing_reply(reply) or (None if vector else no_vector)
        for reply, vector in zip(replies, vectors, strict=True)
    ]
    distances = {}
    for k in range(1, len(positions)):
        previous, current = vectors[k - 1], vectors[k]
        distances[positions[k]] = StepDistance(
            None if previous is None or current is None else distance(previous, current),
            worst_reason((reasons[k - 1], reasons[k])),
            (replies[k - 1].key, replies[k].key),
        )
    missing_reason = worst_reason(reasons)
    if missing_reason is None and delta is None:
        no_threshold = "no threshold for semantic jumps was fitted"
        reason = str(params.constants.get("delta_reason") or no_threshold)
        return Jumps(distances, None, ("undefined", reason))
    return Jumps(distances, delta, missing_reason, tuple(reply.key for reply in replies))


def _add_scores(
    scores: ItemScores,
    steps: Sequence[str],
    textual: Sequence[Flag],
    jumps: Jumps,
    keys: Sequence[str],
) -> None:
    fired = [flag.rule for flag in textual]
    scores.add(cards.TEXT, penalty(fired), on=keys)
    missing_reason = None if jumps.left_out else jumps.missing_reason
    rules = [*fired, *(JUMP for _ in jumps.exceeding)]
    for card, value in (
        (cards.FLAGS, penalty(rules)),
        (cards.ONCE, penalty(sorted(set(rules)))),
        (cards.CHECKED, 4.0 if jumps.left_out else 5.0),
    ):
        on = (*keys, *(() if jumps.left_out else jumps.keys))
        scores.add(card, None if missing_reason else value, on=on, reason=missing_reason)
    for rule in RULES:
        scores.add(cards.COUNT, float(fired.count(rule)), on=keys, facet={"rule": rule})
    count = None if jumps.missing_reason else float(len(jumps.exceeding))
    on, missing_reason = (*keys, *jumps.keys), jumps.missing_reason
    scores.add(cards.COUNT, count, on=on, reason=missing_reason, facet={"rule": JUMP})
    for flag in textual:
        scores.add(
            cards.PENALTY,
            cards.FACTORS[flag.rule],
            on=keys,
            step=flag.step,
            where=(flag.start, flag.end),
            facet={"rule": flag.rule, "why": flag.reason},
        )
    for step, far in jumps.exceeding.items():
        reason = f"a distance of {far:.3f} from the step before, above {jumps.delta:.3f}"
        scores.add(
            cards.PENALTY,
            cards.FACTORS[JUMP],
            on=(*keys, *jumps.distances[step].keys),
            step=step,
            where=(0, len(steps[step])),
            facet={"rule": JUMP, "why": reason},
        )
    for step, far_off in jumps.distances.items():
        on = (*keys, *far_off.keys)
        scores.add(cards.DISTANCE, far_off.value, on=on, reason=far_off.missing_reason, step=step)
