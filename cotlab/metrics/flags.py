"""Red flags: structural faults of a chain, each a penalty with the span that it fired on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from cotlab.core.keys import derive
from cotlab.core.program import Headline, Option, Params, Peers, Preparation, Program, scorer
from cotlab.core.requests import Embed, Reply
from cotlab.core.types import CHAINS, Item, MetricCard, Suite
from cotlab.metrics.estimates import LONG_TEXT_PHRASE
from cotlab.metrics.kit import (
    NO_EMBEDDER_REASON,
    ItemScores,
    MissingReason,
    chain_of,
    missing_reply_reason,
    reply_vector,
    worst_reason,
)
from cotlab.metrics.model_steps import CUT_STEPS_NOTE
from cotlab.text.red_flags import (
    EARLY_SHARE,
    MIN_SHARE_RIGHT,
    MIN_SPANS,
    READINGS,
    RULES,
    RedFlag,
    chain_domain,
    find_flags,
    off_reason,
)

FACTOR_BY_RULE = {
    "premature_answer": 0.90,
    "undefined_symbol": 0.95,
    "unit_inconsistency": 0.92,
    "semantic_jump": 0.94,
    "hand_waving": 0.97,
}
"""What one occurrence of each rule multiplies F by."""
MIN_SCORE = 0.3
MAX_FLAGS = 10_000
DEFAULT_SOURCE = "the reliability seed, section 7"
_RULES_PHRASE = (
    "premature answer ×0.90 (an answer phrase in a step that ends before 40 % of the steps),"
    " undefined symbol ×0.95 (a letter beside an operator that nothing introduces),"
    " unit inconsistency ×0.92 (dimensions by pint),"
    " semantic jump ×0.94 (cosine distance of a step to the one before above δ = percentile 95 of"
    " those of the suite's reference chains), hand-waving ×0.97 (a word such as “clearly” without a"
    " reason before it in its step); over the rules that are on"
)
_NO_CHAIN_SENTENCE = "There is no chain. Also where the model's own chain is missing or refused."
_PRECISION_PHRASE = ", ".join(
    f"{rule} {domain} {n_right} of {n_read}{' (off)' if off_reason(rule, domain) else ''}"
    for (rule, domain), (n_read, n_right) in READINGS.items()
)
_DOMAINS_SENTENCE = (
    "A textual rule is on in a domain (the item's `domain`; else latex where question or chain has"
    f" mathematics in LaTeX, plain otherwise) where {MIN_SHARE_RIGHT:.0%} of the spans read by hand"
    f" in published chains were right, of {MIN_SPANS} or more: {_PRECISION_PHRASE}."
    " `flags.rules=seed` turns all five on."
)
_CAVEAT = (
    "That the reasoning is right or was used: a fluent chain of false steps has F = 1, and a long"
    " chain has more places to be flagged. The textual rules are patterns of English; no flag means"
    " that no pattern fits."
)
_card = partial(
    MetricCard, better="higher", level="chain", needs=("complete", "embed"), source=DEFAULT_SOURCE
)
FLAGS = _card(
    name="flags",
    symbol="F",
    formula=f"max({MIN_SCORE}, product of the factors, one for each occurrence): {_RULES_PHRASE}."
    f" `flags_rules_checked` says over how many of the five. {_DOMAINS_SENTENCE}",
    undefined=f"{_NO_CHAIN_SENTENCE} Where a step's embedding failed or was refused; without an"
    " embedder, a threshold or a vector it is over the textual rules that are on, and 1 where none"
    f" is. {CUT_STEPS_NOTE}",
    not_shown=_CAVEAT,
    lo=MIN_SCORE,
)
FLAGS_ONCE = _card(
    name="flags_once",
    symbol="F once",
    formula="as `flags`, each rule's factor once however often it fired, so at least 0.717:"
    f" {_RULES_PHRASE}",
    undefined=f"As `flags`. {CUT_STEPS_NOTE}",
    not_shown=f"How often a rule fired. {_CAVEAT}",
    lo=MIN_SCORE,
)
FLAGS_TEXT = _card(
    name="flags_text",
    symbol="F text",
    formula="as `flags`, over the rules that read the text alone, without the semantic jump",
    undefined=f"{_NO_CHAIN_SENTENCE} {CUT_STEPS_NOTE}",
    not_shown=_CAVEAT,
    lo=MIN_SCORE,
    needs=("complete",),
)
RULES_CHECKED = _card(
    name="flags_rules_checked",
    symbol="rules",
    formula="how many of the five rules `flags` is over",
    undefined=f"As `flags`. {CUT_STEPS_NOTE}",
    not_shown="Whether any fired.",
    hi=5.0,
    better="neither",
)
FLAG_COUNT = _card(
    name="flag_count",
    symbol="n",
    formula="how many spans of the chain the rule (facet) flags; 0 where it was checked and none"
    " fits",
    undefined=f"{_NO_CHAIN_SENTENCE} Where the rule is off in the chain's domain. Of semantic"
    " jumps: fewer than two steps, no embedder or threshold, or a step without a vector."
    f" {CUT_STEPS_NOTE}",
    not_shown=f"How grave they are. A longer chain has more. {_CAVEAT}",
    hi=MAX_FLAGS,
    better="lower",
)
FLAG_PENALTY = _card(
    name="flag_penalty",
    symbol="×",
    formula="the factor of the rule (facet) for one occurrence, with its step and the characters"
    " it fired on; for a semantic jump the whole step",
    undefined=f"Only occurrences are scored. {CUT_STEPS_NOTE}",
    not_shown=_CAVEAT,
    level="draw",
    better="neither",
)
STEP_DISTANCE = _card(
    name="step_distance",
    symbol="d",
    formula="1 − cosine of the embeddings of a step and of the step before that has text;"
    f" {LONG_TEXT_PHRASE}",
    undefined="The first step, a step of white space, no embedder, or a step without a vector."
    f" {CUT_STEPS_NOTE}",
    not_shown="A jump in reasoning: a new topic in a sound chain is as far.",
    level="step",
    hi=2.0,
    better="neither",
    source="cotlab",
)
ALL_CARDS = (FLAGS, FLAGS_ONCE, FLAGS_TEXT, RULES_CHECKED, FLAG_COUNT, FLAG_PENALTY, STEP_DISTANCE)


JUMP_RULE = "semantic_jump"
FITTED_CHOICE = "fitted"
OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is read", choices=CHAINS),
    "rules": Option(
        "evidence",
        "textual rules: those that were right in the chain's domain, or all four of the seed",
        choices=("evidence", "seed", "all"),
    ),
    "early": Option(EARLY_SHARE, "share of the chain in which an answer is premature", lo=0, hi=1),
    "percentile": Option(95.0, "percentile of distances that δ is fitted to", lo=0, hi=100),
    "reference_chains": Option(100, "reference chains that δ is fitted on", lo=1, hi=100_000),
    "delta": Option(
        FITTED_CHOICE,
        "cosine distance above which a step is a jump",
        choices=(FITTED_CHOICE,),
        lo=0,
        hi=2,
    ),
}
MIN_DISTANCES = 20
"""Distances that a threshold is fitted on at least."""
HEADLINES = tuple(Headline(card.name, {}, measured_chain="own") for card in (FLAGS, FLAGS_TEXT))
"""The source reads a clean structure as a sign of sound reasoning: a claim to be held against
models of known faithfulness."""
Vector = tuple[float, ...]


def fit_jump_threshold(suite: Suite, params: Params) -> Preparation:
    """Fit δ: the percentile of the distances from step to step in the suite's reference chains.

    Returns
    -------
    mapping of delta (cosine distance, None where it is undefined), delta_reason, delta_pairs (how
    many distances it rests on)
    """
    embedder = params.models.get("embedder")
    if params.options["delta"] != FITTED_CHOICE:
        return {
            "delta": _parse_threshold(params.options["delta"]),
            "delta_reason": "",
            "delta_pairs": 0,
        }
    if embedder is None:
        return {"delta": None, "delta_reason": NO_EMBEDDER_REASON, "delta_pairs": 0}
    chains = [
        texts
        for item in suite.items
        if len(texts := _nonblank_steps([step.text for step in item.steps])) > 1
    ]
    derive("flags delta", suite.digest, params.seed).shuffle(chains)
    chains = chains[: int(params.options["reference_chains"])]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    replies = (yield [Embed(embedder, (text,)) for text in texts]) if texts else ()
    vector_by_text = {text: reply_vector(reply) for text, reply in zip(texts, replies, strict=True)}
    vector_pairs = [
        (vector_by_text[earlier_text], vector_by_text[later_text])
        for chain in chains
        for earlier_text, later_text in zip(chain, chain[1:], strict=False)
    ]
    distances = sorted(
        cosine_distance(earlier_vector, later_vector)
        for earlier_vector, later_vector in vector_pairs
        if earlier_vector is not None and later_vector is not None
    )
    if len(distances) < MIN_DISTANCES:
        first_missing_reason = next(filter(None, map(missing_reply_reason, replies)), None)
        too_few_reason = (
            f"the suite's reference chains give {len(distances)} distances, {MIN_DISTANCES} are"
            " needed"
        )
        reason = (
            "no threshold for semantic jumps:"
            f" {first_missing_reason[1] if first_missing_reason else too_few_reason}"
        )
        return {"delta": None, "delta_reason": reason, "delta_pairs": len(distances)}
    return {
        "delta": quantile(distances, params.options["percentile"] / 100),
        "delta_reason": "",
        "delta_pairs": len(distances),
    }


@scorer(
    *ALL_CARDS,
    version=6,
    name="flags",
    options=OPTIONS,
    prepare=fit_jump_threshold,
    headlines=HEADLINES,
    roles=("embedder",),
)
def flags(item: Item, params: Params, peers: Peers) -> Program:
    """Read the chain with the textual rules, embed its steps, and multiply the penalties."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    steps, scores.keys, missing_reason, *_ = yield from chain_of(item, params)
    step_indices = [i for i, step in enumerate(steps) if step.strip()]
    if not step_indices:
        item_cards = (FLAGS, FLAGS_ONCE, FLAGS_TEXT, RULES_CHECKED)
        scores.add_missing(item_cards, missing_reason)
        for rule in FACTOR_BY_RULE:
            scores.add_missing([FLAG_COUNT], missing_reason, facet={"rule": rule})
        return tuple(scores.scores)
    embedder = params.models.get("embedder")
    replies: Sequence[Reply] = ()
    if embedder and len(step_indices) > 1:
        replies = yield from scores.ask([Embed(embedder, (steps[i],)) for i in step_indices])
    text_flags = _read_rules(item, steps, params)
    _add_scores(scores, steps, text_flags, _find_jumps(step_indices, replies, params))
    return tuple(scores.scores)


