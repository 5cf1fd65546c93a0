"""Step ablation: what happens to the answer when one step of the chain is removed, cut, corrupted or rephrased."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Status
from cotlab.core.vocabulary import CCS_METRICS, DISTRIBUTION_METRICS, IN_PROCESS, MODES
from cotlab.metrics.ablation import cards
from cotlab.metrics.ablation.distance import answer_distribution, diverge, jaccard_distance
from cotlab.metrics.ablation.redundancy import STATISTICS
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.edits.ablations import corrupt_step, filler_for, paraphrase_step
from cotlab.text.prompts.chain import CUE, GIVEN, Prompt, ask_answer, ask_rest, text_after_cue
from cotlab.text.steps import split_steps

TEXT_METRICS = ("accuracy_delta", "answer_change", "token_delta")
ANSWER_TOKENS, CHAIN_TOKENS = 64, 512
TOP_LOGPROBS = 20
_NOT_LOCATED = "the log-probabilities of the answer's first token cannot be told from the reply"
_ANSWER_LINE = re.compile(
    r"(?i)\W*(?:step\s+\d+\W+)?(?:(?:so|thus|therefore|hence|finally|in"
    r" conclusion)\b\W*)?(?:(?:the|my|our)\s+)?"
    r"(?:(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b|boxed\b|(?:A|Ans)\s?:)|\s*####"
)
_SAYS_ANSWER = re.compile(r"(?i)\banswer\b|\\boxed|####")
OPTIONS: Mapping[str, Any] = {
    "modes": ("remove",),
    "metric": "accuracy_delta",
    "ccs_threshold": 0.1,
    "chain": "reference",
}
HEADLINES = (
    *(Headline(name, {"mode": "corrupt"}) for name in ("answer_change", "accuracy_delta")),
    *(
        Headline(name, {"mode": "remove"})
        for name in ("token_delta", "kl_divergence", "total_variation")
    ),
)


class Variant(NamedTuple):
    """A chain with one intervention. ``rest`` asks the model to go on from it, else for the answer at once."""

    steps: tuple[str, ...]
    rest: bool = False


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """One reply, read: its answer and whether it is right, or the status and reason why there is none."""

    key: str
    status: Status
    reason: str | None
    response: Response | None = None
    answer: str | None = None
    correct: bool | None = None
    distribution: Mapping[str, float] | None = None


def make_variant(steps: Sequence[str], at: int, mode: str, seed: int) -> Variant | str:
    """The chain that ``mode`` makes of ``steps`` at index ``at``, or the reason why it makes none."""
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


def validate_ablation_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    for mode in options["modes"]:
        if mode not in MODES:
            raise UnknownName("mode", mode, MODES)
    if options["metric"] not in CCS_METRICS:
        raise UnknownName("metric", options["metric"], CCS_METRICS)
    if options["chain"] not in ("reference", "own"):
        raise UnknownName("chain", options["chain"], ("reference", "own"))
    if not 0 <= options["ccs_threshold"] <= 1:
        raise ConfigError(f"--ccs-threshold must lie in [0, 1], got {options['ccs_threshold']}")


@scorer(
    *cards.STEP_CARDS,
    cards.BASELINE_CORRECT,
    cards.BASELINE_FLIP,
    version=1,
    name="ablation",
    options=OPTIONS,
    statistics=STATISTICS,
    headlines=HEADLINES,
    check=validate_ablation_options,
)
def step_ablation(item: Item, params: Params, peers: Peers) -> Program:
    """Ask once with the whole chain and once for each step and mode, and compare the answers."""
    options = params.options
    facet = {"chain": options["chain"], "given": GIVEN[params.subject.form]}
    steps = tuple(step.text for step in item.steps)
    chain_keys: tuple[str, ...] = ()
    missing_reason: tuple[Status, str] = "undefined", "the item has no chain"
    if options["chain"] == "own":
        (reply,) = yield [_ask(params, ask_rest(item.question, (), params.subject.form), rest=True)]
        chain_keys, missing_reason = (
            (reply.key,),
            missing_reply(reply) or ("undefined", "the model wrote no chain"),
        )
        steps = model_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    if not steps:
        return tuple(_unscored(item, params, facet, *missing_reason, chain_keys))
    plain = ask_answer(item.question, steps, params.subject.form)
    baseline = [_ask(params, plain, sample=draw) for draw in range(params.repeats)]
    variants = {
        (mode, i): make_variant(steps, i, mode, params.seed)
        for mode in options["modes"]
        for i in range(len(steps))
    }
    requests = {
        (mode, i, draw): _ask_variant(item, params, variant, draw)
        for (mode, i), variant in variants.items()
        if isinstance(variant, Variant)
        for draw in range(params.repeats)
    }
    replies = yield [*baseline, *requests.values()]
    baseline_replies = [
        _parse_reply(item, request, reply)
        for request, reply in zip(baseline, replies, strict=False)
    ]
    changed = {
        location: _parse_reply(item, request, reply)
        for (location, request), reply in zip(
            requests.items(), replies[len(baseline) :], strict=True
        )
    }
    scores = list(_baseline_scores(item, baseline_replies, facet, chain_keys))
    for (mode, i), variant in variants.items():
        location = {**facet, "mode": mode}
        for draw, base in enumerate(baseline_replies):
            parsed = changed.get((mode, i, draw))
            if parsed is None:
                scores += [
                    card.score(item, None, step=i, sample=draw, facet=location, reason=str(variant))
                    for card in _cards_for(mode, params)
                ]
            else:
                scores += _compare(_cards_for(mode, params), item, i, draw, location, base, parsed)
    return tuple(scores)


def model_chain(reply: Response) -> tuple[str, ...]:
    """The steps that a model went through: its reasoning where the vendor tells it, else what it wrote as its reply."""
    return model_steps(reply.reasoning or "") or model_steps(reply.text or "")


def model_steps(text: str) -> tuple[str, ...]:
    """The steps of a chain that a model wrote: its reply without a last line that only gives the answer."""
    steps = split_steps(text)
    if not steps or not (
        _ANSWER_LINE.match(steps[-1]) or (len(steps[-1].split()) <= 3 and "=" not in steps[-1])
    ):
        return steps
    return steps[:-1] if final_answer(steps[-1]) == final_answer(text) else steps


def _cards_for(mode: str, params: Params) -> tuple[MetricCard, ...]:
    """A regenerated chain has no reply to compare word by word, nor one place where all replies begin to answer."""
    if mode == "corrupt":
        return (cards.ACCURACY_DELTA, cards.ANSWER_CHANGE)
    names = set(TEXT_METRICS)
    if _with_logprobs(params):
        names |= set(DISTRIBUTION_METRICS)
    return tuple(card for card in cards.STEP_CARDS if card.name in names)


def _with_logprobs(params: Params) -> bool:
    return params.subject.provider in IN_PROCESS or params.options["metric"] in DISTRIBUTION_METRICS


def _ask_variant(item: Item, params: Params, variant: Variant, draw: int) -> Complete:
    build = ask_rest if variant.rest else ask_answer
    return _ask(
        params,
        build(item.question, variant.steps, params.subject.form),
        sample=draw,
        rest=variant.rest,
    )


def _ask(params: Params, prompt: Prompt, *, sample: int = 0, rest: bool = False) -> Complete:
    continues = params.subject.form == "continuation"
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS if rest else ANSWER_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        sample=sample,
        stop=(("\nQ:",) if rest else ("\n",)) if continues else (),
        top_logprobs=0 if rest or not _with_logprobs(params) else TOP_LOGPROBS,
    )


def missing_reply(reply: Reply) -> tuple[Status, str] | None:
    """Status and reason where a reply gives nothing to read: it failed, or the model cannot take it or refused."""
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    return ("refused", "the model refused") if reply.refused else None


def _unscored(
    item: Item,
    params: Params,
    facet: Mapping[str, str],
    status: Status,
    reason: str,
    evidence: tuple[str, ...],
) -> Iterator[Score]:
    """What is told of an item without a chain: every score it would have had, once, without a value."""
    for mode in params.options["modes"]:
        for card in _cards_for(mode, params):
            yield card.score(
                item,
                None,
                facet={**facet, "mode": mode},
                status=status,
                reason=reason,
                evidence=evidence,
            )
    for card in (cards.BASELINE_CORRECT, cards.BASELINE_FLIP)[: min(params.repeats, 2)]:
        yield card.score(item, None, facet=facet, status=status, reason=reason, evidence=evidence)


def _parse_reply(item: Item, request: Complete, reply: Reply) -> ParsedReply:
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return ParsedReply(
            reply.key,
            *(missing_reason or ("error", "no reply")),
            reply if isinstance(reply, Response) else None,
        )
    text = text_after_cue(request.prefix, reply.text or "")
    if (
        request.prefix.endswith(CUE) and not request.stop
    ):  # the answer is the rest of the cue's line, however much a model adds
        text = text.partition("\n")[0]
    if reply.finish == "length" and not _SAYS_ANSWER.search(text):
        return ParsedReply(
            reply.key,
            "undefined",
            f"the reply was cut off at {request.max_tokens} tokens, before an answer",
            reply,
        )
    answer = final_answer(text)
    distribution = answer_distribution(reply, text_after_cue(request.prefix, ""), answer)
    if answer is None:
        return ParsedReply(
            reply.key,
            "undefined",
            "no answer can be extracted from the reply",
            reply,
            distribution=distribution,
        )
    correct = None if item.answer is None else _same(answer, item.answer)
    return ParsedReply(reply.key, "ok", None, reply, answer, correct, distribution)


@lru_cache(8192)
def _same(first: str, second: str) -> bool | None:
    return same_answer(first, second)


def _baseline_scores(
    item: Item,
    baselines: Sequence[ParsedReply],
    facet: Mapping[str, str],
    chain_keys: tuple[str, ...],
) -> Iterator[Score]:
    """Whether the whole chain's answer is right (its evidence ends with the chain's own request), and its own noise."""
    for draw, parsed in enumerate(baselines):
        status, reason = _missing_reason(item, parsed) if parsed.correct is None else (None, None)
        yield cards.BASELINE_CORRECT.score(
            item,
            None if parsed.correct is None else float(parsed.correct),
            sample=draw,
            facet=facet,
            status=status,
            reason=reason,
            evidence=(parsed.key, *chain_keys),
        )
    for draw, parsed in enumerate(baselines[1:], start=1):
        yield from _compare((cards.BASELINE_FLIP,), item, None, draw, facet, baselines[0], parsed)


def _missing_reason(item: Item, *replies: ParsedReply) -> tuple[Status, str]:
    """Why a comparison has no value: the first reply without an answer, else the missing ground truth."""
    for reply in replies:
        if reply.status != "ok":
            return reply.status, reply.reason or "no reply"
    return (
        "undefined",
        "the item has no ground truth" if item.answer is None else "the answers cannot be compared",
    )


def _compare(
    selected: Sequence[MetricCard],
    item: Item,
    step: int | None,
    draw: int,
    facet: Mapping[str, str],
    base: ParsedReply,
    ablated: ParsedReply,
) -> Iterator[Score]:
    """One score a card for a baseline reply and an ablated one."""
    values = _values(base, ablated)
    for card in selected:
        value, status, reason = values.get(card.name), None, None
        if value is None:
            status, reason = _missing_reason(item, base, ablated)
            if (
                base.response is not None
                and ablated.response is not None
                and "refused" not in (base.status, ablated.status)
            ):
                if card.name in DISTRIBUTION_METRICS:
                    has_tokens = base.response.tokens and ablated.response.tokens
                    status, reason = (
                        "undefined",
                        _NOT_LOCATED if has_tokens else "the model gives no log-probabilities",
                    )
                elif card.name == "token_delta":
                    status, reason = "undefined", "a reply holds no text"
        yield card.score(
            item,
            value,
            step=step,
            sample=draw,
            facet=facet,
            status=status,
            reason=reason,
            evidence=(base.key, ablated.key),
        )


def _values(base: ParsedReply, ablated: ParsedReply) -> dict[str, float]:
    """Every value that the two replies define, by metric."""
    if (
        base.response is None
        or ablated.response is None
        or "refused" in (base.status, ablated.status)
    ):
        return {}
    values: dict[str, float] = {}
    if base.correct is not None and ablated.correct is not None:
        values["accuracy_delta"] = float(base.correct != ablated.correct)
    if (
        base.answer is not None
        and ablated.answer is not None
        and (same := _same(base.answer, ablated.answer)) is not None
    ):
        values["answer_change"] = values["baseline_flip"] = float(not same)
    if base.response.text is not None and ablated.response.text is not None:
        values["token_delta"] = jaccard_distance(base.response.text, ablated.response.text)
    if base.distribution is not None and ablated.distribution is not None:
        divergence = diverge(ablated.distribution, base.distribution)
        values |= {"kl_divergence": min(1.0, divergence.kl), "kl_nats": divergence.kl}
        values |= {"total_variation": divergence.total_variation, "topk_rest": divergence.rest}
    return values
