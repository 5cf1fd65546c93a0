"""Import suites from question-answer files and GSM8K, and scores from a report.

Where a chain is one text, ``split`` says how it divides into steps; this package does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Item, ModelRef, Score, Status, Step, Suite
from cotlab.suites.jsonl import FIELDS, collect
from cotlab.suites.shipped import open_suite_file, printable, unusable_file
from cotlab.suites.strict_json import (
    Bad,
    NotJSON,
    Report,
    check_answer,
    check_id,
    check_text,
    describe_json,
    json_defects,
    parse_json,
)

Split = Callable[[str], Sequence[str]]
"""Text of a chain -> texts of its steps."""
MAX_REPORT_BYTES = 64 * 2**20

_NOTE = re.compile(r"<<[^<>\n]*>>")
"""A calculation note of GSM8K: <<48/2=24>>."""
_METRIC = "accuracy_delta"
_MISSING_STATUSES: tuple[Status, ...] = ("undefined", "refused", "stopped", "error")
"""Statuses of a score without a value."""


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
        items = collect(
            stream, str(path), partial(_gsm8k_item, Path(path).stem), good_lines=good_lines
        )
    return Suite.of(Path(path).stem, items)


def import_qa(
    path: str | Path,
    *,
    split: Split,
    question: str = "question",
    chain: str | None = "chain",
    answer: str = "answer",
    id: str | None = None,
    category: str | None = None,
    good_lines: bool = False,
) -> Suite:
    """Import JSONL of questions, chains and answers under keys of any name.

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
    keys = _Keys(question, chain, answer, id, category or "category")
    with open_suite_file(path) as stream:
        convert = partial(_qa_item, Path(path).stem, keys, split)
        items = collect(stream, str(path), convert, good_lines=good_lines)
    return Suite.of(Path(path).stem, items)


@dataclass(frozen=True, slots=True)
class ImportedReport:
    """The step scores of a ``report.json``. It holds no questions or chains, so it is no suite."""

    model: ModelRef
    """The model that was measured."""
    suite_hash: str
    """SHA-256 of the suite file that was run."""
    scores: tuple[Score, ...]
    """Scores under the report's own metric names, for example ``accuracy_delta``, without evidence,
    as a report names no requests."""


def import_faithcheck_report(path: str | Path) -> ImportedReport:
    """Read the scores of a FaithCheck or cotlab ``report.json``.

    A step score that is null, NaN or missing becomes a score without value: its ``status`` is the
    report's where it gives one, else undefined, with the report's reason or "the report gives no
    value". A ``mode`` becomes the score's facet and a ``sample`` its sample.

    Raises
    ------
    SuiteErrors
        Every defect of the file with its field. Scores lie in [0, 1], and each occurs once.
    """
    with open_suite_file(path, limit=MAX_REPORT_BYTES) as stream:
        data = stream.read(MAX_REPORT_BYTES)
    try:
        report = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise unusable_file(
            path, f"byte {exc.start} of the file is not UTF-8; save the file as UTF-8"
        ) from exc
    except NotJSON as exc:
        raise unusable_file(path, str(exc)) from exc
    if not isinstance(report, dict):
        raise unusable_file(path, f"must be a JSON object; found {describe_json(report)}")
    errors = _Errors(str(path))
    for field, message in json_defects(report):
        if not message.startswith("NaN "):  # Python's spelling of a missing number
            errors.report(field, message)
    errors.stop()
    model = ModelRef(
        provider=check_text(report.get("provider"), "provider", errors.report, "a string"),
        name=check_text(report.get("model_id"), "model_id", errors.report, "a string"),
    )
    suite_hash = check_text(
        report.get("task_suite_hash"), "task_suite_hash", errors.report, "a string of 64 digits"
    )
    items = report.get("items")
    if not isinstance(items, list):
        errors.report("items", f"must be a list; found {describe_json(items)}")
        items = []
    scores: dict[tuple[Any, ...], Score] = {}
    for i, item in enumerate(items):
        _item_scores(item, f"items[{i}]", scores, errors.report)
    errors.stop()
    return ImportedReport(model, suite_hash, tuple(scores.values()))


class _Errors:
    """Collects the defects of one document."""

    def __init__(self, path: str) -> None:
        self.path, self.defects = printable(path), list[SuiteError]()

    def report(self, field: str, message: str) -> None:
        """Add a defect."""
        self.defects.append(SuiteError(self.path, None, field, message))

    def stop(self) -> None:
        """Raise the collected defects, if any."""
        if self.defects:
            raise SuiteErrors(self.defects, 0)


