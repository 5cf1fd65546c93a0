"""Suites as JSONL, one item a line, with errors that name path, line and field.

A line is ``{"item_id", "prompt", "reference_cot": [{"index", "text"}], "ground_truth"}``. Files are
untrusted: all defects of one are reported at once (see ``strict_json``).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.keys import to_json_value
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.shipped import file_sha256, open_suite_file, printable_text, unusable_file_error
from cotlab.suites.strict_json import (
    MAX_SHOWN_CHARACTERS,
    DefectReporter,
    ParsedLine,
    check_answer,
    check_id,
    check_text,
    describe_json,
    read_objects,
)

__all__ = ["file_sha256", "load_suite", "parse_suite", "write_suite"]

ChainSource = Literal["reference", "own"]
"""Where an item's chain comes from: the suite, or the model."""
SuiteChains = Literal["reference", "own", "auto"]
"""Whose chains a file's are to be: auto is the model's where no line has one."""
ItemConverter = Callable[[dict[str, Any], int, DefectReporter], Item]
"""Makes the item of (object, number of objects before it); the item is used only if nothing was
reported."""
RecordReader = Callable[[BinaryIO, str], Iterator[ParsedLine]]
"""Yields the records of a stream; the text is its file's name."""

ITEM_FIELDS = frozenset({"item_id", "prompt", "reference_cot", "ground_truth"})
"""Keys of a line that are not meta."""
MAX_ERRORS = 10_000
"""Defects that are listed; further ones are only counted."""


def load_suite(
    path: str | Path, *, good_lines: bool = False, chain: SuiteChains = "reference"
) -> Suite:
    """Read a suite file.

    Blank lines are skipped, a UTF-8 byte order mark and CRLF line ends are accepted. Keys beside
    the four of the format become ``Item.meta``, and a ``category`` that is text becomes
    ``Item.category``; further keys inside a step are dropped.

    Parameters
    ----------
    path : str or Path
        A regular file; the suite is named after its stem.
    good_lines : bool
        Leave out defective lines instead of rejecting the file, as long as one line is good.
    chain : {"reference", "own", "auto"}
        With "own" the chain comes from the model, and ``reference_cot`` may be absent or null
        (``steps`` is then empty). "auto" is "own" for a file without any chain, else "reference".

    Returns
    -------
    Suite
        Items in file order.

    Raises
    ------
    SuiteErrors
        Every defect of the file in line order, with the number of good lines.
    """
    items = _parse_items(partial(open_suite_file, path), str(path), chain, good_lines)
    return Suite.from_items(Path(path).stem, items)


def parse_suite(
    data: bytes, name: str, *, good_lines: bool = False, chain: SuiteChains = "reference"
) -> Suite:
    """Read a suite from bytes, an upload for example; otherwise as `load_suite`.

    Parameters
    ----------
    data : bytes
    name : str
        The file name that errors show; without ``.jsonl`` it names the suite.
    good_lines, chain
        As `load_suite`.
    """
    items = _parse_items(partial(io.BytesIO, data), name, chain, good_lines)
    return Suite.from_items(name.removesuffix(".jsonl"), items)


def _parse_items(
    open_file: Callable[[], AbstractContextManager[BinaryIO]],
    path: str,
    chain: SuiteChains,
    good_lines: bool,
) -> tuple[Item, ...]:
    """Return the items of a file; with "auto" one in which only some lines have a chain is refused.

    Such a file is read again, so that its defects are listed in the order of its lines.
    """
    source: ChainSource = "own" if chain == "auto" else chain
    n_chains = n_missing = 0

    def parse_item(record: dict[str, Any], n_before: int, report: DefectReporter) -> Item:
        nonlocal n_chains, n_missing
        item = _parse_item(record, n_before, report, chain=source)
        n_chains += bool(item.steps)
        n_missing += record.get("reference_cot") is None
        return item

    items: tuple[Item, ...] = ()
    errors = None
    try:
        with open_file() as stream:
            items = collect_items(stream, path, parse_item, good_lines=good_lines)
    except SuiteErrors as defects:
        errors = defects
    if chain == "auto" and n_chains and n_missing:
        return _parse_items(open_file, path, "reference", good_lines)
    if errors is not None:
        raise errors
    return items


def write_suite(suite: Suite, path: str | Path) -> None:
    """Write a suite as JSONL that reads back with the same items.

    An existing file is replaced as a whole. Items without steps are written with ``reference_cot``
    null, which reads back with ``chain="own"``.

    Raises
    ------
    ValueError
        If the file would not read back as ``suite``: equal ids, empty texts, a meta key that is a
        field of the format.
    SuiteError
        If the file cannot be written.
    """
    data = b"".join(_item_line(item) + b"\n" for item in suite.items)
    try:
        reread_suite = parse_suite(data, suite.name, chain="own")
    except SuiteErrors as defects:
        raise ValueError(
            f"suite {suite.name!r} would not read back: {defects.errors[0]}"
        ) from defects
    for original_item, restored_item in zip(suite.items, reread_suite.items, strict=True):
        if to_json_value(original_item) != to_json_value(restored_item):
            raise ValueError(
                f"suite {suite.name!r}: item {original_item.id!r} would not read back as it is"
            )
    temporary_path = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    try:
        temporary_path.write_bytes(data)
        temporary_path.replace(path)
    except OSError as exc:
        temporary_path.unlink(missing_ok=True)
        raise SuiteError(str(path), None, "", f"cannot be written: {exc.strerror or exc}") from exc


