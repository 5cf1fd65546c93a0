"""Suites as JSONL, one item a line, with errors that name path, line and field.

A line is ``{"item_id", "prompt", "reference_cot": [{"index", "text"}], "ground_truth"}``. Files are
untrusted: all defects of one are reported at once (see ``strict_json``).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.keys import to_json_value
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.shipped import file_sha256, open_suite_file, printable, unusable_file
from cotlab.suites.strict_json import (
    RAW,
    Report,
    check_answer,
    check_id,
    check_text,
    describe_json,
    read_objects,
)

__all__ = ["file_sha256", "load_suite", "parse_suite", "write_suite"]

Chain = Literal["reference", "own"]
"""Where an item's chain comes from: the suite, or the model."""
Convert = Callable[[dict[str, Any], int, Report], Item]
"""Makes the item of (object, number of objects before it); the item is used only if nothing was
reported."""

FIELDS = frozenset({"item_id", "prompt", "reference_cot", "ground_truth"})
"""Keys of a line that are not meta."""
MAX_ERRORS = 10_000
"""Defects that are listed; further ones are only counted."""


def load_suite(path: str | Path, *, good_lines: bool = False, chain: Chain = "reference") -> Suite:
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
    chain : {"reference", "own"}
        With "own" the chain comes from the model, and ``reference_cot`` may be absent or null
        (``steps`` is then empty).

    Returns
    -------
    Suite
        Items in file order.

    Raises
    ------
    SuiteErrors
        Every defect of the file in line order, with the number of good lines.
    """
    with open_suite_file(path) as stream:
        items = collect(stream, str(path), partial(_item, chain=chain), good_lines=good_lines)
    return Suite.of(Path(path).stem, items)


def parse_suite(
    data: bytes, name: str, *, good_lines: bool = False, chain: Chain = "reference"
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
    items = collect(io.BytesIO(data), name, partial(_item, chain=chain), good_lines=good_lines)
    return Suite.of(name.removesuffix(".jsonl"), items)


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
    data = b"".join(_line(item) + b"\n" for item in suite.items)
    try:
        reread = parse_suite(data, suite.name, chain="own")
    except SuiteErrors as defects:
        raise ValueError(
            f"suite {suite.name!r} would not read back: {defects.errors[0]}"
        ) from defects
    for original, restored in zip(suite.items, reread.items, strict=True):
        if to_json_value(original) != to_json_value(restored):
            raise ValueError(
                f"suite {suite.name!r}: item {original.id!r} would not read back as it is"
            )
    part = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as exc:
        part.unlink(missing_ok=True)
        raise SuiteError(str(path), None, "", f"cannot be written: {exc.strerror or exc}") from exc


def collect(stream: BinaryIO, path: str, convert: Convert, *, good_lines: bool) -> tuple[Item, ...]:
    """Return the items of all lines.

    Raises
    ------
    SuiteErrors
        If a line is defective and not ``good_lines``, or if no line is good.
    """
    path = printable(path)
    items: list[Item] = []
    errors: list[SuiteError] = []
    first_line: dict[str, int] = {}
    n_defects = n_lines = 0
    for line, value, defects, head in read_objects(stream, path):
        if value is not None:
            item = convert(value, n_lines, partial(_add_defect, defects, ""))
            if item.id and first_line.setdefault(item.id, line) != line:
                defects.append(
                    (
                        "item_id",
                        (
                            f"{printable(item.id, 60)!r} is already the id of line"
                            f" {first_line[item.id]}"
                        ),
                    )
                )
            if not defects:
                items.append(item)
        n_lines += 1
        n_defects += len(defects)
        for field, message in defects[: MAX_ERRORS - len(errors)]:
            raw = head[: 4 * RAW].decode("utf-8", "backslashreplace").rstrip("\r\n")
            errors.append(SuiteError(path, line, field, message, printable(raw, RAW)))
    if not n_lines:
        raise unusable_file(path, "is empty; a suite has at least one item")
    if n_defects > len(errors):
        errors.append(
            SuiteError(path, None, "", f"and {n_defects - len(errors):,} more defects further down")
        )
    if errors and not (good_lines and items):
        raise SuiteErrors(errors, len(items))
    return tuple(items)


def _add_defect(defects: list[tuple[str, str]], prefix: str, field: str, message: str) -> None:
    defects.append((prefix + field, message))


def _item(record: dict[str, Any], _: int, report: Report, *, chain: Chain) -> Item:
    """Return the item of one line; defects go to ``report``."""
    for field in ("item_id", "prompt", "ground_truth"):
        if field not in record:
            report(
                field,
                "is missing"
                + ("; write null where there is no answer" if field == "ground_truth" else ""),
            )
    category = record.get("category", "")
    named = isinstance(category, str)
    return Item(
        id=check_id(record["item_id"], "item_id", report) if "item_id" in record else "",
        question=(
            check_text(record["prompt"], "prompt", report, "a string") if "prompt" in record else ""
        ),
        answer=check_answer(record.get("ground_truth"), "ground_truth", report),
        steps=_steps(record, chain, report),
        category=category if named else "",
        meta={
            key: value
            for key, value in record.items()
            if key not in FIELDS and not (named and key == "category")
        },
    )


def _steps(record: dict[str, Any], chain: Chain, report: Report) -> tuple[Step, ...]:
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
            "is an empty chain: give at least one step, or leave the key out and use --chain own",
        )
    else:
        defects: list[tuple[str, str]] = []
        for i, step in enumerate(value):
            _check_step(i, step, partial(_add_defect, defects, f"{field}[{i}]"))
            if len(defects) >= 5:
                break
        if not defects:
            return tuple(Step(i, step["text"]) for i, step in enumerate(value))
        for where, message in defects:
            report(where, message)
    return ()


def _check_step(i: int, step: object, report: Report) -> None:
    if not isinstance(step, dict):
        report("", f'must be an object {{"index": {i}, "text": "…"}}; found {describe_json(step)}')
        return
    for key in ("index", "text"):
        if key not in step:
            report(f".{key}", "is missing")
    index, text = step.get("index", i), step.get("text", "…")
    if type(index) is not int:
        report(".index", f"must be a whole number; found {describe_json(index)}")
    elif index != i:
        report(
            ".index",
            f"is {printable(str(index), 30)} where {i} is due: indices count 0, 1, 2, … in order",
        )
    if isinstance(text, str) and not text.strip():
        report(".text", "is an empty step")
    else:
        check_text(text, ".text", report, "a string")


def _line(item: Item) -> bytes:
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
    if clash := sorted(record.keys() & item.meta.keys()):
        raise ValueError(
            f"item {item.id!r}: the meta key {clash[0]!r} is a field of the format; rename it"
        )
    try:
        return json.dumps(
            {**record, **to_json_value(item.meta)}, ensure_ascii=False, allow_nan=False
        ).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"item {item.id!r} cannot be written as JSON: {exc}") from exc
