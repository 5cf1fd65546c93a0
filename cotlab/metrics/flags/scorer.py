"""Red flags: structural faults of a chain that can be pointed at, each a penalty with the span that it fired on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Preparation, Program, scorer
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, ModelRef, Score, Status, Suite
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing, own_chain
from cotlab.metrics.flags import cards
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.red_flags import EARLY, RULES, Flag, find_flags

JUMP = "semantic_jump"
FITTED = "fitted"
OPTIONS: Mapping[str, Any] = {
    "chain": "reference", "early": EARLY, "percentile": 95.0, "reference_chains": 100, "delta": FITTED,
}  # fmt: skip
FEWEST = 20
"""Distances that a threshold is fitted on at least."""
HEADLINES = (Headline(cards.FLAGS.name, {}), Headline(cards.TEXT.name, {}))
"""The source reads a clean structure as a sign of sound reasoning: a claim to be held against models of known faithfulness."""
NO_EMBEDDER = "no model embeds the steps: --embedder"
Gap = tuple[Status, str]
Vector = tuple[float, ...]


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    if options["chain"] not in ("reference", "own"):
        raise UnknownName("chain", options["chain"], ("reference", "own"))
    ranges = {"early": (0, 1), "percentile": (0, 100), "reference_chains": (1, 100_000)}
    for name, (lo, hi) in ranges.items():
        if not lo <= options[name] <= hi:
            raise ConfigError(f"flags.{name} must lie in [{lo}, {hi}], got {options[name]}")
    if options["delta"] != FITTED and _threshold(options["delta"]) is None:
        raise ConfigError(f"flags.delta must be {FITTED!r} or a cosine distance in [0, 2], got {options['delta']!r}")


def jump_threshold(suite: Suite, params: Params) -> Preparation:
    """Fit δ: the percentile of the distances from step to step in the suite's reference chains.

    Returns
    -------
    mapping of delta (cosine distance, None where it is undefined), delta_reason, delta_pairs (how many distances it rests on)
    """
    embedder = params.models.get("embedder")
    if params.options["delta"] != FITTED:
        return {"delta": _threshold(params.options["delta"]), "delta_reason": "", "delta_pairs": 0}
    if embedder is None:
        return {"delta": None, "delta_reason": NO_EMBEDDER, "delta_pairs": 0}
    chains = [texts for item in suite.items if len(texts := _texts([step.text for step in item.steps])) > 1]
    derive("flags delta", suite.digest, params.seed).shuffle(chains)
    chains = chains[: int(params.options["reference_chains"])]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    replies = (yield [Embed(embedder, (text,)) for text in texts]) if texts else ()
    vectors = {text: vector_of(reply) for text, reply in zip(texts, replies, strict=True)}
    pairs = [(vectors[a], vectors[b]) for chain in chains for a, b in zip(chain, chain[1:], strict=False)]
    found = sorted(distance(a, b) for a, b in pairs if a is not None and b is not None)
    if len(found) < FEWEST:
        gap = next((gap for reply in replies if (gap := missing(reply)) is not None), None)
        few = f"the suite's reference chains give {len(found)} distances, {FEWEST} are needed"
        why = f"no threshold for semantic jumps: {gap[1] if gap else few}"
        return {"delta": None, "delta_reason": why, "delta_pairs": len(found)}
    return {"delta": quantile(found, params.options["percentile"] / 100), "delta_reason": "", "delta_pairs": len(found)}


@scorer(*cards.ALL, version=1, name="flags", options=OPTIONS, prepare=jump_threshold, headlines=HEADLINES, check=check,
        roles=("embedder",))  # fmt: skip
def flags(item: Item, params: Params, peers: Peers) -> Program:
    """Read the chain with the four textual rules, embed its steps, and multiply the penalties."""
    options = params.options
    facet = {"chain": str(options["chain"])}
    steps: Sequence[str] = [step.text for step in item.steps]
    key: tuple[str, ...] = ()
    gap: Gap = "undefined", "the item has no chain"
    if options["chain"] == "own":
        (reply,) = yield [_ask(item, params)]
        key, gap = (reply.key,), missing(reply) or ("undefined", "the model wrote no chain")
        steps = own_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    places = [i for i, step in enumerate(steps) if step.strip()]
    if not places:
        return tuple(_none(item, facet, gap, key))
    embedder = params.models.get("embedder")
    asked = [Embed(embedder, (steps[i],)) for i in places] if embedder and len(places) > 1 else []
    unique = {request.key: request for request in asked}
    replies = (yield list(unique.values())) if unique else ()
    of_key = dict(zip(unique, replies, strict=True))
    jumps = _jumps(places, [of_key[request.key] for request in asked], params)
    textual = find_flags(item.question, steps, early=options["early"])
    return tuple(_scores(item, facet, steps, textual, jumps, key))


@dataclass(frozen=True, slots=True)
class Jumps:
    """The distance of each step to the one before, or why there is none; and the threshold, or why none was checked."""

    distances: Mapping[int, tuple[float | None, Gap | None, tuple[str, ...]]]
    delta: float | None
    gap: Gap | None = None
    """Why jumps are not checked: the first reason, one that stands for an error before one that does not."""
    evidence: tuple[str, ...] = ()

    @property
    def left_out(self) -> bool:
        """Whether F does without this rule, as it cannot be checked. A reply that failed is asked again: F waits for it."""
        return self.gap is not None and self.gap[0] == "undefined"

    @property
    def found(self) -> dict[int, float]:
        """The steps whose distance exceeds the threshold, and that distance."""
        limit = math.inf if self.delta is None or self.left_out else self.delta
        return {i: d for i, (d, _, _) in self.distances.items() if d is not None and d > limit}


def distance(a: Vector, b: Vector) -> float:
    """1 − cosine of two vectors that have a direction, in [0, 2]."""
    cosine = math.fsum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
    return min(2.0, max(0.0, 1.0 - cosine))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile of ascending values, linear between neighbours (type 7 of Hyndman and Fan 1996, numpy's default)."""
    at = share * (len(ordered) - 1)
    low = min(int(at), len(ordered) - 2) if len(ordered) > 1 else 0
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def vector_of(reply: Reply) -> Vector | None:
    """The vector of a reply to a request of one text; None where there is none, or none with a direction."""
    if not isinstance(reply, Response) or reply.refused or not reply.vectors or len(reply.vectors) != 1:
        return None
    vector = reply.vectors[0]
    length = math.hypot(*vector) if vector else 0.0
    return vector if 0 < length < math.inf else None


