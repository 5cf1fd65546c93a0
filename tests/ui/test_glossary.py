"""The glossary: a metric is found by its name, its abbreviation or a word of its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.ui.components import metric_cards_by_name
from cotlab.ui.glossary import ABBREVIATIONS, CARDS_PER_PAGE, abbreviation_texts, find_cards
from tests.ui.test_pages import open_page


@pytest.mark.parametrize(
    ("text", "name"),
    [("RRR", "rrr"), ("cmi", "cmi"), ("answer change", "answer_change"), ("kappa", "judge_kappa")],
)
def test_a_word_finds_the_metric_that_is_called_so(text: str, name: str) -> None:
    assert name in [card.name for card in find_cards(text, 3)]


def test_words_of_sentences_name_no_metric() -> None:
    for text in ("the", "of", "a", "wp-0-0001", "<b>", "\\"):
        assert find_cards(text, 3) == []
    assert len(find_cards("")) == len(metric_cards_by_name())


def test_abbreviations_are_spelled_out() -> None:
    (rrr, *_) = find_cards("rrr")
    assert [text.split(":")[0] for text in abbreviation_texts(rrr)] == ["CCS", "RRR"]
    assert set(ABBREVIATIONS) >= {"CCS", "RRR", "CMI"}


def test_search_and_validation_show_the_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    for query, n_rows in (({"term": "rrr"}, 3), ({"glossary": "true"}, CARDS_PER_PAGE)):
        page = open_page("validation", **query)
        tables = [json.loads(element.proto.json) for element in page.get("bidi_component")]
        (rows,) = [table["rows"] for table in tables if table.get("title") == "Glossary"]
        assert len(rows) == n_rows
