"""Agreement on where the first mistake is, against values computed by hand."""

from __future__ import annotations

import pytest

from cotlab.core.labels import steps_digest
from cotlab.review.labelling.agreement import AFTER_MISTAKE, measure_agreement
from cotlab.stats.agreement import nominal_alpha
from cotlab.store.database import Store
from tests.review.labelling.test_step_labels import mark, put, say
from tests.review.labelling.test_step_labels import store as store  # noqa: PLC0414

PLACES = {"i0": (1, 1), "i1": (0, 1), "i2": (None, None), "i3": (2, None), "i4": (3, 3)}


def test_the_place_is_compared_by_name_and_step_by_step(store: Store) -> None:
    for item, places in PLACES.items():
        put(store, *(mark(item, rater, place) for rater, place in zip("ab", places, strict=True)))
    put(store, say("i5", "a", "acceptable"), mark("i5", "b", None))  # a said nothing of the steps
    result = measure_agreement(store)
    (pair,) = [pair for pair in result.pairs if pair.question == "first_mistake"]
    assert (pair.n, pair.same.point) == (5, 3 / 5)
    assert set(pair.labels) == {"no mistake", "step 1", "step 2", "step 3", "step 4"}
    # By hand: names 1: 3 times step 2, 3 times none, 2 times step 4, once step 1 and step 3, of 10:
    # chance to differ 1 - (6 + 6 + 2) / 90 = 76 / 90; observed 2 of 5.
    assert result.alpha["first_mistake"].point == pytest.approx(1 - 0.4 / (76 / 90))
    # Steps at or after the first mistake: i0 3 and 3, i1 4 and 3, i2 0 and 0, i3 2 and 0, i4 1 and
    # 1 of 4: 17 yes and 23 no of 40; they differ on 3 of 20 steps.
    expected = 1 - (3 / 20) / (2 * 17 * 23 / (40 * 39))
    by_step = result.alpha[AFTER_MISTAKE]
    assert by_step.point == pytest.approx(expected) and by_step.n == 5
    assert by_step.lo is not None and by_step.hi is not None and by_step.lo < by_step.hi
    differ = result.disagreements.set_index("item_id")["places"].to_dict()
    assert differ["i1"] == ("step 1", "step 2") and differ["i3"] == ("step 3", "no mistake")


def test_labels_of_other_steps_are_not_compared(store: Store) -> None:
    put(store, mark("i0", "a", 1), mark("i0", "b", 2, steps_digest=steps_digest(["other"])))
    result = measure_agreement(store)
    assert result.alpha["first_mistake"].n == 0 and result.alpha[AFTER_MISTAKE].n == 0
    assert result.alpha["first_mistake"].reason == "no item was rated by two"


def test_groups_are_drawn_whole() -> None:
    """Each item four times in its group: alpha's interval is that of the items, about twice as wide
    as if the copies were independent."""
    items = [[True, True], [False, False], [True, False], [False, False], [True, True]] * 4
    once = nominal_alpha(items, seed=1)
    copies = [item for item in items for _ in range(4)]
    grouped = nominal_alpha(copies, seed=1, groups=[k for k in range(20) for _ in range(4)])
    independent = nominal_alpha(copies, seed=1)
    widths = [(interval.hi or 0) - (interval.lo or 0) for interval in (once, grouped, independent)]
    assert grouped.n == 20 and widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[1] > 1.6 * widths[2]
