"""The page Robustness, on stores filled by the real scorers with replies made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Embed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Step, Suite
from cotlab.run.summary import summarise
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.text.prompts.chain import continuation_prompt
from cotlab.ui import robustness
from cotlab.ui.robustness import perturbed_text
from tests.support.linked import linked_frames
from tests.support.pages import opened

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $\\frac{1}{2}$"
SUBJECT = ModelRef("organism", "synthetic", form="continuation")
EMBEDDER = ModelRef("embedder", "letters")
CELLS = "Divergence by position and perturbation (mean, 1 − cosine)"
ITEMS = "Divergence by item and position (1 − cosine)"
ANSWERS = "Perturbed steps that change the answer (%)"
MEANS = "Robustness (R) by perturbation (mean over items, no unit)"


def make_suite(n: int) -> Suite:
    """Return chains of three steps; the first item has none."""
    chains = [
        (
            "Step 1: 7 + 5 = 12.",
            f"Step 2: 12 + {k} = {12 + k}.",
            f"Step 3: {12 + k} - 1 = {11 + k}.",
        )
        for k in range(n)
    ]
    return Suite.from_items(
        "synthetic",
        [
            Item(
                f"i-{k:02}",
                f"{HOSTILE} Ann has 7 cups and wins {k}.",
                str(11 + k),
                tuple(Step(i, text) for i, text in enumerate(chain)) if k else (),
            )
            for k, chain in enumerate(chains)
        ],
    )


def reply(request: Request) -> Reply:
    """Reply as a model that carries its last number on to the answer, or as an embedder."""
    if isinstance(request, Embed):
        counts = [sum(text.count(digit) for text in request.texts) for digit in "0123456789"]
        size = sum(v * v for v in counts) ** 0.5 or 1.0
        return Response(request.key, vectors=(tuple(v / size for v in counts),))
    assert isinstance(request, Complete)
    last = (re.findall(r"\d+", request.prefix) or ["9"])[-1]
    at = request.prefix.count("\n") + 1
    more = "" if request.prefix else f"\nStep 2: {last} - 0 = {last}. {HOSTILE}"
    return Response(
        request.key,
        text=f"Step {at}: {last} + 0 = {last}. {HOSTILE}{more}\nSo the answer is {last}.",
        finish="stop",
    )


def fill(
    folder: Path,
    n: int = 8,
    *,
    estimated: bool = True,
    embedder: bool = True,
    repeats: int = 1,
    **options: Any,
) -> str:
    """Make a store with one run of robustness and causal on ``n`` items, and return its id."""
    store, suite = Store(folder), make_suite(n)
    models = {"subject": SUBJECT} | ({"embedder": EMBEDDER} if embedder else {})
    given = {
        "robustness": {**SCORERS["robustness"].options, "fraction": 1.0, **options},
        "causal": {},
    }
    plan = Plan(
        suite.name,
        suite.digest,
        models,
        tuple(ScorerSpec(n, 1, o) for n, o in given.items()),
        repeats=repeats,
    )
    ended, log = [], ResponseLog(store.log_path)
    for name, own in given.items():
        for item in suite.items:
            program = SCORERS[name](
                item, Params(models, repeats=repeats, options=own), Peers.from_suite(suite, 42)
            )
            try:
                asked = next(program)
                while True:
                    replies = [reply(request) for request in asked]
                    log.put(
                        [
                            pair
                            for pair in zip(asked, replies, strict=True)
                            if isinstance(pair[1], Response)
                        ],
                        "run-1",
                    )
                    asked = program.send(replies)
            except StopIteration as stop:
                ended.append(write.EndedItem(name, 1, "p", item.id, stop.value))
    log.close()
    with store.writing() as connection:
        write.add_suite(connection, suite)
        write.add_run(
            connection,
            "run-1",
            plan,
            config={},
            code_version="test",
            output="",
            redacted=False,
            n_items=n,
        )
        write.add_ended(connection, "run-1", ended)
        write.set_status(connection, "run-1", "done")
    if estimated:
        summarise(store, "run-1", plan)
    return "run-1"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("robustness") / "store"
    fill(folder)
    return folder


def open_page(**query: str) -> AppTest:
    return opened("robustness", **query)


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    specs = (json.loads(element.proto.spec) for element in app.get("plotly_chart"))
    return {spec["layout"]["meta"]["title"]: spec for spec in specs}


def frame(app: AppTest, column: str) -> Any:
    tables = (*(t.value for t in app.dataframe), *linked_frames(app))
    return next(table for table in tables if column in table.columns)


def rows_of(app: AppTest) -> list[str]:
    """Return the texts of all rows of blocks."""
    return [block["text"] for e in app.get("bidi_component") for block in _blocks(e)]


def _blocks(element: Any) -> list[dict[str, Any]]:
    told = json.loads(element.proto.json or "{}")
    return list(told.get("blocks", ()))


def test_an_empty_store_leads_to_a_run_of_the_scorer() -> None:
    app = opened("robustness", "Run")
    assert "measure=robustness" in [link.proto.query_string for link in app.get("page_link")]


def test_the_filled_page_shows_its_figures_and_headlines(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    opening = open_page(run="run-1", item="i-03")
    assert set(figures(opening)) == {ANSWERS}, "R does not tell, and opens no page"
    app = open_page(run="run-1", item="i-03", more="true")
    assert set(figures(app)) == {ANSWERS, MEANS, CELLS, ITEMS}
    shown = {m.label: m.value for m in app.metric}
    assert shown["Answer changes, n = 7"] == "1.00 [0.646, 1.00]"  # Wilson, 7 of 7
    captions = [c.value.replace("\\", "") for c in app.caption]
    small = " ".join(text for text in captions if "Not validated for what they claim" in text)
    assert "[" in small and "R, n = 7: " in small and "Spread of the divergence, n = 7: " in small
    for label in (
        "Stability rate",
        "Kept under a rename",
        "Follows a changed number",
        "Moves with a changed number",
    ):
        assert f"{label}, n = " in small
    assert not app.warning


def test_a_cell_lists_its_items_with_links(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(
        run="run-1", measure="perturbed_answer_change", perturbation="numeric", position="2"
    )
    table = frame(app, "requests →")
    assert table["item"].tolist() == [f"i-{k:02}" for k in range(1, 8)] and set(table["value"]) == {
        "changed"
    }
    assert (
        table["requests →"].iloc[0]
        == "/run?run=run-1&item=i-01&score=perturbed_answer_change+chain%3Dreference"
        "%2Cgiven%3Dprefix%2Cperturbation%3Dnumeric+step%3D1&tab=items"
    )
    assert table["item →"].iloc[0] == "/run?run=run-1&item=i-01&step=2&tab=robustness"
    drawn = figures(app)["Answer changes by position and perturbation (mean, %)"]
    (framed,) = drawn["layout"]["shapes"]
    numeric = drawn["layout"]["yaxis"]["ticktext"].index("numeric")
    assert (framed["x0"] + framed["x1"]) / 2 == pytest.approx(1) and (
        framed["y0"] + framed["y1"]
    ) / 2 == pytest.approx(numeric)
    still = open_page(
        run="run-1", measure="perturbed_answer_change", perturbation="paraphrase", position="2"
    )
    assert set(frame(still, "requests →")["value"]) == {"same"}


def test_a_click_goes_into_the_address_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[dict[str, str | None]] = []
    monkeypatch.setattr(robustness, "write_address", writes.append)
    robustness._open_clicked_position([2, "numeric"])
    robustness._open_clicked_cell([1, "i-03"])
    assert writes == [
        {"position": "3", "perturbation": "numeric"},
        {"position": "2", "step": "2", "item": "i-03"},
    ]


def test_what_does_not_apply_is_hatched_and_says_why(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", perturbation="unit_swap", position="1")
    table = frame(app, "draws")
    assert set(table["value"]) == {"n/a"} and set(table["reason"]) == {
        "no rule for unit_swap applies to this step"
    }
    told = frame(app, "steps without a score").set_index("perturbation")
    assert told.loc["unit swap", "R"] == "n/a, n = 0"
    assert (
        "Divergence: no rule for unit_swap applies to this step (14)"
        in told.loc["unit swap", "steps without a score"]
    )
    assert "the item has no chain" in told.loc["numeric", "steps without a score"]


def test_one_item_shows_both_chains_side_by_side(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", item="i-03", step="2")
    (step,) = [box for box in app.selectbox if box.label == "Perturbed step"]
    assert step.value == "2"
    step.set_value("1").run()
    assert app.query_params["step"] in ("1", ["1"])
    (step,) = [box for box in app.selectbox if box.label == "Perturbed step"]
    step.set_value("2").run()
    labels = [e.label for e in app.expander]
    assert any(
        label.startswith("**numeric** · divergence 0.") and label.endswith("answer changed")
        for label in labels
    )
    assert any(
        label.startswith("**paraphrase**") and label.endswith("answer same") for label in labels
    )
    texts = rows_of(app)
    assert "Step 2: 12 + 3 = 15." in texts and "Step 3: 15 - 1 = 14." in texts
    changed = [text for text in texts if re.fullmatch(r"Step 2: 12 \+ 3 = (14|16)\.", text)]
    assert changed, texts
    told = frame(app, "perturbation")
    assert any("unit swap" in c.value and "Not measured" in c.value for c in app.caption)
    table = next(
        t.value for t in app.dataframe if {"step", "divergence", "answer"} <= set(t.value.columns)
    )
    assert table["step"].drop_duplicates().tolist() == [1, 2] and len(told)


def test_an_item_without_a_chain_says_so(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    told = open_page(run="run-1", item="i-00").info
    assert any("the item has no chain" in i.value.replace("\\", "") for i in told)


def test_without_estimates_or_embedder_the_page_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "unfinished", 3, estimated=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "unfinished"))
    app = open_page(run="run-1", more="true")
    assert "estimated when the run ends" in app.info[0].value and set(figures(app)) == {
        CELLS,
        ITEMS,
    }
    fill(tmp_path / "blind", 3, embedder=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "blind"))
    app = open_page(run="run-1", item="i-01")
    assert any("R, n = 0: n/a" in c.value.replace("\\", "") for c in app.caption)
    assert any("no model embeds the steps" in m.value.replace("\\", "") for m in app.markdown)


def test_own_chains_and_several_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "own", 3, repeats=2, chain="own")
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "own"))
    app = open_page(run="run-1", item="i-01")
    assert any("the model's own" in c.value for c in app.caption)
    assert any(n.label == "Draw of 2" for n in app.number_input)
    assert any(text.startswith("Step 1: 9 + 0 = 9.") for text in rows_of(app))


@pytest.mark.parametrize("form", ["continuation", "prefill", "chat"])
@pytest.mark.parametrize("before", [(), ("Step 1: a.", "Step 2:\nb.")])
def test_the_perturbed_step_is_read_from_the_request(form: Any, before: tuple[str, ...]) -> None:
    prompt = continuation_prompt("Q? $x$", (*before, "Step: c\nd = 4."), form)
    asked = {
        "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
        "prefix": prompt.prefix,
    }
    found = perturbed_text(asked, "Q? $x$", before, form)
    assert found == "Step: c\nd = 4."
    assert perturbed_text(asked, "Another?", before, form) is None
    assert (
        perturbed_text(
            {"messages": [{"content": "sha256:1"}], "prefix": ""}, "Q? $x$", before, "chat"
        )
        is None
    )
    assert perturbed_text(None, "Q?", before, form) is None
