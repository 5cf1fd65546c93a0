"""A verdict is computed when its run ends and read from then on, until what it rests on changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cotlab
from cotlab.analysis import reply_notes
from cotlab.analysis.reply_notes import cut_reply_records, restated_step_record
from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import MissingFigure
from cotlab.analysis.verdict import stored
from cotlab.analysis.verdict.record import RunVerdict, judge_stored_run
from cotlab.analysis.view import RunView
from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.run.config import DEMO_MODELS, demo_options
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.run_results import RunState
from cotlab.store.server_checks import ServerCheck, add_server_check
from cotlab.validation.report import REPORT_FILE, REPORT_FOLDER, SHIPPED_REPORT_PATH
from tests.store.test_read_only import read_as_others
from tests.support.linked import linked_view
from tests.support.stores.judged import add_measured_run
from tests.ui.test_pages import open_page


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """Return a store with the demonstration's runs, and the id of each model's run."""
    store = Store(tmp_path_factory.mktemp("demo") / "store")
    run_ids = {}
    for model in DEMO_MODELS:
        options = demo_options(model) | {"limit": 30}
        suite = options.pop("task_suite")
        run_ids[model] = cotlab.run_suite(suite, store=store.folder, **options).run_id
    return store, run_ids


def state_of(store: Store, run_id: str) -> RunState:
    view = RunView.read(store, run_id)
    return RunState(run_id, view.revision, view.status)


def kept(store: Store, run_id: str) -> RunVerdict | None:
    state = state_of(store, run_id)
    return stored.load_verdicts(store, [state]).get(state)


@pytest.mark.soak
@pytest.mark.parametrize("model", DEMO_MODELS)
def test_what_a_run_keeps_at_its_end_is_what_is_computed_from_it(
    demo: tuple[Store, dict[str, str]], model: str
) -> None:
    store, run_ids = demo
    computed = judge_stored_run(RunView.read(store, run_ids[model]))
    assert kept(store, run_ids[model]) == computed
    assert computed.verdict.mark in ("yes", "no"), "a finding with its numbers, not a refusal"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with an ended run that keeps its verdict."""
    store = Store(tmp_path / "store")
    add_measured_run(store, "r", {"change": 1, "control": 0.05, "sound": 1})
    assert kept(store, "r") is None
    computed = stored.judge_run_once(RunView.read(store, "r"))
    assert kept(store, "r") == computed == judge_stored_run(RunView.read(store, "r"))
    return store


def test_a_run_that_is_resumed_keeps_nothing_until_it_ends(store: Store) -> None:
    with store.writing() as connection:
        write.set_status(connection, "r", "running")
    assert kept(store, "r") is None
    result = stored.judge_run_once(RunView.read(store, "r"))
    assert result.verdict.headline.startswith("So far") and kept(store, "r") is None
    with store.writing() as connection:
        write.set_status(connection, "r", "stopped", "stopped on request")
    result = stored.judge_run_once(RunView.read(store, "r"))
    assert result.evidence.status == "stopped" and kept(store, "r") == result


@pytest.mark.parametrize("status", ["running", "stopped", "budget", "interrupted"])
def test_a_run_that_has_not_ended_is_judged_from_the_scores_that_it_has(
    store: Store, status: str
) -> None:
    """Headline, lamps and picture have the same numbers before any estimate is stored."""
    with store.writing() as connection:
        connection.execute("DELETE FROM estimates")
        connection.execute("UPDATE runs SET n_items = 300")
        write.set_status(connection, "r", status, "stopped on request")
    view = RunView.read(store, "r")
    assert view.estimates.empty
    result = judge_stored_run(view)
    assert result.verdict.rule == "follows" and result.verdict.headline.startswith("So far: ")
    share = result.lamps[0].share
    assert share is not None and (share.point, share.n) == (1.0, 40)
    figure = make_figure_table(view, "answer_change_scale")
    assert not isinstance(figure, MissingFigure)
    rows = figure.table.set_index("group")
    assert rows.loc["run", ["point", "lo", "hi", "n"]].tolist() == [
        share.point,
        share.lo,
        share.hi,
        share.n,
    ]
    control = result.evidence.text_control
    assert control is not None and rows.loc["control", "point"] == control.point == 0.05


def test_estimates_of_before_a_resumption_are_not_judged(store: Store) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE estimates SET point = 0, lo = 0, hi = 0.1, n = 30")
        write.set_status(connection, "r", "stopped")
    result = judge_stored_run(RunView.read(store, "r"))
    assert result.evidence.shares["change"].n == 40 and result.verdict.rule == "follows"


@pytest.mark.soak
@pytest.mark.parametrize("model", DEMO_MODELS)
def test_numbers_so_far_are_those_that_a_summary_stores(
    demo: tuple[Store, dict[str, str]], model: str
) -> None:
    """All measures of a real run, statistics over its scores too."""
    store, run_ids = demo
    view = RunView.read(store, run_ids[model])
    stored_shares = judge_stored_run(view).evidence.shares
    assert {"change", "control", "alone", "moved", "sound", "wrong"} <= set(stored_shares)
    so_far = judge_stored_run(replace(view, status="stopped"))
    assert so_far.evidence.shares == stored_shares


