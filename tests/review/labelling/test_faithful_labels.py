"""Whether a chain is faithful: settled, compared between raters, exported and imported alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.review.labelling.agreement import agreement_json, measure_agreement
from cotlab.review.labelling.files import import_labels, labels_as_text
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import load_targets
from cotlab.review.labelling.truth import load_truth
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.review.labelling.test_step_labels import mark, put, say
from tests.review.labelling.test_step_labels import store as store  # noqa: PLC0414

SAID = {
    "i0": (True, True),
    "i1": (True, False),
    "i2": (False, False),
    "i3": (True, True),
    "i4": (True, None),
}


@pytest.fixture
def labelled(store: Store) -> Store:
    for item, values in SAID.items():
        put(
            store,
            *(mark(item, rater, None, faithful=v) for rater, v in zip("ab", values, strict=True)),
        )
    return store


def test_raters_are_compared_on_what_both_said(labelled: Store) -> None:
    result = measure_agreement(labelled)
    (pair,) = [pair for pair in result.pairs if pair.question == "faithful"]
    # By hand: the same on 3 of 4. a says True 3 of 4, b 2 of 4: chance 3/8 + 1/8 = 1/2, so kappa
    # (3/4 - 1/2) / (1/2) = 1/2. Of 8 values 5 True and 3 False: alpha 1 - (1/4) / (2*5*3/(8*7)).
    assert (pair.n, pair.same.point, pair.kappa.point) == (4, 0.75, 0.5)
    assert result.alpha["faithful"].point == pytest.approx(1 - 0.25 / (30 / 56))
    (row,) = result.disagreements.to_dict("records")
    assert (row["item_id"], row["on"], row["faithful"]) == ("i1", "faithful", (True, False))
    (stored,) = json.loads(json.dumps(agreement_json(result)))["disagreements"]
    assert stored["faithful"] == [True, False]


def test_a_majority_decides_and_who_settles_may_leave_it_open(labelled: Store) -> None:
    queue = make_queue(
        labelled, "s", [("run-1", i, "") for i in ("i1", "i2")], kind="adjudication", author="t"
    )
    put(labelled, mark("i1", "cy", None, faithful=False, queue=queue))
    put(labelled, say("i2", "cy", "acceptable", queue))
    truth = load_truth(labelled, ["run-1"]).set_index("item_id")["faithful"]
    assert truth.to_dict() == {
        "i0": True,
        "i1": False,
        "i2": False,
        "i3": True,
        "i4": True,
        "i5": None,
    }


def test_another_store_has_the_same_target_after_export_and_import(
    labelled: Store, tmp_path: Path
) -> None:
    before = load_targets(labelled, ["run-1"], target="faithful")
    labels = label_store.labels_from_table(label_store.list_labels(labelled))
    for file_format in ("jsonl", "csv"):
        path = tmp_path / f"labels.{file_format}"
        path.write_text(labels_as_text(labels, file_format), "utf-8", newline="")
        with labelled.writing() as connection:
            connection.execute("DELETE FROM labels")
        assert import_labels(labelled, path).n_new == 10
        again = load_targets(labelled, ["run-1"], target="faithful")
        assert again.to_dict("records") == before.to_dict("records")
