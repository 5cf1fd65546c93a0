"""The page Evaluation: empty, one run, a chosen signal, several runs, a fit, hostile names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.store.database import Store
from tests.support.linked import linked_frames
from tests.support.pages import opened, opened_run
from tests.support.stores.evaluated import N_CHAINS, N_STEPS, add_run, is_sound, suite, values
from tests.support.stores.reliability import fill

HOSTILE = "<b>x</b> [y](https://evil.example)"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store()
    named = [-1 if is_sound(k) else k % N_STEPS for k in range(N_CHAINS)]
    metrics = {"verification": values("perfect"), "weak_link": values("chance")}
    add_run(store, "one", suite(), metrics, named_steps=named)
    return store


def test_without_labels_the_page_says_where_to_get_some() -> None:
    app = opened("evaluation")
    assert app.info[0].value.startswith("No run has labelled chains yet")
    assert [link.proto.label for link in app.main.get("page_link")] == ["Label", "Upload a suite"]


def test_the_sentence_the_figure_and_the_worst_mistakes(store: Store) -> None:
    app = opened("evaluation", signal="weak_link", mistakes="true")
    assert "verification tells more than length and" in app.success[0].value.replace("\\", "")
    (spec,) = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert spec["layout"]["meta"]["title"].startswith("How well each signal ranks")
    tables = linked_frames(app)
    assert {"algebra", "geometry"} == set(tables[1]["domain"])
    links = tables[2]["item →"].tolist()
    assert len(links) == 10 and all(link.startswith("/run?run=one&item=i0") for link in links)
    assert any("PB-F1" in table and table["PB-F1"].iloc[0].startswith("1.00") for table in tables)


@pytest.mark.soak
def test_runs_are_compared_and_fits_are_measured_on_the_chosen_runs_alone(store: Store) -> None:
    add_run(store, HOSTILE, suite(), {"verification": values("weak")})
    app = opened("evaluation", runs=["one", HOSTILE])  # type: ignore[arg-type]
    differences = next(frame for frame in linked_frames(app) if "other run" in frame)
    assert differences["other run"].tolist() == [HOSTILE]
    add_run(store, "two", suite("other"), {"arithmetic_ok": values("perfect")})
    app = opened("evaluation", runs="two", fit="one")
    options = app.selectbox(key="pick-signal").options
    assert any(option.startswith("length + answer") for option in options)
    assert any(option.startswith("hazard") for option in options)


def test_what_cannot_be_evaluated_is_a_sentence(store: Store) -> None:
    app = opened("evaluation", target="faithful")
    assert "no labels to compare" in app.info[0].value.replace("\\", "")


def test_a_run_whose_chains_have_labels_leads_here(store: Store) -> None:
    unlabelled = fill(store.folder, 3, estimated=False)
    leads = {}
    for run in ("one", unlabelled):
        links = [link.proto for link in opened_run(run).main.get("page_link")]
        leads[run] = [link.query_string for link in links if link.label == "Your labels"]
    assert leads == {"one": ["runs=one&tab=evaluation"], unlabelled: []}
