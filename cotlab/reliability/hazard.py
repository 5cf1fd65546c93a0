"""The probability of each step of being the first wrong one: a discrete-time hazard, with ridge.

It is fitted on chains whose first wrong step people marked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cotlab.reliability.combination import linear_logit, require_columns
from cotlab.reliability.combine import MAX_STANDARD_DEVIATIONS, fit_columns
from cotlab.reliability.maps import (
    Floats,
    Folds,
    NotCalibrated,
    assign_folds,
    missing_labels_reason,
    sigmoid,
    single_blas_thread,
)
from cotlab.stats.ranking import NO_MISTAKE

HAZARD_METHOD = "hazard"
DOMAIN = "domain"
PENALTIES = (3.0, 10.0, 30.0, 100.0)
"""Strengths of the ridge on standardised columns that cross-validation chooses between."""
MIN_DOMAIN_CHAINS = 30
"""Chains with a mistake, and without one, that a domain needs for a threshold of its own."""
_N_THRESHOLDS, _SMOOTHING = 97, 7
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepProbabilities:
    """What a hazard model says of the steps of some chains."""

    steps: pd.DataFrame
    """``chain``, ``hazard`` (probability that the step is wrong where none before is) and ``first``
    (probability that it is the first wrong one), a row each step, in the order given."""
    sound: Floats
    """Probability (n_chains,) that no step is wrong, in the order of the chains."""
    likeliest_steps: Integers
    """Step (n_chains,), from 0, of the largest ``first``."""
    odds: Floats
    """That largest ``first`` / ``sound``, by chain."""
    located: Integers
    """The step (n_chains,) that is named as the first wrong one; ``NO_MISTAKE`` where none is."""


@dataclass(frozen=True, slots=True)
class HazardModel:
    """A fitted hazard of the first mistake, and the rule that names a step or none."""

    params: Mapping[str, Any]
    """``method`` ("hazard"), what ``Combination.params`` has of a fit (a domain is a column),
    ``threshold`` (odds above which a step is named) and ``domain_thresholds`` (name → its own),
    ``n, n_mistaken`` (chains), ``n_steps`` (steps at risk). JSON values."""

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> HazardModel:
        """Return the model that ``params`` describe; ValueError where they describe none.

        Older versions have the shifts of domains beside the columns.
        """
        required_keys = {"columns", "intercept", "threshold", "domain_thresholds"}
        if params.get("method") != HAZARD_METHOD or not required_keys <= set(params):
            raise ValueError(f"these are no parameters of a hazard: {sorted(params)}")
        shifts = params.get("domains", {})
        columns = [
            {"feature": DOMAIN, "kind": "domain", "domain": name, "mean": 0, "sd": 1, "weight": w}
            for name, w in shifts.items()
        ]
        for column in params["columns"]:
            kind = "gap" if column["kind"] == "missing" else column["kind"]
            columns.append({**column, "kind": kind})
        added = {"clip": MAX_STANDARD_DEVIATIONS, "features": {}}
        return cls({**added, **params, "columns": columns, "domains": {}})

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the features that it reads."""
        names = (column["feature"] for column in self.params["columns"])
        return tuple(dict.fromkeys(name for name in names if name != DOMAIN))

    def predict(self, steps: pd.DataFrame) -> StepProbabilities:
        """Return the probabilities of each step and chain, and the step that is named.

        Parameters
        ----------
        steps : DataFrame
            A row each step, those of a chain together and in order: ``chain`` (any id), ``domain``
            (str, None where unknown) and ``features``, NaN where there is no value.

        Returns
        -------
        StepProbabilities

        Raises
        ------
        ValueError
            If a column is missing.
        """
        require_columns(steps, ("chain", DOMAIN, *self.features), "the hazard")
        starts, domains = chain_starts(steps), steps[DOMAIN].to_numpy()
        hazard = np.clip(sigmoid(linear_logit(self.params, steps)), 1e-9, 1 - 1e-9)
        first, sound, likeliest_steps = _first_mistakes(hazard, starts)
        odds = np.maximum.reduceat(first, starts) / sound if len(starts) else np.zeros(0)
        domain_thresholds = self.params["domain_thresholds"]
        thresholds = np.array(
            [domain_thresholds.get(domains[start], self.params["threshold"]) for start in starts]
        )
        return StepProbabilities(
            pd.DataFrame({"chain": steps["chain"].to_numpy(), "hazard": hazard, "first": first}),
            sound,
            likeliest_steps,
            odds,
            np.where(odds > thresholds, likeliest_steps, NO_MISTAKE),
        )


def _first_mistakes(hazard: Floats, starts: Integers) -> tuple[Floats, Floats, Integers]:
    """Return by step the probability of the first mistake; by chain that of none, and the step."""
    if not len(starts):
        return np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.r_[starts, len(hazard)])
    log_survival = np.log1p(-hazard)
    totals = np.add.reduceat(log_survival, starts)
    before_chain = np.repeat(np.cumsum(totals) - totals, lengths)
    survival_before = np.exp(np.cumsum(log_survival) - log_survival - before_chain)
    first = survival_before * hazard
    likeliest_steps = np.array(
        [int(np.argmax(first[a : a + n])) for a, n in zip(starts, lengths, strict=True)]
    )
    return first, np.exp(totals), likeliest_steps


