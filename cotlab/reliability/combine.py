"""A probability from several features at once, by penalised logistic regression.

Features may be missing. The result is score and calibration in one: no map follows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cotlab.reliability.combination import (
    DOMAIN_COLUMNS,
    DOMAIN_FEATURE,
    Combination,
    column_values,
)
from cotlab.reliability.maps import (
    COMBINED_METHOD,
    Floats,
    Folds,
    NotCalibrated,
    assign_folds,
    missing_labels_reason,
    single_blas_thread,
)

_VERIFIER_SCORES = frozenset(
    {"critic_sound", "process_reward_min", "process_reward_product", "process_reward_last"}
)
INCREASING_FEATURES = frozenset({"C", "R", "V", "F"}) | _VERIFIER_SCORES
"""Features of which more never lowers the probability; the labels decide the sign of the others."""
BENT_FEATURES = INCREASING_FEATURES | {"D", "ccs_corrupt", "mass_lost"}
"""Features in [0, 1] of which the last step to a perfect score may count more: beside the value,
−log(1 − x) and log x are columns."""
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Strengths of the ridge on standardised columns that cross-validation chooses between."""
TRIVIAL_FEATURES = frozenset({"text_characters", "text_steps", "answer_correct"})
"""Features that are trivial to know: their penalty is ``TRIVIAL_PENALTY_SHARE`` of the others', so
that the strongest one leaves a fit of what is trivial, and not a constant."""
TRIVIAL_PENALTY_SHARE = 0.01
MAX_STANDARD_DEVIATIONS = 4.0
"""Distance from its mean to which a standardised column is clipped."""
MIN_MISSING_SHARE = 0.05
"""Share of missing values at which a feature gets an indicator column."""
MAX_MISSING_DIFFERENCE = 0.1
"""Difference between the classes in the share of missing values up to which a feature is read; of
``TRIVIAL_FEATURES``, whose absence says nothing of a chain, 0."""


@dataclass(frozen=True, slots=True)
class CombinedFit:
    """A combination and its out-of-fold predictions."""

    combination: Combination
    """Fitted on all labels."""
    predictions: Floats
    """Probability (n,) of each label by a combination that saw neither it nor its question; its
    penalty was chosen without them too.
    """
    folds: Folds
    """Fold (n,) in which each label was held out."""


@single_blas_thread()
def fit_with_predictions(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str],
    seed: int = 0,
) -> CombinedFit:
    """Fit a combination, and predict labels that the fit has not seen.

    Parameters
    ----------
    features, targets, groups, names, seed
        As ``fit_combination``; the labels of a question are held out together.

    Returns
    -------
    CombinedFit

    Raises
    ------
    NotCalibrated
        If there are too few labels (in all or of one class), or no feature varies.
    """
    y = np.asarray(targets, dtype=float)
    combination = fit_combination(features, y, groups, names=names, seed=seed)
    folds = assign_folds(y, groups, seed=seed)
    predictions = np.full(len(y), np.nan)
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        train_groups = [groups[int(k)] for k in np.flatnonzero(~is_test)]
        fitted = _fit(features[~is_test], y[~is_test], train_groups, names, seed + 1)
        predictions[is_test] = fitted.predict(features[is_test])
    return CombinedFit(combination, predictions, folds)


def class_bound_features(
    features: pd.DataFrame, targets: ArrayLike, names: Iterable[str]
) -> dict[str, str]:
    """Return the features that no fit may read: whether they are missing tells the class.

    Parameters
    ----------
    features : DataFrame (n rows)
    targets : array (n,) of bool
    names : iterable of str
        Features; those that the table lacks are passed over.

    Returns
    -------
    dict
        Feature → both shares of missing values, where Newcombe's interval of their difference lies
        beyond ``MAX_MISSING_DIFFERENCE``.
    """
    from statsmodels.stats.proportion import confint_proportions_2indep

    y = np.asarray(targets, dtype=bool)
    reasons = {}
    for name in names if 0 < y.sum() < len(y) else ():
        is_missing = features[name].isna().to_numpy() if name in features else np.ones(len(y), bool)
        if is_missing.all() or not is_missing.any():
            continue
        n_true, n_false = is_missing[y].sum(), is_missing[~y].sum()
        lo, hi = confint_proportions_2indep(
            n_true, y.sum(), n_false, (~y).sum(), method="newcomb", compare="diff"
        )
        if max(lo, -hi) > (0.0 if name in TRIVIAL_FEATURES else MAX_MISSING_DIFFERENCE):
            reasons[name] = (
                f"is missing in {n_true / y.sum():.0%} of the chains with the target and in"
                f" {n_false / (~y).sum():.0%} of the others"
            )
    return reasons


