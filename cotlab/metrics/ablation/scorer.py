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
from cotlab.metrics.ablation import cards
from cotlab.metrics.ablation.distance import answer_distribution, diverge, jaccard_distance
from cotlab.metrics.ablation.redundancy import STATISTICS
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.edits.ablations import corrupt_step, filler_for, paraphrase_step
from cotlab.text.prompts.chain import CUE, GIVEN, Prompt, ask_answer, ask_rest, said
from cotlab.text.steps import split_steps

MODES = ("remove", "truncate", "corrupt", "paraphrase", "filler")
TEXT_METRICS = ("accuracy_delta", "answer_change", "token_delta")
DISTRIBUTION_METRICS = ("kl_divergence", "kl_nats", "total_variation", "topk_rest")
ANSWER_TOKENS, CHAIN_TOKENS = 64, 512
TOP_LOGPROBS = 20
_NOT_LOCATED = "the log-probabilities of the answer's first token cannot be told from the reply"
WHITE_BOX = ("organism", "local")
_ANSWER_LINE = re.compile(
    r"(?i)\W*(?:step\s+\d+\W+)?(?:(?:so|thus|therefore|hence|finally|in conclusion)\b\W*)?(?:(?:the|my|our)\s+)?"
    r"(?:(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b|boxed\b|(?:A|Ans)\s?:)|\s*####"
)
_SAYS_ANSWER = re.compile(r"(?i)\banswer\b|\\boxed|####")
OPTIONS: Mapping[str, Any] = {"modes": ("remove",), "metric": "accuracy_delta", "ccs_threshold": 0.1, "chain": "reference"}
HEADLINES = (
    *(Headline(name, {"mode": "corrupt"}) for name in ("answer_change", "accuracy_delta")),
    *(Headline(name, {"mode": "remove"}) for name in ("token_delta", "kl_divergence", "total_variation")),
)


class Variant(NamedTuple):
    """A chain with one intervention. ``rest`` asks the model to go on from it, else for the answer at once."""

    steps: tuple[str, ...]
    rest: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
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
        return Variant((*before, step)) if after else "nothing follows the last step, so nothing is cut"
    if mode == "filler":
        return Variant((*before, filler_for(step), *after))
    if mode == "corrupt":
        changed = corrupt_step(step, rng)
        return Variant((*before, changed), rest=True) if changed else "no rule changes what this step states"
    if mode == "paraphrase":
        changed = paraphrase_step(step, rng)
        return Variant((*before, changed, *after)) if changed else "no rule rephrases this step"
    raise UnknownName("mode", mode, MODES)


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    for mode in options["modes"]:
        if mode not in MODES:
            raise UnknownName("mode", mode, MODES)
    if options["metric"] not in cards.CCS_METRICS:
        raise UnknownName("metric", options["metric"], cards.CCS_METRICS)
    if options["chain"] not in ("reference", "own"):
        raise UnknownName("chain", options["chain"], ("reference", "own"))
    if not 0 <= options["ccs_threshold"] <= 1:
        raise ConfigError(f"--ccs-threshold must lie in [0, 1], got {options['ccs_threshold']}")


@scorer(*cards.STEP_CARDS, cards.BASELINE_CORRECT, cards.BASELINE_FLIP, version=1, name="ablation", options=OPTIONS,
        statistics=STATISTICS, headlines=HEADLINES, check=check)  # fmt: skip
