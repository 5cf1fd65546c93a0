"""The page Item: who places the first mistake where, beside the chain, and from whom that is
hidden."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.labels import Label, steps_digest
from cotlab.core.types import Item, Score, Step, Suite
from cotlab.review.labelling.queue import make_queue
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from cotlab.ui.item.step_marks import equations_text
from tests.support.pages import opened_item
from tests.support.stores import add_run, composite

STEPS = ("Two and two are four.", "Four and one are six.", "So it is six.")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two items whose file names the first mistake; ana and bo labelled the first."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "s"))
    made = Store(tmp_path / "s")
    chain = tuple(Step(i, text) for i, text in enumerate(STEPS))
    meta = {"first_mistake": 1, "answer_correct": False}
    items = [Item(f"i-{k}", f"Question {k}?", "5", chain, "", meta) for k in range(2)]
    ended = [composite(item, 0.5, {}, correct=0.0) for item in items]
    add_run(made, "run-1", Suite.from_items("small", items), ended)
    at, digest = datetime(2026, 11, 22, tzinfo=UTC), steps_digest(STEPS)
    labels = [
        Label(
            f"l-{rater}",
            "run-1",
            "i-0",
            rater,
            "not_acceptable",
            False,
            at,
            steps_judged=True,
            first_wrong_step=first,
            step_verdicts=("correct", "wrong", None) if first == 1 else (),
            steps_digest=digest,
        )
        for rater, first in (("ana", 1), ("bo", 2))
    ]
    with made.writing() as connection:
        add_labels(connection, labels)
    return made


def marks(app: AppTest) -> list[str]:
    """What stands beside each step of the chain."""
    told = [json.loads(e.proto.json or "{}") for e in app.get("bidi_component")]
    (chain,) = [
        data["blocks"]
        for data in told
        if [block["text"] for block in data.get("blocks", [])] == list(STEPS)
    ]
    return [block["score"] for block in chain]


def show(app: AppTest, text: str) -> AppTest:
    (toggle,) = [t for t in app.toggle if t.label == text]
    toggle.set_value(True).run()
    assert not app.exception
    return app


def test_marks_stand_beside_the_chain_once_the_labels_are_shown(store: Store) -> None:
    app = opened_item("run-1", "i-0")
    assert marks(app) == ["", "", ""]
    show(app, "Show 3 labels")
    assert marks(app) == [
        "correct: ana",
        "first mistake: ana\nfirst mistake: suite's file",
        "first mistake: bo",
    ]
    texts = [t.value for t in app.text]
    assert "The suite's file: first mistake in step 2, answer wrong" in texts
    assert "bo: not acceptable, answer wrong, first mistake in step 3" in texts


def test_nothing_is_shown_to_whom_a_queue_may_still_ask(store: Store) -> None:
    make_queue(
        store, "two each", [("run-1", "i-0", ""), ("run-1", "i-1", "")], author="t", raters=3
    )
    for item, n_hidden in (("i-0", 3), ("i-1", 1)):
        app = opened_item("run-1", item)
        app.session_state["local_rater"] = "cy"
        app.run()
        assert marks(app) == ["", "", ""] and not app.toggle
        assert any(c.value.startswith(f"{n_hidden} label") for c in app.caption)


def test_the_first_false_equation_of_the_shown_chain_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "e"))
    made = Store(tmp_path / "e")
    chain = tuple(Step(i, text) for i, text in enumerate(STEPS))
    suite = Suite.from_items("sums", [Item("i-0", "Q?", "5", chain)])
    for run, origin in (("shown", "reference"), ("other-chain", "own")):
        facet = (("chain", origin),)
        score = Score("first_mistake_step", "i-0", 1.0, facet=facet)
        add_run(
            made,
            run,
            suite,
            [write.EndedItem("verification", 1, "", "i-0", (score,))],
            scorers=["verification"],
        )
    assert "false equation" in marks(opened_item("shown", "i-0"))[1]
    hidden = opened_item("other-chain", "i-0").get("bidi_component")
    assert not any("false equation" in element.proto.json for element in hidden)


@pytest.mark.parametrize(
    ("values", "is_model_chain", "text"),
    [
        ((("own", 1.0), ("own", None), ("reference", 0.0)), True, ", no false equation"),
        ((("own", 1.0), ("reference", 0.0)), False, ""),
        ((("own", 1.0), ("own", 0.0)), True, ""),
        ((("own", None),), True, ""),
        ((), True, ""),
    ],
)
def test_the_head_says_that_no_equation_is_false_only_of_the_chain_it_shows(
    values: tuple[tuple[str, float | None], ...], is_model_chain: bool, text: str
) -> None:
    rows = [("arithmetic_ok", value, json.dumps({"chain": chain})) for chain, value in values]
    scores = pd.DataFrame(rows, columns=["metric", "value", "facet"])
    assert equations_text(scores, is_model_chain) == text