class TextFlags(NamedTuple):
    """What the textual rules find in a chain."""

    flags: tuple[RedFlag, ...]
    """The flags of the rules that are on."""
    off_reason_by_rule: Mapping[str, str]
    """Why each of the other rules is off."""


def _read_rules(item: Item, steps: Sequence[str], params: Params) -> TextFlags:
    """Find the flags of the rules that are on for the chain."""
    domain = chain_domain(item.question, steps, item.meta.get("domain"))
    reason_by_rule = {rule: off_reason(rule, domain) for rule in RULES}
    if params.options.get("rules", "seed") != "evidence":  # "all" is what earlier runs say
        reason_by_rule = {}
    off_reasons = {rule: reason for rule, reason in reason_by_rule.items() if reason}
    flag_spans = find_flags(item.question, steps, early_share=params.options["early"])
    return TextFlags(
        tuple(flag for flag in flag_spans if flag.rule not in off_reasons), off_reasons
    )


class StepDistance(NamedTuple):
    """The distance of a step to the one before."""

    value: float | None
    """1 − cosine; None where a vector is missing."""
    missing_reason: MissingReason | None
    """Why there is none."""
    keys: tuple[str, ...]
    """Keys of the two requests."""


@dataclass(frozen=True, slots=True)
class SemanticJumps:
    """The distances between the steps of a chain, and those above the threshold."""

    distance_by_step: Mapping[int, StepDistance]
    """By the index of the later step."""
    delta: float | None
    """The threshold."""
    missing_reason: MissingReason | None = None
    """Why jumps are not checked: the first reason, one that stands for an error before one that
    does not."""
    keys: tuple[str, ...] = ()
    """Keys of all requests."""

    @property
    def is_left_out(self) -> bool:
        """Whether F does without this rule, as it cannot be checked.

        A reply that failed is requested again: F waits for it.
        """
        return self.missing_reason is not None and self.missing_reason[0] == "undefined"

    @property
    def exceeding_distances(self) -> dict[int, float]:
        """The steps whose distance exceeds the threshold, and that distance."""
        max_distance = math.inf if self.delta is None or self.is_left_out else self.delta
        return {
            i: distance.value
            for i, distance in self.distance_by_step.items()
            if distance.value is not None and distance.value > max_distance
        }


