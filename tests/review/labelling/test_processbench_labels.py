"""Labelled chains of a run in ProcessBench's form: what is written, left out, and read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cotlab
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.labels import steps_digest
from cotlab.core.types import Item, Step, Suite
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.labelling.processbench import (
    UNLABELLED_REASON,
    UNPLACED_REASON,
    WHOLE_CHAIN_REASON,
    processbench_labels,
)
from cotlab.review.labelling.truth import load_truth
from cotlab.store.database import Store, store_folder
from cotlab.suites.importers.formats import import_suite_file
from cotlab.suites.jsonl import write_suite
from cotlab.text.steps import split_steps
from tests.review.labelling.test_step_labels import STEPS, mark, put, say
from tests.review.labelling.test_truth import store_suite
from tests.support.hostile import ALL

STRANGE = (f"{ALL} \u2028 1 = 2.", 'So "x"\nis 3.', "  Done.  ")


@pytest.fixture
def store() -> Store:
    """Eight chains of known or unknown authors, six of them labelled by raters."""
    plain = tuple(Step(i, text) for i, text in enumerate(STEPS))
    strange = tuple(Step(i, text) for i, text in enumerate(STRANGE))
    meta = {"first_mistake": 0, "answer_correct": False, "generator": "some/model"}
    items = [
        Item(f"sums-{k}", f"{ALL} {k}?", "1", strange if k == 3 else plain, "", meta if k else {})
        for k in range(8)
    ]
    made = store_suite(store_folder(), Suite.from_items("s", items), store=Store())
    put(made, mark("sums-0", "ana", 2), mark("sums-0", "bo", 2), mark("sums-0", "cy", None))
    put(made, mark("sums-1", "ana", None))
    put(made, mark("sums-2", "ana", 1), mark("sums-2", "bo", 3))  # tied on the step
    put(made, mark("sums-3", "ana", 1, steps_digest=steps_digest(STRANGE)))
    put(made, mark("sums-4", "ana", None, "not_acceptable"))
    put(made, say("sums-5", "ana", "not_acceptable"))
    return made


def test_raters_labels_are_written_and_what_is_open_is_counted(store: Store) -> None:
    written = processbench_labels(store, "run-1")
    rows = [json.loads(line) for line in written.text.split("\n") if line]
    assert [list(row) for row in rows] == [
        ["id", "generator", "problem", "steps", "final_answer_correct", "label"]
    ] * 3
    assert [(row["id"], row["generator"], row["label"]) for row in rows] == [
        ("sums-0", None, 2),
        ("sums-1", "some/model", -1),
        ("sums-3", "some/model", 1),
    ]
    assert rows[2]["steps"] == list(STRANGE) and rows[2]["final_answer_correct"] is True
    assert written.n_chains == 3 and dict(written.n_left_out_by_reason) == {
        UNPLACED_REASON: 2,
        WHOLE_CHAIN_REASON: 1,
        UNLABELLED_REASON: 2,
    }


@pytest.mark.soak
def test_the_file_is_imported_with_the_same_labels(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "labelled.jsonl"
    arguments = ["labels", "export", "--run", "run-1", "--format", "processbench"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(path)])
    assert result.exit_code == 0 and "3 labelled chains" in result.output
    assert f"Left out: 2 chains: {UNLABELLED_REASON}." in result.output

    suite = import_suite_file("processbench", path, split=split_steps)
    write_suite(suite, tmp_path / "suite.jsonl")
    done = cotlab.run_suite(
        str(tmp_path / "suite.jsonl"),
        provider="echo",
        model="echo",
        scorer=["flags"],
        chain="reference",
    )
    before, after = (
        load_truth(store, [run]).set_index("item_id") for run in ("run-1", done.run_id)
    )
    names = ["n_steps", "steps_judged", "first_wrong_step", "sound", "answer_correct"]
    exported = ["sums-0", "sums-1", "sums-3"]
    assert after.index.tolist() == exported and set(after["origin"]) == {"import"}
    assert after[names].to_dict("index") == before.loc[exported, names].to_dict("index")
    assert [step.text for step in suite.items[2].steps] == list(STRANGE)


def test_a_run_has_to_be_named_and_known(store: Store) -> None:
    for words in ((), ("--run", "run-1", "--history"), ("--run", "run-1", "--queue", "q")):
        result = CliRunner().invoke(app, ["labels", "export", "--format", "processbench", *words])
        assert isinstance(result.exception, ConfigError | UnknownName) and not result.stdout
    with pytest.raises(UnknownName):
        processbench_labels(store, "run-7")


@pytest.mark.soak
def test_chains_of_the_model_are_named_after_it() -> None:
    store = Store()
    run = cotlab.run_suite(
        "wordproblems", model="r100", provider="organism", scorer=["flags"], chain="own", limit=2
    ).run_id
    item = load_truth(store, [run])["item_id"].tolist()[0]
    steps = load_judged_steps(store, [(run, item)])[run, item]
    label = mark(item, "ana", 0, steps_digest=steps_digest(steps))
    put(store, replace(label, run_id=run))
    (row,) = [json.loads(line) for line in processbench_labels(store, run).text.splitlines()]
    assert (row["id"], row["generator"], row["label"]) == (item, "organism/r100", 0)
    assert row["steps"] == list(steps)
