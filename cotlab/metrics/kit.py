"""What scorers share: requests for chains and answers, parsed replies, and an item's scores."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from cotlab.core.program import Params, RequestRound
from cotlab.core.reasoning import own_text, read_reasoning, unread_markup, unread_reason
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import DRAW_KEY, RECORDED_PROVIDER, Item, MetricCard, Score, ScoreStatus
from cotlab.metrics.model_steps import complete_steps, is_chain_cut_off, is_cut_off, readable_text
from cotlab.text.answers.targets import read_reply, same_answer_to
from cotlab.text.prompts.chain import (
    FINAL_ANSWER_CUE,
    Prompt,
    answer_prompt,
    continuation_prompt,
    text_after_cue,
)

MAX_ANSWER_TOKENS = 64
"""Maximum output tokens of a request for an answer alone."""
CHAIN_STOP = ("\nQ:",)
"""Where a chain that a model without a chat template writes ends: it may go on with a question."""
NO_MODEL_CHAIN_REASON = "the model wrote no chain"
UNPARSED_ANSWER = "unparsed answer"
"""Code at the start of the reason of a score whose reply has an answer that is not read."""
Condition = Literal["baseline", "edited"]
"""What a model was given: everything as it is, or with what a scorer changes."""
_UNPARSED_RE = re.compile(rf"{UNPARSED_ANSWER} \((\w+)\): ")
UNDECIDED_ANSWERS = "whether the answers are the same is undecided: --role equivalence.model"
NO_EMBEDDER_REASON = "no model embeds the steps: --embedder"
STATUS_PRIORITY: tuple[ScoreStatus, ...] = ("error", "refused", "stopped", "undefined", "ok")
"""Of several statuses a score has the first of these."""
MissingReason = tuple[ScoreStatus, str]
"""Status and reason of a score without a value."""
_CUT_CHAIN: MissingReason = ("undefined", "the model's own chain was cut off: --chain-tokens")


class Chain(NamedTuple):
    """The chain that a scorer measures."""

    steps: tuple[str, ...]
    """Text of each step; empty where there is no chain."""
    keys: tuple[str, ...]
    """Request keys that it rests on: none for a chain of the suite."""
    missing_reason: MissingReason
    """Why there is no chain, where there is none."""
    reply: Response | None = None
    """The reply that holds the model's own chain."""
    is_cut_off: bool = False
    """Whether that reply ends before chain and answer do; the last fragment is no step."""

    def whole(self) -> Chain:
        """Return the chain; one without steps, with the reason, where it was cut off.

        For what depends on the end of the chain: the answer that it leads to, and its suffixes.
        """
        return self._replace(steps=(), missing_reason=_CUT_CHAIN) if self.is_cut_off else self


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value with the request keys that it rests on, or the reason why there is none."""

    value: float | None
    """The number; None where there is none."""
    evidence: tuple[str, ...] = ()
    """Request keys that it rests on."""
    status: ScoreStatus = "ok"
    """``ok`` exactly where there is a value."""
    reason: str | None = None
    """Why there is no value."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The steps and the answer that one reply states."""

    key: str
    """Key of the request."""
    item: Item
    """What the reply answers: its question and options say how two answers compare."""
    steps: tuple[str, ...] = ()
    """The chain; empty where only an answer was requested."""
    answer: str | None = None
    """The answer; None where it is unparsed, or where the reply was cut off before it."""
    how: str = ""
    """The convention by which the answer was read, or why it is unparsed."""
    missing_reason: MissingReason | None = None
    """Why the reply cannot be read: it failed, or the model refused."""
    is_truncated: bool = False
    """Whether the reply ends in the middle of its chain."""


def ask(requests: Iterable[Request]) -> Generator[RequestRound, Sequence[Reply], dict[str, Reply]]:
    """Ask each distinct request once, in one round, and return the replies by key."""
    unique_requests = {request.key: request for request in requests}
    replies = (yield list(unique_requests.values())) if unique_requests else ()
    return dict(zip(unique_requests, replies, strict=True))


