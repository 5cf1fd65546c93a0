"""Suites as JSONL, one item a line, with errors that name path, line and field.

A line is ``{"item_id", "prompt", "reference_cot": [{"index", "text"}], "ground_truth"}``. Nobody
vouches for a file, so lines, nesting, numbers and text are bounded before they are used, and all
defects of a file are told at once.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.core.keys import to_json_value
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.shipped import file_sha256, open_suite_file, printable, unusable_file

__all__ = ["file_sha256", "load_suite", "parse_suite", "write_suite"]

Chain = Literal["reference", "own"]
Report = Callable[[str, str], None]
"""Takes (field, message) of one defect."""
Convert = Callable[[dict[str, Any], int, Report], Item]
"""Makes the item of (object, how many objects came before it); the item is used only if nothing was
reported."""

FIELDS = frozenset({"item_id", "prompt", "reference_cot", "ground_truth"})
"""Keys of a line that are not meta."""
MAX_LINE_BYTES = 4 * 2**20
MAX_DEPTH = 64  # of lists and objects within one line
MAX_ERRORS = 10_000  # kept with their place; more of them are only counted
RAW = 200  # characters of a defective line that its error shows

_BAD_TEXT = re.compile(r"[\ud800-\udfff\x00]")
_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\x00", "UTF-16"),
    (b"\x00{", "UTF-16"),
)
_DOCUMENT = "looks like one JSON document over several lines; write one object a line"


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
        Leave out defective lines instead of refusing the file, as long as one line is good.
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
        Every defect of the file in line order, and the count of good lines beside them.
    """
    with open_suite_file(path) as stream:
        items = collect(stream, str(path), partial(_item, chain=chain), good_lines=good_lines)
    return Suite.of(Path(path).stem, items)


def parse_suite(
    data: bytes, name: str, *, good_lines: bool = False, chain: Chain = "reference"
) -> Suite:
    """Read a suite from bytes, an upload for example; in all else as `load_suite`.

    Parameters
    ----------
    data : bytes
    name : str
        The file name that errors show; without ``.jsonl`` it names the suite.
    """
    items = collect(io.BytesIO(data), name, partial(_item, chain=chain), good_lines=good_lines)
    return Suite.of(name.removesuffix(".jsonl"), items)


