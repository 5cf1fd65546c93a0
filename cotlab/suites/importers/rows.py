"""Rows of any tool: questions with their answer, options and chains under columns of any name.

What was logged of a chain stands in ``Item.meta``: ``model_answer`` the model's answer,
``answer_correct`` whether the log calls it correct (null where it says nothing). Options stand in
``choices``, and an answer that names one by its label or position becomes its letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, Literal

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.types import Item
from cotlab.suites.importers.records import (
    ANSWER_KEY,
    CORRECT_KEY,
    MISSING,
    Record,
    check_correct,
    find,
    last_line_answer,
    prefix_reserved_keys,
    read_chain_steps,
    report_missing,
)
from cotlab.suites.importers.tables import read_table
from cotlab.suites.strict_json import (
    DefectReporter,
    NotJSON,
    ParsedLine,
    check_id,
    check_text,
    describe_json,
    parse_json,
)

Count = Literal[0, 1]
"""From where a whole number counts options."""
CHOICES_KEY, TARGETS_KEY = "choices", "targets"
"""Keys of the meta: the texts of an item's options, and its right answers where it has several."""
_LABELLED_RE = re.compile(r"\s*\(?([A-Za-z]|\d{1,2})[).:]\s*(?=\S)")
_SEPARATORS = ("\n", "|", ";")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of a file's columns; ``a.b`` is the field b of a, and ``a.0`` the first entry of a."""

    question: str | None = None
    """Column of the question."""
    chain: str | None = None
    """Column of the chain: a text, or a list of the texts of its steps; None where the model
    writes it."""
    chains: str | None = None
    """Column of a list of chains of one question, each a text, a list of texts, or an object that
    holds ``chain``."""
    answer: str | None = None
    """Column of the right answer; None where the file has none."""
    model_answer: str | None = None
    """Column of the model's answer; for several chains also a list beside theirs, or a field of
    each. None for what stands after the reasoning of a chain with delimiters."""
    correct: str | None = None
    """Column of whether the model's answer is correct; for several chains as ``model_answer``."""
    id: str | None = None
    """Column of the id; None for the file's stem and the position."""
    options: str | None = None
    """Column of the options, or the names of several, one an option, with commas between them."""
    category: str | None = None
    """Column of the category, where it is a text."""
    count_from: Count | None = None
    """From where an answer that is a whole number counts the options."""

    @property
    def used(self) -> dict[str, str]:
        """Column by what it holds, of those that are used."""
        names = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "count_from"}
        return {role: name for role, name in names.items() if name}


