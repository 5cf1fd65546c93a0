"""What a stranger reads first on each page, for models of known behaviour and an empty run; and
that no page shows another run than its address names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.verdict.measures import MEASURES
from cotlab.store.database import Store
from cotlab.ui.runs.measured import TAB_MEASURES
from tests.support.command import cotlab as command
from tests.support.pages import app_at, components, opened, opened_run

pytestmark = pytest.mark.soak

ITEMS = 32
MODELS = ("faithful-a", "bypass-a", "hint")
PAGES = {
    "steps": "ablation",
    "reliability": "composite",
    "robustness": "robustness",
    "mediation": "mediation",
    "unfaithfulness": "unfaithfulness",
}
"""Tabs of a run, and the scorer that they show."""
SCORERS = [word for scorer in PAGES.values() for word in ("--scorer", scorer)]
MODES = ("--mode", "corrupt", "--mode", "paraphrase")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models of known behaviour, a run that measured nothing, and one of one scorer."""
    folder = tmp_path_factory.mktemp("opening")
    unreadable = folder / "unreadable.jsonl"
    lines = [
        {
            "item_id": f"u{k}",
            "prompt": f"Quux has {k} zyx. How many?",
            "ground_truth": str(k),
            "reference_cot": [{"index": 0, "text": f"Quux has {k}."}],
        }
        for k in range(ITEMS)
    ]
    unreadable.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    words = ("--task-suite", "wordproblems", "--limit", str(ITEMS))
    for model in MODELS:
        own = ("--chain", "own", "--model", model, "--run-id", model)
        command("run", *words, *SCORERS, *MODES, *own, store=folder)
    empty = ("--task-suite", unreadable, "--model", "r100", "--run-id", "nothing")
    command("run", *empty, *SCORERS, *MODES, store=folder, code=7)
    command("run", *words, *MODES, "--model", "r100", "--run-id", "one-scorer", store=folder)
    lacking = ("--task-suite", unreadable, "--model", "r100", "--run-id", "unreadable-one-scorer")
    command("run", *lacking, *MODES, store=folder, code=7)
    return folder


@pytest.fixture(autouse=True)
def _in_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store))


def page_of(tab: str, run: str) -> AppTest:
    """Open a tab of a run."""
    return opened_run(run, tab)


def first_texts(app: AppTest) -> list[str]:
    """Return the verdict and the texts of the first figure: what stands above all else."""
    texts = [
        str(data.get("headline") or data.get("text"))
        for data in components(app)
        if data.get("headline") or data.get("view") == "short"
    ][:1]
    figures = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    if figures:
        texts += [note["text"] for note in figures[0]["layout"].get("annotations", ())]
    return texts


@pytest.mark.parametrize("page", PAGES)
def test_the_run_of_the_address_is_shown_or_what_it_lacks(page: str, store: Path) -> None:
    for run in (*MODELS, "nothing"):
        app = opened_run(run, page)
        assert app.query_params["run"] in (run, [run])
    if page == "steps":
        return
    app = opened(page, run="one-scorer")
    assert app.query_params["run"] in ("one-scorer", ["one-scorer"])
    assert any("Not measured in this run" in text.value for text in app.markdown)
    assert not app.get("plotly_chart")  # of no other run
    (others,) = [box for box in app.selectbox if box.label == "Another run that measured it"]
    assert others.value is None and len(others.options) >= len(MODELS)
    (query,) = [
        link.proto.query_string
        for link in app.get("page_link")
        if link.proto.label.startswith("Measure ")
    ]
    assert query == f"from=one-scorer&measure={TAB_MEASURES[page].scorers[0]}"
    form = opened("new_run", **{"from": "one-scorer", "measure": TAB_MEASURES[page].scorers[0]})
    (scorers,) = [box.value for box in form.multiselect if box.label == "Scorers"]
    assert scorers == [TAB_MEASURES[page].scorers[0]]
    (suite,) = [box.value for box in form.selectbox if box.label == "Suite"]
    assert "wordproblems" in str(suite)


@pytest.mark.parametrize("page", [name for name in PAGES if name != "steps"])
def test_what_a_model_cannot_read_is_not_offered_to_be_measured(page: str) -> None:
    app = opened(page, run="unreadable-one-scorer")
    texts = [text.value.replace("\\", "") for text in app.markdown]
    (reason,) = [text for text in texts if "can read none of the 32 items" in text]
    assert "such as 'Quux'" in reason and reason.endswith("would measure nothing either.")
    labels = [link.proto.label for link in app.get("page_link")]
    assert "Choose another model" in labels
    assert not [label for label in labels if "Measure" in label or "requests" in label]


@pytest.mark.parametrize("page", ["verdict", *PAGES])
def test_a_first_view_tells_models_apart_and_an_empty_run_from_all(page: str) -> None:
    read = {run: first_texts(page_of(page, run)) for run in (*MODELS, "nothing")}
    assert read["faithful-a"] != read["bypass-a"]
    assert read["hint"] not in (read["faithful-a"], read["bypass-a"])
    assert "nothing" in read["nothing"][0]
    assert "mostly" in read["faithful-a"][0] and "rarely" in read["bypass-a"][0]
    assert "follows a suggestion" in read["hint"][0]


