"""The page Validation, without a report and with one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.registry import FIGURES, SCORERS
from cotlab.store.database import store_folder
from cotlab.ui import validation
from cotlab.ui.text import escape_markdown
from cotlab.ui.validation import short_metric_name
from cotlab.validation import report as reports
from cotlab.validation.coded_wording import evaluate_coded_wording
from cotlab.validation.discrimination import evaluate_metric
from cotlab.validation.models import ORGANISMS, weights_digest
from cotlab.validation.needs_question import evaluate_needs_question
from cotlab.validation.report import report_to_json
from tests.support.figure_texts import head
from tests.support.linked import linked_frames
from tests.support.pages import app_at


def open_page(**query: str) -> AppTest:
    app = app_at("validation", **query).run()
    assert not app.exception, [e.value for e in app.exception]
    assert [t.value for t in app.title] == ["Validation"]
    return app


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the shipped report, so that only a test's own is shown."""
    monkeypatch.setattr(
        validation,
        "read_report",
        lambda folder: reports.read_report(folder, tmp_path / "none.json"),
    )


def fill(**more: object) -> None:
    """Store a report of two metrics: a perfect one, and one that is always undefined."""
    follow = {
        "faithful-a": 1,
        "faithful-b": 1,
        "r100": 1,
        "r75": 0.75,
        "r50": 0.5,
        "r25": 0.25,
        "hint": 1,
    }
    good = evaluate_metric(
        "answer_change", {m: np.full(5, float(follow.get(m, 0))) for m in ORGANISMS}
    )
    none = evaluate_metric(
        "kl_divergence",
        {m: np.full(5, np.nan) for m in ORGANISMS},
        reason_by_model=dict.fromkeys(ORGANISMS, "no list"),
    )
    about = {"scorer": "ablation", "facet": {"mode": "corrupt"}}
    about |= {"scorer_version": SCORERS["ablation"].version, **more}
    metrics = {"answer_change": good | about, "kl_divergence": none | about}
    file = store_folder() / "validation" / "latest.json"
    file.parent.mkdir(parents=True)
    at = "2026-11-21T10:00:00+00:00"
    file.write_text(
        report_to_json({"metrics": metrics, "items": 5, "seed": 7, "code_version": "t", "at": at}),
        "utf-8",
    )


def test_without_a_report_the_page_says_what_to_type() -> None:
    assert ["cotlab validate" in i.value for i in open_page().info] == [True]


def test_the_page_shows_the_report_of_this_store() -> None:
    fill()
    app = open_page(limits="true")
    assert any("1 of 2 metrics tells faithful from bypassing" in m.value for m in app.markdown)
    assert any("interval above 0.5, n = 5 items a model" in m.value for m in app.markdown)
    (shown,) = linked_frames(app)
    assert shown["pair a"].tolist() == shown["AUROC"].tolist()
    names = ["Change of the answer (CCS)", "Change of the first token (CCS)"]
    assert shown["metric"].tolist() == names and "r25" not in shown
    assert shown["AUROC"].tolist() == [
        "1.00 [0.57, 1.00]",
        "n/a",
    ]  # Wilson for 5 of 5: 5 / (5 + 3.8415) = 0.566
    assert shown["undefined"].tolist() == ["0", "50"]
    means = linked_frames(open_page(means="true"))[1]
    assert means["metric"].tolist() == names and means["r25"].tolist() == ["0.250", "n/a"]
    assert any(m.value.startswith("**answer change on models of known") for m in app.markdown)
    assert any(escape_markdown("hint-follower") in m.value for m in app.markdown)
    texts = [m.value.replace("\\", "") for m in app.markdown]
    (hint_text,) = [text for text in texts if text.startswith("The mean on hint, 1.000, is of")]
    assert "all suggest a wrong answer (5 of 5 items)" in hint_text
    assert any("measured dose by" in m.value.replace("\\", "") for m in app.markdown)
    labels = [m.label for m in app.metric]
    assert labels == [
        "AUROC, a and b",
        "AUROC, pair a",
        "AUROC, pair b",
        "AUROC, r100 / r0",
        "Spearman",
    ]
    assert any(
        "5 items of seed 7, measured 2026-11-21 10:00:00 UTC" in c.value for c in app.caption
    )


def test_a_name_keeps_the_values_of_its_facet() -> None:
    assert (
        short_metric_name("r_raw") == "Composite score (r_raw)"
        and short_metric_name("verification (a=x, b=y_z)") == "Verification (V), x, y_z"
    )


def test_an_undefined_metric_is_shown_as_such() -> None:
    fill()
    app = open_page(metric="kl_divergence", limits="true")
    text = " ".join(m.value.replace("\\", "") for m in app.markdown)
    assert (
        "No AUROC: undefined on every faithful item: n = 10, undefined on every bypass item: n"
        " = 10." in text
    )
    assert "Most often: no list." in text
    assert [m.value for m in app.metric] == ["n/a"] * 5
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert [a["text"] for a in spec["layout"]["annotations"]] == ["n/a"] * 10


def test_all_metrics_of_a_scorer_stand_side_by_side() -> None:
    fill()
    app = open_page(show="ablation")
    assert len(app.get("plotly_chart")) == 2 and not app.metric


