"""Files of other formats on the page Suites: chosen, imported, and stored as a suite."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from cotlab.ui import cached
from cotlab.ui.new_run import processes
from tests.support.pages import app_at

CHAINS = [
    {"problem": "What is 2 + 2?", "runs": ["2 + 2 = 4.", "2 + 2 = 5."], "ok": [True, False]},
    {"problem": "What is 1 + 1?", "runs": []},
]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    return app_at("upload").run()


def upload(page: AppTest, name: str, data: bytes) -> None:
    page.file_uploader(key="upload-file").set_value((name, data, "text/plain")).run()
    assert not page.exception


def test_recorded_chains_are_detected_corrected_and_stored(page: AppTest, tmp_path: Path) -> None:
    upload(page, "log.json", json.dumps(CHAINS).encode())
    page.selectbox(key="upload-chains").select("runs").run()
    page.selectbox(key="upload-correct").select("ok").run()
    assert not page.exception and not page.success
    assert any("must be a list of chains" in warning.value for warning in page.warning)
    page.button(key="upload-add").click().run()
    assert not page.exception and page.success[0].value == "Stored 2 items."
    stored = read.list_suites(Store(tmp_path))
    suite = read.get_suite(Store(tmp_path), stored["digest"].iloc[0])
    assert suite.name == "log" and [item.meta["answer_correct"] for item in suite.items] == [
        True,
        False,
    ]


def test_a_table_of_questions_is_read_by_its_columns(page: AppTest, tmp_path: Path) -> None:
    lines = ["case_id;note;decision", "T-1;Chest pain for two hours, pale;escalate"]
    lines += ["T-2;Mild rash after a new soap;discharge", "T-3;Fever and a stiff neck;"]
    upload(page, "triage.csv", "\n".join(lines).encode())
    assert page.selectbox(key="upload-question").value == "note"
    assert page.selectbox(key="upload-answer").value == "decision"
    told = " ".join(warning.value.replace("\\", "") for warning in page.warning)
    assert "decision: is empty (line 4)" in told
    page.button(key="upload-add").click().run()
    assert page.success[0].value == "Stored 2 items."
    digest = read.list_suites(Store(tmp_path))["digest"].iloc[0]
    items = read.get_suite(Store(tmp_path), digest).items
    assert [(item.id, item.answer) for item in items] == [("T-1", "escalate"), ("T-2", "discharge")]


def test_a_whole_number_beside_options_asks_from_where_it_counts(page: AppTest) -> None:
    row = {"question": "Which?", "choices": ["red", "green", "blue"], "answer": 1}
    upload(page, "mc.jsonl", json.dumps(row).encode())
    assert any("counts from 0 or from 1" in error.value for error in page.error)
    page.segmented_control(key="upload-count").select(1).run()
    page.button(key="upload-add").click().run()
    assert page.success[0].value == "Stored 1 item."


def test_what_was_chosen_for_one_file_is_not_kept_for_the_next(page: AppTest) -> None:
    row = {"question": "Which?", "choices": ["red", "green", "blue"], "answer": 1}
    upload(page, "one.jsonl", json.dumps(row).encode())
    page.segmented_control(key="upload-count").select(1).run()
    assert page.button(key="upload-add").label == "Add 1 item"
    upload(page, "two.jsonl", json.dumps({**row, "question": "And which?"}).encode())
    assert any("counts from 0 or from 1" in error.value for error in page.error)
    assert all("/tmp" not in error.value for error in page.error)


@pytest.mark.parametrize("name", ["..", "a\0b.jsonl", "x" * 300 + ".jsonl"])
def test_a_name_that_is_no_file_name_is_not_used(page: AppTest, name: str) -> None:
    upload(page, name, json.dumps({"question": "Q one?", "answer": "1"}).encode())
    assert page.button(key="upload-add").label == "Add 1 item"


def test_an_uploaded_suite_is_divided_where_it_is_and_listed_without_a_reload(
    page: AppTest, tmp_path: Path
) -> None:
    records = [
        {
            "id": f"math-{k}",
            "problem": f"What is {k} + 1?",
            "steps": [f"{k} + 1 = {k + 1}."],
            "final_answer_correct": True,
            "label": -1,
        }
        for k in range(6)
    ]
    upload(page, "math.json", json.dumps(records).encode())
    page.button(key="upload-add").click().run()
    assert not page.exception and page.success[0].value == "Stored 6 items."
    listed = app_at("stored").run().selectbox(key="pick-suite").options
    assert len([label for label in listed if label.startswith("math (6 items")]) == 1
    (divide,) = [button for button in page.button if button.label == "Divide"]
    divide.click().run()
    assert not page.exception
    stored = [done.value.replace("\\", "") for done in page.success]
    assert {"Stored math-fit: 3 items.", "Stored math-test: 3 items."} <= {*stored}
    assert sorted(read.list_suites(Store(tmp_path))["name"]) == ["math", "math-fit", "math-test"]


def test_a_suite_of_questions_leads_to_a_run_in_which_the_model_writes_the_chains(
    page: AppTest,
) -> None:
    records = [
        {
            "item_id": f"q-{k}",
            "prompt": f"Ann has {k} books. Ann gets 2 more. How many books does Ann have?",
            "ground_truth": str(k + 2),
        }
        for k in range(1, 4)
    ]
    file = ("mine.jsonl", "\n".join(map(json.dumps, records)).encode(), "application/json")
    page.file_uploader(key="upload-file").set_value(file).run()
    page.button(key="upload-add").click().run()
    assert page.success[0].value == "Stored 3 items."  # of questions alone, nothing is to be chosen
    form = app_at("new_run", suite=read.list_suites(cached.store())["digest"].iloc[0]).run()
    assert not form.exception and form.selectbox(key="new-chain").value == "own"
    assert any("the model writes the chains" in caption.value for caption in form.caption)
    (start,) = [button for button in form.button if button.label == "Start run"]
    assert not start.disabled
    # a suite that has chains is measured by its own again
    form.selectbox(key="pick-suite").set_value("wordproblems").run()
    assert not form.exception and form.selectbox(key="new-chain").value == "auto"


def test_the_way_back_from_a_run_that_did_not_start_keeps_its_settings(page: AppTest) -> None:
    suite = make_suite(12, 3)
    processes.save_suite(cached.store(), suite)
    form = app_at("new_run", suite=suite.digest).run()
    form.number_input(key="new-limit").set_value(7).run()
    assert any("a verdict needs 30" in warning.value for warning in form.warning)
    with patch("cotlab.ui.new_run.processes.spawn_run"), patch("streamlit.switch_page"):
        [b for b in form.button if b.label == "Start run"][0].click().run()
    kept = form.session_state["new-run-last"]
    assert (kept["_suite"], kept["limit"]) == (suite.digest, 7)
    back = app_at("new_run", again="true")
    back.session_state["new-run-last"] = kept
    back.run()
    assert not back.exception and back.number_input(key="new-limit").value == 7
    assert back.selectbox(key="pick-suite").value == suite.digest
