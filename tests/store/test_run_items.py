"""The list of a run's items, as the database searches, filters and cuts it into pages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import cotlab
from cotlab.core.types import Item, Step, Suite
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.run_items import ItemCounts, ItemFilter, ItemView, list_items

N_ITEMS = 9
# value of an item's scores: (right, answers changed at step 0 and 1); None has no value
VALUES: dict[int, tuple[float | None, Sequence[float | None]]] = {
    0: (1, (0, 1)),
    1: (0, (0, 0)),
    2: (1, (0, 0)),
    3: (None, (1, 0)),
    4: (1, (None, None)),
    5: (0, (1, 1)),
    6: (1, (None, 0)),
    7: (1, (0, 0)),
    8: (0, (None, 1)),
}
WRONG, CHANGED, UNDEFINED = (1, 5, 8), (0, 3, 5, 8), (3, 4)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """Return a store and its run, whose scores are those of ``VALUES``."""
    folder = tmp_path_factory.mktemp("items") / "store"
    items = [
        Item(f"n-{k}", f"How many trains {'leave' if k % 2 else 'Arrive'}?", "3", (Step(0, "2"),))
        for k in range(N_ITEMS)
    ]
    store = Store(folder)
    run_id = cotlab.run_suite(
        Suite.from_items("trains", items), store=folder, model="faithful-a", mode=["remove"]
    ).run_id
    with store.writing() as connection:
        connection.execute("DELETE FROM scores WHERE run = ?", [run_id])
        for k, (right, changes) in VALUES.items():
            rows = [("baseline_correct", None, right)]
            rows += [("answer_change", step, value) for step, value in enumerate(changes)]
            for metric, step, value in rows:
                connection.execute(
                    "INSERT INTO scores BY NAME SELECT ? AS run, 'ablation' AS scorer,"
                    " ? AS metric, ? AS item_id, ? AS step, 0 AS sample, '{}' AS facet,"
                    " ?::DOUBLE AS value, ? AS status",
                    [run_id, metric, f"n-{k}", step, value, "ok" if value is not None else "n/a"],
                )
    return store, run_id


def ids(numbers: Sequence[int]) -> list[str]:
    return [f"n-{k}" for k in numbers]


@pytest.mark.parametrize(
    ("view", "expected"),
    [(None, range(N_ITEMS)), ("wrong", WRONG), ("changed", CHANGED), ("undefined", UNDEFINED)],
)
def test_a_view_lists_its_items_in_the_order_of_the_suite(
    stored: tuple[Store, str], view: ItemView | None, expected: Sequence[int]
) -> None:
    found = list_items(*stored, ItemFilter(view=view), limit=20)
    assert [entry.id for entry in found.items] == ids(expected)
    assert [entry.number for entry in found.items] == [k + 1 for k in expected]
    assert found.n_listed == len(expected)
    assert found.counts == ItemCounts(N_ITEMS, len(CHANGED), len(WRONG), len(UNDEFINED))
    rights = {1: True, 0: False, None: None}
    assert all(entry.is_right is rights[VALUES[entry.number - 1][0]] for entry in found.items)


def test_words_are_searched_in_id_and_question_in_any_case(stored: tuple[Store, str]) -> None:
    def found(text: str, view: ItemView | None = None) -> list[str]:
        return [i.id for i in list_items(*stored, ItemFilter(text, view), limit=20).items]

    assert found("ARRIVE trains") == ids([0, 2, 4, 6, 8])
    assert found("n-3") == ["n-3"] and found("leave", "wrong") == ids([1, 5])
    assert found("%") == found("_") == found("' OR 1=1 --") == found("x\0\udc80") == []
    assert found("  ") == ids(range(N_ITEMS))


def test_an_item_has_a_place_and_neighbours_in_the_list_or_beside_it(
    stored: tuple[Store, str],
) -> None:
    wrong = ItemFilter(view="wrong")
    inside = list_items(*stored, wrong, item="n-5", limit=2)
    assert (inside.number, inside.rank, inside.previous, inside.next) == (6, 1, "n-1", "n-8")
    assert (inside.start, inside.before_part, inside.after_part) == (0, None, "n-8")
    beside = list_items(*stored, wrong, item="n-6", limit=2)
    assert (beside.number, beside.rank, beside.previous, beside.next) == (7, None, "n-5", "n-8")
    assert (beside.start, beside.before_part, [i.id for i in beside.items]) == (2, "n-1", ["n-8"])
    after = list_items(*stored, ItemFilter(view="undefined"), item="n-8", limit=2)
    assert (after.previous, after.next, after.start) == ("n-4", None, 0)
    strange = list_items(*stored, wrong, item="no such", limit=2)
    assert (strange.number, strange.rank, strange.start) == (None, None, 0)
    assert list_items(*stored, ItemFilter("nothing"), item="n-1", limit=2).items == ()


def test_a_part_is_cut_where_it_is_asked_for(stored: tuple[Store, str]) -> None:
    parts = [list_items(*stored, ItemFilter(), limit=4, offset=k) for k in (0, 4, 8, 12)]
    assert [entry.id for part in parts for entry in part.items] == ids(range(N_ITEMS))
    scores = read.run_scores(*stored)
    counts = scores.groupby("item_id").size()
    assert all(i.n_scores == counts[i.id] for part in parts for i in part.items)
    assert [i.n_undefined for part in parts for i in part.items] == [0, 0, 0, 1, 2, 0, 1, 0, 1]
    assert list_items(stored[0], "no such run", ItemFilter(), limit=4).counts.all == 0
