"""Monotone maps from a composite score to the probability of acceptable reasoning."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cotlab.core.errors import CotlabError
from cotlab.stats.calibration import auroc

Floats = NDArray[np.float64]
Folds = NDArray[np.int64]
METHODS = ("platt", "beta", "isotonic")
"""Methods, the simplest first: of two that are equally good out of fold, the first is taken."""
COMBINED_METHOD = "combined"
"""Method of a score that is a probability already, from ``cotlab.reliability.combine``."""
MIN_LABELS, MIN_LABELS_PER_CLASS = 20, 5
MIN_ISOTONIC_LABELS, MIN_ISOTONIC_PER_CLASS = 200, 50
EPS = 1e-3
"""Distance from 0 and 1 to which beta calibration clips; otherwise one score of 1 would outweigh
all others."""
RIDGE_NOTE = (
    "the classes are separable: ridge (C = 1 on the standardised features) in the place of an"
    " infinite slope"
)
UNRANKED_REASON = "the score does not rank acceptable reasoning above unacceptable"


class NotCalibrated(CotlabError):
    """Labels that no probability can be learnt from; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A fitted monotone map from r_raw to the probability of acceptable reasoning."""

    params: Mapping[str, Any]
    """``method``, the coefficients (``slope, intercept`` | ``a, b, c`` | ``x, y``), ``lo`` and
    ``hi`` (range of the scores it was fitted on), ``n``, ``n_positive`` and ``note``. JSON values.
    """

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Calibrator:
        """Return the calibrator that ``params`` describe; ValueError where they describe none."""
        required_keys = {
            "platt": {"slope", "intercept"},
            "beta": {"a", "b", "c"},
            "isotonic": {"x", "y"},
            COMBINED_METHOD: set(),
        }
        method = params.get("method")
        if method not in required_keys or not (required_keys[str(method)] | {"lo", "hi"}) <= set(
            params
        ):
            raise ValueError(f"these are no parameters of a calibrator: {sorted(params)}")
        return cls(dict(params))

    @property
    def method(self) -> str:
        """Return ``platt``, ``beta``, ``isotonic``, or ``combined``."""
        return str(self.params["method"])

    @property
    def note(self) -> str:
        """Return what a reader must know of the fit; "" where nothing."""
        return str(self.params.get("note", ""))

    def is_outside_range(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Return which scores (n,) lie outside the range of the labels; False where NaN."""
        s = np.asarray(scores, dtype=float)
        return np.asarray((s < self.params["lo"]) | (s > self.params["hi"]))

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of each score, non-decreasing in the score.

        Beyond the range of the labels it stays at the value of the nearest labelled score.

        Parameters
        ----------
        scores : array (n,)

        Returns
        -------
        ndarray (n,), [0, 1]
            NaN where the score is NaN.
        """
        s = np.asarray(scores, dtype=float)
        clipped_scores = np.clip(s, self.params["lo"], self.params["hi"])
        if self.method == COMBINED_METHOD:
            probability = clipped_scores
        elif self.method == "isotonic":
            probability = np.interp(clipped_scores, self.params["x"], self.params["y"])
        elif self.method == "platt":
            probability = sigmoid(self.params["slope"] * clipped_scores + self.params["intercept"])
        else:
            log_score, log_distance = beta_features(clipped_scores)
            probability = sigmoid(
                self.params["a"] * log_score + self.params["b"] * log_distance + self.params["c"]
            )
        return np.asarray(np.clip(probability, 0.0, 1.0))


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep the linear algebra of numpy and scipy to one thread, in a block or as a decorator.

    Notes
    -----
    For fits of some hundred rows: threads that wait for each other cost ten times as much. Results
    are the same to the last bit. The limit holds for the whole process.
    """
    import scipy.optimize  # noqa: F401 - what is not loaded yet cannot be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def fit(method: str, scores: ArrayLike, targets: ArrayLike) -> Calibrator:
    """Fit one map.

    Parameters
    ----------
    method : str
        ``platt``: logistic regression on the score, unpenalised. ``beta``: logistic regression on
        log r and −log(1 − r) with coefficients of at least 0; a negative one is set to 0 and the
        other refitted. ``isotonic``: the best non-decreasing steps, clipped to 1/(n + 2) from 0 and
        1; from ``MIN_ISOTONIC_LABELS`` labels on.
    scores : array (n,), [0, 1]
        r_raw of the labelled items.
    targets : array (n,) of bool
        Answer correct and chain adequate.

    Returns
    -------
    Calibrator

    Raises
    ------
    NotCalibrated
        If there are too few labels (in all or of one class), or the score does not rank the
        classes: a map is never inverted.
    ValueError
        On an unknown method, and on invalid scores or targets.

    References
    ----------
    Platt (1999), Advances in Large Margin Classifiers; Kull, Silva Filho and Flach (2017), AISTATS
    (beta); Zadrozny and Elkan (2002), KDD (isotonic). scikit-learn: LogisticRegression,
    IsotonicRegression.
    """
    s, y = check_scores(scores, targets)
    if refusal_reason := missing_labels_reason(method, y):
        raise NotCalibrated(refusal_reason)
    return fit_without_minimum(method, s, y)


