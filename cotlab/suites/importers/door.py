"""Tell what a file of questions holds: its format and, of rows, what each column is."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cotlab.core.errors import UnknownName
from cotlab.suites.importers.benchmarks import BENCHMARKS, boxed_answer
from cotlab.suites.importers.records import MISSING, find, last_line_answer
from cotlab.suites.importers.rows import Columns, Count, is_whole_number, read_options
from cotlab.suites.importers.tables import read_table
from cotlab.suites.jsonl import ITEM_FIELDS
from cotlab.suites.shipped import open_suite_file, unusable_file_error

OWN_FORMAT, ROWS, INSPECT = "cotlab", "rows", "inspect"
ROWS_TEXT = "a table of questions"
"""What ``rows`` are called."""
N_SAMPLE, MAX_FIELDS = 500, 500
"""Records and columns that are looked at."""
MIN_UNIQUE = 0.8
"""Least share of values of an id that differ; a line with the id of another is a defect."""
_SAYS_CORRECT = ("label", "correct")
"""Names of columns of the right answer that may also say whether an answer is correct."""
MAX_FIELD_DEPTH = 3
_LETTERED_RE = re.compile(r"(?:options?|choices?)?[ _]?[A-J]", re.IGNORECASE)
_TYPES_BY_ROLE: Mapping[str, tuple[type, ...]] = {
    "options": (list, dict, str),
    "chains": (list,),
    "chain": (str, list),
    "question": (str,),
    "category": (str,),
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "options": ("options", "choices"),
    "chains": ("generations", "responses", "completions", "chains"),
    "question": (
        *("question", "prompt", "problem", "query", "stem", "instruction", "input", "note"),
        *("case", "text"),
    ),
    "answer": (
        *("ground_truth", "gold", "reference_answer", "correct_answer", "answerkey", "answer_key"),
        *("target", "answer", "expected", "correct_option", "decision", "label", "correct"),
    ),
    "chain": (
        *("reference_cot", "chain", "chain_of_thought", "cot", "reasoning", "rationale"),
        *("explanation", "facts", "steps", "thinking", "solution"),
    ),
    "model_answer": (
        *("model_answer", "parsed_answer", "predicted_answer", "prediction", "parsed", "answer"),
    ),
    "correct": (
        *("answer_correct", "is_correct", "correct", "correctness_math_verify", "correctness"),
    ),
    "id": ("id", "item_id", "qid", "uuid", "uid", "idx", "question_id", "case_id", "unique_id"),
    "category": ("category", "subject", "topic", "domain"),
}
"""Usual names of columns by what they hold, the surest first."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a file holds."""

    format: str
    """``cotlab``, ``rows``, ``inspect`` or a published format."""
    columns: Columns = Columns()
    """Of ``rows``: what each column is."""
    fields: tuple[str, ...] = ()
    """Columns of its first records, with those inside others as ``a.b``."""

    @property
    def text(self) -> str:
        """What the file looks like, in words: its format and what its columns hold."""
        if self.format != ROWS:
            return self.format
        roles = [
            f"{role.replace('_', ' ')} from {name}" for role, name in self.columns.used.items()
        ]
        return f"{ROWS_TEXT}: {', '.join(roles)}"

    def corrected(self, format_name: str | None, columns: Mapping[str, Any]) -> Form:
        """Return the form with another format, or other columns; "" leaves a column out.

        Raises
        ------
        UnknownName
            For a column that the first records lack.
        """
        format_name = format_name or (ROWS if columns else self.format)
        for role, name in columns.items():
            names = str(name).split(",") if role == "options" else [str(name)]
            if role != "count_from" and not set(names) <= {"", *self.fields}:
                raise UnknownName("column", str(name), self.fields)
        changed = {r: n if r == "count_from" else n or None for r, n in columns.items()}
        return replace(self, format=format_name, columns=replace(self.columns, **changed))


def detect_form(path: str | Path) -> Form:
    """Tell the format and the columns of a file, or of the first file of a folder.

    A column that no name and no value tells is None: then an import says which are there.

    Raises
    ------
    SuiteErrors
        If the file cannot be read, or holds no record.
    """
    folder = Path(path)
    if folder.is_dir():
        files = sorted(folder.glob("*.json"))
        if not files or any(folder.rglob("*.eval")):
            return Form(INSPECT)
        path = files[0]
    with open_suite_file(path) as stream:
        if zipfile.is_zipfile(stream):
            with zipfile.ZipFile(stream) as archive:
                if "xl/workbook.xml" in archive.namelist():
                    raise unusable_file_error(path, "is a workbook of Excel; save it as CSV UTF-8")
            return Form(INSPECT)
        stream.seek(0)
        parsed = islice(read_table(stream, str(path)), N_SAMPLE)
        records = [line.value for line in parsed if line.value is not None]
    if not records:
        raise unusable_file_error(path, "holds no record that can be read")
    first = records[0]
    names = dict.fromkeys(name for record in records for name in _fields(record))
    fields = tuple(islice(names, MAX_FIELDS))
    if {"eval", "samples", "status"} <= first.keys():
        return Form(INSPECT)
    columns = _find_columns(records, fields)
    if len(ITEM_FIELDS & first.keys()) > 2:
        return Form(OWN_FORMAT, columns, fields)
    for name, benchmark in BENCHMARKS.items():
        is_one = all(set(benchmark.fields) <= record.keys() for record in records)
        if is_one and all(_PROOFS.get(name, bool)(record) for record in records):
            return Form(name, columns, fields)
    return Form(ROWS, columns, fields)


