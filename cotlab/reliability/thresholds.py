"""Thresholds from costs of errors and reviews, or from a precision of released answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cotlab.reliability.policy import PolicyError, Thresholds
from cotlab.stats.intervals import FEWEST, Interval, no_interval, too_few, wilson

Floats = NDArray[np.float64]
RESAMPLES = 1000
MIN_LABELS = 30
"""Fewest labels of a domain with separate thresholds."""
_CELLS = 4_000_000


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
    missed: float = 0.1
    """Share of unacceptable answers that a review lets through, in [0, 1). At 0 a review and an
    escalation end alike, and the dearer one is never chosen.
    """

    def __post_init__(self) -> None:
        values = (self.error, self.review, self.escalation, self.missed)
        if (
            not all(map(math.isfinite, values))
            or self.error <= 0
            or min(values) < 0
            or self.missed >= 1
        ):
            raise PolicyError(
                "Costs must be an error above 0, a review and an escalation of at least 0, and a"
                f" missed share in [0, 1), got {self.error:g}, {self.review:g}, {self.escalation:g}"
                f" and {self.missed:g}"
            )

    def of(self, action: str, acceptable: float) -> float:
        """Return the expected cost of an action at a probability of being acceptable."""
        bad = 1 - acceptable
        return {
            "release": bad * self.error,
            "review": self.review + bad * self.missed * self.error,
            "escalate": self.escalation,
        }[action]


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
    released = costs.review / (
        costs.error * (1 - costs.missed)
    )  # largest 1 − p at which a release is cheaper than a review
    spare = costs.escalation - costs.review
    reviewed = (
        spare / (costs.missed * costs.error)
        if costs.missed > 0
        else (math.inf if spare >= 0 else -math.inf)
    )
    if reviewed <= released:
        both = _clipped(1 - costs.escalation / costs.error)
        return Thresholds(both, both)
    return Thresholds(_clipped(1 - reviewed), _clipped(1 - released))


class CostChoice(NamedTuple):
    """Thresholds by cost: in closed form, and on labels."""

    closed: Thresholds
    """From the probabilities alone."""
    low: Interval
    """Lower threshold on the labels."""
    high: Interval
    """Upper threshold on the labels."""
    cost: Interval
    """Mean cost of a labelled answer."""
    released: float | None
    """Mean cost with everything released."""


def labelled_thresholds(
    r_cal: Sequence[float],
    targets: Sequence[bool],
    costs: Costs,
    *,
    groups: Sequence[Hashable] = (),
    seed: int,
    level: float = 0.95,
) -> CostChoice:
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
    p, good = _labelled(r_cal, targets)
    closed, n = thresholds_by_cost(costs), len(p)
    if n == 0:
        none = no_interval(None, 0, "no answer with r_cal is labelled", level=level)
        return CostChoice(closed, none, none, none, None)
    order = np.argsort(p, kind="stable")
    p, bad = p[order], 1.0 - good[order]
    names = [groups[i] for i in order] if len(groups) else list(range(n))
    at = {name: k for k, name in enumerate(dict.fromkeys(names))}
    of = np.array([at[name] for name in names])
    low, high, cost = (float(v[0]) for v in _cheapest(p, bad, np.ones((1, n)), costs))
    released = float(bad.mean() * costs.error)
    if reason := too_few(len(at), "labelled questions", FEWEST):
        bare = [no_interval(v, len(at), reason, level=level) for v in (low, high, cost)]
        return CostChoice(closed, bare[0], bare[1], bare[2], released)
    rng, draws = np.random.default_rng(seed), list[Floats]()
    for part in np.array_split(np.arange(RESAMPLES), max(1, RESAMPLES * n // _CELLS)):
        times = rng.multinomial(len(at), np.full(len(at), 1 / len(at)), size=len(part))
        draws.append(np.stack(_cheapest(p, bad, times[:, of].astype(float), costs)))
    ends = np.quantile(np.concatenate(draws, axis=1), [(1 - level) / 2, (1 + level) / 2], axis=1)
    method = f"bootstrap over questions (percentile, {RESAMPLES} resamples)"
    intervals = [
        Interval(v, min(v, float(lo)), max(v, float(hi)), len(at), method, level)
        for v, lo, hi in zip((low, high, cost), *ends, strict=True)
    ]
    return CostChoice(closed, intervals[0], intervals[1], intervals[2], released)


class PrecisionChoice(NamedTuple):
    """The threshold of a target precision, or how many labels are missing for one."""

    high: float | None
    """The threshold; None where none reaches the target."""
    precision: Interval
    """Precision at ``high``, or at ``near``."""
    near: float | None
    """The threshold that comes nearest to the target."""
    missing: int | None
    """Further labels from ``near`` on that would do; None where none would."""
    reason: str
    """The outcome as text."""


def high_by_precision(
    r_cal: Sequence[float],
    targets: Sequence[bool],
    target: float,
    *,
    groups: Sequence[Hashable] = (),
    level: float = 0.95,
) -> PrecisionChoice:
    """Return the smallest ``high`` at which Wilson's lower bound reaches a precision.

    Parameters
    ----------
    r_cal : sequence of float in [0, 1]
    targets : sequence of bool
    target : float in (0, 1)
        Precision that released answers must have.
    groups : sequence, one a label
        The question of each label. Answers to one question in several runs may all be right or
        wrong together: the bound is that of as many labels as there are questions. By default each
        label is its own.
    level : float in (0, 1)
        Of Wilson's interval, whose lower bound must reach ``target``. Many thresholds are tried on
        the same labels, so the bound of the chosen one is optimistic: check it on later labels.

    Returns
    -------
    PrecisionChoice
        Candidates for ``high`` are the r_cal of the labelled answers.

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
    p, good = _labelled(r_cal, targets)
    if len(p) == 0:
        reason = "no answer with r_cal is labelled"
        need = _needed(1.0, target, level)
        message = (
            f"{reason}: at least {need} labels are missing, and more if any of them is not"
            " acceptable"
        )
        return PrecisionChoice(None, no_interval(None, 0, reason, level=level), None, need, message)
    order = np.argsort(p, kind="stable")
    p, good = p[order], good[order]
    starts = np.flatnonzero(np.r_[True, np.diff(p) > 0])
    hits = np.cumsum(good[::-1])[::-1][starts]
    names = [groups[i] for i in order[::-1]] if len(groups) else list(range(len(p)))
    at = {name: k for k, name in enumerate(dict.fromkeys(names))}
    first = np.zeros(len(p), dtype=int)
    first[np.unique([at[name] for name in names], return_index=True)[1]] = 1
    question_counts = np.cumsum(first)[::-1][starts]
    tried = [
        (float(p[i]), wilson_over_questions(int(k), len(p) - int(i), int(q), level))
        for i, k, q in zip(starts, hits, question_counts, strict=True)
    ]
    for high, interval in tried:
        if interval.lo is not None and interval.lo >= target:
            return PrecisionChoice(
                high,
                interval,
                high,
                0,
                f"Wilson's lower bound reaches {target:g} from r_cal {high:.3g} on",
            )
    needs = [(_needed(interval.point, target, level), high, interval) for high, interval in tried]
    short = [
        (need - interval.n, high, interval) for need, high, interval in needs if need is not None
    ]
    if not short:
        high, interval = max(tried, key=lambda entry: (entry[1].point or 0.0, entry[1].n))
        return PrecisionChoice(
            None, interval, high, None, f"the labelled precision reaches {target:g} at no threshold"
        )
    shortfall, high, interval = min(short, key=lambda entry: (entry[0], -entry[1]))
    missing, of_others = max(1, shortfall), " of other questions" if len(at) < len(p) else ""
    return PrecisionChoice(
        None,
        interval,
        high,
        missing,
        f"about {missing} more labels{of_others} from r_cal {high:.3g} on are missing, if their"
        f" precision stays {interval.point:.3g}",
    )


