"""``cotlab doctor --rescore``: runs of older scorers are scored again from their stored replies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.registry import SCORERS
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.command import cotlab
from tests.support.running import own_suite, replies


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A store whose run was scored by an older version, which found other numbers."""
    store = tmp_path / "store"
    words = (*own_suite(tmp_path), "--provider=echo", "--model=echo", "--scorer=ablation")
    cotlab("run", *words, "--run-id=r", store=store)
    return store


def age(folder: Path) -> None:
    """Make the scores of a run those of version 0 of its scorer, each moved by a half."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as log, log:
        [(plan,)] = log.execute("SELECT plan FROM runs")
        old = json.loads(plan)
        for spec in old["scorers"]:
            spec["version"] = 0
        log.execute("UPDATE runs SET plan = ?, plan_digest = 'old'", (json.dumps(old),))
        log.execute("UPDATE ended SET version = 0")
        log.execute("UPDATE store SET change = change + 1")
    store = Store(folder)
    with store.writing() as connection:
        connection.execute("UPDATE scores SET value = value / 2")


def test_a_run_of_an_older_scorer_is_scored_again_without_a_request(older: Path) -> None:
    store = Store(older)
    before, plan = read.run_scores(store, "r"), read.get_run(store, "r")["plan"]
    estimates, n_replies = read.run_estimates(store, "r"), replies(older)
    told = json.loads(cotlab("report", "r", "--format=json", store=older).stdout)
    age(older)
    assert not read.run_scores(store, "r").equals(before)
    assert "--rescore" in cotlab("run", "--resume", "r", store=older, code=2).stderr
    assert "1 of 1 runs" in cotlab("doctor", "--rescore", store=older).stdout
    after = read.run_scores(store, "r")
    assert after.equals(before) and read.run_estimates(store, "r").equals(estimates)
    assert read.get_run(store, "r")["plan"] == plan and replies(older) == n_replies
    report = json.loads(cotlab("report", "r", "--format=json", store=older).stdout)
    assert len(report.pop("scored_again")) == 1 and told.pop("scored_again") == []
    assert report["estimates"] == told["estimates"]
    version = SCORERS["ablation"].version
    scored = cotlab("report", "r", store=older).stdout
    assert f"ablation 0 (now {version})" in scored
    cotlab("run", "--resume", "r", store=older)
    assert replies(older) == n_replies
    assert "0 of 0 runs" in cotlab("doctor", "--rescore", store=older).stdout


def test_a_run_that_needs_a_reply_that_is_not_stored_keeps_its_scores(older: Path) -> None:
    age(older)
    with closing(sqlite3.connect(older / "log.sqlite", isolation_level=None)) as log:
        log.execute("DELETE FROM replies WHERE key = (SELECT min(key) FROM replies)")
    before = read.run_scores(Store(older), "r")
    told = cotlab("doctor", "--rescore", store=older, code=3).stdout
    assert "0 of 1 runs" in told and "not stored" in told
    assert read.run_scores(Store(older), "r").equals(before)
