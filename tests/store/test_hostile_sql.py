"""Names and texts that would be SQL if they were ever joined into it: they find nothing, and change
nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cotlab.core.errors import CotlabError
from cotlab.core.types import Item, Step, Suite
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore
from cotlab.store.responses import ResponseLog
from cotlab.store.run_names import count_run_content, is_run_deleted
from cotlab.store.search import SearchQuery, search_texts

ROOT = Path(__file__).parents[2]
SQL = (
    "'; DROP TABLE suites; --",
    "' OR '1'='1",
    'x"; DELETE FROM items; --',
    "%' UNION SELECT * FROM suites --",
    "\\'; --",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of one suite whose every text is SQL."""
    found = Store(tmp_path_factory.mktemp("sql") / "store")
    items = [
        Item(f"{text} {i}", text, text, (Step(0, text),), text, {"x": text})
        for i, text in enumerate(SQL)
    ]
    with found.writing() as connection:
        write.add_suite(connection, Suite.from_items(SQL[0], items))
    return found


READS: dict[str, Callable[[Store, str], object]] = {
    "runs by words": lambda store, text: len(read.list_runs(store, text=text)),
    "run": lambda store, text: read.get_run(store, text),
    "suite": lambda store, text: read.get_suite(store, text),
    "item": lambda store, text: read.get_item(store, text, text),
    "scores": lambda store, text: len(read.run_scores(store, text, metrics=(text,), item_id=text)),
    "some scores": lambda store, text: len(
        read.select_scores(store, text, metrics=(text,), items=(text,), facet={text: text})
    ),
    "groups of scores": lambda store, text: len(read.count_score_groups(store, text)),
    "scored items": lambda store, text: read.list_scored_items(
        store, text, (text,), facet_texts=(text,), facet_values={text: text}
    ),
    "estimates": lambda store, text: len(read.run_estimates(store, text, (text,))),
    "ended": lambda store, text: len(read.list_ended_pairs(store, text)),
    "constants": lambda store, text: read.get_constants(store, text, text, text),
    "items of a run": lambda store, text: len(read.list_run_items(store, text)),
    "categories": lambda store, text: read.get_category_by_item(store, text),
    "what a run holds": lambda store, text: any(count_run_content(store, text)),
    "a deletion": lambda store, text: is_run_deleted(store, text),
    "hits in a run": lambda store, text: search_texts(store, SearchQuery("x", run=text)).n_hits,
    "hits": lambda store, text: (
        search_texts(store, SearchQuery(text, category=text, full_word=True)).n_hits
    ),
    "a live run": lambda store, text: LiveRunStore(store.log_path).get(text),
    "stop": lambda store, text: LiveRunStore(store.log_path).request_stop(text),
    "a reply": lambda store, text: ResponseLog(store.log_path).get(text),
    "requests": lambda store, text: ResponseLog(store.log_path).load_exchanges([text]),
}


@pytest.mark.parametrize("name", READS)
def test_a_name_that_is_sql_finds_nothing_and_changes_nothing(store: Store, name: str) -> None:
    before = read.get_store_totals(store), read.list_suites(store).to_dict("records")
    for text in SQL:
        try:
            assert not READS[name](store, text)
        except CotlabError as error:
            assert "Parser" not in str(error) and "syntax" not in str(error)
    assert (read.get_store_totals(store), read.list_suites(store).to_dict("records")) == before


@pytest.mark.parametrize("text", [text for text in SQL if "\\" not in text])  # DuckDB drops it
def test_a_folder_whose_name_is_sql_is_a_folder(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path / text)
    with store.writing() as connection:
        connection.execute("SELECT 1")
    assert store.path.is_file() and store.path.parent.name == text
    assert read.get_store_totals(store)["suites"] == 0


def test_texts_that_are_sql_come_back_as_they_were(store: Store) -> None:
    row = read.list_suites(store).iloc[0]
    back = read.get_suite(store, row["digest"])
    assert row["name"] == SQL[0] and [item.question for item in back.items] == list(SQL)
    assert read.get_item(store, row["digest"], f"{SQL[0]} 0").steps == (Step(0, SQL[0]),)


CHOSEN = {
    "log.py": {"name", "len(SCHEMA_STEPS)"},
    "responses.py": {"name", "', '.join(COUNT_COLUMNS)"},
    "write.py": {"table", "item_column"},
    "labels.py": {"'labels' if history else 'current_labels'"},
    "pending.py": {"_QUEUE_STATE_SQL"},
    "backup.py": {"name"},
    "check.py": {"table", "names"},
    "older.py": {
        "table",
        "selected",
        "places",
        "', '.join(names)",
        "', '.join('?' * (n + 1))",
        "', '.join((f's.{name}' for name in SCORE_COLUMNS))",
    },
    "tables.py": {
        "table",
        "text",
        "name",
        "_SQLITE_TYPES.get(kind, 'INTEGER')",
    },
    "decisions.py": {"newest_clause"},
    "run_names.py": {"table"},
    "item_scores.py": {"table"},
    "recorded_models.py": {"_KEYS_SQL"},
    "attached.py": {"_sql_literal(path)", "mode_clause"},
    "database.py": {"table", "column", "places", "', '.join(schema.names)"},
}
"""What may be joined into SQL, by file: names that the code chooses from a list of its own,
question marks, counts, and the store's path as a literal, for ATTACH takes no parameter in DuckDB
1.x."""
_SQL = re.compile(r"\s*(SELECT|INSERT|DELETE|UPDATE|DROP|ALTER|CREATE|PRAGMA|WITH|ATTACH|COPY)\s")


def joined(path: Path) -> list[str]:
    """Each value that a file joins into SQL by an f-string, with its line."""
    found: list[str] = []
    text = path.read_text("utf-8")
    if "execute" not in text and "query_" not in text:
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr) and _SQL.match(
            "".join(p.value for p in node.values if isinstance(p, ast.Constant))
        ):
            values = [
                ast.unparse(part.value)
                for part in node.values
                if isinstance(part, ast.FormattedValue)
            ]
            chosen = CHOSEN.get(path.name, set())
            found += [
                f"{path.name}, line {node.lineno}: {value}"
                for value in values
                if value not in chosen
            ]
    return found


def test_no_value_is_joined_into_sql(tmp_path: Path) -> None:
    paths = (ROOT / "cotlab").rglob("*.py")
    assert [line for path in paths for line in joined(path)] == []
    (tmp_path / "bad.py").write_text("c.execute(f\"SELECT * FROM runs WHERE id = '{run}'\")\n")
    assert joined(tmp_path / "bad.py") == ["bad.py, line 1: run"]