def text_request(
    params: Params,
    prompt: Prompt,
    *,
    sample: int = 0,
    temperature: float | None = None,
    top_logprobs: int = 0,
) -> Complete:
    """Build a request to the subject for a text that may be as long as a whole chain."""
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=params.chain_tokens,
        temperature=params.temperature if temperature is None else temperature,
        seed=params.seed,
        sample=sample,
        stop=CHAIN_STOP if params.subject.form == "continuation" else (),
        top_logprobs=top_logprobs,
    )


def ask_chain(
    params: Params,
    question: str,
    steps: Sequence[str] = (),
    *,
    sample: int = 0,
    top_logprobs: int = 0,
) -> Complete:
    """Build the request for a chain and its answer, continuing from ``steps`` where there are any.

    Every scorer builds it here, so that a chain is paid for once however many scorers measure it.
    """
    prompt = continuation_prompt(question, steps, params.subject.form)
    return text_request(params, prompt, sample=sample, top_logprobs=top_logprobs)


def answer_request(
    params: Params,
    question: str,
    steps: Sequence[str],
    *,
    sample: int = 0,
    top_logprobs: int = 0,
    max_tokens: int | None = None,
) -> Complete:
    """Build the request for the answer alone, with ``steps`` as the whole chain (or without)."""
    prompt = answer_prompt(question, steps, params.subject.form)
    return replace(
        text_request(params, prompt, sample=sample, top_logprobs=top_logprobs),
        max_tokens=params.answer_tokens if max_tokens is None else max_tokens,
        stop=("\n",) if params.subject.form == "continuation" else (),
    )


def chain_of(item: Item, params: Params) -> Generator[RequestRound, Sequence[Reply], Chain]:
    """Return the item's reference chain, or with ``chain=own`` the one that the subject writes."""
    if params.options["chain"] != "own":
        return reference_chain(item)
    draw = item.meta.get(DRAW_KEY, 0) if params.subject.provider == RECORDED_PROVIDER else 0
    (reply,) = yield [ask_chain(params, item.question, sample=draw)]
    return chain_from_reply(reply)


def reference_chain(item: Item) -> Chain:
    """Return the chain that the suite gives."""
    steps = tuple(step.text for step in item.steps)
    return Chain(steps, (), ("undefined", "the item has no chain"))


def chain_from_reply(reply: Reply) -> Chain:
    """Return the chain that a reply to `ask_chain` holds."""
    unreadable = missing_reply_reason(reply)
    missing_reason = unreadable or ("undefined", NO_MODEL_CHAIN_REASON)
    if not isinstance(reply, Response) or unreadable:
        return Chain((), (reply.key,), missing_reason)
    steps, was_cut = complete_steps(reply), is_chain_cut_off(reply)
    if was_cut and not steps:
        missing_reason = _CUT_CHAIN
    return Chain(steps, (reply.key,), missing_reason, reply, was_cut)


def missing_reply_reason(reply: Reply | None) -> MissingReason | None:
    """Return status and reason where a reply cannot be read.

    It failed, the model refused, or its chain is in a form that is not read.
    """
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    if reply is None:
        return None
    if reply.refused:
        return "refused", "the model refused"
    markup = unread_markup(reply.text or "", was_cut=reply.finish == "length")
    return ("undefined", unread_reason(markup)) if markup else None


def worst_reason(reasons: Iterable[MissingReason | None]) -> MissingReason | None:
    """Return an error before a refusal before what is undefined; None where there is no reason."""
    present_reasons = [reason for reason in reasons if reason is not None]
    return min(present_reasons, key=lambda reason: STATUS_PRIORITY.index(reason[0]), default=None)


def reply_text(reply: Reply | None) -> str:
    """Return what a reply says itself, without its chain; empty where nothing can be seen."""
    if not isinstance(reply, Response) or reply.refused:
        return ""
    text = own_text(reply.text or "")
    return text if printable_line(text) else ""


def reply_steps(reply: Reply) -> tuple[str, ...]:
    """Return the complete steps of a reply; none where it failed or the model refused."""
    return complete_steps(reply) if isinstance(reply, Response) and not reply.refused else ()


def reply_vector(reply: Reply) -> tuple[float, ...] | None:
    """Return the vector of a reply to one text; None where there is none with a direction."""
    if not isinstance(reply, Response) or reply.refused or len(reply.vectors or ()) != 1:
        return None
    (vector,) = reply.vectors or ()
    return vector if 0 < math.hypot(*vector) < math.inf else None


