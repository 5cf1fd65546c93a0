"""A chain asked for, whole or from a step on, and what its reply says: its steps, its answer, or why not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cotlab.core.program import Params
from cotlab.core.requests import Complete, Failed, Reply
from cotlab.core.types import Status
from cotlab.metrics.ablation.scorer import ANSWER_TOKENS, CHAIN_TOKENS, missing, own_chain
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import CUE, ask_answer, ask_rest, said

_SAYS_ANSWER = re.compile(r"(?i)\banswer\b|\\boxed|####")


@dataclass(frozen=True, slots=True)
class Value:
    """A number with the request keys it rests on, or the status and reason why there is none."""

    number: float | None
    evidence: tuple[str, ...] = ()
    status: Status = "ok"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One reply, read. ``gap`` says why nothing can be read of it, ``cut`` that it ends in the middle of its chain."""

    key: str
    steps: tuple[str, ...] = ()
    answer: str | None = None
    gap: tuple[Status, str] | None = None
    cut: bool = False


def ask_chain(params: Params, question: str, steps: Sequence[str] = (), sample: int = 0) -> Complete:
    """Ask the subject to go on from ``steps`` to the end of the chain and the answer (none: for the whole chain)."""
    prompt = ask_rest(question, steps, params.subject.form)
    return Complete(
        params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS, temperature=params.temperature,
        seed=params.seed, sample=sample, stop=("\nQ:",) if params.subject.form == "continuation" else (),
    )  # fmt: skip


def read(reply: Reply) -> Told:
    """The steps and the answer of a reply; a chain that was cut off before its answer has none."""
    gap = missing(reply)
    if gap is not None or isinstance(reply, Failed):
        return Told(reply.key, gap=gap or ("error", "no reply"))
    text = reply.text or ""
    cut = reply.finish == "length" and not _SAYS_ANSWER.search(text)
    return Told(reply.key, own_chain(reply), None if cut else final_answer(text), cut=cut)


def ask_for_answer(params: Params, question: str, steps: Sequence[str], sample: int = 0) -> Complete:
    """Ask the subject for its answer at once, given ``steps`` as the whole chain (none: without a chain)."""
    prompt = ask_answer(question, steps, params.subject.form)
    return Complete(
        params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=ANSWER_TOKENS, temperature=params.temperature,
        seed=params.seed, sample=sample, stop=("\n",) if params.subject.form == "continuation" else (),
    )  # fmt: skip


def read_answer(request: Complete, reply: Reply) -> Told:
    """The answer of a reply to ``ask_for_answer``, which goes on from the cue where the request ends with it."""
    gap = missing(reply)
    if gap is not None or isinstance(reply, Failed):
        return Told(reply.key, gap=gap or ("error", "no reply"))
    text = said(request.prefix, reply.text or "")
    if request.prefix.endswith(CUE) and not request.stop:
        text = text.partition("\n")[0]
    cut = reply.finish == "length" and not _SAYS_ANSWER.search(text)
    return Told(reply.key, (), None if cut else final_answer(text), cut=cut)


def changed(before: Told, after: Told, more: Sequence[str] = ()) -> Value:
    """1 if two replies give different answers, 0 if the same, or why neither can be said."""
    keys = (before.key, after.key, *more)
    for told in (before, after):
        if (gap := told.gap or _no_answer(told)) is not None:
            return Value(None, keys, *gap)
    same = alike(before.answer, after.answer)
    return Value(None, keys, "undefined", "the answers cannot be compared") if same is None else Value(float(not same), keys)


def _no_answer(told: Told) -> tuple[Status, str] | None:
    if told.answer is not None:
        return None
    return "undefined", "the reply was cut off before an answer" if told.cut else "no answer can be extracted from the reply"


@lru_cache(8192)
def alike(first: str | None, second: str | None) -> bool | None:
    """Whether two answers are the same; None where they cannot be compared."""
    return same_answer(first, second)


def worst(values: Sequence[Value]) -> Value | None:
    """Why what rests on all of ``values`` has no number: an error or a refusal among them, or none is defined; else None.

    What is merely undefined is left out, as steps to which nothing applies are.
    """
    for status in ("error", "refused"):
        lost = next((value for value in values if value.status == status), None)
        if lost is not None:
            return replace(lost, number=None, evidence=union(values))
    if any(value.number is not None for value in values):
        return None
    reason = next((value.reason for value in values if value.reason), "nothing was measured")
    return Value(None, union(values), "undefined", reason)


def union(values: Sequence[Value]) -> tuple[str, ...]:
    """The request keys of all of ``values``, each once."""
    return tuple(dict.fromkeys(key for value in values for key in value.evidence))