def write_suite(suite: Suite, path: str | Path) -> None:
    """Write a suite as JSONL that reads back with the same items; an existing file is replaced as a whole.

    Items without steps are written with ``reference_cot`` null, which reads back with
    ``chain="own"``.

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
    """The items of all lines; SuiteErrors if a line is defective and not ``good_lines``, or if no line is good."""
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


class ParsedLine(NamedTuple):
    """One line that is not blank: its object, or why there is none. ``line`` counts from 1."""

    line: int
    value: dict[str, Any] | None
    defects: list[tuple[str, str]]
    data: bytes


def read_objects(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """One `Found` for each line that is not blank; SuiteErrors at once for a file that is no JSONL in UTF-8 at all."""
    n = broken_off = 0
    for line, offset, data, size in _read_lines(stream, path):
        value, fault = None, ""
        try:
            if size > MAX_LINE_BYTES:
                raise NotJSON(
                    f"has {size:,} bytes; a line may have {MAX_LINE_BYTES:,} (4 MiB), so it was not"
                    " read"
                )
            text = data.decode("utf-8")
            if not text.strip():
                continue
            if n == 0 and text.strip() in ("{", "[", "[{"):
                raise unusable_file(path, _DOCUMENT, line=line)
            value = parse_json(text)
        except UnicodeDecodeError as exc:
            fault = f"byte {offset + exc.start} of the file is not UTF-8; save the file as UTF-8"
        except NotJSON as exc:
            if (n == 0 and exc.broken_off and text[:1] == "[") or (
                n == 1 and broken_off and data.lstrip()[:1] in b'"}'
            ):
                raise unusable_file(path, _DOCUMENT, line=broken_off or line) from None
            fault, broken_off = str(exc), line if n == 0 and exc.broken_off else 0
        n += 1
        if not fault and not isinstance(value, dict):
            hint = (
                "; take the objects out of the list and write one a line"
                if isinstance(value, list)
                else ""
            )
            value, fault = None, f"must be a JSON object; found {describe_json(value)}{hint}"
        defects = [("", fault)] if fault else list(islice(json_defects(value), 5))
        yield ParsedLine(line, None if defects else value, defects, data)


def _add_defect(defects: list[tuple[str, str]], prefix: str, field: str, message: str) -> None:
    defects.append((prefix + field, message))


def _read_lines(stream: BinaryIO, path: str) -> Iterator[tuple[int, int, bytes, int]]:
    """(number from 1, byte offset, bytes, size in bytes) of each line; of one that is too long only the start is held."""
    number = offset = 0
    while data := stream.readline(MAX_LINE_BYTES + 2):
        number, size = number + 1, len(data)
        if number == 1:
            for mark, encoding in _MARKS:
                if data.startswith(mark):
                    raise unusable_file(
                        path, f"byte 0 of the file says {encoding}; save the file as UTF-8", line=1
                    )
        if size == MAX_LINE_BYTES + 2 and not data.endswith(b"\n"):
            data = data[: 4 * RAW]
            while more := stream.readline(2**20):
                size += len(more)
                if more.endswith(b"\n"):
                    break
        mark_size = 3 if number == 1 and data.startswith(b"\xef\xbb\xbf") else 0
        yield (
            number,
            offset + mark_size,
            data[mark_size:],
            len(data.rstrip(b"\r\n")) if size == len(data) else size,
        )
        offset += size


class Bad(NamedTuple):
    """Stands in a parsed value where the text says something that no suite may hold."""

    message: str


class NotJSON(ValueError):
    """A line that does not parse; ``broken_off`` where it ends too early."""

    def __init__(self, message: str, broken_off: bool = False) -> None:
        self.broken_off = broken_off
        super().__init__(message)


def parse_json(text: str) -> Any:
    """The value of strict JSON, else NotJSON. A `Bad` stands for NaN, a number beyond a float and a key given twice."""
    if "\x00" in text:
        raise NotJSON(f"holds a NUL byte at column {text.index(chr(0)) + 1}; is this a text file?")
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise NotJSON(f"is nested too deeply; {MAX_DEPTH} levels are read") from None
    except json.JSONDecodeError as exc:
        broken_off = exc.pos >= len(text.rstrip())
        message = "it breaks off" if broken_off else exc.msg[0].lower() + exc.msg[1:]
        location = (
            f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        )
        raise NotJSON(f"is not JSON: {message} at {location}", broken_off) from None


def json_defects(value: object, field: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """(field, message) of every `Bad`, of text that is no valid Unicode, and of what lies deeper than MAX_DEPTH."""
    if isinstance(value, str):
        if fault := text_fault(value):
            yield field, fault
    elif isinstance(value, Bad):
        yield field, value.message
    elif isinstance(value, dict | list) and depth >= MAX_DEPTH:
        yield field, f"is nested too deeply; {MAX_DEPTH} levels are read"
    elif isinstance(value, list):
        for i, part in enumerate(value):
            if not isinstance(part, str) or _BAD_TEXT.search(part):
                yield from json_defects(part, f"{field}[{i}]", depth + 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, str) and not _BAD_TEXT.search(part) and not _BAD_TEXT.search(key):
                continue  # nearly every pair of a suite: spares it the slow rest
            inner = f"{field}.{printable(key, 60)}" if field else printable(key, 60)
            if fault := text_fault(key):
                yield inner, f"the key {fault}"
            yield from json_defects(part, inner, depth + 1)


def text_fault(text: str) -> str | None:
    """Why ``text`` cannot be stored and sent as text, or None."""
    if not (bad := _BAD_TEXT.search(text)):
        return None
    what = (
        "holds a NUL character"
        if bad[0] == "\x00"
        else f"is not valid text: lone surrogate \\u{ord(bad[0]):04x}"
    )
    return f"{what} at position {bad.start()}"


def describe_json(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {printable(str(value), 30)}"
    return (
        "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
    )


def check_id(value: object, field: str, report: Report) -> str:
    """``value`` as an item id, stripped; "" after a report if it is not one line of printable text."""
    text = check_text(value, field, report, 'a string, e.g. "gsm8k-0001"').strip()
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in text):
        report(
            field,
            f"holds a control character ({printable(text, 60)}); an id is one line of printable"
            " text",
        )
        return ""
    return text


def check_text(value: object, field: str, report: Report, expected: str) -> str:
    """``value`` if it is text with something in it, else "" after a report."""
    if not isinstance(value, str):
        report(field, f"must be {expected}; found {describe_json(value)}")
    elif not value.strip():
        report(
            field,
            "is empty" + ("; write null where there is no answer" if "null" in expected else ""),
        )
    else:
        return value
    return ""


def check_answer(value: object, field: str, report: Report) -> str | None:
    """``value`` as an answer: text, or None for null; None after a report if it is neither."""
    return (
        None
        if value is None
        else check_text(value, field, report, 'a string or null, e.g. "18"') or None
    )


def _item(record: dict[str, Any], _: int, report: Report, *, chain: Chain) -> Item:
    """The item of one line; what is wrong goes to ``report``."""
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
    """The line of one item, without its end; ValueError where meta could not be told apart from the format's fields."""
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                mapping[key] = Bad("appears twice in one object")
            seen.add(key)
    return mapping


def _number(kind: type[int | float], digits: str) -> float | Bad:
    return (
        kind(digits)
        if len(digits) <= 309 and math.isfinite(float(digits))
        else Bad("is a number too large to keep")
    )


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=partial(_number, int),
    parse_float=partial(_number, float),
    parse_constant=lambda name: Bad(f"{name} is not JSON"),
)