def test_changed_weights_are_said() -> None:
    fill(weights={"r0": weights_digest("r0"), "r25": "another"})
    assert ["r25" in w.value and "r0," not in w.value for w in open_page().warning] == [True]


@pytest.mark.parametrize("recorded", [{"scorer_version": 1}, {"scorer_version": None}])
def test_an_earlier_version_of_a_scorer_is_said(recorded: dict[str, object]) -> None:
    fill(**recorded)
    (warning,) = open_page().warning
    assert "earlier versions of these scorers: ablation" in warning.value
    assert warning.value.endswith("Run: cotlab validate --scorer ablation")


def test_a_current_report_warns_of_nothing() -> None:
    fill(weights={"r0": weights_digest("r0")})
    assert not open_page().warning


def rows() -> list[dict[str, object]]:
    names = ("organism", "group", "dose", "point", "lo", "hi", "n")
    values = (
        ("r0", "dose", 0.01, 0.2, 0.1, 0.4, 9),
        ("r50", "dose", 0.52, 0.3, None, None, 8),
        ("faithful-a", "faithful", None, 1.0, 1.0, 1.0, 9),
        ("faithful-b", "faithful", None, 1.0, 1.0, 1.0, 7),
        ("hint", "hint", None, None, None, None, 0),
    )
    return [{"metric": "m", **dict(zip(names, row, strict=True))} for row in values]


def test_the_figure_draws_the_means_at_the_measured_dose_with_intervals_and_gaps() -> None:
    fig = FIGURES["validation_doses"](pd.DataFrame(rows())).to_dict()
    line, bounded, unbounded, faithful = fig["data"]
    assert (list(line["x"]), list(line["y"])) == ([0.01, 0.52], [0.2, 0.3])
    assert (list(bounded["x"]), list(bounded["y"]), list(unbounded["x"])) == ([0.01], [0.2], [0.52])
    assert bounded["error_y"]["array"] == pytest.approx([0.2]) and bounded["error_y"][
        "arrayminus"
    ] == pytest.approx([0.1])
    assert unbounded["marker"]["symbol"].endswith("-open") and "error_y" not in unbounded
    assert len(set(faithful["x"])) == 2 and faithful["xaxis"] == "x2"
    assert [a["text"] for a in fig["layout"]["annotations"]] == ["n/a"]
    assert list(fig["layout"]["xaxis"]["ticktext"]) == [
        "r0<br>0.01<br>n = 9",
        "r50<br>0.52<br>n = 8",
    ]
    assert list(fig["layout"]["xaxis2"]["ticktext"]) == [
        "faithful<br>a, b<br>n = 7–9",
        "bypass",
        "hint<br><br>n = 0",
    ]
    assert "Open marker" in head(fig) and "n/a (no score is defined here): hint" in head(fig)


def test_the_dose_itself_is_drawn_for_a_metric_that_moves_with_it() -> None:
    for end, ends in (("higher", [0, 1]), ("lower", [1, 0])):
        table = pd.DataFrame(rows()).assign(lowest=0.0, highest=1.0, faithful_is=end, unit="nats")
        fig = FIGURES["validation_doses"](table.assign(moves=True)).to_dict()
        assert fig["data"][0]["line"]["dash"] == "dot" and list(fig["data"][0]["y"]) == ends
        assert fig["layout"]["yaxis"]["title"]["text"] == "Mean (nats)"
        assert "(0 to 1, nats)" in head(fig)
        endless = head(
            FIGURES["validation_doses"](table.assign(lowest=-1e6, highest=1e6)).to_dict()
        )
        assert "(nats)" in endless and "e+06" not in endless
        assert (
            "dash"
            not in FIGURES["validation_doses"](table.assign(moves=False)).to_dict()["data"][0][
                "line"
            ]
        )


def test_each_metric_is_shown_on_models_whose_chain_needs_its_question() -> None:
    fill()
    assert len(linked_frames(open_page())) == 1  # closed at first
    file = store_folder() / "validation" / "latest.json"
    report = json.loads(file.read_text("utf-8"))
    record = evaluate_needs_question(
        "answer_change",
        {m: np.full(5, value) for m, value in {"s100-a": 1.0, "s50-a": 0.5, "s0-a": 0.0}.items()},
    )
    report["metrics"]["answer_change"]["needs_question"] = record
    file.write_text(report_to_json(report), "utf-8")
    app = open_page(needs_question="true")
    table = linked_frames(app)[1]
    assert table["AUROC, s"].tolist() == ["1.00 [0.57, 1.00]", "not measured"]
    assert table["s50-a"].tolist() == ["0.500", "not measured"]
    assert any("Where a chain needs its question" in m.value for m in app.markdown)


def test_each_metric_is_shown_on_the_model_whose_wording_carries_the_answer() -> None:
    fill()
    file = store_folder() / "validation" / "latest.json"
    report = json.loads(file.read_text("utf-8"))
    record = evaluate_coded_wording("answer_change", {"encoded-c": np.full(5, 0.0)})
    report["metrics"]["answer_change"]["coded_wording"] = record
    file.write_text(report_to_json(report), "utf-8")
    app = open_page(coded_wording="true")
    table = linked_frames(app)[1]
    assert table["encoded-c"].tolist() == ["0.000", "not measured"]
    assert any("Where the wording of a chain carries the answer" in m.value for m in app.markdown)
