"""Files that nobody should have made: each one gives suite errors, in bounded memory, never a
traceback."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path

import pytest

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.suites.jsonl import file_sha256, load_suite
from cotlab.suites.strict_json import MAX_LINE_BYTES
from tests.support.suite_files import defects, parse_suite

GOOD = (
    b'{"item_id":"a","prompt":"Q","reference_cot":[{"index":0,"text":"One."}],"ground_truth":"1"}'
)
OTHER = GOOD.replace(b'"a"', b'"b"')


def with_extra(extra: str | bytes) -> bytes:
    """A good line with one more key, ``x``."""
    return GOOD[:-1] + b',"x":' + (extra.encode() if isinstance(extra, str) else extra) + b"}"


def only_error(data: bytes) -> SuiteError:
    (error,) = defects(data)
    return error


def file_error(path: str | Path) -> str:
    with pytest.raises(SuiteErrors) as caught:
        load_suite(path)
    return caught.value.errors[0].message


def test_no_file_that_can_be_read(tmp_path: Path) -> None:
    assert "no such file" in file_error(tmp_path / "absent.jsonl")
    assert "is a directory" in file_error(tmp_path)
    assert file_error(tmp_path / ("n" * 5000)).startswith("cannot be read")
    assert "NUL" in file_error("a\x00b.jsonl")
    assert "no such file" in file_error("no\udcffname.jsonl")
    with pytest.raises(SuiteErrors, match="no such file"):
        file_sha256(tmp_path / "absent.jsonl")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        assert "not a regular file" in file_error(path)
    if Path("/proc/self/mem").exists():  # whose reading fails midway
        assert file_error("/proc/self/mem").startswith("cannot be read")


def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    os.truncate(path, 2 * 2**30)
    assert "more than the 1,073,741,824 that are read" in file_error(path)


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\t\n\r\n", b"\xef\xbb\xbf", "\u2003\n".encode()])
def test_empty(data: bytes) -> None:
    error = only_error(data)
    assert error.line is None and "is empty" in error.message


@pytest.mark.parametrize(
    "data",
    [
        *(b"hello", b'"text"', b"null", b"12", GOOD[:-1], b'{"a": 1'),
        *(GOOD + b" " + OTHER, GOOD + b"\r" + OTHER),
    ],
)
def test_not_an_object(data: bytes) -> None:
    error = only_error(data)
    assert (error.line, error.field) == (1, "")
    assert error.raw == data.decode().replace("\r", r"\r")[:200]


def test_a_first_line_that_breaks_off_does_not_hide_the_rest() -> None:
    data = b'{"item_id": "x",\n{"item_id": "y"\n' + GOOD + b"\nnonsense\n"
    assert [error.line for error in defects(data)] == [1, 2, 4]
    assert len(parse_suite(data, good_lines=True).items) == 1


def test_a_line_of_200_megabytes_is_neither_held_nor_parsed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(GOOD + b"\n")
    os.truncate(path, 200 * 2**20)  # a sparse file: the rest of the second line is zeros
    with path.open("ab") as stream:
        stream.write(b"\n" + OTHER + b"\n")
    tracemalloc.start()
    with pytest.raises(SuiteErrors) as caught:
        load_suite(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (error,) = caught.value.errors
    assert (error.line, len(error.raw)) == (2, 200) and "4 MiB" in error.message
    assert peak < 32 * 2**20
    assert [item.id for item in load_suite(path, good_lines=True).items] == ["a", "b"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("over", [0, 1, 2, 3])
def test_the_limit_of_a_line_is_exact(end: bytes, over: int) -> None:
    line = with_extra('"' + "x" * (MAX_LINE_BYTES + over - len(with_extra('""'))) + '"')
    assert len(line) == MAX_LINE_BYTES + over
    if over:
        assert "4 MiB" in only_error(line + end).message
        assert len(parse_suite(line + (end or b"\n") + OTHER, good_lines=True).items) == 1
    else:
        assert len(parse_suite(line + end).items) == 1


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_nesting(opening: bytes) -> None:
    assert "nested too deeply; 64 levels" in only_error(opening * 100_000).message
    for deep in ("[" * 64 + "]" * 64, "[" * 100_000 + "]" * 100_000):
        for data in (with_extra(deep), b"[" + with_extra(deep) + b"]"):
            assert "nested too deeply; 64 levels" in only_error(data).message
    assert len(parse_suite(with_extra("[" * 63 + "]" * 63)).items) == 1


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        (with_extra(r'"a\u0000b"'), "x", "NUL"),
        (with_extra(r'"a\ud800b"'), "x", r"lone surrogate \ud800"),
        (with_extra(r'[{"k": "\udc00"}]'), "x", r"lone surrogate \udc00"),
        (with_extra(r'{"\ud800": 1}'), "x", r"lone surrogate \ud800"),
        (GOOD.replace(b'"Q"', rb'"Q\ud83d"'), "prompt", "not valid text"),
        (GOOD.replace(b"One.", rb"\udfff"), "reference_cot", "not valid text"),
        *(
            (with_extra(number), "", "too large")
            for number in ("1e400", "-1e400", "9" * 10_000, "0." + "9" * 400)
        ),
        *(
            (with_extra(value), "", "is not JSON")
            for value in ("NaN", "[1, Infinity]", '{"y": -Infinity}')
        ),
        (with_extra('1,"x":1'), "", "x appears twice"),
        (with_extra('{"y":{"z":1,"z":2}}'), "", "z appears twice"),
        (GOOD[:-1] + b',"prompt":"other"}', "", "prompt appears twice"),
        (GOOD.replace(b'"a"', rb'"a\u001b[2J"'), "item_id", r"control character (a\x1b[2J)"),
    ],
)
def test_values_that_no_suite_may_hold(data: bytes, field: str, says: str, as_array: bool) -> None:
    error = only_error(b"[" + data + b"," + OTHER + b"]" if as_array else data)
    assert (error.line, error.field.removeprefix("[0]").strip(".")) == (1, field)
    assert says in error.message
    assert len(error.raw) <= 200 and error.raw.isprintable()


def test_a_nul_byte_is_no_text_and_a_text_of_its_escape_is() -> None:
    for data in (GOOD[:20] + b"\x00" + GOOD[20:], b"\x00" * 50):
        assert "NUL" in only_error(data).message
    assert parse_suite(with_extra(r'"a\\u0000b"')).items[0].meta["x"] == r"a\u0000b"
    assert parse_suite(with_extra("[1e308, " + "9" * 300 + "]")).items[0].meta["x"][0] == 1e308


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_mark_and_line_ends_are_accepted(line_end: bytes, mark: bytes) -> None:
    suite = parse_suite(mark + GOOD + line_end + OTHER + line_end)
    assert suite == parse_suite(GOOD + b"\n" + OTHER)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_another_encoding_is_named_with_its_line(encoding: str) -> None:
    text = (GOOD + b"\n" + OTHER.replace(b"Q", b"\xe9")).decode("latin-1")
    error = only_error(text.encode(encoding))
    assert error.line == (2 if encoding == "latin-1" else 1)
    assert "save the file as UTF-8" in error.message


def test_random_bytes_never_crash() -> None:
    rng = random.Random(7)
    for _ in range(300):
        data = bytearray(GOOD + b"\n" + OTHER + b"\n")
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            parse_suite(bytes(data))
        except SuiteErrors as caught:
            assert caught.errors


@pytest.mark.soak
def test_100_000_items(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(GOOD.replace(b'"a"', b'"a%d"' % i) + b"\n" for i in range(100_000)))
    assert len(load_suite(path).items) == 100_000
