"""A text is found in questions, chains and replies, in the items that the facets leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab import run_suite
from cotlab.core.errors import ConfigError
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.run_names import edit_run
from cotlab.store.search import SearchQuery, SearchResult, hit_passage, search_texts
from tests.support.command import cotlab
from tests.support.hostile import ALL, RAW
from tests.ui.test_pages import open_page

RIGHT, FLIPPED = "i1", "i2"
UPDATES = (
    ("UPDATE scores SET value = 0, status = 'ok' WHERE metric = 'baseline_correct'", None),
    ("UPDATE scores SET value = 1 WHERE metric = 'baseline_correct' AND item_id = ?", RIGHT),
    ("UPDATE scores SET value = 0, status = 'ok' WHERE metric = 'answer_change'", None),
    ("UPDATE scores SET value = 1 WHERE metric = 'answer_change' AND item_id = ?", FLIPPED),
    ("DELETE FROM scores WHERE metric = 'answer_change' AND item_id = ?", "i3"),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of the echo model on four items, whose facets are set by hand, and its id."""
    folder = tmp_path_factory.mktemp("search")
    items = [
        {
            "item_id": f"i{k}",
            "prompt": f"Ämter: how many 100%_shells {k}? {ALL if k == 0 else ''}",
            "ground_truth": "7",
            "reference_cot": [
                {"index": 0, "text": "Count the SHELL."},
                {"index": 1, "text": f"It is {k} + 7."},
            ],
            "category": "odd" if k % 2 else "even",
        }
        for k in range(4)
    ]
    suite = folder / "s.jsonl"
    suite.write_text("\n".join(map(json.dumps, items)), "utf-8")
    store = folder / "store"
    run = run_suite(suite, store=store, provider="echo", model="echo", mode="remove").run_id
    with Store(store).writing() as connection:
        for statement, item in UPDATES:
            connection.execute(statement, [] if item is None else [item])
    return store, run


def search(filled: tuple[Path, str], text: str, **choices: object) -> SearchResult:
    return search_texts(Store(filled[0]), SearchQuery(text, **choices))  # type: ignore[arg-type]


def parts(result: SearchResult) -> set[tuple[str, str]]:
    return {(hit.item_id, hit.part) for hit in result.hits}


def test_each_part_is_found_in_any_case_and_as_plain_text(filled: tuple[Path, str]) -> None:
    assert {part for _, part in parts(search(filled, "ämter"))} == {"question", "reply"}
    assert search(filled, "100%_SHELLS 2").n_hits > 1
    steps = [hit for hit in search(filled, "2 + 7.").hits if hit.part == "step"]
    assert [(hit.item_id, hit.step, hit.is_reference_run) for hit in steps] == [("i2", 1, True)]
    for text in ("100.*shells", "%", "_", "'; DROP TABLE items; --"):
        found = search(filled, text)
        assert all(text in (hit.text or "") for hit in found.hits), text
    assert read.get_store_totals(Store(filled[0]))["items"] == 4


def test_full_word_are_not_parts_of_longer_ones(filled: tuple[Path, str]) -> None:
    assert {hit.part for hit in search(filled, "shell").hits} >= {"question", "step", "reply"}
    whole = search(filled, "shell", full_word=True)
    assert whole.n_hits and all("SHELL." in (hit.text or "") for hit in whole.hits)
    assert search(filled, "ämter", full_word=True).n_hits
    assert not search(filled, "mter", full_word=True).n_hits


def test_facets_leave_items_without_a_value_out(filled: tuple[Path, str]) -> None:
    def items(**choices: object) -> set[str]:
        return {item for item, _ in parts(search(filled, "count the", **choices))}

    assert items() == {"i0", "i1", "i2", "i3"} == items(run=filled[1])
    assert items(answer="right") == {RIGHT}
    assert items(answer="wrong") == {"i0", "i2", "i3"}
    assert items(flipped="yes") == {FLIPPED}
    assert items(flipped="no") == {"i0", "i1"}
    assert items(category="odd", answer="wrong") == {"i3"}
    assert items(run="run-7") == set()


def test_pages_of_hits_are_disjoint_and_counted(filled: tuple[Path, str]) -> None:
    store, query = Store(filled[0]), SearchQuery("shell")
    every = search_texts(store, query, limit=1000)
    pages = [search_texts(store, query, limit=5, offset=k) for k in range(0, every.n_hits, 5)]
    assert [hit for page in pages for hit in page.hits] == list(every.hits)
    assert {page.n_hits for page in pages} == {every.n_hits} == {len(every.hits)}
    behind = search_texts(store, query, limit=5, offset=every.n_hits)
    assert behind == SearchResult((), every.n_hits)


def test_an_archived_run_is_searched_where_it_is_named_or_chosen(filled: tuple[Path, str]) -> None:
    for is_archived in (True, False):
        with Store(filled[0]).writing() as connection:
            edit_run(connection, filled[1], "ann", is_archived=is_archived)
        assert bool(search(filled, "shell").n_hits) is not is_archived
        assert search(filled, "shell", run=filled[1]).n_hits
        assert search(filled, "shell", archived=True).n_hits


def test_texts_that_cannot_be_searched_are_refused(filled: tuple[Path, str]) -> None:
    for text in ("", "  ", "x" * 301, "\ud800"):
        with pytest.raises(ConfigError):
            search(filled, text)


def test_a_passage_is_one_line_around_the_match(filled: tuple[Path, str]) -> None:
    query = SearchQuery("count")
    hit = search(filled, "count").hits[0]._replace(text="a\u202e\n" * 80 + "COUNT" + " z" * 80)
    before, match, after = hit_passage(hit, query, 10)
    assert match == "COUNT" and before.startswith("…") and after.endswith("…")
    assert not {"\n", "\u202e"} & set(before + after)


def test_the_page_links_to_the_step_and_shows_texts_as_data(
    filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled[0]))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("scores of a run are read")

    for name in ("run_scores", "select_scores"):
        monkeypatch.setattr(read, name, refuse)
    app = open_page("runs", q="2 + 7.", run=filled[1])
    assert not app.exception
    (table,) = [
        json.loads(element.proto.json)
        for element in app.get("bidi_component")
        if '"Hits"' in element.proto.json
    ]
    assert f"/run?run={filled[1]}&item=i2&step=2&tab=items" in table["addresses"]
    assert any("&step=1&request=" in address for address in table["addresses"])
    assert {row[2]["passages"][1]["text"] for row in table["rows"]} == {"2 + 7."}
    app = open_page("runs", q="how many", page="99", answer="wrong")
    assert not app.exception
    hits = [element for element in app.get("bidi_component") if '"Hits"' in element.proto.json]
    assert len(json.loads(hits[0].proto.json)["rows"]) > 1  # a page behind the last is the first
    unescaped = " ".join(element.value for element in (*app.markdown, *app.caption))
    assert not [raw for raw in RAW if raw in unescaped]
    app = open_page("runs")
    assert not app.exception
    assert not any('"Hits"' in e.proto.json for e in app.get("bidi_component"))


def test_the_command_prints_hits_as_text_and_as_json(filled: tuple[Path, str]) -> None:
    store, run = filled
    assert "[2 + 7.]" in cotlab("search", "2 + 7.", "--run", run, store=store).stdout
    document = json.loads(cotlab("search", "2 + 7.", "--json", "--flipped=yes", store=store).stdout)
    assert document["n_hits"] == len(document["hits"]) > 0
    for words in (("x", "--run=run-7"), ("x", "--answer=maybe"), (" ",)):
        cotlab("search", *words, store=store, code=2)