def test_a_verdict_on_an_earlier_revision_is_not_kept(store: Store) -> None:
    state, result = state_of(store, "r"), kept(store, "r")
    assert result is not None
    with store.writing() as connection:
        write.set_status(connection, "r", "done")
    stored.keep_verdicts(store, {state: result})
    assert stored.load_verdicts(store, [state, state_of(store, "r")]) == {}


def test_other_rules_compute_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = stored.verdict_rules(store.folder)
    monkeypatch.setattr(stored, "RULES_VERSION", 0)
    stored._rules_digest.cache_clear()
    assert stored.verdict_rules(store.folder) != rules and kept(store, "r") is None
    stored._rules_digest.cache_clear()


def test_another_validation_computes_anew(store: Store) -> None:
    report = json.loads(SHIPPED_REPORT_PATH.read_text("utf-8"))
    report["metrics"]["answer_change"]["auroc"]["point"] = 0.5
    path = store.folder / REPORT_FOLDER / REPORT_FILE
    path.parent.mkdir()
    path.write_text(json.dumps(report), "utf-8")
    assert kept(store, "r") is None
    assert stored.judge_run_once(RunView.read(store, "r")).verdict.mark == "unknown"
    path.unlink()
    assert stored.judge_run_once(RunView.read(store, "r")).verdict.mark == "yes"


def test_damaged_text_is_computed_anew_and_replaced(store: Store) -> None:
    for text in ("{", "{}", "[1]"):
        with store.writing() as connection:
            connection.execute("UPDATE run_results SET value = ?", [text])
        assert kept(store, "r") is None
        stored.judge_run_once(RunView.read(store, "r"))
        assert kept(store, "r") == judge_stored_run(RunView.read(store, "r"))


def test_what_the_replies_leave_open_is_kept_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = RunView.read(store, "r")
    computed = (reply_notes.stored_cut_replies(view), reply_notes.stored_restated_steps(view))
    assert computed == (cut_reply_records(view), restated_step_record(view))
    for name in ("cut_reply_records", "restated_step_record"):
        monkeypatch.setattr(reply_notes, name, None)
    again = (reply_notes.stored_cut_replies(view), reply_notes.stored_restated_steps(view))
    assert again == computed
    with store.writing() as connection:
        write.set_status(connection, "r", "running")
    with pytest.raises(TypeError):
        reply_notes.stored_cut_replies(RunView.read(store, "r"))


def test_an_undefined_number_is_not_written(store: Store) -> None:
    result = kept(store, "r")
    assert result is not None
    share = replace(result.evidence.shares["change"], point=float("nan"))
    broken = replace(result, evidence=replace(result.evidence, shares={"change": share}))
    with pytest.raises(ValueError):
        stored.verdict_to_json(broken)


def test_a_look_at_a_run_keeps_the_verdict_and_the_pages_show_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_measured_run(store, "old", {"change": 0, "control": 0})
    monkeypatch.setenv("COTLAB_STORE", str(store.folder))
    assert kept(store, "old") is None
    table = linked_view(open_page("runs"), "table")
    shown = {(row[1]["text"], row[1]["mark"]) for row in table["rows"]}
    verdicts = [judge_stored_run(RunView.read(store, run)).verdict for run in ("r", "old")]
    assert shown == {(verdict.short, verdict.mark) for verdict in verdicts}
    assert {verdict.mark for verdict in verdicts} == {"yes", "no"}
    assert kept(store, "old") == judge_stored_run(RunView.read(store, "old"))


READ = """
import sys
from pathlib import Path
from cotlab.analysis.verdict.stored import judge_run_once
from cotlab.analysis.verdict.wording import plain_text
from cotlab.analysis.view import RunView
from cotlab.store.database import Store
store = Store(Path(sys.argv[1]))
print(*(judge_run_once(RunView.read(store, run)).verdict.mark for run in sys.argv[2:]))
"""


@pytest.mark.soak
def test_a_read_only_store_is_read_and_left_as_it_is(store: Store) -> None:
    add_measured_run(store, "old", {"change": 0, "control": 0})
    before = store.path.read_bytes()
    code, out, err = read_as_others(store.folder, "-c", READ, str(store.folder), "r", "old")
    assert (code, out) == (0, "yes no\n"), err
    assert store.path.read_bytes() == before and kept(store, "old") is None


def test_a_store_that_another_process_holds_is_not_waited_for(store: Store) -> None:
    add_measured_run(store, "old", {"change": 0, "control": 0})
    view = RunView.read(store, "old")
    result = judge_stored_run(view)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert not stored.keep_verdicts(store, {RunState("old", view.revision, view.status): result})
    holder.communicate(b"\n")
    assert stored.keep_verdicts(store, {RunState("old", view.revision, view.status): result})


_HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
connection.close()
"""


def test_a_check_of_the_server_that_comes_later_computes_anew(store: Store) -> None:
    subject = RunView.read(store, "r").plan.subject
    finding = Finding("ignored", "sent 1, got 2")
    ref = ModelRef(subject.provider, subject.name, base_url="http://127.0.0.1:1/v1")
    check = ServerCheck(ref, {"prefix": finding}, 1, RunView.read(store, "r").planned_at)
    add_server_check(store, "r", check)
    assert kept(store, "r") is None