@single_blas_thread()
def predict_unseen_domains(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str],
    only: Sequence[str] | None = None,
    seed: int = 0,
) -> tuple[Floats, dict[str, str]]:
    """Predict the labels of each domain by a combination of the other domains' labels.

    Parameters
    ----------
    features : DataFrame (n rows)
        With the column ``DOMAIN_FEATURE``.
    targets, groups, names, seed
        As ``fit_combination``; no label of a question of the domain is learnt from.
    only : sequence of str, optional
        Domains to predict; by default all.

    Returns
    -------
    tuple
        The probabilities (n,), NaN in a domain that cannot be predicted; and, by domain, why not.
    """
    y = np.asarray(targets, dtype=float)
    domains = features[DOMAIN_FEATURE].to_numpy(dtype=object)
    questions = np.asarray([str(group) for group in groups], dtype=object)
    predictions, reason_by_domain = np.full(len(y), np.nan), {}
    for name in sorted(set(domains)) if only is None else only:
        is_test = domains == name
        is_train = ~is_test & ~np.isin(questions, questions[is_test])
        try:
            if refusal_reason := missing_labels_reason("any", y[is_train]):
                raise NotCalibrated(f"of the other domains, {refusal_reason}")
            fitted = _fit(features[is_train], y[is_train], questions[is_train], names, seed)
            predictions[is_test] = fitted.predict(features[is_test])
        except NotCalibrated as error:
            reason_by_domain[str(name)] = str(error)
    return predictions, reason_by_domain


@single_blas_thread()
def fit_combination(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    *,
    names: Sequence[str],
    seed: int = 0,
) -> Combination:
    """Fit on all labels, with the penalty of the least out-of-fold log loss.

    Parameters
    ----------
    features : DataFrame (n rows)
        Columns as ``cotlab.review.release.features.feature_table``; NaN where there is no value.
    targets : array (n,) of bool
    groups : sequence (n,), optional
        The question of each label; by default each label is its own question.
    names : sequence of str
        Features to combine; those that the table lacks, or that do not vary in it, are left out.
        ``DOMAIN_FEATURE`` among them gives each domain an intercept.
    seed : int
        Of the folds.

    Returns
    -------
    Combination

    Raises
    ------
    NotCalibrated
        As ``fit_with_predictions``.
    ValueError
        If the lengths differ.

    Notes
    -----
    Logistic regression with ridge (scikit-learn) on standardised columns, the intercept free and
    the penalty of ``TRIVIAL_FEATURES`` a small share. A column of ``INCREASING_FEATURES`` whose
    weight would be negative has weight 0, and the others are fitted again. A count, at least 0 and
    somewhere above 1, enters by log(1 + x). A feature that is missing in ``MIN_MISSING_SHARE`` of
    the labels or more has an indicator column. Values beyond the range of the labels are clipped
    to it.

    References
    ----------
    Le Cessie and van Houwelingen (1992), Applied Statistics 41:191 (ridge logistic regression); the
    bent columns: Kull, Silva Filho and Flach (2017), AISTATS.
    """
    y = np.asarray(targets, dtype=float)
    if len(y) != len(features):
        raise ValueError(f"{len(features)} rows of features for {len(y)} targets")
    if refusal_reason := missing_labels_reason("any", y):
        raise NotCalibrated(refusal_reason)
    return _fit(features, y, range(len(y)) if groups is None else groups, names, seed)


def _fit(
    features: pd.DataFrame, y: Floats, groups: Sequence[Hashable], names: Sequence[str], seed: int
) -> Combination:
    params = fit_columns(features, y, names, PENALTIES, assign_folds(y, groups, seed=seed))
    counts = {"n": len(y), "n_positive": int(y.sum())}
    return Combination({"method": COMBINED_METHOD, **params, **counts})