def penalty(fired: Sequence[str]) -> float:
    """F of the rules that fired, one entry an occurrence: the product of their factors, at least the floor of 0.3."""
    return max(cards.FLOOR, math.prod(cards.FACTORS[rule] for rule in fired))


def _ask(item: Item, params: Params) -> Complete:
    form = params.subject.form
    prompt = ask_rest(item.question, (), form)
    return Complete(
        params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS, temperature=params.temperature,
        seed=params.seed, stop=("\nQ:",) if form == "continuation" else (),
    )  # fmt: skip


def _texts(steps: Sequence[str]) -> tuple[str, ...]:
    return tuple(step for step in steps if step.strip())


def _threshold(told: object) -> float | None:
    try:
        value = float(str(told))
    except ValueError:
        return None
    return value if 0 <= value <= 2 else None


def _jumps(places: Sequence[int], replies: Sequence[Reply], params: Params) -> Jumps:
    """What the replies to the steps' embeddings tell; none were asked without an embedder or for fewer than two steps."""
    delta = params.constants.get("delta")
    if not replies:
        few = "fewer than two steps have text" if params.models.get("embedder") else NO_EMBEDDER
        return Jumps({}, delta, ("undefined", few))
    distances: dict[int, tuple[float | None, Gap | None, tuple[str, ...]]] = {}
    gaps = [missing(reply) or (None if vector_of(reply) else ("undefined", "a step has no vector")) for reply in replies]
    vectors = [vector_of(reply) if gap is None else None for reply, gap in zip(replies, gaps, strict=True)]
    for k in range(1, len(places)):
        one, other = vectors[k - 1], vectors[k]
        keys = tuple(dict.fromkeys((replies[k - 1].key, replies[k].key)))
        gap = _worst((gaps[k - 1], gaps[k]))
        distances[places[k]] = (None if one is None or other is None else distance(one, other), gap, keys)
    evidence = tuple(dict.fromkeys(reply.key for reply in replies))
    gap = _worst(gaps)
    if gap is None and delta is None:
        why = str(params.constants.get("delta_reason") or "no threshold for semantic jumps was fitted")
        return Jumps(distances, None, ("undefined", why))
    return Jumps(distances, delta, gap, evidence)


