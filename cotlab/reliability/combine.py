"""A probability from several features at once, by penalised logistic regression.

Features may be missing. The result is score and calibration in one: no map follows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.calibrator import Folds, NotCalibrated, folds_of, missing_labels_reason
from cotlab.stats.threads import single_blas_thread

Floats = NDArray[np.float64]
NAMES = ("C", "R", "V", "D", "F", "ccs_corrupt", "mass_lost")
"""The features that are combined, where a table has them."""
UPWARD = frozenset({"C", "R", "V", "F"})
"""Features of which more never lowers the probability; the labels decide the sign of the others."""
FORMS = ("linear", "bent")
"""``bent`` has two columns a feature, −log(1 − x) and log x, so that the last step to a perfect
score may count more."""
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Strengths of the ridge on standardised columns that cross-validation chooses between."""
EPS = 1e-3
"""Distance from 0 and 1 to which the bent form clips values."""
RARE = 0.05
"""Share of missing values at which a feature gets an indicator column."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A fitted combination."""

    params: Mapping[str, Any]
    """``method`` ("combined"), ``form`` (of FORMS), ``penalty``, ``features`` (name -> ``lo, hi``:
    range in the labels, to which values are clipped), ``columns`` (``feature, kind, mean, sd,
    weight``), ``intercept``, ``n, n_positive``, ``left_out`` (feature -> reason). JSON values.
    """

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Combination:
        """Return the combination that ``params`` describe; ValueError where they describe none."""
        if params.get("method") != "combined" or not {"columns", "features", "intercept"} <= set(
            params
        ):
            raise ValueError(f"these are no parameters of a combination: {sorted(params)}")
        return cls(dict(params))

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the features that it reads."""
        return tuple(self.params["features"])

    def predict(self, features: pd.DataFrame) -> Floats:
        """Return the probability of each row.

        Parameters
        ----------
        features : DataFrame (n rows)

        Returns
        -------
        ndarray (n,), [0, 1]
            NaN where none of the features is defined.

        Raises
        ------
        ValueError
            If a column is missing.
        """
        gone = [name for name in self.features if name not in features]
        if gone:
            raise ValueError(f"the table lacks {', '.join(gone)}, which the combination reads")
        values = {name: features[name].to_numpy(dtype=float) for name in self.features}
        score = np.full(len(features), float(self.params["intercept"]))
        for column in self.params["columns"]:
            edge = self.params["features"][column["feature"]]
            raw = _column(
                np.clip(values[column["feature"]], edge["lo"], edge["hi"]), column["kind"]
            )
            filled = np.where(np.isnan(raw), column["mean"], raw)
            score += column["weight"] * (filled - column["mean"]) / column["sd"]
        known = ~np.isnan(np.column_stack(list(values.values()))).all(axis=1)
        return np.where(known, _expit(score), np.nan)


def combination_text(params: Mapping[str, Any]) -> str:
    """Return the columns of a combination with their weights as text, the heaviest first."""
    kinds = {"as_is": "", "up": " (towards 1)", "down": " (towards 0)", "gap": " (missing)"}
    columns = sorted(params["columns"], key=lambda column: -abs(column["weight"]))
    listed = ", ".join(f"{c['feature']}{kinds[c['kind']]} {c['weight']:+.2f}" for c in columns)
    left = "; ".join(f"{name} {reason}" for name, reason in params["left_out"].items())
    return f"weights of standardised columns: {listed}; ridge {params['penalty']:g}" + (
        f"; left out: {left}" if left else ""
    )


@dataclass(frozen=True, slots=True)
class Combined:
    """A combination and its out-of-fold predictions."""

    combination: Combination
    """Fitted on all labels."""
    predicted: Floats
    """Probability (n,) of each label by a combination that saw neither it nor its question; its
    form and penalty were chosen without them too.
    """
    folds: Folds
    """Fold (n,) in which each label was held out."""


@single_blas_thread()
def combine(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str] = NAMES,
    seed: int = 0,
) -> Combined:
    """Fit a combination, and predict labels that the fit has not seen.

    Parameters
    ----------
    features : DataFrame (n rows)
        Columns as ``cotlab.review.release.features.feature_table``; NaN where there is no value.
    targets : array (n,) of bool
    groups : sequence (n,)
        The question of each label: its labels are held out together.
    names : sequence of str
        Features to combine; those that the table lacks, or that do not vary in it, are left out.
    seed : int
        Of the folds.

    Returns
    -------
    Combined

    Raises
    ------
    NotCalibrated
        If there are too few labels (in all or of one class), or no feature varies.
    """
    y = np.asarray(targets, dtype=float)
    fitted = fit_combination(features, y, groups, names=names, seed=seed)
    folds = folds_of(y, groups, seed=seed)
    predicted = np.full(len(y), np.nan)
    for fold in range(int(folds.max()) + 1):
        test_rows, train_rows = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        fold_combination = _chosen(
            features.iloc[train_rows],
            y[train_rows],
            [groups[int(k)] for k in train_rows],
            names,
            seed + 1,
        )
        predicted[test_rows] = fold_combination.predict(features.iloc[test_rows])
    return Combined(fitted, predicted, folds)


@single_blas_thread()
def fit_combination(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    *,
    names: Sequence[str] = NAMES,
    seed: int = 0,
) -> Combination:
    """Fit on all labels, with the form and penalty of the least out-of-fold log loss.

    Parameters
    ----------
    features : DataFrame (n rows)
    targets : array (n,) of bool
    groups : sequence (n,), optional
        By default each label is its own question.
    names : sequence of str
    seed : int
        As ``combine``.

    Returns
    -------
    Combination

    Raises
    ------
    NotCalibrated
        As ``combine``.
    ValueError
        If the lengths differ.

    Notes
    -----
    Minimises Σ log loss + penalty/2 · Σ weight² over standardised columns, the intercept free, with
    weights of at least 0 for the columns of ``UPWARD`` (L-BFGS-B). A feature that is missing in
    more than ``RARE`` of the labels has an indicator column. Values beyond the range of the labels
    are clipped to it.

    References
    ----------
    Le Cessie and van Houwelingen (1992), Applied Statistics 41:191 (ridge logistic regression); the
    bent form: Kull, Silva Filho and Flach (2017), AISTATS.
    """
    y = np.asarray(targets, dtype=float)
    if len(y) != len(features):
        raise ValueError(f"{len(features)} rows of features for {len(y)} targets")
    if refused := missing_labels_reason("any", y):
        raise NotCalibrated(refused)
    return _chosen(features, y, list(range(len(y))) if groups is None else groups, names, seed)


def _chosen(
    features: pd.DataFrame, y: Floats, groups: Sequence[Hashable], names: Sequence[str], seed: int
) -> Combination:
    """Return the fit with the form and penalty of the least out-of-fold log loss."""
    folds = folds_of(y, groups, seed=seed)
    losses: dict[tuple[float, str], float] = {}
    for form in FORMS:
        for penalty in sorted(PENALTIES, reverse=True):
            loss = 0.0
            for fold in range(int(folds.max()) + 1):
                test_mask = folds == fold
                p = _fit(features[~test_mask], y[~test_mask], names, form, penalty).predict(
                    features[test_mask]
                )
                p = np.clip(np.where(np.isnan(p), y[~test_mask].mean(), p), 1e-6, 1 - 1e-6)
                loss -= float(np.sum(y[test_mask] * np.log(p) + (1 - y[test_mask]) * np.log(1 - p)))
            losses[penalty, form] = loss
    penalty, form = min(losses, key=lambda each: losses[each])
    return _fit(features, y, names, form, penalty)


def _fit(
    features: pd.DataFrame, y: Floats, names: Sequence[str], form: str, penalty: float
) -> Combination:
    """Return the combination of one form and penalty, whatever the number of labels."""
    from scipy.optimize import minimize

    columns: list[dict[str, Any]] = []
    rows: list[Floats] = []
    edges: dict[str, dict[str, float]] = {}
    left: dict[str, str] = {}
    for name in names:
        values = (
            features[name].to_numpy(dtype=float) if name in features else np.full(len(y), np.nan)
        )
        known = values[~np.isnan(values)]
        if not len(known) or (np.ptp(known) < 1e-9 and len(known) >= (1 - RARE) * len(y)):
            left[name] = "does not vary" if len(known) else "is nowhere defined"
            continue
        edges[name] = {"lo": float(known.min()), "hi": float(known.max())}
        gaps = (RARE * len(y) <= len(y) - len(known)) and len(known) > 0
        unit = form == "bent" and known.min() >= 0 and known.max() <= 1
        for kind in (*(("up", "down") if unit else ("as_is",)), *(("gap",) if gaps else ())):
            raw = _column(values, kind)
            mean, sd = float(np.nanmean(raw)), float(np.nanstd(raw))
            if sd > 1e-9:
                columns.append({"feature": name, "kind": kind, "mean": mean, "sd": sd})
                rows.append((np.where(np.isnan(raw), mean, raw) - mean) / sd)
    if not columns:
        raise NotCalibrated(
            f"none of the features {', '.join(names)} varies among the {len(y)} labels"
        )
    x = np.column_stack(rows)
    bounds = [
        (0.0, None) if c["feature"] in UPWARD and c["kind"] != "gap" else (None, None)
        for c in columns
    ]

    def loss(weights: Floats) -> tuple[float, Floats]:
        score = x @ weights[1:] + weights[0]
        value = float(
            np.sum(np.logaddexp(0.0, score) - y * score) + penalty / 2 * np.sum(weights[1:] ** 2)
        )
        slope = _expit(score) - y
        return value, np.concatenate([[slope.sum()], x.T @ slope + penalty * weights[1:]])

    start = np.concatenate(
        [[float(np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5)))], np.zeros(len(columns))]
    )
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, None), *bounds])
    for column, weight in zip(columns, optimum.x[1:], strict=True):
        column["weight"] = float(weight)
    return Combination(
        {
            "method": "combined",
            "form": form,
            "penalty": penalty,
            "features": edges,
            "columns": columns,
            "intercept": float(optimum.x[0]),
            "n": len(y),
            "n_positive": int(y.sum()),
            "left_out": left,
        }
    )


def _column(values: Floats, kind: str) -> Floats:
    """Return a column of the fit from a feature's values."""
    if kind == "gap":
        return np.isnan(values).astype(float)
    if kind == "as_is":
        return values
    clipped = np.clip(values, EPS, 1 - EPS)
    return -np.log1p(-clipped) if kind == "up" else np.log(clipped)


def _expit(score: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(score), dtype=float)
