"""Formats whose fields have names of their own: questions with answers, and recorded chains.

What was logged of a chain stands in ``Item.meta``: ``model_answer`` the model's answer,
``answer_correct`` whether the log calls it correct (null where it says nothing). Items with one
question have one ``cluster``, the first one's id, and count their ``draw`` from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.types import Item
from cotlab.suites.importers.records import (
    ANSWER_KEY,
    CORRECT_KEY,
    Record,
    check_correct,
    prefix_reserved_keys,
    read_chain_steps,
    report_missing,
)
from cotlab.suites.strict_json import (
    ParsedLine,
    check_answer,
    check_id,
    check_text,
    describe_json,
    read_records,
)

_MISSING = object()


@dataclass(frozen=True, slots=True)
class ChainFields:
    """Names of the fields of a file; ``a.b`` is the field b of the object a."""

    question: str = "question"
    """Field of the question."""
    chain: str = "chain"
    """Field of the chain: a text, or a list of the texts of its steps."""
    chains: str | None = None
    """Field of a list of chains of one question, each a text, a list of texts, or an object that
    holds ``chain``."""
    answer: str | None = None
    """Field of the right answer; None where the file has none."""
    model_answer: str | None = None
    """Field of the model's answer; for several chains also a list beside theirs, or a field of
    each. None for what stands after the reasoning of a chain with delimiters."""
    correct: str | None = None
    """Field of whether the model's answer is correct; for several chains as ``model_answer``."""
    id: str | None = None
    """Field of the id; None for the file's stem and the position."""


def read_question(fields: ChainFields, record: Record) -> Item:
    """Read a question with its chain and answer, and the category where it is a text."""
    question, chain = record.text(fields.question), record.get(fields.chain)
    answer_field = fields.answer or "answer"
    answer = record.get(answer_field)
    item_id = record.default_id if fields.id is None else record.get(fields.id)
    category = record.fields.get("category")
    if isinstance(category, str):
        record.used.add("category")
    if fields.chain in record.fields and chain is None:
        record.report(fields.chain, "must be a string or a list of strings; found null")
    return record.item(
        record.default_id if fields.id and fields.id not in record.fields else item_id,
        question,
        check_answer(str(answer) if type(answer) is int else answer, answer_field, record.report),
        chain,
        fields.chain,
        {},
        category if isinstance(category, str) else "",
        fields.id or "id",
    )


def read_chains(fields: ChainFields, stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield ``{"record", "entry", "draw"}`` for each chain; without several, one a record."""
    for parsed in read_records(stream, path):
        if parsed.value is None or fields.chains is None:
            value = None if parsed.value is None else {"record": parsed.value}
            yield parsed._replace(value=value)
            continue
        chains = _find(parsed.value, fields.chains)
        if not isinstance(chains, list) or not chains:
            value_text = "nothing" if chains is _MISSING else describe_json(chains)
            message = f"must be a list of chains; found {value_text}"
            defect = (f"{parsed.prefix}{fields.chains}", message)
            yield parsed._replace(value=None, defects=[*parsed.defects, defect])
            continue
        for draw, entry in enumerate(chains):
            chain_value = {"record": parsed.value, "entry": entry, "draw": draw, "n": len(chains)}
            yield parsed._replace(value=chain_value, defects=list(parsed.defects))


def read_chain(fields: ChainFields, chain_record: Record) -> Item:
    """Read one chain of `read_chains`, with what its own object or the record says of it."""
    parsed, report = chain_record.fields, chain_record.report
    record, draw = parsed["record"], parsed.get("draw")

    def find(field: str) -> Any:
        """Return a field of the chain's own object, or of the record; else report it."""
        entry = parsed.get("entry")
        value = _find(entry, field) if isinstance(entry, dict) else _MISSING
        if value is _MISSING:
            value = _find(record, field)
            if draw is not None and isinstance(value, list) and field != fields.question:
                value = value[draw] if len(value) == parsed["n"] else _MISSING
        if value is _MISSING:
            report_missing(record, field, report)
            return None
        return value

    chain, chain_field = parsed.get("entry"), fields.chains or fields.chain
    if draw is None or isinstance(chain, dict):
        chain, chain_field = find(fields.chain), fields.chain
    else:
        chain_field = f"{chain_field}[{draw}]"
    meta: dict[str, Any] = {}
    if fields.model_answer is not None:
        meta[ANSWER_KEY] = find(fields.model_answer)
    elif isinstance(chain, str) and read_reasoning(chain).spans and own_text(chain).strip():
        meta[ANSWER_KEY] = own_text(chain).strip()
    if fields.correct is not None:
        meta[CORRECT_KEY] = check_correct(find(fields.correct), fields.correct, report)
    item_id = chain_record.default_id if fields.id is None else find(fields.id)
    if fields.id is not None:
        item_id = str(item_id) if type(item_id) is int else item_id
        item_id = f"{item_id}-{draw}" if draw is not None and isinstance(item_id, str) else item_id
    answer = None if fields.answer is None else find(fields.answer)
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        answer = str(answer)
    return Item(
        check_id(item_id, fields.id or "id", report),
        check_text(find(fields.question), fields.question, report, "a string"),
        check_answer(answer, fields.answer or "answer", report),
        read_chain_steps(chain, chain_field, chain_record.split, report),
        meta=meta | _further_fields(parsed, fields, meta),
    )


def _further_fields(
    parsed: Mapping[str, Any], fields: ChainFields, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of the record, and of the chain's own object, that are not used."""
    used_fields = {
        field
        for field in (
            *(fields.question, fields.chain, fields.chains, fields.answer, fields.id),
            *(fields.model_answer, fields.correct),
        )
        if field is not None
    }
    entry = parsed.get("entry")
    further = {**parsed["record"], **(entry if isinstance(entry, dict) else {})}
    further = {key: value for key, value in further.items() if key not in used_fields}
    renamed = {f"source_{key}" if key in meta else key: value for key, value in further.items()}
    return prefix_reserved_keys(renamed)


def _find(record: Mapping[str, Any], field: str) -> Any:
    """Return a field, by its whole name or along its dots; ``_MISSING`` where there is none."""
    if field in record:
        return record[field]
    value: Any = record
    for name in field.split("."):
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value