def collect_items(
    stream: BinaryIO,
    path: str,
    convert: ItemConverter,
    *,
    good_lines: bool,
    read: RecordReader = read_objects,
) -> tuple[Item, ...]:
    """Return the items of all records; ``read`` yields those of a stream.

    Raises
    ------
    SuiteErrors
        If a line is defective and not ``good_lines``, or if no line is good.
    """
    path = printable_text(path)
    items: list[Item] = []
    errors: list[SuiteError] = []
    first_line_by_id: dict[str, int] = {}
    n_defects = n_lines = 0
    for line, value, defects, line_bytes, prefix in read(stream, path):
        if value is not None:
            item = convert(value, n_lines, partial(_add_defect, defects, prefix))
            if item.id in first_line_by_id:
                defects.append(
                    (
                        f"{prefix}item_id",
                        (
                            f"{printable_text(item.id, 60)!r} is already the id of line"
                            f" {first_line_by_id[item.id]}"
                        ),
                    )
                )
            elif item.id:
                first_line_by_id[item.id] = line
            if not defects:
                items.append(item)
        n_lines += 1
        n_defects += len(defects)
        for field, message in defects[: MAX_ERRORS - len(errors)]:
            raw_text = (
                line_bytes[: 4 * MAX_SHOWN_CHARACTERS]
                .decode("utf-8", "backslashreplace")
                .rstrip("\r\n")
            )
            errors.append(
                SuiteError(
                    path, line, field, message, printable_text(raw_text, MAX_SHOWN_CHARACTERS)
                )
            )
    if not n_lines:
        raise unusable_file_error(path, "is empty; a suite has at least one item")
    if n_defects > len(errors):
        errors.append(
            SuiteError(path, None, "", f"and {n_defects - len(errors):,} more defects further down")
        )
    if errors and not (good_lines and items):
        raise SuiteErrors(errors, len(items))
    return tuple(items)


def _add_defect(defects: list[tuple[str, str]], prefix: str, field: str, message: str) -> None:
    defects.append((prefix + field, message))


def _parse_item(
    record: dict[str, Any], _: int, report: DefectReporter, *, chain: ChainSource
) -> Item:
    """Return the item of one line; defects go to ``report``."""
    for field in ("item_id", "prompt", "ground_truth"):
        if field not in record:
            report(
                field,
                "is missing"
                + ("; write null where there is no answer" if field == "ground_truth" else ""),
            )
    category = record.get("category", "")
    has_category = isinstance(category, str)
    return Item(
        id=check_id(record["item_id"], "item_id", report) if "item_id" in record else "",
        question=(
            check_text(record["prompt"], "prompt", report, "a string") if "prompt" in record else ""
        ),
        answer=check_answer(record.get("ground_truth"), "ground_truth", report),
        steps=_parse_steps(record, chain, report),
        category=category if has_category else "",
        meta={
            key: value
            for key, value in record.items()
            if key not in ITEM_FIELDS and not (has_category and key == "category")
        },
    )


def _parse_steps(
    record: dict[str, Any], chain: ChainSource, report: DefectReporter
) -> tuple[Step, ...]:
    field, value = "reference_cot", record.get("reference_cot")
    if value is None:
        if chain == "reference":
            report(
                field,
                f"is {'null' if field in record else 'missing'}; allowed only with --chain own",
            )
    elif not isinstance(value, list):
        report(
            field, f'must be a list of {{"index", "text"}} objects; found {describe_json(value)}'
        )
    elif not value:
        report(
            field,
            "is an empty chain: give at least one step, or leave the key out",
        )
    else:
        defects: list[tuple[str, str]] = []
        for i, step in enumerate(value):
            _check_step(i, step, partial(_add_defect, defects, f"{field}[{i}]"))
            if len(defects) >= 5:
                break
        if not defects:
            return tuple(Step(i, step["text"]) for i, step in enumerate(value))
        for location, message in defects:
            report(location, message)
    return ()


def _check_step(step_index: int, step: object, report: DefectReporter) -> None:
    if not isinstance(step, dict):
        report(
            "",
            f'must be an object {{"index": {step_index}, "text": "…"}}; found'
            f" {describe_json(step)}",
        )
        return
    for key in ("index", "text"):
        if key not in step:
            report(f".{key}", "is missing")
    index, text = step.get("index", step_index), step.get("text", "…")
    if type(index) is not int:
        report(".index", f"must be a whole number; found {describe_json(index)}")
    elif index != step_index:
        report(
            ".index",
            f"is {printable_text(str(index), 30)} where {step_index} is due: indices count 0, 1, 2,"
            " … in order",
        )
    if isinstance(text, str) and not text.strip():
        report(".text", "is an empty step")
    else:
        check_text(text, ".text", report, "a string")


def _item_line(item: Item) -> bytes:
    """Return the line of one item, without its end.

    Raises
    ------
    ValueError
        If a meta key is a field of the format, or a value is no JSON.
    """
    record: dict[str, Any] = {
        "item_id": item.id,
        "prompt": item.question,
        "reference_cot": [{"index": step.index, "text": step.text} for step in item.steps] or None,
        "ground_truth": item.answer,
        **({"category": item.category} if item.category else {}),
    }
    if clashing_keys := sorted(record.keys() & item.meta.keys()):
        raise ValueError(
            f"item {item.id!r}: the meta key {clashing_keys[0]!r} is a field of the format;"
            " rename it"
        )
    try:
        return json.dumps(
            {**record, **to_json_value(item.meta)}, ensure_ascii=False, allow_nan=False
        ).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"item {item.id!r} cannot be written as JSON: {exc}") from exc
