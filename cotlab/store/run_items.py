"""The scored items of a run as a list: searched, filtered and cut into pages by the database.

Only what a page shows comes into memory, so that a run of 100,000 items is read as fast as it is
opened.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from cotlab.store.database import Store

ItemView = Literal["changed", "wrong", "undefined"]
"""Which items of a run are listed: an answer was changed, is wrong, or has no value."""
ITEM_VIEWS: tuple[ItemView, ...] = ("changed", "wrong", "undefined")
"""Every view, in the order of a page."""
# "wrong" as on the page of an item: of the first of the two metrics that it has, no more than half
# of the replies are right
_PART_SQL = """
    WITH facts AS (
        SELECT item_id, count(*) AS n_scores, count(*) FILTER (status != 'ok') AS n_undefined,
               count(value) AS n_values,
               bool_or(metric IN ('answer_change', 'perturbed_answer_change')) AS has_change,
               max(value) FILTER (metric IN ('answer_change', 'perturbed_answer_change')) AS change,
               bool_or(metric = 'baseline_correct') AS has_baseline,
               bool_or(metric = 'answer_correct') AS has_own,
               avg(value) FILTER (metric = 'baseline_correct') AS baseline,
               avg(value) FILTER (metric = 'answer_correct') AS own
        FROM scores WHERE run = $run GROUP BY item_id
    ),
    numbered AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY i.position) AS number, i.id, i.question, i.category,
               i.meta IS NULL AS is_redacted, len(i.steps) AS n_steps, f.n_scores, f.n_undefined,
               CASE WHEN f.has_baseline THEN f.baseline ELSE f.own END AS right_share,
               coalesce(f.change > 0, false) AS is_changed,
               f.n_values = 0 OR f.has_change AND f.change IS NULL
               OR (f.has_baseline OR f.has_own) AND right_share IS NULL AS is_undefined
        FROM runs r JOIN items i ON i.suite = r.suite JOIN facts f ON f.item_id = i.id
        WHERE r.id = $run
    ),
    listed AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY number) - 1 AS rank, * FROM numbered
        WHERE CASE $view WHEN 'changed' THEN is_changed WHEN 'wrong' THEN right_share <= 0.5
                         WHEN 'undefined' THEN is_undefined ELSE true END
          AND (len($words) = 0 OR list_bool_and(list_transform($words, lambda word: contains(
                lower(concat_ws(' ', id, CASE WHEN is_redacted THEN '' ELSE question END,
                                category)), word))))
    ),
    chosen AS (SELECT (SELECT number FROM numbered WHERE id = $item) AS number),
    place AS (
        SELECT number, (SELECT rank FROM listed WHERE id = $item) AS rank,
               (SELECT count(*) FROM listed) AS n_listed,
               (SELECT count(*) FROM listed WHERE listed.number < chosen.number) AS n_before
        FROM chosen
    ),
    part AS (
        SELECT *, coalesce($offset, $limit * (least(n_before, greatest(n_listed - 1, 0)) // $limit))
                  AS start
        FROM place
    )
    SELECT start, n_listed,
           {'all': (SELECT count(*) FROM numbered),
            'changed': (SELECT count(*) FROM numbered WHERE is_changed),
            'wrong': (SELECT count(*) FROM numbered WHERE right_share <= 0.5),
            'undefined': (SELECT count(*) FROM numbered WHERE is_undefined)},
           number, rank,
           (SELECT id FROM listed WHERE listed.rank = n_before - 1),
           (SELECT id FROM listed
            WHERE listed.rank = n_before + CASE WHEN part.rank IS NULL THEN 0 ELSE 1 END),
           (SELECT id FROM listed WHERE listed.rank = greatest(start - $limit, 0) AND start > 0),
           (SELECT id FROM listed WHERE listed.rank = start + $limit),
           (SELECT list({number: number, id: id, question: question, is_right: right_share > 0.5,
                         n_steps: n_steps, n_scores: n_scores, n_undefined: n_undefined}
                        ORDER BY rank)
            FROM listed WHERE listed.rank >= start AND listed.rank < start + $limit)
    FROM part
    """


class ItemFilter(NamedTuple):
    """Which of a run's items are listed; by default all."""

    text: str = ""
    """Words that each occur in the id, the question or the category, in any case."""
    view: ItemView | None = None
    """Only items of this view."""

    @property
    def is_open(self) -> bool:
        """Return whether every item is listed."""
        return not self.text.split() and self.view is None


class ListedItem(NamedTuple):
    """An item of a list."""

    number: int
    """Position among the scored items of the run, from 1."""
    id: str
    """The item's id."""
    question: str
    """Its question; a SHA-256 where the suite was redacted."""
    is_right: bool | None
    """Whether more than half of the judged replies are right; None where none was judged."""
    n_steps: int
    """Steps of the suite's chain."""
    n_scores: int
    """Scores of the item."""
    n_undefined: int
    """Scores without a value."""


class ItemCounts(NamedTuple):
    """How many scored items of a run each view has."""

    all: int
    """Scored items."""
    changed: int
    """Items of which a changed step changed the answer at least once."""
    wrong: int
    """Items of which no more than half of the judged replies are right."""
    undefined: int
    """Items without a value of whether the answer is right, or changes with a step."""


class ItemList(NamedTuple):
    """A part of the list of a run's items, and the place of one item in it."""

    items: tuple[ListedItem, ...]
    """The part, in the order of the suite."""
    start: int
    """Listed items before the part."""
    n_listed: int
    """Items in the list."""
    counts: ItemCounts
    """Items of each view, whatever is searched for."""
    number: int | None
    """Position of the chosen item in the run, from 1; None where it was not scored."""
    rank: int | None
    """Position of the chosen item in the list, from 0; None where it is not in it."""
    previous: str | None
    """Id of the listed item before the chosen one."""
    next: str | None
    """Id of the listed item after the chosen one."""
    before_part: str | None
    """Id of the first item of the part before this one."""
    after_part: str | None
    """Id of the first item of the part after this one."""


def list_items(
    store: Store,
    run: str,
    item_filter: ItemFilter,
    *,
    item: str | None = None,
    limit: int,
    offset: int | None = None,
) -> ItemList:
    """Return a part of the list of a run's scored items, in the order of the suite.

    Parameters
    ----------
    store : Store
    run : str
        Id of the run.
    item_filter : ItemFilter
        Which items are listed. Questions of a redacted suite are not searched.
    item : str, optional
        Id of the chosen item, whose place and neighbours are returned.
    limit : int
        Most items of the part.
    offset : int, optional
        Listed items before the part; by default the part is the page of ``limit`` items on which
        the chosen item stands, or would stand.
    """
    parameters: dict[str, Any] = {
        "run": run,
        "view": item_filter.view,
        "words": item_filter.text.encode("utf-8", "ignore").decode().lower().split(),
        "item": item,
        "limit": limit,
        "offset": offset,
    }
    [(start, n_listed, counts, *places, part)] = store.query_rows(_PART_SQL, parameters)
    items = tuple(ListedItem(**entry) for entry in part or ())
    return ItemList(items, start, n_listed, ItemCounts(**counts), *places)
