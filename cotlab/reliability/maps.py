"""Monotone maps from a composite score to the probability of acceptable reasoning."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
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
COMBINED = "combined"
"""Method of a score that is a probability already, from ``cotlab.reliability.combine``."""
MIN_LABELS, MIN_OF_CLASS = 20, 5
MIN_ISOTONIC, MIN_ISOTONIC_OF_CLASS = 200, 50
EPS = 1e-3
"""Distance from 0 and 1 to which beta calibration clips; otherwise one score of 1 would outweigh
all others."""
RIDGE = (
    "the classes are separable: ridge (C = 1 on the standardised features) in the place of an"
    " infinite slope"
)
UNRANKED = "the score does not rank acceptable reasoning above unacceptable"


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
        required = {
            "platt": {"slope", "intercept"},
            "beta": {"a", "b", "c"},
            "isotonic": {"x", "y"},
            COMBINED: set(),
        }
        method = params.get("method")
        if method not in required or not (required[str(method)] | {"lo", "hi"}) <= set(params):
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

    def outside(self, scores: ArrayLike) -> NDArray[np.bool_]:
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
        clipped = np.clip(s, self.params["lo"], self.params["hi"])
        if self.method == COMBINED:
            probability = clipped
        elif self.method == "isotonic":
            probability = np.interp(clipped, self.params["x"], self.params["y"])
        elif self.method == "platt":
            probability = _expit(self.params["slope"] * clipped + self.params["intercept"])
        else:
            up, down = beta_features(clipped)
            probability = _expit(self.params["a"] * up + self.params["b"] * down + self.params["c"])
        return np.asarray(np.clip(probability, 0.0, 1.0))


def fit(method: str, scores: ArrayLike, targets: ArrayLike) -> Calibrator:
    """Fit one map.

    Parameters
    ----------
    method : str
        ``platt``: logistic regression on the score, unpenalised. ``beta``: logistic regression on
        log r and −log(1 − r) with coefficients of at least 0; a negative one is set to 0 and the
        other refitted. ``isotonic``: the best non-decreasing steps, clipped to 1/(n + 2) from 0 and
        1; from ``MIN_ISOTONIC`` labels on.
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
    refused = missing_labels_reason(method, y)
    if refused:
        raise NotCalibrated(refused)
    return fit_any(method, s, y)


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
    y = np.asarray(targets, dtype=float)
    n, good = len(y), int(y.sum())
    least, of_class = (
        (MIN_ISOTONIC, MIN_ISOTONIC_OF_CLASS)
        if method == "isotonic"
        else (MIN_LABELS, MIN_OF_CLASS)
    )
    who = "isotonic" if method == "isotonic" else "a calibrator"
    if n and good in (0, n):
        have = "acceptable" if good else "not acceptable"
        return f"all {n} labels are {have}: {who} needs at least {of_class} of either class"
    gaps = [f"{n} labels of at least {least}"] * (n < least)
    gaps += [f"{good} acceptable of at least {of_class}"] * (good < of_class)
    gaps += [f"{n - good} not acceptable of at least {of_class}"] * (n - good < of_class)
    return f"{who} needs more labels: there are {', '.join(gaps)}" if gaps else None


def fit_any(method: str, scores: ArrayLike, targets: ArrayLike) -> Calibrator:
    """Fit without a minimum of labels, for training folds; NotCalibrated as ``fit``."""
    s, y = check_scores(scores, targets)
    if len(set(y)) < 2:
        raise NotCalibrated("the labels are not of two classes")
    if np.ptp(s) < 1e-9:
        raise NotCalibrated(f"all {len(s)} scores are equal: {UNRANKED}")
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method of calibration: one of {', '.join(METHODS)}")
    coefficients = {"platt": _platt, "beta": _beta, "isotonic": _isotonic}[method](s, y)
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
    clipped = np.clip(scores, EPS, 1 - EPS)
    return np.log(clipped), -np.log1p(-clipped)


def _platt(s: Floats, y: Floats) -> dict[str, Any]:
    (slope,), intercept, note = _logistic([s], y)
    if slope <= 0:
        raise NotCalibrated(f"{UNRANKED}: the logistic slope is {slope:.3g}")
    return {"slope": slope, "intercept": intercept, "note": note}


