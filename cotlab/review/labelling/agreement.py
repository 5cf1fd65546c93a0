"""Agreement of raters, their disagreements, and their results on items with a known label."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import pandas as pd

from cotlab.core.keys import to_json_value
from cotlab.review.labelling.targets import verdicts
from cotlab.stats.agreement import agreement_table, cohen_kappa, nominal_alpha, percent_agreement
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.store import labels as label_store
from cotlab.store.database import Store

QUESTIONS = ("reasoning", "target")
"""What raters can agree on: the verdict on the chain, unsure included, and the target, missing
where unknown."""
_ITEM = ["run", "item_id"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Agreement of two raters on one question."""

    question: str
    """One of ``QUESTIONS``."""
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
class Rated:
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
    """Question → Krippendorff's alpha, nominal, with a bootstrap interval over items."""
    pairs: tuple[Pair, ...]
    """Every two raters that share an item, for each question."""
    raters: tuple[Rated, ...]
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
    current = verdicts(store, runs, queue)
    table = current.raters
    raters = sorted(table["rater"].unique())
    gold = {result.rater: result.right for result in gold_results(store, queue, runs=runs)}
    shared = table.groupby(_ITEM)["rater"].nunique()
    return Agreement(
        len(shared),
        int((shared > 1).sum()),
        {question: alpha_of(table, question, seed=seed, level=level) for question in QUESTIONS},
        tuple(pair for question in QUESTIONS for pair in _pairs(table, question, raters, level)),
        tuple(_rated(table[table["rater"] == rater], rater, gold.get(rater)) for rater in raters),
        _disagreements(table, current.adjudicated),
    )


def alpha_of(table: pd.DataFrame, question: str, *, seed: int, level: float = 0.95) -> Interval:
    """Return Krippendorff's alpha of one column of a label table."""
    return nominal_alpha(
        [group.tolist() for _, group in table.groupby(_ITEM)[question]], seed=seed, level=level
    )


def list_disagreements(
    store: Store, *, runs: Sequence[str] | None = None, queue: str | None = None
) -> pd.DataFrame:
    """Return the items on which raters differ, in the order of their first labels.

    Returns
    -------
    DataFrame
        ``run, item_id, on`` (reasoning, target or both), ``said`` (tuple of (rater, verdict,
        answer_correct)), ``adjudicated`` (bool: whether it is settled).
    """
    current = verdicts(store, runs, queue)
    return _disagreements(current.raters, current.adjudicated)


def items_to_adjudicate(
    store: Store, *, runs: Sequence[str] | None = None, queue: str | None = None
) -> list[tuple[str, str, str]]:
    """Return unsettled disagreements as items for ``make_queue(…, kind="adjudication")``."""
    disagreeing = list_disagreements(store, runs=runs, queue=queue)
    unsettled = disagreeing[~disagreeing["adjudicated"].astype(bool)]
    return [
        (row["run"], row["item_id"], f"raters differ on {row['on']}")
        for row in unsettled.to_dict("records")
    ]


@dataclass(frozen=True, slots=True)
class GoldResult:
    """A rater's result on gold items."""

    rater: str
    """Name of the rater."""
    right: Interval
    """Share labelled as expected, with Wilson's interval."""


def gold_results(
    store: Store, queue: str | None = None, *, runs: Sequence[str] | None = None
) -> list[GoldResult]:
    """Return each rater's result on the gold items of a queue, or of all queues, by name.

    A rater is right where all of the expected label was given; unsure is wrong.
    """
    names = [queue] if queue is not None else label_store.queues(store)["id"].tolist()
    right: dict[str, list[bool]] = {}
    for name in names:
        items = label_store.queue_items(store, name)
        gold = {
            (row["run"], row["item_id"]): json.loads(row["gold"])
            for row in items.to_dict("records")
            if row["gold"] and (runs is None or row["run"] in runs)
        }
        if not gold:
            continue
        given_labels = label_store.label_table(store, queue=name, history=True).drop_duplicates(
            [*_ITEM, "rater"], keep="last"
        )
        for row in given_labels.to_dict("records"):
            expected = gold.get((row["run"], row["item_id"]))
            if expected is not None and not row["withdrawn"]:
                right.setdefault(row["rater"], []).append(
                    all(row[part] == value for part, value in expected.items())
                )
    return [
        GoldResult(rater, wilson(sum(each), len(each))) for rater, each in sorted(right.items())
    ]


def _pairs(table: pd.DataFrame, question: str, raters: Sequence[str], level: float) -> list[Pair]:
    answers: dict[str, dict[tuple[str, str], Hashable]] = {rater: {} for rater in raters}
    for row in table.to_dict("records"):
        if row[question] is not None:
            answers[row["rater"]][row["run"], row["item_id"]] = row[question]
    out = []
    for first, second in combinations(raters, 2):
        both = [key for key in answers[first] if key in answers[second]]
        if both:
            a, b = ([answers[rater][key] for key in both] for rater in (first, second))
            names = tuple(str(label) for label in sorted({*a, *b}, key=str))
            counts = tuple(tuple(row) for row in agreement_table(a, b))
            kappa, same = cohen_kappa(a, b, level=level), percent_agreement(a, b, level=level)
            out.append(Pair(question, first, second, len(both), kappa, same, names, counts))
    return out


def _rated(table: pd.DataFrame, rater: str, gold: Interval | None) -> Rated:
    answers = table["reasoning"].tolist()
    return Rated(
        rater,
        len(answers),
        answers.count("acceptable"),
        answers.count("not_acceptable"),
        answers.count("unsure"),
        int(table["flagged"].astype(bool).sum()),
        gold or no_interval(None, 0, "no gold item was labelled"),
    )


def _disagreements(table: pd.DataFrame, adjudicated: pd.DataFrame) -> pd.DataFrame:
    settled = set(zip(adjudicated["run"], adjudicated["item_id"], strict=True))
    out = []
    for (run, item), group in table.groupby(_ITEM, sort=False):
        on = [
            question
            for question in QUESTIONS
            if len({answer for answer in group[question] if answer is not None}) > 1
        ]
        if on:
            answers = tuple(
                zip(group["rater"], group["reasoning"], group["answer_correct"], strict=True)
            )
            out.append((run, item, " and ".join(on), answers, (run, item) in settled))
    return pd.DataFrame(out, columns=[*_ITEM, "on", "said", "adjudicated"])


def agreement_json(measured: Agreement) -> dict[str, Any]:
    """Return ``Agreement`` as JSON values; an interval as its fields."""
    data = {
        **asdict(replace(measured, disagreements=pd.DataFrame())),
        "disagreements": measured.disagreements.to_dict("records"),
    }
    return dict(to_json_value(data))
