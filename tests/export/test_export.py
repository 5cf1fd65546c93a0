"""From a stored run to files: which figures it has, what is in each file, and what happens without
a Chrome."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from cotlab.analysis.tables.catalogue import FIGURE_TABLES, make_all_figure_tables
from cotlab.analysis.tables.declare import FigureChoice, MissingFigure
from cotlab.analysis.view import RunView
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError
from cotlab.core.registry import FIGURES
from cotlab.export import bundle
from cotlab.export import recipe as wanted
from cotlab.export.chrome import CHROME_COMMANDS, Chrome, find_chrome
from cotlab.export.recipe import recipe_from_json
from cotlab.figures.layout import apply_style
from cotlab.figures.presets import PRESETS
from cotlab.figures.style import escape
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store

ROOT = Path(__file__).parents[2]
CHROMIUM = next((path for name in CHROME_COMMANDS if (path := shutil.which(name))), None)
POPPLER = shutil.which("pdffonts")
BESIDE = {"csv", "recipe.json", "caption.txt", "tex", "md"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run: two modes of ablation and robustness of six items, by the shipped
    organism."""
    at = tmp_path_factory.mktemp("export")
    config = {
        "task_suite": str(ROOT / "data/suites/wordproblems.jsonl"),
        "provider": "organism",
        "model": "faithful-a",
        "scorer": ["ablation"],
        "mode": ["remove", "corrupt"],
        "limit": 6,
        "output": str(at / "out"),
    }
    launch.start_run(read_config(config), Store(at / "store"), run_id="one")
    return at / "store"


@pytest.fixture
def source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunView]:
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    yield RunView.read(Store(folder), "one")


def test_a_run_has_the_figures_of_its_scorers_and_says_why_not_the_others(source: RunView) -> None:
    found = make_all_figure_tables(source)
    there = {name for name, told in found.items() if not isinstance(told, MissingFigure)}
    assert there == {
        "answer_change_scale",
        "ccs_by_position",
        "modes_by_metric",
        "rrr_by_mode",
        "ccs_ranking",
        "chain_lengths",
        "validation_doses",
    }
    assert found["span_heatmap"] == MissingFigure("the run has no scores of the scorer mediation")
    assert all(told.reason for told in found.values() if isinstance(told, MissingFigure))
    may = {name for name in FIGURE_TABLES if FIGURE_TABLES[name].is_possible_for(source)}
    # whether anybody labelled the run, or another is compared with it, is found in its table
    assert may - there == {"label_agreement", "signal_aurocs", "headline_differences"}
    assert there <= may


def test_a_choice_that_the_run_does_not_have_is_an_error(source: RunView) -> None:
    with pytest.raises(ConfigError, match="item 'nobody' is not in this run"):
        wanted.make_recipes(source, ["ccs_ranking"], FigureChoice(item="nobody"))
    with pytest.raises(ConfigError, match="no figure span_heatmap: the run has no scores"):
        wanted.make_recipes(source, ["span_heatmap"])


def test_a_caption_has_n_method_threshold_and_what_is_not_shown(source: RunView) -> None:
    (rrr, steps), _ = wanted.make_recipes(source, ["rrr_by_mode", "ccs_by_position"])
    told = bundle.figure_caption(rrr)
    assert "threshold 0.1" in told and "n = 6 items" in told and rrr.table["method"].iloc[0] in told
    assert FIGURES["rrr_by_mode"].caption in told and "<" not in told
    assert "95% intervals over items" in bundle.figure_caption(steps)
    for caption in (told, bundle.figure_caption(steps)):
        assert f"{source.model} on {source.suite_name}, 6 items (run one)." in caption


