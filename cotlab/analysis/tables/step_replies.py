"""The replies behind one changed step: their answers, and which later steps change with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from cotlab.analysis.tables.step_effects import StoredRequest
from cotlab.core.requests import Complete, Response
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.kit import UNPARSED_ANSWER, parse_answer_reply, reply_steps
from cotlab.text.answers.targets import is_right_answer, same_answer_to
from cotlab.text.differences import align_steps, stated_number, states_otherwise

_NOT_IN_LOG_REASON = "the log does not hold this reply in full"


@dataclass(frozen=True, slots=True)
class ReadReply:
    """The answer that a logged reply states, and the steps that it wrote."""

    answer: str | None
    """The answer; None with a reason."""
    reason: str | None = None
    """Why there is no answer."""
    steps: tuple[str, ...] = ()
    """Complete steps of the reply."""


@dataclass(slots=True)
class AnswerCount:
    """One answer, and how many replies give it."""

    answer: str
    """The answer, in the words of the first reply that gives it."""
    is_right: bool | None
    """Whether it is right; None where that is not known."""
    n_changed_step: int = 0
    """Replies to the chain with the changed step that give it."""
    n_baseline: int = 0
    """Replies to the chain as it is that give it."""


@dataclass(frozen=True, slots=True)
class LaterStep:
    """A step after the changed one, in the chains that the model wrote from there."""

    step: int
    """Index of the step, from 0."""
    text: str
    """The step in the original chain."""
    written_text: str | None
    """What most of the replies that change it have in its place; None where they leave it out."""
    n_changed: int
    """Replies that state something else there."""
    n: int
    """Replies that wrote a chain."""


@dataclass(frozen=True, slots=True)
class ChainEnding:
    """Where the rewritten chains end, where all end on the same number."""

    number: str
    """The number that the last step states."""
    n_follow: int
    """Replies that give it as their answer."""
    n_keep: int
    """Replies that keep to the answer of the chain as it is."""
    baseline_answer: str
    """That answer."""
    n: int
    """Replies."""


@dataclass(frozen=True, slots=True)
class StepReplies:
    """The replies behind one step under one mode."""

    answers: tuple[AnswerCount, ...] = ()
    """Each answer with its counts, those of the chain as it is first."""
    n_changed_step: int = 0
    """Replies to the chain with the changed step that state an answer."""
    n_baseline: int = 0
    """Replies to the chain as it is that state one."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Number of replies without an answer by reason."""
    later_steps: tuple[LaterStep, ...] = ()
    """Later steps that some reply states otherwise."""
    n_other_length: int = 0
    """Replies whose chain has another number of steps."""
    ending: ChainEnding | None = None
    """Where the rewritten chains end; None where they differ, or nothing was rewritten."""


def reply_pairs(scores: pd.DataFrame, step: int) -> list[tuple[str, str, float | None]]:
    """Return, for each draw of a step, the keys of both requests and the score.

    The first is the request with the chain as it is, the second the one with the changed step.
    """
    rows = scores[scores["step"] == step].sort_values("sample")
    return [
        (str(keys[0]), str(keys[1]), None if pd.isna(value) else float(value))
        for keys, value in zip(rows["evidence"], rows["value"], strict=True)
        if len(keys) >= 2
    ]


def parse_logged_reply(
    item: Item, model: ModelRef, request: StoredRequest | None, reply: Response | None
) -> ReadReply:
    """Return the answer of a logged reply, read as the scorers read it."""
    if reply is None or request is None:
        return ReadReply(None, _NOT_IN_LOG_REASON)
    prefix, stop = str(request.get("prefix") or ""), tuple(request.get("stop") or ())
    parsed = parse_answer_reply(Complete(model, (), prefix=prefix, stop=stop), reply, item)
    if parsed.missing_reason is not None:
        return ReadReply(None, parsed.missing_reason[1])
    if parsed.is_truncated:
        return ReadReply(None, "the reply was cut off before an answer")
    reason = None if parsed.answer is not None else f"{UNPARSED_ANSWER}: {parsed.how}"
    return ReadReply(parsed.answer, reason, reply_steps(reply))


