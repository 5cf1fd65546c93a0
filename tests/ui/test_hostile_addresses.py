"""Nonsense in an address: each page says in a line what it does not have, and fails on none."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from cotlab.ui.places import PAGE_BY_PLACE
from tests.support.command import cotlab as command
from tests.support.pages import components
from tests.ui.test_pages import open_page

pytestmark = pytest.mark.soak

NONSENSE = ("<script>alert(1)</script>" + "x" * 10_000 + "😀\u202e\u00e9\x00", "9" * 10_000, "²")
SCORERS = ("ablation", "robustness", "unfaithfulness", "mediation", "composite", "verification")
MODES = ("--mode", "corrupt", "--mode", "paraphrase")
ADDRESSES: dict[str, dict[str, str]] = {
    "steps": {"run": "a"},
    "mediation": {"run": "a"},
    "robustness": {"run": "a"},
    "reliability": {"run": "a", "item": "wp-0-0001"},
    "unfaithfulness": {"run": "a"},
    "figures": {"run": "a"},
    "verdict": {"run": "a"},
    "decisions": {"run": "a"},
    "items": {"run": "a", "item": "wp-0-0001"},
    "compare": {"base": "a", "other": "b"},
    "drift": {"current": "a"},
    "runs": {"q": "the"},
    "new_run": {"from": "a"},
}
"""Addresses that pages are opened with, one parameter of which is then nonsense."""
SILENT = {"q", "labelled"}
"""Parameters that hold any text, or belong to what is not open."""
RUN_PAGES = {name for name, query in ADDRESSES.items() if "run" in query}
PAGES = sorted(PAGE_BY_PLACE)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with the scorers of all pages."""
    folder = tmp_path_factory.mktemp("nonsense")
    scorers = [word for scorer in SCORERS for word in ("--scorer", scorer)]
    for run, model in (("a", "faithful-a"), ("b", "bypass-a")):
        words = ("--task-suite", "wordproblems", "--limit", "3", *scorers, *MODES)
        command("run", *words, "--model", model, "--run-id", run, store=folder)
    return folder


def _messages(app: AppTest) -> set[str]:
    """Return what a page says of its address."""
    texts = {text.value for text in (*app.warning, *app.info, *app.error)}
    return texts | {str(data["note"]) for data in components(app) if data.get("note")}


@pytest.mark.parametrize("page", PAGES)
def test_nonsense_is_named_in_a_line(
    page: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store))
    names: set[str] = set()
    with monkeypatch.context() as patch:
        for method in ("get", "get_all", "__contains__", "__getitem__"):
            original = getattr(QueryParamsProxy, method)

            def note(self: QueryParamsProxy, key: str, *rest: object, read=original) -> object:
                names.add(key)
                return read(self, key, *rest)

            patch.setattr(QueryParamsProxy, method, note)
        query = ADDRESSES.get(page, {})
        plain = _messages(open_page(page, **query))
    if page not in RUN_PAGES:
        names.discard("run")  # the sidebar reads it
    names.discard("tab")  # it names the place itself
    assert names >= set(query)
    for name in names:
        for value in NONSENSE:
            app = open_page(page, **{**query, name: value})
            place = f"{page}?{name}={value[:20]}"
            assert not app.exception, (place, [error.value for error in app.exception])
            assert set(app.query_params) - {"tab"} == {*query, name} - {"tab"}, place
            said = _messages(app) - plain
            assert name in SILENT or said, place
            assert len(said) <= 1, (place, said)
            assert all(len(text) < 400 and "\n" not in text for text in said), (place, said)