def _gsm8k_item(stem: str, record: dict[str, Any], i: int, report: Report) -> Item:
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
    *steps, last = [
        line.strip() for line in _NOTE.sub("", solution).splitlines() if line.strip()
    ] or [""]
    answer = last.removeprefix("####").replace(",", "").strip()
    if solution and (not last.startswith("####") or not answer):
        report("answer", f'must end in a line "#### 18"; its last line is {printable(last, 60)!r}')
    elif solution and not steps:
        report("answer", 'is an empty chain: no step stands before "####"')
    meta = {key: value for key, value in record.items() if key not in ("question", "answer")}
    return Item(
        f"{stem}-{i:04d}", question, answer, _as_steps(steps), meta=_without_reserved_keys(meta)
    )


@dataclass(frozen=True, slots=True)
class _Keys:
    question: str
    chain: str | None
    answer: str
    id: str | None
    category: str


def _qa_item(
    stem: str, keys: _Keys, split: Split, record: dict[str, Any], i: int, report: Report
) -> Item:
    needed = [key for key in (keys.question, keys.chain, keys.answer, keys.id) if key is not None]
    for key in needed:
        if key not in record:
            report(
                printable(key, 60),
                f"is missing; this line has {printable(', '.join(record), 120) or 'no keys'}",
            )
    if not record.keys() >= set(needed):
        return Item("", "", None, ())
    item_id = record[keys.id] if keys.id is not None else f"{stem}-{i:04d}"
    answer, category = record[keys.answer], record.get(keys.category)
    named = isinstance(category, str)
    used = {*needed, keys.category} if named else set(needed)
    return Item(
        id=check_id(str(item_id) if type(item_id) is int else item_id, keys.id or "id", report),
        question=check_text(record[keys.question], keys.question, report, "a string"),
        answer=check_answer(str(answer) if type(answer) is int else answer, keys.answer, report),
        steps=(
            _as_steps(_texts(record[keys.chain], keys.chain, split, report))
            if keys.chain is not None
            else ()
        ),
        category=category if isinstance(category, str) else "",
        meta=_without_reserved_keys(
            {key: value for key, value in record.items() if key not in used}
        ),
    )


def _texts(chain: object, field: str, split: Split, report: Report) -> Sequence[str]:
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


def _as_steps(texts: Sequence[str]) -> tuple[Step, ...]:
    return tuple(Step(i, text) for i, text in enumerate(texts))


def _without_reserved_keys(meta: dict[str, Any]) -> dict[str, Any]:
    """Return ``meta`` with a prefix on keys that are fields of our own format."""
    reserved = {
        key for key in meta if key in FIELDS or (key == "category" and isinstance(meta[key], str))
    }
    return {f"source_{key}" if key in reserved else key: value for key, value in meta.items()}


def _item_scores(
    item: object, field: str, scores: dict[tuple[Any, ...], Score], report: Report
) -> None:
    """Add the step scores of one entry of ``items``."""
    if not isinstance(item, dict):
        report(field, f"must be an object; found {describe_json(item)}")
        return
    item_id = check_id(item.get("item_id"), f"{field}.item_id", report)
    steps = item.get("step_scores")
    if not isinstance(steps, list):
        report(f"{field}.step_scores", f"must be a list; found {describe_json(steps)}")
        return
    for k, step in enumerate(steps):
        location = f"{field}.step_scores[{k}]"
        if not isinstance(step, dict):
            report(location, f"must be an object; found {describe_json(step)}")
            continue
        index = step.get("step_index")
        if type(index) is not int or index < 0:
            report(
                f"{location}.step_index",
                f"must be a whole number from 0; found {describe_json(index)}",
            )
            continue
        metric = check_text(
            step.get("metric"), f"{location}.metric", report, f'a string, e.g. "{_METRIC}"'
        )
        score = _score(metric, item_id, index, step, location, report)
        if (
            item_id
            and scores.setdefault((item_id, index, metric, score.facet, score.sample), score)
            is not score
        ):
            report(
                location, f"is a second {metric} of step {index} of item {printable(item_id, 60)!r}"
            )


def _score(
    metric: str, item_id: str, index: int, step: dict[str, Any], location: str, report: Report
) -> Score:
    value, mode, sample = step.get("score"), step.get("mode"), step.get("sample", 0)
    score = Score(
        metric,
        item_id,
        None,
        step=index,
        sample=sample if type(sample) is int else 0,
        facet=(("mode", mode),) if isinstance(mode, str) else (),
        status="undefined",
        reason="the report gives no value",
    )
    if value is None or isinstance(value, Bad):
        status = next((s for s in _MISSING_STATUSES if s == step.get("status")), score.status)
        return replace(
            score, status=status, reason=str(step.get("reason") or "").strip() or score.reason
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        report(f"{location}.score", f"must be a number or null; found {describe_json(value)}")
    elif not 0 <= value <= 1:
        report(f"{location}.score", f"must lie in [0, 1]; found {describe_json(value)}")
    else:
        return replace(score, value=float(value), status="ok", reason=None)
    return score