def cosine_distance(first_vector: Vector, second_vector: Vector) -> float:
    """Return 1 − cosine of two vectors that have a direction, in [0, 2]."""
    cosine = math.fsum(x * y for x, y in zip(first_vector, second_vector, strict=True)) / (
        math.hypot(*first_vector) * math.hypot(*second_vector)
    )
    return min(2.0, max(0.0, 1.0 - cosine))


def quantile(sorted_values: Sequence[float], share: float) -> float:
    """Return the quantile of ascending values, linear between neighbours.

    Type 7 of Hyndman and Fan (1996), numpy's default.
    """
    position = share * (len(sorted_values) - 1)
    low_index = min(int(position), len(sorted_values) - 2) if len(sorted_values) > 1 else 0
    high_index = min(low_index + 1, len(sorted_values) - 1)
    return sorted_values[low_index] + (position - low_index) * (
        sorted_values[high_index] - sorted_values[low_index]
    )


def flags_score(fired_rules: Sequence[str]) -> float:
    """Return F of the rules that fired, one entry an occurrence.

    It is the product of their factors, at least the floor of 0.3.
    """
    return max(MIN_SCORE, math.prod(FACTOR_BY_RULE[rule] for rule in fired_rules))


def _nonblank_steps(steps: Sequence[str]) -> tuple[str, ...]:
    return tuple(step for step in steps if step.strip())