def step_ablation(item: Item, params: Params, peers: Peers) -> Program:
    """Ask once with the whole chain and once for each step and mode, and compare the answers."""
    options = params.options
    facet = {"chain": options["chain"], "given": GIVEN[params.subject.form]}
    steps = tuple(step.text for step in item.steps)
    own_key: tuple[str, ...] = ()
    gap: tuple[Status, str] = "undefined", "the item has no chain"
    if options["chain"] == "own":
        (reply,) = yield [_ask(params, ask_rest(item.question, (), params.subject.form), rest=True)]
        own_key, gap = (reply.key,), missing(reply) or ("undefined", "the model wrote no chain")
        steps = own_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    if not steps:
        return tuple(_unscored(item, params, facet, *gap, own_key))
    plain = ask_answer(item.question, steps, params.subject.form)
    baseline = [_ask(params, plain, sample=draw) for draw in range(params.repeats)]
    variants = {(mode, i): make_variant(steps, i, mode, params.seed) for mode in options["modes"] for i in range(len(steps))}
    asked = {
        (mode, i, draw): _ask_variant(item, params, variant, draw)
        for (mode, i), variant in variants.items()
        if isinstance(variant, Variant)
        for draw in range(params.repeats)
    }
    replies = yield [*baseline, *asked.values()]
    whole = [_read(item, request, reply) for request, reply in zip(baseline, replies, strict=False)]
    changed = {
        place: _read(item, request, reply)
        for (place, request), reply in zip(asked.items(), replies[len(baseline) :], strict=True)
    }
    scores = list(_baseline_scores(item, whole, facet, own_key))
    for (mode, i), variant in variants.items():
        place = {**facet, "mode": mode}
        for draw, base in enumerate(whole):
            told = changed.get((mode, i, draw))
            if told is None:
                scores += [card.score(item, None, step=i, sample=draw, facet=place, reason=str(variant))
                           for card in _cards_for(mode, params)]  # fmt: skip
            else:
                scores += _compare(_cards_for(mode, params), item, i, draw, place, base, told)
    return tuple(scores)


def own_chain(reply: Response) -> tuple[str, ...]:
    """The steps that a model went through: its reasoning where the vendor tells it, else what it wrote as its reply."""
    return own_steps(reply.reasoning or "") or own_steps(reply.text or "")


def own_steps(text: str) -> tuple[str, ...]:
    """The steps of a chain that a model wrote: its reply without a last line that only gives the answer."""
    steps = split_steps(text)
    if not steps or not (_ANSWER_LINE.match(steps[-1]) or (len(steps[-1].split()) <= 3 and "=" not in steps[-1])):
        return steps
    return steps[:-1] if final_answer(steps[-1]) == final_answer(text) else steps


def _cards_for(mode: str, params: Params) -> tuple[MetricCard, ...]:
    """A regenerated chain has no reply to compare word by word, nor one place where all replies begin to answer."""
    if mode == "corrupt":
        return (cards.ACCURACY_DELTA, cards.ANSWER_CHANGE)
    wanted = set(TEXT_METRICS)
    if _with_logprobs(params):
        wanted |= set(DISTRIBUTION_METRICS)
    return tuple(card for card in cards.STEP_CARDS if card.name in wanted)


def _with_logprobs(params: Params) -> bool:
    return params.subject.provider in WHITE_BOX or params.options["metric"] in DISTRIBUTION_METRICS


def _ask_variant(item: Item, params: Params, variant: Variant, draw: int) -> Complete:
    build = ask_rest if variant.rest else ask_answer
    return _ask(params, build(item.question, variant.steps, params.subject.form), sample=draw, rest=variant.rest)


def _ask(params: Params, prompt: Prompt, *, sample: int = 0, rest: bool = False) -> Complete:
    continues = params.subject.form == "continuation"
    return Complete(
        params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS if rest else ANSWER_TOKENS,
        temperature=params.temperature, seed=params.seed, sample=sample,
        stop=(("\nQ:",) if rest else ("\n",)) if continues else (),
        top_logprobs=0 if rest or not _with_logprobs(params) else TOP_LOGPROBS,
    )  # fmt: skip


def missing(reply: Reply) -> tuple[Status, str] | None:
    """Status and reason where a reply gives nothing to read: it failed, or the model cannot take it or refused."""
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    return ("refused", "the model refused") if reply.refused else None


def _unscored(
    item: Item, params: Params, facet: Mapping[str, str], status: Status, why: str, evidence: tuple[str, ...]
) -> Iterator[Score]:
    """What is told of an item without a chain: every score it would have had, once, without a value."""
    for mode in params.options["modes"]:
        for card in _cards_for(mode, params):
            yield card.score(item, None, facet={**facet, "mode": mode}, status=status, reason=why, evidence=evidence)
    for card in (cards.BASELINE_CORRECT, cards.BASELINE_FLIP)[: min(params.repeats, 2)]:
        yield card.score(item, None, facet=facet, status=status, reason=why, evidence=evidence)


