"""What scorers share: requests for chains and answers, parsed replies, and an item's scores."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from cotlab.core.program import Params, Round
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import Facet, Item, MetricCard, Score, Status
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import CUE, Prompt, ask_answer, ask_rest, text_after_cue
from cotlab.text.steps import split_steps

ANSWER_TOKENS = 64
"""Maximum output tokens of a request for an answer alone."""
NO_EMBEDDER = "no model embeds the steps: --embedder"
STATUS_PRIORITY: tuple[Status, ...] = ("error", "refused", "stopped", "undefined", "ok")
"""Of several statuses a score has the first of these."""
MissingReason = tuple[Status, str]
"""Status and reason of a score without a value."""
_SAYS_ANSWER = re.compile(r"(?i)\banswer\b|\\boxed|####")  # "The answer is 9.", "#### 9"
_ANSWER_LINE = re.compile(  # "So the final answer is 9.", "Step 3: Conclusion: 9", "#### 9"
    r"(?i)\W*(?:step\s+\d+\W+)?(?:(?:so|thus|therefore|hence|finally|in"
    r" conclusion)\b\W*)?(?:(?:the|my|our)\s+)?"
    r"(?:(?:(?:final|correct|right)\s+)?(?:answer|conclusion|result)\b|boxed\b|(?:A|Ans)\s?:)|\s*####"
)


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


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value with the request keys that it rests on, or the reason why there is none."""

    value: float | None
    """The number; None where there is none."""
    evidence: tuple[str, ...] = ()
    """Request keys that it rests on."""
    status: Status = "ok"
    """``ok`` exactly where there is a value."""
    reason: str | None = None
    """Why there is no value."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The steps and the answer that one reply states."""

    key: str
    """Key of the request."""
    steps: tuple[str, ...] = ()
    """The chain; empty where only an answer was requested."""
    answer: str | None = None
    """The extracted answer; None where there is none, or where the reply was cut off before it."""
    missing_reason: MissingReason | None = None
    """Why the reply cannot be read: it failed, or the model refused."""
    truncated: bool = False
    """Whether the reply ends in the middle of its chain."""


def ask(requests: Iterable[Request]) -> Generator[Round, Sequence[Reply], dict[str, Reply]]:
    """Ask each distinct request once, in one round, and return the replies by key."""
    unique = {request.key: request for request in requests}
    replies = (yield list(unique.values())) if unique else ()
    return dict(zip(unique, replies, strict=True))


