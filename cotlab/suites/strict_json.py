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

from cotlab.core.errors import SuiteErrors
from cotlab.suites.shipped import printable_text, unusable_file_error

DefectReporter = Callable[[str, str], None]
"""Takes (field, message) of one defect."""
MAX_LINE_BYTES = 4 * 2**20
MAX_DEPTH = 64
"""Nesting of lists and objects within one line."""
MAX_SHOWN_CHARACTERS = 200
"""Characters of a defective line that its error shows."""

_INVALID_CHARACTER_PATTERN = re.compile(r"[\ud800-\udfff\x00]")
"""Half of a character (a lone surrogate like \\ud83d), or NUL."""
_SPACE_PATTERN = re.compile(r"[ \t\r\n]*")
_ENCODING_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\x00", "UTF-16"),
    (b"\x00{", "UTF-16"),
)
"""Beginnings of files in other encodings."""
_SINGLE_DOCUMENT_MESSAGE = (
    "looks like one JSON document over several lines; write one object a line"
)


class ParsedLine(NamedTuple):
    """One line that is not blank."""

    line: int
    """Its number, from 1."""
    value: dict[str, Any] | None
    """Its object; None where it has defects."""
    defects: list[tuple[str, str]]
    """(field, message) of each defect."""
    raw_bytes: bytes
    """Its bytes."""
    prefix: str = ""
    """Where its object stands in the line, for the names of fields: ``[3].``."""