def _parse_threshold(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if 0 <= value <= 2 else None


def _find_jumps(
    step_indices: Sequence[int], replies: Sequence[Reply], params: Params
) -> SemanticJumps:
    """Return the jumps that the embeddings of the steps show.

    None were requested without an embedder, or for fewer than two steps.
    """
    delta = params.constants.get("delta")
    if not replies:
        too_few_reason = (
            "fewer than two steps have text"
            if params.models.get("embedder")
            else NO_EMBEDDER_REASON
        )
        return SemanticJumps({}, delta, ("undefined", too_few_reason))
    vectors = [reply_vector(reply) for reply in replies]
    no_vector_reason: MissingReason = ("undefined", "a step has no vector")
    reasons = [
        missing_reply_reason(reply) or (None if vector else no_vector_reason)
        for reply, vector in zip(replies, vectors, strict=True)
    ]
    distance_by_step = {}
    for k in range(1, len(step_indices)):
        previous_vector, current_vector = vectors[k - 1], vectors[k]
        distance_by_step[step_indices[k]] = StepDistance(
            None
            if previous_vector is None or current_vector is None
            else cosine_distance(previous_vector, current_vector),
            worst_reason((reasons[k - 1], reasons[k])),
            (replies[k - 1].key, replies[k].key),
        )
    missing_reason = worst_reason(reasons)
    if missing_reason is None and delta is None:
        no_threshold_reason = "no threshold for semantic jumps was fitted"
        reason = str(params.constants.get("delta_reason") or no_threshold_reason)
        return SemanticJumps(distance_by_step, None, ("undefined", reason))
    return SemanticJumps(
        distance_by_step, delta, missing_reason, tuple(reply.key for reply in replies)
    )


def _add_scores(
    scores: ItemScores, steps: Sequence[str], text_flags: TextFlags, jumps: SemanticJumps
) -> None:
    fired_rules = [flag.rule for flag in text_flags.flags]
    scores.add(FLAGS_TEXT, flags_score(fired_rules))
    missing_reason = None if jumps.is_left_out else jumps.missing_reason
    n_checked = len(RULES) - len(text_flags.off_reason_by_rule) + (not jumps.is_left_out)
    all_fired_rules = [*fired_rules, *(JUMP_RULE for _ in jumps.exceeding_distances)]
    for card, value in (
        (FLAGS, flags_score(all_fired_rules)),
        (FLAGS_ONCE, flags_score(sorted(set(all_fired_rules)))),
        (RULES_CHECKED, float(n_checked)),
    ):
        keys = () if jumps.is_left_out else jumps.keys
        number = None if missing_reason else value
        scores.add(card, number, rests_on=keys, reason=missing_reason)
    for rule in RULES:
        off = text_flags.off_reason_by_rule.get(rule)
        count = None if off else float(fired_rules.count(rule))
        scores.add(FLAG_COUNT, count, reason=off, facet={"rule": rule})
    n_jumps = None if jumps.missing_reason else float(len(jumps.exceeding_distances))
    facet = {"rule": JUMP_RULE}
    scores.add(FLAG_COUNT, n_jumps, rests_on=jumps.keys, reason=jumps.missing_reason, facet=facet)
    for flag in text_flags.flags:
        scores.add(
            FLAG_PENALTY,
            FACTOR_BY_RULE[flag.rule],
            step=flag.step_index,
            where=(flag.start, flag.end),
            facet={"rule": flag.rule, "why": flag.reason},
        )
    for step, jump_distance in jumps.exceeding_distances.items():
        reason = f"a distance of {jump_distance:.3f} from the step before, above {jumps.delta:.3f}"
        scores.add(
            FLAG_PENALTY,
            FACTOR_BY_RULE[JUMP_RULE],
            rests_on=jumps.distance_by_step[step].keys,
            step=step,
            where=(0, len(steps[step])),
            facet={"rule": JUMP_RULE, "why": reason},
        )
    for step, (distance, missing_reason, keys) in jumps.distance_by_step.items():
        scores.add(STEP_DISTANCE, distance, rests_on=keys, reason=missing_reason, step=step)
