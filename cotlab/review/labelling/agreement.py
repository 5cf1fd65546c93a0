"""Agreement of raters, their disagreements, and their results on items with a known label."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.core.labels import VERDICTS
from cotlab.review.labelling.judged_steps import load_step_labels
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.truth import (
    ADJUDICATION_KIND,
    ITEM_COLUMNS,
    load_current_labels,
)
from cotlab.stats.agreement import agreement_table, cohen_kappa, nominal_alpha, percent_agreement
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.live import ItemKey

QUESTIONS = ("reasoning", "target")
"""What raters can agree on of a chain: the verdict, unsure included, and the target, missing where
unknown."""
FIRST_MISTAKE = "first_mistake"
"""Question of where the first mistake is, missing where the steps were not judged."""
FAITHFUL = "faithful"
"""Question of whether the chain is faithful, missing where a rater did not say."""
_ALL_QUESTIONS = (*QUESTIONS, FIRST_MISTAKE, FAITHFUL)
AFTER_MISTAKE = "after_first_mistake"
"""Question of each step: whether it is at or after the first mistake."""


@dataclass(frozen=True, slots=True)
class RaterPairAgreement:
    """Agreement of two raters on one question."""

    question: str
    """One of ``QUESTIONS``, ``FIRST_MISTAKE`` or ``FAITHFUL``."""
    first: str
    """Name of the first rater."""
    second: str
    """Name of the second rater."""
    n: int
    """Items that both answered."""
    kappa: Interval
    """Cohen's kappa."""
    same: Interval
    """Share of equal answers."""
    labels: tuple[str, ...]
    """Answers that name the rows and columns of ``counts``."""
    counts: tuple[tuple[int, ...], ...]
    """Items by answer of the first rater (rows) and of the second (columns)."""


@dataclass(frozen=True, slots=True)
class RaterSummary:
    """Summary of one rater."""

    rater: str
    """Name of the rater."""
    n: int
    """Items labelled."""
    acceptable: int
    """Items labelled acceptable."""
    not_acceptable: int
    """Items labelled not acceptable."""
    unsure: int
    """Items labelled unsure."""
    flagged: int
    """Items flagged."""
    gold: Interval
    """Share of gold items labelled as expected."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters on the same items."""

    n_items: int
    """Items with a label."""
    n_shared: int
    """Items with labels of two raters or more."""
    alpha: dict[str, Interval]
    """Question → Krippendorff's alpha, nominal, with a bootstrap interval over items; that of
    ``AFTER_MISTAKE`` is over all steps, and its interval over chains."""
    pairs: tuple[RaterPairAgreement, ...]
    """Every two raters that share an item, for each question."""
    raters: tuple[RaterSummary, ...]
    """Summary of each rater."""
    disagreements: pd.DataFrame
    """Items on which raters differ, as ``list_disagreements`` returns them."""


