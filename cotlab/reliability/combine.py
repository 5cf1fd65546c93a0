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
    DOMAIN_FEATURE,
    Combination,
    domain_values,
    feature_column,
)
from cotlab.reliability.maps import (
    COMBINED_METHOD,
    Floats,
    Folds,
    NotCalibrated,
    assign_folds,
    missing_labels_reason,
    sigmoid,
    single_blas_thread,
)

FEATURE_NAMES = ("C", "R", "V", "D", "F", "ccs_corrupt", "mass_lost")
"""The features that are combined where no others are named."""
_VERIFIER_SCORES = frozenset(
    {"critic_sound", "process_reward_min", "process_reward_product", "process_reward_last"}
)
INCREASING_FEATURES = frozenset({"C", "R", "V", "F"}) | _VERIFIER_SCORES
"""Features of which more never lowers the probability; the labels decide the sign of the others."""
BENT_FEATURES = frozenset(FEATURE_NAMES) | _VERIFIER_SCORES
"""Features of which the last step to a perfect score may count more."""
FORMS = ("linear", "bent")
"""Of one of ``BENT_FEATURES`` in [0, 1], ``linear`` has its value and ``bent`` two columns,
−log(1 − x) and log x. A count, at least 0 and somewhere above 1, is log(1 + x) in both; all else is
its value."""
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Strengths of the ridge on standardised columns that cross-validation chooses between, the
strongest first, until two in a row predict worse than the best."""
TRIVIAL_FEATURES = frozenset({"text_characters", "text_steps", "answer_correct"})
"""Features that are trivial to know: their penalty is ``TRIVIAL_PENALTY_SHARE`` of the others', so
that the strongest one leaves a fit of what is trivial, and not a constant."""
TRIVIAL_PENALTY_SHARE = 0.01
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
    form and penalty were chosen without them too.
    """
    folds: Folds
    """Fold (n,) in which each label was held out."""


@single_blas_thread()
def fit_with_predictions(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str] = FEATURE_NAMES,
    seed: int = 0,
) -> CombinedFit:
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
        ``DOMAIN_FEATURE`` among them gives each domain an intercept.
    seed : int
        Of the folds.

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
        test_rows, train_rows = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        train_groups = [groups[int(k)] for k in train_rows]
        fold_combination = _fit_best_form(
            features.iloc[train_rows], y[train_rows], train_groups, names, seed + 1
        )
        predictions[test_rows] = fold_combination.predict(features.iloc[test_rows])
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
    names: Sequence[str] = FEATURE_NAMES,
    only: Sequence[str] | None = None,
    seed: int = 0,
) -> tuple[Floats, dict[str, str]]:
    """Predict the labels of each domain by a combination of the other domains' labels.

    Parameters
    ----------
    features : DataFrame (n rows)
        With the column ``DOMAIN_FEATURE``.
    targets, groups, names, seed
        As ``fit_with_predictions``; no label of a question of the domain is learnt from.
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
        if refusal_reason := missing_labels_reason("any", y[is_train]):
            reason_by_domain[str(name)] = f"of the other domains, {refusal_reason}"
            continue
        try:
            combination = _fit_best_form(
                features[is_train], y[is_train], questions[is_train].tolist(), names, seed
            )
        except NotCalibrated as error:
            reason_by_domain[str(name)] = str(error)
            continue
        predictions[is_test] = combination.predict(features[is_test])
    return predictions, reason_by_domain


@single_blas_thread()
def fit_combination(
    features: pd.DataFrame,
    targets: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    *,
    names: Sequence[str] = FEATURE_NAMES,
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
        As ``fit_with_predictions``.

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
    Minimises Σ log loss + penalty/2 · Σ weight² over standardised columns, the intercept free and
    the penalty of ``TRIVIAL_FEATURES`` a small share, with weights of at least 0 for the columns of
    ``INCREASING_FEATURES`` (L-BFGS-B). A feature that is
    missing in more than ``MIN_MISSING_SHARE`` of the labels has an indicator column. Values beyond
    the range of the labels are clipped to it.

    References
    ----------
    Le Cessie and van Houwelingen (1992), Applied Statistics 41:191 (ridge logistic regression); the
    bent form: Kull, Silva Filho and Flach (2017), AISTATS.
    """
    y = np.asarray(targets, dtype=float)
    if len(y) != len(features):
        raise ValueError(f"{len(features)} rows of features for {len(y)} targets")
    if refusal_reason := missing_labels_reason("any", y):
        raise NotCalibrated(refusal_reason)
    return _fit_best_form(
        features, y, list(range(len(y))) if groups is None else groups, names, seed
    )


def _fit_best_form(
    features: pd.DataFrame, y: Floats, groups: Sequence[Hashable], names: Sequence[str], seed: int
) -> Combination:
    """Return the fit with the form and penalty of the least out-of-fold log loss."""
    folds = assign_folds(y, groups, seed=seed)
    fold_masks = [folds == fold for fold in range(int(folds.max()) + 1)]
    best_loss, best_form, best_penalty = np.inf, FORMS[0], max(PENALTIES)
    for form in FORMS if BENT_FEATURES & set(names) else FORMS[:1]:
        path = [_PenaltyPath(features[~mask], y[~mask], names, form) for mask in fold_masks]
        least_loss, n_worse = np.inf, 0
        for penalty in sorted(PENALTIES, reverse=True):
            loss = sum(
                _log_loss(fit.at(penalty), features[mask], y[mask], float(y[~mask].mean()))
                for fit, mask in zip(path, fold_masks, strict=True)
            )
            if loss < best_loss:
                best_loss, best_form, best_penalty = loss, form, penalty
            n_worse = 0 if loss < least_loss else n_worse + 1
            least_loss = min(loss, least_loss)
            if n_worse == 2:
                break
    return _fit_form(features, y, names, best_form, best_penalty)


