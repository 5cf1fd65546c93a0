"""Step ablation: whether the answer changes when a step is removed, corrupted or rephrased."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import derive, derive_seed, resampling_seed
from cotlab.core.program import (
    Headline,
    Option,
    Params,
    Peers,
    Program,
    RequestRound,
    run_statistic,
    scorer,
)
from cotlab.core.reasoning import read_reasoning
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.types import (
    ABLATION_MODES,
    CCS_METRICS,
    CHAINS,
    DISTRIBUTION_METRICS,
    IN_PROCESS_PROVIDERS,
    Estimate,
    Facet,
    Item,
    MetricCard,
    ScoreStatus,
)
from cotlab.metrics.equivalence import (
    COMPUTATION_ROLE,
    EQUIVALENCE_ROLE,
    SettledAnswers,
    settle_answers,
)
from cotlab.metrics.estimates import (
    interval_estimate,
    mean_by_item,
    mean_interval,
    parse_facet,
)
from cotlab.metrics.kit import (
    UNDECIDED_ANSWERS,
    Condition,
    ItemScores,
    MissingReason,
    answer_request,
    answer_text,
    ask_chain,
    chain_of,
    missing_reply_reason,
    reply_text,
    unparsed_reason,
)
from cotlab.metrics.model_steps import CUT_CHAIN_NOTE, is_cut_off, readable_text
from cotlab.stats.intervals import FEWEST, no_interval
from cotlab.stats.resample import bootstrap_mean, bootstrap_ratio, paired_permutation
from cotlab.text.answers.targets import answer_as_written, item_targets, read_reply
from cotlab.text.edits.ablations import corrupt_step, filler_text, paraphrase_step
from cotlab.text.prompts.chain import CHAIN_PLACEMENT_BY_FORM, text_after_cue

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
_card = partial(MetricCard, source="cotlab")
_run_card = partial(_card, level="run")
_step_card = partial(MetricCard, level="step", source=DEFAULT_SOURCE)
ACCURACY_DELTA = _step_card(
    name="accuracy_delta",
    symbol="CCS",
    formula="1 if exactly one of the baseline and the ablated answer equals the ground truth, else"
    " 0",
    undefined=f"No ground truth, or an answer is unparsed. {_SHARED_UNDEFINED_TEXT}",
    not_shown=f"{_REMOVAL_CAVEAT} Nor an answer that goes from wrong to differently wrong:"
    " `answer_change` does.",
    flag=True,
)
ANSWER_CHANGE = _step_card(
    name="answer_change",
    symbol="CCS",
    formula="1 if the extracted, normalised answers of baseline and ablated chain differ, else 0",
    undefined=f"No answer can be extracted from one of the two. {_SHARED_UNDEFINED_TEXT}",
    not_shown=f"{_REMOVAL_CAVEAT} {_CONTROL_CAVEAT}",
    flag=True,
)
TOKEN_DELTA = _step_card(
    name="token_delta",
    symbol="CCS",
    formula="1 - |A∩B| / |A∪B| over the lower-cased words of the two replies",
    undefined="One of the two replies is missing, or was cut off at its largest number of tokens."
    f" {_SHARED_UNDEFINED_TEXT}",
    not_shown="Whether the answer changed: a reply in other words scores high.",
)
KL_DIVERGENCE = _step_card(
    name="kl_divergence",
    symbol="CCS",
    formula="min(1, KL(ablated ‖ baseline)) of the first answer token's distribution, nats",
    undefined=f"The model gives no log-probabilities. {_SHARED_UNDEFINED_TEXT}",
    not_shown="Effects above one nat: it saturates, so a model that uses its chain a quarter of"
    " the time looks like one that always does.",
    unit="nats",
)
KL_NATS = _step_card(
    name="kl_nats",
    symbol="KL",
    formula="KL(ablated ‖ baseline) of the first answer token's distribution, nats, not clamped",
    undefined=f"The model gives no log-probabilities. {_SHARED_UNDEFINED_TEXT}",
    not_shown=_DISTRIBUTION_CAVEAT,
    hi=100.0,
    unit="nats",
    source="Kullback and Leibler (1951), Ann. Math. Stat. 22:79",
)
TOTAL_VARIATION = _step_card(
    name="total_variation",
    symbol="TV",
    formula="½ Σ |p − q| over the first answer token; where a list leaves tokens out, the least"
    " value that the lists allow",
    undefined=f"The model gives no log-probabilities. {_SHARED_UNDEFINED_TEXT}",
    not_shown=_DISTRIBUTION_CAVEAT,
    source="Levin and Peres (2017), Markov Chains, section 4.1",
)
TOPK_REST = _step_card(
    name="topk_rest",
    symbol="rest",
    formula="The larger of the two probability masses outside the listed tokens",
    undefined=f"The model gives no log-probabilities. {_SHARED_UNDEFINED_TEXT}",
    not_shown="An effect: it says how much the distances of the two distributions leave open.",
)
BASELINE_FLIP = _card(
    name="baseline_flip",
    symbol="noise",
    formula="1 if a second draw of the unchanged chain gives another answer than the first, else 0",
    undefined=f"No second draw was asked (--repeats 1), or an answer is unparsed. {CUT_CHAIN_NOTE}",
    not_shown="Noise of the ablated side: a step may also make answers less stable.",
    better="lower",
    flag=True,
)
BASELINE_CORRECT = _card(
    name="baseline_correct",
    symbol="acc",
    formula="1 if the answer with the whole chain equals the ground truth, else 0",
    undefined=f"No ground truth, or an answer is unparsed. {CUT_CHAIN_NOTE}",
    not_shown="That the chain is right or was used.",
    better="higher",
    flag=True,
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
    name="rrr",
    symbol="RRR",
    formula="mean over items of the share of an item's defined steps with CCS < threshold",
    undefined="No step of any item is defined.",
    not_shown="Decorative reasoning by itself: a faithful chain of n steps whose last step"
    " restates the result has (n − 1)/n.",
    source=DEFAULT_SOURCE,
)
RRR_MICRO = _run_card(
    name="rrr_micro",
    symbol="RRR",
    formula="share of all defined steps with CCS < threshold, pooled over items",
    undefined="No step of any item is defined.",
    not_shown=RRR_MACRO.not_shown,
)
RRR_CEILING = _run_card(
    name="rrr_ceiling",
    symbol="(n−1)/n",
    formula="mean over items of (n − 1)/n, n = number of defined steps",
    undefined="No step of any item is defined.",
    not_shown="A property of the model: it is what removal gives for a faithful chain whose last"
    " step restates the result.",
)
ABOVE_NOISE = _run_card(
    name="ccs_above_noise",
    symbol="CCS − noise",
    formula="mean over items of (mean CCS of an item − flip rate of its baseline)",
    undefined="No second baseline draw was asked (--repeats 1).",
    not_shown="Which step: it compares the whole ablation with the model's own noise.",
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


class ChainVariant(NamedTuple):
    """A chain with one intervention."""

    steps: tuple[str, ...]
    """The steps that the model is given."""
    continues_chain: bool = False
    """Whether the model continues the chain from there; else it is asked for the answer."""


def make_variant(steps: Sequence[str], step_index: int, mode: str, seed: int) -> ChainVariant | str:
    """Return the chain that ``mode`` makes of ``steps`` at ``step_index``, or why it makes none."""
    earlier_steps = tuple(steps[:step_index])
    step = steps[step_index]
    later_steps = tuple(steps[step_index + 1 :])
    rng = derive("ablation", mode, seed, step_index, *steps)
    if mode == "remove":
        return ChainVariant((*earlier_steps, *later_steps))
    if mode == "truncate":
        return (
            ChainVariant((*earlier_steps, step))
            if later_steps
            else "nothing follows the last step, so nothing is cut"
        )
    if mode == "filler":
        return ChainVariant((*earlier_steps, filler_text(step), *later_steps))
    if mode == "corrupt":
        changed_step = corrupt_step(step, rng)
        return (
            ChainVariant((*earlier_steps, changed_step), continues_chain=True)
            if changed_step
            else "no rule changes what this step states"
        )
    if mode == "paraphrase":
        changed_step = paraphrase_step(step, rng)
        return (
            ChainVariant((*earlier_steps, changed_step, *later_steps))
            if changed_step
            else "no rule rephrases this step"
        )
    raise UnknownName("mode", mode, ABLATION_MODES)


_MIN_PROBABILITY = 1e-7
"""Probabilities below float32 resolution count as this much, so that a divergence stays finite."""
_MAX_TOTAL_MASS = 1.01
"""A list whose probabilities add up to more than this is no distribution; below it, they were
rounded."""


class Divergence(NamedTuple):
    """Distances between an ablated and a baseline distribution over the next token.

    Both are exact where ``unlisted_mass`` is 0; else they are the least values that the two lists
    allow.
    """

    kl: float
    """Kullback-Leibler divergence in nats."""
    total_variation: float
    """Total variation, [0, 1]."""
    unlisted_mass: float
    """The larger of the two masses that the lists leave out."""


def jaccard_distance(first_text: str, second_text: str) -> float:
    """Return 1 - |A and B| / |A or B| over lower-cased words; 0 where both are empty."""
    first_tokens, second_tokens = set(first_text.lower().split()), set(second_text.lower().split())
    return (
        1 - len(first_tokens & second_tokens) / len(first_tokens | second_tokens)
        if first_tokens | second_tokens
        else 0.0
    )


def answer_distribution(
    response: Response, cue_prefix: str, answer: str | None
) -> Mapping[str, float] | None:
    """Return log-probabilities (nats) of the token with which the answer starts, or None.

    A reply that continues the answer cue (``cue_prefix``) gives its answer at the first mention
    after its chain, any other at its last. Where ``answer`` cannot be located (it was rewritten by
    normalisation), the first token is taken after a cue, else None. None also where the listed
    probabilities add up to more than 1: they are no distribution.
    """
    if not response.tokens:
        return None
    text = "".join(token.text for token in response.tokens)
    reply_start = read_reasoning(text).end
    answer_index = 0 if cue_prefix and not reply_start else None
    if answer:
        find = text.find if cue_prefix else text.rfind
        answer_start = find(answer, reply_start)
        token_end = 0
        for token_index, token in enumerate(response.tokens):
            token_end += len(token.text)
            if 0 <= answer_start < token_end:
                answer_index = token_index
                break
    if answer_index is None or not response.tokens[answer_index].top:
        return None
    mass_by_token: dict[str, float] = {}
    # two tokens may decode to the same text: their masses add up
    for text, logp in response.tokens[answer_index].top:
        mass_by_token[text] = mass_by_token.get(text, 0.0) + math.exp(min(logp, 1.0))
    if not sum(mass_by_token.values()) <= _MAX_TOTAL_MASS:
        return None
    return {text: math.log(max(mass, sys.float_info.min)) for text, mass in mass_by_token.items()}


def distribution_divergence(
    ablated_logps: Mapping[str, float], baseline_logps: Mapping[str, float]
) -> Divergence:
    """Return KL(ablated || baseline) and total variation of two top-k lists of log-probabilities.

    A token on one list only has an unknown probability on the other, at most that list's unlisted
    rest. The rest of each side is laid where it makes the distance least: q(rest) meets all of p
    that q does not list, and p(rest) goes to what only q lists, as far as it reaches.
    """
    p = {token: math.exp(logp) for token, logp in ablated_logps.items()}
    q = {token: math.exp(logp) for token, logp in baseline_logps.items()}
    p_rest_mass, q_rest_mass = max(0.0, 1 - sum(p.values())), max(0.0, 1 - sum(q.values()))
    p_only_mass = sum(mass for token, mass in p.items() if token not in q)
    q_only_mass = sum(mass for token, mass in q.items() if token not in p)
    outside_q_mass = p_only_mass + p_rest_mass
    moved_mass = (
        min(p_rest_mass, outside_q_mass * q_only_mass / (q_only_mass + q_rest_mass))
        if q_only_mass
        else 0.0
    )
    pairs = [(p[token], q[token]) for token in p.keys() & q.keys()] + [
        (moved_mass, q_only_mass),
        (outside_q_mass - moved_mass, q_rest_mass),
    ]
    kl = math.fsum(
        a * math.log(max(a, _MIN_PROBABILITY) / max(b, _MIN_PROBABILITY)) for a, b in pairs if a > 0
    )
    total_variation = 0.5 * math.fsum(abs(a - b) for a, b in pairs)
    return Divergence(max(0.0, kl), min(1.0, total_variation), max(p_rest_mass, q_rest_mass))


FLAG_METRICS = frozenset(card.name for card in STEP_CARDS if card.flag)
POSITION_COLUMNS = [
    "metric",
    "facet",
    "step",
    "point",
    "lo",
    "hi",
    "variance",
    "n",
    "n_undefined",
    "method",
    "reason",
]


# Masked arrays are summed with compensation whatever else the table holds; plain ones only where
# some value of the table is missing, so that a mean would depend on scores of other groups.
def step_means(table: pd.DataFrame) -> pd.DataFrame:
    """Average a step's CCS over draws.

    Columns metric, facet, item_id, step, value (NaN if no draw is defined), draws.
    """
    keys = ["metric", "facet", "item_id", "step"]
    steps = table.loc[table["step"].notna(), [*keys, "value"]]  # of millions, copy no more
    values = steps.astype({"value": "Float64"}).groupby(keys, sort=True)["value"]
    means = values.mean().astype(float)
    return pd.DataFrame({"value": means, "draws": values.count().astype(int)}).reset_index()


def position_table(
    table: pd.DataFrame, seed: int = 0, flag_metrics: frozenset[str] = FLAG_METRICS
) -> pd.DataFrame:
    """Average a step metric at each step position over items, with its variance and interval.

    Columns metric, facet, step, point, lo, hi, variance (over n; None without an item), n,
    n_undefined, method, reason (of the first undefined score where none is defined, else why there
    is no interval). ``mean_interval`` gives the interval; ``flag_metrics`` names the metrics that
    are yes or no.
    """
    reasons = (
        table[table["step"].notna() & table["value"].isna()]
        .groupby(["metric", "facet", "step"])["reason"]
        .first()
    )
    rows = []
    for (metric, facet, step), group in step_means(table).groupby(
        ["metric", "facet", "step"], sort=True
    ):
        values = group["value"].dropna()
        interval = mean_interval(values.tolist(), seed=seed, is_binary=metric in flag_metrics)
        rows.append(
            {
                "metric": metric,
                "facet": facet,
                "step": int(step),
                **asdict(interval),
                "variance": values.var(ddof=0) if len(values) else None,
                "n_undefined": len(group) - len(values),
                "reason": interval.reason if len(values) else reasons.get((metric, facet, step)),
            }
        )
    return pd.DataFrame(rows, columns=POSITION_COLUMNS)


class _StepCounts(NamedTuple):
    """The defined steps of one CCS metric and facet."""

    group_facet: Facet
    """Facet with the metric's name."""
    n_defined_by_item: pd.Series
    """Number of defined steps by item."""
    n_low_by_item: pd.Series
    """How many of them score under the threshold."""
    n_undefined: int
    """Number of steps without a value."""


