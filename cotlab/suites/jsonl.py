"""Suites as JSONL, one item a line, with errors that name path, line and field.

A line is ``{"item_id", "prompt", "reference_cot": [{"index", "text"}], "ground_truth"}``. Files are
untrusted: all defects of one are reported at once (see ``strict_json``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    read_records,
)

__all__ = ["file_sha256", "load_suite", "write_suite"]

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
    """Read a suite file: JSON Lines, or the same objects in a JSON array.

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
    convert = partial(_parse_item, needs_chain=chain == "reference")
    with open_suite_file(path) as stream:
        items = collect_items(stream, str(path), convert, good_lines=good_lines)
    n_chains = sum(bool(item.steps) for item in items)
    if chain == "auto" and 0 < n_chains < len(items):
        return load_suite(path, good_lines=good_lines)
    return Suite.from_items(Path(path).stem, items)


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
    lines = b"".join(_item_line(item) + b"\n" for item in suite.items)
    temporary_path = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    try:
        temporary_path.write_bytes(lines)
        restored_items = load_suite(temporary_path, chain="own").items
        for original, restored in zip(suite.items, restored_items, strict=True):
            if to_json_value(original) != to_json_value(restored):
                raise ValueError(f"item {original.id!r} would not read back as it is")
        temporary_path.replace(path)
    except SuiteErrors as error:
        message = f"suite {suite.name!r} would not read back: {error.errors[0]}"
        raise ValueError(message) from error
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise SuiteError(str(path), None, "", message) from error
    finally:
        with suppress(OSError):
            temporary_path.unlink(missing_ok=True)


def collect_items(
    stream: BinaryIO,
    path: str,
    convert: ItemConverter,
    *,
    good_lines: bool,
    read: RecordReader = read_records,
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
                message = f"{printable_text(item.id, 60)!r} is already the id of line"
                message += f" {first_line_by_id[item.id]}"
                _add_defect(defects, prefix, "item_id", message)
            elif item.id:
                first_line_by_id[item.id] = line
            if not defects:
                items.append(item)
        n_lines += 1
        n_defects += len(defects)
        raw_text = line_bytes[: 4 * MAX_SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")
        raw_text = printable_text(raw_text.rstrip("\r\n"), MAX_SHOWN_CHARACTERS) if defects else ""
        errors += [
            SuiteError(path, line, field, message, raw_text)
            for field, message in defects[: MAX_ERRORS - len(errors)]
        ]
    if not n_lines:
        raise unusable_file_error(path, "is empty; a suite has at least one item")
    if n_defects > len(errors):
        message = f"and {n_defects - len(errors):,} more defects further down"
        errors.append(SuiteError(path, None, "", message))
    if errors and not (good_lines and items):
        raise SuiteErrors(errors, len(items))
    return tuple(items)


def _add_defect(defects: list[tuple[str, str]], prefix: str, field: str, message: str) -> None:
    defects.append((prefix + field, message))


def _parse_item(
    record: dict[str, Any], _: int, report: DefectReporter, *, needs_chain: bool
) -> Item:
    """Return the item of one line; defects go to ``report``."""
    for name in ("item_id", "prompt", "ground_truth"):
        if name not in record:
            hint = "; write null where there is no answer" if name == "ground_truth" else ""
            report(name, f"is missing{hint}")
    category = record.get("category", "")
    has_category = isinstance(category, str)
    used = ITEM_FIELDS | ({"category"} if has_category else set())
    return Item(
        id=check_id(record["item_id"], "item_id", report) if "item_id" in record else "",
        question=(
            check_text(record["prompt"], "prompt", report, "a string") if "prompt" in record else ""
        ),
        answer=check_answer(record.get("ground_truth"), "ground_truth", report),
        steps=_parse_steps(record.get("reference_cot"), report, needs_chain=needs_chain),
        category=category if has_category else "",
        meta={key: value for key, value in record.items() if key not in used},
    )


def _parse_steps(value: object, report: DefectReporter, *, needs_chain: bool) -> tuple[Step, ...]:
    field = "reference_cot"
    steps: list[Step] = []
    if value is None:
        if needs_chain:
            report(field, "is missing; allowed only with --chain own")
        return ()
    if not isinstance(value, list) or not value:
        found = "an empty chain" if value == [] else describe_json(value)
        report(field, f'must be a list of {{"index", "text"}} objects; found {found}')
        return ()
    for i, step in enumerate(value):
        if not isinstance(step, dict) or type(index := step.get("index")) is not int or index != i:
            message = f'must be {{"index": {i}, "text": "…"}}: indices count 0, 1, 2, … in order'
            report(f"{field}[{i}]", message)
            return ()
        steps.append(
            Step(i, check_text(step.get("text"), f"{field}[{i}].text", report, "a string"))
        )
    return tuple(steps)


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
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"item {item.id!r} cannot be written as JSON: {error}") from error
