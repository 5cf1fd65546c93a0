"""The tables of a store, each declared once for its two files.

``log.sqlite`` holds them all and is the store. ``cotlab.duckdb`` is a copy for questions over many
scores: it is made again wherever it is missing, damaged, behind, or of another schema.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECLARED = {
    "suites": "digest VARCHAR, name VARCHAR, n INTEGER, file_sha256 VARCHAR, added_at TIMESTAMPTZ",
    "items": (
        "suite VARCHAR, position INTEGER, id VARCHAR, question VARCHAR, answer VARCHAR,"
        " steps VARCHAR[], category VARCHAR, meta VARCHAR"
    ),
    "runs": (
        "id VARCHAR, suite VARCHAR, suite_name VARCHAR, model VARCHAR, plan VARCHAR,"
        " plan_digest VARCHAR, config VARCHAR, code_version VARCHAR, output VARCHAR,"
        " redacted BOOLEAN, status VARCHAR, planned_at TIMESTAMPTZ, ended_at TIMESTAMPTZ,"
        " n_items INTEGER, revision INTEGER, asked BIGINT, hits BIGINT, failed BIGINT,"
        " spent_micro BIGINT, saved_micro BIGINT, note VARCHAR, estimate VARCHAR"
    ),
    "run_names": "run VARCHAR, name VARCHAR, note VARCHAR, archived_at TIMESTAMPTZ",
    "run_replies": "run VARCHAR, n_replies BIGINT",
    "constants": "run VARCHAR, scorer VARCHAR, params_digest VARCHAR, value VARCHAR",
    "ended": (
        "run VARCHAR, scorer VARCHAR, item VARCHAR, version INTEGER, params_digest VARCHAR,"
        " errors INTEGER, refusals INTEGER, ended_at TIMESTAMPTZ"
    ),
    "estimates": (
        "run VARCHAR, metric VARCHAR, facet VARCHAR, point DOUBLE, lo DOUBLE, hi DOUBLE,"
        " confidence DOUBLE, n INTEGER, n_undefined INTEGER, method VARCHAR, over_ VARCHAR,"
        " reason VARCHAR"
    ),
    "labels": (
        "id VARCHAR, run VARCHAR, item_id VARCHAR, rater VARCHAR, queue VARCHAR,"
        " reasoning VARCHAR, answer_correct BOOLEAN, modes VARCHAR[], note VARCHAR,"
        " flagged BOOLEAN, withdrawn BOOLEAN, origin VARCHAR, at_ TIMESTAMPTZ, seq BIGINT,"
        " steps_judged BOOLEAN, first_wrong_step INTEGER, step_verdicts VARCHAR[],"
        " faithful BOOLEAN, steps_digest VARCHAR"
    ),
    "queues": (
        "id VARCHAR, name VARCHAR, kind VARCHAR, made_at TIMESTAMPTZ, made_by VARCHAR,"
        " params VARCHAR"
    ),
    "queue_items": (
        "queue VARCHAR, position INTEGER, run VARCHAR, item_id VARCHAR, raters INTEGER,"
        " gold VARCHAR, reason VARCHAR"
    ),
    "calibrators": (
        "version INTEGER, method VARCHAR, params VARCHAR, weights VARCHAR, labels_digest VARCHAR,"
        " n INTEGER, n_positive INTEGER, report VARCHAR, made_at TIMESTAMPTZ, made_by VARCHAR,"
        " note VARCHAR, kind VARCHAR"
    ),
    "calibrator_choices": (
        "version INTEGER, at_ TIMESTAMPTZ, by_ VARCHAR, reason VARCHAR, seq BIGINT"
    ),
    "policies": (
        "version INTEGER, thresholds VARCHAR, capacity INTEGER, params VARCHAR,"
        " made_at TIMESTAMPTZ, made_by VARCHAR, reason VARCHAR"
    ),
    "decisions": (
        "id VARCHAR, run VARCHAR, item_id VARCHAR, domain VARCHAR, r_raw DOUBLE, r_cal DOUBLE,"
        " action VARCHAR, reason VARCHAR, low DOUBLE, high DOUBLE, calibrator INTEGER,"
        " policy INTEGER, at_ TIMESTAMPTZ, by_ VARCHAR"
    ),
    "drift_checks": (
        "id VARCHAR, reference VARCHAR, current VARCHAR, at_ TIMESTAMPTZ, by_ VARCHAR,"
        " alert BOOLEAN, reason VARCHAR, result VARCHAR"
    ),
    "audit": (
        "at_ TIMESTAMPTZ, who VARCHAR, what VARCHAR, subject VARCHAR, before VARCHAR,"
        " after VARCHAR, reason VARCHAR, seq BIGINT"
    ),
    "server_checks": (
        "run VARCHAR, provider VARCHAR, model VARCHAR, base_url VARCHAR, form VARCHAR,"
        " endpoint VARCHAR, server_version VARCHAR, findings VARCHAR, n_requests INTEGER,"
        " checked_at TIMESTAMPTZ, recorded_at TIMESTAMPTZ"
    ),
    "scores": (
        "run VARCHAR, scorer VARCHAR, metric VARCHAR, item_id VARCHAR, step INTEGER,"
        " sample INTEGER, facet VARCHAR, value DOUBLE, status VARCHAR, reason VARCHAR,"
        " where_lo INTEGER, where_hi INTEGER, evidence VARCHAR[]"
    ),
    "run_results": (
        "run VARCHAR, kind VARCHAR, revision INTEGER, status VARCHAR, rules VARCHAR,"
        " value VARCHAR, made_at TIMESTAMPTZ"
    ),
}
_ARROW_TYPES: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
}
_SQLITE_TYPES = {"DOUBLE": "REAL", "VARCHAR": "TEXT", "VARCHAR[]": "TEXT"}
"""Types in SQLite; all others are INTEGER there: times are microseconds since 1970."""
SCHEMAS: dict[str, pa.Schema] = {
    table: pa.schema(
        [
            (name, _ARROW_TYPES[kind])
            for name, kind in (column.split() for column in text.split(", "))
        ]
    )
    for table, text in _DECLARED.items()
}
"""The columns of each table of the copy, in order."""
STORED_TABLES = tuple(name for name in SCHEMAS if name not in ("scores", "run_results"))
"""Tables of the store that are columns in both files. Scores are in the column ``sheet`` of
``ended``; results are computed again where they are looked at."""
SCORE_COLUMNS = SCHEMAS["scores"].names[2:]
"""Columns of a score beside its run and its scorer."""
SQLITE_STATEMENTS = (
    *(
        f"CREATE TABLE {table} ("
        + ", ".join(
            f"{name} {_SQLITE_TYPES.get(kind, 'INTEGER')}"
            for name, kind in (column.split() for column in _DECLARED[table].split(", "))
        )
        + (", sheet BLOB, PRIMARY KEY (run, scorer, item))" if table == "ended" else ")")
        for table in STORED_TABLES
    ),
    "CREATE TABLE store (id TEXT, change INTEGER)",
    "INSERT INTO store VALUES (lower(hex(randomblob(8))), 0)",
)
"""What makes the tables in ``log.sqlite``. ``store`` holds the store's name, and how many
transactions wrote to its tables."""
COPY_SCHEMA = 9
"""Number of the schema of ``cotlab.duckdb``; earlier versions of cotlab wrote 1 to 8."""
DUCKDB_STATEMENTS = (
    *(f"CREATE TABLE {table} ({text})" for table, text in _DECLARED.items()),
    """
    CREATE VIEW current_labels AS
        SELECT * FROM (
            SELECT * FROM labels QUALIFY row_number() OVER (
                PARTITION BY run, item_id, rater ORDER BY seq DESC
            ) = 1
        ) WHERE NOT withdrawn
    """,
    "CREATE TABLE copied (version INTEGER, store VARCHAR, change BIGINT)",
)
"""What makes the tables in ``cotlab.duckdb``. ``copied`` holds the schema, and which transaction of
which store it shows."""


def to_stored(value: Any) -> Any:
    """Return a value as SQLite holds it."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    return json.dumps(value) if isinstance(value, list | tuple) else value


def from_stored(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return the values of a column of SQLite as one of the copy."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        values = [None if value is None else bool(value) for value in values]
    elif pa.types.is_list(kind):
        values = [None if value is None else json.loads(value) for value in values]
    return pa.array(values, kind)


def pack_sheet(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the scores of one scorer on one item, each of ``SCORE_COLUMNS``, as a few bytes."""
    return zlib.compress(json.dumps(list(zip(*rows, strict=True))).encode())


def unpack_sheet(sheet: bytes) -> list[list[Any]]:
    """Return the columns of ``pack_sheet``, none where there are no scores.

    Raises
    ------
    ValueError
        If the sheet was changed after it was written: zlib has a checksum.
    """
    try:
        columns: list[list[Any]] = json.loads(zlib.decompress(sheet))
    except (zlib.error, TypeError) as error:
        raise ValueError(str(error)) from error
    return columns