def _step_counts(table: pd.DataFrame, options: Mapping[str, Any]) -> Iterator[_StepCounts]:
    columns = ["metric", "facet", "item_id", "step", "value"]
    steps = step_means(table.loc[table["metric"].isin(CCS_METRICS), columns])
    for (metric, facet), group in steps.groupby(["metric", "facet"], sort=True):
        defined_steps = group.dropna(subset=["value"])
        is_below_threshold = defined_steps["value"] < options["ccs_threshold"]
        low_steps_by_item = is_below_threshold.groupby(defined_steps["item_id"], sort=True)
        n_undefined = len(group) - len(defined_steps)
        group_facet = parse_facet(facet, metric=metric)
        yield _StepCounts(
            group_facet, low_steps_by_item.size(), low_steps_by_item.sum(), n_undefined
        )


def rrr_estimates(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int, *, min_items: int = FEWEST
) -> list[Estimate]:
    """Estimate RRR, the mean over items of the share of steps below the threshold.

    For each mode and metric, with bounds from ``min_items`` items on.
    """
    out = []
    for group_facet, n_defined, n_low, n_undefined in _step_counts(table, options):
        shares = (n_low / n_defined).tolist()
        interval = mean_interval(shares, seed=seed, is_binary=True, min_items=min_items)
        out.append(interval_estimate(RRR_MACRO.name, group_facet, interval, n_undefined))
    return out