def count_answers(
    item: Item, pairs: Sequence[tuple[ReadReply, ReadReply, float | None]]
) -> list[AnswerCount]:
    """Return each answer with its counts, the most frequent one of the chain as it is first.

    A reply whose score says that its answer did not change counts as the answer of its pair, also
    where a model, not a rule, called the two the same.
    """
    counts: list[AnswerCount] = []

    def find_count(answer: str, excluded: AnswerCount | None = None) -> AnswerCount:
        for count in counts:
            if count is not excluded and same_answer_to(item, count.answer, answer):
                return count
        counts.append(AnswerCount(answer, is_right_answer(item, answer)))
        return counts[-1]

    for baseline, changed, value in pairs:
        baseline_count = None
        if baseline.answer is not None:
            baseline_count = find_count(baseline.answer)
            baseline_count.n_baseline += 1
        if changed.answer is not None:
            changed_count = (
                baseline_count
                if value == 0 and baseline_count is not None
                else find_count(changed.answer, baseline_count if value == 1 else None)
            )
            changed_count.n_changed_step += 1
    return sorted(counts, key=lambda count: (-count.n_baseline, -count.n_changed_step))


def later_changes(
    steps: Sequence[str], step: int, chains: Sequence[Sequence[str]]
) -> tuple[LaterStep, ...]:
    """Return the steps after ``step`` that some of the rewritten chains state otherwise."""
    later = list(steps[step + 1 :])
    written = [align_steps(later, chain) for chain in chains]
    changes = []
    for i, text in enumerate(later):
        changed_texts = [
            aligned[i]
            for aligned in written
            if aligned[i] is None or states_otherwise(text, aligned[i] or "")
        ]
        if changed_texts:
            ((most_common, _),) = Counter(changed_texts).most_common(1)
            changes.append(
                LaterStep(step + 1 + i, text, most_common, len(changed_texts), len(chains))
            )
    return tuple(changes)


def chain_ending(
    item: Item,
    pairs: Sequence[tuple[ReadReply, ReadReply, float | None]],
    answers: Sequence[AnswerCount],
) -> ChainEnding | None:
    """Return the number that every rewritten chain ends on, and how many replies follow it.

    None where a reply wrote no chain or has no answer, where the chains end on different numbers,
    where the answers to the chain as it is differ, or where the number is that answer.
    """
    numbers = {
        stated_number(changed.steps[-1]) if changed.steps else None for _, changed, _ in pairs
    }
    baseline_answers = [count for count in answers if count.n_baseline]
    is_known = all(
        baseline.answer is not None and changed.answer is not None for baseline, changed, _ in pairs
    )
    if len(numbers) != 1 or None in numbers or len(baseline_answers) != 1 or not is_known:
        return None
    (number,) = numbers
    assert number is not None
    baseline_answer = baseline_answers[0]
    if same_answer_to(item, number, baseline_answer.answer):
        return None
    n_follow = sum(
        count.n_changed_step for count in answers if same_answer_to(item, number, count.answer)
    )
    return ChainEnding(
        number, n_follow, baseline_answer.n_changed_step, baseline_answer.answer, len(pairs)
    )