def fit_columns(
    table: pd.DataFrame,
    y: Floats,
    names: Sequence[str],
    penalties: Sequence[float],
    folds: Folds | None = None,
) -> dict[str, Any]:
    """Fit a ridge logistic regression on the columns of features.

    Parameters
    ----------
    table : DataFrame (n rows)
    y : array (n,) of 0 and 1
    names : sequence of str
        Features, and columns of domains (text).
    penalties : sequence of float
        What the folds choose between; one without folds.
    folds : array (n,) of int, optional

    Returns
    -------
    dict
        What ``linear_logit`` reads, with ``penalty`` and ``left_out``.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    columns, design, limits, left_out = _varying_columns(table, names)
    if not limits:
        raise NotCalibrated(
            f"none of the features {', '.join(names)} varies among the {len(y)} labels"
        )
    scale = np.array(
        [
            TRIVIAL_PENALTY_SHARE**-0.5 if column["feature"] in TRIVIAL_FEATURES else 1.0
            for column in columns
        ]
    )
    is_increasing = np.array(
        [c["feature"] in INCREASING_FEATURES and c["kind"] != "gap" for c in columns]
    )
    options = {"solver": "lbfgs", "max_iter": 1000, "tol": 1e-6}
    while True:
        if folds is None:
            regression = LogisticRegression(C=1 / penalties[0], **options)
        else:
            regression = LogisticRegressionCV(
                Cs=[1 / penalty for penalty in penalties],
                cv=[
                    (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
                    for fold in range(int(folds.max()) + 1)
                ],
                scoring=_log_likelihood,
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
                **options,
            )
        model = make_pipeline(
            StandardScaler(),
            FunctionTransformer(_clip_and_scale, kw_args={"scale": scale}),
            SimpleImputer(strategy="constant", fill_value=0.0),
            regression,
        ).fit(np.column_stack(design), y)
        weights = regression.coef_[0] * scale
        is_turned = is_increasing & (weights < 0)
        if not is_turned.any():
            break
        scale = np.where(is_turned, 0.0, scale)
    means, deviations = model[0].mean_, model[0].scale_
    chosen = regression.C if folds is None else regression.C_
    return {
        "penalty": min(penalties, key=lambda penalty: abs(1 / penalty - chosen)),
        "clip": MAX_STANDARD_DEVIATIONS,
        "features": limits,
        "columns": [
            {**column, "mean": float(mean), "sd": float(sd), "weight": float(weight)}
            for column, mean, sd, weight in zip(columns, means, deviations, weights, strict=True)
        ],
        "intercept": float(regression.intercept_[0]),
        "left_out": left_out,
    }


def _clip_and_scale(z: Floats, scale: Floats) -> Floats:
    return np.clip(z, -MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS) * scale


def _log_likelihood(model: Any, x: Floats, y: Floats) -> float:
    """Return the log likelihood of held-out labels, also of one class."""
    from sklearn.metrics import log_loss

    return -float(log_loss(y, model.predict_proba(x), labels=model.classes_, normalize=False))


def _varying_columns(
    table: pd.DataFrame, names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[Floats], dict[str, dict[str, float]], dict[str, str]]:
    """Return columns, the values (n,) of each, the range of each feature, why others are out."""
    columns: list[dict[str, Any]] = []
    design: list[Floats] = []
    limits: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        known = table[name].dropna().to_numpy() if name in table else np.zeros(0)
        if not len(known):
            left_out[name] = "is nowhere defined"
            continue
        domains = set(known.tolist()) if name in DOMAIN_COLUMNS else set()
        own = [{"feature": name, "kind": "domain", "domain": text} for text in sorted(domains)]
        if not domains:
            range_ = {"lo": float(known.min()), "hi": float(known.max())}
            is_share = range_["lo"] >= 0 and range_["hi"] <= 1
            kinds = ["as_is" if range_["lo"] < 0 or is_share else "log"]
            kinds += ["up", "down"] * (name in BENT_FEATURES and is_share)
            kinds += ["gap"] * (len(known) <= (1 - MIN_MISSING_SHARE) * len(table))
            own = [{"feature": name, "kind": kind} for kind in kinds]
        values = [column_values(table, column, {}, domains) for column in own]
        varying = [k for k in range(len(own)) if np.nanstd(values[k]) > 1e-9]
        columns += [own[k] for k in varying]
        design += [values[k] for k in varying]
        if not varying:
            left_out[name] = "does not vary"
        elif not domains:
            limits[name] = range_
    return columns, design, limits, left_out
