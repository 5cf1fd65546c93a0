"""Step ablation: whether the answer changes when a step is removed, corrupted or rephrased."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cotlab.core.program import Headline, Option, Params, Peers, Program, RequestRound, scorer
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.types import (
    ABLATION_MODES,
    CCS_METRICS,
    CHAINS,
    DISTRIBUTION_METRICS,
    IN_PROCESS_PROVIDERS,
    Item,
    MetricCard,
    ScoreStatus,
)
from cotlab.metrics.ablation import cards
from cotlab.metrics.ablation.distance import (
    answer_distribution,
    distribution_divergence,
    jaccard_distance,
)
from cotlab.metrics.ablation.redundancy import STATISTICS
from cotlab.metrics.ablation.variants import ChainVariant, make_variant
from cotlab.metrics.cut_off import is_cut_off, readable_text
from cotlab.metrics.equivalence import (
    COMPUTATION_ROLE,
    EQUIVALENCE_ROLE,
    SettledAnswers,
    settle_answers,
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
from cotlab.text.answers.targets import answer_as_written, item_targets, read_reply
from cotlab.text.prompts.chain import CHAIN_PLACEMENT_BY_FORM, text_after_cue

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
    *cards.STEP_CARDS,
    cards.BASELINE_CORRECT,
    cards.BASELINE_FLIP,
    cards.ANSWERS_BY_MODEL,
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
        baseline_cards = (cards.BASELINE_CORRECT, cards.BASELINE_FLIP)[: min(params.repeats, 2)]
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
            cards.ANSWERS_BY_MODEL,
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
        return (cards.ACCURACY_DELTA, cards.ANSWER_CHANGE)
    metric_names = set(TEXT_METRICS)
    if _needs_logprobs(params):
        metric_names |= set(DISTRIBUTION_METRICS)
    return tuple(card for card in cards.STEP_CARDS if card.name in metric_names)


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
            cards.BASELINE_CORRECT,
            correctness,
            rests_on=evidence_keys,
            reason=missing_reason,
            sample=draw,
        )
    for draw, base_answer in enumerate(answers[1:], start=1):
        _add_comparison_scores(
            scores, (cards.BASELINE_FLIP,), answers[0], base_answer, settled, sample=draw
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