def missing_labels_reason(method: str, targets: ArrayLike) -> str | None:
    """Return which labels are missing for a method, or None.

    Parameters
    ----------
    method : str
        One of ``METHODS``, or ``any`` for what every method needs.
    targets : array (n,) of bool

    Returns
    -------
    str or None
    """
    y = np.asarray(targets, dtype=bool)
    n, n_positive = len(y), int(y.sum())
    is_isotonic = method == "isotonic"
    name = "isotonic" if is_isotonic else "a calibrator"
    least = MIN_ISOTONIC_LABELS if is_isotonic else MIN_LABELS
    least_of_class = MIN_ISOTONIC_PER_CLASS if is_isotonic else MIN_LABELS_PER_CLASS
    if n and n_positive in (0, n):
        class_name = "acceptable" if n_positive else "not acceptable"
        return (
            f"all {n} labels are {class_name}: {name} needs at least {least_of_class} of either"
            " class"
        )
    counts = (
        (n, "labels", least),
        (n_positive, "acceptable", least_of_class),
        (n - n_positive, "not acceptable", least_of_class),
    )
    shortages = [f"{k} {what} of at least {few}" for k, what, few in counts if k < few]
    return f"{name} needs more labels: there are {', '.join(shortages)}" if shortages else None


def fit_without_minimum(method: str, scores: ArrayLike, targets: ArrayLike) -> Calibrator:
    """Fit without a minimum of labels, for training folds; NotCalibrated as ``fit``."""
    s, y = check_scores(scores, targets)
    if len(set(y)) < 2:
        raise NotCalibrated("the labels are not of two classes")
    if np.ptp(s) < 1e-9:
        raise NotCalibrated(f"all {len(s)} scores are equal: {UNRANKED_REASON}")
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method of calibration: one of {', '.join(METHODS)}")
    coefficients = {"platt": _fit_platt, "beta": _fit_beta, "isotonic": _fit_isotonic}[method](s, y)
    return Calibrator(
        {
            "method": method,
            **coefficients,
            "lo": float(s.min()),
            "hi": float(s.max()),
            "n": len(s),
            "n_positive": int(y.sum()),
        }
    )


def beta_features(scores: Floats) -> tuple[Floats, Floats]:
    """Return log r and −log(1 − r), with r clipped to ``EPS`` from 0 and 1."""
    clipped_scores = np.clip(scores, EPS, 1 - EPS)
    return np.log(clipped_scores), -np.log1p(-clipped_scores)


def _fit_platt(s: Floats, y: Floats) -> dict[str, Any]:
    (slope,), intercept, note = _fit_logistic([s], y)
    if slope <= 0:
        raise NotCalibrated(f"{UNRANKED_REASON}: the logistic slope is {slope:.3g}")
    return {"slope": slope, "intercept": intercept, "note": note}


def _fit_beta(s: Floats, y: Floats) -> dict[str, Any]:
    log_score, log_distance = beta_features(s)
    (a, b), c, note = _fit_logistic([log_score, log_distance], y)
    notes = [note] * bool(note)
    if a < 0 or b < 0:
        dropped_name = "a" if a < b else "b"
        (coefficient,), c, note = _fit_logistic(
            [log_distance if dropped_name == "a" else log_score], y
        )
        if coefficient <= 0:
            raise NotCalibrated(
                f"{UNRANKED_REASON}: both coefficients of the beta map are negative"
            )
        a, b = (0.0, coefficient) if dropped_name == "a" else (coefficient, 0.0)
        notes = [
            f"the fit of {dropped_name} was negative, so it is held at 0",
            *[note] * bool(note),
        ]
    if a + b <= 0:
        raise NotCalibrated(f"{UNRANKED_REASON}: both coefficients of the beta map are 0")
    return {"a": a, "b": b, "c": c, "note": "; ".join(notes)}


