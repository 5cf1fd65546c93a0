"""Volumes of a policy: answers released, reviewed and escalated, their errors, the review order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.labels import ACTIONS
from cotlab.reliability.policy import Policy, decide_action
from cotlab.reliability.thresholds import wilson_over_questions
from cotlab.stats.intervals import Interval, checked_level, no_interval, wilson

Floats = NDArray[np.float64]
ReviewOrder = Literal["cost", "boundary"]
SWEEP_THRESHOLDS = tuple(round(i / 20, 2) for i in range(21))
_MAX_EXACT_ANSWERS, _MAX_EXACT_VARIANCE = 2000, 25.0
AT_OR_ABOVE_LABEL = "From the threshold on"
EXPECTED_LABEL = "Expected errors"
OBSERVED_LABEL = "Errors found"
"""Lines of the figure: a share of all answers, and two shares of those from the threshold on."""
POINT_COLUMNS = [
    "group",
    "threshold",
    "low",
    "high",
    "point",
    "lo",
    "hi",
    "n",
    "n_undefined",
    "method",
    "confidence",
    "reason",
]
"""Columns of the figure's table."""


class PolicyEffects(NamedTuple):
    """Outcome of a policy for ``n`` answers."""

    n: int
    """Number of answers."""
    n_released: int
    """Released answers."""
    n_reviews: int
    """Answers that a person reviews."""
    n_escalated: int
    """Escalated answers."""
    expected_error_count: Interval
    """Expected number of errors among released answers."""
    observed_error_rate: Interval
    """Share of errors among labelled released answers."""
    hours: float
    """Hours of all reviews."""
    days: int | None
    """Days of all reviews at the capacity; None where it is unknown or 0."""
    n_waiting: int
    """Reviews that do not fit into the first day."""


def apply_policy(table: pd.DataFrame, policy: Policy) -> pd.DataFrame:
    """Return ``table`` with the policy's action for each row.

    Parameters
    ----------
    table : DataFrame
        ``status``, ``r_cal``, ``domain``.
    policy : Policy

    Returns
    -------
    DataFrame
        With ``action``, ``why`` (the same text for all rows of one kind), ``low`` and ``high`` (NaN
        outside the policy).
    """
    rulings = []
    for status, r_cal, domain in zip(table["status"], table["r_cal"], table["domain"], strict=True):
        bounds = policy.domain_thresholds(str(domain))
        ruling = decide_action(None if pd.isna(r_cal) else float(r_cal), str(status), bounds)
        low, high = (bounds.low, bounds.high) if bounds else (math.nan, math.nan)
        rulings.append((ruling.action, ruling.reason, low, high))
    ruling_columns = pd.DataFrame(
        rulings, columns=["action", "why", "low", "high"], index=table.index
    )
    return table.assign(**ruling_columns.to_dict("series"))


def policy_effects(table: pd.DataFrame, policy: Policy) -> PolicyEffects:
    """Return what the policy would do with the rows of a table.

    Parameters
    ----------
    table : DataFrame
        ``status``, ``r_cal``, ``domain``, and ``target`` where labelled.
    policy : Policy

    Returns
    -------
    Volumes
    """
    decided_rows = apply_policy(table, policy)
    n_by_action = {action: int((decided_rows["action"] == action).sum()) for action in ACTIONS}
    released_rows = decided_rows[decided_rows["action"] == "release"]
    n_reviews = n_by_action["review"]
    n_days = math.ceil(n_reviews / policy.capacity) if policy.capacity else None
    if policy.capacity == 0 and not n_reviews:
        n_days = 0
    return PolicyEffects(
        len(decided_rows),
        n_by_action["release"],
        n_reviews,
        n_by_action["escalate"],
        expected_errors(released_rows["r_cal"].tolist()),
        observed_error_rate(released_rows),
        n_reviews * policy.minutes / 60,
        n_days,
        0 if policy.capacity is None else max(0, n_reviews - policy.capacity),
    )


def expected_errors(r_cal: Sequence[float], *, level: float = 0.95) -> Interval:
    """Return how many of these answers are unacceptable, from their calibrated probabilities alone.

    Parameters
    ----------
    r_cal : sequence of float in [0, 1]
    level : float in (0, 1)

    Returns
    -------
    Interval
        The expected number, sum of 1 − r_cal, and bounds of the true one if r_cal is calibrated and
        answers are independent: the central part of the Poisson-binomial distribution, exact up to
        2,000 answers and where few errors are expected, else its normal approximation; the method
        says which. Undefined without answers. The uncertainty of the calibrator is not included.

    Raises
    ------
    ValueError
        If a probability lies outside [0, 1].

    References
    ----------
    Hong (2013), Comput. Stat. Data Anal. 59:41. Checked: scipy.stats.poisson_binom, which takes up
    to 62 trials.
    """
    checked_level(level)
    error_probabilities = 1.0 - np.asarray(r_cal, dtype=float)
    n = len(error_probabilities)
    if n == 0:
        return no_interval(None, 0, "nothing is released", level=level)
    if not ((error_probabilities >= 0) & (error_probabilities <= 1)).all():
        raise ValueError("expected_errors needs probabilities in [0, 1]")
    point = math.fsum(error_probabilities)
    variance = math.fsum(error_probabilities * (1 - error_probabilities))
    tail_probabilities = (1 - level) / 2, (1 + level) / 2
    if n <= _MAX_EXACT_ANSWERS or variance < _MAX_EXACT_VARIANCE:
        is_likely = error_probabilities > 0.5
        errors = _count_probabilities(error_probabilities[~is_likely])
        right = _count_probabilities(1 - error_probabilities[is_likely])
        least, cumulative = (
            is_likely.sum() - len(right) + 1,
            np.cumsum(np.convolve(errors, right[::-1])),
        )
        lo, hi = (
            float(least + np.searchsorted(cumulative, q * (1 - 1e-12))) for q in tail_probabilities
        )
        method = "Poisson-binomial, of a calibrated r_cal"
    else:
        from scipy.stats import norm

        lo, hi = (float(norm.ppf(tail, point, math.sqrt(variance))) for tail in tail_probabilities)
        method = "Poisson-binomial by normal approximation, of a calibrated r_cal"
    return Interval(
        point, min(max(0.0, lo), point), max(min(float(n), hi), point), n, method, level
    )


