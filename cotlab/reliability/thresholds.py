"""Thresholds from costs of errors and reviews, or from a precision of released answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.policy import PolicyError, Thresholds
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.stats.resample import GroupResamples, percentile_interval

Floats = NDArray[np.float64]
MIN_DOMAIN_LABELS = 30
"""Fewest labels of a domain with separate thresholds."""
N_FOLDS = 10
"""Folds of questions, each of which is judged at a threshold that the others choose."""
NO_LABEL_REASON = "no answer with r_cal is labelled"


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of one answer, in any one unit.

    Raises
    ------
    PolicyError
        If a number is out of range.
    """

    error: float
    """Cost of an unacceptable answer that is released, above 0."""
    review: float
    """Cost of a person's review, at least 0."""
    escalation: float
    """Cost of an escalation, which lets nothing unacceptable out; at least 0."""
    missed_share: float = 0.1
    """Share of unacceptable answers that a review lets through, in [0, 1). At 0 a review and an
    escalation end alike, and the dearer one is never chosen.
    """

    def __post_init__(self) -> None:
        values = (self.error, self.review, self.escalation, self.missed_share)
        is_in_range = self.error > 0 and min(values) >= 0 and self.missed_share < 1
        if not (is_in_range and all(map(math.isfinite, values))):
            raise PolicyError(
                "Costs must be an error above 0, a review and an escalation of at least 0, and a"
                f" missed share in [0, 1), got {self.error:g}, {self.review:g}, {self.escalation:g}"
                f" and {self.missed_share:g}"
            )


def thresholds_by_cost(costs: Costs) -> Thresholds:
    """Return the thresholds of least expected cost for a calibrated probability p.

    Release costs (1 − p)·error, review costs review + (1 − p)·missed·error, escalation costs
    escalation: three straight lines in 1 − p, of which the lowest is taken. high = 1 − review /
    (error·(1 − missed)), low = 1 − (escalation − review) / (missed·error); where a review is
    nowhere the cheapest, both are 1 − escalation / error.

    Parameters
    ----------
    costs : Costs

    Returns
    -------
    Thresholds
        Each clipped to [0, 1].

    References
    ----------
    Elkan (2001), "The foundations of cost-sensitive learning", IJCAI; Chow (1970), IEEE Trans. Inf.
    Theory 16:41 (reject).
    """
    release_limit = costs.review / (
        costs.error * (1 - costs.missed_share)
    )  # largest 1 − p at which a release is cheaper than a review
    cost_difference = costs.escalation - costs.review
    review_limit = (
        cost_difference / (costs.missed_share * costs.error)
        if costs.missed_share > 0
        else (math.inf if cost_difference >= 0 else -math.inf)
    )
    if review_limit <= release_limit:
        common_threshold = _clip_to_unit(1 - costs.escalation / costs.error)
        return Thresholds(common_threshold, common_threshold)
    return Thresholds(_clip_to_unit(1 - review_limit), _clip_to_unit(1 - release_limit))


class CostThresholds(NamedTuple):
    """Thresholds of least cost on labels."""

    low: Interval
    """Lower threshold on the labels."""
    high: Interval
    """Upper threshold on the labels."""
    cost: Interval
    """Mean cost of a labelled answer."""
    release_all_cost: float | None
    """Mean cost with everything released."""


def choose_cost_thresholds(
    r_cal: Sequence[float],
    targets: Sequence[bool],
    costs: Costs,
    *,
    groups: Sequence[Hashable] = (),
    seed: int,
    level: float = 0.95,
) -> CostThresholds:
    """Return the thresholds under which labelled answers would have cost least.

    Parameters
    ----------
    r_cal : sequence of float in [0, 1]
    targets : sequence of bool
        Whether each answer is acceptable.
    costs : Costs
    groups : sequence, one a label
        Answers of one group (a question) are resampled together; by default each is its own.
    seed : int
    level : float in (0, 1)

    Returns
    -------
    CostChoice
        Points are undefined without labels, and intervals (percentile bootstrap, widened to their
        points) below five groups. The minimum over thresholds is optimistic, since it is taken on
        the same labels.
    """
    p, is_acceptable, question_ids = _sort_labels(r_cal, targets, groups)
    if not len(p):
        undefined = no_interval(None, 0, NO_LABEL_REASON, level=level)
        return CostThresholds(undefined, undefined, undefined, None)
    is_unacceptable = 1.0 - is_acceptable
    resamples = GroupResamples(int(question_ids.max()) + 1, seed, question_ids)
    values = resamples.values(
        lambda weights: np.column_stack(_cheapest_thresholds(p, is_unacceptable, weights, costs))
    )
    low, high, cost = (percentile_interval(column, resamples.n, level=level) for column in values.T)
    return CostThresholds(low, high, cost, float(is_unacceptable.mean() * costs.error))