def read_rows(columns: Columns, stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield ``{"record", "entry", "draw"}`` for each chain; without several, one a record."""
    for parsed in read_table(stream, path):
        if parsed.value is None or columns.chains is None:
            value = None if parsed.value is None else {"record": parsed.value}
            yield parsed._replace(value=value)
            continue
        chains = find(parsed.value, columns.chains)
        if not isinstance(chains, list) or not chains:
            value_text = "nothing" if chains is MISSING else describe_json(chains)
            message = f"must be a list of chains; found {value_text}"
            defect = (f"{parsed.prefix}{columns.chains}", message)
            yield parsed._replace(value=None, defects=[*parsed.defects, defect])
            continue
        for draw, entry in enumerate(chains):
            chain_value = {"record": parsed.value, "entry": entry, "draw": draw, "n": len(chains)}
            yield parsed._replace(value=chain_value, defects=list(parsed.defects))


def read_row(columns: Columns, row: Record) -> Item:
    """Read one row of `read_rows`: the question, and what its record or its chain says of it."""
    parsed, report = row.fields, row.report
    record, draw = parsed["record"], parsed.get("draw")
    absent: set[str | None] = set()

    def value_of(column: str | None, *, needed: bool = False) -> Any:
        """Return a field of the chain's own object, or of the record; None where it is absent."""
        if column is None:
            return None
        entry = parsed.get("entry")
        value = find(entry, column) if isinstance(entry, dict) else MISSING
        if value is MISSING:
            value = find(record, column)
            if draw is not None and isinstance(value, list) and column != columns.question:
                value = value[draw] if len(value) == parsed["n"] else MISSING
        if value is MISSING and needed:
            report_missing(record, column, report)
            absent.add(column)
        return None if value is MISSING else value

    question = value_of(columns.question, needed=True)
    answer = value_of(columns.answer, needed=True)
    chain, chain_column = parsed.get("entry"), columns.chains or columns.chain or "chain"
    if draw is None or isinstance(chain, dict):
        chain, chain_column = value_of(columns.chain), columns.chain or "chain"
    else:
        chain_column = f"{chain_column}[{draw}]"
    if isinstance(answer, str) and (worked := last_line_answer(answer)):
        lines, answer = worked
        chain = lines or None if columns.chain is None and draw is None else chain
    meta: dict[str, Any] = {}
    options = read_options(record, columns.options, report)
    if options:
        meta[CHOICES_KEY] = list(options.values())
        answer = _option_answer(answer, options, columns, report)
    elif isinstance(answer, list) and answer and all(isinstance(a, str) for a in answer):
        meta[TARGETS_KEY], answer = answer, answer[0]
    else:
        answer = scalar_text(answer)
    if columns.model_answer is not None:
        meta[ANSWER_KEY] = value_of(columns.model_answer)
    elif isinstance(chain, str) and read_reasoning(chain).spans and own_text(chain).strip():
        meta[ANSWER_KEY] = own_text(chain).strip()
    if columns.correct is not None:
        meta[CORRECT_KEY] = check_correct(value_of(columns.correct), columns.correct, report)
    item_id = row.default_id if columns.id is None else value_of(columns.id, needed=True)
    if columns.id is not None:
        item_id = str(item_id) if type(item_id) is int else item_id
        item_id = f"{item_id}-{draw}" if draw is not None and isinstance(item_id, str) else item_id
    category = value_of(columns.category)
    return Item(
        "" if columns.id in absent else check_id(item_id, columns.id or "id", report),
        ""
        if columns.question in absent
        else check_text(question, columns.question or "question", report, "a text"),
        None
        if answer is None
        else check_text(answer, columns.answer or "answer", report, "a text") or None,
        read_chain_steps(chain, chain_column, row.split, report)
        if draw is not None or chain not in (None, "")
        else (),
        category if isinstance(category, str) else "",
        meta | _further_fields(parsed, columns, meta),
    )


def scalar_text(value: object) -> object:
    """Return the text of a number, and yes or no for a truth value; other values as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else value


def read_options(
    record: Mapping[str, Any], column: str | None, report: DefectReporter
) -> dict[str, str]:
    """Return the options of a record, label → text in their order; empty where it has none.

    They are a list of texts, with or without labels; ``{"text": […], "label": […]}``; objects with
    ``label`` and ``text``; label → text; several columns; or one text, with line breaks, ``|`` or
    ``;`` between them.
    """
    if column is None:
        return {}
    names = [name.strip() for name in column.split(",")]
    value: Any = find(record, column)
    if value is MISSING and len(names) > 1:
        value = [find(record, name) for name in names]
        value = [option for option in value if option not in (MISSING, None, "")]
    if value in (MISSING, None, "", []):
        return {}
    if isinstance(value, str):
        value = _split_options(value)
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        labels = value.get("label")
        texts = value["text"]
        if isinstance(labels, list) and len(labels) == len(texts):
            pairs = list(zip(labels, texts, strict=True))
        else:
            pairs = _labelled(texts)
    elif isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(isinstance(o, dict) and "text" in o for o in value):
        pairs = [
            (option.get("label", _letter(k)), option["text"]) for k, option in enumerate(value)
        ]
    else:
        pairs = _labelled(value) if isinstance(value, list) else []
    options = {str(label).strip(): scalar_text(text) for label, text in pairs}
    if not 1 < len(options) == len(pairs) or not all(
        isinstance(text, str) and text.strip() for text in options.values()
    ):
        report(column, "must be a list of two or more options, each a text")
        return {}
    return {label: str(text).strip() for label, text in options.items()}


def _letter(position: int) -> str:
    return chr(ord("A") + position)


def _split_options(text: str) -> Any:
    """Return the options of one text; a list of the text alone where nothing divides it."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return parse_json(text)
        except NotJSON:
            pass  # options that begin with a bracket
    for separator in _SEPARATORS:
        if separator in text:
            return [part.strip() for part in text.split(separator) if part.strip()]
    return [text]


def _labelled(texts: list[Any]) -> list[tuple[Any, Any]]:
    """Return (label, text) of options, without labels that they all begin with in order."""
    matches = [_LABELLED_RE.match(text) if isinstance(text, str) else None for text in texts]
    labels = [match[1].upper() for match in matches if match]
    counted = [_letter(k) for k in range(len(texts))], [str(k + 1) for k in range(len(texts))]
    if labels in counted:
        return [(m[1].upper(), t[m.end() :]) for m, t in zip(matches, texts, strict=True) if m]
    return [(_letter(k), text) for k, text in enumerate(texts)]


def is_whole_number(value: object) -> bool:
    """Return whether a value is a whole number, or a text of one."""
    return type(value) is int or (
        isinstance(value, str) and re.fullmatch(r"\d{1,3}", value.strip()) is not None
    )


def _option_answer(
    answer: object, options: Mapping[str, str], columns: Columns, report: DefectReporter
) -> str | None:
    """Return the letter of the option that an answer names by its label or position, or its text.

    Whatever names none, or one by its label and another by its text, is reported.
    """
    if answer is None:
        return None
    column, texts = columns.answer or "answer", list(options.values())
    text = str(scalar_text(answer)).strip()
    bare = text.strip("()[]. ").casefold()
    labelled = [k for k, label in enumerate(options) if label.casefold() == bare]
    match = _LABELLED_RE.match(text)
    stated = [text, text[match.end() :].strip() if match else text]
    written = [k for k, option in enumerate(texts) if option in stated]
    if is_whole_number(answer) and columns.count_from is not None:
        position = int(text) - columns.count_from
        if 0 <= position < len(texts):
            return _letter(position)
        last = len(texts) - 1 + columns.count_from
        report(column, f"must be from {columns.count_from} to {last}; found {text}")
    elif labelled and written and labelled != written:
        report(column, "is the label of one option and the text of another")
    elif labelled:
        return _letter(labelled[0])
    elif type(answer) is int and int(text) <= len(texts):
        report(column, "is a whole number beside options: say whether it counts from 0 or from 1")
    elif written:
        return text
    elif is_whole_number(answer):
        report(column, "is a whole number beside options: say whether it counts from 0 or from 1")
    else:
        report(column, "is none of the options" if text else "is empty")
    return None


def _further_fields(
    parsed: Mapping[str, Any], columns: Columns, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of the record, and of the chain's own object, that are not used."""
    used = {*columns.used.values(), *(name.strip() for name in (columns.options or "").split(","))}
    category = columns.category
    if category and not isinstance(find(parsed["record"], category), str):
        used.discard(category)
    entry = parsed.get("entry")
    further = {**parsed["record"], **(entry if isinstance(entry, dict) else {})}
    further = {key: value for key, value in further.items() if key not in used}
    renamed = {f"source_{key}" if key in meta else key: value for key, value in further.items()}
    return prefix_reserved_keys(renamed)
