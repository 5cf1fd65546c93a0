"""The items that two runs share: which of them each answers right, and how far they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from cotlab.analysis.compare import Comparison, match_items
from cotlab.analysis.compare_verdict import measure_values
from cotlab.analysis.paired import OTHER_QUESTION_REASON
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.pair_differences import HeadlineDifference
from cotlab.store import read
from cotlab.store.database import Store

Outcome = Literal["regressed", "improved", "both wrong", "both right", "cannot be told"]
OUTCOMES: tuple[Outcome, ...] = (
    "regressed",
    "improved",
    "both wrong",
    "both right",
    "cannot be told",
)
"""What became of an item's answer, in the order of a page."""
_NOT_JUDGED_REASON = "no reply to the whole chain was judged in both runs"
_TIED_REASON = "half of its replies are right"


@dataclass(frozen=True, slots=True)
class ItemPair:
    """One item of two runs."""

    number: int
    """Position among the items of both runs, from 1."""
    item_id: str
    """The item's id."""
    question: str
    """Its question."""
    category: str
    """Its category; "" without one."""
    outcome: Outcome
    """What became of the answer."""
    reason: str | None
    """Why that cannot be told."""
    base: float | None
    """Value of the chosen measure in the base."""
    other: float | None
    """Value in the other run."""

    @property
    def difference(self) -> float | None:
        """Other less base; None where either has no value."""
        return None if self.base is None or self.other is None else self.other - self.base


def list_item_pairs(
    store: Store,
    base: str,
    other: str,
    comparison: Comparison | None,
    differences: Sequence[HeadlineDifference],
    measure: str | None,
    unpaired_reason: str | None = None,
) -> tuple[ItemPair, ...]:
    """Return the items that both runs have with the same question, in the order of the suite.

    Parameters
    ----------
    store : Store
    base, other : str
        Ids of the runs.
    comparison : Comparison or None
        Their paired values.
    differences : sequence of HeadlineDifference
        The metrics that an item may be sorted by.
    measure : str or None
        The measure whose values the pairs have.
    unpaired_reason : str, optional
        Why right answers of the two runs are not paired, where they are not.
    """
    base_items, other_items = (read.list_run_items(store, run) for run in (base, other))
    matched = match_items(base_items, other_items)
    same = matched.loc[matched["same"].eq(True), "item_id"]
    values_by_measure: dict[str, Mapping[str, tuple[float | None, float | None]]] = {}
    if comparison is not None:
        values_by_measure = {
            entry.measure: measure_values(comparison, entry) for entry in differences
        }
    rights = values_by_measure.get("wrong", {})
    reasons = _missing_reasons(comparison, differences)
    values = values_by_measure.get(measure or "", {})
    shared = base_items[base_items["id"].isin(same)]
    pairs = []
    columns = (shared[name].tolist() for name in ("id", "question", "category"))
    for number, (item_id, question, category) in enumerate(zip(*columns, strict=True), start=1):
        outcome, reason = _outcome(*rights.get(str(item_id), (None, None)))
        if reason == _NOT_JUDGED_REASON:
            reason = reasons.get(str(item_id), unpaired_reason or reason)
        pairs.append(
            ItemPair(
                number,
                str(item_id),
                str(question),
                "" if pd.isna(category) else str(category),
                outcome,
                reason,
                *values.get(str(item_id), (None, None)),
            )
        )
    return tuple(pairs)


def _outcome(base: float | None, other: float | None) -> tuple[Outcome, str | None]:
    if base is None or other is None:
        return "cannot be told", _NOT_JUDGED_REASON
    if 0.5 in (base, other):
        return "cannot be told", _TIED_REASON
    names: dict[tuple[bool, bool], Outcome] = {
        (True, True): "both right",
        (True, False): "regressed",
        (False, True): "improved",
        (False, False): "both wrong",
    }
    return names[base > 0.5, other > 0.5], None


def _missing_reasons(
    comparison: Comparison | None, differences: Sequence[HeadlineDifference]
) -> dict[str, str]:
    """Return why an item's answer has no value, by its id."""
    entry = next((entry for entry in differences if entry.measure == "wrong"), None)
    if comparison is None or entry is None:
        return {}
    rows = entry.paired_values(comparison)
    texts = {}
    columns = (rows[name].tolist() for name in ("item_id", "why_base", "why_other"))
    for item, base_reason, other_reason in zip(*columns, strict=True):
        reasons = [
            f"{side}: {text}"
            for side, text in (("base", base_reason), ("other", other_reason))
            if text and text != OTHER_QUESTION_REASON
        ]
        if reasons:
            texts[str(item)] = "; ".join(reasons)
    return texts


def count_outcomes(pairs: Sequence[ItemPair]) -> Mapping[Outcome, int]:
    """Return how many items have each outcome, those of none too."""
    counts = Counter(pair.outcome for pair in pairs)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def filter_item_pairs(
    pairs: Sequence[ItemPair], outcome: str | None, text: str, *, by_difference: bool
) -> list[ItemPair]:
    """Return the pairs of an outcome whose question, id or category has a text.

    With ``by_difference`` the largest differences come first, pairs without one last; else the
    order of the suite stays.
    """
    words = text.casefold().split()
    filtered = [
        pair
        for pair in pairs
        if outcome in (None, pair.outcome)
        and all(
            word in f"{pair.question} {pair.item_id} {pair.category}".casefold() for word in words
        )
    ]
    if by_difference:
        filtered.sort(
            key=lambda pair: (
                pair.difference is None,
                -round(abs(pair.difference or 0.0), 12),
                pair.number,
            )
        )
    return filtered


def default_measure(differences: Sequence[HeadlineDifference]) -> MeasureName | None:
    """Return the measure that items are sorted by: the one in which the runs differ most."""
    measured = [entry for entry in differences if entry.difference.point is not None]
    if not measured:
        return None
    if any(entry.measure == "wrong" and entry.is_beyond_chance for entry in measured):
        return "wrong"  # the sentence is about it
    return max(
        measured, key=lambda entry: (entry.is_beyond_chance, abs(entry.difference.point or 0.0))
    ).measure
