"""A run on a local model that is killed half way tells how far it is, keeps what it has, and ends
as if unbroken."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.types import Suite
from cotlab.run import launch
from cotlab.run.config import read_config
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from tests.support.running import finish, replies, row, scores, start

ITEMS = 41
SHARED = {"task_suite": "wordproblems", "limit": ITEMS, "provider": "organism", "model": "r100"}
KNOWN = {"robustness.perturbations": "paraphrase,numeric,order"}
"""Perturbations in words that the model knows: a text with another is turned away without a reply.
"""
OWN: dict[str, Any] = {
    "mediation": {},
    "composite": {"chain": "own", "temperature": 0.7, "set": KNOWN},
}
LEAST = {"mediation": 5_000, "composite": 1_000}
"""How many scores such a run makes at least."""
APART = {"mediation": 0.0, "composite": 0.0}
"""How far other batches may move a value: float32 log-probabilities in nats; cosines of vectors in
bfloat16."""


def config_of(scorer: str) -> dict[str, Any]:
    return {**SHARED, "scorer": [scorer], **OWN[scorer]}


@pytest.fixture(scope="module", params=OWN)
def unbroken(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("unbroken")
    assert (
        launch.start_run(read_config(config_of(request.param)), Store(folder), run_id="r").status
        == "done"
    )
    return request.param, folder


def told(folder: Path) -> RunProgress | None:
    """The run's progress, as a page or another command reads it."""
    if not (folder / "log.sqlite").exists():
        return None
    live = LiveRunStore(folder / "log.sqlite")
    try:
        found = live.get("r")
    finally:
        live.close()
    return found.progress if found else None


def flag_value(value: Any) -> Any:
    """Return an option's value as the command line takes it."""
    if isinstance(value, dict):
        return "=".join(*value.items())
    return value[0] if isinstance(value, list) else value


def batches(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "reports" / "r" / "run.log").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "batch"]


@pytest.mark.soak
def test_a_run_that_is_killed_half_way_ends_as_if_it_had_not_been(
    tmp_path: Path, unbroken: tuple[str, Path]
) -> None:
    scorer, whole = unbroken
    flags = [
        f"--{name.replace('_', '-')}={flag_value(value)}"
        for name, value in config_of(scorer).items()
    ]
    needed = replies(whole)
    process, seen = start(tmp_path, *flags, "--run-id", "r"), list[RunProgress]()
    while process.poll() is None and (not seen or not 5 <= seen[-1].items_done < ITEMS):
        time.sleep(0.05)
        seen += [now] if (now := told(tmp_path)) is not None else []
    process.kill()  # -9
    process.communicate()
    kept, done = replies(tmp_path), seen[-1].items_done
    assert 5 <= done < ITEMS and needed // 4 < kept < needed, (done, kept, needed)
    assert row(tmp_path, "r")["status"] == "running"
    told_replies = [now.replies for now in seen]
    assert (
        told_replies == sorted(told_replies) and len(set(told_replies)) > 3
    )  # it moved while it ran
    assert len({now.items_done for now in seen}) > 1 and seen[-1].items_total == ITEMS

    code, _, err = finish(start(tmp_path, "--resume", "r"))
    assert code == 0, err
    assert (
        row(tmp_path, "r")["status"] == "done"
        and set(read.list_ended_pairs(Store(tmp_path), "r")["item"]) == chosen()
    )
    assert (
        replies(tmp_path) == needed and row(tmp_path, "r")["asked"] == needed
    )  # nothing that was kept is asked again
    one, other = scores(tmp_path, "r"), scores(whole, "r")
    assert len(one) > LEAST[scorer] and other["value"].notna().mean() > 0.5
    assert one.drop(columns="value").equals(other.drop(columns="value"))
    assert one["value"].isna().equals(other["value"].isna())
    assert (one["value"] - other["value"]).abs().max() <= APART[scorer]


def chosen() -> set[str]:
    suite: Suite = launch.load_configured_suite(read_config(config_of("mediation")))[0]
    return {item.id for item in suite.items[:ITEMS]}


@pytest.mark.soak
def test_no_batch_is_most_of_a_run(unbroken: tuple[str, Path]) -> None:
    asked = [event["requests"] for event in batches(unbroken[1])]
    assert len(asked) > 10 and sum(asked) == replies(unbroken[1]) and max(asked) < sum(asked) / 2
