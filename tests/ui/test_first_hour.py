"""The first hour: a question sets the scorers of a run, and Home proposes a chain to read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from cotlab.core.registry import SCORERS
from cotlab.run import launch
from cotlab.run.config import DEMO_MODELS, demo_options, read_config
from cotlab.store.database import Store
from cotlab.ui import cached
from cotlab.ui.new_run.questions import ALL_QUESTIONS, QUESTIONS, question_settings
from cotlab.ui.next_steps import propose_chain
from tests.support.pages import opened, opened_item

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with both runs of the demonstration, of few items."""
    at = tmp_path_factory.mktemp("first") / "store"
    for model in DEMO_MODELS:
        launch.start_run(read_config({**demo_options(model), "limit": 3}), Store(at), run_id=model)
    return at


@pytest.mark.parametrize("name", [*QUESTIONS, ALL_QUESTIONS])
def test_a_question_sets_scorers_modes_and_chain(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    settings = question_settings(name)
    read_config({**settings, "model": "r100"})  # a run can be made of them
    assert set(settings["scorer"]) <= set(SCORERS)
    for app in (
        opened("new_run", "New run", question=name),
        opened("new_run", "New run").button_group(key="pick-question").set_value(name).run(),
    ):
        assert not app.exception
        assert app.multiselect(key="new-scorer").value == settings["scorer"]
        if "mode" in settings:
            assert app.multiselect(key="new-mode").value == settings["mode"]
        assert app.selectbox(key="new-chain").value == settings["chain"]
        text = " ".join(caption.value for caption in app.caption).replace("\\", "")
        assert text.count("Its measure, tested on other texts:") == (
            len(QUESTIONS) if name == "all" else 1
        )


def test_all_questions_are_the_demonstration() -> None:
    settings, demo = question_settings(ALL_QUESTIONS), demo_options(DEMO_MODELS[0])
    assert settings == {name: demo[name] for name in settings}
    assert question_settings("nothing") == {} == question_settings(None)


@pytest.mark.parametrize(
    ("model", "note"),
    [
        ("r100", "always changes the answer"),
        ("bypass-b", "never changes the answer"),
    ],
)
def test_home_says_what_the_chain_that_it_proposes_to_read_shows(
    model: str, note: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    ((text, link, found),) = propose_chain(cached.stored_run(model))
    assert text == "Read one chain step by step" and dict(link.query)["run"] == model
    assert found.endswith(f": a step that states something else {note}")


def test_the_proposed_chain_is_one_like_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three items one never changes its answer, one always, and one in half of the cases."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    options = {**demo_options(DEMO_MODELS[0]), "limit": 3}
    launch.start_run(read_config(options), Store(tmp_path / "store"), run_id="mixed")
    with Store(tmp_path / "store").writing() as connection:
        connection.execute(
            "UPDATE scores SET value = CASE item_id WHEN 'wp-0-0000' THEN 0 WHEN 'wp-0-0001' THEN 1"
            " ELSE step % 2 END WHERE metric = 'answer_change'"
        )
        connection.execute("DELETE FROM estimates")
    ((_, link, found),) = propose_chain(cached.stored_run("mixed"))
    assert dict(link.query)["item"] == "wp-0-0002"
    assert re.search(r"changes the answer in [\d.]+ % of the cases$", found)


def test_a_run_whose_numbers_were_changed_leads_to_the_page_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    options = {"task_suite": "wordproblems", "model": "r100", "scorer": ["robustness"], "limit": 3}
    launch.start_run(read_config(options), Store(tmp_path / "store"), run_id="numbers")
    ((_, link, found),) = propose_chain(cached.stored_run("numbers"))
    assert link.page == "robustness" and dict(link.query)["view"] == "One item"
    assert ": another number in a step" in found
    opened("robustness", "Robustness", **dict(link.query))
    item = opened_item(run="numbers", item=dict(link.query)["item"])
    (back,) = [
        shown.proto
        for shown in item.get("page_link")
        if shown.proto.label == "This item with other numbers"
    ]
    assert "view=One+item" in back.query_string and "run=numbers" in back.query_string
