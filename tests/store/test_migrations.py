"""Each older schema of the store's file is brought up to date, with its rows."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.store import migrations, read, write
from cotlab.store.database import Store

OLDER = range(1, len(migrations.MIGRATIONS))
SUITE = Suite.from_items("own", [Item("i0", "What?", "7", ())])
PLAN = Plan(
    "own",
    SUITE.digest,
    {"subject": ModelRef("echo", "echo")},
    (ScorerSpec("ablation", 1, {"modes": ["remove"]}),),
)


def schema(store: Store) -> list[tuple[str, str, str]]:
    with store.reading() as connection:
        return connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()


def older(store: Store, version: int) -> None:
    """A file as that version made it, with a run and two scores."""
    store.folder.mkdir()
    connection = duckdb.connect(store.path)
    connection.execute("CREATE TABLE schema_version (version INTEGER)")
    for number, step in enumerate(migrations.MIGRATIONS[:version], start=1):
        step(connection)
        connection.execute("INSERT INTO schema_version VALUES (?)", [number])
    write.add_suite(connection, SUITE)
    connection.execute(
        "INSERT INTO runs (id, suite, suite_name, model, plan, status, n_items) "
        "VALUES ('r', ?, 'own', 'echo/echo', '{}', 'done', 1)",
        [SUITE.digest],
    )
    connection.execute(
        "INSERT INTO scores (run, scorer, metric, item_id, value, status) VALUES ('r', 'ablation',"
        " 'ccs', 'i0', 0.5, 'ok'), ('r', 'ablation', 'ccs', 'i1', NULL, 'refused')"
    )
    connection.close()


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("reads_first", [True, False])
def test_an_older_file_gets_the_schema_of_a_new_one_and_keeps_its_rows(
    tmp_path: Path, version: int, reads_first: bool
) -> None:
    store, new = Store(tmp_path / "old"), Store(tmp_path / "new")
    older(store, version)
    if not reads_first:
        with store.writing():
            pass
    assert schema(store) == schema(new)
    row = read.get_run(store, "r")
    assert (row["status"], row["n_items"], row["estimate"]) == (
        "done",
        1,
        None,
    )  # nobody estimated what it would cost
    scores = read.run_scores(store, "r")
    assert sorted(scores["status"]) == ["ok", "refused"] and scores["value"].isna().sum() == 1
    assert read.get_suite(store, SUITE.digest) == SUITE


@pytest.mark.parametrize("version", OLDER)
def test_a_migrated_file_takes_new_runs(tmp_path: Path, version: int) -> None:
    store = Store(tmp_path / "old")
    older(store, version)
    with store.writing() as connection:
        write.add_run(
            connection,
            "new",
            PLAN,
            config={"model": "echo"},
            code_version="1",
            output="out",
            redacted=False,
            n_items=1,
            estimate={"requests": 4, "cost_usd": 0.5},
        )
    row = read.get_run(store, "new")
    assert (
        json.loads(row["estimate"]) == {"requests": 4, "cost_usd": 0.5}
        and read.plan_from_row(row) == PLAN
    )
    assert set(read.list_runs(store)["id"]) == {"r", "new"}


def test_each_step_is_done_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "old")
    older(store, 1)
    for _ in range(2):
        with Store(store.folder).reading() as connection:
            numbers = connection.execute(
                "SELECT version FROM schema_version ORDER BY version"
            ).fetchall()
        assert numbers == [(number,) for number in range(1, len(migrations.MIGRATIONS) + 1)]
