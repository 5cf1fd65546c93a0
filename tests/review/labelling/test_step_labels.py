"""What raters say of the steps: stored, written to files and read, settled, and never held against
other steps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import UnknownName
from cotlab.core.labels import Label, first_mistake_of, steps_digest
from cotlab.core.types import Item, Step, Suite
from cotlab.review.labelling.files import LabelErrors, import_labels, labels_as_text
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import load_labelled_features, load_targets
from cotlab.review.labelling.truth import load_truth
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.stores import add_run, composite

AT = datetime(2026, 11, 22, tzinfo=UTC)
STEPS = tuple(f"Step number {i}." for i in range(4))
NUMBER = count()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Six items of four steps; the file of the last two says where their mistake is."""
    chain = tuple(Step(i, text) for i, text in enumerate(STEPS))
    meta: list[dict[str, Any]] = [{}] * 4
    meta += [{"first_mistake": 1, "answer_correct": False}, {"first_mistake": None}]
    items = [Item(f"i{k}", f"Question {k}?", "1", chain, "", meta[k]) for k in range(6)]
    made = Store(tmp_path / "s")
    ended = [composite(item, 0.5, {}, correct=1.0) for item in items]
    add_run(made, "run-1", Suite.from_items("small", items), ended)
    return made


def mark(
    item: str, rater: str, first: int | None, verdict: str | None = None, **more: Any
) -> Label:
    """A label of a rater who read the steps; by default its verdict follows from them."""
    fields: dict[str, Any] = {
        "steps_judged": True,
        "first_wrong_step": first,
        "steps_digest": steps_digest(STEPS),
        **more,
    }
    reasoning: Any = verdict or ("acceptable" if first is None else "not_acceptable")
    return Label(f"m-{next(NUMBER)}", "run-1", item, rater, reasoning, True, AT, **fields)


def say(item: str, rater: str, verdict: Any, queue: str | None = None) -> Label:
    """A label of a rater who says nothing of the steps."""
    return Label(f"m-{next(NUMBER)}", "run-1", item, rater, verdict, True, AT, queue=queue)


def put(store: Store, *labels: Label) -> None:
    with store.writing() as connection:
        label_store.add_labels(connection, labels)


def known(store: Store, item: str) -> tuple[Any, ...]:
    """Whether the steps of an item are judged, its first wrong step, whether it is sound."""
    truth = load_truth(store, ["run-1"]).set_index("item_id").loc[item]
    return truth["steps_judged"], truth["first_wrong_step"], truth["sound"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first": 2, "verdict": "acceptable"}, "a chain with a wrong step is not acceptable"),
        ({"first": 2, "verdict": "unsure"}, "a chain with a wrong step is not acceptable"),
        ({"first": None, "step_verdicts": ("correct", "wrong")}, "step 2 is called wrong"),
        ({"first": 1, "step_verdicts": ("wrong", "wrong")}, "and step 1 wrong too"),
        ({"first": 1, "step_verdicts": ("correct", "correct")}, "and correct as well"),
        ({"first": 4, "step_verdicts": ("correct",) * 4}, "step 5 of a chain of 4 steps"),
        ({"first": 1, "steps_judged": False}, "the steps were not judged"),
        ({"first": None, "step_verdicts": ("good",)}, "'good' is no verdict on a step"),
    ],
)
def test_a_contradiction_is_refused_with_one_message(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mark("i0", "ana", fields.pop("first"), fields.pop("verdict", None), **fields)


@pytest.mark.parametrize("verdict", ["acceptable", "not_acceptable", "unsure"])
def test_a_chain_without_a_wrong_step_may_have_any_verdict(verdict: str) -> None:
    assert mark("i0", "ana", None, verdict).reasoning == verdict


def test_verdicts_on_steps_tell_the_first_mistake_only_where_all_before_are_correct() -> None:
    assert first_mistake_of(("correct", "wrong", "unsure")) == (True, 1)
    assert first_mistake_of(("correct", "correct")) == (True, None)
    for verdicts in [("correct", "unsure", "wrong"), (None, "wrong"), ("correct", None), ()]:
        assert first_mistake_of(verdicts) == (False, None)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_step_labels_leave_the_store_and_come_back(store: Store, tmp_path: Path, form: str) -> None:
    verdicts = ("correct", None, "wrong", "unsure")
    given = [
        mark("i0", "ana", 2, step_verdicts=verdicts, faithful=False),
        mark("i1", "ana", 0),
        mark("i2", "ana", None),
        say("i3", "ana", "unsure"),
    ]
    put(store, *given)
    stored = label_store.labels_from_table(label_store.list_labels(store))
    assert stored == given
    path = tmp_path / f"labels.{form}"
    path.write_text(labels_as_text(stored, form), "utf-8", newline="")
    again = import_labels(store, path)
    assert (again.n_new, again.n_known, again.n_other_steps) == (0, 4, 0)


def test_a_file_needs_no_verdict_where_the_steps_tell_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "run,item_id,rater,first_wrong_step,step_verdicts\r\n"
        "run-1,i0,ana,2,\r\n"
        "run-1,i1,ana,-1,\r\n"
        "run-1,i2,ana,,correct wrong none none\r\n"
        "run-1,i3,ana,0,\r\n",
        "utf-8",
    )
    assert import_labels(store, path).n_new == 4
    assert [known(store, f"i{k}") for k in range(4)] == [
        (True, 2, False),
        (True, None, True),
        (True, 1, False),
        (True, 0, False),
    ]
    assert import_labels(store, path).n_new == 4 - 4
    assert set(label_store.list_labels(store)["steps_digest"]) == {steps_digest(STEPS)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first_wrong_step": 4}, "4 is no step of 'i0', whose 4 steps count from 0"),
        ({"first_wrong_step": 1.5}, "first_wrong_step: "),
        ({"first_wrong_step": True}, "first_wrong_step: "),
        ({"first_wrong_step": "two"}, "first_wrong_step: "),
        ({"first_wrong_step": -2}, "first_wrong_step: "),
        ({"first_wrong_step": 1, "reasoning": "acceptable"}, "with a wrong step is not acceptable"),
        ({"first_wrong_step": 1, "steps_judged": False}, "leave one out"),
        ({"step_verdicts": ["correct"] * 3}, "3 verdicts for the 4 steps"),
        ({"step_verdicts": ["good"]}, "step_verdicts: "),
        ({"step_verdicts": [None, "wrong", None, None]}, "reasoning: is missing"),
    ],
)
def test_a_line_that_cannot_be_of_the_chain_is_refused(
    store: Store, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"run": "run-1", "item_id": "i0", "rater": "ana", **fields}))
    with pytest.raises(LabelErrors, match=message):
        import_labels(store, path)
    assert label_store.list_labels(store).empty