def chain_starts(steps: pd.DataFrame) -> Integers:
    """Return the row at which each chain starts."""
    chains = steps["chain"].to_numpy()
    if not len(chains):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.r_[True, chains[1:] != chains[:-1]]).astype(np.int64)


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
    steps, first_wrong, groups, names, seed
        As ``fit_hazard``; the chains of a question are held out together.

    Returns
    -------
    HazardFit

    Raises
    ------
    NotCalibrated, ValueError
        As ``fit_hazard``.
    """
    marked = np.asarray(first_wrong, dtype=np.int64)
    model = fit_hazard(steps, marked, groups, names=names, seed=seed)
    folds = assign_folds(marked == NO_MISTAKE, groups, seed=seed)
    located, sound = np.full(len(marked), NO_MISTAKE), np.full(len(marked), np.nan)
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        fitted = _fit_without(is_test, steps, marked, groups, names, seed + 1)
        predicted = fitted.predict(_select_chains(steps, is_test))
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
        As ``fit_hazard``; every chain has a domain, and there are two at least.

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
    domains = steps[DOMAIN].to_numpy()[chain_starts(steps)]
    located = np.full(len(marked), NO_MISTAKE)
    for name in dict.fromkeys(domains):
        is_test = domains == name
        if refusal_reason := missing_labels_reason("any", marked[~is_test] == NO_MISTAKE):
            raise NotCalibrated(f"without the domain {name}: {refusal_reason}")
        fitted = _fit_without(is_test, steps, marked, groups, names, seed)
        located[is_test] = fitted.predict(_select_chains(steps, is_test)).located
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
        As ``HazardModel.predict``, with the columns ``names``.
    first_wrong : array (n_chains,) of int
        The first wrong step of each chain from 0, ``NO_MISTAKE`` where none is wrong; in the order
        in which the chains stand in ``steps``.
    groups : sequence (n_chains,)
        The question of each chain.
    names : sequence of str
        Features; those that the table lacks, or that do not vary in it, are left out.
    seed : int
        Of the folds.

    Returns
    -------
    HazardModel

    Raises
    ------
    NotCalibrated
        If there are too few labelled chains (in all or of one kind), or no feature varies.
    ValueError
        If the lengths differ, or a first wrong step is no step of its chain.

    Notes
    -----
    The logistic regression of ``cotlab.reliability.combine`` of "the first mistake is here" on the
    steps up to it, all steps of a chain without one. A domain shifts the logit.

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
    return _fit_without(np.zeros(len(marked), dtype=bool), steps, marked, groups, names, seed)


def _fit_without(
    is_left_out: NDArray[np.bool_],
    steps: pd.DataFrame,
    marked: Integers,
    groups: Sequence[Hashable],
    names: Sequence[str],
    seed: int,
) -> HazardModel:
    """Return a fit on the other chains: its penalty, and its rule, chosen out of fold."""
    steps, marked = _select_chains(steps, ~is_left_out), marked[~is_left_out]
    groups = [groups[int(k)] for k in np.flatnonzero(~is_left_out)]
    folds = assign_folds(marked == NO_MISTAKE, groups, seed=seed)
    starts = chain_starts(steps)
    chain_of_step = np.repeat(np.arange(len(marked)), np.diff(np.r_[starts, len(steps)]))
    step_index, mistake_index = np.arange(len(steps)) - starts[chain_of_step], marked[chain_of_step]
    is_at_risk = (mistake_index == NO_MISTAKE) | (step_index <= mistake_index)
    is_first, step_folds = step_index == mistake_index, folds[chain_of_step]

    def fit(is_used: NDArray[np.bool_], penalties: Sequence[float], folds: Folds | None) -> Any:
        target = is_first[is_used].astype(float)
        return fit_columns(steps[is_used], target, (*names, DOMAIN), penalties, folds)

    params = fit(is_at_risk, PENALTIES, step_folds[is_at_risk]) | {
        "method": HAZARD_METHOD,
        "n": len(marked),
        "n_mistaken": int((marked != NO_MISTAKE).sum()),
        "n_steps": int(is_at_risk.sum()),
        "threshold": 0.0,
        "domain_thresholds": {},
    }
    odds, likeliest_steps = np.zeros(len(marked)), np.zeros_like(marked)
    for fold in range(int(folds.max()) + 1):
        is_test = folds == fold
        held_out = fit(is_at_risk & (step_folds != fold), [params["penalty"]], None)
        predicted = HazardModel({**params, **held_out}).predict(_select_chains(steps, is_test))
        odds[is_test], likeliest_steps[is_test] = predicted.odds, predicted.likeliest_steps
    domains = steps[DOMAIN].to_numpy()[starts]
    return HazardModel({**params, **_choose_thresholds(odds, likeliest_steps, marked, domains)})


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
    """Return the odds above which naming the likeliest step gives the best harmonic mean."""
    candidates = np.quantile(odds, np.linspace(0.02, 0.98, _N_THRESHOLDS))
    is_named, is_sound = odds > candidates[:, None], marked == NO_MISTAKE
    exact = (is_named & (likeliest_steps == marked))[:, ~is_sound].mean(axis=1)
    none_right = (~is_named)[:, is_sound].mean(axis=1)
    values = 2 * exact * none_right / np.maximum(exact + none_right, 1e-12)
    padded = np.pad(values, _SMOOTHING // 2, mode="edge")
    means = np.convolve(padded, np.full(_SMOOTHING, 1 / _SMOOTHING), mode="valid")
    return float(candidates[int(np.argmax(means))])


def _select_chains(steps: pd.DataFrame, is_selected: NDArray[np.bool_]) -> pd.DataFrame:
    """Return the rows of the selected chains."""
    lengths = np.diff(np.r_[chain_starts(steps), len(steps)])
    return steps[np.repeat(is_selected, lengths)]