def ask_text(
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
        stop=("\nQ:",) if params.subject.form == "continuation" else (),
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
    prompt = ask_rest(question, steps, params.subject.form)
    return ask_text(params, prompt, sample=sample, top_logprobs=top_logprobs)


def ask_for_answer(
    params: Params,
    question: str,
    steps: Sequence[str],
    *,
    sample: int = 0,
    top_logprobs: int = 0,
    max_tokens: int = ANSWER_TOKENS,
) -> Complete:
    """Build the request for the answer alone, with ``steps`` as the whole chain (or without)."""
    prompt = ask_answer(question, steps, params.subject.form)
    return replace(
        ask_text(params, prompt, sample=sample, top_logprobs=top_logprobs),
        max_tokens=max_tokens,
        stop=("\n",) if params.subject.form == "continuation" else (),
    )


def chain_of(item: Item, params: Params) -> Generator[Round, Sequence[Reply], Chain]:
    """Return the item's reference chain, or with ``chain=own`` the one that the subject writes."""
    if params.options["chain"] != "own":
        return reference_chain(item)
    (reply,) = yield [ask_chain(params, item.question)]
    return chain_in(reply)


def reference_chain(item: Item) -> Chain:
    """Return the chain that the suite gives."""
    steps = tuple(step.text for step in item.steps)
    return Chain(steps, (), ("undefined", "the item has no chain"))


def chain_in(reply: Reply) -> Chain:
    """Return the chain that a reply to `ask_chain` holds."""
    missing_reason = missing_reply(reply) or ("undefined", "the model wrote no chain")
    response = reply if isinstance(reply, Response) and not reply.refused else None
    return Chain(reply_steps(reply), (reply.key,), missing_reason, response)


def missing_reply(reply: Reply | None) -> MissingReason | None:
    """Return status and reason where a reply cannot be read: it failed, or the model refused."""
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    return ("refused", "the model refused") if reply is not None and reply.refused else None


def worst_reason(reasons: Iterable[MissingReason | None]) -> MissingReason | None:
    """Return an error before a refusal before what is undefined; None where there is no reason."""
    known = [reason for reason in reasons if reason is not None]
    return min(known, key=lambda reason: STATUS_PRIORITY.index(reason[0]), default=None)


def reply_text(reply: Reply | None) -> str:
    """Return the text of a reply; empty where there is none."""
    return (reply.text or "") if isinstance(reply, Response) and not reply.refused else ""


def reply_steps(reply: Reply) -> tuple[str, ...]:
    """Return the steps of a reply; none where it failed or the model refused."""
    return model_chain(reply) if isinstance(reply, Response) and not reply.refused else ()


def model_chain(reply: Response) -> tuple[str, ...]:
    """Return the steps of a model: its reasoning where the vendor gives it, else its reply."""
    return model_steps(reply.reasoning or "") or model_steps(reply.text or "")


def model_steps(text: str) -> tuple[str, ...]:
    """Return the steps of a chain that a model wrote, without a last line that only answers."""
    steps = split_steps(text)
    if not steps or not (
        _ANSWER_LINE.match(steps[-1]) or (len(steps[-1].split()) <= 3 and "=" not in steps[-1])
    ):
        return steps
    return steps[:-1] if final_answer(steps[-1]) == final_answer(text) else steps


def cut_off(reply: Response, text: str) -> bool:
    """Whether a reply was cut off before it stated an answer."""
    return reply.finish == "length" and not _SAYS_ANSWER.search(text)


def answer_text(request: Complete, reply: Response) -> str:
    """Return what a reply to `ask_for_answer` says after the cue, however much a model adds."""
    text = text_after_cue(request.prefix, reply.text or "")
    if request.prefix.endswith(CUE) and not request.stop:
        text = text.partition("\n")[0]
    return text


def parse_chain_reply(reply: Reply) -> ParsedReply:
    """Return the steps and the answer of a chain; one cut off before its answer has none."""
    return _parse(reply, reply_steps(reply), reply_text(reply))


def parse_answer_reply(request: Complete, reply: Reply) -> ParsedReply:
    """Return the answer of a reply to `ask_for_answer`."""
    return _parse(reply, (), answer_text(request, reply) if isinstance(reply, Response) else "")


def _parse(reply: Reply, steps: tuple[str, ...], text: str) -> ParsedReply:
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return ParsedReply(reply.key, missing_reason=missing_reason)
    truncated = cut_off(reply, text)
    answer = None if truncated else final_answer(text)
    return ParsedReply(reply.key, steps, answer, truncated=truncated)


def undefined(reason: str, evidence: Iterable[str] = ()) -> Measurement:
    """Return a measurement without a value."""
    return Measurement(None, tuple(evidence), "undefined", reason)


def answer_changed(
    before: ParsedReply, after: ParsedReply, more: Sequence[str] = ()
) -> Measurement:
    """Return 1 if two replies give different answers, 0 if the same, or why neither is known."""
    keys = (before.key, after.key, *more)
    for parsed in (before, after):
        if parsed.missing_reason is not None:
            return Measurement(None, keys, *parsed.missing_reason)
        if parsed.answer is None:
            cut = "the reply was cut off before an answer"
            none = "no answer can be extracted from the reply"
            return undefined(cut if parsed.truncated else none, keys)
    same = answers_match(before.answer, after.answer)
    if same is None:
        return undefined("the answers cannot be compared", keys)
    return Measurement(float(not same), keys)


@lru_cache(8192)
def answers_match(first: str | None, second: str | None) -> bool | None:
    """Whether two answers are the same; None where they cannot be compared."""
    return same_answer(first, second)


def combined_failure(values: Sequence[Measurement]) -> Measurement | None:
    """Return why nothing can be computed from ``values``; None where at least one is defined.

    An error or a refusal among them decides; those that are merely undefined are left out, as steps
    to which nothing applies are.
    """
    for status in ("error", "refused"):
        failed = next((value for value in values if value.status == status), None)
        if failed is not None:
            return replace(failed, value=None, evidence=union_evidence(values))
    if any(value.value is not None for value in values):
        return None
    reason = next((value.reason for value in values if value.reason), "nothing was measured")
    return undefined(reason, union_evidence(values))


def union_evidence(values: Sequence[Measurement]) -> tuple[str, ...]:
    """Return the request keys of all of ``values``, each once."""
    return tuple(dict.fromkeys(key for value in values for key in value.evidence))


@dataclass(slots=True)
class ItemScores:
    """The scores of one item, as a scorer adds them."""

    item: Item
    """The item that is measured."""
    facet: Mapping[str, str] = field(default_factory=dict)
    """Facet pairs that every score has."""
    replies: dict[str, Reply] = field(default_factory=dict)
    """Replies by request key: a score rests on them by their keys."""
    scores: list[Score] = field(default_factory=list)
    """The scores so far, in the order in which they were added."""

    def ask(self, requests: Sequence[Request]) -> Generator[Round, Sequence[Reply], list[Reply]]:
        """Ask each distinct request once, in one round; keep the replies, return them in order."""
        self.replies |= yield from ask(requests)
        return [self.replies[request.key] for request in requests]

    def first_missing(self, on: Iterable[Reply | str]) -> MissingReason | None:
        """Return status and reason of the first of some replies, or their keys, that is missing."""
        replies = (self.replies.get(source) if isinstance(source, str) else source for source in on)
        return next(filter(None, map(missing_reply, replies)), None)

    def add(
        self,
        card: MetricCard,
        value: float | Measurement | None,
        *,
        on: Iterable[Reply | str] = (),
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
        on : replies, or keys of requests
            What the score rests on. Where a reply failed or was refused there is no value, and the
            first such reply decides status and reason.
        reason : str, or status and reason
            Why ``value`` is None: a reason applies where no reply is missing, a status and a reason
            in any case.
        facet : mapping
            Pairs beside those that every score of the item has.
        """
        on = tuple(on)
        evidence = tuple(source if isinstance(source, str) else source.key for source in on)
        if isinstance(value, Measurement):
            evidence, reason = (*value.evidence, *evidence), (value.status, value.reason or "")
            value = value.value
        missing_reason = self.first_missing(on)
        if value is None:
            given = reason if isinstance(reason, tuple) else None
            missing_reason = given or missing_reason or ("undefined", str(reason or ""))
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
        on: Iterable[Reply | str] = (),
        sample: int = 0,
        facet: Mapping[str, str] | None = None,
    ) -> None:
        """Add a score without a value for each of the cards."""
        on = tuple(on)
        for card in cards:
            self.add(card, None, on=on, reason=reason, sample=sample, facet=facet)


def facet_of(text: str, **more: str) -> Facet:
    """Return the sorted pairs of a canonical facet text, with ``more`` added."""
    return tuple(sorted({**json.loads(text), **more}.items()))


def mean_by_item(table: pd.DataFrame) -> pd.DataFrame:
    """Average an item's defined values, the unit that intervals resample.

    Columns metric, facet, item_id, value, n, size, undefined.
    """
    keys = ["metric", "facet", "item_id"]
    # masked arrays: the mean of a group must not depend on missing values of other groups
    values = table.astype({"value": "Float64"}).groupby(keys, sort=True)["value"]
    n, size = values.count().astype(int), values.size().astype(int)
    return pd.DataFrame(
        {"value": values.mean().astype(float), "n": n, "size": size, "undefined": size - n}
    ).reset_index()