def _is_math(record: Mapping[str, Any]) -> bool:
    return isinstance(record["solution"], str) and boxed_answer(record["solution"]) is not None


def _is_gsm8k(record: Mapping[str, Any]) -> bool:
    worked = last_line_answer(record["answer"]) if isinstance(record["answer"], str) else None
    return worked is not None and bool(worked[0])


_PROOFS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "gsm8k": _is_gsm8k,
    "math": lambda record: "answer" not in record and _is_math(record),
}
"""What the records of a format hold where its fields are those of others too."""


def _fields(record: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the names of a record's fields, and of those inside them."""
    for name, value in record.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict) and depth < MAX_FIELD_DEPTH:
            yield from _fields(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list) and name in ("conversations", "messages"):
            for k, turn in enumerate(value[:4]):
                if isinstance(turn, dict):
                    yield from _fields(turn, f"{prefix}{name}.{k}.", depth + 1)


def _find_columns(records: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> Columns:
    """Return what each column holds, by its name and its values."""
    found: dict[str, str] = _find_turns(records[0])
    values = {name: [find(record, name) for record in records] for name in fields}
    by_key: dict[str, list[str]] = {}
    for name in sorted(fields, key=lambda name: name.count(".")):
        for key in {name.casefold(), name.rpartition(".")[2].casefold()}:
            by_key.setdefault(re.sub(r"[\s-]+", "_", key.strip()), []).append(name)
    for role, keys in _NAMES.items():
        for name in (name for key in keys for name in by_key.get(key, ())):
            taken = name in found.values() or role in found
            if role == "answer" and name.rpartition(".")[2].casefold() in _SAYS_CORRECT:
                types = str | int if "options" in found else str
                taken |= not all(isinstance(value, types) for value in values[name])
                taken |= any(isinstance(value, bool) for value in values[name])
            if not taken and _fits(role, [v for v in values[name] if v not in (MISSING, None, "")]):
                found[role] = name
    lettered = [
        name
        for letter in "ABCDEFGHIJ"
        for name in [n for n in fields if _LETTERED_RE.fullmatch(n) and n[-1].upper() == letter][:1]
    ]
    if "options" not in found and len(lettered) > 1:
        found["options"] = ",".join(lettered)
    named = [name for name in fields if name.casefold().endswith(("_id", " id"))]
    if "id" not in found and named and _fits("id", values[named[0]]):
        found["id"] = named[0]
    is_judged = "correct" in found and not {"model_answer", "chains"} & found.keys()
    if is_judged and found.get("answer", "").casefold() == "answer":
        found["model_answer"] = found.pop("answer")  # whose correctness the file tells
    texts = [name for name in fields if name not in found.values() and _is_prose(values[name])]
    if "question" not in found and len(texts) == 1:
        found["question"] = texts[0]
    if "chains" in found:
        found.pop("chain", None)
    columns = Columns(**found)  # type: ignore[arg-type]
    return Columns(**found, count_from=_count_from(records, columns))


def _fits(role: str, values: Sequence[Any]) -> bool:
    """Return whether values may hold what a role needs."""
    if not values:
        return False
    types = _TYPES_BY_ROLE.get(role)
    if types is not None:
        return all(isinstance(value, types) for value in values)
    if role == "correct":
        return all(isinstance(v, list) or (type(v) in (bool, int) and v in (0, 1)) for v in values)
    if role == "id":
        texts = [str(value) for value in values if isinstance(value, str | int)]
        return len(set(texts)) >= MIN_UNIQUE * len(texts) and len(texts) == len(values)
    return not any(isinstance(value, dict) for value in values)


def _find_turns(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the question and the chain of a conversation: its first two turns of both sides."""
    for name in ("conversations", "messages"):
        turns = record.get(name)
        if isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns):
            who = [str(turn.get("from", turn.get("role"))) for turn in turns]
            text = "value" if turns and "value" in turns[0] else "content"
            roles = (("question", ("human", "user")), ("chain", ("gpt", "assistant")))
            return {
                role: f"{name}.{position}.{text}"
                for role, names in roles
                for position in [k for k, one in enumerate(who) if one in names][:1]
            }
    return {}


def _is_prose(cells: Sequence[Any]) -> bool:
    """Return whether all cells are texts, of five words and more on average."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    return len(texts) == len(cells) and sum(len(t.split()) for t in texts) >= 5 * len(texts)


def _count_from(records: Sequence[Mapping[str, Any]], columns: Columns) -> Count | None:
    """Return from where the answers count the options, where that is certain.

    None where they name options otherwise, or where both are possible.
    """
    if not columns.options or not columns.answer:
        return None
    pairs = [
        (find(record, columns.answer), read_options(record, columns.options, lambda *_: None))
        for record in records
    ]
    rows = [(answer, options) for answer, options in pairs if options and answer is not MISSING]
    if not rows or not all(is_whole_number(answer) for answer, _ in rows):
        return None
    if all(
        str(answer).strip() in options
        or (isinstance(answer, str) and answer.strip() in options.values())
        for answer, options in rows
    ):
        return None
    has_zero = any(int(answer) == 0 for answer, _ in rows)
    has_last = any(int(answer) == len(options) for answer, options in rows)
    return None if has_zero == has_last else 0 if has_zero else 1
