"""A suite is divided by question: nothing of one part is in the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cotlab.cli.suites import app
from cotlab.core.types import CLUSTER_KEY, Item, Step, Suite
from cotlab.suites.jsonl import load_suite, write_suite
from cotlab.suites.split import split_by_question


def suite_of(n_questions: int) -> Suite:
    """Three chains a question: two with its text, one of the cluster with another text."""
    items = []
    for number in range(n_questions):
        for draw, question in enumerate((f"Q{number}?", f"Q{number}?", f"Q{number}, again?")):
            meta = {CLUSTER_KEY: f"c{number}"}
            items.append(
                Item(
                    f"{number}-{draw}", question, "1", (Step(0, "One."), Step(1, "So 1.")), "", meta
                )
            )
    return Suite.from_items("s", items)


def test_chains_of_one_question_stay_together_and_none_is_lost() -> None:
    suite = suite_of(40)
    first, second = split_by_question(suite, 0.25, seed=3)
    clusters = [{item.meta[CLUSTER_KEY] for item in part.items} for part in (first, second)]
    assert not clusters[0] & clusters[1] and (len(clusters[0]), len(clusters[1])) == (10, 30)
    assert {*first.items, *second.items} == {*suite.items}
    assert split_by_question(suite, 0.25, seed=3) == (first, second)
    assert split_by_question(suite, 0.25, seed=4) != (first, second)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan"), 0.01])
def test_a_share_that_leaves_a_part_empty_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        split_by_question(suite_of(10), share)


def test_the_command_writes_two_suites(tmp_path: Path) -> None:
    write_suite(suite_of(10), tmp_path / "s.jsonl")
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    command = ["split", str(tmp_path / "s.jsonl"), "--first", str(first), "--second", str(second)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and "15 items" in done.stdout
    assert [len(load_suite(path).items) for path in (first, second)] == [15, 15]