def wilson_over_questions(hits: int, n: int, questions: int, level: float = 0.95) -> Interval:
    """Return Wilson's interval of a share of labels, as wide as for one label a question.

    Answers to one question may all be right or wrong together; the interval is wide enough for
    that, and wider than it needs to be where they are not. Its ``n`` counts the questions.
    """
    if questions == n:
        return wilson(hits, n, level=level)
    from statsmodels.stats.proportion import proportion_confint

    point = hits / n
    lo, hi = (
        float(v)
        for v in proportion_confint(point * questions, questions, alpha=1 - level, method="wilson")
    )
    return Interval(
        point,
        min(max(0.0, lo), point),
        max(min(1.0, hi), point),
        questions,
        "Wilson over questions",
        level,
        note=f"{n} answers to {questions} questions",
    )


def _cheapest(p: Floats, bad: Floats, times: Floats, costs: Costs) -> tuple[Floats, Floats, Floats]:
    """Return the cheapest low and high, and their cost, for each row of weights; ``p`` ascends.

    With the first i answers escalated and those from the j-th on released the cost is f(i) + g(j),
    i <= j: so the best i of each j is a running minimum.
    """
    n = len(p)

    def sums(each: Floats) -> Floats:
        return np.concatenate([np.zeros((len(times), 1)), np.cumsum(times * each, axis=1)], axis=1)

    escalated = sums(np.full(n, costs.escalation))
    reviewed, released = (
        sums(costs.review + bad * costs.missed * costs.error),
        sums(bad * costs.error),
    )
    between = (p[:-1] + p[1:]) / 2
    places = np.concatenate([[0.0], between, [1.0]])
    allowed = np.concatenate([[True], np.diff(p) > 0, [p[-1] < 1]])
    f = np.where(allowed, escalated - reviewed, np.inf)
    g = np.where(allowed, reviewed + released[:, -1:] - released, np.inf)
    best = np.minimum.accumulate(f, axis=1)
    total = best + g
    j = n - np.argmin(total[:, ::-1], axis=1)  # of equally cheap ones the highest: fewer go out
    rows = np.arange(len(times))
    i = np.argmax(f <= best[rows, j][:, None], axis=1)
    return places[i], places[j], total[rows, j] / times.sum(axis=1)


def _needed(precision: float | None, target: float, level: float) -> int | None:
    """Return the labels after which Wilson's lower bound reaches the target, or None."""
    from scipy.stats import norm

    if precision is None or precision <= target:
        return None
    z = float(norm.ppf((1 + level) / 2))
    return math.ceil(z * z * target * (1 - target) / (precision - target) ** 2)


def _labelled(r_cal: Sequence[float], targets: Sequence[bool]) -> tuple[Floats, Floats]:
    p, good = np.asarray(r_cal, dtype=float), np.asarray(targets, dtype=float)
    if (
        p.shape != good.shape
        or not ((p >= 0) & (p <= 1)).all()
        or not np.isin(good, (0.0, 1.0)).all()
    ):
        raise ValueError("labels need as many r_cal in [0, 1] as targets that are true or false")
    return p, good


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
