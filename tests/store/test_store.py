"""The store keeps exactly what it is given: round trips, replacement, rollback, schema, and what it
says when it cannot."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import SchemaMismatch, StoreError
from cotlab.core.types import Item, Score, Step, Suite
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.log import SCHEMA_STEPS
from cotlab.store.write import EndedItem
from tests.support.store_worker import ended

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
HOSTILE = TEXT | st.sampled_from(
    ["'; DROP TABLE scores; --", "NULL", "nan", "None", "", "\x00", "a\r\nb", "🙂‮evil", "{}"]
)


@st.composite
def scores(draw: st.DrawFn) -> Score:
    value = draw(st.none() | st.floats(0, 1))
    return Score(
        draw(HOSTILE),
        "item",
        value,
        step=draw(st.none() | st.integers(0, 500)),
        sample=draw(st.integers(0, 99)),
        facet=tuple(sorted(draw(st.dictionaries(HOSTILE, HOSTILE, max_size=3)).items())),
        where=draw(st.none() | st.tuples(st.integers(0, 9), st.integers(10, 99))),
        status=(
            "ok"
            if value is not None
            else draw(st.sampled_from(["undefined", "refused", "stopped", "error"]))
        ),
        reason=draw(st.none() | HOSTILE),
        evidence=tuple(draw(st.lists(HOSTILE, max_size=2))),
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def keep(store: Store, run: str, *done: EndedItem) -> None:
    with store.writing() as connection:
        write.add_ended(connection, run, done)


def as_read(run: str, score: Score) -> tuple[Any, ...]:
    """A score as its row should come back; None where the row holds NULL."""
    lo, hi = score.where or (None, None)
    return (
        score.metric,
        score.value,
        score.step,
        score.sample,
        json.dumps(dict(score.facet)),
        score.status,
        score.reason,
        lo,
        hi,
        score.evidence,
    )


def rows_of(store: Store, run: str) -> Counter[tuple[Any, ...]]:
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT metric, value, step, sample, facet, status, reason, where_lo, where_hi,"
            " evidence FROM scores WHERE run = ?",
            [run],
        ).fetchall()
    return Counter((*row[:-1], tuple(row[-1])) for row in rows)


@given(st.lists(scores(), max_size=6))
@settings(max_examples=25, deadline=None)
def test_scores_come_back_as_they_were_written(shared: Store, given_scores: list[Score]) -> None:
    run = f"run-{test_scores_come_back_as_they_were_written.count}"  # type: ignore[attr-defined]
    test_scores_come_back_as_they_were_written.count += 1  # type: ignore[attr-defined]
    keep(shared, run, EndedItem("s", 1, "p", "item", tuple(given_scores)))
    assert rows_of(shared, run) == Counter(as_read(run, s) for s in given_scores)
    frame = read.run_scores(shared, run)
    assert frame["value"].isna().sum() == sum(s.value is None for s in given_scores)
    assert frame["step"].isna().sum() == sum(s.step is None for s in given_scores)


test_scores_come_back_as_they_were_written.count = 0  # type: ignore[attr-defined]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | HOSTILE,
    lambda j: st.lists(j, max_size=2),
    max_leaves=4,
)
ITEMS = st.lists(
    st.tuples(
        HOSTILE,
        HOSTILE,
        st.none() | HOSTILE,
        st.lists(HOSTILE, max_size=3),
        HOSTILE,
        st.dictionaries(TEXT, JSON, max_size=2),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda item: item[0],
)


@given(ITEMS)
@settings(max_examples=15, deadline=None)
def test_a_suite_comes_back_as_it_was_written(shared: Store, told: list[Any]) -> None:
    suite = Suite.from_items(
        "s",
        [
            Item(i, q, a, tuple(Step(n, t) for n, t in enumerate(steps)), c, meta)
            for i, q, a, steps, c, meta in told
        ],
    )
    with shared.writing() as connection:
        write.add_suite(connection, suite)
    back = read.get_suite(shared, suite.digest)
    assert back.items == suite.items
    assert [i.meta for i in back.items] == [i.meta for i in suite.items]
    assert Suite.from_items("s", back.items).digest == suite.digest


def test_a_redacted_suite_keeps_no_text_until_it_is_added_in_full(store: Store) -> None:
    suite = Suite.from_items(
        "s",
        [
            Item(
                "i",
                "secret question",
                "secret answer",
                (Step(0, "secret step"),),
                meta={"k": "secret meta"},
            )
        ],
    )
    with store.writing() as connection:
        write.add_suite(connection, suite, redact=True)
    assert read.is_suite_redacted(store, suite.digest)
    assert b"secret" not in store.path.read_bytes()
    with store.writing() as connection:
        write.add_suite(connection, suite)
    assert not read.is_suite_redacted(store, suite.digest)
    assert read.get_suite(store, suite.digest).items == suite.items


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_never_written(store: Store, value: float) -> None:
    with pytest.raises(ValueError, match="undefined is None"):
        keep(store, "r", EndedItem("s", 1, "p", "i", (Score("m", "i", value),)))
    assert read.run_scores(store, "r").empty


def test_a_second_result_replaces_the_first_whole(store: Store) -> None:
    for _ in range(2):
        keep(store, "r", ended("a"), ended("b"))
    bad = [Score("ccs", "a", None, status=status) for status in ("error", "refused")]
    keep(
        store, "r", EndedItem("ablation", 1, "p", "a", tuple(bad)), EndedItem("o", 1, "p", "b", ())
    )
    keep(store, "r2", ended("a"))
    left = read.run_scores(store, "r")
    assert left.groupby("item_id").size().to_dict() == {"a": 2, "b": 3}
    pairs = read.list_ended_pairs(store, "r").set_index(["scorer", "item"])
    assert len(pairs) == 3
    assert pairs.loc[("ablation", "a"), ["errors", "refusals"]].tolist() == [1, 1]


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    keep(store, "r", ended("a"))
    with pytest.raises(RuntimeError), store.writing() as connection:
        write.add_ended(connection, "r", [ended("b"), EndedItem("ablation", 1, "p", "a", ())])
        raise RuntimeError
    assert read.run_scores(store, "r").groupby("item_id").size().to_dict() == {"a": 3}


def schema(store: Store) -> list[tuple[Any, ...]]:
    with store.reading() as connection:
        return connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()


def test_an_empty_file_and_no_file_get_the_same_schema(store: Store, tmp_path: Path) -> None:
    empty = Store(tmp_path / "empty")
    empty.folder.mkdir()
    duckdb.connect(empty.path).close()
    assert schema(empty) == schema(store)
    assert {"scores", "runs", "suites", "items", "ended", "estimates"} <= {
        row[0] for row in schema(store)
    }


def test_a_newer_file_is_refused_by_name(store: Store) -> None:
    keep(store, "r", ended("a"))
    with closing(sqlite3.connect(store.log_path)) as log:
        log.execute("PRAGMA user_version = 99")
    store.path.unlink()
    for opened in (Store(store.folder).reading, Store(store.folder).writing):
        with pytest.raises(SchemaMismatch) as caught, opened():
            pass
        assert (caught.value.store_version, caught.value.supported_version) == (
            99,
            len(SCHEMA_STEPS),
        )


def test_a_file_that_is_no_database_is_kept_under_another_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    keep(store, "r", ended("a"))
    store.path.write_bytes(b"not a database" * 999)
    assert len(read.run_scores(store, "r")) == 3
    kept = store.path.with_name("cotlab.duckdb.replaced")
    assert kept.read_bytes() == b"not a database" * 999


@pytest.mark.parametrize("folder", ["file/store", "/proc/cotlab", "/proc"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="cannot be (made|opened)"),
        Store(tmp_path / folder).writing(),
    ):
        pass
