"""Volumes of a policy: answers released, reviewed and escalated, their errors, the review order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.labels import ACTIONS
from cotlab.reliability.policy import Policy, decide_action
from cotlab.reliability.thresholds import wilson_over_questions
from cotlab.stats.intervals import Interval, checked_level, no_interval, wilson

Floats = NDArray[np.float64]
Order = Literal["cost", "boundary"]
SWEEP = tuple(round(i / 20, 2) for i in range(21))
_EXACT, _SMALL = 2000, 25.0
AT_OR_ABOVE, EXPECTED, OBSERVED = "From the threshold on", "Expected errors", "Errors found"
"""Lines of the figure: a share of all answers, and two shares of those from the threshold on."""


class Volumes(NamedTuple):
    """Outcome of a policy for ``n`` answers."""

    n: int
    """Number of answers."""
    release: int
    """Released answers."""
    review: int
    """Answers that a person reviews."""
    escalate: int
    """Escalated answers."""
    expected: Interval
    """Expected number of errors among released answers."""
    observed: Interval
    """Share of errors among labelled released answers."""
    hours: float
    """Hours of all reviews."""
    days: int | None
    """Days of all reviews at the capacity; None where it is unknown or 0."""
    waiting: int
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
        bounds = policy.of(str(domain))
        ruling = decide_action(None if pd.isna(r_cal) else float(r_cal), str(status), bounds)
        low, high = (bounds.low, bounds.high) if bounds else (math.nan, math.nan)
        rulings.append((ruling.action, ruling.reason, low, high))
    columns = list(zip(*rulings, strict=True)) or [(), (), (), ()]
    return table.assign(
        **{
            name: list(column)
            for name, column in zip(("action", "why", "low", "high"), columns, strict=True)
        }
    )


def policy_volumes(table: pd.DataFrame, policy: Policy) -> Volumes:
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
    rows = apply_policy(table, policy)
    sizes = {action: int((rows["action"] == action).sum()) for action in ACTIONS}
    out = rows[rows["action"] == "release"]
    review = sizes["review"]
    days = (
        math.ceil(review / policy.capacity)
        if policy.capacity
        else (0 if not review and policy.capacity == 0 else None)
    )
    return Volumes(
        len(rows),
        sizes["release"],
        review,
        sizes["escalate"],
        expected_errors(out["r_cal"].tolist()),
        observed_errors(out),
        review * policy.minutes / 60,
        days,
        0 if policy.capacity is None else max(0, review - policy.capacity),
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
    bad = 1.0 - np.asarray(r_cal, dtype=float)
    n = len(bad)
    if n == 0:
        return no_interval(None, 0, "nothing is released", level=level)
    if not ((bad >= 0) & (bad <= 1)).all():
        raise ValueError("expected_errors needs probabilities in [0, 1]")
    point, variance = math.fsum(bad), math.fsum(bad * (1 - bad))
    tails = (1 - level) / 2, (1 + level) / 2
    if n <= _EXACT or variance < _SMALL:
        chances, certain = _numbers(bad)
        below = np.cumsum(chances)
        lo, hi = (float(certain + np.searchsorted(below, tail * (1 - 1e-12))) for tail in tails)
        method = "Poisson-binomial, of a calibrated r_cal"
    else:
        from scipy.stats import norm

        lo, hi = (float(norm.ppf(tail, point, math.sqrt(variance))) for tail in tails)
        method = "Poisson-binomial by normal approximation, of a calibrated r_cal"
    return Interval(
        point, min(max(0.0, lo), point), max(min(float(n), hi), point), n, method, level
    )


def observed_errors(table: pd.DataFrame, *, level: float = 0.95) -> Interval:
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
    known = (
        table["target"].dropna().astype(bool) if "target" in table else pd.Series([], dtype=bool)
    )
    if known.empty:
        return no_interval(None, 0, "none of these answers is labelled", level=level)
    questions = table.loc[known.index, "question"].nunique() if "question" in table else len(known)
    return wilson_over_questions(int((~known).sum()), len(known), questions, level)


def schedule(table: pd.DataFrame, policy: Policy, *, order: Order = "cost") -> pd.DataFrame:
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
    edge = np.minimum((rows["r_cal"] - rows["low"]).abs(), (rows["high"] - rows["r_cal"]).abs())
    key = rows["r_cal"] if order == "cost" else edge
    escalated = rows["action"] == "escalate"
    rows = rows.assign(_later=~escalated, _key=key.where(~escalated, rows["r_cal"]).astype(float))
    rows = rows.sort_values(["_later", "_key"], kind="stable", na_position="first").drop(
        columns=["_later", "_key"]
    )
    position = (
        (rows["action"] == "review").cumsum().where(rows["action"] == "review").astype("Int64")
    )
    day = (
        ((position - 1) // policy.capacity + 1)
        if policy.capacity
        else pd.Series(pd.NA, index=rows.index, dtype="Int64")
    )
    return rows.assign(place=position, day=day.astype("Int64")).reset_index(drop=True)


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
    total = len(table)
    for x in sorted({*SWEEP, *(v for v in (low, high) if v is not None)}) if total else ():
        part = table[table["r_cal"] >= x]
        bad = expected_errors(part["r_cal"].tolist())
        lines = (
            (AT_OR_ABOVE, wilson(len(part), total)),
            (EXPECTED, _share(bad)),
            (OBSERVED, observed_errors(part)),
        )
        for name, interval in lines:
            reason = (
                "no answer has so high an r_cal"
                if interval.point is None and not len(part)
                else interval.reason
            )
            rows.append(
                {
                    "group": name,
                    "threshold": x,
                    "low": low,
                    "high": high,
                    "point": interval.point,
                    "lo": interval.lo,
                    "hi": interval.hi,
                    "n": interval.n,
                    "n_undefined": (
                        total - int(table["r_cal"].notna().sum()) if name == AT_OR_ABOVE else 0
                    ),
                    "method": interval.method,
                    "confidence": interval.level,
                    "reason": reason,
                }
            )
    columns = [
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
    return pd.DataFrame(rows, columns=columns)


def _share(count: Interval) -> Interval:
    """Return a number of errors as a share of the answers."""
    if count.point is None or count.lo is None or count.hi is None:
        return count
    n = count.n
    return replace(count, point=count.point / n, lo=count.lo / n, hi=count.hi / n)


def _numbers(bad: Floats) -> tuple[Floats, int]:
    """Return the probabilities of ``least``, ``least`` + 1, … successes, and ``least``.

    Successes are those of the less likely trials, less the failures of the likelier ones: either
    number stays small where nearly all is certain, however many trials there are. Numbers of
    negligible probability are left out.
    """
    few, many = (_counted(part) for part in (bad[bad <= 0.5], 1 - bad[bad > 0.5]))
    return np.convolve(few, many[::-1]), int((bad > 0.5).sum()) - (len(many) - 1)


def _counted(chances: Floats) -> Floats:
    """Return the probabilities of 0, 1, … successes in independent trials of at most 0.5 each."""
    mean, spread = math.fsum(chances), math.sqrt(math.fsum(chances * (1 - chances)))
    probabilities = np.zeros(min(int((chances > 0).sum()), math.ceil(mean + 12 * spread + 12)) + 1)
    probabilities[0] = 1.0
    for chance in chances[chances > 0]:
        probabilities[1:] = probabilities[1:] * (1 - chance) + probabilities[:-1] * chance
        probabilities[0] *= 1 - chance
    return probabilities