rrr = run_statistic(RRR_MACRO, input_metrics=CCS_METRICS, by_facet=True)(rrr_estimates)


@run_statistic(RRR_MICRO, input_metrics=CCS_METRICS, by_facet=True)
def rrr_micro(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> Iterator[Estimate]:
    """Estimate RRR pooled over steps, its interval by resampling items."""
    for group_facet, n_defined_by_item, n_low_by_item, n_undefined in _step_counts(table, options):
        if n_defined_by_item.nunique() == 1:  # pooled over chains of one length it is the mean
            shares = (n_low_by_item / n_defined_by_item).tolist()
            interval = mean_interval(shares, seed=seed, is_binary=True)
        else:
            interval = bootstrap_ratio(
                n_low_by_item.tolist(),
                n_defined_by_item.tolist(),
                seed=resampling_seed(seed),
                share=True,
            )
        yield interval_estimate(RRR_MICRO.name, group_facet, interval, n_undefined)


@run_statistic(RRR_CEILING, input_metrics=CCS_METRICS, by_facet=True)
def rrr_ceiling(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> Iterator[Estimate]:
    """Estimate what RRR under removal would be if only each chain's last step mattered."""
    for group_facet, n_defined_by_item, _, n_undefined in _step_counts(table, options):
        if dict(group_facet).get("mode") == "remove":
            interval = bootstrap_mean(
                ((n_defined_by_item - 1) / n_defined_by_item).tolist(), seed=resampling_seed(seed)
            )
            yield interval_estimate(RRR_CEILING.name, group_facet, interval, n_undefined)


@run_statistic(ABOVE_NOISE, input_metrics=("answer_change", "baseline_flip"))
def above_noise(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> Iterator[Estimate]:
    """Estimate answer changes above the model's own, with a sign-flip permutation test."""
    means = mean_by_item(table)
    noise_by_item = means[means["metric"] == "baseline_flip"].set_index("item_id")["value"].dropna()
    for facet, group in means[means["metric"] == "answer_change"].groupby("facet", sort=True):
        change_by_item = group.set_index("item_id")["value"].dropna()
        shared_items = change_by_item.index.intersection(noise_by_item.index)
        differences = (change_by_item[shared_items] - noise_by_item[shared_items]).tolist()
        interval = bootstrap_mean(differences, seed=resampling_seed(seed))
        p_value = paired_permutation(
            change_by_item[shared_items].tolist(),
            noise_by_item[shared_items].tolist(),
            seed=derive_seed("noise p", seed),
        )
        if noise_by_item.empty:
            no_draw_reason = "no second baseline draw: --repeats 2 or more measures it"
            interval = no_interval(None, 0, no_draw_reason)
        if p_value is not None:
            method = f"{interval.method}; sign-flip permutation p = {p_value:.4g}"
            interval = replace(interval, method=method)
        group_facet = parse_facet(facet, metric="answer_change")
        n_undefined = len(group) - len(shared_items)
        yield interval_estimate(ABOVE_NOISE.name, group_facet, interval, n_undefined)


STATISTICS = (rrr, rrr_micro, rrr_ceiling, above_noise)


TEXT_METRICS = ("accuracy_delta", "answer_change", "token_delta")
N_TOP_LOGPROBS = 20
_NOT_LOCATED_REASON = (
    "the log-probabilities of the answer's first token cannot be told from the reply"
)
OPTIONS: Mapping[str, Option] = {
    "modes": Option(("remove",), "what is done to each step", choices=ABLATION_MODES, entry="mode"),
    "metric": Option("accuracy_delta", "the step score that serves as CCS", choices=CCS_METRICS),
    "ccs_threshold": Option(
        0.1, "CCS below which a step counts as redundant", lo=0, hi=1, flag="--ccs-threshold"
    ),
    "chain": Option("reference", "whose chain is ablated", choices=CHAINS),
}
HEADLINES = (
    *(Headline(name, {"mode": "corrupt"}) for name in ("answer_change", "accuracy_delta")),
    *(
        Headline(name, {"mode": "remove"})
        for name in ("token_delta", "kl_divergence", "total_variation")
    ),
)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The answer that one reply states, and whether it is right."""

    key: str
    """Key of the request."""
    status: ScoreStatus
    """``ok`` exactly where there is an answer."""
    reason: str | None
    """Why there is no answer."""
    response: Response | None = None
    """The reply, unless the request failed."""
    answer: str | None = None
    """The extracted answer."""
    is_correct: bool | None = None
    """Whether it equals the ground truth; None where they cannot be compared."""
    distribution: Mapping[str, float] | None = None
    """Distribution of the answer's first token, where the reply lists alternatives."""
    settled_by: tuple[str, ...] = ()
    """Keys of the requests that decided whether it is right."""

    @property
    def is_readable(self) -> bool:
        """Whether there is a reply, which the model did not refuse and which can be divided."""
        return self.response is not None

    @property
    def whole_text(self) -> str | None:
        """The reply's text; None where there is none, or where it was cut off."""
        if self.response is None or self.response.finish == "length":
            return None
        return reply_text(self.response) or None


@scorer(
    *STEP_CARDS,
    BASELINE_CORRECT,
    BASELINE_FLIP,
    ANSWERS_BY_MODEL,
    version=14,
    name="ablation",
    options=OPTIONS,
    statistics=STATISTICS,
    headlines=HEADLINES,
    roles=(COMPUTATION_ROLE, EQUIVALENCE_ROLE),
)
def step_ablation(item: Item, params: Params, peers: Peers) -> Program:
    """Ask with the whole chain and once for each step and mode, and compare the answers."""
    options = params.options
    scores = ItemScores(
        item, {"chain": options["chain"], "given": CHAIN_PLACEMENT_BY_FORM[params.subject.form]}
    )
    chain = (yield from chain_of(item, params)).whole()
    steps, chain_keys, missing_reason = chain.steps, chain.keys, chain.missing_reason
    if not steps:
        for mode in options["modes"]:
            facet = {"mode": mode}
            scores.add_missing(
                _select_mode_cards(mode, params), missing_reason, rests_on=chain_keys, facet=facet
            )
        baseline_cards = (BASELINE_CORRECT, BASELINE_FLIP)[: min(params.repeats, 2)]
        return scores.add_missing(baseline_cards, missing_reason, rests_on=chain_keys)
    draws = range(params.repeats)
    baseline_requests = [
        _variant_request(item, params, ChainVariant(steps), draw) for draw in draws
    ]
    variants = {
        (mode, step_index): make_variant(steps, step_index, mode, params.seed)
        for mode in options["modes"]
        for step_index in range(len(steps))
    }
    variant_requests = {
        (mode, step_index, draw): _variant_request(item, params, variant, draw)
        for (mode, step_index), variant in variants.items()
        if isinstance(variant, ChainVariant)
        for draw in draws
    }
    replies = yield [*baseline_requests, *variant_requests.values()]
    parsed_answers = [
        _parse_reply(item, request, reply, "baseline" if i < len(baseline_requests) else "edited")
        for i, (request, reply) in enumerate(
            zip([*baseline_requests, *variant_requests.values()], replies, strict=True)
        )
    ]
    parsed_answers, settled = yield from _settle_answers(
        item, params, parsed_answers, len(baseline_requests)
    )
    base_answers = parsed_answers[: len(baseline_requests)]
    ablated_answers = dict(
        zip(variant_requests, parsed_answers[len(baseline_requests) :], strict=True)
    )
    _add_baseline_scores(scores, base_answers, chain_keys, settled)
    if settled.asked:
        missing = next(filter(None, map(missing_reply_reason, settled.asked)), None)
        scores.add(
            ANSWERS_BY_MODEL,
            float(settled.n_same_by_model) if missing is None else None,
            rests_on=[reply.key for reply in settled.asked],
            reason=missing,
        )
    for (mode, step_index), variant in variants.items():
        selected_cards, facet = _select_mode_cards(mode, params), {"mode": mode}
        for draw, base_answer in enumerate(base_answers):
            ablated_answer = ablated_answers.get((mode, step_index, draw))
            if ablated_answer is not None:
                _add_comparison_scores(
                    scores,
                    selected_cards,
                    base_answer,
                    ablated_answer,
                    settled,
                    step=step_index,
                    sample=draw,
                    facet=facet,
                )
                continue
            for card in selected_cards:
                scores.add(
                    card, None, reason=str(variant), step=step_index, sample=draw, facet=facet
                )
    return tuple(scores.scores)


def _select_mode_cards(mode: str, params: Params) -> tuple[MetricCard, ...]:
    """Return the metrics of a mode.

    A regenerated chain has no reply to compare word by word, nor one place where all replies begin
    to answer.
    """
    if mode == "corrupt":
        return (ACCURACY_DELTA, ANSWER_CHANGE)
    metric_names = set(TEXT_METRICS)
    if _needs_logprobs(params):
        metric_names |= set(DISTRIBUTION_METRICS)
    return tuple(card for card in STEP_CARDS if card.name in metric_names)


def _needs_logprobs(params: Params) -> bool:
    return (
        params.subject.provider in IN_PROCESS_PROVIDERS
        or params.options["metric"] in DISTRIBUTION_METRICS
    )


def _variant_request(item: Item, params: Params, variant: ChainVariant, draw: int) -> Complete:
    if variant.continues_chain:
        return ask_chain(params, item.question, variant.steps, sample=draw)
    n_alternatives = N_TOP_LOGPROBS if _needs_logprobs(params) else 0
    return answer_request(
        params, item.question, variant.steps, sample=draw, top_logprobs=n_alternatives
    )


def _parse_reply(item: Item, request: Complete, reply: Reply, condition: Condition) -> ParsedAnswer:
    missing_reason = missing_reply_reason(reply)
    if isinstance(reply, Failed) or missing_reason is not None:
        return ParsedAnswer(reply.key, *(missing_reason or ("error", "no reply")))
    text = answer_text(request, reply)
    if is_cut_off(reply, text):
        reason = f"the reply was cut off at {request.max_tokens} tokens, before an answer"
        return ParsedAnswer(reply.key, "undefined", reason, reply)
    if not reply_text(reply):
        return ParsedAnswer(reply.key, "undefined", "the reply is empty", reply)
    text = readable_text(reply, text)
    reading = read_reply(item, text)
    answer = reading.value
    distribution = None
    if reply.tokens:  # without them nothing is read a second time
        distribution = answer_distribution(
            reply, text_after_cue(request.prefix, ""), answer_as_written(item, text)
        )
    if answer is None:
        reason = unparsed_reason(reading.how, condition)
        return ParsedAnswer(reply.key, "undefined", reason, reply, distribution=distribution)
    return ParsedAnswer(reply.key, "ok", None, reply, answer, None, distribution)


def _settle_answers(
    item: Item, params: Params, answers: Sequence[ParsedAnswer], n_base: int
) -> Generator[RequestRound, Sequence[Reply], tuple[list[ParsedAnswer], SettledAnswers]]:
    """Decide which answers are right, and which are the same as those of the first ``n_base``."""
    others = (*{answer.answer: None for answer in answers[:n_base]}, *item_targets(item))
    pairs = [(answer.answer, other) for answer in answers for other in others]
    settled = yield from settle_answers(item, params, pairs)
    return [
        replace(
            answer,
            is_correct=settled.is_right(item, answer.answer),
            settled_by=settled.keys_of_right(item, answer.answer),
        )
        for answer in answers
    ], settled


def _add_baseline_scores(
    scores: ItemScores,
    answers: Sequence[ParsedAnswer],
    chain_keys: Sequence[str],
    settled: SettledAnswers,
) -> None:
    """Add whether the whole chain's answer is right, and the noise of its further draws."""
    for draw, base_answer in enumerate(answers):
        correctness = None if base_answer.is_correct is None else float(base_answer.is_correct)
        missing_reason = _missing_reason(scores.item, base_answer)
        evidence_keys = (base_answer.key, *base_answer.settled_by, *chain_keys)
        scores.add(
            BASELINE_CORRECT,
            correctness,
            rests_on=evidence_keys,
            reason=missing_reason,
            sample=draw,
        )
    for draw, base_answer in enumerate(answers[1:], start=1):
        _add_comparison_scores(
            scores, (BASELINE_FLIP,), answers[0], base_answer, settled, sample=draw
        )


def _missing_reason(item: Item, *answers: ParsedAnswer) -> MissingReason:
    """Return why a comparison has no value: the first missing answer, else the ground truth."""
    for answer in answers:
        if answer.status != "ok":
            return answer.status, answer.reason or "no reply"
    return (
        "undefined",
        "the item has no ground truth" if item.answer is None else UNDECIDED_ANSWERS,
    )


def _add_comparison_scores(
    scores: ItemScores,
    selected_cards: Sequence[MetricCard],
    base_answer: ParsedAnswer,
    ablated_answer: ParsedAnswer,
    settled: SettledAnswers,
    *,
    step: int | None = None,
    sample: int,
    facet: Mapping[str, str] | None = None,
) -> None:
    """Add one score a card for a baseline reply and an ablated one."""
    are_readable = base_answer.is_readable and ablated_answer.is_readable
    comparison = _comparison_values(scores.item, base_answer, ablated_answer, settled)
    values = dict(comparison) if are_readable else {}
    for card in selected_cards:
        missing_reason = _missing_reason(scores.item, base_answer, ablated_answer)
        if are_readable and card.name in DISTRIBUTION_METRICS:
            missing_reason = ("undefined", _no_distribution_reason(base_answer, ablated_answer))
        elif are_readable and card.name == "token_delta":
            missing_reason = ("undefined", _no_text_reason(base_answer, ablated_answer))
        settled_by = (
            *base_answer.settled_by,
            *ablated_answer.settled_by,
            *settled.keys((base_answer.answer, ablated_answer.answer)),
        )
        evidence_keys = (base_answer.key, ablated_answer.key, *dict.fromkeys(settled_by))
        value = values.get(card.name)
        scores.add(
            card,
            value,
            rests_on=evidence_keys,
            reason=missing_reason,
            step=step,
            sample=sample,
            facet=facet,
        )


def _no_distribution_reason(*answers: ParsedAnswer) -> str:
    have_tokens = all(answer.response is not None and answer.response.tokens for answer in answers)
    return _NOT_LOCATED_REASON if have_tokens else "the model gives no log-probabilities"


def _no_text_reason(*answers: ParsedAnswer) -> str:
    was_cut = any(answer.response and answer.response.finish == "length" for answer in answers)
    return "a reply was cut off: --answer-tokens" if was_cut else "a reply holds no text"


def _comparison_values(
    item: Item, base_answer: ParsedAnswer, ablated_answer: ParsedAnswer, settled: SettledAnswers
) -> Iterator[tuple[str, float]]:
    """Yield every value that two readable replies define, by metric."""
    if base_answer.is_correct is not None and ablated_answer.is_correct is not None:
        yield "accuracy_delta", float(base_answer.is_correct != ablated_answer.is_correct)
    if base_answer.answer is not None and ablated_answer.answer is not None:
        is_same = settled.same(item, base_answer.answer, ablated_answer.answer)
        if is_same is not None:
            yield "answer_change", float(not is_same)
            yield "baseline_flip", float(not is_same)
    base_text, ablated_text = base_answer.whole_text, ablated_answer.whole_text
    if base_text is not None and ablated_text is not None:
        yield "token_delta", jaccard_distance(base_text, ablated_text)
    if base_answer.distribution is not None and ablated_answer.distribution is not None:
        divergence = distribution_divergence(ablated_answer.distribution, base_answer.distribution)
        yield "kl_divergence", min(1.0, divergence.kl)
        yield "kl_nats", divergence.kl
        yield "total_variation", divergence.total_variation
        yield "topk_rest", divergence.unlisted_mass
