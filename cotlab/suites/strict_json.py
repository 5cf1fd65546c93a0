"""Strict JSON of untrusted files: bounded lines, and every defect with its line and field."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from cotlab.suites.shipped import printable, unusable_file

Report = Callable[[str, str], None]
"""Takes (field, message) of one defect."""
MAX_LINE_BYTES = 4 * 2**20
MAX_DEPTH = 64
"""Nesting of lists and objects within one line."""
RAW = 200
"""Characters of a defective line that its error shows."""

_BAD_TEXT = re.compile(r"[\ud800-\udfff\x00]")
"""Half of a character (a lone surrogate like \\ud83d), or NUL."""
_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\x00", "UTF-16"),
    (b"\x00{", "UTF-16"),
)
"""Beginnings of files in other encodings."""
_DOCUMENT = "looks like one JSON document over several lines; write one object a line"


class ParsedLine(NamedTuple):
    """One line that is not blank."""

    line: int
    """Its number, from 1."""
    value: dict[str, Any] | None
    """Its object; None where it has defects."""
    defects: list[tuple[str, str]]
    """(field, message) of each defect."""
    data: bytes
    """Its bytes."""


def read_objects(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each line that is not blank.

    Raises
    ------
    SuiteErrors
        At once, if the file is not JSONL in UTF-8 at all.
    """
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


def _read_lines(stream: BinaryIO, path: str) -> Iterator[tuple[int, int, bytes, int]]:
    """Yield (number from 1, byte offset, bytes, size) of each line, too long ones cut."""
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
    """Stands in a parsed value for something that no suite may hold."""

    message: str
    """What it is."""


class NotJSON(ValueError):
    """A line that does not parse; ``broken_off`` where it ends too early."""

    def __init__(self, message: str, broken_off: bool = False) -> None:
        self.broken_off = broken_off
        super().__init__(message)


def parse_json(text: str) -> Any:
    """Parse strict JSON.

    A `Bad` stands for NaN, a number beyond a float and a repeated key.

    Raises
    ------
    NotJSON
        If the text is no JSON.
    """
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
    """Yield (field, message) of every `Bad`, invalid text, and value deeper than MAX_DEPTH."""
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
                continue  # nearly every pair of a suite: skips the slow checks
            inner = f"{field}.{printable(key, 60)}" if field else printable(key, 60)
            if fault := text_fault(key):
                yield inner, f"the key {fault}"
            yield from json_defects(part, inner, depth + 1)


def text_fault(text: str) -> str | None:
    """Return why ``text`` cannot be stored and sent as text, or None."""
    if not (bad := _BAD_TEXT.search(text)):
        return None
    what = (
        "holds a NUL character"
        if bad[0] == "\x00"
        else f"is not valid text: lone surrogate \\u{ord(bad[0]):04x}"
    )
    return f"{what} at position {bad.start()}"


def describe_json(value: object) -> str:
    """Return what a JSON value is, in words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {printable(str(value), 30)}"
    return (
        "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
    )


def check_id(value: object, field: str, report: Report) -> str:
    """Return ``value`` as an item id, stripped; report it and return "" if it is none.

    An id is one line of printable text.
    """
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
    """Return ``value`` if it is text that is not blank, else report it and return ""."""
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
    """Return ``value`` as an answer: text, or None for null and after a report."""
    return (
        None
        if value is None
        else check_text(value, field, report, 'a string or null, e.g. "18"') or None
    )


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
