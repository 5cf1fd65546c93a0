"""The printed form of what Compare opens with has the numbers of the page."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from cotlab.analysis.compare_verdict import judge_pair
from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import FigureChoice, FigureData, MissingFigure
from cotlab.analysis.tables.several_runs import HEADLINE_FIGURE
from cotlab.analysis.view import RunView
from cotlab.core.registry import FIGURES
from cotlab.store.database import Store
from tests.support.linked import linked_view
from tests.support.pages import opened
from tests.support.stores.judged import add_measured_run
from tests.ui.test_pages import open_page


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("pairs"))
    values: dict[str, float | None] = {"change": 1.0, "control": 0.0, "moved": 0.0}
    add_measured_run(store, "follows", values)
    add_measured_run(store, "bypass", {**values, "change": 0.0})
    add_measured_run(store, "hints", {"moved": 1.0})
    add_measured_run(store, "changes", {"change": 1.0, "control": 0.0})
    return store


def printed(store: Store, *runs: str) -> FigureData | MissingFigure:
    choice = FigureChoice(runs=",".join(runs)) if len(runs) > 1 else FigureChoice()
    return make_figure_table(RunView.read(store, runs[0]), HEADLINE_FIGURE, choice)


def test_it_has_the_numbers_of_the_page(store: Store) -> None:
    result = printed(store, "follows", "bypass")
    assert isinstance(result, FigureData)
    pair = judge_pair(store, "follows", "bypass", ("follows", "bypass"))
    numbers = [
        (entry.difference.point, entry.difference.lo, entry.row.n) for entry in pair.differences
    ]
    assert list(result.table[["point", "lo", "n"]].itertuples(index=False, name=None)) == numbers
    assert result.table["point"].iloc[0] == -1.0 and "(run follows); other: " in result.note
    figure = FIGURES["paired_differences"](result.table)
    assert "−1.00" in str(figure.to_dict())


def test_what_cannot_be_compared_says_why(store: Store) -> None:
    alone = printed(store, "follows")
    assert isinstance(alone, MissingFigure) and "it takes another run" in alone.reason
    apart = printed(store, "hints", "changes")
    assert isinstance(apart, MissingFigure) and "no metric" in apart.reason


def test_the_page_links_to_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    page = open_page("compare", base="follows", other="bypass")
    assert not page.exception
    (link,) = [link for link in page.get("page_link") if link.proto.label == "Use in paper"]
    query = dict(parse_qsl(link.proto.query_string))
    assert query == {"run": "follows", "figure": HEADLINE_FIGURE, "runs": "follows,bypass"}
    figures = opened("figures", **query)
    assert not figures.exception and not figures.warning and not figures.info
    shown = linked_view(page, "table")
    assert shown["title"] == "Tested metrics of both runs"
    assert len(shown["rows"]) == len(judge_pair(store, "follows", "bypass", ("", "")).differences)
