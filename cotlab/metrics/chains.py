"""A chain asked for, whole or from a step on, and what its reply says: its steps, its answer, or why not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cotlab.core.program import Params
from cotlab.core.requests import Complete, Failed, Reply
from cotlab.core.types import Status
from cotlab.metrics.ablation.scorer import ANSWER_TOKENS, CHAIN_TOKENS, missing_reply, model_chain
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import CUE, ask_answer, ask_rest, text_after_cue

_SAYS_ANSWER = re.compile(r"(?i)\banswer\b|\\boxed|####")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number with the request keys it rests on, or the status and reason why there is none."""

    number: float | None
    evidence: tuple[str, ...] = ()
    status: Status = "ok"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """One reply, read. ``gap`` says why nothing can be read of it, ``cut`` that it ends in the middle of its chain."""

    key: str
    steps: tuple[str, ...] = ()
    answer: str | None = None
    missing_reason: tuple[Status, str] | None = None
    truncated: bool = False


def ask_chain(
    params: Params, question: str, steps: Sequence[str] = (), sample: int = 0
) -> Complete:
    """Ask the subject to go on from ``steps`` to the end of the chain and the answer (none: for the whole chain)."""
    prompt = ask_rest(question, steps, params.subject.form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        sample=sample,
        stop=("\nQ:",) if params.subject.form == "continuation" else (),
    )


def parse_chain_reply(reply: Reply) -> ParsedReply:
    """The steps and the answer of a reply; a chain that was cut off before its answer has none."""
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return ParsedReply(reply.key, missing_reason=missing_reason or ("error", "no reply"))
    text = reply.text or ""
    truncated = reply.finish == "length" and not _SAYS_ANSWER.search(text)
    return ParsedReply(
        reply.key,
        model_chain(reply),
        None if truncated else final_answer(text),
        truncated=truncated,
    )


def ask_for_answer(
    params: Params, question: str, steps: Sequence[str], sample: int = 0
) -> Complete:
    """Ask the subject for its answer at once, given ``steps`` as the whole chain (none: without a chain)."""
    prompt = ask_answer(question, steps, params.subject.form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=ANSWER_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        sample=sample,
        stop=("\n",) if params.subject.form == "continuation" else (),
    )


def parse_answer_reply(request: Complete, reply: Reply) -> ParsedReply:
    """The answer of a reply to ``ask_for_answer``, which goes on from the cue where the request ends with it."""
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return ParsedReply(reply.key, missing_reason=missing_reason or ("error", "no reply"))
    text = text_after_cue(request.prefix, reply.text or "")
    if request.prefix.endswith(CUE) and not request.stop:
        text = text.partition("\n")[0]
    truncated = reply.finish == "length" and not _SAYS_ANSWER.search(text)
    return ParsedReply(
        reply.key, (), None if truncated else final_answer(text), truncated=truncated
    )


def answer_changed(
    before: ParsedReply, after: ParsedReply, more: Sequence[str] = ()
) -> Measurement:
    """1 if two replies give different answers, 0 if the same, or why neither can be said."""
    keys = (before.key, after.key, *more)
    for parsed in (before, after):
        if (missing_reason := parsed.missing_reason or _no_answer(parsed)) is not None:
            return Measurement(None, keys, *missing_reason)
    same = answers_match(before.answer, after.answer)
    return (
        Measurement(None, keys, "undefined", "the answers cannot be compared")
        if same is None
        else Measurement(float(not same), keys)
    )


def _no_answer(parsed: ParsedReply) -> tuple[Status, str] | None:
    if parsed.answer is not None:
        return None
    return (
        "undefined",
        (
            "the reply was cut off before an answer"
            if parsed.truncated
            else "no answer can be extracted from the reply"
        ),
    )


@lru_cache(8192)
def answers_match(first: str | None, second: str | None) -> bool | None:
    """Whether two answers are the same; None where they cannot be compared."""
    return same_answer(first, second)


def worst_missing(values: Sequence[Measurement]) -> Measurement | None:
    """Why what rests on all of ``values`` has no number: an error or a refusal among them, or none is defined; else None.

    What is merely undefined is left out, as steps to which nothing applies are.
    """
    for status in ("error", "refused"):
        failed = next((value for value in values if value.status == status), None)
        if failed is not None:
            return replace(failed, number=None, evidence=union_evidence(values))
    if any(value.number is not None for value in values):
        return None
    reason = next((value.reason for value in values if value.reason), "nothing was measured")
    return Measurement(None, union_evidence(values), "undefined", reason)


def union_evidence(values: Sequence[Measurement]) -> tuple[str, ...]:
    """The request keys of all of ``values``, each once."""
    return tuple(dict.fromkeys(key for value in values for key in value.evidence))
