"""Import suites from question-answer files and GSM8K, and scores from a report.

``split`` divides the text of a chain into steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.types import Item, ModelRef, Score, ScoreStatus, Step, Suite
from cotlab.suites.jsonl import ITEM_FIELDS, collect_items
from cotlab.suites.shipped import open_suite_file, printable_text, unusable_file_error
from cotlab.suites.strict_json import (
    DefectReporter,
    InvalidValue,
    NotJSON,
    check_answer,
    check_id,
    check_text,
    describe_json,
    json_defects,
    parse_json,
    read_records,
)

SplitSteps = Callable[[str], Sequence[str]]
"""Text of a chain -> texts of its steps."""
MAX_REPORT_BYTES = 64 * 2**20

_CALCULATION_NOTE_PATTERN = re.compile(r"<<[^<>\n]*>>")
"""A calculation note of GSM8K: <<48/2=24>>."""
_EXAMPLE_METRIC = "accuracy_delta"
_MISSING_STATUSES: tuple[ScoreStatus, ...] = ("undefined", "refused", "stopped", "error")
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
    ccs_threshold: float | None = None
    """CCS below which a step is redundant; None where the report gives none, as FaithCheck's."""


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
    with open_suite_file(path, max_bytes=MAX_REPORT_BYTES) as stream:
        raw_bytes = stream.read(MAX_REPORT_BYTES)
    try:
        report = parse_json(raw_bytes.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise unusable_file_error(
            path, f"byte {exc.start} of the file is not UTF-8; save the file as UTF-8"
        ) from exc
    except NotJSON as exc:
        raise unusable_file_error(path, str(exc)) from exc
    if not isinstance(report, dict):
        raise unusable_file_error(path, f"must be a JSON object; found {describe_json(report)}")
    defect_collector = _DefectCollector(str(path))
    for field, message in json_defects(report):
        if not message.startswith("NaN "):  # Python's spelling of a missing number
            defect_collector.report(field, message)
    defect_collector.raise_defects()
    model = ModelRef(
        provider=check_text(
            report.get("provider"), "provider", defect_collector.report, "a string"
        ),
        name=check_text(report.get("model_id"), "model_id", defect_collector.report, "a string"),
    )
    suite_hash = check_text(
        report.get("task_suite_hash"),
        "task_suite_hash",
        defect_collector.report,
        "a string of 64 digits",
    )
    threshold, items = report.get("ccs_threshold"), report.get("items")
    if threshold is not None and not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        defect_collector.report("ccs_threshold", "must be a number in [0, 1]")
    if not isinstance(items, list):
        defect_collector.report("items", f"must be a list; found {describe_json(items)}")
        items = []
    scores: dict[tuple[Any, ...], Score] = {}
    for i, item in enumerate(items):
        _add_item_scores(item, f"items[{i}]", scores, defect_collector.report)
    defect_collector.raise_defects()
    return ImportedReport(model, suite_hash, tuple(scores.values()), threshold)


class _DefectCollector:
    """Collects the defects of one document."""

    def __init__(self, path: str) -> None:
        self.path, self.defects = printable_text(path), list[SuiteError]()

    def report(self, field: str, message: str) -> None:
        """Add a defect."""
        self.defects.append(SuiteError(self.path, None, field, message))

    def raise_defects(self) -> None:
        """Raise the collected defects, if any."""
        if self.defects:
            raise SuiteErrors(self.defects, 0)


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


def _add_item_scores(
    item: object, field: str, scores: dict[tuple[Any, ...], Score], report: DefectReporter
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
        step_index = step.get("step_index")
        if type(step_index) is not int or step_index < 0:
            report(
                f"{location}.step_index",
                f"must be a whole number from 0; found {describe_json(step_index)}",
            )
            continue
        metric = check_text(
            step.get("metric"), f"{location}.metric", report, f'a string, e.g. "{_EXAMPLE_METRIC}"'
        )
        score = _step_score(metric, item_id, step_index, step, location, report)
        if (
            item_id
            and scores.setdefault((item_id, step_index, metric, score.facet, score.sample), score)
            is not score
        ):
            report(
                location,
                f"is a second {metric} of step {step_index} of item"
                f" {printable_text(item_id, 60)!r}",
            )


def _step_score(
    metric: str,
    item_id: str,
    step_index: int,
    step: dict[str, Any],
    location: str,
    report: DefectReporter,
) -> Score:
    value, mode, sample = step.get("score"), step.get("mode"), step.get("sample", 0)
    score = Score(
        metric,
        item_id,
        None,
        step=step_index,
        sample=sample if type(sample) is int else 0,
        facet=(("mode", mode),) if isinstance(mode, str) else (),
        status="undefined",
        reason="the report gives no value",
    )
    if value is None or isinstance(value, InvalidValue):
        status = next(
            (
                missing_status
                for missing_status in _MISSING_STATUSES
                if missing_status == step.get("status")
            ),
            score.status,
        )
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
