"""Step ablation: whether the answer changes when a step is removed, corrupted or rephrased."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cotlab.core.errors import UnknownName
from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, Status
from cotlab.core.vocabulary import CCS_METRICS, CHAINS, DISTRIBUTION_METRICS, IN_PROCESS, MODES
from cotlab.metrics.ablation import cards
from cotlab.metrics.ablation.distance import answer_distribution, diverge, jaccard_distance
from cotlab.metrics.ablation.redundancy import STATISTICS
from cotlab.metrics.kit import (
    ItemScores,
    MissingReason,
    answer_text,
    answers_match,
    ask_chain,
    ask_for_answer,
    chain_of,
    cut_off,
    missing_reply,
)
from cotlab.text.answers.extract import final_answer
from cotlab.text.edits.ablations import corrupt_step, filler_for, paraphrase_step
from cotlab.text.prompts.chain import GIVEN, text_after_cue

TEXT_METRICS = ("accuracy_delta", "answer_change", "token_delta")
TOP_LOGPROBS = 20
_NOT_LOCATED = "the log-probabilities of the answer's first token cannot be told from the reply"
OPTIONS: Mapping[str, Option] = {
    "modes": Option(("remove",), "what is done to each step", choices=MODES, entry="mode"),
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


class Variant(NamedTuple):
    """A chain with one intervention."""

    steps: tuple[str, ...]
    """The steps that the model is given."""
    rest: bool = False
    """Whether the model continues the chain from there; else it is asked for the answer."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The answer that one reply states, and whether it is right."""

    key: str
    """Key of the request."""
    status: Status
    """``ok`` exactly where there is an answer."""
    reason: str | None
    """Why there is no answer."""
    response: Response | None = None
    """The reply, unless the request failed."""
    answer: str | None = None
    """The extracted answer."""
    correct: bool | None = None
    """Whether it equals the ground truth; None where they cannot be compared."""
    distribution: Mapping[str, float] | None = None
    """Distribution of the answer's first token, where the reply lists alternatives."""

    @property
    def readable(self) -> bool:
        """Whether there is a reply that the model did not refuse."""
        return self.response is not None and self.status != "refused"


def make_variant(steps: Sequence[str], at: int, mode: str, seed: int) -> Variant | str:
    """Return the chain that ``mode`` makes of ``steps`` at index ``at``, or why it makes none."""
    before, step, after = tuple(steps[:at]), steps[at], tuple(steps[at + 1 :])
    rng = derive("ablation", mode, seed, at, *steps)
    if mode == "remove":
        return Variant((*before, *after))
    if mode == "truncate":
        return (
            Variant((*before, step))
            if after
            else "nothing follows the last step, so nothing is cut"
        )
    if mode == "filler":
        return Variant((*before, filler_for(step), *after))
    if mode == "corrupt":
        changed = corrupt_step(step, rng)
        return (
            Variant((*before, changed), rest=True)
            if changed
            else "no rule changes what this step states"
        )
    if mode == "paraphrase":
        changed = paraphrase_step(step, rng)
        return Variant((*before, changed, *after)) if changed else "no rule rephrases this step"
    raise UnknownName("mode", mode, MODES)


@scorer(
    *cards.STEP_CARDS,
    cards.BASELINE_CORRECT,
    cards.BASELINE_FLIP,
    version=1,
    name="ablation",
    options=OPTIONS,
    statistics=STATISTICS,
    headlines=HEADLINES,
)
def step_ablation(item: Item, params: Params, peers: Peers) -> Program:
    """Ask with the whole chain and once for each step and mode, and compare the answers."""
    options = params.options
    scores = ItemScores(item, {"chain": options["chain"], "given": GIVEN[params.subject.form]})
    steps, chain_keys, missing_reason, _ = yield from chain_of(item, params)
    if not steps:
        for mode in options["modes"]:
            facet = {"mode": mode}
            scores.add_missing(_cards_for(mode, params), missing_reason, on=chain_keys, facet=facet)
        baseline_cards = (cards.BASELINE_CORRECT, cards.BASELINE_FLIP)[: min(params.repeats, 2)]
        scores.add_missing(baseline_cards, missing_reason, on=chain_keys)
        return tuple(scores.scores)
    draws = range(params.repeats)
    baseline = [_ask(item, params, Variant(steps), draw) for draw in draws]
    variants = {
        (mode, i): make_variant(steps, i, mode, params.seed)
        for mode in options["modes"]
        for i in range(len(steps))
    }
    requests = {
        (mode, i, draw): _ask(item, params, variant, draw)
        for (mode, i), variant in variants.items()
        if isinstance(variant, Variant)
        for draw in draws
    }
    replies = yield [*baseline, *requests.values()]
    parsed = [
        _parse_reply(item, request, reply)
        for request, reply in zip([*baseline, *requests.values()], replies, strict=True)
    ]
    base_answers = parsed[: len(baseline)]
    ablated_answers = dict(zip(requests, parsed[len(baseline) :], strict=True))
    _add_baseline(scores, base_answers, chain_keys)
    for (mode, i), variant in variants.items():
        selected, facet = _cards_for(mode, params), {"mode": mode}
        for draw, base in enumerate(base_answers):
            ablated = ablated_answers.get((mode, i, draw))
            if ablated is not None:
                _compare(scores, selected, base, ablated, step=i, sample=draw, facet=facet)
                continue
            for card in selected:
                scores.add(card, None, reason=str(variant), step=i, sample=draw, facet=facet)
    return tuple(scores.scores)


