"""report.json and report.md are written item by item, and hold what the whole report holds."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.analysis import reply_notes, report_items
from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.reply_notes import cut_reply_records, restated_step_record
from cotlab.analysis.report import build_report, write_reports
from cotlab.analysis.report_items import ITEM_SECTIONS
from cotlab.analysis.report_text import write_report_texts
from cotlab.analysis.view import RunView
from cotlab.cli.screen import print_estimates
from cotlab.metrics.ablation import step_means
from cotlab.run.output import atomic_file
from cotlab.store.database import Store
from tests.support.whole_report import build_whole_report, item_sections

ECHO = {"provider": "echo", "model": "echo"}
OPTIONS: dict[str, dict[str, Any]] = {
    "several modes": {**ECHO, "limit": 7, "mode": ["corrupt", "paraphrase", "remove"]},
    "draws": {**ECHO, "limit": 4, "mode": ["remove", "corrupt"], "repeats": 3, "temperature": 1.0},
    "own chain": {"model": "faithful-a", "limit": 3, "chain": "own", "mode": ["remove"]},
    "redacted": {**ECHO, "limit": 3, "mode": ["remove"], "redact_prompts": True},
    "no ablation": {**ECHO, "limit": 3, "scorer": ["text_features"]},
}


@pytest.fixture(scope="module", params=OPTIONS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunView:
    """Return a run with such options."""
    store = Store(tmp_path_factory.mktemp("reported"))
    run = cotlab.run_suite("wordproblems", store=store.folder, **OPTIONS[request.param])
    return RunView.read(store, run.run_id)


def test_both_files_are_the_whole_report_to_the_last_character(
    stored: RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build_whole_report(stored.store, stored.id)
    monkeypatch.setattr(report_items, "_ITEMS_PER_READ", 2)  # more than one block of replies
    summary = write_reports(stored.store, stored.id, tmp_path)
    text = (tmp_path / "report.json").read_text("utf-8")
    assert text == json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    assert (tmp_path / "report.md").read_text("utf-8") == render_markdown(whole)
    assert list(summary) == list(whole)
    assert all(summary[name] == whole[name] for name in whole if name not in ITEM_SECTIONS)
    assert all(summary[name] == [] for name in ITEM_SECTIONS if name in summary)
    files = {name: io.StringIO() for name in ("json_file", "markdown_file")}
    for name, file in files.items():
        write_report_texts(summary, stored, **{name: file})
    assert files["json_file"].getvalue() == text
    assert files["markdown_file"].getvalue() == render_markdown(whole)
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "report.md"}


def test_a_small_p_value_is_no_zero(stored: RunView, capsys: pytest.CaptureFixture[str]) -> None:
    report = build_report(stored.store, stored.id)
    facet = {"classifier": "hint", "other": "judge"}
    p_value = {**report["estimates"][0], "metric": "classifier_mcnemar", "facet": facet}
    report["estimates"] = [{**p_value, "point": 2 * 0.5**12, "lo": None, "hi": None}]
    (line,) = [x for x in render_markdown(report).splitlines() if "classifier_mcnemar" in x]
    assert "| < 0.001 | n/a |" in line
    print_estimates(report)
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "classifier_mcnemar" in x]
    assert "< 0.001" in line and "0.000" not in line


def test_each_step_has_the_mean_of_its_draws(stored: RunView) -> None:
    if stored.scorer("ablation") is None:
        return
    sections = item_sections(stored)
    spec = stored.scorer("ablation")
    assert spec is not None
    main = {"mode": spec.params["modes"][0], "metric": spec.params["metric"]}
    n_compared = 0
    for part in ({**main, "items": sections["items"]}, *sections["further_scores"]):
        scores = stored.scores(part["metric"], facet={"mode": part["mode"]})
        means = step_means(scores).set_index(["item_id", "step"])["value"].dropna()
        reported = {
            (item["item_id"], record["step_index"]): record["score"]
            for item in part["items"]
            for record in item["step_scores"]
            if record["score"] is not None
        }
        assert reported == {(item, int(step)): mean for (item, step), mean in means.items()}
        n_compared += len(reported)
    assert n_compared >= 3


def test_blocks_of_replies_count_as_all_of_them_at_once(
    stored: RunView, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, restated = (
        cut_reply_records(stored),
        restated_step_record(stored),
    )
    monkeypatch.setattr(reply_notes, "_KEYS_PER_READ", 2)
    monkeypatch.setattr(reply_notes, "_ROWS_PER_READ", 2)
    assert cut_reply_records(stored) == cut
    assert restated_step_record(stored) == restated


def test_a_report_that_fails_half_way_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("before", "utf-8")
    with pytest.raises(KeyError), atomic_file(path) as file:
        file.write("half of it")
        raise KeyError("scores")
    assert path.read_text("utf-8") == "before" and list(tmp_path.iterdir()) == [path]
