"""Import suites from question-answer files and GSM8K.

``split`` divides the text of a chain into steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.types import Item, Step, Suite
from cotlab.suites.jsonl import ITEM_FIELDS, collect_items
from cotlab.suites.shipped import open_suite_file, printable_text
from cotlab.suites.strict_json import (
    DefectReporter,
    check_answer,
    check_id,
    check_text,
    read_records,
)

SplitSteps = Callable[[str], Sequence[str]]
"""Text of a chain -> texts of its steps."""

_CALCULATION_NOTE_PATTERN = re.compile(r"<<[^<>\n]*>>")
"""A calculation note of GSM8K: <<48/2=24>>."""


def import_gsm8k(path: str | Path, *, good_lines: bool = False) -> Suite:
    """Import GSM8K's own JSONL: ``{"question", "answer"}``.

    The answer holds the worked solution and ``#### 1,080`` in one text. Each line of the solution
    is a step, without its ``<<a=b>>`` notes; the item's answer is what follows ``####`` without
    commas, its unit, sign and decimals as they stand. Ids are the file's stem and the position,
    ``test-0000`` first.

    Raises
    ------
    SuiteErrors
        Every defect of the file, as `load_suite`.
    """
    with open_suite_file(path) as stream:
        convert = partial(_gsm8k_item, Path(path).stem)
        items = collect_items(stream, str(path), convert, good_lines=good_lines, read=read_records)
    return Suite.from_items(Path(path).stem, items)


def import_qa(
    path: str | Path,
    *,
    split: SplitSteps,
    question: str = "question",
    chain: str | None = "chain",
    answer: str = "answer",
    id: str | None = None,
    category: str | None = None,
    good_lines: bool = False,
) -> Suite:
    """Import a JSON array or JSONL of questions, chains and answers under keys of any name.

    Parameters
    ----------
    path : str or Path
    split : callable
        Text of a chain -> texts of its steps. A chain that is a list of texts is taken as it
        stands.
    question, chain, answer : str
        The keys. ``chain=None`` makes items without steps, for chains that the model writes.
    id : str, optional
        The key of the item id, text or a whole number; else the file's stem and the position,
        ``stem-0000`` first.
    category : str, optional
        The key of the category, text; by default "category" where there is such a key.
    good_lines : bool
        Leave out defective lines instead of rejecting the file.

    Returns
    -------
    Suite
        Other keys are ``Item.meta``; one that is a field of our own format gets the prefix
        ``source_``.

    Raises
    ------
    SuiteErrors
        Every defect of the file, as `load_suite`.
    """
    keys = _FieldKeys(question, chain, answer, id, category or "category")
    with open_suite_file(path) as stream:
        convert = partial(_qa_item, Path(path).stem, keys, split)
        items = collect_items(stream, str(path), convert, good_lines=good_lines, read=read_records)
    return Suite.from_items(Path(path).stem, items)


def _gsm8k_item(
    stem: str, record: dict[str, Any], record_index: int, report: DefectReporter
) -> Item:
    for key in ("question", "answer"):
        if key not in record:
            report(key, "is missing")
    question = (
        check_text(record["question"], "question", report, "a string")
        if "question" in record
        else ""
    )
    solution = (
        check_text(record["answer"], "answer", report, "a string") if "answer" in record else ""
    )
    *steps, last_line = [
        line.strip()
        for line in _CALCULATION_NOTE_PATTERN.sub("", solution).splitlines()
        if line.strip()
    ] or [""]
    answer = last_line.removeprefix("####").replace(",", "").strip()
    if solution and (not last_line.startswith("####") or not answer):
        report(
            "answer",
            f'must end in a line "#### 18"; its last line is {printable_text(last_line, 60)!r}',
        )
    elif solution and not steps:
        report("answer", 'is an empty chain: no step stands before "####"')
    meta = {key: value for key, value in record.items() if key not in ("question", "answer")}
    return Item(
        f"{stem}-{record_index:04d}",
        question,
        answer,
        _steps_from_texts(steps),
        meta=prefix_reserved_keys(meta),
    )


@dataclass(frozen=True, slots=True)
class _FieldKeys:
    question: str
    chain: str | None
    answer: str
    id: str | None
    category: str


def _qa_item(
    stem: str,
    keys: _FieldKeys,
    split: SplitSteps,
    record: dict[str, Any],
    record_index: int,
    report: DefectReporter,
) -> Item:
    required_keys = [
        key for key in (keys.question, keys.chain, keys.answer, keys.id) if key is not None
    ]
    for key in required_keys:
        if key not in record:
            report(
                printable_text(key, 60),
                f"is missing; this line has {printable_text(', '.join(record), 120) or 'no keys'}",
            )
    if not record.keys() >= set(required_keys):
        return Item("", "", None, ())
    item_id = record[keys.id] if keys.id is not None else f"{stem}-{record_index:04d}"
    answer, category = record[keys.answer], record.get(keys.category)
    has_category = isinstance(category, str)
    used_keys = {*required_keys, keys.category} if has_category else set(required_keys)
    return Item(
        id=check_id(str(item_id) if type(item_id) is int else item_id, keys.id or "id", report),
        question=check_text(record[keys.question], keys.question, report, "a string"),
        answer=check_answer(str(answer) if type(answer) is int else answer, keys.answer, report),
        steps=(
            _steps_from_texts(_step_texts(record[keys.chain], keys.chain, split, report))
            if keys.chain is not None
            else ()
        ),
        category=category if isinstance(category, str) else "",
        meta=prefix_reserved_keys(
            {key: value for key, value in record.items() if key not in used_keys}
        ),
    )


def _step_texts(
    chain: object, field: str, split: SplitSteps, report: DefectReporter
) -> Sequence[str]:
    """Return the texts of the steps, from one text or a list of texts."""
    if isinstance(chain, list):
        for k, text in enumerate(chain):
            check_text(text, f"{field}[{k}]", report, "a string")
        texts: Sequence[str] = chain
    else:
        full_text = check_text(chain, field, report, "a string or a list of strings")
        if not full_text:
            return ()
        texts = [step for step in split(full_text) if step.strip()]
    if not texts:
        report(field, "is an empty chain")
    return texts


def _steps_from_texts(texts: Sequence[str]) -> tuple[Step, ...]:
    return tuple(Step(i, text) for i, text in enumerate(texts))


def prefix_reserved_keys(meta: dict[str, Any]) -> dict[str, Any]:
    """Return ``meta`` with a prefix on keys that are fields of our own format."""
    reserved_keys = {
        key
        for key in meta
        if key in ITEM_FIELDS or (key == "category" and isinstance(meta[key], str))
    }
    return {f"source_{key}" if key in reserved_keys else key: value for key, value in meta.items()}
