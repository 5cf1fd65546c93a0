"""Import recorded chains of any tool: JSON arrays or JSONL, one chain or several a question.

What was logged of a chain stands in ``Item.meta``: ``model_answer`` the model's answer,
``answer_correct`` whether the log calls it correct (null where it says nothing). Items with one
question have one ``cluster``, the first one's id, and count their ``draw`` from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.types import CLUSTER_KEY, DRAW_KEY, Item, Step, Suite
from cotlab.suites.importers.question_answer import prefix_reserved_keys
from cotlab.suites.jsonl import collect_items
from cotlab.suites.shipped import open_suite_file, printable_text
from cotlab.suites.strict_json import (
    DefectReporter,
    ParsedLine,
    check_answer,
    check_id,
    check_text,
    describe_json,
    read_records,
)

SplitSteps = Callable[[str], Sequence[str]]
"""Text of a chain -> texts of its steps."""
ANSWER_KEY, CORRECT_KEY = "model_answer", "answer_correct"
"""Keys of the meta: the model's answer as it was logged, and whether the log calls it correct."""
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


def import_chains(
    path: str | Path, fields: ChainFields, *, split: SplitSteps, good_lines: bool = False
) -> Suite:
    """Import recorded chains under fields of any name.

    Parameters
    ----------
    path : str or Path
        A JSON array of objects, or JSONL.
    fields : ChainFields
    split : callable
        Text of a chain -> texts of its steps.
    good_lines : bool
        Leave out defective records instead of rejecting the file.

    Returns
    -------
    Suite
        One item a chain. Further fields are ``Item.meta``.

    Raises
    ------
    SuiteErrors
        Every defect of the file with its field.
    """
    with open_suite_file(path) as stream:
        items = collect_items(
            stream,
            str(path),
            partial(_chain_item, Path(path).stem, fields, split),
            good_lines=good_lines,
            read=partial(_read_chains, fields),
        )
    return Suite.from_items(Path(path).stem, number_draws(items))


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


def _read_chains(fields: ChainFields, stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
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


def _chain_item(
    stem: str,
    fields: ChainFields,
    split: SplitSteps,
    parsed: Mapping[str, Any],
    position: int,
    report: DefectReporter,
) -> Item:
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
            keys = printable_text(", ".join(record), 120) or "none"
            report(printable_text(field, 60), f"is missing; the fields are {keys}")
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
    item_id = f"{stem}-{position:04d}" if fields.id is None else find(fields.id)
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
        read_chain_steps(chain, chain_field, split, report),
        meta=meta | _further_fields(parsed, fields, meta),
    )


def read_chain_steps(
    chain: object, field: str, split: SplitSteps | None, report: DefectReporter
) -> tuple[Step, ...]:
    """Return the steps of a list of texts, or of a text where it may be split."""
    texts: Sequence[str] = ()
    if isinstance(chain, list):
        texts = [
            check_text(text, f"{field}[{k}]", report, "a string") for k, text in enumerate(chain)
        ]
    elif split is not None:
        text = check_text(chain, field, report, "a string or a list of strings")
        texts = [step for step in split(text) if step.strip()] if text else []
        if not text:
            return ()
    else:
        report(field, f"must be a list of strings; found {describe_json(chain)}")
        return ()
    if not texts:
        report(field, "is an empty chain")
    return tuple(Step(i, text) for i, text in enumerate(texts))


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