def observed_error_rate(table: pd.DataFrame, *, level: float = 0.95) -> Interval:
    """Return the share of labelled answers that are unacceptable, with Wilson's interval.

    Parameters
    ----------
    table : DataFrame
        ``target`` (true or false where labelled) and, where one question may have several answers
        (of several runs, say), ``question``.
    level : float in (0, 1)

    Returns
    -------
    Interval
        Of the labelled answers. ``n`` counts their questions, and the interval is as wide as for so
        many; where those are fewer than the answers, ``note`` has both numbers. Undefined without a
        labelled answer.
    """
    labelled_targets = (
        table["target"].dropna().astype(bool) if "target" in table else pd.Series([], dtype=bool)
    )
    if labelled_targets.empty:
        return no_interval(None, 0, "none of these answers is labelled", level=level)
    n_questions = (
        table.loc[labelled_targets.index, "question"].nunique()
        if "question" in table
        else len(labelled_targets)
    )
    return wilson_over_questions(
        int((~labelled_targets).sum()), len(labelled_targets), n_questions, level
    )


def schedule_reviews(
    table: pd.DataFrame, policy: Policy, *, order: ReviewOrder = "cost"
) -> pd.DataFrame:
    """Return the rows that a person must see: escalations first, then reviews with place and day.

    Parameters
    ----------
    table : DataFrame
        From ``apply_policy``.
    policy : Policy
    order : "cost" or "boundary"
        Reviews by the expected cost of releasing them (lowest r_cal first), or by distance from the
        nearer threshold. Equal rows keep their order.

    Returns
    -------
    DataFrame
        With ``place`` (1 to the number of reviews) and ``day`` (1 is the first; <NA> where the
        capacity is 0 or unknown), both <NA> for escalations. A review beyond the capacity waits
        with its place; it is never released.
    """
    rows = table[table["action"] != "release"]
    threshold_distance = np.minimum(
        (rows["r_cal"] - rows["low"]).abs(), (rows["high"] - rows["r_cal"]).abs()
    )
    review_key = rows["r_cal"] if order == "cost" else threshold_distance
    is_escalated = rows["action"] == "escalate"
    rows = rows.assign(
        _later=~is_escalated, _key=review_key.where(~is_escalated, rows["r_cal"]).astype(float)
    )
    rows = rows.sort_values(["_later", "_key"], kind="stable", na_position="first")
    position = rows["_later"].cumsum().where(rows["_later"]).astype("Int64")
    day = (position - 1) // (policy.capacity or pd.NA) + 1
    rows = rows.drop(columns=["_later", "_key"]).assign(place=position, day=day.astype("Int64"))
    return rows.reset_index(drop=True)


def threshold_points(table: pd.DataFrame, low: float | None, high: float | None) -> pd.DataFrame:
    """Return the table of the figure ``threshold_volumes``: three shares at every threshold.

    Parameters
    ----------
    table : DataFrame
        ``r_cal`` (NaN where there is none), ``target`` where labelled.
    low, high : float or None
        The chosen thresholds.

    Returns
    -------
    DataFrame
        A row per share and threshold, with its interval.
    """
    rows: list[dict[str, Any]] = []
    n_answers = len(table)
    for threshold in (
        sorted({*SWEEP_THRESHOLDS, *(v for v in (low, high) if v is not None)}) if n_answers else ()
    ):
        bounds = {"threshold": threshold, "low": low, "high": high}
        answers_above = table[table["r_cal"] >= threshold]
        error_count = expected_errors(answers_above["r_cal"].tolist())
        line_intervals = (
            (AT_OR_ABOVE_LABEL, wilson(len(answers_above), n_answers)),
            (EXPECTED_LABEL, _count_to_share(error_count)),
            (OBSERVED_LABEL, observed_error_rate(answers_above)),
        )
        for line_label, interval in line_intervals:
            is_empty = interval.point is None and not len(answers_above)
            reason = "no answer has so high an r_cal" if is_empty else interval.reason
            n_undefined = int(table["r_cal"].isna().sum()) if line_label == AT_OR_ABOVE_LABEL else 0
            row = {"group": line_label, **bounds, **asdict(interval), "confidence": interval.level}
            rows.append({**row, "n_undefined": n_undefined, "reason": reason})
    return pd.DataFrame(rows, columns=POINT_COLUMNS)


def _count_to_share(count: Interval) -> Interval:
    """Return a number of errors as a share of the answers."""
    if count.point is None or count.lo is None or count.hi is None:
        return count
    n = count.n
    return replace(count, point=count.point / n, lo=count.lo / n, hi=count.hi / n)


def _count_probabilities(probabilities: Floats) -> Floats:
    """Return the probabilities of 0, 1, … successes of trials; those beyond are negligible.

    Few of unlikely trials, so it stays fast however many there are.
    """
    deviation = math.sqrt(math.fsum(probabilities * (1 - probabilities)))
    n_kept = math.ceil(math.fsum(probabilities) + 12 * deviation + 12) + 1
    counts = np.ones(1)
    for p in probabilities[probabilities > 0]:
        counts = np.convolve(counts, (1 - p, p))[:n_kept]
    return counts