def measure_agreement(
    store: Store,
    *,
    runs: Sequence[str] | None = None,
    queue: str | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Measure the agreement of all raters on their current labels.

    Adjudications are left out: they were made in view of other labels.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
        Only labels of these runs.
    queue : str, optional
        Only labels that were given in this queue.
    seed : int
        Of the resampling.
    level : float in (0, 1)
        Of the intervals.
    """
    current_labels = load_current_labels(store, runs, queue)
    table = with_first_mistakes(store, current_labels.rater_labels)
    raters = sorted(table["rater"].unique())
    gold_accuracy_by_rater = find_gold_results(store, queue, runs=runs)
    n_raters_by_item = table.groupby(ITEM_COLUMNS)["rater"].nunique()
    return Agreement(
        len(n_raters_by_item),
        int((n_raters_by_item > 1).sum()),
        {
            question: nominal_alpha(
                [group.tolist() for _, group in table.groupby(ITEM_COLUMNS)[question]],
                seed=seed,
                level=level,
            )
            for question in _ALL_QUESTIONS
        }
        | {AFTER_MISTAKE: after_mistake_alpha(table, seed=seed, level=level)},
        tuple(
            pair
            for question in _ALL_QUESTIONS
            for pair in _measure_rater_pairs(table, question, raters, level)
        ),
        tuple(
            _rater_summary(table[table["rater"] == rater], rater, gold_accuracy_by_rater.get(rater))
            for rater in raters
        ),
        _disagreement_table(table, current_labels.adjudications),
    )


def list_disagreements(
    store: Store, *, runs: Sequence[str] | None = None, queue: str | None = None
) -> pd.DataFrame:
    """Return the items on which raters differ, in the order of their first labels.

    Returns
    -------
    DataFrame
        ``run, item_id, on`` (what they differ on), ``said`` (tuple of (rater, verdict,
        answer_correct)), ``adjudicated`` (bool: whether it is settled), ``places`` (for each of
        ``said`` the first mistake: "step 3", "no mistake" or None), ``faithful`` (for each of
        ``said`` True, False or None).
    """
    current_labels = load_current_labels(store, runs, queue)
    return _disagreement_table(
        with_first_mistakes(store, current_labels.rater_labels), current_labels.adjudications
    )


def find_items_to_adjudicate(
    store: Store, *, runs: Sequence[str] | None = None, queue: str | None = None
) -> list[tuple[str, str, str]]:
    """Return unsettled disagreements as items for ``make_queue(…, kind="adjudication")``."""
    disagreements = list_disagreements(store, runs=runs, queue=queue)
    unsettled_rows = disagreements[~disagreements["adjudicated"].astype(bool)]
    return [
        (row["run"], row["item_id"], f"raters differ on {row['on']}")
        for row in unsettled_rows.to_dict("records")
    ]


def find_gold_results(
    store: Store, queue: str | None = None, *, runs: Sequence[str] | None = None
) -> dict[str, Interval]:
    """Return the share of gold items that each rater labelled as expected, by name.

    Of a queue, or of all queues. A rater is right where all of the expected label was given; unsure
    is wrong.
    """
    queue_ids = [queue] if queue else label_store.list_label_queues(store)["id"].tolist()
    is_right_by_rater: dict[str, list[bool]] = {}
    for queue_id in queue_ids:
        expected = {
            (row["run"], row["item_id"]): json.loads(row["gold"])
            for row in label_store.list_queue_items(store, queue_id).to_dict("records")
            if row["gold"] and (runs is None or row["run"] in runs)
        }
        given = label_store.list_labels(store, queue=queue_id, history=True) if expected else None
        if given is None:
            continue
        newest = given.drop_duplicates([*ITEM_COLUMNS, "rater"], keep="last")
        for row in newest[~newest["withdrawn"].astype(bool)].to_dict("records"):
            if wanted := expected.get((row["run"], row["item_id"])):
                is_right = all(row[name] == value for name, value in wanted.items())
                is_right_by_rater.setdefault(row["rater"], []).append(is_right)
    return {
        rater: wilson(sum(flags), len(flags)) for rater, flags in sorted(is_right_by_rater.items())
    }


def _measure_rater_pairs(
    table: pd.DataFrame, question: str, raters: Sequence[str], level: float
) -> list[RaterPairAgreement]:
    answers_by_rater: dict[str, dict[ItemKey, Hashable]] = {rater: {} for rater in raters}
    for row in table.to_dict("records"):
        if row[question] is not None:
            answers_by_rater[row["rater"]][row["run"], row["item_id"]] = row[question]
    pairs = []
    for names in combinations(raters, 2):
        first, second = (answers_by_rater[name] for name in names)
        if shared := [key for key in first if key in second]:
            answers = [first[key] for key in shared], [second[key] for key in shared]
            pairs.append(
                RaterPairAgreement(
                    question,
                    *names,
                    n=len(shared),
                    kappa=cohen_kappa(*answers, level=level),
                    same=percent_agreement(*answers, level=level),
                    labels=tuple(map(str, sorted({*answers[0], *answers[1]}, key=str))),
                    counts=tuple(map(tuple, agreement_table(*answers))),
                )
            )
    return pairs


def _rater_summary(table: pd.DataFrame, rater: str, gold_accuracy: Interval | None) -> RaterSummary:
    answers = table["reasoning"].tolist()
    n_flagged = int(table["flagged"].astype(bool).sum())
    gold_accuracy = gold_accuracy or no_interval(None, 0, "no gold item was labelled")
    n_acceptable, n_not_acceptable, n_unsure = map(answers.count, VERDICTS)
    return RaterSummary(
        rater, len(answers), n_acceptable, n_not_acceptable, n_unsure, n_flagged, gold_accuracy
    )


def _disagreement_table(table: pd.DataFrame, adjudications: pd.DataFrame) -> pd.DataFrame:
    settled_items = set(zip(adjudications["run"], adjudications["item_id"], strict=True))
    rows = [
        {
            "run": key[0],
            "item_id": key[1],
            "on": " and ".join(differing),
            "said": tuple(
                zip(group["rater"], group["reasoning"], group["answer_correct"], strict=True)
            ),
            "adjudicated": key in settled_items,
            "places": tuple(group["first_mistake"]),
            "faithful": tuple(group["faithful"]),
        }
        for key, group in table.groupby(ITEM_COLUMNS, sort=False)
        if (differing := [q for q in _ALL_QUESTIONS if len({*group[q]} - {None}) > 1])
    ]
    names = ("on", "said", "adjudicated", "places", "faithful")
    return pd.DataFrame(rows, columns=[*ITEM_COLUMNS, *names])


def agreement_json(agreement: Agreement) -> dict[str, Any]:
    """Return ``Agreement`` as JSON values; an interval as its fields."""
    data = asdict(replace(agreement, disagreements=pd.DataFrame()))
    data["disagreements"] = agreement.disagreements.to_dict("records")
    return dict(to_json_value(data))


NO_MISTAKE = "no mistake"
"""Place of the first mistake where no step is wrong."""


def with_first_mistakes(store: Store, labels: pd.DataFrame) -> pd.DataFrame:
    """Return labels with the place of the first mistake as a name.

    Parameters
    ----------
    store : Store
    labels : DataFrame
        Rows of ``list_labels``.

    Returns
    -------
    DataFrame
        The columns of ``labels``, ``n_steps`` (steps of the item, 0 where the label judges none)
        and ``first_mistake``: "step 3", counted from 1, "no mistake", or None where the rater did
        not judge the steps that the item has now.
    """
    step_labels = load_step_labels(store, labels)
    places = [
        None if not is_current else NO_MISTAKE if first is None else f"step {first + 1}"
        for is_current, first in zip(
            step_labels["these_steps"], labels["first_wrong_step"], strict=True
        )
    ]
    return labels.assign(
        n_steps=step_labels["n_steps"],
        first_mistake=pd.Series(places, index=labels.index, dtype=object),
    )


def after_mistake_alpha(labels: pd.DataFrame, *, seed: int, level: float = 0.95) -> Interval:
    """Return Krippendorff's alpha of "this step is at or after the first mistake" over all steps.

    Raters who place the first mistake one step apart differ on one step, those who differ on
    whether there is one on many. The interval draws whole chains.

    Parameters
    ----------
    labels : DataFrame
        As ``with_first_mistakes`` returns it.
    seed : int
        Of the resampling.
    level : float in (0, 1)

    Returns
    -------
    Interval
        As ``nominal_alpha``; ``n`` counts the chains that two raters read.
    """
    judged = labels[labels["first_mistake"].notna()]
    ratings: list[list[bool]] = []
    chains: list[Hashable] = []
    for key, group in judged.groupby(ITEM_COLUMNS, sort=False):
        if len(group) < 2:
            continue
        n_steps = int(group["n_steps"].iloc[0])
        firsts = [n_steps if first is None else int(first) for first in group["first_wrong_step"]]
        ratings += [[step >= first for first in firsts] for step in range(n_steps)]
        chains += [key] * n_steps
    return nominal_alpha(ratings, seed=seed, level=level, groups=chains)


ADJUDICATION_NAME = "disagreements"


class Settlement(NamedTuple):
    """The label that settles an item, and who gave it."""

    rater: str
    """Name of the adjudicator."""
    at: datetime
    """When they gave it."""
    verdict: str
    """The settled verdict on the chain."""
    first_mistake: str | None
    """Where the first mistake is, as ``with_first_mistakes`` names it; None where not said."""
    faithful: bool | None
    """Whether the chain is faithful; None where not said."""


def open_adjudication(store: Store, *, queue: str | None = None, author: str) -> str:
    """Return a queue of the disagreements that nobody settled, made where there is none.

    The newest adjudication that has just these items unlabelled is used again.

    Parameters
    ----------
    store : Store
    queue : str, optional
        Only disagreements of labels that were given in this queue.
    author : str
        Who makes it.

    Raises
    ------
    QueueError
        If nothing is left to settle.
    UnknownName
        If there is no such queue.
    """
    items = find_items_to_adjudicate(store, queue=queue)
    unsettled = {(run, item_id) for run, item_id, _ in items}
    queues = label_store.list_label_queues(store)
    for queue_id in queues.loc[queues["kind"] == ADJUDICATION_KIND, "id"]:
        with store.reading() as connection:
            labelled = {key[:2] for key in label_store.find_labelled_items(connection, queue_id)}
            entries = label_store.get_queue_items(connection, queue_id)
        if items and {entry[:2] for entry in entries} - labelled == unsettled:
            return str(queue_id)
    name = f"{ADJUDICATION_NAME} of {queue}" if queue else ADJUDICATION_NAME
    return make_queue(store, name, items, kind=ADJUDICATION_KIND, author=author)


def load_rater_labels(store: Store, runs: list[str]) -> dict[ItemKey, pd.DataFrame]:
    """Return what raters said of each item of these runs, adjudications left out.

    Returns
    -------
    dict
        (run, item id) → rows of ``with_first_mistakes``, in the order in which they were given.
    """
    table = with_first_mistakes(store, load_current_labels(store, runs).rater_labels)
    return {(str(run), str(item)): group for (run, item), group in table.groupby(ITEM_COLUMNS)}


def list_settlements(store: Store) -> dict[ItemKey, Settlement]:
    """Return the label that settles each adjudicated item: its last adjudication."""
    table = with_first_mistakes(store, load_current_labels(store).adjudications)
    return {
        (row["run"], row["item_id"]): Settlement(
            row["rater"],
            row["at_"].to_pydatetime(),
            row["reasoning"],
            row["first_mistake"],
            row["faithful"],
        )
        for row in table.sort_values("seq").to_dict("records")
    }