def _beta(s: Floats, y: Floats) -> dict[str, Any]:
    up, down = beta_features(s)
    (a, b), c, note = _logistic([up, down], y)
    notes = [note] * bool(note)
    if a < 0 or b < 0:
        dropped = "a" if a < b else "b"
        (coefficient,), c, note = _logistic([down if dropped == "a" else up], y)
        if coefficient <= 0:
            raise NotCalibrated(f"{UNRANKED}: both coefficients of the beta map are negative")
        a, b = (0.0, coefficient) if dropped == "a" else (coefficient, 0.0)
        notes = [f"{dropped} came out negative and is 0", *[note] * bool(note)]
    if a + b <= 0:
        raise NotCalibrated(f"{UNRANKED}: both coefficients of the beta map are 0")
    return {"a": a, "b": b, "c": c, "note": "; ".join(notes)}


def _isotonic(s: Floats, y: Floats) -> dict[str, Any]:
    from sklearn.isotonic import IsotonicRegression

    rank = auroc(s, y)
    if rank is not None and rank <= 0.5:
        raise NotCalibrated(f"{UNRANKED}: its AUROC is {rank:.3g}")
    edge = 1 / (len(s) + 2)
    model = IsotonicRegression(
        y_min=edge, y_max=1 - edge, increasing=True, out_of_bounds="clip"
    ).fit(s, y)
    levels = np.asarray(model.y_thresholds_, dtype=float)
    if np.ptp(levels) < 1e-12:
        raise NotCalibrated(f"{UNRANKED}: the best non-decreasing map is a constant")
    return {
        "x": [float(x) for x in model.X_thresholds_],
        "y": [float(v) for v in levels],
        "note": "",
    }


def _logistic(features: list[Floats], y: Floats) -> tuple[tuple[float, ...], float, str]:
    """Return coefficients, intercept and a note; ridge where the first feature separates."""
    from sklearn.linear_model import LogisticRegression

    columns = np.column_stack(features)
    middle, spread = columns.mean(axis=0), columns.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    good, bad = columns[y == 1, 0], columns[y == 0, 0]
    apart = bool(bad.max() <= good.min() or good.max() <= bad.min())
    # C = 1e8 differs from no penalty beyond the eighth digit; it keeps finite what two features
    # separate and neither alone
    model = LogisticRegression(
        C=1.0 if apart else 1e8, solver="newton-cholesky", tol=1e-10, max_iter=500
    )
    with warnings.catch_warnings():
        # it warns only where one coefficient is negative, and the fit is then repeated without it
        warnings.simplefilter("ignore")
        model.fit((columns - middle) / spread, y)
    slopes = model.coef_[0] / spread
    return (
        tuple(float(k) for k in slopes),
        float(model.intercept_[0] - slopes @ middle),
        RIDGE if apart else "",
    )


def _expit(x: Floats) -> Floats:
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


def folds_of(
    targets: ArrayLike, groups: Sequence[Hashable], *, most: int = 5, seed: int = 0
) -> Folds:
    """Return the fold of each label: whole groups, the classes spread as evenly as groups allow.

    Parameters
    ----------
    targets : array (n,) of bool
    groups : sequence (n,)
        The question of each label; all its labels share a fold.
    most : int
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
    names = {name: k for k, name in enumerate(sorted(set(groups), key=str))}
    where = np.array([names[group] for group in groups], dtype=int)
    most = min(most, len(names), int(np.bincount(y, minlength=2).min()))
    for k in range(most, 1, -1):
        folds = np.zeros(len(y), dtype=np.int64)
        for fold, (_, test_rows) in enumerate(
            StratifiedGroupKFold(k, shuffle=True, random_state=seed).split(y, y, where)
        ):
            folds[test_rows] = fold
        if len(set(folds)) == k and all(len(set(y[folds != fold])) == 2 for fold in range(k)):
            return folds
    raise NotCalibrated(
        f"the {len(y)} labels belong to {len(names)} question{'s' * (len(names) != 1)}: no two"
        " folds of whole questions leave both classes to learn from. Label items of more"
        " questions."
    )
