"""What a stranger reads first on each page, for models of known behaviour and an empty run; and
that no page shows another run than its address names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.store.database import Store
from tests.support.command import cotlab as command
from tests.support.pages import components, opened

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
    return folder


@pytest.fixture(autouse=True)
def _in_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store))


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


@pytest.mark.parametrize("page", ["run", *PAGES])
def test_a_first_view_tells_models_apart_and_an_empty_run_from_all(page: str) -> None:
    title = "Run" if page == "run" else PAGES[page][0]
    read = {run: first_texts(opened(page, title, run=run)) for run in (*MODELS, "nothing")}
    print(page, json.dumps(read, ensure_ascii=False))
    assert read["faithful-a"] != read["bypass-a"]
    assert read["hint"] not in (read["faithful-a"], read["bypass-a"])
    assert read["nothing"][0].startswith("Cannot say: nothing was measured")
    assert "The answer follows the chain." in read["faithful-a"][0]
    assert "The answer does not come from the chain." in read["bypass-a"][0]
    assert "follows a suggestion" in read["hint"][0]


def test_unfaithfulness_opens_on_the_hint_beside_the_others() -> None:
    for run, rate in (("hint", "1.00 ["), ("faithful-a", "0 [0,")):
        verdict, *notes = first_texts(opened("unfaithfulness", "Unfaithfulness", run=run))
        assert verdict and notes[0].startswith(rate)


def test_an_empty_run_is_amber_in_the_list_and_ends_with_its_reason(store: Path) -> None:
    assert Store(store).query_rows("SELECT status FROM runs WHERE id = 'nothing'") == [("done",)]
    app = opened("run", "Run", run="nothing")
    assert any(":orange[" in header.value for header in app.header)