def _log_loss(combination: Combination, features: pd.DataFrame, y: Floats, rate: float) -> float:
    """Return the summed log loss; a row that cannot be predicted has the base rate."""
    probabilities = combination.predict(features)
    probabilities = np.where(np.isnan(probabilities), rate, probabilities).clip(1e-6, 1 - 1e-6)
    return -float(np.sum(y * np.log(probabilities) + (1 - y) * np.log(1 - probabilities)))


def _fit_form(
    features: pd.DataFrame, y: Floats, names: Sequence[str], form: str, penalty: float
) -> Combination:
    """Return the combination of one form and penalty, whatever the number of labels."""
    return _PenaltyPath(features, y, names, form).at(penalty)


class _PenaltyPath:
    """The combinations of one form on the same labels, each fit starting from the one before."""

    def __init__(self, features: pd.DataFrame, y: Floats, names: Sequence[str], form: str) -> None:
        self.y, self.form = y, form
        self.columns: list[dict[str, Any]] = []
        self.range_by_feature: dict[str, dict[str, float]] = {}
        self.left_out_reasons: dict[str, str] = {}
        standardised_columns: list[Floats] = []
        for name in names:
            for column, values in self._feature_columns(features, name):
                mean, sd = float(np.nanmean(values)), float(np.nanstd(values))
                if sd > 1e-9:
                    self.columns.append({**column, "mean": mean, "sd": sd})
                    standardised_columns.append(
                        (np.where(np.isnan(values), mean, values) - mean) / sd
                    )
        if not self.range_by_feature or not self.columns:
            raise NotCalibrated(
                f"none of the features {', '.join(names)} varies among the {len(y)} labels"
            )
        self.design_matrix = np.column_stack(standardised_columns)
        self.weights = np.zeros(len(self.columns) + 1)
        self.weights[0] = np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5))

    def _feature_columns(
        self, features: pd.DataFrame, name: str
    ) -> list[tuple[dict[str, Any], Floats]]:
        """Return the columns of a feature with their values; none where it is left out."""
        if name == DOMAIN_FEATURE:
            domains = set(features[name]) if name in features else set()
            return [
                (
                    {"feature": name, "kind": "domain", "domain": str(domain)},
                    domain_values(features, domain, domains),
                )
                for domain in sorted(domains)
            ]
        missing_values = np.full(len(self.y), np.nan)
        values = features[name].to_numpy(dtype=float) if name in features else missing_values
        defined_values = values[~np.isnan(values)]
        n_missing = len(values) - len(defined_values)
        has_gaps = n_missing >= MIN_MISSING_SHARE * len(values)
        if not len(defined_values) or (
            np.ptp(defined_values) < 1e-9 and n_missing <= MIN_MISSING_SHARE * len(values)
        ):
            self.left_out_reasons[name] = (
                "does not vary" if len(defined_values) else "is nowhere defined"
            )
            return []
        lo, hi = float(defined_values.min()), float(defined_values.max())
        self.range_by_feature[name] = {"lo": lo, "hi": hi}
        kinds = ["as_is"]
        if lo >= 0 and hi > 1:
            kinds = ["log"]
        elif lo >= 0 and self.form == "bent" and name in BENT_FEATURES:
            kinds = ["up", "down"]
        kinds += ["gap"] * has_gaps
        return [({"feature": name, "kind": kind}, feature_column(values, kind)) for kind in kinds]

    def at(self, penalty: float) -> Combination:
        """Return the combination of one penalty."""
        from scipy.optimize import minimize

        y, design_matrix = self.y, self.design_matrix
        penalties = penalty * np.array(
            [
                TRIVIAL_PENALTY_SHARE if c["feature"] in TRIVIAL_FEATURES else 1.0
                for c in self.columns
            ]
        )
        bounds = [
            (0.0, None)
            if c["feature"] in INCREASING_FEATURES and c["kind"] != "gap"
            else (None, None)
            for c in self.columns
        ]

        def loss_and_gradient(weights: Floats) -> tuple[float, Floats]:
            logit = design_matrix @ weights[1:] + weights[0]
            loss_value = float(
                np.sum(np.logaddexp(0.0, logit) - y * logit)
                + np.sum(penalties / 2 * weights[1:] ** 2)
            )
            residuals = sigmoid(logit) - y
            return loss_value, np.concatenate(
                [[residuals.sum()], design_matrix.T @ residuals + penalties * weights[1:]]
            )

        optimum = minimize(
            loss_and_gradient,
            self.weights,
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None), *bounds],
        )
        self.weights = optimum.x
        columns = [
            {**column, "weight": float(weight)}
            for column, weight in zip(self.columns, optimum.x[1:], strict=True)
        ]
        return Combination(
            {
                "method": COMBINED_METHOD,
                "form": self.form,
                "penalty": penalty,
                "features": self.range_by_feature,
                "columns": columns,
                "intercept": float(optimum.x[0]),
                "n": len(y),
                "n_positive": int(y.sum()),
                "left_out": self.left_out_reasons,
            }
        )