class PrecisionThreshold(NamedTuple):
    """The threshold of a target precision, or how many labels are missing for one."""

    high: float | None
    """The threshold; None where none reaches the target."""
    precision: Interval
    """Precision to be expected of other answers, from labels that had no part in the choice of
    their threshold; undefined where there is no ``high``."""
    reason: str
    """Why there is no ``high``; "" where there is one."""


def choose_high_threshold(
    r_cal: Sequence[float],
    targets: Sequence[bool],
    target: float,
    *,
    groups: Sequence[Hashable] = (),
    level: float = 0.95,
) -> PrecisionThreshold:
    """Return the smallest ``high`` at which Wilson's lower bound reaches a precision.

    Parameters
    ----------
    r_cal : sequence of float in [0, 1]
        By fits that did not see the label.
    targets : sequence of bool
    target : float in (0, 1)
        Precision that released answers must have.
    groups : sequence, one a label
        The question of each label. Answers to one question in several runs may all be right or
        wrong together: the bound is that of as many labels as there are questions. By default each
        label is its own.
    level : float in (0, 1)
        Of Wilson's interval, whose lower bound must reach ``target``.

    Returns
    -------
    PrecisionThreshold
        Candidates for ``high`` are the r_cal of the labelled answers. Many are tried, so the
        precision of the chosen one on these labels is optimistic. ``precision`` is not: questions
        are dealt into ``N_FOLDS`` folds, and each fold's answers are released at the threshold that
        the other folds choose, with a bound as of all labels.

    Raises
    ------
    PolicyError
        If the target lies outside (0, 1).

    References
    ----------
    Wilson's bound inverts the score test, so it reaches t at precision q > t from n = z²·t(1 −
    t)/(q − t)² labels on.
    """
    if not 0 < target < 1:
        raise PolicyError(f"A target precision lies between 0 and 1, got {target!r}")
    p, is_acceptable, question_ids = _sort_labels(r_cal, targets, groups)
    if len(p) == 0:
        n_required = _n_required_labels(1.0, target, level)
        message = (
            f"{NO_LABEL_REASON}: at least {n_required} labels are missing, and more if any of them"
            " is not acceptable"
        )
        interval = no_interval(None, 0, NO_LABEL_REASON, level=level)
        return PrecisionThreshold(None, interval, message)
    thresholds, precisions, n_questions = _released(p, is_acceptable, question_ids)
    is_reached = _lower_bounds(precisions, n_questions, level) >= target
    if is_reached.any():
        high = float(thresholds[is_reached][0])
        precision = _held_out_precision(p, is_acceptable, question_ids, target, level)
        is_held = precision.point is not None
        return PrecisionThreshold(high if is_held else None, precision, precision.reason or "")
    shortfalls = [
        (max(1, n_required - n), high, precision)
        for high, precision, n in zip(thresholds, precisions, n_questions, strict=True)
        if (n_required := _n_required_labels(precision, target, level)) is not None
    ]
    reason = f"the labelled precision reaches {target:g} at no threshold"
    if shortfalls:
        n_missing, high, precision_there = min(shortfalls, key=lambda entry: (entry[0], -entry[1]))
        others_text = " of other questions" if question_ids.max() + 1 < len(p) else ""
        reason = (
            f"about {n_missing} more labels{others_text} from r_cal {high:.3g} on are missing,"
            f" if their precision stays {precision_there:.3g}"
        )
    return PrecisionThreshold(None, no_interval(None, 0, reason, level=level), reason)


