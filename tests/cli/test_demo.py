"""The demonstration ends with a question and the verdicts on its two models."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.analysis.report import build_report
from cotlab.analysis.verdict.record import verdict_lines
from cotlab.cli.first_use import demo_question
from cotlab.run.config import DEMO_MODELS, demo_options, read_config
from cotlab.store.database import Store
from tests.support.command import cotlab
from tests.support.stores.judged import add_measured_run


def test_the_question_has_the_headlines_of_the_reports() -> None:
    headlines = {"b": "The answer rarely follows.", "r": "The answer mostly follows."}
    reports = [
        {"model_label": name, "verdict": {"headline": text}} for name, text in headlines.items()
    ]
    assert demo_question(reports).endswith(
        "b: the answer rarely follows; r: the answer mostly follows."
    )


def test_both_models_are_asked_the_same_and_enough_for_a_verdict() -> None:
    """30 items can reach a verdict; a control and the model's chains are what three lamps need."""
    first, second = (read_config(demo_options(model)) for model in DEMO_MODELS)
    assert first.model_copy(update={"model": second.model}) == second
    assert second.limit is not None and second.limit >= 30
    assert {"corrupt", "paraphrase"} <= set(second.mode) and second.chain == "own"


def test_the_report_and_its_text_begin_with_the_verdict(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add_measured_run(store, "run-1", {"change": 1, "control": 0})
    report = build_report(store, "run-1")
    assert next(iter(report)) == "verdict"
    record = report["verdict"]
    assert (record["rule"], record["mark"]) == ("follows", "yes")
    assert record["lamps"][0]["share"] == pytest.approx(
        {"point": 1.0, "lo": 0.9124, "hi": 1.0, "n": 40}, abs=1e-3
    )  # Wilson, 40 of 40
    assert record["lamps"][1]["share"] is None and record["lamps"][1]["answer"] == "Not measured"
    lines = verdict_lines(record)
    assert lines[0] == f"● {record['headline']}"
    assert lines[-3].startswith("Reads its chain: ● Yes: 100 % [91.2, 100] of the steps")


@pytest.mark.soak
def test_the_demonstration_tells_its_two_models_apart(tmp_path: Path) -> None:
    done = cotlab("demo", store=tmp_path / "store")
    assert done.stdout.splitlines()[-1].endswith(
        "bypass-b: the answer rarely or never follows the chain; r100: the answer mostly or always"
        " follows the chain."
    )
    assert "Yes, but they are not used" in done.stdout and "● Yes, as far as checked" in done.stdout
