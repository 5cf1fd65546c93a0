"""The title of the browser's tab: the page, with the run or the item of its address."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

import cotlab
from cotlab.store.database import Store
from cotlab.store.run_names import edit_run
from cotlab.ui.navigation import MAX_NAME_CHARACTERS
from tests.support.pages import opened, opened_item, opened_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store and the id of its run of two items."""
    folder = tmp_path_factory.mktemp("titles") / "store"
    run_id = cotlab.run_suite(
        "wordproblems", store=folder, model="faithful-a", mode=["remove"], limit=2
    ).run_id
    return folder, run_id


def set_run_name(run_id: str, name: str) -> None:
    with Store().writing() as connection:
        edit_run(connection, run_id, "ann", name=name)


@pytest.fixture
def run_id(run: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COTLAB_STORE", str(run[0]))
    set_run_name(run[1], "")
    return run[1]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the titles that pages give to the tab, in the order of their calls."""
    names: list[str] = []
    set_config = st.set_page_config

    def record(**settings: object) -> None:
        names.append(str(settings.get("page_title")))
        set_config(**settings)  # type: ignore[arg-type]

    monkeypatch.setattr(st, "set_page_config", record)
    return names


def test_a_tab_is_named_after_page_and_run(run_id: str, shown: list[str]) -> None:
    opened_item(run_id, "wp-0-0001")
    assert shown[-1] == f"Items · {run_id} · cotlab"
    titles = {
        "verdict": f"Run · {run_id} · cotlab",
        "steps": f"Steps · {run_id} · cotlab",
        "label": "Label · cotlab",  # judged blind
        "compare": "Compare · cotlab",
    }
    for place, title in titles.items():
        opened(place, run=run_id)
        assert shown[-1] == title
    opened("steps")  # the page chooses the run itself
    assert shown[-1] == f"Steps · {run_id} · cotlab"


def test_a_name_stands_for_the_run_and_is_bounded(run_id: str, shown: list[str]) -> None:
    set_run_name(run_id, "night run <b>")
    opened_item(run_id, "wp-0-0000")
    assert shown[-1] == "Items · night run <b> · cotlab"
    set_run_name(run_id, "n" * 80)
    opened_run(run_id)
    assert shown[-1] == f"Run · {'n' * (MAX_NAME_CHARACTERS - 1)}… · cotlab"


def test_no_control_character_of_an_address_is_in_a_title(run_id: str, shown: list[str]) -> None:
    strange = "z\x1b]0;\u202eno\n" + "z" * 200
    opened("verdict", "Run", run=strange)
    assert shown[-1] == "Run · cotlab"
    set_run_name(run_id, strange[:60])
    opened("verdict", run=run_id)
    assert shown[-1].isprintable()
