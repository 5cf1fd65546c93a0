"""The probability of each step of being the first wrong one: a discrete-time hazard, with ridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.reliability.maps import (
    Floats,
    sigmoid,
)
from cotlab.stats.ranking import NO_MISTAKE

HAZARD_METHOD = "hazard"
MAX_STANDARD_DEVIATIONS = 4.0
"""Distance from its mean to which a standardised column is clipped."""
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
    """``method`` ("hazard"), ``penalty``, ``columns`` (``feature, kind, mean, sd, weight``),
    ``intercept``, ``domains`` (name → shift of the logit), ``threshold`` (odds above which a step
    is named) and ``domain_thresholds`` (name → its own), ``n, n_mistaken`` (chains), ``n_steps``
    (steps at risk), ``left_out`` (feature → reason). JSON values."""

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> HazardModel:
        """Return the model that ``params`` describe; ValueError where they describe none."""
        required_keys = {"columns", "intercept", "domains", "threshold", "domain_thresholds"}
        if params.get("method") != HAZARD_METHOD or not required_keys <= set(params):
            raise ValueError(f"these are no parameters of a hazard: {sorted(params)}")
        return cls(dict(params))

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of the features that it reads."""
        return tuple(dict.fromkeys(column["feature"] for column in self.params["columns"]))

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
        missing_columns = [c for c in ("chain", "domain", *self.features) if c not in steps]
        if missing_columns:
            raise ValueError(
                f"the table lacks {', '.join(missing_columns)}, which the hazard reads"
            )
        logit = np.full(len(steps), float(self.params["intercept"]))
        shift_by_domain = self.params["domains"]
        logit += np.array([shift_by_domain.get(name, 0.0) for name in steps["domain"]])
        for column in self.params["columns"]:
            values = hazard_column(steps[column["feature"]].to_numpy(dtype=float), column["kind"])
            logit += column["weight"] * standardise(values, column["mean"], column["sd"])
        starts, domains = chain_starts(steps), steps["domain"].to_numpy()
        hazard = np.clip(sigmoid(logit), 1e-9, 1 - 1e-9)
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


def hazard_column(values: Floats, kind: str) -> Floats:
    """Return a column of the fit from a feature's values."""
    if kind == "missing":
        return (~np.isfinite(values)).astype(float)
    return np.log1p(np.maximum(values, 0.0)) if kind == "log" else values


def standardise(values: Floats, mean: float, sd: float) -> Floats:
    """Return standard deviations from the mean; 0 where there is no value."""
    z = np.where(np.isfinite(values), (values - mean) / sd, 0.0)
    return np.clip(z, -MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS)
