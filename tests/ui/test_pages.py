"""Every page opens through the real entry script, on an empty and on a filled store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.ui.places import PAGE_BY_PLACE, PAGES
from cotlab.ui.text import escape_markdown
from tests.support.linked import linked_view
from tests.support.pages import app_at, titles

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $\\frac{1}{2}$ :red[no] =SUM(A1)"
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store with a run of the faithful organism in every mode, and the run's id."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    modes = ["remove", "truncate", "corrupt", "paraphrase", "filler"]
    return (
        folder,
        cotlab.run_suite(
            "wordproblems", store=folder, model="faithful-a", mode=modes, limit=12, repeats=2
        ).run_id,
    )


def open_page(name: str, **query: str) -> AppTest:
    return app_at(name, **query).run()


def check(app: AppTest, title: str) -> None:
    assert not app.exception, [e.value for e in app.exception]
    assert title in titles(app)


QUESTION = "Can this model's chain of thought be trusted?"
TITLES = {place: page.title for place, page in PAGE_BY_PLACE.items()} | {"home": QUESTION}
"""The heading of each page and tab; a new one is found in the navigation."""


def test_every_page_is_opened() -> None:
    files = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
    assert sorted(page.name for page in PAGES) == files and "home" in files


@pytest.mark.parametrize("name", TITLES)
def test_every_page_opens_on_an_empty_store(name: str) -> None:
    check(open_page(name), TITLES[name])


@pytest.mark.parametrize("name", TITLES)
def test_every_page_opens_on_a_filled_store(
    name: str, filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run_id = filled
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    of_run = PAGE_BY_PLACE[name].name == "run"
    title = escape_markdown("faithful-a on wordproblems") if of_run else TITLES[name]
    check(open_page(name, run=run_id, item="wp-0-0003"), title)


def test_an_empty_store_offers_the_first_run() -> None:
    app = open_page("home")
    assert [b.label for b in app.button] == ["Run the shipped suite on two shipped models"]


def test_home_shows_the_latest_run_with_its_interval(
    filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve items are too few for a verdict, and their numbers are there all the same."""
    folder, run_id = filled
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    app = open_page("home")
    assert linked_view(app, "verdict")["headline"] == "Cannot say: 12 items are too few."
    (row,) = linked_view(app, "table")["rows"]
    assert row[0]["text"] == "faithful-a · wordproblems" and row[1]["text"] == "cannot say"
    assert row[2] == {"text": "100", "small": "[75.8, 100]"}  # Wilson: 12 / (12 + 1.96²)
    assert linked_view(app, "table")["addresses"] == [f"/run?run={run_id}"]


def test_a_run_says_how_often_replies_restate_the_removed_step(
    filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the sentence of a model that answers with one number: none restates a step."""
    folder, run_id = filled
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    captions = [caption.value.replace("\\", "") for caption in open_page("run", run=run_id).caption]
    assert any("replies without a step (0%) restate that step." in text for text in captions)


def test_the_figure_on_steps_draws_the_stored_means(
    filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that every point of the mode corrupt is 1.

    Corrupting any step of the faithful organism's chain changes its answer.
    """
    folder, run_id = filled
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    app = open_page("steps", run=run_id)
    charts = [json.loads(e.proto.spec) for e in app.get("plotly_chart")]
    traces = [t for t in charts[0]["data"] if t.get("name") == "corrupt"]
    assert traces and all(x == 1 for t in traces for x in _numbers(t["x"]))


def _numbers(values: Any) -> list[float]:
    if isinstance(values, dict):
        import base64

        import numpy as np

        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()
    return [v for v in values if v is not None]


def test_an_unknown_run_is_said_and_not_raised() -> None:
    app = open_page("run", run="nope")
    check(app, "Run")
    assert "There is no run nope in this store." in [i.value for i in app.info]


def test_a_tab_that_does_not_exist_is_said_and_the_first_is_shown(
    filled: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run_id = filled
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    app = open_page("run", run=run_id, tab="<b>none")
    assert not app.exception
    assert len([text for text in app.warning if "tab = " in text.value.replace("\\", "")]) == 1
    assert linked_view(app, "verdict")
