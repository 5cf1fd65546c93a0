"""The cards of backward verification: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import metric_card
from cotlab.metrics.model_steps import CUT_STEPS_NOTE

DEFAULT_SOURCE = "Practical Chain-of-Thought Reliability Metrics, section 5 (Backward Verification)"
TAU, TAU_CRITICAL = 0.6, 0.4
_NEEDS = ("complete", "entail")
_NO_LINK_SENTENCE = (
    "No link is decided, the chain has one step (reverse), or a reply that a link needs is missing,"
    " refused, cut off or cannot be read: of that link it is not known whether it holds. Undecided"
    " links leave the denominator: `coverage` says how many."
)
_CAVEAT = (
    "That the model used the chain: a model that writes a sound chain and answers without it has"
    " the same value."
)
_card = partial(
    metric_card,
    better="higher",
    level="chain",
    needs=_NEEDS,
    source=DEFAULT_SOURCE,
    shared_undefined_text=CUT_STEPS_NOTE,
)
LINK_SUPPORT = _card(
    "link_support",
    "q",
    "link `reverse` (the seed's): does step j support step j − 1; link `forward`: do question and"
    " steps before support step j. By arithmetic where it decides: 0 for a false equation (its"
    " place is the score's; without a place it stands in step j − 1), 1 where every equation holds"
    " and its operands (forward) or the value of step j − 1 (reverse) are taken up. Else the"
    " provider `symbolic` (algebra, units), else the verifier's confidence in [0, 1]: the"
    " probability of entailment (nli; texts beyond the model's length in windows: the greatest over"
    " windows of the premise, the least over windows of the step), that of a right step (prm,"
    " forward only), or a number that a model states. A critic (`--verifier critic:…`) decides"
    " forward links: 1 before the first wrong step that it names, 0 at that step, and nothing after"
    " it",
    "Nothing decides the link: the reason says why; a first step has no reverse link. Also where a"
    " reply is missing, refused, cut off or states no confidence.",
    "Truth beyond what was checked: arithmetic sees the equations of a step, not its prose.",
    level="step",
)
MEAN_SUPPORT = _card(
    "verification_mean", "V mean", "mean of q over the decided links", _NO_LINK_SENTENCE, _CAVEAT
)
PASS_RATE = _card(
    "pass_rate",
    "V pass",
    f"share of the decided links with q > τ (τ = {TAU}, option `tau`)",
    _NO_LINK_SENTENCE,
    "How far a link lies from τ. " + _CAVEAT,
)
WEAK_LINK = _card(
    "weak_link",
    "V weak",
    "max(0, mean of q − longest run of links with q < τ_critical / number of decided links),"
    f" τ_critical = {TAU_CRITICAL} (option `tau_critical`); an undecided link ends a run",
    _NO_LINK_SENTENCE,
    "Which links are weak: `link_support` does. " + _CAVEAT,
    source=DEFAULT_SOURCE + ", scaled by the number of links",
)
VERIFICATION = _card(
    "verification",
    "V",
    "0.5 · verification_mean + 0.5 · pass_rate",
    _NO_LINK_SENTENCE,
    _CAVEAT,
    source=DEFAULT_SOURCE + ", as its code in section 9 has it",
)
COVERAGE = _card(
    "coverage",
    "cov",
    "share of the links (forward n, reverse n − 1) that the verifier named by the score decided;"
    " `any`: that one did",
    "The chain has one step (reverse), or a reply that a link needs is missing, refused, cut off or"
    " cannot be read.",
    "Whether the verifier is right.",
    better="neither",
    source="cotlab",
)
FIRST_MISTAKE = _card(
    "first_mistake_step",
    "first",
    "index, from 0, of the first step that holds a false equation, by arithmetic or by the provider"
    " `symbolic`; its place is the score's",
    "No step holds a false equation.",
    "Mistakes without an equation, such as a wrong plan. A value that a false one led to is no"
    " mistake of its own.",
    hi=100_000.0,
    unit="steps",
    better="neither",
    source="Tyen et al. (2024), BIG-Bench Mistake, arXiv:2311.08516",
    none_reason="no step holds a false equation",
)
ARITHMETIC_OK = _card(
    "arithmetic_ok",
    "arith",
    "share of the steps with at least one decided equation in which none is false",
    "No step has an equation that can be decided.",
    "Whether the equations are the right ones to solve the question. " + _CAVEAT,
    source="cotlab",
)
CHAIN_CARDS = (MEAN_SUPPORT, PASS_RATE, WEAK_LINK, VERIFICATION)
CARDS = (LINK_SUPPORT, *CHAIN_CARDS, COVERAGE, FIRST_MISTAKE, ARITHMETIC_OK)