def _released(
    p: Floats, is_acceptable: Floats, question_ids: NDArray[np.intp]
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return each threshold with the precision and the questions of the labels from it on."""
    first_rows = np.flatnonzero(np.r_[True, np.diff(p) > 0])
    is_last = np.zeros(len(p), dtype=np.intp)
    is_last[len(p) - 1 - np.unique(question_ids[::-1], return_index=True)[1]] = 1
    precisions = np.cumsum(is_acceptable[::-1])[::-1] / np.arange(len(p), 0, -1)
    return p[first_rows], precisions[first_rows], np.cumsum(is_last[::-1])[::-1][first_rows]


def _lower_bounds(precisions: Floats, n: ArrayLike, level: float) -> Floats:
    """Return Wilson's lower bound of each precision."""
    from statsmodels.stats.proportion import proportion_confint

    counts = np.asarray(n, dtype=float)
    lo, _ = proportion_confint(precisions * counts, counts, alpha=1 - level, method="wilson")
    return np.asarray(lo)


def _held_out_precision(
    p: Floats, is_acceptable: Floats, question_ids: NDArray[np.intp], target: float, level: float
) -> Interval:
    """Return the precision of labels that are released at a threshold that others choose."""
    n_all = int(question_ids.max()) + 1
    folds = (np.random.default_rng(0).permutation(n_all) % N_FOLDS)[question_ids]
    is_released = np.zeros(len(p), dtype=bool)
    for fold in np.unique(folds):
        others = folds != fold
        if not others.any():
            continue
        thresholds, precisions, n = _released(
            p[others], is_acceptable[others], question_ids[others]
        )
        n_others = len(np.unique(question_ids[others]))
        is_reached = _lower_bounds(precisions, n * (n_all / n_others), level) >= target
        if is_reached.any():
            is_released |= ~others & (p >= thresholds[is_reached][0])
    if not is_released.any():
        reason = "too few questions: without a tenth of them, no threshold reaches the target"
        return no_interval(None, 0, reason, level=level)
    n_questions = len(np.unique(question_ids[is_released]))
    n_acceptable = int(is_acceptable[is_released].sum())
    return wilson_over_questions(n_acceptable, int(is_released.sum()), n_questions, level)


def wilson_over_questions(
    successes: int, n: int, n_questions: int, level: float = 0.95
) -> Interval:
    """Return Wilson's interval of a share of labels, as wide as for one label a question.

    Answers to one question may all be right or wrong together; the interval is wide enough for
    that, and wider than it needs to be where they are not. Its ``n`` counts the questions.
    """
    if n_questions == n:
        return wilson(successes, n, level=level)
    from statsmodels.stats.proportion import proportion_confint

    point = successes / n
    lo, hi = proportion_confint(point * n_questions, n_questions, alpha=1 - level, method="wilson")
    return Interval(
        point,
        min(_clip_to_unit(float(lo)), point),
        max(_clip_to_unit(float(hi)), point),
        n_questions,
        "Wilson over questions",
        level,
        note=f"{n} answers to {n_questions} questions",
    )


def _cheapest_thresholds(
    p: Floats, is_unacceptable: Floats, draw_counts: Floats, costs: Costs
) -> tuple[Floats, Floats, Floats]:
    """Return the cheapest low and high, and their cost, for each row of weights; ``p`` ascends.

    With the first i answers escalated and those from the j-th on released the cost is f(i) + g(j),
    i <= j: so the best i of each j is a running minimum.
    """
    n = len(p)

    def cumulative_costs(answer_costs: Floats) -> Floats:
        return np.concatenate(
            [np.zeros((len(draw_counts), 1)), np.cumsum(draw_counts * answer_costs, axis=1)], axis=1
        )

    escalation_costs = cumulative_costs(np.full(n, costs.escalation))
    review_costs = cumulative_costs(
        costs.review + is_unacceptable * costs.missed_share * costs.error
    )
    release_costs = cumulative_costs(is_unacceptable * costs.error)
    midpoints = (p[:-1] + p[1:]) / 2
    candidate_thresholds = np.concatenate([[0.0], midpoints, [1.0]])
    is_allowed = np.concatenate([[True], np.diff(p) > 0, [p[-1] < 1]])
    low_costs = np.where(is_allowed, escalation_costs - review_costs, np.inf)
    high_costs = np.where(is_allowed, review_costs + release_costs[:, -1:] - release_costs, np.inf)
    best_low_costs = np.minimum.accumulate(low_costs, axis=1)
    total_costs = best_low_costs + high_costs
    # of equally cheap thresholds the highest, which releases fewer
    j = n - np.argmin(total_costs[:, ::-1], axis=1)
    draw_rows = np.arange(len(draw_counts))
    i = np.argmax(low_costs <= best_low_costs[draw_rows, j][:, None], axis=1)
    return (
        candidate_thresholds[i],
        candidate_thresholds[j],
        total_costs[draw_rows, j] / draw_counts.sum(axis=1),
    )


def _n_required_labels(precision: float, target: float, level: float) -> int | None:
    """Return the labels after which Wilson's lower bound reaches the target, or None."""
    from scipy.stats import norm

    if precision <= target:
        return None
    z = float(norm.ppf((1 + level) / 2))
    return math.ceil(z * z * target * (1 - target) / (precision - target) ** 2)


def _sort_labels(
    r_cal: Sequence[float], targets: Sequence[bool], groups: Sequence[Hashable]
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return r_cal, targets and codes of the groups, by rising r_cal; each label its own group."""
    p, is_acceptable = np.asarray(r_cal, dtype=float), np.asarray(targets, dtype=float)
    if (
        p.shape != is_acceptable.shape
        or not ((p >= 0) & (p <= 1)).all()
        or not np.isin(is_acceptable, (0.0, 1.0)).all()
    ):
        raise ValueError("labels need as many r_cal in [0, 1] as targets that are true or false")
    order = np.argsort(p, kind="stable")
    group_names = [groups[i] for i in order] if len(groups) else order
    return p[order], is_acceptable[order], pd.factorize(pd.Series(group_names, dtype=object))[0]


def _clip_to_unit(value: float) -> float:
    return min(1.0, max(0.0, value))
