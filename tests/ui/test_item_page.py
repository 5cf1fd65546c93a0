"""The page Item: whose chain it shows, and how a number leads to its requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.item.evidence import score_id, score_ids
from cotlab.ui.item.requests import _exchange_rows
from cotlab.ui.metric_names import metric_name
from tests.support.linked import linked_frames
from tests.support.pages import opened_item, opened_run

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return runs of a model that follows a wrong hint, by chain: its own or the suite's."""
    folder = tmp_path_factory.mktemp("item") / "store"
    scorers = ["verification", "robustness", "consistency"]
    options: dict[str, Any] = {"store": folder, "model": "hint", "scorer": scorers, "limit": 2}
    return folder, {
        c: cotlab.run_suite("wordproblems", chain=c, **options).run_id for c in ("own", "reference")
    }


@pytest.fixture
def runs(store: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("COTLAB_STORE", str(store[0]))
    return store[1]


def request_labels(app: AppTest) -> list[str]:
    return [e.label for e in app.expander if e.label.startswith("Request ")]


def texts(app: AppTest) -> list[str]:
    told: list[Any] = [json.loads(e.proto.json or "{}") for e in app.get("bidi_component")]
    return [block["text"] for one in told for block in one.get("blocks", ())]


def test_the_chain_is_the_one_that_was_scored(runs: dict[str, str]) -> None:
    own = opened_item(run=runs["own"], item="wp-0-0000")
    assert "Step 2: 15 - 2 = 0." in texts(own) and "Step 2: 15 - 2 = 13." not in texts(own)
    assert any(c.value.startswith("The model's own chain") for c in own.caption)
    suite = opened_item(run=runs["reference"], item="wp-0-0000")
    assert "Step 2: 15 - 2 = 13." in texts(suite)
    assert any(c.value.startswith("The suite's reference chain") for c in suite.caption)


def test_a_score_leads_to_its_requests_only(runs: dict[str, str]) -> None:
    scores = read.run_scores(Store(), runs["own"], item_id="wp-0-0000")
    rows = scores[scores["metric"] == "verification"]
    app = opened_item(run=runs["own"], item="wp-0-0000", score=score_ids(rows)[0])
    shown = scores[scores["metric"] != "holdout_difference"]["evidence"]
    every = len({key for found in shown for key in found})
    assert any(
        c.value == f"1 of 1 requests behind this choice; the item has {every}." for c in app.caption
    )
    key = rows["evidence"].iloc[0][0]
    assert request_labels(app) == [f"Request {key[:12]} as stored"]
    one = opened_item(run=runs["own"], item="wp-0-0000", request=key)
    assert request_labels(one) == [f"Request {key[:12]} as stored"]
    computed = opened_item(
        run=runs["reference"], item="wp-0-0000", score="verification chain=reference,link=forward"
    )
    assert any("computed from the texts" in i.value for i in computed.info)
    wrong = opened_item(run=runs["own"], item="wp-0-0000", request="<b>", score="no such")
    assert len(wrong.warning) == 2 and not any("<b>" in w.value for w in wrong.warning)


def test_a_scored_answer_and_located_parts_are_named() -> None:
    asked = {
        "kind": "logprob",
        "messages": [{"role": "user", "content": "Q"}],
        "answers": ["5.", "6."],
        "prefix": "So",
    }
    told = [(block.label, block.text) for block in _exchange_rows(asked, {"numbers": [-0.5, -2.0]})]
    assert told == [
        ("Prompt", "Q"),
        ("Assistant prefix", "So"),
        ("Scored text", "5.\n6."),
        ("log P (nats)", "-0.5, -2"),
    ]
    patched = {"kind": "patched", "messages": [{"role": "user", "content": "Q"}], "answer": "5."}
    assert [block.label for block in _exchange_rows(patched, None)] == [
        "Prompt",
        "Scored text",
        "Reply",
    ]
    place = {"located": {"pieces": ["a", "b", "c"], "positions": [[0], [1, 2]]}}
    assert (
        _exchange_rows({"messages": []}, place)[-1].text
        == "3 tokens; 2 parts were located among them"
    )


def test_the_hold_out_is_not_shown_by_item(runs: dict[str, str]) -> None:
    """Check that the hold-out's difference and chains are stored, but not shown."""
    scores = read.run_scores(Store(), runs["own"], item_id="wp-0-0000")
    of = scores["metric"] == "holdout_difference"
    inside, outside = (
        {key for found in scores[rows]["evidence"] for key in found} for rows in (of, ~of)
    )
    hidden = inside - outside
    assert hidden
    app = opened_item(run=runs["own"], item="wp-0-0000", request=sorted(hidden)[0])
    assert any("does not belong to this item" in w.value for w in app.warning)
    (table,) = [t for t in linked_frames(app) if "Measure" in t.columns]
    metrics = set(table["Measure"])
    assert metric_name("consistency") in metrics
    assert not {metric_name("holdout_difference"), "holdout_difference"} & metrics
    assert metric_name("holdout_difference") in set(
        scores["metric"].map(metric_name)  # it would be shown under this name
    )


def test_a_tab_that_the_run_did_not_measure_offers_to_measure_it(runs: dict[str, str]) -> None:
    for tab, is_measured in (("reliability", True), ("robustness", True), ("steps", False)):
        page = opened_run(runs["own"], tab)
        offers = [link.proto.query_string for link in page.get("page_link")]
        assert (f"from={runs['own']}&measure=ablation" in offers) is not is_measured


def test_findings_name_the_facet_of_each_number(runs: dict[str, str]) -> None:
    page = opened_run(runs["own"], estimates="true")
    (table,) = [t for t in linked_frames(page) if "variant" in t.columns]
    assert not table.duplicated(["metric", "variant"]).any()
    assert any("perturbation numeric" in text for text in table["variant"])


def test_the_name_of_a_score() -> None:
    facet = '{"chain": "own", "perturbation": "all"}'
    assert (
        score_id("divergence", facet, 0, 2) == "divergence chain=own,perturbation=all step=0 draw=2"
    )
    assert score_id("r_raw", "{}") == "r_raw"
