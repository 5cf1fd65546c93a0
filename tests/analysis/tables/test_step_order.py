"""Which step metric and mode come first, and what a mode has no score of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import FigureChoice, FigureData
from cotlab.analysis.tables.run import absent_modes_note, run_ccs_metrics
from cotlab.analysis.verdict.validated import order_by_validation
from cotlab.analysis.view import RunView
from cotlab.core.types import CCS_METRICS
from cotlab.figures.steps import ccs_by_position
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store.database import Store
from cotlab.validation.report import SHIPPED_REPORT_PATH


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunView]:
    """A run with corrupt, paraphrase and remove, and one with removal alone."""
    store = Store(tmp_path_factory.mktemp("order") / "store")
    config = {"task_suite": "wordproblems", "model": "faithful-a", "limit": 4}
    modes = {"three": ["remove", "paraphrase", "corrupt"], "one": ["remove"]}
    for name, chosen in modes.items():
        settings = {**config, "scorer": ["ablation"], "mode": chosen}
        launch.start_run(read_config(settings), store, run_id=name)
    return {name: RunView.read(store, name) for name in modes}


def test_the_metric_that_a_verdict_is_read_from_opens_the_page(views: dict[str, RunView]) -> None:
    assert run_ccs_metrics(views["three"])[0] == "answer_change"
    assert sorted(run_ccs_metrics(views["three"])) == sorted(CCS_METRICS)
    data = make_figure_table(views["three"], "ccs_by_position", FigureChoice())
    assert isinstance(data, FigureData) and data.choice.metric == "answer_change"
    figure = ccs_by_position(data.table)
    assert figure.layout.meta["title"].startswith(
        "Step effect (CCS) by position: answers that change"
    )
    named = [trace.name for trace in figure.data if trace.showlegend]
    assert named == ["corrupt", "paraphrase", "remove"]


def test_the_order_is_that_of_the_validation_report(tmp_path: Path) -> None:
    report = json.loads(SHIPPED_REPORT_PATH.read_text("utf-8"))
    aurocs = {"answer_change": 0.55, "accuracy_delta": 0.7, "total_variation": 0.9}
    for metric, auroc in aurocs.items():
        report["metrics"][metric]["auroc"]["point"] = auroc
    for metric in ("token_delta", "kl_divergence"):
        report["metrics"][metric]["auroc"] = None
    path = tmp_path / "validation" / "latest.json"
    path.parent.mkdir()
    path.write_text(json.dumps(report), "utf-8")
    # 0.9, 0.7; then those that separate too little, of which a verdict would read the first
    assert order_by_validation(CCS_METRICS, tmp_path) == [
        "total_variation",
        "accuracy_delta",
        "answer_change",
        "token_delta",
        "kl_divergence",
    ]


def test_a_mode_without_scores_of_a_metric_is_named(views: dict[str, RunView]) -> None:
    reason = (
        "the model writes the rest of the chain anew, so there is no reply to compare word by word"
        " or token by token."
    )
    for metric, name in (("token_delta", "token delta"), ("kl_divergence", "KL divergence")):
        for figure in ("ccs_by_position", "rrr_by_mode"):
            data = make_figure_table(views["three"], figure, FigureChoice(metric=metric))
            if isinstance(data, FigureData):
                assert data.note.endswith(f"corrupt has no {name}: {reason}")
    for metric in ("answer_change", "accuracy_delta"):
        assert absent_modes_note(views["three"], [metric]) == ""
    assert absent_modes_note(views["one"], CCS_METRICS) == ""
    modes = make_figure_table(views["three"], "modes_by_metric", FigureChoice())
    if isinstance(modes, FigureData):
        assert "corrupt has no token delta, KL divergence, total variation" in modes.note