def _fit_isotonic(s: Floats, y: Floats) -> dict[str, Any]:
    from sklearn.isotonic import IsotonicRegression

    auroc_value = auroc(s, y)
    if auroc_value is not None and auroc_value <= 0.5:
        raise NotCalibrated(f"{UNRANKED_REASON}: its AUROC is {auroc_value:.3g}")
    margin = 1 / (len(s) + 2)
    model = IsotonicRegression(y_min=margin, y_max=1 - margin).fit(s, y)
    levels = np.asarray(model.y_thresholds_, dtype=float)
    if np.ptp(levels) < 1e-12:
        raise NotCalibrated(f"{UNRANKED_REASON}: the best non-decreasing map is a constant")
    return {
        "x": np.asarray(model.X_thresholds_, dtype=float).tolist(),
        "y": levels.tolist(),
        "note": "",
    }


def _fit_logistic(features: list[Floats], y: Floats) -> tuple[tuple[float, ...], float, str]:
    """Return coefficients, intercept and a note; ridge where the first feature separates."""
    from sklearn.linear_model import LogisticRegression

    columns = np.column_stack(features)
    means, deviations = columns.mean(axis=0), columns.std(axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    positives, negatives = columns[y == 1, 0], columns[y == 0, 0]
    is_separable = bool(negatives.max() <= positives.min() or positives.max() <= negatives.min())
    # C = 1e8 differs from no penalty beyond the eighth digit; it keeps finite what two features
    # separate and neither alone
    model = LogisticRegression(
        C=1.0 if is_separable else 1e8, solver="newton-cholesky", tol=1e-10, max_iter=500
    )
    with warnings.catch_warnings():
        # it warns only where one coefficient is negative, and the fit is then repeated without it
        warnings.simplefilter("ignore")
        model.fit((columns - means) / deviations, y)
    slopes = model.coef_[0] / deviations
    intercept = float(model.intercept_[0] - slopes @ means)
    return tuple(map(float, slopes)), intercept, RIDGE_NOTE if is_separable else ""


def sigmoid(x: Floats) -> Floats:
    """Return the logistic function of each value."""
    from scipy.special import expit

    return np.asarray(expit(x))


def check_scores(scores: ArrayLike, targets: ArrayLike) -> tuple[Floats, Floats]:
    """Return scores and targets as arrays of float; ValueError where invalid."""
    s, y = np.asarray(scores, dtype=float), np.asarray(targets, dtype=float)
    if s.ndim != 1 or s.shape != y.shape:
        raise ValueError(f"one target for each score, got {s.shape} and {y.shape}")
    if not (np.isfinite(s).all() and ((s >= 0) & (s <= 1)).all()):
        raise ValueError("scores lie in [0, 1]: leave out items without one")
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("targets are True or False")
    return s, y


def assign_folds(
    targets: ArrayLike, groups: Sequence[Hashable], *, max_folds: int = 5, seed: int = 0
) -> Folds:
    """Return the fold of each label: whole groups, the classes spread as evenly as groups allow.

    Parameters
    ----------
    targets : array (n,) of bool
    groups : sequence (n,)
        The question of each label; all its labels share a fold.
    max_folds : int
        Most folds.
    seed : int

    Returns
    -------
    ndarray (n,) of int
        Counted from 0.

    Raises
    ------
    NotCalibrated
        If not even two folds leave both classes to learn from.

    References
    ----------
    sklearn.model_selection.StratifiedGroupKFold.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    y = np.asarray(targets, dtype=int)
    index_by_group = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    group_of_label = np.array([index_by_group[group] for group in groups])
    max_folds = min(max_folds, len(index_by_group), int(np.bincount(y, minlength=2).min()))
    for k in range(max_folds, 1, -1):
        folds = np.zeros(len(y), dtype=np.int64)
        for fold, (_, test_rows) in enumerate(
            StratifiedGroupKFold(k, shuffle=True, random_state=seed).split(y, y, group_of_label)
        ):
            folds[test_rows] = fold
        if len(set(folds)) == k and all(len(set(y[folds != fold])) == 2 for fold in range(k)):
            return folds
    raise NotCalibrated(
        f"the {len(y)} labels belong to {len(index_by_group)}"
        f" question{'s' * (len(index_by_group) != 1)}: no two folds of whole questions leave both"
        " classes to learn from. Label items of more questions."
    )
