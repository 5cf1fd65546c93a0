"""``cotlab drift`` and ``cotlab next-labels`` as they are typed: exit codes, JSON, one message
where something is wrong."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cotlab.cli.main import main
from cotlab.store.calibrators import list_drift_checks
from cotlab.store.database import Store
from cotlab.store.labels import list_label_queues, list_queue_items
from tests.support.stores.drifted import add_run, decide, vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("typed") / "store"
    store = Store(made)
    add_run(store, "ref", vectors(60, 1))
    add_run(store, "same", vectors(60, 2), first=100, tags={"epoch": "1"})
    add_run(store, "low", vectors(60, 3, shift=0.3), first=200, tags={"epoch": "2"})
    decide(store, "low", {f"i-{200 + k}": "release" for k in range(10)})
    return made


def typed(folder: Path, *words: str, code: int = 0) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COTLAB_STORE", str(folder))
        patch.setattr(sys, "argv", ["cotlab", *words])
        patch.setattr(sys, "excepthook", sys.excepthook)
        try:
            main()
            ended: object = 0
        except SystemExit as end:
            ended = end.code or 0
    assert ended == code, (ended, out.getvalue(), err.getvalue())
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return out.getvalue(), err.getvalue()


def test_over_a_tag_one_check_a_value_is_kept_and_an_alert_has_code_1(folder: Path) -> None:
    out, _ = typed(
        folder,
        *("drift", "ref", "low", "same", "--over", "epoch", "--permutations", "299", "--audit"),
        *("4", "--json", "--by", "bo"),
        code=1,
    )
    same, low = json.loads(out)
    assert (same["label"], same["alert"], same["reaudit"]) == ("epoch 1", False, None)
    assert low["alert"] and [one["name"] for one in low["features"] if one["alert"]] == [
        "r_raw",
        "V",
    ]
    store = Store(folder)
    queue = list_label_queues(store)["id"].iloc[0]
    assert len(list_queue_items(store, queue)) == 4 and queue in low["reaudit"]
    assert set(list_drift_checks(store)["by_"]) == {"bo"} and len(list_drift_checks(store)) == 2


def test_without_an_alert_the_code_is_0_and_no_queue_is_made(folder: Path) -> None:
    before = len(list_label_queues(Store(folder)))
    out, _ = typed(folder, "drift", "ref", "same", "--permutations", "299")
    assert "No alert. No feature of 4 moved" in out and "Jointly: energy coefficient" in out
    assert (
        "Brier and ECE since the fit: n/a (no calibrator is in use)" in out
        and len(list_label_queues(Store(folder))) == before
    )


def test_next_labels_prints_items_and_makes_a_queue(folder: Path) -> None:
    out, _ = typed(folder, "next-labels", "low", "-k", "3", "--queue", "to learn", "--json")
    told = json.loads(out)
    assert [one["r_cal"] for one in told["items"]] == [None] * 3 and told["thresholds"] == [0.5]
    assert list(list_queue_items(Store(folder), told["queue"])["item_id"]) == [
        one["item_id"] for one in told["items"]
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drift", "ref", "nope"], "Unknown run 'nope'"),
        (["drift", "ref", "ref"], "both sides"),
        (["drift", "ref", "low", "--permutations", "9"], "can reject only"),
        (["next-labels", "nope"], "Unknown run"),
        (["next-labels", "low", "--epsilon", "0"], "--epsilon"),
        (["drift", "ref", "low", "--over", "day"], "no tag of this name"),
    ],
)
def test_what_is_wrong_is_one_message_and_code_2(folder: Path, words: list[str], said: str) -> None:
    _, err = typed(folder, *words, code=2)
    assert err.startswith("error: ") and said in err
