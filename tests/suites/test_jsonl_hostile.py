"""Files that nobody should have made: each one gives suite errors, in bounded memory, never a
traceback."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.suites.jsonl import file_sha256, load_suite, parse_suite
from cotlab.suites.strict_json import MAX_LINE_BYTES

GOOD = (
    b'{"item_id":"a","prompt":"Q","reference_cot":[{"index":0,"text":"One."}],"ground_truth":"1"}'
)
OTHER = GOOD.replace(b'"a"', b'"b"')


def with_extra(extra: str | bytes) -> bytes:
    """A good line with one more key, ``x``."""
    return GOOD[:-1] + b',"x":' + (extra.encode() if isinstance(extra, str) else extra) + b"}"


def errors_of(data: bytes | str | Path) -> tuple[SuiteError, ...]:
    with pytest.raises(SuiteErrors) as caught:
        parse_suite(data, "s.jsonl") if isinstance(data, bytes) else load_suite(data)
    str(caught.value).encode("utf-8")  # can be shown on any terminal
    return caught.value.errors


def only_error(data: bytes | str | Path) -> SuiteError:
    (error,) = errors_of(data)
    return error


def test_no_file(tmp_path: Path) -> None:
    assert "no such file" in only_error(tmp_path / "absent.jsonl").message
    assert "is a directory" in only_error(tmp_path).message
    assert only_error(tmp_path / ("n" * 5000)).message.startswith("cannot be read")
    assert "NUL" in only_error("a\x00b.jsonl").message
    assert "no such file" in only_error("no\udcffname.jsonl").message
    with pytest.raises(SuiteErrors, match="no such file"):
        file_sha256(tmp_path / "absent.jsonl")


def test_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in only_error(tmp_path / "pipe").message
    assert "not a regular file" in only_error("/dev/zero").message


def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    assert only_error(path).message == "cannot be read: Permission denied"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails")
def test_reading_fails_midway() -> None:
    assert only_error("/proc/self/mem").message.startswith("cannot be read")


def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    os.truncate(path, 2 * 2**30)
    assert "more than the 1,073,741,824 that are read" in only_error(path).message


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\t\n\r\n", b"\xef\xbb\xbf", "\u2003\n".encode()])
def test_empty(data: bytes) -> None:
    error = only_error(data)
    assert error.line is None
    assert "is empty" in error.message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"hello", "is not JSON: expecting value at column 1"),
        (b'"text"', "must be a JSON object; found text"),
        (b"null", "must be a JSON object; found null"),
        (b"12", "must be a JSON object; found the number 12"),
        (
            b"[" + GOOD + b"]",
            "must be a JSON object; found a list; take the objects out of the list",
        ),
        (GOOD + b" " + OTHER, "is not JSON: extra data at column 93"),
        (GOOD + b"\r" + OTHER, "is not JSON: extra data"),
        (GOOD[:-1], "is not JSON: it breaks off"),
        (b'{"a": 1', "it breaks off"),
    ],
)
def test_not_an_object(data: bytes, says: str) -> None:
    error = only_error(data)
    assert error.line == 1
    assert says in error.message
    assert error.raw == data.decode().replace("\r", r"\r")[:200]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_whole_document_is_recognised(indent: int | None, as_list: bool) -> None:
    first, second = json.loads(GOOD), json.loads(OTHER)
    text = json.dumps([first, second] if as_list else first, indent=indent)
    if indent is None:
        text = text.replace("}, {", "},\n{").replace('"prompt"', '\n"prompt"')
    error = only_error(text.encode())
    assert error.line == 1
    assert (
        error.message == "looks like one JSON document over several lines; write one object a line"
    )


def test_a_list_around_the_lines_is_recognised() -> None:
    assert (
        "looks like one JSON document"
        in only_error(b"[\n" + GOOD + b",\n" + OTHER + b"\n]\n").message
    )


def test_a_first_line_that_breaks_off_does_not_hide_the_rest() -> None:
    data = b'{"item_id": "x",\n{"item_id": "y"\n' + GOOD + b"\nnonsense\n"
    assert [error.line for error in errors_of(data)] == [1, 2, 4]
    assert len(parse_suite(data, "s.jsonl", good_lines=True).items) == 1


def test_a_line_of_200_megabytes_is_neither_held_nor_parsed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(GOOD + b"\n")
    os.truncate(path, 200 * 2**20)  # a sparse file: the rest of the second line is zeros
    with path.open("ab") as stream:
        stream.write(b"\n" + OTHER + b"\n")
    tracemalloc.start()
    error = only_error(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (error.line, len(error.raw)) == (2, 200)
    assert "a line may have 4,194,304 (4 MiB), so it was not read" in error.message
    assert peak < 32 * 2**20
    assert [item.id for item in load_suite(path, good_lines=True).items] == ["a", "b"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("over", [0, 1, 2, 3])
def test_the_limit_of_a_line_is_exact(end: bytes, over: int) -> None:
    line = with_extra('"' + "x" * (MAX_LINE_BYTES + over - len(with_extra('""'))) + '"')
    assert len(line) == MAX_LINE_BYTES + over
    if over:
        assert "a line may have 4,194,304" in only_error(line + end).message
        assert len(parse_suite(line + (end or b"\n") + OTHER, "s", good_lines=True).items) == 1
    else:
        assert len(parse_suite(line + end, "s").items) == 1


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_nesting(opening: bytes) -> None:
    assert "nested too deeply; 64 levels" in only_error(opening * 100_000).message
    assert (
        "nested too deeply; 64 levels"
        in only_error(with_extra("[" * 100_000 + "]" * 100_000)).message
    )


def test_nesting_has_an_exact_limit() -> None:
    assert len(parse_suite(with_extra("[" * 63 + "]" * 63), "s").items) == 1
    error = only_error(with_extra("[" * 64 + "]" * 64))
    assert error.field == "x" + "[0]" * 63


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        (GOOD[:20] + b"\x00" + GOOD[20:], "", "holds a NUL byte at column 21"),
        (b"\x00" * 50, "", "holds a NUL byte at column 1"),
        (with_extra(r'"a\u0000b"'), "x", "holds a NUL character at position 1"),
        (with_extra(r'"a\ud800b"'), "x", r"not valid text: lone surrogate \ud800 at position 1"),
        (with_extra(r'[{"k": "\udc00"}]'), "x[0].k", r"lone surrogate \udc00"),
        (
            with_extra(r'{"\ud800": 1}'),
            r"x.\ud800",
            r"the key is not valid text: lone surrogate \ud800",
        ),
        (GOOD.replace(b'"Q"', rb'"Q\ud83d"'), "prompt", "not valid text"),
        (GOOD.replace(b"One.", rb"\udfff"), "reference_cot[0].text", "not valid text"),
        (with_extra("1e400"), "x", "a number too large to keep"),
        (with_extra("-1e400"), "x", "a number too large to keep"),
        (with_extra("9" * 10_000), "x", "a number too large to keep"),
        (with_extra("9" * 4_000_000), "x", "a number too large to keep"),
        (with_extra("0." + "9" * 4_000_000), "x", "a number too large to keep"),
        (with_extra("NaN"), "x", "NaN is not JSON"),
        (with_extra("[1, Infinity]"), "x[1]", "Infinity is not JSON"),
        (with_extra('{"y": -Infinity}'), "x.y", "-Infinity is not JSON"),
        (with_extra('1,"x":1'), "x", "appears twice in one object"),
        (with_extra('{"y":{"z":1,"z":2}}'), "x.y.z", "appears twice"),
        (GOOD[:-1] + b',"prompt":"other"}', "prompt", "appears twice"),
        (GOOD.replace(b'"a"', rb'"a\u001b[2J"'), "item_id", r"control character (a\x1b[2J)"),
        (
            GOOD.replace(b'"a"', rb'"a\n"')[:-1] + b',"item\\u0007":NaN}',
            r"item\x07",
            "NaN is not JSON",
        ),
    ],
)
def test_values_that_no_suite_may_hold(data: bytes, field: str, says: str) -> None:
    error = only_error(data)
    assert (error.line, error.field) == (1, field)
    assert says in error.message
    assert len(error.raw) <= 200
    assert error.raw.isprintable()


def test_a_large_but_real_number_is_kept() -> None:
    assert parse_suite(with_extra("[1e308, " + "9" * 300 + "]"), "s").items[0].meta["x"] == [
        1e308,
        int("9" * 300),
    ]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_mark_and_line_ends_are_accepted(line_end: bytes, mark: bytes) -> None:
    suite = parse_suite(mark + GOOD + line_end + OTHER + line_end, "s")
    assert suite == parse_suite(GOOD + b"\n" + OTHER, "s")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_named(encoding: str) -> None:
    error = only_error((GOOD + b"\n" + OTHER).decode().encode(encoding))
    assert error.line == 1
    assert (
        error.message == f"byte 0 of the file says {encoding[:6].upper()}; save the file as UTF-8"
    )


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_latin1_names_line_and_byte(mark: bytes) -> None:
    data = (
        mark
        + GOOD
        + b"\n"
        + OTHER.replace(b'"Q"', '"\N{LATIN SMALL LETTER E WITH ACUTE}"'.encode("latin-1"))
    )
    error = only_error(data)
    assert error.line == 2
    assert (
        error.message == f"byte {data.index(0xE9)} of the file is not UTF-8; save the file as UTF-8"
    )
    assert r"\xe9" in error.raw


def test_random_bytes_never_crash() -> None:
    import random

    rng = random.Random(7)
    for _ in range(300):
        data = bytearray(GOOD + b"\n" + OTHER + b"\n")
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            parse_suite(bytes(data), "s.jsonl")
        except SuiteErrors as caught:
            assert caught.errors


@pytest.mark.soak
def test_100_000_items(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(GOOD.replace(b'"a"', b'"a%d"' % i) + b"\n" for i in range(100_000)))
    assert len(load_suite(path).items) == 100_000
