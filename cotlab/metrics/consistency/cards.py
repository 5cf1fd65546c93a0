"""The cards of consistency: what each score is, its range, and what it does not show."""

from __future__ import annotations

from cotlab.core.types import Level, MetricCard

MAX_FLOOR = 0.95
"""Mean cosine of unrelated chains above which an embedder tells no chain of a suite from another.
"""
PRIVATE_SOURCE = "Practical CoT Reliability Metrics, section 3"
_CHAIN_CAVEAT = (
    "Faithfulness: a model that ignores its chain writes it as steadily as one that follows it, so"
    " own chains cannot tell them apart. A high value may also be an embedder that finds all chains"
    " of a suite alike: see `consistency_rescaled`."
)
_CHAINS = (
    "of the subject's own chains for the question and its K paraphrases (4; by rules, or by the"
    " paraphraser and filled up by rules; each at least `gate` (0.7) cosine to the question)"
)
_PAIRS = (
    "the cosines of all pairs of chain vectors (a chain's step vectors, averaged, unit length) "
    + _CHAINS
)
_GAPS = (
    "Also where a reply is missing, refused or cut off, a step has no vector, or the run has no"
    " embedder."
)
_TWO, _THREE = "Fewer than 2 chains.", "Fewer than 3 chains: one pair has no spread."


def _card(
    name: str,
    symbol: str,
    lo: float,
    hi: float,
    formula: str,
    undefined: str,
    caveat: str = _CHAIN_CAVEAT,
    *,
    better: str = "higher",
    level: Level = "item",
    unit: str = "",
    source: str = PRIVATE_SOURCE,
) -> MetricCard:
    return MetricCard(
        name,
        symbol,
        lo,
        hi,
        "lower" if better == "lower" else "neither" if better == "neither" else "higher",
        unit,
        level,
        ("complete", "embed"),
        formula,
        f"{undefined} {_GAPS}",
        source,
        caveat,
    )


CONSISTENCY = _card(
    "consistency",
    "C",
    -1.0,
    1.0,
    f"C = μ(1 − σ), μ the mean and σ the standard deviation (ddof 0) of {_PAIRS}",
    _THREE,
)
MU = _card("consistency_mu", "μ", -1.0, 1.0, f"mean of {_PAIRS}", _TWO)
SIGMA = _card(
    "consistency_sigma",
    "σ",
    0.0,
    1.0,
    f"standard deviation (ddof 0: divided by the number of pairs) of {_PAIRS}",
    _THREE,
    "That chains agree: it is 0 also where all pairs are equally far apart.",
    better="lower",
)
RESCALED = _card(
    "consistency_rescaled",
    "C′",
    -39.0,
    1.0,
    "(μ − f)/(1 − f) · (1 − σ), f the mean cosine of chains of different items: 0 for unrelated"
    " chains, 1 for equal ones. f is measured once a run, over all pairs of up to `floor_chains`"
    " (40) of the suite's reference chains",
    f"{_THREE} No floor: fewer than two items have a reference chain. f is above {MAX_FLOOR}.",
    "Faithfulness, as `consistency`. It is as coarse as the suite is uniform: where f is near 1,"
    " small differences of μ are made large.",
)
AGREEMENT = _card(
    "answer_agreement",
    "agree",
    0.0,
    1.0,
    f"share of pairs {_CHAINS} whose extracted, normalised answers are the same, of the pairs that"
    " can be compared",
    "Fewer than 2 answers can be extracted, or none can be compared.",
    "That the answer is right, or follows from the chain: a model that always says the same agrees"
    " with itself.",
)
C_DTW = _card(
    "c_dtw",
    "C dtw",
    -1.0,
    1.0,
    "μ(1 − σ) (ddof 0) over pairs of chains of 1 − D/(n + m): D is the least total of 1 − cosine"
    " along a path that aligns the n and m steps in order, a diagonal move counting twice",
    _THREE,
    "Which step is out of place. " + _CHAIN_CAVEAT,
    source="Sakoe and Chiba (1978), IEEE Trans. ASSP 26:43 (symmetric form); " + PRIVATE_SOURCE,
)
PURITY_DRIFT = _card(
    "purity_drift",
    "drift",
    0.0,
    1.0,
    "1 − mean over the steps of all chains of the share of the other chains with a step in the same"
    " cluster; clusters of all steps by cosine, average linkage, merged at `step_threshold` (0.9)"
    " and above",
    _TWO,
    "The order of the steps: chains of the same steps in another order drift by 0. It depends on"
    " the threshold.",
    better="lower",
)
CHAINS = _card(
    "consistency_chains",
    "n",
    0.0,
    1000.0,
    "how many chains the item's other scores compare: at most K + 1",
    "As the other scores.",
    "How far apart they are.",
    better="neither",
    unit="chains",
    source="cotlab",
)
REJECTED = _card(
    "paraphrases_rejected",
    "rejected",
    0.0,
    1000.0,
    "paraphrases that were not used: their cosine to the question is below `gate` (0.7), or they"
    " have other numbers or nothing new",
    "As the other scores.",
    "That those which passed mean the same: a cosine is blind to a swapped name.",
    better="lower",
    unit="paraphrases",
    source="cotlab",
)
HIDDEN = _card(
    "holdout_difference",
    "ΔC",
    -2.0,
    2.0,
    "mean C of the question's chain with as many public paraphrases as there are hidden ones, over"
    " all such choices, minus C with the `holdout` (2) hidden paraphrases",
    "Fewer than two hidden paraphrases, or as C.",
    "Anything of one item: it is the raw material of `holdout_gap`, and which paraphrases are"
    " hidden must not be tuned on.",
    better="neither",
    level="draw",
    source="cotlab",
)
PUBLIC_MINUS_HIDDEN = _card(
    "holdout_gap",
    "public − hidden",
    -2.0,
    2.0,
    "mean over items of C on public minus C on hidden paraphrases, from as many chains each; which"
    " are hidden is drawn, so the gap is 0 but for chance unless a model was fitted to the public"
    " ones",
    "No item has both.",
    "Why: it warns where its interval lies above 0 and the gap above `holdout_warn` (0.05).",
    better="lower",
    level="run",
    source="Practical CoT Reliability Metrics, section 12; cotlab",
)
ITEM_CARDS = (CONSISTENCY, MU, SIGMA, RESCALED, AGREEMENT, C_DTW, PURITY_DRIFT, CHAINS, REJECTED)
ALL = (*ITEM_CARDS, HIDDEN)
