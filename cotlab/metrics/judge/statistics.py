"""Run-level statistics of judge scores: mean, effect of length, and agreement of judges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.program import run_statistic
from cotlab.core.types import Estimate, Facet, MetricCard
from cotlab.metrics.cards import interval_estimate, mean_by_item
from cotlab.metrics.judge import cards
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.correlation import at_equal, spearman, spearman_p
from cotlab.stats.intervals import Interval, no_interval, t_interval, wilson

HUMAN_RATER = "human"
"""Who the labels of people are by, where judges are compared with them."""
_SCORE_METRICS = (cards.JUDGE_SCORE.name, cards.PROMPT_GROUP.name)
_LENGTH_METRICS = (cards.JUDGE_SCORE.name, cards.LENGTH_DIFFERENCE.name, cards.PROMPT_GROUP.name)
_RATER_METRICS = (cards.JUDGE_SCORE.name, cards.HUMAN_SCORE.name)


class JudgeScores(NamedTuple):
    """The items of one judge."""

    group: Facet
    """The facet of its scores."""
    value: pd.Series[float]
    """Mean score by item id; NaN where there is none."""
    prompt_numbers: pd.Series[float]
    """Number of the prompt by item id: items that ask the same share it."""

    @property
    def defined_values(self) -> pd.Series[float]:
        """The scores that are defined."""
        return self.value.dropna()

    @property
    def n_undefined(self) -> int:
        """How many items have no score."""
        return len(self.value) - len(self.defined_values)

    @property
    def has_repeated_prompts(self) -> bool:
        """Whether two items that have a score ask the same."""
        return bool(self.prompt_numbers.loc[self.defined_values.index].duplicated().any())


@run_statistic(cards.MEAN_SCORE, input_metrics=_SCORE_METRICS)
def judge_mean(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate the mean score of each judge with its t interval over items.

    Where prompts repeat, the mean over prompts is given beside it.
    """
    out = []
    for judge_scores in _scores_by_judge(table):
        out.append(
            _make_estimate(
                cards.MEAN_SCORE, judge_scores, t_interval(judge_scores.defined_values.tolist())
            )
        )
        if judge_scores.has_repeated_prompts:
            means = judge_scores.defined_values.groupby(
                judge_scores.prompt_numbers.loc[judge_scores.defined_values.index]
            ).mean()
            prompt_scores = judge_scores._replace(
                group=(("cluster", "prompt"), *judge_scores.group)
            )
            out.append(
                _make_estimate(
                    cards.MEAN_SCORE, prompt_scores, t_interval(means.tolist()), over="prompts"
                )
            )
    return out


