"""A number of a verdict stands on the page that it leads to, with the items that it comes from."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs

import pytest

import cotlab
from cotlab.analysis.tables.suggestion import read_suggestion, suggestion_keys
from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.verdict.number_items import load_number_items
from cotlab.analysis.view import RunView
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.run_notes import category_split_text
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict import evidence_link
from tests.support.linked import linked_view
from tests.ui.test_pages import open_page

pytestmark = pytest.mark.soak
N_ITEMS = 32
MEASURES = ("change", "control", "alone", "moved", "admitted", "sound", "wrong")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    """Return a run of the model that follows suggestions and hides it."""
    store = Store(tmp_path_factory.mktemp("number") / "store")
    result = cotlab.run_suite(
        "wordproblems",
        model="hint",
        limit=N_ITEMS,
        scorer=["ablation", "unfaithfulness", "verification"],
        mode=["corrupt", "paraphrase"],
        chain="own",
        store=store.folder,
    )
    return RunView.from_row(store, read.get_run(store, result.run_id))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_items_make_the_number(measure: str, view: RunView) -> None:
    number = load_number_items(view, collect_evidence(view), measure)  # type: ignore[arg-type]
    assert number is not None and len(number.values) == number.share.n
    assert number.values.mean() == pytest.approx(number.share.point)
    assert number.values.between(0, 1).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_each_number_stands_on_its_page_with_its_items(
    measure: str, view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(view.store.folder))
    link = evidence_link(view.id, measure)  # type: ignore[arg-type]
    page = open_page(link.place, **dict(link.query))
    number = load_number_items(view, collect_evidence(view), measure)  # type: ignore[arg-type]
    assert number is not None
    (line,) = [m.value for m in page.markdown if escape_markdown(number.text) in m.value]
    assert re.match(r"\*\*[\d.]+ %\*\* \[[\d., ]+\] of ", line) and f"n = {N_ITEMS} items" in line
    tables = [json.loads(element.proto.json) for element in page.get("bidi_component")]
    (table,) = [t for t in tables if t.get("title") == "Items behind the number"]
    addresses = table["addresses"]
    assert len(addresses) == 5 and all(a.startswith(f"/run?run={view.id}&") for a in addresses)


def test_steps_name_the_categories_whose_mean_they_draw(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(view.store.folder))
    text = category_split_text(collect_evidence(view))
    assert text is not None and "category plain" in text and "category hinted" in text
    page = open_page("steps", run=view.id)
    assert escape_markdown(text) in [m.value for m in page.markdown]


def test_every_number_of_the_verdict_is_the_one_that_its_link_shows(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(view.store.folder))
    shown = linked_view(open_page("run", run=view.id), "verdict")
    passages = [p for sentence in shown["sentences"] for p in sentence if p["link"] is not None]
    numbers = [p for p in passages if p["is_strong"]]
    addresses = [shown["addresses"][passage["link"]] for passage in numbers]
    assert sum("among=" in address for address in addresses) == 2, "plain and hinted items"
    for passage, address in zip(numbers, addresses, strict=True):
        path, _, query = address.partition("?")
        page = open_page(path.strip("/"), **parse_qs(query))
        percent = re.match(r"[\d.]+ %", passage["text"])
        assert percent is not None
        assert any(m.value.startswith(f"**{percent[0]}**") for m in page.markdown), address


def test_a_page_without_that_number_is_as_it_was(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(view.store.folder))
    for number in ("noise", "inner_change", "<b>nothing</b>", ""):
        page = open_page("steps", run=view.id, number=number)
        assert "Back to the verdict" not in [button.label for button in page.button]


def test_an_item_shows_what_the_suggestion_changed(
    view: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = read.get_item(view.store, view.suite, view.items[0])
    scores = view.item_scores(item.id)
    keys = suggestion_keys(scores)
    reading = read_suggestion(item, scores, view.exchanges(keys), view.responses(keys))
    assert reading is not None and reading.is_followed and reading.is_mentioned is False
    added = "".join(change.text for change in reading.question if change.kind == "added")
    assert re.fullmatch(r"\s?\w+ thinks the answer is \d+\.\s?", added)
    assert reading.answer_with is not None and reading.answer_with in added
    assert reading.answer_without == item.answer != reading.answer_with
    assert [pair.is_changed for pair in reading.steps] == [False] * (len(reading.steps) - 1) + [
        True
    ]
    monkeypatch.setenv("COTLAB_STORE", str(view.store.folder))
    table = linked_view(open_page("items", run=view.id, item=item.id), "table")
    marked = [
        passage["text"]
        for row in table["rows"]
        for cell in row
        for passage in cell.get("passages", [])
        if passage.get("is_marked")
    ]
    assert marked == [added.rstrip(), reading.steps[-1].with_suggestion]


def test_a_reply_that_the_log_lost_is_no_error(view: RunView) -> None:
    item = read.get_item(view.store, view.suite, view.items[0])
    scores = view.item_scores(item.id)
    keys = suggestion_keys(scores)
    assert read_suggestion(item, scores, view.exchanges(keys), {}) is None
    assert read_suggestion(item, scores.iloc[:0], {}, {}) is None
