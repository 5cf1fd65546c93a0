"""Fit the hazard of the first mistake on chains whose first wrong step people marked."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.hazard import (
    HAZARD_METHOD,
    HazardModel,
    Integers,
    StepProbabilities,
    chain_starts,
    hazard_column,
    standardise,
)
from cotlab.reliability.maps import (
    Floats,
    Folds,
    NotCalibrated,
    assign_folds,
    missing_labels_reason,
    single_blas_thread,
)
from cotlab.stats.ranking import NO_MISTAKE

PENALTIES = (3.0, 10.0, 30.0, 100.0)
"""Strengths of the ridge on standardised columns that cross-validation chooses between."""
MIN_MISSING_SHARE = 0.05
"""Share of missing values at which a feature gets an indicator column."""
MIN_DOMAIN_CHAINS = 30
"""Chains with a mistake, and without one, that a domain needs for a threshold of its own."""
_N_THRESHOLDS, _SMOOTHING = 97, 7


@dataclass(frozen=True, slots=True)
class HazardFit:
    """A hazard model and what it predicts of chains that it has not seen."""

    model: HazardModel
    """Fitted on all chains."""
    located: Integers
    """The step (n_chains,) named by a model, with its penalty and rule, that was fitted without the
    chain and its question; ``NO_MISTAKE`` where none is."""
    sound: Floats
    """Probability (n_chains,) by the same models that no step is wrong."""
    folds: Folds
    """Fold (n_chains,) in which each chain was held out."""


@single_blas_thread()
def fit_hazard_with_predictions(
    steps: pd.DataFrame,
    first_wrong: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str],
    seed: int = 0,
) -> HazardFit:
    """Fit a hazard, and predict chains that the fit has not seen.

    Parameters
    ----------
    steps : DataFrame
        As ``HazardModel.predict``, with the columns ``names``.
    first_wrong : array (n_chains,) of int
        The first wrong step of each chain from 0, ``NO_MISTAKE`` where none is wrong; in the order
        in which the chains stand in ``steps``.
    groups : sequence (n_chains,)
        The question of each chain: its chains are held out together.
    names : sequence of str
        Features; those that the table lacks, or that do not vary in it, are left out.
    seed : int
        Of the folds.

    Returns
    -------
    HazardFit

    Raises
    ------
    NotCalibrated
        If there are too few labelled chains (in all or of one kind), or no feature varies.
    ValueError
        If the lengths differ, or a first wrong step is no step of its chain.
    """
    marked = np.asarray(first_wrong, dtype=np.int64)
    model = fit_hazard(steps, marked, groups, names=names, seed=seed)
    folds = assign_folds(marked == NO_MISTAKE, groups, seed=seed)
    located, sound = np.full(len(marked), NO_MISTAKE), np.full(len(marked), np.nan)
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        train_groups = [groups[int(k)] for k in np.flatnonzero(~is_test)]
        fold_model = _fit_best_penalty(
            _select_chains(steps, ~is_test), marked[~is_test], train_groups, names, seed + 1
        )
        predicted = fold_model.predict(_select_chains(steps, is_test))
        located[is_test], sound[is_test] = predicted.located, predicted.sound
    return HazardFit(model, located, sound, folds)


@single_blas_thread()
def locate_in_other_domains(
    steps: pd.DataFrame,
    first_wrong: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str],
    seed: int = 0,
) -> Integers:
    """Return the steps that models name which saw no chain of the same domain.

    Parameters
    ----------
    steps, first_wrong, groups, names, seed
        As ``fit_hazard_with_predictions``; every chain has a domain, and there are two at least.

    Returns
    -------
    ndarray of int (n_chains,)
        ``NO_MISTAKE`` where no step is named.

    Raises
    ------
    NotCalibrated
        If a domain is the only one, or the chains of the others do not suffice for a fit.
    """
    marked = np.asarray(first_wrong, dtype=np.int64)
    domains = steps["domain"].to_numpy()[chain_starts(steps)]
    located = np.full(len(marked), NO_MISTAKE)
    for name in dict.fromkeys(domains):
        is_test = domains == name
        if refusal_reason := missing_labels_reason("any", marked[~is_test] == NO_MISTAKE):
            raise NotCalibrated(f"without the domain {name}: {refusal_reason}")
        train_groups = [groups[int(k)] for k in np.flatnonzero(~is_test)]
        model = _fit_best_penalty(
            _select_chains(steps, ~is_test), marked[~is_test], train_groups, names, seed
        )
        located[is_test] = model.predict(_select_chains(steps, is_test)).located
    return located


@single_blas_thread()
def fit_hazard(
    steps: pd.DataFrame,
    first_wrong: ArrayLike,
    groups: Sequence[Hashable],
    *,
    names: Sequence[str],
    seed: int = 0,
) -> HazardModel:
    """Fit on all chains, with the penalty of the least out-of-fold log loss of the steps.

    Parameters
    ----------
    steps : DataFrame
    first_wrong : array (n_chains,) of int
    groups : sequence (n_chains,)
    names : sequence of str
    seed : int
        As ``fit_hazard_with_predictions``.

    Returns
    -------
    HazardModel

    Raises
    ------
    NotCalibrated, ValueError
        As ``fit_hazard_with_predictions``.

    Notes
    -----
    Logistic regression with ridge of "the first mistake is here" on the steps up to it, all steps
    of a chain without one. Counts enter by log(1 + count). A domain shifts the logit; the shift is
    penalised as every other weight.

    A step is named where the probability that it is the first wrong one, as a multiple of the
    probability that none is, exceeds a threshold: to first order this ratio is what decides which
    of the two adds more to the harmonic mean of exact steps and of "none". The threshold maximises
    that mean out of fold, a moving average over its grid against chance, with one of its own in
    each domain with ``MIN_DOMAIN_CHAINS`` chains of either kind.

    References
    ----------
    Singer and Willett (1993), Journal of Educational Statistics 18:155 (discrete-time hazard); Le
    Cessie and van Houwelingen (1992), Applied Statistics 41:191 (ridge). Chosen for the same ratio:
    Lipton, Elkan and Naryanaswamy (2014), ECML (thresholds that maximise F1).
    """
    marked = np.asarray(first_wrong, dtype=np.int64)
    lengths = np.diff(np.r_[chain_starts(steps), len(steps)])
    if not len(lengths) == len(marked) == len(groups):
        raise ValueError(f"{len(lengths)} chains for {len(marked)} labels, {len(groups)} groups")
    if ((marked < NO_MISTAKE) | (marked >= lengths)).any():
        raise ValueError("a first wrong step must be a step of its chain")
    if refusal_reason := missing_labels_reason("any", marked == NO_MISTAKE):
        raise NotCalibrated(refusal_reason)
    return _fit_best_penalty(steps, marked, groups, names, seed)


def _fit_best_penalty(
    steps: pd.DataFrame,
    marked: Integers,
    groups: Sequence[Hashable],
    names: Sequence[str],
    seed: int,
) -> HazardModel:
    """Return the fit with the penalty of the least out-of-fold loss, and its rule."""
    folds = assign_folds(marked == NO_MISTAKE, groups, seed=seed)
    starts = chain_starts(steps)
    likelihoods: dict[float, float] = {}
    outcomes: dict[float, tuple[Floats, Integers]] = {}
    for penalty in sorted(PENALTIES, reverse=True):
        odds, likeliest_steps, likelihood = np.zeros(len(marked)), np.zeros_like(marked), 0.0
        for fold in range(int(folds.max()) + 1):
            is_test = folds == fold
            model = _fit_penalty(_select_chains(steps, ~is_test), marked[~is_test], names, penalty)
            predicted = model.predict(_select_chains(steps, is_test))
            odds[is_test], likeliest_steps[is_test] = predicted.odds, predicted.likeliest_steps
            likelihood += _log_likelihood(predicted, marked[is_test])
        likelihoods[penalty], outcomes[penalty] = likelihood, (odds, likeliest_steps)
    penalty = max(likelihoods, key=lambda name: likelihoods[name])
    model = _fit_penalty(steps, marked, names, penalty)
    rule = _choose_thresholds(*outcomes[penalty], marked, steps["domain"].to_numpy()[starts])
    return HazardModel({**model.params, **rule})


def _fit_penalty(
    steps: pd.DataFrame, marked: Integers, names: Sequence[str], penalty: float
) -> HazardModel:
    """Return the hazard of one penalty, with a rule that names every likeliest step."""
    from sklearn.linear_model import LogisticRegression

    starts = chain_starts(steps)
    lengths = np.diff(np.r_[starts, len(steps)])
    step_index = np.arange(len(steps)) - np.repeat(starts, lengths)
    mistake_index = np.repeat(marked, lengths)
    is_at_risk = (mistake_index == NO_MISTAKE) | (step_index <= mistake_index)
    target = (step_index == mistake_index)[is_at_risk]
    at_risk = steps[is_at_risk]
    columns: list[dict[str, Any]] = []
    design: list[Floats] = []
    left_out_reasons: dict[str, str] = {}
    for name in names:
        values = (
            at_risk[name].to_numpy(dtype=float)
            if name in at_risk
            else np.full(len(at_risk), np.nan)
        )
        is_defined = np.isfinite(values)
        kinds = [_kind(values[is_defined])] if is_defined.any() else []
        if kinds and (~is_defined).mean() >= MIN_MISSING_SHARE:
            kinds.append("missing")
        n_columns = len(columns)
        for kind in kinds:
            column = hazard_column(values, kind)
            mean, sd = float(np.nanmean(column)), float(np.nanstd(column))
            if sd > 1e-9:
                columns.append({"feature": name, "kind": kind, "mean": mean, "sd": sd})
                design.append(standardise(column, mean, sd))
        if len(columns) == n_columns:
            left_out_reasons[name] = "does not vary" if kinds else "is nowhere defined"
    if not columns:
        raise NotCalibrated(f"none of the features {', '.join(names)} varies among the steps")
    domains = at_risk["domain"].to_numpy()
    domain_names = sorted({name for name in domains if isinstance(name, str)})
    shares = [float(np.mean(domains == name)) for name in domain_names]
    has_domains = len(domain_names) > 1
    if has_domains:
        for name, share in zip(domain_names, shares, strict=True):
            design.append(((domains == name) - share) / _share_sd(share))
    regression = LogisticRegression(C=1 / penalty, solver="newton-cholesky", max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regression.fit(np.column_stack(design), target)
    weights = regression.coef_[0]
    for description, weight in zip(columns, weights, strict=False):
        description["weight"] = float(weight)
    shifts: dict[str, float] = {}
    if has_domains:
        scaled = [w / _share_sd(s) for w, s in zip(weights[len(columns) :], shares, strict=True)]
        mean_shift = float(np.dot(scaled, shares))
        shifts = {name: float(w) - mean_shift for name, w in zip(domain_names, scaled, strict=True)}
    return HazardModel(
        {
            "method": HAZARD_METHOD,
            "penalty": penalty,
            "columns": columns,
            "intercept": float(regression.intercept_[0]),
            "domains": shifts,
            "threshold": 0.0,
            "domain_thresholds": {},
            "n": len(marked),
            "n_mistaken": int((marked != NO_MISTAKE).sum()),
            "n_steps": int(is_at_risk.sum()),
            "left_out": left_out_reasons,
        }
    )


def _choose_thresholds(
    odds: Floats, likeliest_steps: Integers, marked: Integers, domains: NDArray[Any]
) -> dict[str, Any]:
    """Return the threshold over all chains, and that of each domain with chains enough."""
    domain_thresholds = {}
    for name in sorted({name for name in domains if isinstance(name, str)}):
        in_domain = domains == name
        n_sound = int((marked[in_domain] == NO_MISTAKE).sum())
        if min(n_sound, int(in_domain.sum()) - n_sound) >= MIN_DOMAIN_CHAINS:
            domain_thresholds[name] = _best_threshold(
                odds[in_domain], likeliest_steps[in_domain], marked[in_domain]
            )
    return {
        "threshold": _best_threshold(odds, likeliest_steps, marked),
        "domain_thresholds": domain_thresholds,
    }


def _best_threshold(odds: Floats, likeliest_steps: Integers, marked: Integers) -> float:
    """Return the odds above which naming the likeliest step gives the best harmonic mean.

    Where chains of one kind are missing there is nothing to balance: even odds.
    """
    if len(set(marked == NO_MISTAKE)) < 2:
        return 1.0
    candidates = np.quantile(odds, np.linspace(0.02, 0.98, _N_THRESHOLDS))
    is_named, is_sound = odds > candidates[:, None], marked == NO_MISTAKE
    exact = (is_named & (likeliest_steps == marked))[:, ~is_sound].mean(axis=1)
    none_right = (~is_named)[:, is_sound].mean(axis=1)
    values = 2 * exact * none_right / np.maximum(exact + none_right, 1e-12)
    padded = np.pad(values, _SMOOTHING // 2, mode="edge")
    means = np.convolve(padded, np.full(_SMOOTHING, 1 / _SMOOTHING), mode="valid")
    return float(candidates[int(np.argmax(means))])


def _log_likelihood(predicted: StepProbabilities, marked: Integers) -> float:
    """Return the log probability in nats of the marked first mistakes, or of none."""
    starts = chain_starts(predicted.steps)
    first = predicted.steps["first"].to_numpy()
    is_sound = marked == NO_MISTAKE
    probabilities = np.where(is_sound, predicted.sound, first[starts + np.maximum(marked, 0)])
    return float(np.log(np.maximum(probabilities, 1e-12)).sum())


def _select_chains(steps: pd.DataFrame, is_selected: NDArray[np.bool_]) -> pd.DataFrame:
    """Return the rows of the selected chains."""
    lengths = np.diff(np.r_[chain_starts(steps), len(steps)])
    return steps[np.repeat(is_selected, lengths)]


def _kind(values: Floats) -> str:
    """Return how a feature enters: a count by its logarithm."""
    return "log" if values.min() >= 0 and values.max() > 1 else "as_is"


def _share_sd(share: float) -> float:
    return float(np.sqrt(share * (1 - share)))