def test_files_without_a_chrome(
    source: RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_CHROME", "no-such-browser")
    told = CliRunner().invoke(
        app,
        [
            "figures",
            "one",
            "--out",
            str(tmp_path),
            "--figure",
            "rrr_by_mode",
            "--format",
            "pdf,svg",
        ],
    )
    assert (
        told.exit_code == 3
        and "apt-get install chromium" in told.output
        and "HTML, CSV and recipe" in told.output
    )
    endings = {path.name.removeprefix("rrr_by_mode.") for path in tmp_path.iterdir()}
    assert endings == {*BESIDE, "html", "one-neurips.zip"}
    page = (tmp_path / "rrr_by_mode.html").read_text("utf-8")
    assert (
        len(page) > 1_000_000
        and "Content-Security-Policy" in page
        and not any(mark in page[:2000] for mark in ("src=", "href="))
    )


def test_a_recipe_on_the_command_line_and_the_archive(
    source: RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_CHROME", "no-such-browser")
    first, again = tmp_path / "a", tmp_path / "b"
    one = CliRunner().invoke(
        app, ["figures", "one", "--out", str(first), "--figure", "rrr_by_mode", "--format", "html"]
    )
    two = CliRunner().invoke(
        app,
        [
            "figures",
            "--recipe",
            str(first / "rrr_by_mode.recipe.json"),
            "--out",
            str(again),
            "--format",
            "html",
        ],
    )
    assert (one.exit_code, two.exit_code) == (0, 0), one.output + two.output
    for ending in BESIDE:
        assert (first / f"rrr_by_mode.{ending}").read_bytes() == (
            again / f"rrr_by_mode.{ending}"
        ).read_bytes()
    with zipfile.ZipFile(first / "one-neurips.zip") as zipped:
        assert {*zipped.namelist()} == {f"rrr_by_mode.{ending}" for ending in (*BESIDE, "html")}
        told = json.loads(zipped.read("rrr_by_mode.recipe.json"))
    assert (told["run"], told["preset"], told["choice"]) == (
        "one",
        "neurips",
        {"metric": "answer_change"},
    )


def test_a_recipe_whose_table_cannot_be_drawn_is_refused(source: RunView) -> None:
    (recipe,), _ = wanted.make_recipes(source, ["rrr_by_mode"])
    document = json.loads(wanted.recipe_to_json(recipe))
    column = document["table"]["columns"].index("point")
    document["table"]["kinds"][column] = "object"
    for row in document["table"]["rows"]:
        row[column] = "much"
    document["digest"] = wanted._content_digest(document)
    with pytest.raises(ConfigError, match="values that this figure cannot show"):
        recipe_from_json(json.dumps(document))


def test_the_list_and_wrong_words(source: RunView) -> None:
    told = CliRunner().invoke(app, ["figures", "one", "--list"])
    assert (
        told.exit_code == 0
        and "rrr_by_mode\n" in told.output
        and "cmi_density: n/a, the run has no" in told.output
    )
    for words, hint in (
        (["one", "--format", "pfd"], "'pdf'"),
        (["one", "--preset", "natur"], "'nature'"),
        (["one", "--figure", "rrr"], "Unknown"),
        ([], "either a run"),
        (["one", "--recipe", "x.json"], "either a run"),
        (["--recipe", "no.json"], "cannot be read"),
    ):
        found = CliRunner().invoke(app, ["figures", *words])
        assert found.exit_code != 0 and hint in str(found.exception)


def test_the_page_shows_the_printed_form_and_its_caption(source: RunView) -> None:
    page = AppTest.from_file(str(ROOT / "cotlab/ui/main.py"), default_timeout=300)
    page.switch_page(str(ROOT / "pages/figures.py"))
    page.query_params |= {"run": "one", "figure": "ccs_ranking", "preset": "nature"}
    page.run()
    assert not page.exception and page.title[0].value == "Figures"
    (chart,) = page.get("plotly_chart")
    width = json.loads(chart.proto.spec)["layout"]["width"]
    assert width in map(round, PRESETS["nature"].look.widths_px)
    assert any("Item wp-" in text.value for text in page.text)


@pytest.mark.soak
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.skipif(POPPLER is None, reason="no pdffonts: apt-get install poppler-utils")
@pytest.mark.parametrize("preset", ["neurips", "icml"])
def test_a_pdf_has_its_fonts_no_image_and_the_venues_width(
    source: RunView, tmp_path: Path, preset: str
) -> None:
    recipes, _ = wanted.make_recipes(source)
    done = bundle.export_figures(recipes, ("pdf", "svg", "png"), PRESETS[preset])
    assert done.missing_reason == "" and find_chrome() is not None
    for recipe in recipes:
        path = tmp_path / "one.pdf"
        path.write_bytes(done.files[f"{recipe.name}.pdf"])
        fonts = _said("pdffonts", path)[2:]
        assert fonts and all(line.split()[-5:-2] == ["yes", "yes", "yes"] for line in fonts)
        assert _said("pdfimages", "-list", path)[2:] == []
        (size,) = (line.split() for line in _said("pdfinfo", path) if line.startswith("Page size"))
        (pages,) = (line.split() for line in _said("pdfinfo", path) if line.startswith("Pages"))
        assert pages[1] == "1" and any(
            abs(float(size[2]) - width) < 1
            for width in (PRESETS[preset].column_width_pt, PRESETS[preset].page_width_pt)
        )
        svg = done.files[f"{recipe.name}.svg"].decode()
        assert svg.startswith("<svg") and "<image" not in svg
        png = done.files[f"{recipe.name}.png"]
        width = int.from_bytes(png[16:20], "big")
        assert b"pHYs" in png and abs(width - float(size[2]) / 72 * 300) < 6


@pytest.mark.soak
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_hostile_text_is_drawn_as_text() -> None:
    bad = "</script><script>document.title='x'</script>`${1}` \" \\ \u2028"
    with Chrome() as chrome:
        fig = apply_style(
            go.Figure(go.Scatter(x=[1], y=[1], name=escape(bad), showlegend=True)), escape(bad)
        )
        drawn = chrome.draw(fig.update_layout(width=400), "svg").decode()
    assert "<script" not in drawn and "&#60;script&#62;" in drawn


def _said(*words: object) -> list[str]:
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
