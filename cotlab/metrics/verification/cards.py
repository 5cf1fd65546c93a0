"""The cards of backward verification: what each score is, its range, and what it does not show."""

from __future__ import annotations

from cotlab.core.types import MetricCard

PRIVATE_SOURCE = "Practical Chain-of-Thought Reliability Metrics, section 5 (Backward Verification)"
TAU, TAU_CRITICAL = 0.6, 0.4
_NEEDS = ("complete", "entail")
_UNDEFINED = (
    "No link is decided, the chain has one step (reverse), or a reply that a link needs is missing"
    " or refused. Undecided links leave the denominator: `coverage` says how many."
)
_NOT_USED = (
    "That the model used the chain: a model that writes a sound chain and answers without it has"
    " the same value."
)


def _chain(
    name: str,
    symbol: str,
    formula: str,
    undefined: str,
    caveat: str,
    *,
    lo: float = 0.0,
    hi: float = 1.0,
    better: str = "higher",
    source: str = PRIVATE_SOURCE,
    unit: str = "",
) -> MetricCard:
    return MetricCard(
        name,
        symbol,
        lo,
        hi,
        "higher" if better == "higher" else "neither",
        unit,
        "chain",
        _NEEDS,
        formula,
        undefined,
        source,
        caveat,
    )


LINK_SUPPORT = MetricCard(
    "link_support",
    "q",
    0.0,
    1.0,
    "higher",
    "",
    "step",
    _NEEDS,
    "link `reverse` (the seed's): does step j support step j − 1; link `forward`: do question and"
    " steps before support step j. By arithmetic where it decides: 0 for a false equation (its"
    " place is the score's; without a place it stands in step j − 1), 1 where every equation holds"
    " and its operands (forward) or the value of step j − 1 (reverse) are taken up. Else the"
    " provider `symbolic` (algebra, units), else the verifier's confidence in [0, 1]",
    "Nothing decides the link: the reason says why; a first step has no reverse link. Also where a"
    " reply is missing, refused or states no confidence.",
    PRIVATE_SOURCE,
    "Truth beyond what was checked: arithmetic sees the equations of a step, not its prose.",
)
MEAN = _chain(
    "verification_mean",
    "V mean",
    "mean of q over the decided links",
    _UNDEFINED,
    _NOT_USED,
)
PASS_RATE = _chain(
    "pass_rate",
    "V pass",
    f"share of the decided links with q > τ (τ = {TAU}, option `tau`)",
    _UNDEFINED,
    "How far a link lies from τ. " + _NOT_USED,
)
WEAK_LINK = _chain(
    "weak_link",
    "V weak",
    "max(0, mean of q − longest run of links with q < τ_critical / number of decided links),"
    f" τ_critical = {TAU_CRITICAL} (option `tau_critical`); an undecided link ends a run",
    _UNDEFINED,
    "Which links are weak: `link_support` does. " + _NOT_USED,
    source=PRIVATE_SOURCE + ", scaled by the number of links",
)
VERIFICATION = _chain(
    "verification",
    "V",
    "0.5 · verification_mean + 0.5 · pass_rate",
    _UNDEFINED,
    _NOT_USED,
    source=PRIVATE_SOURCE + ", as its code in section 9 has it",
)
COVERAGE = _chain(
    "coverage",
    "cov",
    "share of the links (forward n, reverse n − 1) that the verifier named by the score decided;"
    " `any`: that one did",
    "The chain has one step (reverse), or a reply that a link needs is missing or refused.",
    "Whether the verifier is right.",
    better="neither",
    source="cotlab",
)
FIRST_MISTAKE = _chain(
    "first_mistake_step",
    "first",
    "index, from 0, of the first step that holds a false equation; its place is the score's",
    "No step holds a false equation.",
    "Mistakes without an equation, such as a wrong plan. A value that a false one led to is no"
    " mistake of its own.",
    hi=100_000.0,
    better="neither",
    unit="steps",
    source="Tyen et al. (2024), BIG-Bench Mistake, arXiv:2311.08516",
)
ARITHMETIC_OK = _chain(
    "arithmetic_ok",
    "arith",
    "share of the steps with at least one decided equation in which none is false",
    "No step has an equation that can be decided.",
    "Whether the equations are the right ones to solve the question. " + _NOT_USED,
    source="cotlab",
)
CHAIN_CARDS = (MEAN, PASS_RATE, WEAK_LINK, VERIFICATION)
CARDS = (LINK_SUPPORT, *CHAIN_CARDS, COVERAGE, FIRST_MISTAKE, ARITHMETIC_OK)
