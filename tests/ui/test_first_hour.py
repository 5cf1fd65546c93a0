"""The first hour: a question sets the scorers of a run, and Home proposes a chain to read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cotlab.core.registry import SCORERS
from cotlab.run import launch
from cotlab.run.config import DEMO_MODELS, demo_options, read_config
from cotlab.store.database import Store
from cotlab.ui.new_run.questions import ALL_QUESTIONS, QUESTIONS, question_settings
from tests.support.pages import components, opened

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
        opened("new_run", question=name),
        opened("new_run").button_group(key="pick-question").set_value(name).run(),
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


def test_home_sets_the_verdicts_of_the_demonstration_side_by_side(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    home = opened("home", "Can this model's chain of thought be trusted?")
    marks = [data["mark"] for data in components(home) if data.get("view") == "verdict"]
    assert len(marks) == len(DEMO_MODELS)
    assert [link.proto.label for link in home.main.get("page_link")].count("Read one chain") == 2
