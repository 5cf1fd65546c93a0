"""Records of a file of any kind: JSON, JSON Lines, CSV and Parquet, told apart by their content."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO

from cotlab.suites.shipped import unusable_file_error
from cotlab.suites.strict_json import ParsedLine, read_records, record_defects

MAX_CELL_CHARACTERS = 2**24
_DELIMITERS = ",;\t"


def read_table(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each record of a file; a row of Parquet counts as a line.

    Raises
    ------
    SuiteErrors
        If the file can be read as none of the four.
    """
    head = stream.read(4096)
    stream.seek(0)
    if head.startswith(b"PAR1"):
        return _read_parquet(stream, path)
    text_head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text_head or text_head[:1] in (b"{", b"[") or b"\x00" in head:
        return read_records(stream, path)
    return read_csv(stream, path)


def read_csv(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each row of a CSV file with a heading; commas, semicolons or tabs divide it."""
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    line = 1
    try:
        first = text.readline()
        text.seek(0)
        delimiter = max(_DELIMITERS, key=first.count)
        reader = csv.DictReader(text, delimiter=delimiter, strict=True)
        names = list(reader.fieldnames or ())
        if len(set(names)) < len(names) or not all(name.strip() for name in names):
            raise unusable_file_error(path, "each column needs a name of its own", line=1)
        line = reader.line_num + 1
        for row in reader:
            defects = [("", f"has more cells than the {len(names)} columns")] if None in row else []
            raw = delimiter.join(map(str, row.values()))[:400].encode("utf-8", "replace")
            defects = defects or record_defects(row)
            yield ParsedLine(line, None if defects else row, defects, raw)
            line = reader.line_num + 1
    except UnicodeDecodeError as exc:
        raise unusable_file_error(path, "is not UTF-8; save the file as CSV UTF-8") from exc
    except csv.Error as exc:
        raise unusable_file_error(path, f"is no CSV file: {exc}", line=line) from exc
    finally:
        text.detach()


def _read_parquet(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each row of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        line = 0
        for batch in parquet.ParquetFile(stream).iter_batches(1000):
            for row in batch.to_pylist():
                line += 1
                record = {name: _plain(cell) for name, cell in row.items()}
                defects = record_defects(record)
                raw = json.dumps(record, ensure_ascii=False)[:400].encode("utf-8", "replace")
                yield ParsedLine(line, None if defects else record, defects, raw)
    except (pa.ArrowException, OSError) as exc:
        message = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise unusable_file_error(path, f"is no whole Parquet file: {message}") from exc


def _plain(value: Any) -> Any:
    """Return a value of Parquet as JSON has it: times and decimals as text, NaN as null."""
    if isinstance(value, dict):
        return {str(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
