"""The pages Compare and Unfaithfulness, and the links to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.verdict.validated import UNTESTED
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Suite
from cotlab.metrics import judge as cards_judge
from cotlab.metrics import unfaithfulness as cards_unfaithfulness
from cotlab.stats.intervals import t_interval, wilson
from cotlab.store import write
from cotlab.store.database import Store
from tests.support.linked import linked_frames
from tests.support.pages import ROOT, app_at, components, opened
from tests.ui.test_pages import open_page

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run

HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(1)) $x$"
RATES = "Unfaithful responses by classifier (%)"
EARLY = "Unfaithful responses by “early_answer” (%)"
SWEEP = "Unfaithful responses by threshold (%)"
CATEGORIES = "Unfaithful responses by category (%)"
KAPPA = "Agreement of classifiers (Cohen's kappa, −1 to 1)"
JUDGED = "Judge score (mean, −10 to +10)"
LENGTH = "Length of the chain (mean, steps)"
RATIO = "Process words per result word (geometric mean, ratio)"
N = 12
SUITE = Suite.from_items(
    "s",
    [
        Item(f"i{k:02d}", f"Question {k}? {HOSTILE}", "1", (), (HOSTILE, "logic")[k % 2])
        for k in range(N)
    ],
)
RUNS = {
    "base": ({"condition": "base"}, [1.0] * N),
    "one": ({"condition": HOSTILE, "epoch": "1"}, [float(k >= 4) for k in range(N)]),
    "two": ({"condition": HOSTILE, "epoch": "2"}, [0.5 if k >= 8 else 0.25 for k in range(N)]),
}
"""Unfaithful at 0.5: 12, 8 and 4 of 12."""


def scores_of(item: Item, k: int, value: float, judged: bool) -> list[Any]:
    score = cards_unfaithfulness.UNFAITHFULNESS.score
    gone = k == 0
    found = [
        score(item, value, facet={"classifier": "early_answer"}),
        score(
            item,
            None if gone else float(k % 3 == 0),
            facet={"classifier": "truncation"},
            reason=HOSTILE if gone else None,
        ),
        cards_unfaithfulness.CHAIN_STEPS.score(item, float(k + 1), facet={"chain": "own"}),
        cards_unfaithfulness.KEYWORD_RATIO.score(item, float(k), facet={"chain": "own"}),
    ]
    return found + (
        [cards_judge.JUDGE_SCORE.score(item, float(k - 3), facet={"judge": f"j {HOSTILE}"})]
        if judged
        else []
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "store"
    store = Store(folder)
    for run_id, (tags, values) in RUNS.items():
        plan = Plan(
            "s",
            SUITE.digest,
            {"subject": ModelRef("echo", "m")},
            (ScorerSpec("unfaithfulness", 1, {}),),
            tags=tags,
        )
        ended = [
            write.EndedItem(
                "unfaithfulness",
                1,
                "p",
                item.id,
                tuple(scores_of(item, k, values[k], run_id == "one")),
            )
            for k, item in enumerate(SUITE.items)
        ]
        with store.writing() as connection:
            write.add_suite(connection, SUITE)
            write.add_run(
                connection,
                run_id,
                plan,
                config={},
                code_version="t",
                output="",
                redacted=False,
                n_items=N,
            )
            write.add_ended(connection, run_id, ended)
            write.set_status(connection, run_id, "done")
    return folder


@pytest.fixture
def store(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    return filled


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    specs = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    return {spec["layout"]["meta"]["title"]: spec for spec in specs}


def points(fig: dict[str, Any]) -> list[dict[str, Any]]:
    return [t for t in fig["data"] if t.get("hoverinfo") == "text" and t.get("x")]


RATE_NAME = "Share of unfaithful responses"
"""The name of ``unfaithful_rate`` on pages."""


def table_with(app: AppTest, column: str) -> pd.DataFrame:
    tables = (*(t.value for t in app.dataframe), *linked_frames(app))
    return next(table for table in tables if column in table.columns)


def several(run: str, *also: str, **query: str) -> AppTest:
    """Open the tab Unfaithfulness of a run with others beside it."""
    app = app_at("unfaithfulness", run=run, **query)
    app.query_params["also"] = list(also)
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def compared(**query: Any) -> AppTest:
    """Open the page Compare with everything behind "More"; its title is the sentence."""
    app = open_page("compare", **query, more="true")
    assert not app.exception, [e.value for e in app.exception]
    return app


def test_an_empty_store_says_what_to_run() -> None:
    told = [info.value for info in opened("compare").info]
    assert told[0].startswith("A comparison needs two runs")


def test_compare_shows_differences_tests_direction_and_changed_items(store: Path) -> None:
    app = compared(base="base", other=["one", "two"])
    drawn = figures(app)
    fig = drawn["Difference to the base (mean over items, no unit)"]
    assert points(
        drawn[
            "Difference to the base, unfaithful_rate: early_answer by category (mean over items, no"
            " unit)"
        ]
    )
    assert {x for t in points(fig) for x in t["x"]} >= {-4 / 12, -8 / 12}
    rows = table_with(app, "BH p").set_index(["run", "metric", "of"])
    row = rows.loc[("epoch 1", RATE_NAME, "classifier early_answer, threshold 0.5")]
    assert (row["n"], row["− / +"], row["base"], row["other"]) == ("12", "4 / 0", "1.00", "0.667")
    assert row["p"] == "0.125" and float(row["BH p"]) >= 0.125
    lost = rows.loc[("epoch 1", RATE_NAME, "classifier truncation, threshold 0.5")]
    assert lost["n"] == "11" and HOSTILE in lost["missing"]
    directions = table_with(app, "direction").set_index(["metric", "of"])["direction"]
    assert directions[RATE_NAME, "classifier early_answer, threshold 0.5"] == "2 of 2 down"
    moved = table_with(app, "change")
    assert moved["change"].tolist() == ["improved"] * 4 and moved["item"].tolist() == [
        "i00",
        "i01",
        "i02",
        "i03",
    ]
    assert moved["base →"].iloc[0] == "/run?run=base&item=i00&tab=items"
    assert "tag epoch" in table_with(app, "setting")["setting"].tolist()


def test_a_run_against_itself_or_an_unknown_one_is_told(store: Path) -> None:
    app = compared(base="base", other=["base"])
    assert any("base" in w.value for w in app.warning)
    assert len(app.multiselect[0].value) == 1 and app.multiselect[0].value[0] in ("one", "two")
    app = compared(base="base", other=["gone"])
    assert any("There is no run gone in this store" in w.value for w in app.warning)
    assert not app.multiselect  # no other pair is shown instead


def test_unfaithfulness_draws_the_wilson_dots_in_the_order_of_epochs(store: Path) -> None:
    app = several("two", "one", "base", classifier="early_answer", more="true")
    found = figures(app)
    assert {EARLY, SWEEP, CATEGORIES, KAPPA, JUDGED, LENGTH, RATIO} == set(found)
    rates = found[EARLY]
    assert rates["layout"]["xaxis"]["ticktext"] == ["base", "epoch 1", "epoch 2"]
    (trace,) = points(rates)
    assert trace["y"] == [1.0, 8 / 12, 4 / 12]
    want = [wilson(k, N) for k in (12, 8, 4)]
    lows = [y - down for y, down in zip(trace["y"], trace["error_y"]["arrayminus"], strict=True)]
    assert lows == pytest.approx([w.lo for w in want])
    assert [a["text"] for a in rates["layout"]["annotations"]] == ["n = 12"] * 3
    judge = points(found[JUDGED])[0]
    mean = t_interval([float(k - 3) for k in range(N)])
    assert judge["y"] == [2.5] and 2.5 + judge["error_y"]["array"][0] == pytest.approx(mean.hi)
    ratio = found[RATIO]
    assert (
        "n = 11" in [a["text"] for a in ratio["layout"]["annotations"]]
        and ratio["layout"]["yaxis"]["type"] == "log"
    )
    sweep = {
        t["name"]: t for t in points(found[SWEEP])
    }  # of one model: its name tells nothing apart
    assert sweep["epoch 2 (n = 12)"]["y"][::5] == pytest.approx([1.0, 1.0, 4 / 12, 0.0, 0.0])
    cells = found[KAPPA]["data"][0]
    assert cells["text"][0].endswith("n = 33"), (
        "one of twelve has no truncation score, in each of three runs"
    )


def test_classifiers_side_by_side_stand_along_the_axis(store: Path) -> None:
    app = several("one", "base")
    rates = figures(app)[RATES]
    assert rates["layout"]["yaxis"]["ticktext"] == ["truncation", "early_answer"]
    texts = [a["text"] for a in rates["layout"]["annotations"]]
    assert "100 [75.8, 100], n = 12" in texts and any("n = 11" in text for text in texts)


@pytest.mark.parametrize(
    ("classifier", "tells"),
    [("early_answer", "tells faithful from bypassing"), ("truncation", "AUROC"), ("all", "AUROC")],
)
def test_a_rate_has_what_is_known_of_its_classifier(
    store: Path, classifier: str, tells: str
) -> None:
    app = several("one", "base", classifier=classifier)
    (table,) = [d for d in components(app) if d.get("title") == "What is known of each classifier"]
    names = ["truncation", "early_answer"] if classifier == "all" else [classifier]
    assert [row[0]["text"] for row in table["rows"]] == names
    for name, (_, known) in zip(names, table["rows"], strict=True):
        assert tells in known["text"] and known["text"] != UNTESTED.text
        address = table["addresses"][known["link"]]
        assert address == f"/validation?metric=unfaithfulness+%28classifier%3D{name}%29"


def test_ticked_runs_lead_to_their_comparison_with_the_oldest_as_base(store: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from cotlab.ui import cached
from cotlab.ui.runs import list as runs
import streamlit as st
st.navigation([st.Page("{ROOT / "pages" / "compare.py"}"), st.Page(lambda: runs.render_compare_link(
    cached.stored_runs(), ["two", "base"]), title="x", default=True, url_path="x")]).run()
"""
    app = AppTest.from_string(script, default_timeout=300).run()
    assert not app.exception, [e.value for e in app.exception]
    (link,) = app.get("page_link")
    assert (
        link.proto.label == "Compare 2 runs, item by item"
        and link.proto.query_string == "base=base&other=two"
    )
