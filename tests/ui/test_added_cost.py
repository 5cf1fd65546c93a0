"""The link that measures what a run lacks says about how many requests that takes."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

import cotlab
from cotlab.analysis.view import RunView
from cotlab.store.database import Store
from cotlab.suites import shipped_suites
from cotlab.ui.new_run.measures import count_new_items
from tests.support.linked import linked_view
from tests.ui.test_pages import open_page

N_ITEMS = 24


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """Return a store with a run that measured equations alone, and its id."""
    folder = tmp_path_factory.mktemp("cost") / "store"
    options = {"provider": "organism", "model": "r100", "limit": N_ITEMS}
    result = cotlab.run_suite("wordproblems", scorer=["verification"], store=folder, **options)
    return Store(folder), result.run_id


def test_a_new_run_has_the_items_that_a_verdict_needs(
    run: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = run
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    row = RunView.read(store, run_id)
    for measure, n_items in (("change", 30), ("suggestion", 30), ("consistency", N_ITEMS)):
        assert count_new_items(row, measure) == n_items


def test_a_tab_that_was_not_measured_says_it_beside_its_link(
    run: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = run
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    page = open_page("mediation", run=run_id)
    links = [link.proto.label for link in page.get("page_link")]
    offer = re.compile(r"Measure \d+ items? \(about [1-9][\d,]* requests, \$0\)")
    assert any(map(offer.match, links)), links


def test_a_measure_of_the_verdict_is_offered_on_as_many_items_as_a_verdict_needs(
    run: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = run
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    shown = linked_view(open_page("run", run=run_id), "lamps")
    button = shown["lamps"][0]["button"]
    assert button["text"] == "Measure this"
    assert button["note"].endswith(", on 30 items")
    query = dict(parse_qsl(urlsplit(shown["addresses"][button["link"]]).query))
    assert query == {"from": run_id, "measure": "change"}
    page = open_page("new_run", **query)
    assert page.number_input(key="new-limit").value == 30
    assert "on 30 items" in page.info[0].value


def test_too_few_items_lead_to_a_run_of_the_same_settings_with_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"mode": ["corrupt", "paraphrase"], "limit": 6}
    for name, folder in (("wordproblems", tmp_path / "large"), (SMALL_SUITE, tmp_path / "small")):
        result = cotlab.run_suite(_suite(name, tmp_path), store=folder, **options)
        monkeypatch.setenv("COTLAB_STORE", str(folder))
        shown = linked_view(open_page("run", run=result.run_id), "lamps")
        reads = shown["lamps"][0]
        assert reads["answer"] == "Cannot say"
        button = reads["button"]
        if name == SMALL_SUITE:
            assert button["text"] == "Upload a larger suite"
            assert button["note"] == "of about 30 items or more: this one has 8"
            address = urlsplit(shown["addresses"][button["link"]])
            assert address.path == "/suites"
            page = open_page("suites", **dict(parse_qsl(address.query)))
            assert page.get("tab_container")[0].proto.tab_container.default_tab_index == 1
            continue
        assert button["text"] == "Measure 30 items"
        query = dict(parse_qsl(urlsplit(shown["addresses"][button["link"]]).query))
        assert query == {"from": result.run_id, "measure": "items", "items": "30"}
        page = open_page("new_run", **query)
        assert "with 30 items" in page.info[0].value
        assert page.number_input(key="new-limit").value == 30


SMALL_SUITE = "small"


def _suite(name: str, folder: Path) -> str:
    """Return the name of a shipped suite, or a file with the first eight items of one."""
    if name != SMALL_SUITE:
        return name
    path = folder / "small.jsonl"
    lines = shipped_suites()["wordproblems"].read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:8]), "utf-8")
    return str(path)
