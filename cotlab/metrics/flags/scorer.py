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
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing_reply, model_chain
from cotlab.metrics.flags import cards
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.red_flags import EARLY, RULES, Flag, find_flags

JUMP = "semantic_jump"
FITTED = "fitted"
OPTIONS: Mapping[str, Any] = {
    "chain": "reference",
    "early": EARLY,
    "percentile": 95.0,
    "reference_chains": 100,
    "delta": FITTED,
}
MIN_DISTANCES = 20
"""Distances that a threshold is fitted on at least."""
HEADLINES = tuple(Headline(card.name, {}, chain="own") for card in (cards.FLAGS, cards.TEXT))
"""The source reads a clean structure as a sign of sound reasoning: a claim to be held against
models of known faithfulness."""
NO_EMBEDDER = "no model embeds the steps: --embedder"
MissingReason = tuple[Status, str]
Vector = tuple[float, ...]


def validate_flags_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    if options["chain"] not in ("reference", "own"):
        raise UnknownName("chain", options["chain"], ("reference", "own"))
    ranges = {"early": (0, 1), "percentile": (0, 100), "reference_chains": (1, 100_000)}
    for name, (lo, hi) in ranges.items():
        if not lo <= options[name] <= hi:
            raise ConfigError(f"flags.{name} must lie in [{lo}, {hi}], got {options[name]}")
    if options["delta"] != FITTED and _threshold(options["delta"]) is None:
        raise ConfigError(
            f"flags.delta must be {FITTED!r} or a cosine distance in [0, 2], got"
            f" {options['delta']!r}"
        )


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
        missing_reason = next(
            (
                missing_reason
                for reply in replies
                if (missing_reason := missing_reply(reply)) is not None
            ),
            None,
        )
        few = (
            f"the suite's reference chains give {len(distances)} distances, {MIN_DISTANCES} are"
            " needed"
        )
        reason = f"no threshold for semantic jumps: {missing_reason[1] if missing_reason else few}"
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
    check=validate_flags_options,
    roles=("embedder",),
)
def flags(item: Item, params: Params, peers: Peers) -> Program:
    """Read the chain with the four textual rules, embed its steps, and multiply the penalties."""
    options = params.options
    facet = {"chain": str(options["chain"])}
    steps: Sequence[str] = [step.text for step in item.steps]
    key: tuple[str, ...] = ()
    missing_reason: MissingReason = "undefined", "the item has no chain"
    if options["chain"] == "own":
        (reply,) = yield [_ask(item, params)]
        key, missing_reason = (
            (reply.key,),
            missing_reply(reply) or ("undefined", "the model wrote no chain"),
        )
        steps = model_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    positions = [i for i, step in enumerate(steps) if step.strip()]
    if not positions:
        return tuple(_none(item, facet, missing_reason, key))
    embedder = params.models.get("embedder")
    requests = (
        [Embed(embedder, (steps[i],)) for i in positions] if embedder and len(positions) > 1 else []
    )
    unique = {request.key: request for request in requests}
    replies = (yield list(unique.values())) if unique else ()
    of_key = dict(zip(unique, replies, strict=True))
    jumps = _jumps(positions, [of_key[request.key] for request in requests], params)
    textual = find_flags(item.question, steps, early=options["early"])
    return tuple(_scores(item, facet, steps, textual, jumps, key))


@dataclass(frozen=True, slots=True)
class Jumps:
    """The distance of each step to the one before, or why there is none; and the threshold, or why none was checked."""

    distances: Mapping[int, tuple[float | None, MissingReason | None, tuple[str, ...]]]
    delta: float | None
    missing_reason: MissingReason | None = None
    """Why jumps are not checked: the first reason, one that stands for an error before one that
    does not."""
    evidence: tuple[str, ...] = ()

    @property
    def left_out(self) -> bool:
        """Whether F does without this rule, as it cannot be checked. A reply that failed is asked again: F waits for it."""
        return self.missing_reason is not None and self.missing_reason[0] == "undefined"

    @property
    def exceeding(self) -> dict[int, float]:
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


def step_vector(reply: Reply) -> Vector | None:
    """The vector of a reply to a request of one text; None where there is none, or none with a direction."""
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
    """F of the rules that fired, one entry an occurrence: the product of their factors, at least the floor of 0.3."""
    return max(cards.FLOOR, math.prod(cards.FACTORS[rule] for rule in fired))


def _ask(item: Item, params: Params) -> Complete:
    form = params.subject.form
    prompt = ask_rest(item.question, (), form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        stop=("\nQ:",) if form == "continuation" else (),
    )


def _texts(steps: Sequence[str]) -> tuple[str, ...]:
    return tuple(step for step in steps if step.strip())