def _cards_for(mode: str, params: Params) -> tuple[MetricCard, ...]:
    """Return the metrics of a mode.

    A regenerated chain has no reply to compare word by word, nor one place where all replies begin
    to answer.
    """
    if mode == "corrupt":
        return (cards.ACCURACY_DELTA, cards.ANSWER_CHANGE)
    names = set(TEXT_METRICS)
    if _with_logprobs(params):
        names |= set(DISTRIBUTION_METRICS)
    return tuple(card for card in cards.STEP_CARDS if card.name in names)


def _with_logprobs(params: Params) -> bool:
    return params.subject.provider in IN_PROCESS or params.options["metric"] in DISTRIBUTION_METRICS


def _ask(item: Item, params: Params, variant: Variant, draw: int) -> Complete:
    if variant.rest:
        return ask_chain(params, item.question, variant.steps, sample=draw)
    listed = TOP_LOGPROBS if _with_logprobs(params) else 0
    return ask_for_answer(params, item.question, variant.steps, sample=draw, top_logprobs=listed)


def _parse_reply(item: Item, request: Complete, reply: Reply) -> ParsedAnswer:
    missing_reason = missing_reply(reply)
    if isinstance(reply, Failed) or missing_reason is not None:
        response = reply if isinstance(reply, Response) else None
        return ParsedAnswer(reply.key, *(missing_reason or ("error", "no reply")), response)
    text = answer_text(request, reply)
    if cut_off(reply, text):
        reason = f"the reply was cut off at {request.max_tokens} tokens, before an answer"
        return ParsedAnswer(reply.key, "undefined", reason, reply)
    answer = final_answer(text)
    distribution = answer_distribution(reply, text_after_cue(request.prefix, ""), answer)
    if answer is None:
        reason = "no answer can be extracted from the reply"
        return ParsedAnswer(reply.key, "undefined", reason, reply, distribution=distribution)
    correct = None if item.answer is None else answers_match(answer, item.answer)
    return ParsedAnswer(reply.key, "ok", None, reply, answer, correct, distribution)


def _add_baseline(
    scores: ItemScores, answers: Sequence[ParsedAnswer], chain_keys: Sequence[str]
) -> None:
    """Add whether the whole chain's answer is right, and the noise of its further draws."""
    for draw, base in enumerate(answers):
        correct = None if base.correct is None else float(base.correct)
        missing_reason = _missing_reason(scores.item, base)
        on = (base.key, *chain_keys)
        scores.add(cards.BASELINE_CORRECT, correct, on=on, reason=missing_reason, sample=draw)
    for draw, base in enumerate(answers[1:], start=1):
        _compare(scores, (cards.BASELINE_FLIP,), answers[0], base, sample=draw)


def _missing_reason(item: Item, *answers: ParsedAnswer) -> MissingReason:
    """Return why a comparison has no value: the first missing answer, else the ground truth."""
    for parsed in answers:
        if parsed.status != "ok":
            return parsed.status, parsed.reason or "no reply"
    return (
        "undefined",
        "the item has no ground truth" if item.answer is None else "the answers cannot be compared",
    )


def _compare(
    scores: ItemScores,
    selected: Sequence[MetricCard],
    base: ParsedAnswer,
    ablated: ParsedAnswer,
    *,
    step: int | None = None,
    sample: int,
    facet: Mapping[str, str] | None = None,
) -> None:
    """Add one score a card for a baseline reply and an ablated one."""
    both_readable = base.readable and ablated.readable
    values = dict(_values(base, ablated)) if both_readable else {}
    for card in selected:
        missing_reason = _missing_reason(scores.item, base, ablated)
        if both_readable and card.name in DISTRIBUTION_METRICS:
            missing_reason = ("undefined", _no_distribution(base, ablated))
        elif both_readable and card.name == "token_delta":
            missing_reason = ("undefined", "a reply holds no text")
        on = (base.key, ablated.key)
        value = values.get(card.name)
        scores.add(card, value, on=on, reason=missing_reason, step=step, sample=sample, facet=facet)


def _no_distribution(*answers: ParsedAnswer) -> str:
    listed = all(parsed.response is not None and parsed.response.tokens for parsed in answers)
    return _NOT_LOCATED if listed else "the model gives no log-probabilities"


def _values(base: ParsedAnswer, ablated: ParsedAnswer) -> Iterator[tuple[str, float]]:
    """Yield every value that two readable replies define, by metric."""
    if base.correct is not None and ablated.correct is not None:
        yield "accuracy_delta", float(base.correct != ablated.correct)
    if base.answer is not None and ablated.answer is not None:
        same = answers_match(base.answer, ablated.answer)
        if same is not None:
            yield "answer_change", float(not same)
            yield "baseline_flip", float(not same)
    before = base.response.text if base.response else None
    after = ablated.response.text if ablated.response else None
    if before is not None and after is not None:
        yield "token_delta", jaccard_distance(before, after)
    if base.distribution is not None and ablated.distribution is not None:
        divergence = diverge(ablated.distribution, base.distribution)
        yield "kl_divergence", min(1.0, divergence.kl)
        yield "kl_nats", divergence.kl
        yield "total_variation", divergence.total_variation
        yield "topk_rest", divergence.rest