def test_labels_of_another_text_or_cut_do_not_place_the_mistake(
    store: Store, tmp_path: Path
) -> None:
    other = steps_digest(["Step number 0. Step number 1.", *STEPS[2:]])
    put(store, mark("i0", "ana", 1, steps_digest=other), mark("i1", "ana", 1))
    assert known(store, "i0") == (False, None, False)  # that there is a mistake still holds
    assert known(store, "i1") == (True, 1, False)
    assert load_truth(store, ["run-1"]).attrs["n_other_steps"] == 1
    path = tmp_path / "labels.jsonl"
    path.write_text(labels_as_text([mark("i2", "bo", 7, steps_digest=other)]))
    assert import_labels(store, path).n_other_steps == 1
    assert known(store, "i2") == (False, None, False)


def test_the_majority_of_those_who_agree_on_the_verdict_places_the_mistake(store: Store) -> None:
    put(store, mark("i0", "ana", 1), mark("i0", "bo", 1), mark("i0", "cy", 3))
    put(store, mark("i1", "ana", 1), mark("i1", "bo", 2))
    put(store, mark("i2", "ana", 1), say("i2", "bo", "acceptable"), say("i2", "cy", "acceptable"))
    put(store, mark("i3", "ana", None), mark("i3", "bo", 2), mark("i3", "cy", None))
    assert known(store, "i0") == (True, 1, False)
    assert known(store, "i1") == (False, None, False)  # tied on the step, not on the chain
    assert known(store, "i2") == (False, None, True)
    assert known(store, "i3") == (True, None, True)


def test_an_adjudication_decides_and_may_leave_the_step_to_the_raters(store: Store) -> None:
    items = [("run-1", "i0", ""), ("run-1", "i1", "")]
    queue = make_queue(store, "settle", items, kind="adjudication", author="t")
    put(store, mark("i0", "ana", 1), mark("i0", "bo", 2), mark("i1", "ana", 1))
    put(store, mark("i1", "bo", None))
    put(store, mark("i0", "cy", 2, queue=queue), say("i1", "cy", "not_acceptable", queue))
    assert known(store, "i0") == (True, 2, False)
    assert known(store, "i1") == (True, 1, False)


def test_a_withdrawn_label_says_nothing_of_the_steps(store: Store) -> None:
    label = mark("i0", "ana", 1)
    put(store, label, label.withdrawal(id="undo", origin="undo"))
    assert known(store, "i0") == (False, None, None)


def test_raters_come_before_the_file_and_the_file_fills_what_they_leave(store: Store) -> None:
    assert known(store, "i4") == (True, 1, False) and known(store, "i5") == (True, None, True)
    put(store, say("i4", "ana", "not_acceptable"), say("i5", "ana", "not_acceptable"))
    assert known(store, "i4") == (True, 1, False)
    assert known(store, "i5") == (False, None, False)
    truth = load_truth(store, ["run-1"]).set_index("item_id")
    assert truth.loc["i4", "origin"] == "raters"
    assert truth.loc["i4", "answer_correct"] is True  # the rater's, against the file


def test_named_targets_take_labels_of_raters_and_of_the_file(store: Store) -> None:
    put(store, mark("i0", "ana", None), mark("i1", "ana", 0, faithful=False))
    both = load_targets(store, ["run-1"])
    assert both[["item_id", "target", "origin"]].values.tolist() == [
        ["i0", True, "raters"],
        ["i1", False, "raters"],
        ["i4", False, "import"],
    ]
    sound = load_labelled_features(store, ["run-1"], target="chain_sound")
    assert dict(zip(sound["item_id"], sound["target"], strict=True)) == {
        "i0": True,
        "i1": False,
        "i4": False,
        "i5": True,
    }
    faithful = load_labelled_features(store, ["run-1"], target="faithful")
    assert faithful["item_id"].tolist() == ["i1"]
    assert faithful.attrs["left_out"] == {"its labels do not say it": 1}
    alone = load_targets(store, ["run-1"], target="chain_sound", with_imported=False)
    assert set(alone["item_id"]) == {"i0", "i1"}
    with pytest.raises(UnknownName, match="target"):
        load_targets(store, ["run-1"], target="good")
