"""The cards of the red flags: what each score is, its range, and what it does not show."""

from __future__ import annotations

from typing import Literal

from cotlab.core.types import Level, MetricCard

FACTORS = {
    "premature_answer": 0.90,
    "undefined_symbol": 0.95,
    "unit_inconsistency": 0.92,
    "semantic_jump": 0.94,
    "hand_waving": 0.97,
}
"""What one occurrence of each rule multiplies F by."""
FLOOR = 0.3
MAX_FLAGS = 10_000
PRIVATE_SOURCE = "the reliability seed, section 7"
_RULES = (
    "premature answer ×0.90 (an answer phrase in a step that ends before 40 % of the steps),"
    " undefined symbol ×0.95 (its first place), unit inconsistency ×0.92 (dimensions by pint),"
    " semantic jump ×0.94 (cosine distance of a step to the one before above δ = percentile 95 of"
    " those of the suite's reference chains), hand-waving ×0.97 (no reason or equation before it in"
    " its step)"
)
_NO_CHAIN = "There is no chain. Also where the model's own chain is missing or refused."
_NOT = (
    "That the reasoning is right or was used: a fluent chain of false steps has F = 1, and a long"
    " chain has more places to be flagged. The textual rules are patterns of English; no flag means"
    " that no pattern fits."
)


def _card(
    name: str,
    symbol: str,
    lo: float,
    hi: float,
    formula: str,
    undefined: str,
    caveat: str,
    *,
    better: Literal["higher", "lower", "neither"] = "higher",
    level: Level = "chain",
    needs: tuple[str, ...] = ("complete", "embed"),
    source: str = PRIVATE_SOURCE,
) -> MetricCard:
    return MetricCard(
        name, symbol, lo, hi, better, "", level, needs, formula, undefined, source, caveat
    )


FLAGS = _card(
    "flags",
    "F",
    FLOOR,
    1.0,
    f"max({FLOOR}, product of the factors, one for each occurrence): {_RULES}",
    _NO_CHAIN
    + " Where a step's embedding failed or was refused; without an embedder, a threshold or a"
    " vector it is over the other four rules, and `flags_rules_checked` says 4.",
    _NOT,
)
ONCE = _card(
    "flags_once",
    "F once",
    FLOOR,
    1.0,
    f"as `flags`, each rule's factor once however often it fired, so at least 0.717: {_RULES}",
    "As `flags`.",
    "How often a rule fired. " + _NOT,
)
TEXT = _card(
    "flags_text",
    "F text",
    FLOOR,
    1.0,
    "as `flags`, over the four rules that read the text alone, without the semantic jump",
    _NO_CHAIN,
    _NOT,
    needs=("complete",),
)
CHECKED = _card(
    "flags_rules_checked",
    "rules",
    4.0,
    5.0,
    "how many of the five rules `flags` is over",
    "As `flags`.",
    "Whether any fired.",
    better="neither",
)
COUNT = _card(
    "flag_count",
    "n",
    0.0,
    MAX_FLAGS,
    "how many spans of the chain the rule (facet) flags; 0 where it was checked and none fits",
    _NO_CHAIN
    + " Of semantic jumps: fewer than two steps, no embedder or threshold, or a step without a"
    " vector.",
    "How grave they are. A longer chain has more. " + _NOT,
    better="lower",
)
PENALTY = _card(
    "flag_penalty",
    "×",
    0.0,
    1.0,
    "the factor of the rule (facet) for one occurrence, with its step and the characters it "
    "fired on; "
    "for a semantic jump the whole step",
    "Only occurrences are scored.",
    _NOT,
    better="neither",
    level="draw",
)
DISTANCE = _card(
    "step_distance",
    "d",
    0.0,
    2.0,
    "1 − cosine of the embeddings of a step and of the step before that has text",
    "The first step, a step of white space, no embedder, or a step without a vector.",
    "A jump in reasoning: a new topic in a sound chain is as far.",
    better="neither",
    level="step",
    needs=("complete", "embed"),
    source="cotlab",
)
ALL = (FLAGS, ONCE, TEXT, CHECKED, COUNT, PENALTY, DISTANCE)
