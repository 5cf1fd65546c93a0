"""One item of two runs: both chains side by side, their steps aligned and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from cotlab.analysis.tables.step_effects import (
    MAIN_MODES,
    measured_modes,
    mode_scores,
    step_effects,
)
from cotlab.analysis.tables.suggestion import question_pieces
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.text.differences import ChangeKind, TextChange, pair_steps, text_changes, without_label
from cotlab.ui import cached
from cotlab.ui.item.answers import item_answers
from cotlab.ui.item.chain import TextRow, label_length, load_scored_chain
from cotlab.ui.item.header import item_facts
from cotlab.ui.item.item import load_measured_steps, visible_scores
from cotlab.ui.item.reader_data import ChainReading, boxes_text, effect_rows, mode_labels
from cotlab.ui.item.step_marks import load_step_marks


@dataclass(frozen=True, slots=True)
class ChainSide:
    """An item as one of two runs has it."""

    name: str
    """The run's name."""
    row: RunView
    """The run."""
    item: Item
    """The item."""
    scores: pd.DataFrame
    """Its scores."""
    steps: tuple[str, ...]
    """The chain that is shown."""
    is_model_chain: bool
    """Whether the model wrote it."""
    effects_apply: bool
    """Whether the stored effects of steps are of this chain."""


def load_side(name: str, row: RunView, item_id: str, *, model_chain: bool) -> ChainSide:
    """Return an item of a run with its chain: the measured one, or the one that the model wrote."""
    item = cached.load_item(row.suite, item_id)
    scores = visible_scores(row, item)
    steps, is_model_chain = load_measured_steps(row, item, scores)
    if model_chain and not is_model_chain and (written := written_chain(row, item, scores)):
        return ChainSide(name, row, item, scores, written, True, False)
    return ChainSide(name, row, item, scores, tuple(steps), is_model_chain, True)


def written_chain(row: RunView, item: Item, scores: pd.DataFrame) -> tuple[str, ...]:
    """Return the chain that the model wrote; empty where the log holds none."""
    model_scores = scores[scores["facet"].str.contains('"chain":\\s*"own"', regex=True)]
    if model_scores.empty:
        return ()
    chain = load_scored_chain(row, item, model_scores)
    return chain.steps if chain.from_model else ()


def side_modes(sides: Sequence[ChainSide]) -> list[str]:
    """Return the changes of a step that either run measured, in the order of a page."""
    modes = dict.fromkeys(
        mode for side in sides if side.effects_apply for mode in measured_modes(side.scores)
    )
    main_modes = [mode for mode in MAIN_MODES if mode in modes]
    return [*main_modes, *(mode for mode in modes if mode not in main_modes)]


def pair_data(base: ChainSide, other: ChainSide, mode: str | None) -> dict[str, Any]:
    """Return what the component shows of two chains, as JSON values."""
    base_rows, other_rows = (_side_rows(side, mode) for side in (base, other))
    lines = []
    for i, j in pair_steps(base.steps, other.steps):
        first = None if i is None else base_rows[i]
        second = None if j is None else other_rows[j]
        first, second = _compared_rows(first, second)
        lines.append([None if row is None else asdict(row) for row in (first, second)])
    n_equal = sum(
        first is not None and second is not None and not first["changes"] and not second["changes"]
        for first, second in lines
    )
    return {
        "question_pieces": question_pieces(base.item.question),
        "sides": [_side_head(side) for side in (base, other)],
        "lines": lines,
        "summary": _summary(base, other, n_equal, len(lines), mode)
        + boxes_text([*base_rows, *other_rows]),
    }


def _side_head(side: ChainSide) -> dict[str, Any]:
    answers = item_answers(side.row, side.item, side.scores)
    facts = item_facts(side.item, answers, side.scores, len(side.steps), side.is_model_chain)
    query = {"run": side.row.id, "item": side.item.id}
    return {"name": side.name, "facts": facts, "href": f"/item?{urlencode(query)}"}


def _side_rows(side: ChainSide, mode: str | None) -> list[TextRow]:
    marks = load_step_marks(side.row, side.item, side.scores, is_model_chain=side.is_model_chain)
    if mode is None or not side.effects_apply or mode not in measured_modes(side.scores):
        return _plain_rows(side.steps, marks)
    effects = tuple(step_effects(mode_scores(side.scores, mode), len(side.steps)))
    temperature = side.row.plan.temperature
    reading = ChainReading(mode, (mode,), side.steps, 0, effects, (), 0, "", temperature)
    return effect_rows(reading, marks) if side.steps else []


def _plain_rows(steps: Sequence[str], marks: Mapping[int, str]) -> list[TextRow]:
    return [
        TextRow(i, f"{i + 1}", text, score=marks.get(i, ""), tint=0.0, skipped=label_length(text))
        for i, text in enumerate(steps)
    ]


def _only_change(row: TextRow, kind: ChangeKind) -> tuple[TextChange, ...]:
    return (TextChange(kind, without_label(row.text)),)


def _compared_rows(
    first: TextRow | None, second: TextRow | None
) -> tuple[TextRow | None, TextRow | None]:
    """Return two rows that stand beside each other, with the pieces in which they differ."""
    if first is None or second is None:
        first_alone = first and replace(first, changes=_only_change(first, "removed"))
        second_alone = second and replace(second, changes=_only_change(second, "added"))
        return first_alone, second_alone
    before, after = without_label(first.text), without_label(second.text)
    if before.split() == after.split():
        return first, second
    pieces = text_changes(before, after)
    return (
        replace(first, changes=tuple(piece for piece in pieces if piece.kind != "added")),
        replace(second, changes=tuple(piece for piece in pieces if piece.kind != "removed")),
    )


def _summary(
    base: ChainSide, other: ChainSide, n_equal: int, n_lines: int, mode: str | None
) -> str:
    if not base.steps and not other.steps:
        return "Neither run has a chain of this item."
    texts = [f"{n_equal} of {n_lines} steps are the same."]
    if n_equal == n_lines:
        texts = ["The steps are the same in both."]
        if not base.is_model_chain and not other.is_model_chain:
            texts = ["Both have the suite's reference chain."]
    if mode is not None:
        texts.append(
            f"Tint: answers that change when the step {mode_labels(mode).verb}; no tint: none."
        )
    unmeasured = [
        side.name
        for side in (base, other)
        if mode is None or not side.effects_apply or mode not in measured_modes(side.scores)
    ]
    if unmeasured:
        runs_text = "" if len(unmeasured) == 2 else f" in {unmeasured[0]}"
        texts.append(f"What a change of these steps does was not measured{runs_text}.")
    return " ".join(texts)
