"""The page Figures: what an address chooses, and how it is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from cotlab.cli.main import app as command
from cotlab.export.recipe import recipe_from_json
from cotlab.figures.presets import PRESETS, customize_preset, print_options
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store
from tests.support.pages import opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run of two modes of ablation."""
    at = tmp_path_factory.mktemp("print") / "store"
    options = {"task_suite": "wordproblems", "model": "faithful-a", "limit": 3}
    config = read_config({**options, "mode": ["remove", "corrupt"]})
    launch.start_run(config, Store(at), run_id="a")
    return at


@pytest.fixture(autouse=True)
def _store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(folder))


def drawn(app: AppTest) -> dict[str, Any]:
    (chart,) = app.get("plotly_chart")
    spec: dict[str, Any] = json.loads(chart.proto.spec)
    return spec


def choice(app: AppTest, label: str) -> Any:
    (box,) = [box for box in app.selectbox if box.label == label]
    return box


def test_the_address_chooses_item_metric_and_mode_and_the_command_says_the_same() -> None:
    app = opened("figures", run="a", figure="ccs_ranking", mode="corrupt")
    assert choice(app, "Mode").value == "corrupt"
    second = choice(app, "Item").options[1]
    choice(app, "Item").set_value(second).run()
    assert second in app.query_params["item"] and "corrupt" in app.query_params["mode"]
    assert "metric" not in app.query_params, "nobody chose one"
    shown = app.code[0].value
    assert f"--choose item={second}" in shown and "--choose mode=corrupt" in shown
    choice(app, "Figure").set_value("rrr_by_mode").run()
    assert "item" not in app.query_params, "what belonged to the other figure is gone"
    assert not app.warning and not app.exception


def test_what_a_run_does_not_have_is_said_and_the_first_is_shown() -> None:
    app = opened("figures", run="a", figure="ccs_ranking", mode="telepathy")
    assert any("telepathy" in warning.value for warning in app.warning)
    assert len(app.get("plotly_chart")) == 1


def test_a_wrong_parameter_has_one_message_and_the_others_are_kept() -> None:
    query = {"run": "a", "figure": "ccs_ranking", "mode": "corrupt", "metric": "telepathy"}
    app = opened("figures", **query)
    (said,) = [warning.value for warning in app.warning]
    assert "telepathy" in said and "corrupt" not in said
    assert choice(app, "Mode").value == "corrupt"
    kept = opened("figures", **{k: v for k, v in query.items() if k != "metric"})
    assert drawn(app)["data"] == drawn(kept)["data"], "the figure is of the mode that is shown"


def test_width_title_and_grey_are_chosen_and_a_venue_has_its_own_width() -> None:
    app = opened("figures", run="a", figure="rrr_by_mode")
    assert not drawn(app)["layout"]["title"]["text"]
    app.toggle(key="title").set_value(True)
    app.number_input(key="width-neurips").set_value(300.0).run()
    layout = drawn(app)["layout"]
    assert layout["width"] == 471 and layout["title"]["text"]  # 400 px at a scale of 0.85
    assert "--width-pt 300 --title" in app.code[0].value
    choice(app, "Venue").set_value("icml").run()
    assert app.number_input(key="width-icml").value == PRESETS["icml"].column_width_pt
    assert "--width-pt" not in app.code[0].value


def test_the_command_prints_so_and_its_recipe_does_so_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_CHROME", "no-such-browser")
    arguments = ["figures", "a", "--figure", "ccs_ranking", "--choose", "mode=corrupt"]
    arguments += ["--format", "html", "--width-pt", "300", "--title", "--grey"]
    result = CliRunner().invoke(command, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    recipe = recipe_from_json((tmp_path / "ccs_ranking.recipe.json").read_text("utf-8"))
    assert recipe.choice["mode"] == "corrupt"
    preset = customize_preset(PRESETS[recipe.preset], recipe.print_options)
    assert (preset.column_width_pt, preset.has_title, preset.is_grey) == (300.0, True, True)
    assert print_options(preset) == recipe.print_options


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (["--choose", "mode"], "NAME=VALUE is expected"),
        (["--choose", "colour=red"], "names: item, metric"),
        (["--choose", "mode=telepathy", "--figure", "ccs_ranking"], "'telepathy' is not in"),
        (["--width-pt", "5"], "60 to 2000 pt wide, not 5"),
    ],
)
def test_what_cannot_be_printed_is_refused_in_one_message(argument: list[str], text: str) -> None:
    result = CliRunner().invoke(command, ["figures", "a", *argument])
    assert result.exit_code != 0
    said = str(result.exception) + result.output
    assert text in said and "Traceback" not in result.output