def _read(item: Item, request: Complete, reply: Reply) -> _Told:
    gap = missing(reply)
    if gap is not None or isinstance(reply, Failed):
        return _Told(reply.key, *(gap or ("error", "no reply")), reply if isinstance(reply, Response) else None)
    text = said(request.prefix, reply.text or "")
    if request.prefix.endswith(CUE) and not request.stop:  # the answer is the rest of the cue's line, however much a model adds
        text = text.partition("\n")[0]
    if reply.finish == "length" and not _SAYS_ANSWER.search(text):
        return _Told(reply.key, "undefined", f"the reply was cut off at {request.max_tokens} tokens, before an answer", reply)
    answer = final_answer(text)
    distribution = answer_distribution(reply, said(request.prefix, ""), answer)
    if answer is None:
        return _Told(reply.key, "undefined", "no answer can be extracted from the reply", reply, distribution=distribution)
    correct = None if item.answer is None else _same(answer, item.answer)
    return _Told(reply.key, "ok", None, reply, answer, correct, distribution)


@lru_cache(8192)
def _same(first: str, second: str) -> bool | None:
    return same_answer(first, second)


def _baseline_scores(
    item: Item, whole: Sequence[_Told], facet: Mapping[str, str], own_key: tuple[str, ...]
) -> Iterator[Score]:
    """Whether the whole chain's answer is right (its evidence ends with the chain's own request), and its own noise."""
    for draw, told in enumerate(whole):
        status, why = _gap(item, told) if told.correct is None else (None, None)
        yield cards.BASELINE_CORRECT.score(
            item, None if told.correct is None else float(told.correct), sample=draw, facet=facet, status=status, reason=why,
            evidence=(told.key, *own_key),
        )  # fmt: skip
    for draw, told in enumerate(whole[1:], start=1):
        yield from _compare((cards.BASELINE_FLIP,), item, None, draw, facet, whole[0], told)


def _gap(item: Item, *told: _Told) -> tuple[Status, str]:
    """Why a comparison has no value: the first reply without an answer, else the missing ground truth."""
    for one in told:
        if one.status != "ok":
            return one.status, one.reason or "no reply"
    return "undefined", "the item has no ground truth" if item.answer is None else "the answers cannot be compared"


def _compare(
    wanted: Sequence[MetricCard], item: Item, step: int | None, draw: int, facet: Mapping[str, str], base: _Told, told: _Told
) -> Iterator[Score]:
    """One score a card for a baseline reply and an ablated one."""
    values = _values(base, told)
    for card in wanted:
        value, status, why = values.get(card.name), None, None
        if value is None:
            status, why = _gap(item, base, told)
            if base.response is not None and told.response is not None and "refused" not in (base.status, told.status):
                if card.name in DISTRIBUTION_METRICS:
                    given = base.response.tokens and told.response.tokens
                    status, why = "undefined", _NOT_LOCATED if given else "the model gives no log-probabilities"
                elif card.name == "token_delta":
                    status, why = "undefined", "a reply holds no text"
        yield card.score(
            item, value, step=step, sample=draw, facet=facet, status=status, reason=why, evidence=(base.key, told.key)
        )


def _values(base: _Told, told: _Told) -> dict[str, float]:
    """Every value that the two replies define, by metric."""
    if base.response is None or told.response is None or "refused" in (base.status, told.status):
        return {}
    found: dict[str, float] = {}
    if base.correct is not None and told.correct is not None:
        found["accuracy_delta"] = float(base.correct != told.correct)
    if base.answer is not None and told.answer is not None and (same := _same(base.answer, told.answer)) is not None:
        found["answer_change"] = found["baseline_flip"] = float(not same)
    if base.response.text is not None and told.response.text is not None:
        found["token_delta"] = jaccard_distance(base.response.text, told.response.text)
    if base.distribution is not None and told.distribution is not None:
        gap = diverge(told.distribution, base.distribution)
        found |= {"kl_divergence": min(1.0, gap.kl), "kl_nats": gap.kl}
        found |= {"total_variation": gap.total_variation, "topk_rest": gap.rest}
    return found