def step_replies(
    item: Item,
    model: ModelRef,
    steps: Sequence[str],
    step: int,
    key_pairs: Sequence[tuple[str, str, float | None]],
    exchanges: Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]],
    responses: Mapping[str, Response],
    *,
    rewrites_chain: bool,
) -> StepReplies:
    """Return the answers behind a step, and the later steps that change with it.

    Parameters
    ----------
    item : Item
    model : ModelRef
        The model that was asked.
    steps : sequence of str
        The original chain.
    step : int
        The changed step, from 0.
    key_pairs : sequence of (str, str, float or None)
        As ``reply_pairs`` gives them.
    exchanges, responses : mapping
        Request and reply behind each key, and the replies that the log holds in full.
    rewrites_chain : bool
        Whether the model continued the chain from the changed step.
    """

    def read(key: str) -> ReadReply:
        return parse_logged_reply(
            item, model, exchanges.get(key, (None, None))[0], responses.get(key)
        )

    pairs = [(read(baseline), read(changed), value) for baseline, changed, value in key_pairs]
    answers = count_answers(item, pairs)
    reasons = Counter(
        reply.reason for pair in pairs for reply in pair[:2] if reply.reason is not None
    )
    chains = [
        _without_repeated_steps(changed.steps, steps[:step])
        for _, changed, _ in pairs
        if changed.steps
    ]
    is_rewritten = rewrites_chain and step + 1 < len(steps) and bool(chains)
    return StepReplies(
        tuple(answers),
        sum(count.n_changed_step for count in answers),
        sum(count.n_baseline for count in answers),
        dict(reasons),
        later_changes(steps, step, chains) if is_rewritten else (),
        sum(len(chain) != len(steps) - step - 1 for chain in chains) if is_rewritten else 0,
        chain_ending(item, pairs, answers) if is_rewritten else None,
    )


def _without_repeated_steps(chain: Sequence[str], earlier: Sequence[str]) -> tuple[str, ...]:
    """Return a continuation without the given steps, where the model wrote them once more."""
    n = len(earlier)
    repeats = n > 0 and [text.split() for text in chain[:n]] == [text.split() for text in earlier]
    return tuple(chain[n + 1 :] if repeats else chain)


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """The model's answers to an item with its whole chain, and how many of them are right."""

    answers: tuple[AnswerCount, ...]
    """Each answer with its counts."""
    n: int
    """Replies that were judged."""
    n_right: int
    """How many of them are right."""
    reason: str | None
    """Why no reply has an answer, or why none is judged; None where all is known."""


ANSWER_METRICS = ("baseline_correct", "answer_correct")
"""Metrics whose first request is the one that the model answered with its full chain."""


def model_answers(
    item: Item,
    model: ModelRef,
    scores: pd.DataFrame,
    exchanges: Mapping[str, tuple[dict[str, Any] | None, dict[str, Any] | None]],
    responses: Mapping[str, Response],
) -> ModelAnswers:
    """Return the answers to the whole chain, from the scores of the first metric that has any."""
    rows = answer_scores(scores)
    if rows.empty:
        return ModelAnswers((), 0, 0, "no reply to the whole chain was asked for")
    requested_rows = rows[rows["evidence"].map(len) > 0]
    if requested_rows.empty:
        reasons = [*rows["reason"].dropna(), "no request was made for it"]
        return ModelAnswers((), 0, 0, str(reasons[0]))
    replies = []
    for keys in requested_rows["evidence"]:
        key = str(keys[0])
        request = exchanges.get(key, (None, None))[0]
        replies.append(parse_logged_reply(item, model, request, responses.get(key)))
    answers = count_answers(item, [(reply, ReadReply(None), None) for reply in replies])
    values = rows["value"].dropna()
    reason = next((reply.reason for reply in replies if reply.reason is not None), None)
    if not answers and not any(str(keys[0]) in exchanges for keys in requested_rows["evidence"]):
        reason = next(iter(rows["reason"].dropna()), reason)  # why nothing was asked
    if answers:
        undefined = rows[rows["value"].isna()]
        reason = None if undefined.empty else str(undefined["reason"].iloc[0])
    return ModelAnswers(tuple(answers), len(values), int(values.sum()), reason)


def answer_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return an item's scores of right answers, of the first metric that the item has."""
    for metric in ANSWER_METRICS:
        rows = scores[scores["metric"] == metric]
        if len(rows):
            return rows.sort_values("sample")
    return scores.iloc[:0]
