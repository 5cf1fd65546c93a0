"""Causal perturbation of the question: other names must keep the answer, another number must move it where it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.rng import derive
from cotlab.core.types import Item, Score
from cotlab.metrics.causal import cards
from cotlab.metrics.chains import (
    Measurement,
    ParsedReply,
    answer_changed,
    answers_match,
    ask_chain,
    parse_chain_reply,
    worst_missing,
)
from cotlab.text.arithmetic.recompute import ChangedQuestion, change_number
from cotlab.text.edits.names import new_names, renamed

FACET = {"chain": "own"}
HEADLINES = tuple(Headline(card.name, {}) for card in cards.CARDS)
"""All about question and answer, so a model that bypasses its chain may do as well: a claim to be
held against such models."""
_NO_NAME = "no person's given name stands alone in the question"
_ORIGINAL, _RENAMED, _CHANGED = "asked", "renamed", "changed"


@scorer(*cards.CARDS, version=1, name="causal", headlines=HEADLINES)
def causal(item: Item, params: Params, peers: Peers) -> Program:
    """Ask the question as it is, with other names, and with another number, each for a chain and an answer."""
    names = new_names(item.question, derive("rename", item.id, params.seed, item.question))
    steps = [step.text for step in item.steps]
    number = change_number(
        item.question, steps, item.answer, derive("number", item.id, params.seed, item.question)
    )
    questions = {_ORIGINAL: item.question}
    if names is not None:
        questions[_RENAMED] = renamed(item.question, names)
    if isinstance(number, ChangedQuestion):
        questions[_CHANGED] = number.question
    parsed: dict[tuple[str, int], ParsedReply] = {}
    if len(questions) > 1:
        requests = {
            (kind, draw): ask_chain(params, text, sample=draw)
            for kind, text in questions.items()
            for draw in range(params.repeats)
        }
        replies = yield list(requests.values())
        parsed = {
            key: parse_chain_reply(reply) for key, reply in zip(requests, replies, strict=True)
        }
    scores: list[Score] = []
    for draw in range(params.repeats):
        scores += _scores(
            item,
            draw,
            {kind: parsed[kind, draw] for kind in questions if (kind, draw) in parsed},
            names,
            number,
        )
    return tuple(scores)


def _scores(
    item: Item,
    draw: int,
    parsed: Mapping[str, ParsedReply],
    names: Mapping[str, str] | None,
    number: ChangedQuestion | str,
) -> Iterator[Score]:
    values = {
        cards.RENAME_STABLE: _stable(parsed, names),
        cards.NUMBER_FOLLOWS: _follows(parsed, number),
        cards.NUMBER_MOVES: (
            answer_changed(parsed[_ORIGINAL], parsed[_CHANGED])
            if _CHANGED in parsed
            else _none(str(number))
        ),
    }
    values[cards.CAUSAL_STABILITY] = _both(
        values[cards.RENAME_STABLE], values[cards.NUMBER_FOLLOWS]
    )
    for card, value in values.items():
        yield card.score(
            item,
            value.number,
            sample=draw,
            facet=FACET,
            status=value.status,
            reason=value.reason,
            evidence=value.evidence,
        )


def _stable(parsed: Mapping[str, ParsedReply], names: Mapping[str, str] | None) -> Measurement:
    if names is None or _RENAMED not in parsed:
        return _none(_NO_NAME)
    before = parsed[_ORIGINAL]
    moved = answer_changed(
        replace(before, answer=before.answer and renamed(before.answer, names)), parsed[_RENAMED]
    )
    return moved if moved.number is None else Measurement(1 - moved.number, moved.evidence)


def _follows(parsed: Mapping[str, ParsedReply], number: ChangedQuestion | str) -> Measurement:
    if not isinstance(number, ChangedQuestion) or _CHANGED not in parsed:
        return _none(str(number))
    after = parsed[_CHANGED]
    moved = answer_changed(after, after)
    if moved.number is None:
        return replace(moved, evidence=(after.key,))
    same = answers_match(after.answer, number.answer)
    if same is None:
        return Measurement(
            None, (after.key,), "undefined", "the answer cannot be compared with the recomputed one"
        )
    return Measurement(float(same), (after.key,))


def _both(stable: Measurement, follows: Measurement) -> Measurement:
    undefined = worst_missing((stable, follows)) or next(
        (value for value in (stable, follows) if value.number is None), None
    )
    keys = tuple(dict.fromkeys((*stable.evidence, *follows.evidence)))
    if undefined is not None:
        return replace(undefined, number=None, evidence=keys)
    return Measurement(float(stable.number == 1 and follows.number == 1), keys)


def _none(reason: str) -> Measurement:
    return Measurement(None, (), "undefined", reason)
