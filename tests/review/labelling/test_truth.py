"""What is known of labelled chains, from the metadata of a suite and from raters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import UnknownName
from cotlab.core.types import Item, Score, Step, Suite
from cotlab.review.labelling.truth import TARGETS, load_truth, target_values
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from cotlab.suites.importers.formats import import_suite_file
from cotlab.text.steps import split_steps
from tests.support.stores import add_run

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "processbench"
STEPS = tuple(Step(i, f"Step number {i}.") for i in range(3))


def store_suite(
    folder: Path, suite: Suite, run: str = "run-1", store: Store | None = None
) -> Store:
    """A run that has one score of each item of a suite."""
    store = store or Store(folder / "store")
    ended = [
        EndedItem("flags", 1, "p", item.id, (Score("flag_rate", item.id, 0.0),))
        for item in suite.items
    ]
    add_run(store, run, suite, ended, scorers=("flags",))
    return store


@pytest.mark.parametrize(
    ("meta", "judged", "first", "sound"),
    [
        ({"first_mistake": None}, True, None, True),
        ({"first_mistake": 0}, True, 0, False),
        ({"first_mistake": 2}, True, 2, False),
        ({"first_mistake": 3}, False, None, None),
        ({"first_mistake": -1}, False, None, None),
        ({"first_mistake": True}, False, None, None),
        ({"first_mistake": "1"}, False, None, None),
        ({}, False, None, None),
    ],
)
def test_the_first_mistake_is_a_step_of_the_chain_or_is_not_known(
    meta: Mapping[str, Any], judged: bool, first: int | None, sound: bool | None, tmp_path: Path
) -> None:
    suite = Suite.from_items("small", [Item("a", "Q?", None, STEPS, "", meta)])
    (row,) = load_truth(store_suite(tmp_path, suite), ["run-1"]).to_dict("records")
    assert (row["steps_judged"], row["first_wrong_step"], row["sound"]) == (judged, first, sound)
    assert row["origin"] == ("import" if judged else None)
    assert (row["domain"], row["source"], row["n_steps"]) == (None, "small", 3)


def test_targets_follow_from_chain_and_answer(tmp_path: Path) -> None:
    cases = [(None, True), (None, False), (1, True), (None, None), (1, None)]
    items = [
        Item(f"i{n}", "Q?", None, STEPS, "", {"first_mistake": m, "answer_correct": a})
        for n, (m, a) in enumerate(cases)
    ]
    items.append(Item("i5", "Other?", None, STEPS, "law", {"faithful": False}))
    truth = load_truth(store_suite(tmp_path, Suite.from_items("s", items)), ["run-1"])
    values = {name: target_values(truth, name).tolist() for name in TARGETS}
    assert values == {
        "chain_sound": [True, True, False, True, False, None],
        "chain_sound_given_correct": [True, None, False, None, None, None],
        "answer_and_chain": [True, False, False, None, False, None],
        "faithful": [None] * 5 + [False],
    }
    assert truth["domain"].tolist() == [None] * 5 + ["law"]
    assert truth["cluster"].nunique() == 2
    with pytest.raises(UnknownName, match="target"):
        target_values(truth, "sound")
    with pytest.raises(UnknownName, match="run"):
        load_truth(Store(tmp_path / "store"), ["run-1", "run-9"])


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/processbench is missing")
def test_processbench_is_known_from_its_file(tmp_path: Path) -> None:
    suite = import_suite_file("processbench", DATA / "gsm8k.json", split=split_steps)
    truth = load_truth(store_suite(tmp_path, suite), ["run-1"])
    records = json.loads((DATA / "gsm8k.json").read_text())
    labels = [-1 if first is None else first for first in truth["first_wrong_step"]]
    assert labels == [record["label"] for record in records]
    assert truth["answer_correct"].tolist() == [r["final_answer_correct"] for r in records]
    assert truth["n_steps"].tolist() == [len(record["steps"]) for record in records]
    assert truth["cluster"].nunique() == len({record["problem"] for record in records})
    assert set(truth["domain"]) == {"gsm8k"}
    assert truth["steps_judged"].all() and set(truth["origin"]) == {"import"}


def test_questions_are_one_cluster_across_runs_of_10_000_items(tmp_path: Path) -> None:
    items = [
        Item(f"i{n}", f"Question {n}?", None, STEPS, "", {"first_mistake": n % 3})
        for n in range(10_000)
    ]
    store = store_suite(tmp_path, Suite.from_items("large", items))
    store_suite(tmp_path, Suite.from_items("other", items[:5]), "run-2", store)
    truth = load_truth(store, ["run-1", "run-2"])
    assert len(truth) == 10_005
    assert truth["cluster"][:5].tolist() == truth["cluster"][10_000:].tolist()
