"""What the judges of a run found as a whole: the mean, what length has to do with it, and how far judges agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import over_run
from cotlab.core.types import Estimate, Facet
from cotlab.metrics.ablation.redundancy import mean_by_item
from cotlab.metrics.judge import cards
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.correlation import at_equal, spearman, spearman_p
from cotlab.stats.intervals import Interval, no_interval, t_interval, wilson

HUMAN = "human"
"""Who the labels of people are by, where judges are compared with them."""
_SCORES = (cards.SCORE.name, cards.PROMPT_GROUP.name)
_LENGTHS = (cards.SCORE.name, cards.LENGTH_DIFFERENCE.name, cards.PROMPT_GROUP.name)
_RATERS = (cards.SCORE.name, cards.HUMAN_SCORE.name)


class Judged(NamedTuple):
    """The items of one judge: ``value`` its mean score of each (NaN where it has none), by item id, and each one's prompt."""

    group: Facet
    value: pd.Series[float]
    prompts: pd.Series[float]

    @property
    def known(self) -> pd.Series[float]:
        return self.value.dropna()

    @property
    def n_undefined(self) -> int:
        return len(self.value) - len(self.known)

    @property
    def repeats(self) -> bool:
        """Whether two items that have a score ask the same."""
        return bool(self.prompts.loc[self.known.index].duplicated().any())


@over_run(cards.MEAN, reads=_SCORES)
def judge_mean(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Mean score of each judge with its t interval over items; over prompts beside it where these repeat."""
    out = []
    for judged in _judged(table):
        out.append(_estimate(cards.MEAN.name, judged, t_interval(judged.known.tolist())))
        if judged.repeats:
            means = judged.known.groupby(judged.prompts.loc[judged.known.index]).mean()
            grouped = judged._replace(group=(("cluster", "prompt"), *judged.group))
            out.append(
                _estimate(cards.MEAN.name, grouped, t_interval(means.tolist()), over="prompts")
            )
    return out


@over_run(cards.MEAN_EQUAL_LENGTH, reads=_LENGTHS)
def judge_mean_equal_length(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """The mean score that is expected of two responses of one length."""
    out = []
    for judged, lengths in _with_lengths(table):
        clusters = judged.prompts.loc[judged.known.index].tolist() if judged.repeats else None
        interval = at_equal(judged.known.tolist(), lengths.tolist(), clusters)
        card = cards.MEAN_EQUAL_LENGTH
        if interval.point is not None and not card.lo <= interval.point <= card.hi:
            interval = no_interval(None, interval.n, "the line leaves the scale at equal length")
        out.append(_estimate(card.name, judged, interval))
    return out


@over_run(cards.LENGTH_RHO, reads=_LENGTHS)
def judge_length_rho(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """How the score goes with the length difference, in ranks; p is part of the method."""
    out = []
    for judged, lengths in _with_lengths(table):
        interval, p = (
            spearman(judged.known.tolist(), lengths.tolist()),
            spearman_p(judged.known.tolist(), lengths.tolist()),
        )
        method = interval.method if p is None else f"{interval.method}; p = {p:.3g}"
        out.append(_estimate(cards.LENGTH_RHO.name, judged, interval, method=method))
    return out


@over_run(cards.LENGTH_P, reads=_LENGTHS)
def judge_length_p(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """The p-value of the same correlation."""
    out = []
    for judged, lengths in _with_lengths(table):
        p = spearman_p(judged.known.tolist(), lengths.tolist())
        reason = (
            spearman(judged.known.tolist(), lengths.tolist()).reason
            if p is None
            else "a p-value has no interval"
        )
        out.append(
            _estimate(
                cards.LENGTH_P.name,
                judged,
                no_interval(p, len(judged.known), reason or "undefined"),
                method="Spearman",
            )
        )
    return out


@over_run(cards.AGREEMENT, reads=_RATERS)
def judge_agreement(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Spearman's correlation of each two raters' scores; people count as one rater."""
    return [
        _estimate(cards.AGREEMENT.name, both, spearman(a.tolist(), b.tolist()))
        for both, a, b in _pairs_of_raters(table)
    ]


@over_run(cards.SAME_SIDE, reads=_RATERS)
def judge_same_side(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """How often two raters name the same response, or both none."""
    out = []
    for both, a, b in _pairs_of_raters(table):
        same = sum(x == y for x, y in zip(_sides(a), _sides(b), strict=True))
        interval = (
            wilson(same, len(a)) if len(a) else no_interval(None, 0, "no item was scored by both")
        )
        out.append(_estimate(cards.SAME_SIDE.name, both, interval))
    return out


@over_run(cards.KAPPA, reads=_RATERS)
def judge_kappa(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Cohen's kappa of the sides that each two raters name: how far they agree beyond chance."""
    return [
        _estimate(cards.KAPPA.name, both, cohen_kappa(_sides(a), _sides(b)))
        for both, a, b in _pairs_of_raters(table)
    ]


def _sides(scores: pd.Series[float]) -> list[int]:
    """1 where a score is above 0, -1 below, 0 for a tie."""
    return [int(score > 0) - int(score < 0) for score in scores]


def _judged(table: pd.DataFrame) -> Iterator[Judged]:
    """The scores of each judge, by item; a score of no judge stands for items that could not be judged at all."""
    prompts = _column(table, cards.PROMPT_GROUP.name)
    means = mean_by_item(table[table["metric"] == cards.SCORE.name])
    for facet, group in means.groupby("facet", sort=True):
        values = group.set_index("item_id")["value"]
        alone = pd.Series([-1.0 - k for k in range(len(values))], index=values.index)
        where = prompts.reindex(values.index)
        yield Judged(tuple(sorted(json.loads(str(facet)).items())), values, where.fillna(alone))


def _with_lengths(table: pd.DataFrame) -> Iterator[tuple[Judged, pd.Series[float]]]:
    """Each judge's items whose lengths are known, and the length differences of those with a score."""
    lengths = _column(table, cards.LENGTH_DIFFERENCE.name)
    for judged in _judged(table):
        both = judged.value.where(lengths.reindex(judged.value.index).notna())
        restricted = judged._replace(value=both)
        yield restricted, lengths.reindex(restricted.known.index)


def _column(table: pd.DataFrame, metric: str) -> pd.Series[float]:
    """A metric of one value an item, by item id."""
    return table[table["metric"] == metric].groupby("item_id")["value"].first()


def _pairs_of_raters(
    table: pd.DataFrame,
) -> Iterator[tuple[Judged, pd.Series[float], pd.Series[float]]]:
    raters = {
        dict(judged.group)["judge"]: judged.value
        for judged in _judged(table)
        if dict(judged.group).get("judge")
    }
    human = _column(table, cards.HUMAN_SCORE.name)
    if len(human):
        raters[HUMAN] = human
    for first, second in combinations(raters, 2):
        both = pd.concat([raters[first], raters[second]], axis=1, keys=["a", "b"])
        known = both.dropna()
        merged = both["a"].where(both["b"].notna())
        group = (("judge", first), ("with", second))
        yield Judged(group, merged, pd.Series(dtype=float)), known["a"], known["b"]


def _estimate(
    metric: str,
    judged: Judged,
    interval: Interval,
    *,
    over: str = "items",
    method: str | None = None,
) -> Estimate:
    return Estimate(
        metric,
        judged.group,
        interval.point,
        interval.lo,
        interval.hi,
        interval.level,
        interval.n,
        judged.n_undefined,
        method or interval.method,
        over,
        interval.reason,
    )
