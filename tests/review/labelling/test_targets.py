"""One target for each item that has a clear one: majorities, ties, adjudications; and how far
raters agree."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from cotlab.analysis.tables.run import agreement_points
from cotlab.core.errors import UnknownName
from cotlab.core.keys import canonical_json
from cotlab.core.labels import Label
from cotlab.review.labelling import agreement as review
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.targets import (
    NO_SCORES_REASON,
    load_labelled_features,
    load_targets,
)
from cotlab.review.labelling.truth import TIE_REASON, UNSURE_REASON
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.stores.queued import fill, pairs

NUMBER = count()
WORDS = {"+": "acceptable", "-": "not_acceptable", "?": "unsure"}
AT = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(tmp_path / "s", runs=("run-1", "run-2"))


def say(
    store: Store,
    said: Iterable[tuple[str, str, str]],
    *,
    queue: str | None = None,
    run: str = "run-1",
    right: bool | None = True,
) -> None:
    """Labels as (rater, item, "+", "-", "?" or "x", which withdraws)."""
    rows = [
        Label(
            f"l-{next(NUMBER)}",
            run,
            item,
            rater,
            WORDS.get(verdict),
            right,
            AT,
            queue=queue,
            withdrawn=verdict == "x",  # type: ignore[arg-type]
        )
        for rater, item, verdict in said
    ]
    with store.writing() as connection:
        label_store.add_labels(connection, rows)


def test_the_majority_decides_and_ties_are_counted(store: Store) -> None:
    say(store, [(rater, "i-0", verdict) for rater, verdict in zip("abc", "++-", strict=True)])
    say(store, [(rater, "i-1", verdict) for rater, verdict in zip("ab", "+-", strict=True)])
    say(store, [(rater, "i-3", verdict) for rater, verdict in zip("ab", "?-", strict=True)])
    say(
        store,
        [
            ("a", "i-4", "?"),
            ("a", "i-5", "+"),
            ("a", "i-5", "-"),
            ("a", "i-6", "+"),
            ("a", "i-6", "x"),
        ],
    )
    say(store, [("a", "i-7", "+")], right=None)  # nobody knows whether the answer is right
    say(store, [("a", "i-8", "+")])  # in the suite, never measured
    table = load_labelled_features(store)
    assert table[["item_id", "target", "raters"]].values.tolist() == [
        ["i-0", True, 3],
        ["i-3", False, 1],
        ["i-5", False, 1],
    ]
    assert table["target"].dtype == bool and table["r_raw"].tolist() == [0.5] * 3
    assert table.attrs["left_out"] == {TIE_REASON: 1, UNSURE_REASON: 2, NO_SCORES_REASON: 1}
    assert load_targets(store).set_index("item_id")["why"].to_dict()["i-1"] == TIE_REASON


def test_runs_are_told_apart_and_an_unknown_one_is_an_error(store: Store) -> None:
    say(store, [("a", "i-0", "+")])
    say(store, [("a", "i-0", "-"), ("a", "i-1", "-")], run="run-2")
    assert load_labelled_features(store)[["run", "target"]].values.tolist() == [
        ["run-1", True],
        ["run-2", False],
        ["run-2", False],
    ]
    assert load_labelled_features(store, ["run-2"])["item_id"].tolist() == ["i-0", "i-1"]
    with pytest.raises(UnknownName, match="run-9"):
        load_labelled_features(store, ["run-9"])


def test_a_store_without_labels_has_nothing_to_learn_from(store: Store) -> None:
    table = load_labelled_features(store)
    assert (
        table.empty
        and table.attrs["left_out"] == {}
        and {"r_raw", "target", "raters", "question"} <= set(table.columns)
    )
    found = review.measure_agreement(store)
    assert (found.n_items, found.raters, found.pairs) == (0, (), ())
    assert (
        found.alpha["target"].point is None
        and found.alpha["target"].reason == "no item was rated by two"
    )


def test_an_adjudication_decides_and_leaves_what_raters_said(store: Store) -> None:
    say(store, [(rater, item, "+") for item in ("i-0", "i-1", "i-3") for rater in "ab"])
    say(store, [("b", "i-1", "-"), ("b", "i-3", "-")])
    found = review.find_items_to_adjudicate(store)
    assert [(item, why) for _, item, why in found] == [
        (i, "raters differ on reasoning and target") for i in ("i-1", "i-3")
    ]
    queue = make_queue(store, "settle", found, kind="adjudication", author="me")
    say(store, [("b", "i-1", "+"), ("c", "i-3", "?")], queue=queue)  # b had said the contrary
    assert load_labelled_features(store)[["item_id", "target", "raters"]].values.tolist() == [
        ["i-0", True, 2],
        ["i-1", True, 1],
    ]
    assert load_labelled_features(store).attrs["left_out"] == {UNSURE_REASON: 1}
    seen = review.list_disagreements(store)
    assert (
        seen["adjudicated"].tolist() == [True, True]
        and review.find_items_to_adjudicate(store) == []
    )
    assert seen["said"][0] == (("a", "acceptable", True), ("b", "not_acceptable", True))


def test_agreement_by_hand(store: Store) -> None:
    """a and b share six items, c labels another; a's and b's table is [[3, 1], [0, 2]] (rows a;
    acceptable, not).

    Kappa: observed 5/6, chance (4 · 3 + 2 · 3) / 36 = 1/2, so 2/3. Alpha: o_ab = 1 twice over of n
    = 12 labels, 7 and 5: 1 - 11 · 2 / (144 - 49 - 25) = 1 - 22/70.
    """
    a, b = "++++--", "+++---"
    say(store, [("a", f"i-{k}", verdict) for k, verdict in enumerate(a)])
    say(store, [("b", f"i-{k}", verdict) for k, verdict in enumerate(b)] + [("c", "i-7", "+")])
    found = review.measure_agreement(store, seed=3)
    assert (found.n_items, found.n_shared) == (7, 6)
    for question in review.QUESTIONS:
        assert found.alpha[question].point == pytest.approx(1 - 22 / 70)
        assert found.alpha[question].n == 6 and "1 item of one rater left out" in (
            found.alpha[question].note or ""
        )
    reasoning, target = found.pairs
    assert reasoning.kappa.point == pytest.approx(
        2 / 3
    ) == target.kappa.point and reasoning.same.point == pytest.approx(5 / 6)
    assert (reasoning.first, reasoning.second, reasoning.n) == ("a", "b", 6)
    assert (reasoning.labels, reasoning.counts) == (
        ("acceptable", "not_acceptable"),
        ((3, 1), (0, 2)),
    )
    assert (target.labels, target.counts) == (("False", "True"), ((2, 0), (1, 3)))
    assert found.disagreements[["item_id", "on"]].values.tolist() == [
        ["i-3", "reasoning and target"]
    ]
    assert [(one.rater, one.n, one.acceptable, one.not_acceptable) for one in found.raters] == [
        ("a", 6, 4, 2),
        ("b", 6, 3, 3),
        ("c", 1, 1, 0),
    ]
    assert '"first":"a"' in canonical_json(review.agreement_json(found))


def test_unsure_is_a_verdict_but_no_target(store: Store) -> None:
    say(store, [("a", "i-0", "+"), ("b", "i-0", "?"), ("a", "i-1", "-"), ("b", "i-1", "-")])
    found = review.measure_agreement(store)
    assert found.disagreements[["item_id", "on"]].values.tolist() == [["i-0", "reasoning"]]
    assert [(pair.question, pair.n) for pair in found.pairs] == [("reasoning", 2), ("target", 1)]


def test_agreement_within_a_queue_is_of_what_was_said_there(store: Store) -> None:
    one, two = (make_queue(store, name, pairs(2), raters=2, author="me") for name in ("one", "two"))
    say(store, [("a", "i-0", "+"), ("b", "i-0", "+")], queue=one)
    say(store, [("a", "i-0", "-")], queue=two)
    assert review.measure_agreement(store, queue=one).disagreements.empty
    assert len(review.measure_agreement(store).disagreements) == 1  # a thinks otherwise by now
    with pytest.raises(UnknownName, match="queue 'three'"):
        review.measure_agreement(store, queue="three")


def test_raters_are_held_against_gold(store: Store) -> None:
    both_wrong = {"reasoning": "not_acceptable", "answer_correct": False}
    gold = {("run-1", "i-0"): {"reasoning": "acceptable"}, ("run-1", "i-1"): both_wrong}
    queue = make_queue(store, "q", pairs(3), gold=gold, author="me")
    say(
        store,
        [
            ("a", "i-0", "+"),
            ("a", "i-2", "-"),
            ("b", "i-0", "-"),
            ("b", "i-0", "+"),
            ("b", "i-1", "?"),
        ],
        queue=queue,
    )
    say(store, [("a", "i-1", "-")], queue=queue, right=False)
    results = {
        rater: (share.point, share.n)
        for rater, share in review.find_gold_results(store, queue).items()
    }
    assert results == {"a": (1.0, 2), "b": (0.5, 2)}
    assert [one.gold.point for one in review.measure_agreement(store, queue=queue).raters] == [
        1.0,
        0.5,
    ]
    assert review.find_gold_results(store, queue, runs=["run-2"]) == {}


def test_both_raters_of_a_pair_stand_in_the_figure(store: Store) -> None:
    long = "a rater of so long a name"
    say(store, [(rater, f"i-{k}", "+") for k in range(2) for rater in (long, f"{long} too", "b")])
    labels = [
        row["label"]
        for row in agreement_points(review.measure_agreement(store), "reasoning").to_dict("records")
    ]
    assert (
        labels[0] == "alpha, 3 raters"
        and "kappa, a rater of so lon… and b" in labels
        and len(labels) == 4
    )