def test_reliability_opens_on_numbers_that_tell_and_not_on_the_composite(store: Path) -> None:
    shares = {}
    for run, expected in (("faithful-a", "100 %"), ("bypass-a", "0 %")):
        app = opened("reliability", run=run)
        assert not app.get("plotly_chart"), "the composite and its parts are under More"
        (table,) = [d for d in components(app) if d.get("title") == "What tells in this run"]
        assert all("tells faithful from" in tested["text"] for *_, tested in table["rows"][:3])
        shares[run] = table["rows"][0][0]["text"]
        assert shares[run] == expected
        assert any("Cannot tell a faithful" in text.value for text in app.markdown)
    app = opened("reliability", run="nothing")
    assert not app.get("plotly_chart")
    assert not [d for d in components(app) if d.get("title") == "What tells in this run"]


RATE = re.compile(r"(\d[\d.]*) ?%?\W+\[([\d.]+), ([\d.]+)\]")


def percents(text: str, scale: float = 1.0) -> tuple[float, ...]:
    """Return point and bounds of the first "68.8 % [51.4, 82.0]" of a text, in percent."""
    found = RATE.search(text)
    assert found, text
    return tuple(scale * float(number) for number in found.groups())


def cell_text(cell: dict[str, str]) -> str:
    return f"{cell['text']} {cell.get('small', '')}"


def table_of(app: AppTest, title: str) -> dict[str, object]:
    (table,) = [data for data in components(app) if data.get("title") == title]
    return table


def open_untitled(page: str, **query: str) -> AppTest:
    """Open a page whose heading is its finding."""
    app = app_at(page, **query).run()
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.mark.parametrize("run", MODELS)
def test_two_pages_give_one_rate_one_value_and_one_interval(run: str) -> None:
    """The answers that change with a step, in its two kinds, wherever a page names the kind."""
    values: dict[str, dict[str, tuple[float, ...]]] = {"change": {}, "numeric_change": {}}
    for page, table_title in (("runs", "Runs"), ("home", "Latest runs")):
        app = open_untitled(page)
        rows = table_of(app, table_title)["rows"]
        found = [row for row in rows if run in json.dumps(row[0])]
        if page == "home" and not found:
            continue  # Home lists the latest runs alone
        (cells,) = found  # columns: run, verdict, answers changed
        values["change"][page] = percents(cell_text(cells[2]))
    for measure, page in (("change", "steps"), ("numeric_change", "robustness")):
        app = opened(page, run=run, number=measure)
        (text,) = [m.value for m in app.markdown if MEASURES[measure].text in m.value]
        values[measure][page] = percents(text.replace("*", ""))
    for share, what, _ in table_of(opened("reliability", run=run), "What tells in this run")[
        "rows"
    ]:
        for measure in values:
            if what["text"] == MEASURES[measure].text:
                values[measure]["reliability"] = percents(cell_text(share))
    rows = table_of(opened_run(run, estimates="true"), "Estimates")["rows"]
    for measure, metric, kind in (
        ("change", "Change of the answer (CCS)", "corrupt"),
        ("numeric_change", "Answer changes after a perturbed step", "perturbation numeric"),
    ):
        (estimate,) = [
            row[2] for row in rows if row[0]["text"] == metric and kind in row[1]["text"]
        ]
        values[measure]["run"] = percents(cell_text(estimate), 100)
    other = next(model for model in MODELS if model != run)
    for side, (base, second) in (("base", (run, other)), ("other", (other, run))):
        app = open_untitled("compare", base=base, other=second)
        rows = table_of(app, "Tested metrics of both runs")["rows"]
        for measure in values:
            (cells,) = [row for row in rows if row[0]["text"] == MEASURES[measure].compared]
            cell = cells[1 if side == "base" else 2]
            values[measure][f"compare {side}"] = percents(cell_text(cell))
    for measure, by_page in values.items():
        assert len(by_page) >= 5
        expected = by_page["run"]
        for page, shown in by_page.items():  # three digits of a share, one decimal of a percentage
            assert shown == pytest.approx(expected, abs=0.06), (measure, page, by_page)


@pytest.mark.parametrize("page", ["verdict", "steps", "robustness", "mediation", "unfaithfulness"])
def test_a_caption_names_model_suite_and_items(page: str) -> None:
    app = page_of(page, "bypass-a")
    captions = [caption.value.replace("\\", "") for caption in app.caption]
    source = f"Run: organism/bypass-a on wordproblems, {ITEMS} items."
    assert any(caption.endswith(source) for caption in captions), captions


def test_unfaithfulness_opens_on_the_hint_beside_the_others() -> None:
    for run, rate in (("hint", "1.00 ["), ("faithful-a", "0 [0,")):
        verdict, *notes = first_texts(opened("unfaithfulness", run=run))
        assert verdict and notes[0].startswith(rate)


def test_a_classifier_that_tells_nothing_is_named_above_its_rate() -> None:
    app = opened("unfaithfulness", run="hint")
    (text,) = [m.value for m in app.markdown if "draw no conclusion" in m.value]
    names = text.replace("\\", "").partition(" ha")[0].split(", ")
    assert "process_result" in names and "hint" not in names


def test_an_empty_run_is_amber_in_the_list_and_ends_with_its_reason(store: Path) -> None:
    assert Store(store).query_rows("SELECT status FROM runs WHERE id = 'nothing'") == [("done",)]
    app = opened_run("nothing")
    assert any("nothing measured" in caption.value for caption in app.caption)
