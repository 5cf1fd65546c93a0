"""The page Reliability, on an empty store and on one with synthetic scores."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.tables.chains import cosine_table, embedded_vectors, paraphrase_chains
from cotlab.analysis.tables.reliability import (
    chain_sources_text,
    component_correlations,
    component_scores,
    item_reliability_rows,
)
from cotlab.core.resources import data_path
from cotlab.core.types import Plan, ScorerSpec
from cotlab.stats.intervals import wilson
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.cached import reply_text
from cotlab.ui.item.chain import TextPiece, request_text
from cotlab.ui.reliability import FlagHit, mark_hits
from cotlab.validation.report import REPORT_FILE, REPORT_FOLDER
from tests.support.linked import linked_frames
from tests.support.pages import app_at, components, opened
from tests.support.stores.reliability import (
    CHAINS,
    HOSTILE,
    MODEL,
    STEPS,
    VECTORS,
    exchanges,
    fill,
    make_suite,
)

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run

PARTS = "Parts of reliability (mean over items, no unit)"
SIGNALS = "Rank correlation of the parts (Spearman's rho, −1 to 1)"
RATES = "Items in which each diagnosis fires (%)"
UNTESTED = "Parts that do not tell models apart"
METRICS = ("consistency", "robustness", "verification", "diversity", "flags", "r_raw")
BARS = "Parts of reliability in this item (no unit)"
LINKS = "Links between the steps (support, 0 to 1)"
COSINES = "Cosine of the chains (−1 to 1)"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reliability") / "store"
    fill(folder)
    return folder


def open_page(**query: str) -> AppTest:
    return opened("reliability", **query)


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    specs = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    return {spec["layout"]["meta"]["title"]: spec for spec in specs}


def table_with(app: AppTest, column: str) -> pd.DataFrame:
    tables = (*(t.value for t in app.dataframe), *linked_frames(app))
    return next(table for table in tables if column in table.columns)


def scores(folder: Path) -> pd.DataFrame:
    return read.run_scores(Store(folder), "run-1")


def test_parts_that_cannot_tell_models_apart_open_no_page(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1")
    assert any("Cannot tell a faithful from a bypassing model" in m.value for m in app.markdown)
    (untested,) = [data for data in components(app) if data.get("title") == UNTESTED]
    records = json.loads(data_path("validation.json").read_text("utf-8"))["metrics"]
    for (part, tested), metric in zip(untested["rows"], METRICS, strict=True):
        auroc = next(r["auroc"] for name, r in records.items() if name.split(" (")[0] == metric)
        assert auroc["point"] < 0.6, "the shipped report says that it does not tell"
        assert tested["text"].endswith(
            f"AUROC {auroc['point']:.2f} [{auroc['lo']:.2f}, {auroc['hi']:.2f}]"
        ), part
    shown = json.dumps(components(app)) + " ".join(
        text.value for text in (*app.markdown, *app.caption)
    )
    for row in read.run_estimates(Store(filled), "run-1").to_dict("records"):
        if row["metric"] in ("r_raw", "feature") and row["point"] not in (0, 1, None):
            assert f"{row['point']:.3f}" not in shown, row


def test_a_part_opens_the_page_once_validation_says_that_it_tells(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(filled, tmp_path / "store")
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    report = json.loads(data_path("validation.json").read_text("utf-8"))
    auroc = report["metrics"]["diversity"]["auroc"]
    for lo, opens in ((0.49, False), (0.55, True)):  # a wide interval holds chance
        auroc |= {"point": 0.7, "lo": lo, "hi": 0.9}
        path = tmp_path / "store" / REPORT_FOLDER / REPORT_FILE
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(report), "utf-8")
        os.utime(path, ns=(0, int(100 * lo)))  # another time, on every file system
        app = open_page(run="run-1")
        assert [m.label.partition(",")[0] for m in app.metric] == ["D diversity"] * opens
        if opens:
            (untested,) = [data for data in components(app) if data.get("title") == UNTESTED]
            assert len(untested["rows"]) == len(METRICS) - 1


def test_an_empty_store_leads_to_a_run_of_the_scorer() -> None:
    app = opened("reliability", "Run")
    assert "measure=composite" in [link.proto.query_string for link in app.get("page_link")]


def test_the_suite_shows_the_stored_means_and_rates(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    assert not figures(open_page(run="run-1"))
    assert set(figures(open_page(run="run-1", parts="true"))) == {PARTS}
    app = open_page(run="run-1", parts="true", more="true")
    assert set(figures(app)) == {PARTS, SIGNALS, RATES}
    estimates = read.run_estimates(Store(filled), "run-1")
    c = estimates[
        (estimates["metric"] == "feature") & estimates["facet"].str.contains('"feature": "C"')
    ].iloc[0]
    (trace,) = [
        t for t in figures(app)[PARTS]["data"] if t.get("hoverinfo") == "text" and t.get("error_x")
    ]
    assert trace["x"][0] == c["point"] and c["n"] == 11
    assert trace["x"][0] - trace["error_x"]["arrayminus"][0] == pytest.approx(c["lo"])
    fired = [t for t in figures(app)[RATES]["data"] if t.get("hoverinfo") == "text"][0]
    assert fired["x"][0] == 1.0 and fired["x"][0] - fired["error_x"]["arrayminus"][
        0
    ] == pytest.approx(wilson(11, 11).lo)
    assert {"n = 11", "n = 10"} == {
        text.split("<br>")[1] for text in figures(app)[SIGNALS]["data"][0]["text"]
    }


def test_the_items_are_sorted_over_all_pages_and_what_is_undefined_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "many", 60)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "many"))
    table = table_with(open_page(run="run-1", parts="true"), "item →").set_index("item")
    assert len(table) == 50 and table.index[0] == "i-00"
    assert table.loc["i-00", "V"] == "n/a" and HOSTILE in table.loc["i-00", "reason"]
    assert table.loc["i-11", "reason"].startswith("C: F is 0.1, below the hard floor 0.2; ")
    assert "post hoc" in table.loc["i-01", "diagnosis"] and table.loc["i-11", "diagnosis"] == ""
    assert table.loc["i-01", "item →"] == "/run?run=run-1&item=i-01&tab=reliability"
    every = item_reliability_rows(
        component_scores(scores(tmp_path / "many")), scores(tmp_path / "many")
    )
    app = open_page(run="run-1", sort="r_raw-down")
    shown = table_with(app, "item →")["r_raw"].astype(float)
    assert shown.is_monotonic_decreasing and shown.iloc[0] == round(every["r_raw"].max(), 3)
    assert any("1 stopped at a hard floor" in c.value for c in app.caption)
    app.number_input[0].set_value(2).run()
    last = table_with(app, "item →")["r_raw"]
    assert len(last) == 10 and last.iloc[-1] == "n/a"


def test_an_item_shows_parts_diagnosis_flags_links_and_paraphrases(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", item="i-00")
    assert set(figures(app)) >= {BARS, LINKS, COSINES}
    rules = table_with(app, "fires").set_index("rule")
    assert rules.loc["post hoc", ["fires", "its numbers"]].tolist() == [
        "fires",
        "early answer 1.00",
    ]
    assert (
        rules.loc["global drift", "fires"] == "n/a"
        and rules.loc["global drift", "its numbers"] == "V n/a, correct 0"
    )
    assert (
        HOSTILE in rules.loc["global drift", "reason"] and rules.loc["instability", "reason"] == ""
    )
    penalties = table_with(app, "factor")
    assert penalties[["step", "rule", "factor", "text"]].values.tolist() == [
        ["1", "hand waving", "×0.970", "Clearly"],
        ["2", "premature answer", "×0.900", "the answer"],
        ["2", "semantic jump", "×0.940", "So the answer is 12."],
    ]
    weak = table_with(app, "why undecided")
    assert weak["support"].tolist() == ["n/a", "n/a"] and HOSTILE in weak["why undecided"].iloc[0]
    assert any("renormalised" in c.value for c in app.caption)
    behind = table_with(app, "part").set_index("part")
    assert behind["requests"].tolist() == ["7"] * 6 and behind.loc["V", "value"] == "n/a"
    score = "feature+chain%3Dreference%2Cfeature%3DC%2Cprofile%3Dphase3"
    address = f"/run?run=run-1&item=i-00&score={score}"
    assert behind.loc["C", "requests →"] == f"{address}&tab=items"


def test_a_false_equation_is_quoted(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    weak = table_with(open_page(run="run-1", item="i-03"), "why undecided")
    assert weak[["link", "step", "support", "decided by", "at"]].values.tolist() == [
        [link, "3", "0", "arithmetic", "12 - 2 = 11"] for link in ("forward", "reverse")
    ]


def test_parts_come_from_their_own_scorers_without_a_composite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "few", whole=False, scorers=("consistency", "verification", "flags"))
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "few"))
    app = open_page(run="run-1", parts="true", more="true")
    assert set(figures(app)) == {PARTS, SIGNALS}
    assert figures(app)[PARTS]["layout"]["yaxis"]["ticktext"] == [
        "C consistency",
        "V verification",
        "F flags",
    ]
    assert any(
        "Not measured in this run: R (scorer robustness), D (scorer diversity)" in c.value
        for c in app.caption
    )
    assert [i.value for i in app.info] == ["Diagnoses come with the composite."]
    assert set(figures(open_page(run="run-1", item="i-02"))) >= {
        BARS,
        LINKS,
        COSINES,
    }


def test_a_run_without_estimates_says_so_and_shows_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "unfinished", 3, estimated=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "unfinished"))
    app = open_page(run="run-1", parts="true", more="true")
    assert any("estimated when the run ends" in caption.value for caption in app.caption)
    assert len(table_with(app, "item →")) == 3
    assert SIGNALS in figures(app)
    assert any("fewer than 5 pairs" in caption.value for caption in app.caption)


def test_the_items_of_one_diagnosis(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    table = table_with(open_page(run="run-1", diagnosis="monoculture"), "item →")
    assert 0 < len(table) < 12 and all("monoculture" in text for text in table["diagnosis"])


def test_a_composite_alone_shows_its_paraphrases_and_robustness_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "alone", scorers=("composite",))
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "alone"))
    app = open_page(run="run-1", item="i-02")
    assert set(figures(app)) >= {BARS, COSINES} and LINKS not in figures(app)
    halted = open_page(run="run-1", item="i-11")
    assert BARS in figures(halted) and COSINES not in figures(halted)
    assert any("hard floor" in i.value for i in halted.info)
    shown = opened("robustness", run="run-1")
    assert "from=run-1&measure=robustness" in [
        link.proto.query_string for link in shown.get("page_link")
    ]


def test_whose_chains_the_parts_are_measured_on() -> None:
    spec = ScorerSpec(
        "composite", 1, {"profile": "phase2", "parts": {"verification": {"chain": "own"}}}
    )
    plan = Plan("s", "d", {"subject": MODEL}, (spec,))
    assert (
        chain_sources_text(plan)
        == "Measured on the model's own chains: C, V; on the suite's reference chains: F."
    )


def test_spearman_needs_items_where_both_parts_are_defined() -> None:
    rows = pd.DataFrame(
        [
            (f"i{k}", part, value)
            for k in range(6)
            for part, value in (("C", k), ("V", -k if k < 5 else np.nan), ("F", 1.0))
        ],
        columns=["item_id", "part", "value"],
    )
    told = component_correlations(rows).set_index(["one", "other"])
    assert told.loc[("C", "V"), ["point", "n"]].tolist() == [-1.0, 5]
    assert (
        pd.isna(told.loc[("C", "F"), "point"])
        and told.loc[("C", "F"), "reason"] == "F the same in all items"
    )


def test_marked_pieces_make_up_the_text_and_overlaps_take_the_graver_colour() -> None:
    text = "So the answer is 12. 😀"
    pieces = mark_hits(
        text,
        [
            FlagHit(3, 13, 0.9, "early"),
            FlagHit(0, 22, 0.94, "jump"),
            FlagHit(30, 40, 0.9, "outside"),
        ],
    )
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.hint for piece in pieces] == ["jump", "early; jump", "jump"]
    assert pieces[0].shade == pieces[2].shade != pieces[1].shade
    assert mark_hits("plain", []) == (TextPiece("plain"),) and mark_hits("", []) == ()


def test_paraphrases_are_read_from_the_log_with_their_cosines() -> None:
    """Check cos 45° = 0.7071.

    Unit vectors of two steps at right angles, against one that lies along the second.
    """
    item = make_suite(1).items[0]
    told = exchanges(item)
    requests = {asked.key: asked.to_json() for asked, _ in reversed(told)}
    replies = {reply.key: reply for _, reply in told}
    found = paraphrase_chains(requests, replies, item, MODEL.form)
    assert (
        found[0].question == item.question and found[0].answer == "12" and len(found) == len(CHAINS)
    )
    assert {t.missing_reason for t in found} == {"", "the model wrote no chain"}
    table = cosine_table([str(i) for i in range(4)], found, embedded_vectors(requests, replies))
    assert table["point"].dropna().tolist() == [pytest.approx(np.sqrt(0.5))]
    assert len(table) == 6 and table["reason"].notna().sum() == 5
    gone = paraphrase_chains(requests, {}, item, MODEL.form)
    assert {t.missing_reason for t in gone} == {"the log does not hold this reply"}
    assert len(STEPS) == 3 and len(VECTORS) == 3


def test_the_item_page_shows_every_kind_of_request_behind_the_numbers(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = app_at("items", run="run-1", item="i-03").run()
    assert not app.exception, [e.value for e in app.exception]
    assert any(c.value.startswith("7 of 7 requests") for c in app.caption)
    assert any(c.value.startswith("The suite's reference chain.") for c in app.caption)
    facets = table_with(app, "Of").set_index("Measure")["Of"]
    assert (
        "chain reference, link forward, verifier arithmetic"
        in facets["Support of a link between steps"].tolist()
    )
    assert (
        reply_text({"vectors": ["AACAPw=="]}) == "1 vector"
        and reply_text({"numbers": [0.25]}) == "0.25"
        and reply_text({}) == "(empty)"
    )
    assert request_text({"kind": "embed", "texts": ["a step"]}) == "a step"
    assert (
        request_text({"kind": "entail", "premise": "p", "hypothesis": "h"}) == "p\n\nsupports\n\nh"
    )
