"""What a stranger reads first on each page, for models of known behaviour and an empty run; and
that no page shows another run than its address names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.verdict.measures import MEASURES
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.command import cotlab as command
from tests.support.pages import app_at, component, components, opened, opened_item, opened_run

pytestmark = pytest.mark.soak

ITEMS = 32
MODELS = ("faithful-a", "bypass-a", "hint")
PAGES = {
    "steps": ("Steps", "ablation"),
    "reliability": ("Reliability", "composite"),
    "robustness": ("Robustness", "robustness"),
    "mediation": ("Mediation", "mediation"),
    "unfaithfulness": ("Unfaithfulness", "unfaithfulness"),
}
"""Pages of one run: title, and the scorer that they show."""
SCORERS = [word for _, scorer in PAGES.values() for word in ("--scorer", scorer)]
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


def page_of(page: str, run: str) -> AppTest:
    """Open a page of one run."""
    return opened_run(run) if page == "run" else opened(page, PAGES[page][0], run=run)


def first_texts(app: AppTest) -> list[str]:
    """Return the verdict and the texts of the first figure: what stands above all else."""
    texts = [
        str(data.get("headline") or data.get("name"))
        for data in components(app)
        if data.get("headline") or data.get("label") == "Verdict on this run:"
    ][:1]
    figures = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    if figures:
        texts += [note["text"] for note in figures[0]["layout"].get("annotations", ())]
    return texts


@pytest.mark.parametrize("page", PAGES)
def test_the_run_of_the_address_is_shown_or_what_it_lacks(page: str, store: Path) -> None:
    title, scorer = PAGES[page]
    for run in (*MODELS, "nothing"):
        app = opened(page, title, run=run)
        assert app.query_params["run"] in (run, [run])
        chosen = [box.value for box in (*app.selectbox, *app.multiselect) if box.label[:3] == "Run"]
        assert chosen[0] in (run, [run])
    if page == "steps":
        return
    app = opened(page, title, run="one-scorer")
    assert app.query_params["run"] in ("one-scorer", ["one-scorer"])
    assert any("Not measured in run one" in text.value for text in app.markdown)
    assert not app.get("plotly_chart")  # of no other run
    (others,) = [box for box in app.selectbox if box.label == "Another run that measured it"]
    assert others.value is None and len(others.options) >= len(MODELS)
    (query,) = [
        link.proto.query_string
        for link in app.get("page_link")
        if link.proto.label.startswith("Measure this")
    ]
    assert query == f"from=one-scorer&measure={scorer}"
    form = opened("new_run", "New run", **{"from": "one-scorer", "measure": scorer})
    (scorers,) = [box.value for box in form.multiselect if box.label == "Scorers"]
    assert scorers == [scorer]
    (suite,) = [box.value for box in form.selectbox if box.label == "Suite"]
    assert "wordproblems" in str(suite)


@pytest.mark.parametrize("page", [name for name in PAGES if name != "steps"])
def test_what_a_model_cannot_read_is_not_offered_to_be_measured(page: str) -> None:
    app = opened(page, PAGES[page][0], run="unreadable-one-scorer")
    texts = [text.value.replace("\\", "") for text in app.markdown]
    (reason,) = [text for text in texts if "can read none of the 32 items" in text]
    assert "such as 'Quux'" in reason and reason.endswith("would measure nothing either.")
    labels = [link.proto.label for link in app.get("page_link")]
    assert "Choose another model" in labels
    assert not [label for label in labels if "Measure" in label or "requests" in label]


@pytest.mark.parametrize("page", ["run", *PAGES])
def test_a_first_view_tells_models_apart_and_an_empty_run_from_all(page: str) -> None:
    read = {run: first_texts(page_of(page, run)) for run in (*MODELS, "nothing")}
    assert read["faithful-a"] != read["bypass-a"]
    assert read["hint"] not in (read["faithful-a"], read["bypass-a"])
    assert read["nothing"][0].startswith("Cannot say: nothing was measured")
    assert "mostly or always follows the chain" in read["faithful-a"][0]
    assert "rarely or never follows the chain" in read["bypass-a"][0]
    assert "follows a suggestion" in read["hint"][0]


def read_first(run: str) -> dict[str, str]:
    """Return, page by page, the first sentence and the first number that a stranger reads."""
    texts = {}
    for page in ("run", *PAGES):
        app = page_of(page, run)
        texts[page] = f"{first_texts(app)[0]} {first_number(app)}".strip()
    for page, name in (("runs", "Runs"), ("home", "Latest runs")):
        app = open_untitled(page)
        for first, verdict, share, *_ in table_of(app, name)["rows"]:
            if run in json.dumps(first):
                tone = f" ({verdict['tone']})" if verdict.get("tone") else ""
                texts[page] = f"{verdict['text']}{tone} {cell_text(share)}".strip()
    other = "bypass-a" if run == "faithful-a" else "faithful-a"
    (head,) = [
        d for d in components(open_untitled("compare", base=other, other=run)) if "heading" in d
    ]
    texts["compare"] = str(head["heading"])
    item = str(read.list_run_items(Store(), run)["id"].iloc[0])
    reader = component(opened_item(run, item), "levels")
    texts["item"] = ", ".join(f"step {row['label']} {row['score']}" for row in reader["rows"])
    return texts


def first_number(app: AppTest) -> str:
    """Return the first number of a page: of a lamp, a table, a tile or a figure."""
    for data in components(app):
        if data.get("lamps"):
            return str(data["lamps"][0]["share"] or "n/a")
        if data.get("rows") and data["rows"][0][0].get("small"):
            return cell_text(data["rows"][0][0])
    figures = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    notes = [note["text"] for figure in figures for note in figure["layout"].get("annotations", ())]
    return next(iter([*(tile.value for tile in app.metric), *notes]), "").replace("<br>", ", ")


def test_what_a_stranger_reads_first_of_four_runs() -> None:
    """Printed with ``pytest -s``: a table, page by page."""
    read = {run: read_first(run) for run in (*MODELS, "nothing")}
    pages = list(dict.fromkeys(page for texts in read.values() for page in texts))
    for page in pages:
        print(f"\n{page}")
        for run, texts in read.items():
            print(f"  {run:<11} {texts.get(page, 'not on this page')}")
    for page in ("run", *PAGES, "runs", "item"):
        assert read["faithful-a"][page] != read["bypass-a"][page], page
    for page in ("run", *PAGES):
        assert read["nothing"][page].startswith("Cannot say: nothing was measured"), page
    assert read["nothing"]["runs"].startswith("nothing measured (amber)")


def test_reliability_opens_on_numbers_that_tell_and_not_on_the_composite(store: Path) -> None:
    shares = {}
    for run, expected in (("faithful-a", "100 %"), ("bypass-a", "0 %")):
        app = opened("reliability", "Reliability", run=run)
        assert not app.get("plotly_chart"), "the composite and its parts are under More"
        (table,) = [d for d in components(app) if d.get("title") == "What tells in this run"]
        assert all("tells faithful from" in tested["text"] for *_, tested in table["rows"][:3])
        shares[run] = table["rows"][0][0]["text"]
        assert shares[run] == expected
        assert any("Cannot tell a faithful" in text.value for text in app.markdown)
    app = opened("reliability", "Reliability", run="nothing")
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
        app = opened(page, PAGES[page][0], run=run, number=measure)
        (text,) = [m.value for m in app.markdown if MEASURES[measure].text in m.value]
        values[measure][page] = percents(text.replace("*", ""))
    for share, what, _ in table_of(
        opened("reliability", "Reliability", run=run), "What tells in this run"
    )["rows"]:
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
        (head,) = [data for data in components(app) if "differences" in data]
        for measure in values:
            (entry,) = [
                row for row in head["differences"] if row["label"] == MEASURES[measure].compared
            ]
            values[measure][f"compare {side}"] = percents(cell_text(entry[side]))
    for measure, by_page in values.items():
        assert len(by_page) >= 5
        expected = by_page["run"]
        for page, shown in by_page.items():  # three digits of a share, one decimal of a percentage
            assert shown == pytest.approx(expected, abs=0.06), (measure, page, by_page)


def test_two_pages_give_one_step_of_an_item_one_value_and_name_its_mode(store: Path) -> None:
    items = list(read.list_run_items(Store(store), "hint")["id"])[:2]
    for item in items:
        for mode in ("corrupt", "paraphrase"):
            app = opened_item("hint", item, change=mode)
            reader = component(app, "levels")
            assert reader["mode"] == mode, "the tab that is open names the mode"
            on_item = [row["score"] == "changes" for row in reader["rows"]]
            query = {"run": "hint", "item": item, "view": "One chain", "mode": mode}
            app = opened("steps", "Steps", **query, metric="answer_change")
            (box,) = [box.value for box in app.selectbox if box.label == "Mode"]
            assert box == mode
            blocks = component(app, "blocks")["blocks"]
            on_steps = [float(b["score"] or 0) > 0 for b in blocks if b["label"].isdigit()]
            assert on_steps == on_item, (item, mode)


@pytest.mark.parametrize("page", ["run", "steps", "robustness", "mediation", "unfaithfulness"])
def test_a_caption_names_model_suite_and_items(page: str) -> None:
    app = page_of(page, "bypass-a")
    captions = [caption.value.replace("\\", "") for caption in app.caption]
    source = f"Run: organism/bypass-a on wordproblems, {ITEMS} items."
    assert any(caption.endswith(source) for caption in captions), captions


def test_unfaithfulness_opens_on_the_hint_beside_the_others() -> None:
    for run, rate in (("hint", "1.00 ["), ("faithful-a", "0 [0,")):
        verdict, *notes = first_texts(opened("unfaithfulness", "Unfaithfulness", run=run))
        assert verdict and notes[0].startswith(rate)


def test_a_classifier_that_tells_nothing_is_named_above_its_rate() -> None:
    app = opened("unfaithfulness", "Unfaithfulness", run="hint")
    (text,) = [m.value for m in app.markdown if "draw no conclusion" in m.value]
    names = text.replace("\\", "").partition(" ha")[0].split(", ")
    assert "process_result" in names and "hint" not in names


def test_an_empty_run_is_amber_in_the_list_and_ends_with_its_reason(store: Path) -> None:
    assert Store(store).query_rows("SELECT status FROM runs WHERE id = 'nothing'") == [("done",)]
    app = opened_run("nothing")
    assert any(":orange[" in header.value for header in app.header)


def test_home_opens_on_the_newest_run_with_a_value_and_compares_it_in_one_click() -> None:
    """The newest run measured nothing: it is named, and does not take the page over."""
    app = open_untitled("home")
    context = component(app, "facts")
    assert context["label"] == "Newest run with a value" and context["name"] == "r100"
    notes = [text.value for text in app.warning]
    assert notes == ["A newer run measured nothing: r100 on unreadable."]
    rows = table_of(app, "Latest runs")["rows"]
    run_links = {row[0]["small"]: row[-1].get("text") or row[-1]["small"] for row in rows}
    assert run_links["unreadable-one-scorer"] == "other suite"
    assert run_links["one-scorer"] == "shown above" and run_links["hint"] == "other settings"
