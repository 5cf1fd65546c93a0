"""The cards of the red flags: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import LONG_TEXT_PHRASE, metric_card
from cotlab.metrics.model_steps import CUT_STEPS_NOTE
from cotlab.text.red_flags import MIN_SHARE_RIGHT, MIN_SPANS, READINGS, off_reason

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
    metric_card,
    better="higher",
    level="chain",
    needs=("complete", "embed"),
    source=DEFAULT_SOURCE,
    shared_undefined_text=CUT_STEPS_NOTE,
)
FLAGS = _card(
    "flags",
    "F",
    f"max({MIN_SCORE}, product of the factors, one for each occurrence): {_RULES_PHRASE}."
    f" `flags_rules_checked` says over how many of the five. {_DOMAINS_SENTENCE}",
    _NO_CHAIN_SENTENCE
    + " Where a step's embedding failed or was refused; without an embedder, a threshold or a"
    " vector it is over the textual rules that are on, and 1 where none is.",
    _CAVEAT,
    lo=MIN_SCORE,
)
FLAGS_ONCE = _card(
    "flags_once",
    "F once",
    "as `flags`, each rule's factor once however often it fired, so at least 0.717:"
    f" {_RULES_PHRASE}",
    "As `flags`.",
    "How often a rule fired. " + _CAVEAT,
    lo=MIN_SCORE,
)
FLAGS_TEXT = _card(
    "flags_text",
    "F text",
    "as `flags`, over the rules that read the text alone, without the semantic jump",
    _NO_CHAIN_SENTENCE,
    _CAVEAT,
    lo=MIN_SCORE,
    needs=("complete",),
)
RULES_CHECKED = _card(
    "flags_rules_checked",
    "rules",
    "how many of the five rules `flags` is over",
    "As `flags`.",
    "Whether any fired.",
    hi=5.0,
    better="neither",
)
FLAG_COUNT = _card(
    "flag_count",
    "n",
    "how many spans of the chain the rule (facet) flags; 0 where it was checked and none fits",
    _NO_CHAIN_SENTENCE
    + " Where the rule is off in the chain's domain. Of semantic jumps: fewer than two steps, no"
    " embedder or threshold, or a step without a"
    " vector.",
    "How grave they are. A longer chain has more. " + _CAVEAT,
    hi=MAX_FLAGS,
    better="lower",
)
FLAG_PENALTY = _card(
    "flag_penalty",
    "×",
    "the factor of the rule (facet) for one occurrence, with its step and the characters it "
    "fired on; "
    "for a semantic jump the whole step",
    "Only occurrences are scored.",
    _CAVEAT,
    level="draw",
    better="neither",
)
STEP_DISTANCE = _card(
    "step_distance",
    "d",
    "1 − cosine of the embeddings of a step and of the step before that has text;"
    f" {LONG_TEXT_PHRASE}",
    "The first step, a step of white space, no embedder, or a step without a vector.",
    "A jump in reasoning: a new topic in a sound chain is as far.",
    level="step",
    hi=2.0,
    better="neither",
    source="cotlab",
)
ALL_CARDS = (FLAGS, FLAGS_ONCE, FLAGS_TEXT, RULES_CHECKED, FLAG_COUNT, FLAG_PENALTY, STEP_DISTANCE)