def _threshold(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if 0 <= value <= 2 else None


def _jumps(positions: Sequence[int], replies: Sequence[Reply], params: Params) -> Jumps:
    """What the replies to the steps' embeddings tell; none were asked without an embedder or for fewer than two steps."""
    delta = params.constants.get("delta")
    if not replies:
        few = "fewer than two steps have text" if params.models.get("embedder") else NO_EMBEDDER
        return Jumps({}, delta, ("undefined", few))
    distances: dict[int, tuple[float | None, MissingReason | None, tuple[str, ...]]] = {}
    gaps = [
        missing_reply(reply)
        or (None if step_vector(reply) else ("undefined", "a step has no vector"))
        for reply in replies
    ]
    vectors = [
        step_vector(reply) if missing_reason is None else None
        for reply, missing_reason in zip(replies, gaps, strict=True)
    ]
    for k in range(1, len(positions)):
        previous, current = vectors[k - 1], vectors[k]
        keys = tuple(dict.fromkeys((replies[k - 1].key, replies[k].key)))
        missing_reason = _worst((gaps[k - 1], gaps[k]))
        distances[positions[k]] = (
            None if previous is None or current is None else distance(previous, current),
            missing_reason,
            keys,
        )
    evidence = tuple(dict.fromkeys(reply.key for reply in replies))
    missing_reason = _worst(gaps)
    if missing_reason is None and delta is None:
        reason = str(
            params.constants.get("delta_reason") or "no threshold for semantic jumps was fitted"
        )
        return Jumps(distances, None, ("undefined", reason))
    return Jumps(distances, delta, missing_reason, evidence)


def _worst(gaps: Sequence[MissingReason | None]) -> MissingReason | None:
    """The gap that a score must tell: an error before a refusal before what is undefined."""
    known = [entry for entry in gaps if entry is not None]
    return min(
        known, key=lambda entry: ("error", "refused", "undefined").index(entry[0]), default=None
    )


def _none(
    item: Item, facet: Mapping[str, str], missing_reason: MissingReason, key: tuple[str, ...]
) -> Iterator[Score]:
    """Every score of an item without a chain, once, without a value."""
    for card in (cards.FLAGS, cards.ONCE, cards.TEXT, cards.CHECKED):
        yield card.score(
            item,
            None,
            facet=facet,
            status=missing_reason[0],
            reason=missing_reason[1],
            evidence=key,
        )
    for rule in cards.FACTORS:
        yield cards.COUNT.score(
            item,
            None,
            facet={**facet, "rule": rule},
            status=missing_reason[0],
            reason=missing_reason[1],
            evidence=key,
        )


def _scores(
    item: Item,
    facet: Mapping[str, str],
    steps: Sequence[str],
    textual: Sequence[Flag],
    jumps: Jumps,
    key: tuple[str, ...],
) -> Iterator[Score]:
    fired = [flag.rule for flag in textual]
    yield cards.TEXT.score(item, penalty(fired), facet=facet, evidence=key)
    left_out = jumps.left_out
    jump_evidence = key if left_out else (*key, *jumps.evidence)
    rules = [*fired, *(JUMP for _ in jumps.exceeding)]
    values = (
        (cards.FLAGS, penalty(rules)),
        (cards.ONCE, penalty(sorted(set(rules)))),
        (cards.CHECKED, 4.0 if left_out else 5.0),
    )
    for card, value in values:
        if jumps.missing_reason is not None and not left_out:
            yield card.score(
                item,
                None,
                facet=facet,
                status=jumps.missing_reason[0],
                reason=jumps.missing_reason[1],
                evidence=jump_evidence,
            )
        else:
            yield card.score(item, value, facet=facet, evidence=jump_evidence)
    for rule in RULES:
        yield cards.COUNT.score(
            item, float(fired.count(rule)), facet={**facet, "rule": rule}, evidence=key
        )
    missing_reason, jump_facet = jumps.missing_reason, {**facet, "rule": JUMP}
    yield cards.COUNT.score(
        item,
        None if missing_reason else float(len(jumps.exceeding)),
        facet=jump_facet,
        status=missing_reason and missing_reason[0],
        reason=missing_reason and missing_reason[1],
        evidence=(*key, *jumps.evidence),
    )
    for flag in textual:
        yield cards.PENALTY.score(
            item,
            cards.FACTORS[flag.rule],
            step=flag.step,
            where=(flag.start, flag.end),
            facet={**facet, "rule": flag.rule, "why": flag.reason},
            evidence=key,
        )
    for step, far in jumps.exceeding.items():
        reason = f"a distance of {far:.3f} from the step before, above {jumps.delta:.3f}"
        yield cards.PENALTY.score(
            item,
            cards.FACTORS[JUMP],
            step=step,
            where=(0, len(steps[step])),
            facet={**jump_facet, "why": reason},
            evidence=(*key, *jumps.distances[step][2]),
        )
    for step, (d, none, keys) in jumps.distances.items():
        yield cards.DISTANCE.score(
            item,
            d,
            step=step,
            facet=facet,
            status=none and none[0],
            reason=none and none[1],
            evidence=(*key, *keys),
        )
