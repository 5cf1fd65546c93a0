"""A record of a file of any format, and what the formats share in reading one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cotlab.core.types import CLUSTER_KEY, DRAW_KEY, Item, Step
from cotlab.suites.jsonl import ITEM_FIELDS
from cotlab.suites.shipped import printable_text
from cotlab.suites.strict_json import (
    DefectReporter,
    check_answer,
    check_id,
    check_text,
    describe_json,
)

MISSING = object()
"""Stands for a field that a record lacks."""
SplitSteps = Callable[[str], Sequence[str]]
"""Text of a chain -> texts of its steps."""
_CALCULATION_NOTE_RE = re.compile(r"<<[^<>\n]*>>")  # a note of GSM8K: <<48/2=24>>
ANSWER_KEY, CORRECT_KEY = "model_answer", "answer_correct"
"""Keys of the meta: the model's answer as it was logged, and whether the log calls it correct."""


@dataclass(slots=True)
class Record:
    """A record of a file: its fields are read once, and the others are meta."""

    fields: Mapping[str, Any]
    report: DefectReporter
    default_id: str
    split: SplitSteps
    used: set[str] = field(default_factory=set)

    def get(self, name: str) -> Any:
        """Return a field that must be there; None after a report."""
        self.used.add(name)
        if name not in self.fields:
            report_missing(self.fields, name, self.report)
        return self.fields.get(name)

    def text(self, name: str) -> str:
        """Return a field that holds text."""
        value = self.get(name)
        return check_text(value, name, self.report, "a string") if name in self.fields else ""

    def index(self, name: str, value: object, n_steps: int, base: int) -> int | None:
        """Return the index from 0 of a step that is counted from ``base``; None after a report."""
        if type(value) is not int or not 0 <= value - base < n_steps:
            value_text = value if type(value) is int else describe_json(value)
            self.report(
                name, f"must be a step from {base} to {n_steps - 1 + base}; found {value_text}"
            )
            return None
        return value - base

    def item(
        self,
        item_id: object,
        question: str,
        answer: object,
        chain: object,
        chain_field: str,
        meta: Mapping[str, Any],
        category: object = "",
        id_field: str = "id",
    ) -> Item:
        """Return the item; fields that were not read join its meta."""
        further = {name: value for name, value in self.fields.items() if name not in self.used}
        further = {f"source_{name}" if name in meta else name: v for name, v in further.items()}
        return Item(
            check_id(str(item_id) if type(item_id) is int else item_id, id_field, self.report),
            question,
            check_answer(answer, "answer", self.report),
            read_chain_steps(chain, chain_field, self.split, self.report)
            if chain is not None
            else (),
            category if isinstance(category, str) else "",
            {**meta, **prefix_reserved_keys(further)},
        )


def find(record: Mapping[str, Any], field: str) -> Any:
    """Return a field, by its whole name or along its dots; ``MISSING`` where there is none."""
    if field in record:
        return record[field]
    value: Any = record
    for name in field.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return MISSING
    return value


def last_line_answer(text: str) -> tuple[list[str], str] | None:
    """Return the steps and the answer of a solution that ends in a line ``#### 1,080``.

    The steps are its other lines without GSM8K's ``<<a=b>>`` notes; the answer is without commas,
    its unit, sign and decimals as they stand. None for any other text.
    """
    lines = [line.strip() for line in _CALCULATION_NOTE_RE.sub("", text).splitlines()]
    *steps, last = [line for line in lines if line] or [""]
    answer = last.removeprefix("####").replace(",", "").strip()
    return (steps, answer) if last.startswith("####") and answer else None


def report_missing(record: Mapping[str, Any], name: str, report: DefectReporter) -> None:
    """Report a field that a record lacks, with the fields that it has."""
    keys = printable_text(", ".join(record), 120) or "none"
    report(printable_text(name, 60), f"is missing; the fields are {keys}")


def read_chain_steps(
    chain: object, field: str, split: SplitSteps, report: DefectReporter
) -> tuple[Step, ...]:
    """Return the steps of a list of texts, or of a text."""
    texts: Sequence[str] = ()
    if isinstance(chain, list):
        texts = [
            check_text(text, f"{field}[{k}]", report, "a string") for k, text in enumerate(chain)
        ]
    else:
        text = check_text(chain, field, report, "a string or a list of strings")
        if not text:
            return ()
        texts = [step for step in split(text) if step.strip()]
    if not texts:
        report(field, "is an empty chain")
    return tuple(Step(i, text) for i, text in enumerate(texts))


def number_draws(items: Iterable[Item]) -> list[Item]:
    """Return items with ``cluster`` and ``draw`` where several have the same question."""
    items = list(items)
    ids_by_question: dict[str, list[str]] = {}
    for item in items:
        ids_by_question.setdefault(item.question, []).append(item.id)
    numbered_items = []
    for item in items:
        draws = ids_by_question[item.question]
        if len(draws) > 1:
            numbering = {CLUSTER_KEY: draws[0], DRAW_KEY: draws.index(item.id)}
            item = replace(item, meta={**numbering, **item.meta})
        numbered_items.append(item)
    return numbered_items


def check_correct(value: object, field: str, report: DefectReporter) -> bool | None:
    """Return whether an answer is correct, from true, false, 1, 0 or null; report other values."""
    if value is None:
        return None
    if value not in (True, False):
        report(field, f"must be true, false or null; found {describe_json(value)}")
    return bool(value)


def prefix_reserved_keys(meta: dict[str, Any]) -> dict[str, Any]:
    """Return ``meta`` with a prefix on keys that are fields of our own format."""
    reserved_keys = {
        key
        for key in meta
        if key in ITEM_FIELDS or (key == "category" and isinstance(meta[key], str))
    }
    return {f"source_{key}" if key in reserved_keys else key: value for key, value in meta.items()}
