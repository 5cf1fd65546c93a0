"""Strict JSON of untrusted files: bounded lines, and every defect with its line and field."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from cotlab.core.errors import SuiteErrors
from cotlab.suites.shipped import printable_text, unusable_file_error

DefectReporter = Callable[[str, str], None]
"""Takes (field, message) of one defect."""
MAX_LINE_BYTES = 4 * 2**20
MAX_DEPTH = 64
"""Nesting of lists and objects within one record."""
MAX_SHOWN_CHARACTERS = 200
"""Characters of a defective line that its error shows."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE_PATTERN = re.compile(r"[ \t\r\n]*")
# "\\u0000" in JSON, not the text "\\\\u0000"
_NUL_PATTERN = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_ENCODING_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
"""Beginnings of files in other encodings."""


class ParsedLine(NamedTuple):
    """One line that is not blank, or one record of a file without lines."""

    line: int
    """Its number, from 1."""
    value: dict[str, Any] | None
    """Its object; None where it has defects."""
    defects: list[tuple[str, str]]
    """(field, message) of each defect."""
    raw_bytes: bytes
    """Its bytes."""
    prefix: str = ""
    """Where its object stands in the file, for the names of fields: ``[3].``."""


class NotJSON(ValueError):
    """A text is no JSON that a suite may hold; the message says why."""


def read_records(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each object of a JSON array, of a single JSON object, or of JSON Lines.

    The line of an object of an array is that of its first character.

    Raises
    ------
    SuiteErrors
        At once, if the file is none of them in UTF-8, or an array ends too early.
    """
    head = stream.read(4096)
    stream.seek(0)
    for mark, encoding in _ENCODING_MARKS:
        if head.startswith(mark) or head[:2] in (b"{\x00", b"\x00{"):
            raise unusable_file_error(path, f"is {encoding}; save the file as UTF-8", line=1)
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if start[:1] == b"[" or re.match(rb"\{[ \t]*\r?\n", start):
        yield from _read_document(stream, path)
        return
    for line, data in enumerate(_read_lines(stream), start=1):
        value, defect = None, ""
        try:
            if len(data.rstrip(b"\r\n")) > MAX_LINE_BYTES:
                raise NotJSON(f"has more than {MAX_LINE_BYTES:,} bytes (4 MiB), and was not read")
            text = data.decode("utf-8-sig")
            if not text.strip():
                continue
            value = parse_json(text)
        except UnicodeDecodeError:
            defect = "is not UTF-8; save the file as UTF-8"
        except NotJSON as error:
            defect = str(error)
        yield _parsed_line(line, value, defect, data)


def _parsed_line(line: int, value: Any, defect: str, data: bytes, prefix: str = "") -> ParsedLine:
    """Return a record with its defects."""
    if not defect and not isinstance(value, dict):
        defect = f"must be a JSON object; found {describe_json(value)}"
    defects = [(prefix[:-1], defect)] if defect else []
    if not defects and b"\\u" in data:
        defects = [(prefix + name, message) for name, message in record_defects(value)]
    return ParsedLine(line, None if defects else value, defects, data, prefix)


def _read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield each line; of one that is too long, a byte more than is allowed."""
    while data := stream.readline(MAX_LINE_BYTES + 3):
        rest = data
        while not rest.endswith(b"\n") and (rest := stream.readline(2**20)):
            pass
        yield data


def _read_document(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each element of an array; an object is one."""
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unusable_file_error(path, "is not UTF-8; save the file as UTF-8") from error

    def broken(position: int, message: str) -> SuiteErrors:
        at = text.count("\n", 0, position) + 1
        return unusable_file_error(path, f"is not JSON: {message}", line=at)

    n, line, counted, defect = 0, 1, 0, ""
    position = _skip_space(text, 0)
    is_array = text[position] == "["
    position = _skip_space(text, position + is_array)
    if is_array and text[position : position + 1] == "]":
        raise unusable_file_error(path, "is an empty list; a suite has at least one item")
    while True:
        try:
            value, end, defect = *_DECODER.raw_decode(text, position), ""
            _check_depth(value, text[position:end])
        except NotJSON as error:  # the others are read all the same
            value, end, defect = *_LENIENT_DECODER.raw_decode(text, position), str(error)
        except RecursionError:
            raise broken(position, f"nested too deeply; {MAX_DEPTH} levels are read") from None
        except json.JSONDecodeError as error:
            raise broken(error.pos, error.msg[0].lower() + error.msg[1:]) from None
        line, counted = line + text.count("\n", counted, position), position
        data = text[position:end].encode("utf-8", "surrogatepass")
        yield _parsed_line(line, value, defect, data, f"[{n}]." if is_array else "")
        n += 1
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


def parse_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no number beyond a float, no key twice in an object.

    Raises
    ------
    NotJSON
        If the text is no such JSON, or nested too deeply.
    """
    if "\x00" in text:
        raise NotJSON(f"holds a NUL byte at column {text.index(chr(0)) + 1}; is this a text file?")
    try:
        value = _DECODER.decode(text)
        _check_depth(value, text)
    except RecursionError:
        raise NotJSON(f"is nested too deeply; {MAX_DEPTH} levels are read") from None
    except json.JSONDecodeError as error:
        message = error.msg[0].lower() + error.msg[1:]
        raise NotJSON(f"is not JSON: {message} at column {error.colno}") from None
    return value


def _check_depth(value: Any, text: str) -> None:
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise NotJSON(f"is nested too deeply; {MAX_DEPTH} levels are read")


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def record_defects(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (field, message) of each field whose text cannot be stored and sent."""
    if not _text_defect(record):
        return []
    defects = ((name, _text_defect({name: value})) for name, value in record.items())
    return [(printable_text(name, 60), defect) for name, defect in defects if defect]


def _text_defect(value: object) -> str:
    """Return which half of a character, or NUL, the texts of a JSON value hold; "" for none."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"is not valid text: lone surrogate \\u{ord(text[error.start]):04x}"
    return "holds a NUL character" if _NUL_PATTERN.search(text) else ""


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
        report(field, f"holds a control character ({printable_text(text, 60)}): it is one line")
        return ""
    return text


def check_text(value: object, field: str, report: DefectReporter, expected: str) -> str:
    """Return ``value`` if it is text that is not blank, else report it and return ""."""
    if not isinstance(value, str):
        report(field, f"must be {expected}; found {describe_json(value)}")
    elif not value.strip():
        hint = "; write null where there is no answer" if "null" in expected else ""
        report(field, f"is empty{hint}")
    else:
        return value
    return ""


def check_answer(value: object, field: str, report: DefectReporter) -> str | None:
    """Return ``value`` as an answer: text, or None for null and after a report."""
    if value is None:
        return None
    return check_text(value, field, report, 'a string or null, e.g. "18"') or None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, n in counts.items() if n > 1)
        raise NotJSON(f"{printable_text(repeated, 60)} appears twice in one object")
    return mapping


def _parse_number(number_type: type[int | float], digits: str) -> float:
    if len(digits) > 309 or not math.isfinite(float(digits)):
        raise NotJSON("holds a number too large to keep")
    return number_type(digits)


def _refuse_constant(name: str) -> float:
    raise NotJSON(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=partial(_parse_number, int),
    parse_float=partial(_parse_number, float),
    parse_constant=_refuse_constant,
)
_LENIENT_DECODER = json.JSONDecoder(parse_int=float)
"""Finds the end of what is no strict JSON."""
