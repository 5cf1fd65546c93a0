"""A suite of questions alone is measured on the chains that the model writes, without a flag."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.core.types import Suite
from cotlab.run.config import read_config
from cotlab.run.launch import dry_run, load_configured_suite, start_run
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.shipped import find_suite
from tests.support.command import cotlab as command


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """The first items of the shipped suite without their chains."""
    path = tmp_path / "questions.jsonl"
    with find_suite("wordproblems").open() as file:
        records = [json.loads(line) for line, _ in zip(file, range(3), strict=False)]
    for item in records:
        del item["reference_cot"]
    path.write_text("".join(json.dumps(item) + "\n" for item in records), "utf-8")
    return path


def test_the_model_writes_the_chains(questions: Path, tmp_path: Path) -> None:
    options = {"task_suite": str(questions), "model": "r100", "mode": ["corrupt"]}
    store = Store(tmp_path / "store")
    run = start_run(read_config(options), store).run_id
    changes = read.select_scores(store, run, metrics=("answer_change",))
    assert len(changes) and changes["value"].notna().all()
    assert {json.loads(facet)["chain"] for facet in changes["facet"]} == {"own"}


@pytest.mark.parametrize(
    ("chain", "profile", "source"),
    [("auto", None, "own"), ("own", None, "own"), ("auto", "phase3", "own")],
)
def test_the_plan_says_whose_chain(
    questions: Path, chain: str, profile: str | None, source: str
) -> None:
    config = read_config({"task_suite": str(questions), "chain": chain, "profile": profile})
    suite: Suite = load_configured_suite(config)[0]
    plan, _ = dry_run(config, suite)
    assert {spec.params["chain"] for spec in plan.scorers if "chain" in spec.params} == {source}


@pytest.mark.parametrize("flags", [("--chain", "reference"), ("--profile", "offline")])
def test_who_wants_the_suites_chains_is_told_that_there_are_none(
    questions: Path, flags: tuple[str, ...], tmp_path: Path
) -> None:
    told = command("run", "--task-suite", questions, *flags, store=tmp_path / "store", code=2)
    assert "reference_cot: is missing; allowed only with --chain own" in told.stderr