@run_statistic(cards.MEAN_EQUAL_LENGTH, input_metrics=_LENGTH_METRICS)
def judge_mean_equal_length(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """Estimate the mean score that is expected of two responses of one length."""
    out = []
    for judge_scores, lengths in _scores_with_lengths(table):
        clusters = (
            judge_scores.prompt_numbers.loc[judge_scores.defined_values.index].tolist()
            if judge_scores.has_repeated_prompts
            else None
        )
        interval = at_equal(judge_scores.defined_values.tolist(), lengths.tolist(), clusters)
        card = cards.MEAN_EQUAL_LENGTH
        if interval.point is not None and not card.lo <= interval.point <= card.hi:
            interval = no_interval(None, interval.n, "the line leaves the scale at equal length")
        out.append(_make_estimate(card, judge_scores, interval))
    return out


@run_statistic(cards.LENGTH_RHO, input_metrics=_LENGTH_METRICS)
def judge_length_rho(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """How the score goes with the length difference, in ranks; p is part of the method."""
    out = []
    for judge_scores, lengths in _scores_with_lengths(table):
        interval = spearman(judge_scores.defined_values.tolist(), lengths.tolist())
        p_value = spearman_p(judge_scores.defined_values.tolist(), lengths.tolist())
        if p_value is not None:
            interval = replace(interval, method=f"{interval.method}; p = {p_value:.3g}")
        out.append(_make_estimate(cards.LENGTH_RHO, judge_scores, interval))
    return out


@run_statistic(cards.LENGTH_P_VALUE, input_metrics=_LENGTH_METRICS)
def judge_length_p(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate the p-value of the same correlation."""
    out = []
    for judge_scores, lengths in _scores_with_lengths(table):
        p_value = spearman_p(judge_scores.defined_values.tolist(), lengths.tolist())
        reason = "a p-value has no interval"
        if p_value is None:
            reason = (
                spearman(judge_scores.defined_values.tolist(), lengths.tolist()).reason
                or "undefined"
            )
        interval = no_interval(p_value, len(judge_scores.defined_values), reason, method="Spearman")
        out.append(_make_estimate(cards.LENGTH_P_VALUE, judge_scores, interval))
    return out


@run_statistic(cards.AGREEMENT, input_metrics=_RATER_METRICS)
def judge_agreement(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Spearman's correlation of each two raters' scores; people count as one rater."""
    return [
        _make_estimate(
            cards.AGREEMENT, pair_scores, spearman(first_scores.tolist(), second_scores.tolist())
        )
        for pair_scores, first_scores, second_scores in _pair_raters(table)
    ]


@run_statistic(cards.SAME_SIDE, input_metrics=_RATER_METRICS)
def judge_same_side(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """How often two raters name the same response, or both none."""
    out = []
    for pair_scores, first_scores, second_scores in _pair_raters(table):
        n_same_side = sum(
            x == y
            for x, y in zip(_score_sides(first_scores), _score_sides(second_scores), strict=True)
        )
        interval = (
            wilson(n_same_side, len(first_scores))
            if len(first_scores)
            else no_interval(None, 0, "no item was scored by both")
        )
        out.append(_make_estimate(cards.SAME_SIDE, pair_scores, interval))
    return out


@run_statistic(cards.KAPPA, input_metrics=_RATER_METRICS)
def judge_kappa(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Cohen's kappa of the sides that each two raters name: how far they agree beyond chance."""
    return [
        _make_estimate(
            cards.KAPPA,
            pair_scores,
            cohen_kappa(_score_sides(first_scores), _score_sides(second_scores)),
        )
        for pair_scores, first_scores, second_scores in _pair_raters(table)
    ]


STATISTICS = (
    judge_mean,
    judge_mean_equal_length,
    judge_length_rho,
    judge_length_p,
    judge_agreement,
    judge_same_side,
    judge_kappa,
)


def _score_sides(scores: pd.Series[float]) -> list[int]:
    """Return 1 where a score is above 0, -1 below, 0 for a tie."""
    return [int(score > 0) - int(score < 0) for score in scores]


def _scores_by_judge(table: pd.DataFrame) -> Iterator[JudgeScores]:
    """Yield the scores of each judge by item.

    A score of no judge stands for items that could not be judged at all.
    """
    prompt_by_item = _values_by_item(table, cards.PROMPT_GROUP.name)
    means = mean_by_item(table[table["metric"] == cards.JUDGE_SCORE.name])
    for facet, group in means.groupby("facet", sort=True):
        values = group.set_index("item_id")["value"]
        unique_numbers = pd.Series([-1.0 - k for k in range(len(values))], index=values.index)
        prompt_numbers = prompt_by_item.reindex(values.index)
        yield JudgeScores(
            tuple(sorted(json.loads(str(facet)).items())),
            values,
            prompt_numbers.fillna(unique_numbers),
        )


def _scores_with_lengths(table: pd.DataFrame) -> Iterator[tuple[JudgeScores, pd.Series[float]]]:
    """Yield each judge's items of known length, and the length differences of those scored."""
    lengths = _values_by_item(table, cards.LENGTH_DIFFERENCE.name)
    for judge_scores in _scores_by_judge(table):
        value_with_length = judge_scores.value.where(
            lengths.reindex(judge_scores.value.index).notna()
        )
        yield (
            judge_scores._replace(value=value_with_length),
            lengths.reindex(value_with_length.dropna().index),
        )


def _values_by_item(table: pd.DataFrame, metric: str) -> pd.Series[float]:
    """Return a metric of one value an item, by item id."""
    return table[table["metric"] == metric].groupby("item_id")["value"].first()


def _pair_raters(
    table: pd.DataFrame,
) -> Iterator[tuple[JudgeScores, pd.Series[float], pd.Series[float]]]:
    scores_by_rater = {
        dict(judge_scores.group)["judge"]: judge_scores.value
        for judge_scores in _scores_by_judge(table)
        if dict(judge_scores.group).get("judge")
    }
    human_scores = _values_by_item(table, cards.HUMAN_SCORE.name)
    if len(human_scores):
        scores_by_rater[HUMAN_RATER] = human_scores
    for first_rater, second_rater in combinations(scores_by_rater, 2):
        pair_table = pd.concat(
            [scores_by_rater[first_rater], scores_by_rater[second_rater]], axis=1, keys=["a", "b"]
        )
        complete_pairs = pair_table.dropna()
        shared_scores = pair_table["a"].where(pair_table["b"].notna())
        group = (("judge", first_rater), ("with", second_rater))
        yield (
            JudgeScores(group, shared_scores, pd.Series(dtype=float)),
            complete_pairs["a"],
            complete_pairs["b"],
        )


def _make_estimate(
    card: MetricCard, judge_scores: JudgeScores, interval: Interval, *, over: str = "items"
) -> Estimate:
    return interval_estimate(
        card.name, judge_scores.group, interval, judge_scores.n_undefined, resampled_unit=over
    )