def text_from_cue(request: Complete, reply: Response) -> str:
    """Return the cue of a request with what the reply says after it, without its chain."""
    whole_text = reply.text or ""
    text = own_text(whole_text)
    # after a chain no word goes on from the cue
    return text_after_cue(request.prefix, f" {text}" if read_reasoning(whole_text).end else text)


def answer_text(request: Complete, reply: Response) -> str:
    """Return what a reply to `answer_request` says after the cue, however much a model adds."""
    text = text_from_cue(request, reply)
    if request.prefix.endswith(FINAL_ANSWER_CUE) and not request.stop:
        text = text.partition("\n")[0]
    return text


def parse_chain_reply(reply: Reply, item: Item) -> ParsedReply:
    """Return the steps and the answer of a chain; one cut off before its answer has none."""
    return parse_reply_text(reply, reply_text(reply), item, reply_steps(reply))


def parse_answer_reply(request: Complete, reply: Reply, item: Item) -> ParsedReply:
    """Return the answer of a reply to `answer_request`."""
    text = answer_text(request, reply) if isinstance(reply, Response) else ""
    return parse_reply_text(reply, text, item)


def parse_reply_text(
    reply: Reply, text: str, item: Item, steps: tuple[str, ...] = ()
) -> ParsedReply:
    """Return the answer that a reply's text gives; one cut off before its answer has none."""
    missing_reason = missing_reply_reason(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return ParsedReply(reply.key, item, missing_reason=missing_reason)
    is_truncated, text = is_cut_off(reply, text), readable_text(reply, text)
    reading = read_reply(item, text)
    return ParsedReply(
        reply.key, item, steps, reading.value, reading.how, is_truncated=is_truncated
    )


def unparsed_reason(how: str, condition: Condition) -> str:
    """Return the reason of a score whose reply, under a condition, has an answer not read."""
    return f"{UNPARSED_ANSWER} ({condition}): {how}"


def unparsed_condition(reason: str) -> str:
    """Return the condition that `unparsed_reason` was given, or "undecided"; "" for other reasons.

    Where different words are undecided, the answers that are the same alone would count.
    """
    match = _UNPARSED_RE.match(reason)
    return match[1] if match else "undecided" if reason == UNDECIDED_ANSWERS else ""


def undefined_measurement(reason: str, evidence: Iterable[str] = ()) -> Measurement:
    """Return a measurement without a value."""
    return Measurement(None, tuple(evidence), "undefined", reason)


def compare_answers(
    reply_before: ParsedReply,
    reply_after: ParsedReply,
    other_keys: Sequence[str] = (),
    same: Callable[[Item, str | None, str | None], bool | None] = same_answer_to,
) -> Measurement:
    """Return 1 if two replies give different answers, 0 if the same, or why neither is known.

    ``same`` decides about two answers: by conventions alone, or with what was asked about them.
    """
    keys = (reply_before.key, reply_after.key, *other_keys)
    conditions: tuple[Condition, ...] = ("baseline", "edited")
    for condition, parsed_reply in zip(conditions, (reply_before, reply_after), strict=True):
        if parsed_reply.missing_reason is not None:
            return Measurement(None, keys, *parsed_reply.missing_reason)
        if parsed_reply.answer is None:
            if parsed_reply.is_truncated:
                return undefined_measurement("the reply was cut off before an answer", keys)
            return undefined_measurement(unparsed_reason(parsed_reply.how, condition), keys)
    is_same = same(reply_after.item, reply_before.answer, reply_after.answer)
    if is_same is None:
        return undefined_measurement(UNDECIDED_ANSWERS, keys)
    return Measurement(float(not is_same), keys)


def combined_failure(measurements: Sequence[Measurement]) -> Measurement | None:
    """Return why nothing can be computed from ``measurements``; None where at least one is defined.

    An error or a refusal among them decides; those that are merely undefined are left out, as steps
    to which nothing applies are.
    """
    for status in ("error", "refused"):
        failed_measurement = next(
            (measurement for measurement in measurements if measurement.status == status), None
        )
        if failed_measurement is not None:
            return replace(failed_measurement, value=None, evidence=union_evidence(measurements))
    if any(measurement.value is not None for measurement in measurements):
        return None
    reason = next(
        (measurement.reason for measurement in measurements if measurement.reason),
        "nothing was measured",
    )
    return undefined_measurement(reason, union_evidence(measurements))


def first_missing(measurements: Sequence[Measurement]) -> Measurement | None:
    """Return why a number that needs all of ``measurements`` has no value; None where all have one.

    An error or a refusal comes first.
    """
    missing = combined_failure(measurements) or next(
        (measurement for measurement in measurements if measurement.value is None), None
    )
    return missing and replace(missing, value=None, evidence=union_evidence(measurements))


def union_evidence(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return the request keys of all of ``measurements``, each once."""
    return tuple(dict.fromkeys(key for measurement in measurements for key in measurement.evidence))


@dataclass(slots=True)
class ItemScores:
    """The scores of one item, as a scorer adds them."""

    item: Item
    """The item that is measured."""
    facet: Mapping[str, str] = field(default_factory=dict)
    """Facet pairs that every score has."""
    replies: dict[str, Reply] = field(default_factory=dict)
    """Replies by request key: a score rests on them by their keys."""
    keys: tuple[str, ...] = ()
    """Request keys that every score rests on, before its own: those of the chain."""
    scores: list[Score] = field(default_factory=list)
    """The scores so far, in the order in which they were added."""

    def ask(
        self, requests: Sequence[Request]
    ) -> Generator[RequestRound, Sequence[Reply], list[Reply]]:
        """Ask each distinct request once, in one round; keep the replies, return them in order."""
        self.replies |= yield from ask(requests)
        return [self.replies[request.key] for request in requests]

    def first_missing_reason(self, rests_on: Iterable[Reply | str]) -> MissingReason | None:
        """Return status and reason of the first of some replies, or their keys, that is missing."""
        replies = (
            self.replies.get(source) if isinstance(source, str) else source for source in rests_on
        )
        return next(filter(None, map(missing_reply_reason, replies)), None)

    def add(
        self,
        card: MetricCard,
        value: float | Measurement | None,
        *,
        rests_on: Iterable[Reply | str] = (),
        reason: str | MissingReason | None = None,
        step: int | None = None,
        sample: int = 0,
        facet: Mapping[str, str] | None = None,
        where: tuple[int, int] | None = None,
    ) -> None:
        """Add one score.

        Parameters
        ----------
        card : MetricCard
        value : float, Measurement or None
            A measurement brings its own evidence, status and reason.
        rests_on : replies, or keys of requests
            What the score rests on, beside ``keys``. Where a reply failed or was refused there is
            no value, and the first such reply decides status and reason.
        reason : str, or status and reason
            Why ``value`` is None: a reason applies where no reply is missing, a status and a reason
            in any case.
        facet : mapping
            Pairs beside those that every score of the item has.
        """
        rests_on = (*self.keys, *rests_on)
        evidence = tuple(source if isinstance(source, str) else source.key for source in rests_on)
        if isinstance(value, Measurement):
            evidence, reason = (*value.evidence, *evidence), (value.status, value.reason or "")
            value = value.value
        missing_reason = self.first_missing_reason(rests_on)
        if value is None:
            given_reason = reason if isinstance(reason, tuple) else None
            missing_reason = given_reason or missing_reason or ("undefined", str(reason or ""))
        status, text = missing_reason or (None, None)
        self.scores.append(
            card.score(
                self.item,
                None if missing_reason else value,
                step=step,
                sample=sample,
                facet={**self.facet, **(facet or {})},
                where=where,
                status=status,
                reason=text,
                evidence=dict.fromkeys(evidence),
            )
        )

    def add_missing(
        self,
        cards: Iterable[MetricCard],
        reason: str | MissingReason,
        *,
        rests_on: Iterable[Reply | str] = (),
        sample: int = 0,
        facet: Mapping[str, str] | None = None,
    ) -> tuple[Score, ...]:
        """Add a score without a value for each of the cards, and return all scores so far."""
        rests_on = tuple(rests_on)
        for card in cards:
            self.add(card, None, rests_on=rests_on, reason=reason, sample=sample, facet=facet)
        return tuple(self.scores)
