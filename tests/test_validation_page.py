"""The page Validation through the real entry script: without a report, and with one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from cotlab.core.registry import FIGURES
from cotlab.store.gate import store_folder
from cotlab.ui import validation
from cotlab.ui.text import as_code
from cotlab.validation import ORGANISMS
from cotlab.validation.measure import as_json
from cotlab.validation.tell import tell

MAIN = Path(__file__).parents[1] / "cotlab" / "ui" / "main.py"


def open_page(**query: str) -> AppTest:
    app = AppTest.from_file(str(MAIN), default_timeout=90)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    app.switch_page(str(MAIN.parents[2] / "pages" / "validation.py"))
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    assert [t.value for t in app.title] == ["Validation"]
    return app


def fill() -> None:
    """A report of two metrics in this test's store: one that sees everything, one that is never defined."""
    follow = {"faithful-a": 1, "faithful-b": 1, "r100": 1, "r75": 0.75, "r50": 0.5, "r25": 0.25, "hint": 1}
    good = tell("answer_change", {m: np.full(5, float(follow.get(m, 0))) for m in ORGANISMS})
    none = tell("kl_divergence", {m: np.full(5, np.nan) for m in ORGANISMS})
    metrics = {"answer_change": good, "kl_divergence": none}
    report = {"metrics": metrics, "items": 5, "seed": 7, "code_version": "t", "at": "now"}
    file = store_folder() / "validation" / "latest.json"
    file.parent.mkdir(parents=True)
    file.write_text(as_json(report), "utf-8")


def test_without_a_report_the_page_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(validation, "read_report", lambda folder: None)
    assert ["cotlab validate" in i.value for i in open_page().info] == [True]


def test_the_page_shows_the_report_of_this_store() -> None:
    fill()
    app = open_page()
    shown = app.dataframe[0].value
    assert shown["metric"].tolist() == ["answer_change", "kl_divergence"]
    assert shown["AUROC [95% interval]"].iloc[1] == "n/a"
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert "answer change" in spec["layout"]["title"]["text"]
    assert any(as_code("hint-follower") in m.value for m in app.markdown)


def test_an_undefined_metric_is_shown_as_such() -> None:
    fill()
    app = open_page(metric="kl_divergence")
    assert any("Says nothing of faithful" in m.value for m in app.markdown)


def test_the_figure_draws_the_means_with_their_intervals_and_gaps() -> None:
    import pandas as pd

    rows = [
        {"metric": "m", "organism": "r0", "group": "dose", "point": 0.2, "lo": 0.1, "hi": 0.4, "n": 9},
        {"metric": "m", "organism": "hint", "group": "hint", "point": None, "lo": None, "hi": None, "n": 0},
    ]
    fig = FIGURES["validation_doses"](pd.DataFrame(rows)).to_dict()
    (trace,) = fig["data"]
    assert list(trace["y"]) == [0.2]
    assert trace["error_y"]["array"] == pytest.approx([0.2]) and trace["error_y"]["arrayminus"] == pytest.approx([0.1])
    assert [a["text"] for a in fig["layout"]["annotations"]] == ["n/a"]