def read_objects(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each line that is not blank.

    Raises
    ------
    SuiteErrors
        At once, if the file is not JSONL in UTF-8 at all.
    """
    n_lines = cut_off_line = 0
    for line, offset, data, n_bytes in _read_lines(stream, path):
        value, defect = None, ""
        try:
            if n_bytes > MAX_LINE_BYTES:
                raise NotJSON(
                    f"has {n_bytes:,} bytes; a line may have {MAX_LINE_BYTES:,} (4 MiB), so it was"
                    " not read"
                )
            text = data.decode("utf-8")
            if not text.strip():
                continue
            if n_lines == 0 and text.strip() in ("{", "[", "[{"):
                raise unusable_file_error(path, _SINGLE_DOCUMENT_MESSAGE, line=line)
            value = parse_json(text)
        except UnicodeDecodeError as exc:
            defect = f"byte {offset + exc.start} of the file is not UTF-8; save the file as UTF-8"
        except NotJSON as exc:
            if (n_lines == 0 and exc.is_cut_off and text[:1] == "[") or (
                n_lines == 1 and cut_off_line and data.lstrip()[:1] in b'"}'
            ):
                raise unusable_file_error(
                    path, _SINGLE_DOCUMENT_MESSAGE, line=cut_off_line or line
                ) from None
            defect, cut_off_line = str(exc), line if n_lines == 0 and exc.is_cut_off else 0
        n_lines += 1
        if not defect and not isinstance(value, dict):
            hint = (
                "; take the objects out of the list and write one a line"
                if isinstance(value, list)
                else ""
            )
            value, defect = None, f"must be a JSON object; found {describe_json(value)}{hint}"
        defects = [("", defect)] if defect else list(islice(json_defects(value), 5))
        yield ParsedLine(line, None if defects else value, defects, data)


def read_records(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each object of a JSON array, of a single JSON object, or of JSONL.

    The line of an object of an array is that of its first character.

    Raises
    ------
    SuiteErrors
        At once, if the file is neither, or the array ends too early.
    """
    head = stream.read(4096)
    stream.seek(0)
    text_head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_document = text_head[:1] == b"[" or re.match(rb"\{[ \t]*\r?\n", text_head)
    if not is_document:
        yield from read_objects(stream, path)
        return
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise unusable_file_error(
            path, f"byte {exc.start} of the file is not UTF-8; save the file as UTF-8"
        ) from exc
    for n, (line, value, raw_text) in enumerate(_array_elements(text, path)):
        prefix = f"[{n}]." if text_head[:1] == b"[" else ""
        raw_bytes = raw_text.encode("utf-8", "surrogatepass")
        if isinstance(value, dict):
            defects = [(prefix + name, text) for name, text in islice(json_defects(value), 5)]
        else:
            defects = [(prefix[:-1], f"must be a JSON object; found {describe_json(value)}")]
        yield ParsedLine(line, None if defects else value, defects, raw_bytes, prefix)


def _array_elements(text: str, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yield (line, value, first characters) of each element of an array; an object is one."""
    line, counted = 1, 0

    def broken(position: int, message: str) -> SuiteErrors:
        at = text.count("\n", 0, position) + 1
        return unusable_file_error(path, f"is not JSON: {message}", line=at)

    position = _skip_space(text, 0)
    is_array = text[position : position + 1] == "["
    position = _skip_space(text, position + is_array)
    if is_array and text[position : position + 1] == "]":
        raise unusable_file_error(path, "is an empty list; a suite has at least one item")
    while True:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except RecursionError:
            raise broken(position, f"nested too deeply; {MAX_DEPTH} levels are read") from None
        except json.JSONDecodeError as exc:
            raise broken(exc.pos, exc.msg[0].lower() + exc.msg[1:]) from None
        line, counted = line + text.count("\n", counted, position), position
        yield line, value, text[position : position + MAX_SHOWN_CHARACTERS]
        position = _skip_space(text, end)
        mark = text[position : position + 1]
        if is_array and mark == ",":
            position = _skip_space(text, position + 1)
            continue
        if is_array and mark != "]":
            raise broken(position, "a comma or ] is missing" if mark else "the list breaks off")
        position = _skip_space(text, position + is_array)
        if position < len(text):
            raise broken(position, "something follows the end")
        return


def _skip_space(text: str, position: int) -> int:
    match = _SPACE_PATTERN.match(text, position)
    return match.end() if match else position


def _read_lines(stream: BinaryIO, path: str) -> Iterator[tuple[int, int, bytes, int]]:
    """Yield (number from 1, byte offset, bytes, size) of each line, too long ones cut."""
    line_number = offset = 0
    while data := stream.readline(MAX_LINE_BYTES + 2):
        line_number, n_bytes = line_number + 1, len(data)
        if line_number == 1:
            for mark, encoding in _ENCODING_MARKS:
                if data.startswith(mark):
                    raise unusable_file_error(
                        path, f"byte 0 of the file says {encoding}; save the file as UTF-8", line=1
                    )
        if n_bytes == MAX_LINE_BYTES + 2 and not data.endswith(b"\n"):
            data = data[: 4 * MAX_SHOWN_CHARACTERS]
            while chunk := stream.readline(2**20):
                n_bytes += len(chunk)
                if chunk.endswith(b"\n"):
                    break
        mark_size = 3 if line_number == 1 and data.startswith(b"\xef\xbb\xbf") else 0
        yield (
            line_number,
            offset + mark_size,
            data[mark_size:],
            len(data.rstrip(b"\r\n")) if n_bytes == len(data) else n_bytes,
        )
        offset += n_bytes


class InvalidValue(NamedTuple):
    """Stands in a parsed value for something that no suite may hold."""

    message: str
    """What it is."""


class NotJSON(ValueError):
    """A line that does not parse; ``is_cut_off`` where it ends too early."""

    def __init__(self, message: str, is_cut_off: bool = False) -> None:
        self.is_cut_off = is_cut_off
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
        is_cut_off = exc.pos >= len(text.rstrip())
        message = "it breaks off" if is_cut_off else exc.msg[0].lower() + exc.msg[1:]
        location = (
            f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        )
        raise NotJSON(f"is not JSON: {message} at {location}", is_cut_off) from None


def json_defects(value: object, field: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (field, message) of every `Bad`, invalid text, and value deeper than MAX_DEPTH."""
    if isinstance(value, str):
        if defect := text_defect(value):
            yield field, defect
    elif isinstance(value, InvalidValue):
        yield field, value.message
    elif isinstance(value, dict | list) and depth >= MAX_DEPTH:
        yield field, f"is nested too deeply; {MAX_DEPTH} levels are read"
    elif isinstance(value, list):
        for i, child in enumerate(value):
            if not isinstance(child, str) or _INVALID_CHARACTER_PATTERN.search(child):
                yield from json_defects(child, f"{field}[{i}]", depth + 1)
    elif isinstance(value, dict):
        for key, child in value.items():
            if (
                isinstance(child, str)
                and not _INVALID_CHARACTER_PATTERN.search(child)
                and not _INVALID_CHARACTER_PATTERN.search(key)
            ):
                continue  # nearly every pair of a suite: skips the slow checks
            inner_field = f"{field}.{printable_text(key, 60)}" if field else printable_text(key, 60)
            if defect := text_defect(key):
                yield inner_field, f"the key {defect}"
            yield from json_defects(child, inner_field, depth + 1)


def text_defect(text: str) -> str | None:
    """Return why ``text`` cannot be stored and sent as text, or None."""
    if not (match := _INVALID_CHARACTER_PATTERN.search(text)):
        return None
    problem = (
        "holds a NUL character"
        if match[0] == "\x00"
        else f"is not valid text: lone surrogate \\u{ord(match[0]):04x}"
    )
    return f"{problem} at position {match.start()}"


def describe_json(value: object) -> str:
    """Return what a JSON value is, in words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {printable_text(str(value), 30)}"
    return (
        "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
    )


def check_id(value: object, field: str, report: DefectReporter) -> str:
    """Return ``value`` as an item id, stripped; report it and return "" if it is none.

    An id is one line of printable text.
    """
    text = check_text(value, field, report, 'a string, e.g. "gsm8k-0001"').strip()
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
        report(
            field,
            f"holds a control character ({printable_text(text, 60)}); an id is one line of"
            " printable text",
        )
        return ""
    return text


def check_text(value: object, field: str, report: DefectReporter, expected: str) -> str:
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


def check_answer(value: object, field: str, report: DefectReporter) -> str | None:
    """Return ``value`` as an answer: text, or None for null and after a report."""
    return (
        None
        if value is None
        else check_text(value, field, report, 'a string or null, e.g. "18"') or None
    )


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen_keys: set[str] = set()
        for key, _ in pairs:
            if key in seen_keys:
                mapping[key] = InvalidValue("appears twice in one object")
            seen_keys.add(key)
    return mapping


def _parse_number(number_type: type[int | float], digits: str) -> float | InvalidValue:
    return (
        number_type(digits)
        if len(digits) <= 309 and math.isfinite(float(digits))
        else InvalidValue("is a number too large to keep")
    )


_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=partial(_parse_number, int),
    parse_float=partial(_parse_number, float),
    parse_constant=lambda name: InvalidValue(f"{name} is not JSON"),
)
