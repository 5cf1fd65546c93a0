"""From scores to decisions: a calibrator fitted on labels, and the action for one probability."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cotlab.core.errors import ConfigError
from cotlab.core.labels import Action

if TYPE_CHECKING:
    from cotlab.reliability.maps import Calibrator
    from cotlab.stats.intervals import Interval


@dataclass(frozen=True, slots=True)
class Calibration:
    """A map from scores to probabilities of acceptable reasoning, measured out of fold."""

    method: str
    """platt, beta or isotonic."""
    reason: str
    """Why this method was taken."""
    n: int
    """Number of labels it was fitted on."""
    brier: Interval
    """Brier score out of fold, in [0, 1], lower is better."""
    ece: Interval
    """Expected calibration error out of fold, in [0, 1], lower is better."""
    auroc: Interval
    """Probability that an acceptable item ranks above another one."""
    refused: tuple[tuple[str, str], ...]
    """Methods that could not be fitted, each with the reason."""
    calibrator: Calibrator
    """The fitted map; ``calibrator.params`` are JSON values."""

    def predict(self, score: float | None) -> float | None:
        """Return the probability for one score in [0, 1]; None for a score that does not exist.

        Raises
        ------
        cotlab.core.errors.ConfigError
            If the score lies outside [0, 1].
        """
        if score is None or math.isnan(score):
            return None
        if not 0 <= score <= 1:
            raise ConfigError(f"A score lies in [0, 1], got {score!r}: it has no probability.")
        return float(self.calibrator.predict([score])[0])


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with one answer."""

    action: Action
    """release, review or escalate."""
    reason: str
    """Where the probability lies, or what is missing."""


def calibrate(
    scores: Sequence[float],
    acceptable: Sequence[bool],
    questions: Sequence[Hashable] | None = None,
    *,
    method: str = "auto",
    seed: int = 0,
) -> Calibration:
    """Fit the probability that the reasoning is acceptable, given r_raw and people's labels.

    Parameters
    ----------
    scores : sequence (n,) in [0, 1]
        r_raw of each labelled item.
    acceptable : sequence (n,) of bool
        The labels.
    questions : sequence (n,), optional
        The question of each label: labels of one question are held out together. By default each
        label has its own.
    method : {"auto", "platt", "beta", "isotonic"}
        ``auto`` takes the lowest Brier score out of fold.
    seed : int
        Seed of folds and resampling.

    Returns
    -------
    Calibration

    Raises
    ------
    cotlab.core.errors.ConfigError
        If a label is neither True nor False, or lengths differ.
    cotlab.reliability.maps.NotCalibrated
        Below 20 labels, with labels of one class, or where the scores do not rank the labels.

    References
    ----------
    Platt (1999); Kull, Silva Filho and Flach (2017), AISTATS 54:623; Zadrozny and Elkan (2002).
    """
    from cotlab.reliability.calibrator import select_calibrator

    if len(acceptable) != len(scores) or (questions is not None and len(questions) != len(scores)):
        raise ConfigError("A score, a label and a question belong to each item: lengths differ.")
    for label_index, label in enumerate(acceptable):
        if label not in (True, False):  # None and NaN are neither
            raise ConfigError(f"acceptable[{label_index}] is {label!r}: a label is True or False.")
    groups = range(len(scores)) if questions is None else questions
    choice = select_calibrator(
        list(scores), [bool(label) for label in acceptable], list(groups), method=method, seed=seed
    )
    chosen_trial, chosen_quality = choice.chosen_trial, choice.chosen_trial.quality
    assert chosen_trial.calibrator is not None and chosen_quality is not None
    refused_methods = tuple(
        (trial.method, trial.refusal_reason) for trial in choice.trials if trial.refusal_reason
    )
    return Calibration(
        method=chosen_trial.method,
        reason=choice.reason,
        n=len(scores),
        brier=chosen_quality.brier,
        ece=chosen_quality.ece,
        auroc=chosen_quality.auroc,
        refused=refused_methods,
        calibrator=chosen_trial.calibrator,
    )


def decide(r_cal: float | None, low: float, high: float, *, status: str = "ok") -> Decision:
    """Return the action for one answer of a calibrated reliability.

    Parameters
    ----------
    r_cal : float in [0, 1] or None
        Probability that the reasoning is acceptable; None escalates.
    low, high : float
        0 <= low <= high <= 1: below low an answer is escalated, from high on it is released, and
        between them a person reviews it.
    status : str
        Status of the score behind ``r_cal``; whatever is not ok escalates.

    Returns
    -------
    Decision

    Raises
    ------
    cotlab.reliability.policy.PolicyError
        If the thresholds are out of order.
    """
    from cotlab.reliability.policy import Thresholds, decide_action

    action, reason = decide_action(r_cal, status, Thresholds(low, high))
    return Decision(action, reason)
