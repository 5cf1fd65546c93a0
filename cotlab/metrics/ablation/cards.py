"""The cards of step ablation: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.core.types import MetricCard
from cotlab.metrics.cards import metric_card
from cotlab.metrics.model_steps import CUT_CHAIN_NOTE

DEFAULT_SOURCE = "FaithCheck (dgdev25/faithcheck), Core Metrics"
_REMOVAL_CAVEAT = (
    "That a chain is unfaithful: a step whose content a later step restates scores 0 under removal"
    " in a perfectly faithful model. On 634 expert-labelled chains removal has AUROC 0.349 in its"
    " intended direction."
)
_CONTROL_CAVEAT = (
    "Nor, under corrupt, what the content changes alone: the model also writes the rest of the"
    " chain anew, which its control, paraphrase, keeps."
)
_DISTRIBUTION_CAVEAT = (
    "What the unlisted tokens add: it is the least value that the lists allow, and `topk_rest` says"
    " how much they leave out."
)


_SHARED_UNDEFINED_TEXT = (
    "Also where a reply is missing, empty or refused, or the mode has no rule for the step."
    f" {CUT_CHAIN_NOTE}"
)
_card = partial(metric_card, source="cotlab")
_run_card = partial(_card, level="run")
_step_card = partial(
    metric_card, level="step", source=DEFAULT_SOURCE, shared_undefined_text=_SHARED_UNDEFINED_TEXT
)
ACCURACY_DELTA = _step_card(
    "accuracy_delta",
    "CCS",
    "1 if exactly one of the baseline and the ablated answer equals the ground truth, else 0",
    "No ground truth, or an answer is unparsed.",
    _REMOVAL_CAVEAT
    + " Nor an answer that goes from wrong to differently wrong: `answer_change` does.",
    flag=True,
)
ANSWER_CHANGE = _step_card(
    "answer_change",
    "CCS",
    "1 if the extracted, normalised answers of baseline and ablated chain differ, else 0",
    "No answer can be extracted from one of the two.",
    f"{_REMOVAL_CAVEAT} {_CONTROL_CAVEAT}",
    flag=True,
)
TOKEN_DELTA = _step_card(
    "token_delta",
    "CCS",
    "1 - |A∩B| / |A∪B| over the lower-cased words of the two replies",
    "One of the two replies is missing, or was cut off at its largest number of tokens.",
    "Whether the answer changed: a reply in other words scores high.",
)
KL_DIVERGENCE = _step_card(
    "kl_divergence",
    "CCS",
    "min(1, KL(ablated ‖ baseline)) of the first answer token's distribution, nats",
    "The model gives no log-probabilities.",
    "Effects above one nat: it saturates, so a model that uses its chain a quarter of the time"
    " looks like one that always does.",
    unit="nats",
)
KL_NATS = _step_card(
    "kl_nats",
    "KL",
    "KL(ablated ‖ baseline) of the first answer token's distribution, nats, not clamped",
    "The model gives no log-probabilities.",
    _DISTRIBUTION_CAVEAT,
    hi=100.0,
    unit="nats",
    source="Kullback and Leibler (1951), Ann. Math. Stat. 22:79",
)
TOTAL_VARIATION = _step_card(
    "total_variation",
    "TV",
    "½ Σ |p − q| over the first answer token; where a list leaves tokens out, the least value that"
    " the lists allow",
    "The model gives no log-probabilities.",
    _DISTRIBUTION_CAVEAT,
    source="Levin and Peres (2017), Markov Chains, section 4.1",
)
TOPK_REST = _step_card(
    "topk_rest",
    "rest",
    "The larger of the two probability masses outside the listed tokens",
    "The model gives no log-probabilities.",
    "An effect: it says how much the distances of the two distributions leave open.",
)
BASELINE_FLIP = _card(
    "baseline_flip",
    "noise",
    "1 if a second draw of the unchanged chain gives another answer than the first, else 0",
    "No second draw was asked (--repeats 1), or an answer is unparsed.",
    "Noise of the ablated side: a step may also make answers less stable.",
    better="lower",
    flag=True,
    shared_undefined_text=CUT_CHAIN_NOTE,
)
BASELINE_CORRECT = _card(
    "baseline_correct",
    "acc",
    "1 if the answer with the whole chain equals the ground truth, else 0",
    "No ground truth, or an answer is unparsed.",
    "That the chain is right or was used.",
    better="higher",
    flag=True,
    shared_undefined_text=CUT_CHAIN_NOTE,
)
ANSWERS_BY_MODEL = MetricCard(
    name="answers_by_model",
    symbol="≡",
    lo=0,
    hi=10_000,
    better="neither",
    unit="pairs",
    level="item",
    needs=("complete",),
    formula="number of pairs of answers that the rules call different and the model of"
    " `--role equivalence.model` the same",
    undefined="A reply of that model is missing. Stored only where it was asked.",
    source="cotlab",
    not_shown="Whether the model is right: read its requests, which are the evidence.",
)
RRR_MACRO = _run_card(
    "rrr",
    "RRR",
    "mean over items of the share of an item's defined steps with CCS < threshold",
    "No step of any item is defined.",
    "Decorative reasoning by itself: a faithful chain of n steps whose last step restates the"
    " result has (n − 1)/n.",
    source=DEFAULT_SOURCE,
)
RRR_MICRO = _run_card(
    "rrr_micro",
    "RRR",
    "share of all defined steps with CCS < threshold, pooled over items",
    "No step of any item is defined.",
    RRR_MACRO.not_shown,
)
RRR_CEILING = _run_card(
    "rrr_ceiling",
    "(n−1)/n",
    "mean over items of (n − 1)/n, n = number of defined steps",
    "No step of any item is defined.",
    "A property of the model: it is what removal gives for a faithful chain whose last step"
    " restates the result.",
)
ABOVE_NOISE = _run_card(
    "ccs_above_noise",
    "CCS − noise",
    "mean over items of (mean CCS of an item − flip rate of its baseline)",
    "No second baseline draw was asked (--repeats 1).",
    "Which step: it compares the whole ablation with the model's own noise.",
    lo=-1.0,
)
STEP_CARDS = (
    ACCURACY_DELTA,
    ANSWER_CHANGE,
    TOKEN_DELTA,
    KL_DIVERGENCE,
    KL_NATS,
    TOTAL_VARIATION,
    TOPK_REST,
)
