"""The cards of consistency: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import LONG_TEXT_PHRASE, metric_card

MAX_FLOOR = 0.95
"""Mean cosine of unrelated chains above which an embedder tells no chain of a suite from another.
"""
DEFAULT_SOURCE = "Practical CoT Reliability Metrics, section 3"
_CHAIN_CAVEAT = (
    "Faithfulness: a model that ignores its chain writes it as steadily as one that follows it, so"
    " own chains cannot tell them apart. A high value may also be an embedder that finds all chains"
    " of a suite alike: see `consistency_rescaled`."
)
_CHAINS_PHRASE = (
    "of the subject's own chains for the question and its K paraphrases (4; by rules, or by the"
    " paraphraser and filled up by rules; each at least `gate` (0.7) cosine to the question)"
)
_PAIRS_PHRASE = (
    "the cosines of all pairs of chain vectors (a chain's step vectors, averaged, unit length;"
    f" {LONG_TEXT_PHRASE}) " + _CHAINS_PHRASE
)
_SHARED_UNDEFINED_TEXT = (
    "Also where a reply is missing, refused or cut off before it states its answer, a step has no"
    " vector, or the run has no embedder."
)
_FEWER_THAN_TWO_TEXT = "Fewer than 2 chains."
_FEWER_THAN_THREE_TEXT = "Fewer than 3 chains: one pair has no spread."
_card = partial(
    metric_card,
    better="higher",
    needs=("complete", "embed"),
    source=DEFAULT_SOURCE,
    shared_undefined_text=_SHARED_UNDEFINED_TEXT,
)
_count_card = partial(_card, hi=1000.0, source="cotlab")


CONSISTENCY = _card(
    "consistency",
    "C",
    f"C = μ(1 − σ), μ the mean and σ the standard deviation (ddof 0) of {_PAIRS_PHRASE}",
    _FEWER_THAN_THREE_TEXT,
    _CHAIN_CAVEAT,
    lo=-1.0,
)
MU = _card(
    "consistency_mu", "μ", f"mean of {_PAIRS_PHRASE}", _FEWER_THAN_TWO_TEXT, _CHAIN_CAVEAT, lo=-1.0
)
SIGMA = _card(
    "consistency_sigma",
    "σ",
    f"standard deviation (ddof 0: divided by the number of pairs) of {_PAIRS_PHRASE}",
    _FEWER_THAN_THREE_TEXT,
    "That chains agree: it is 0 also where all pairs are equally far apart.",
    better="lower",
)
RESCALED_CONSISTENCY = _card(
    "consistency_rescaled",
    "C′",
    "(μ − f)/(1 − f) · (1 − σ), f the mean cosine of chains of different items: 0 for unrelated"
    " chains, 1 for equal ones. f is measured once a run, over all pairs of up to `floor_chains`"
    " (40) of the suite's reference chains",
    f"{_FEWER_THAN_THREE_TEXT} No floor: fewer than two items have a reference chain. f is above"
    f" {MAX_FLOOR}.",
    "Faithfulness, as `consistency`. It is as coarse as the suite is uniform: where f is near 1,"
    " small differences of μ are made large.",
    lo=-39.0,
)
AGREEMENT = _card(
    "answer_agreement",
    "agree",
    f"share of pairs {_CHAINS_PHRASE} whose extracted, normalised answers are the same, of the"
    " pairs that can be compared",
    "Fewer than 2 answers can be extracted, or none can be compared.",
    "That the answer is right, or follows from the chain: a model that always says the same agrees"
    " with itself.",
)
C_DTW = _card(
    "c_dtw",
    "C dtw",
    "μ(1 − σ) (ddof 0) over pairs of chains of 1 − D/(n + m): D is the least total of 1 − cosine"
    " along a path that aligns the n and m steps in order, a diagonal move counting twice",
    _FEWER_THAN_THREE_TEXT,
    "Which step is out of place. " + _CHAIN_CAVEAT,
    lo=-1.0,
    source="Sakoe and Chiba (1978), IEEE Trans. ASSP 26:43 (symmetric form); " + DEFAULT_SOURCE,
)
PURITY_DRIFT = _card(
    "purity_drift",
    "drift",
    "1 − mean over the steps of all chains of the share of the other chains with a step in the same"
    " cluster; clusters of all steps by cosine, average linkage, merged at `step_threshold` (0.9)"
    " and above",
    _FEWER_THAN_TWO_TEXT,
    "The order of the steps: chains of the same steps in another order drift by 0. It depends on"
    " the threshold.",
    better="lower",
)
CHAIN_COUNT = _count_card(
    "consistency_chains",
    "n",
    "how many chains the item's other scores compare: at most K + 1",
    "As the other scores.",
    "How far apart they are.",
    unit="chains",
    better="neither",
)
REJECTED_PARAPHRASES = _count_card(
    "paraphrases_rejected",
    "rejected",
    "paraphrases that were not used: their cosine to the question is below `gate` (0.7), or they"
    " have other numbers or nothing new",
    "As the other scores.",
    "That those which passed mean the same: a cosine is blind to a swapped name.",
    unit="paraphrases",
    better="lower",
)
HOLDOUT_DIFFERENCE = _card(
    "holdout_difference",
    "ΔC",
    "mean C of the question's chain with as many public paraphrases as there are hidden ones, over"
    " all such choices, minus C with the `holdout` (2) hidden paraphrases",
    "Fewer than two hidden paraphrases, or as C.",
    "Anything of one item: it is the raw material of `holdout_gap`, and which paraphrases are"
    " hidden must not be tuned on.",
    level="draw",
    lo=-2.0,
    hi=2.0,
    better="neither",
    source="cotlab",
)
PUBLIC_MINUS_HIDDEN = _card(
    "holdout_gap",
    "public − hidden",
    "mean over items of C on public minus C on hidden paraphrases, from as many chains each; which"
    " are hidden is drawn, so the gap is 0 but for chance unless a model was fitted to the public"
    " ones",
    "No item has both.",
    "Why: it warns where its interval lies above 0 and the gap above `holdout_warn` (0.05).",
    level="run",
    lo=-2.0,
    hi=2.0,
    better="lower",
    source="Practical CoT Reliability Metrics, section 12; cotlab",
)
ITEM_CARDS = (
    CONSISTENCY,
    MU,
    SIGMA,
    RESCALED_CONSISTENCY,
    AGREEMENT,
    C_DTW,
    PURITY_DRIFT,
    CHAIN_COUNT,
    REJECTED_PARAPHRASES,
)
ALL_CARDS = (*ITEM_CARDS, HOLDOUT_DIFFERENCE)