def _worst(gaps: Sequence[Gap | None]) -> Gap | None:
    """The gap that a score must tell: an error before a refusal before what is undefined."""
    told = [gap for gap in gaps if gap is not None]
    return min(told, key=lambda gap: ("error", "refused", "undefined").index(gap[0]), default=None)


def _none(item: Item, facet: Mapping[str, str], gap: Gap, key: tuple[str, ...]) -> Iterator[Score]:
    """Every score of an item without a chain, once, without a value."""
    for card in (cards.FLAGS, cards.ONCE, cards.TEXT, cards.CHECKED):
        yield card.score(item, None, facet=facet, status=gap[0], reason=gap[1], evidence=key)
    for rule in cards.FACTORS:
        yield cards.COUNT.score(item, None, facet={**facet, "rule": rule}, status=gap[0], reason=gap[1], evidence=key)


def _scores(
    item: Item, facet: Mapping[str, str], steps: Sequence[str], textual: Sequence[Flag], jumps: Jumps, key: tuple[str, ...]
) -> Iterator[Score]:
    fired = [flag.rule for flag in textual]
    yield cards.TEXT.score(item, penalty(fired), facet=facet, evidence=key)
    left_out = jumps.left_out
    seen = key if left_out else (*key, *jumps.evidence)
    whole = [*fired, *(JUMP for _ in jumps.found)]
    values = (
        (cards.FLAGS, penalty(whole)), (cards.ONCE, penalty(sorted(set(whole)))), (cards.CHECKED, 4.0 if left_out else 5.0),
    )  # fmt: skip
    for card, value in values:
        if jumps.gap is not None and not left_out:
            yield card.score(item, None, facet=facet, status=jumps.gap[0], reason=jumps.gap[1], evidence=seen)
        else:
            yield card.score(item, value, facet=facet, evidence=seen)
    for rule in RULES:
        yield cards.COUNT.score(item, float(fired.count(rule)), facet={**facet, "rule": rule}, evidence=key)
    gap, place = jumps.gap, {**facet, "rule": JUMP}
    yield cards.COUNT.score(
        item, None if gap else float(len(jumps.found)), facet=place, status=gap and gap[0], reason=gap and gap[1],
        evidence=(*key, *jumps.evidence),
    )  # fmt: skip
    for flag in textual:
        yield cards.PENALTY.score(item, cards.FACTORS[flag.rule], step=flag.step, where=(flag.start, flag.end),
                                  facet={**facet, "rule": flag.rule, "why": flag.why}, evidence=key)  # fmt: skip
    for step, far in jumps.found.items():
        why = f"a distance of {far:.3f} from the step before, above {jumps.delta:.3f}"
        yield cards.PENALTY.score(item, cards.FACTORS[JUMP], step=step, where=(0, len(steps[step])),
                                  facet={**place, "why": why}, evidence=(*key, *jumps.distances[step][2]))  # fmt: skip
    for step, (d, none, keys) in jumps.distances.items():
        yield cards.DISTANCE.score(item, d, step=step, facet=facet, status=none and none[0], reason=none and none[1],
                                   evidence=(*key, *keys))  # fmt: skip
