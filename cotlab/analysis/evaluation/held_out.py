"""Fits on some runs as signals of others: combined features, trivial baselines, step hazard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.analysis.evaluation.measure import evaluate_chains, target_names
from cotlab.analysis.evaluation.results import Evaluation
from cotlab.analysis.evaluation.signal_results import domain_of
from cotlab.analysis.evaluation.signals import (
    EvaluationData,
    LabelledChains,
    Signal,
    load_labelled_chains,
)
from cotlab.core.errors import ConfigError
from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.combine import class_bound_features, fit_combination
from cotlab.reliability.hazard import fit_hazard
from cotlab.reliability.maps import NotCalibrated
from cotlab.review.labelling.truth import TARGETS, target_values
from cotlab.review.release.features import (
    ANSWER_FEATURE,
    COMBINED_FEATURES,
    LENGTH_FEATURES,
    feature_table,
    measured_features,
)
from cotlab.review.release.joined_runs import first_known_values
from cotlab.review.release.step_table import ANSWER_FEATURE as WRONG_ANSWER_FEATURE
from cotlab.review.release.step_table import JudgedChains, load_judged_chains
from cotlab.store.database import Store
from cotlab.text.chain_features.steps import BASELINE_FEATURES, STEP_FEATURES

FITTED_BASELINES: Mapping[str, tuple[str, ...]] = {
    "length only": LENGTH_FEATURES,
    "answer only": (ANSWER_FEATURE,),
    "length + answer": (*LENGTH_FEATURES, ANSWER_FEATURE),
}
"""Fits on what is trivial to know → their features."""
COMBINED, COMBINED_TEXT, COMBINED_UNSEEN = (
    "combined",
    "combined without answer",
    "combined, domain unseen",
)
HAZARD, HAZARD_ANSWER, HAZARD_BASELINE = "hazard", "hazard with answer", "position and length only"
_FIT_WHAT = "probability, by a fit on the other runs' labels, that the target is true"


@dataclass(frozen=True, slots=True)
class _Features:
    """The features of labelled chains."""

    labelled: LabelledChains
    table: pd.DataFrame
    """A row each chain: every measured feature and ``DOMAIN_FEATURE``."""


def evaluate_fit(
    store: Store,
    fit_runs: Sequence[str],
    test_runs: Sequence[str],
    *,
    targets: Sequence[str] = tuple(TARGETS),
    metrics: Sequence[str] = (),
    domain_intercepts: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Fit combined features and the step hazard on some runs, and evaluate them on others alone.

    Parameters
    ----------
    store : Store
    fit_runs, test_runs : sequence of str
        Run ids. Chains of a question of the test runs are not fitted on.
    targets : sequence of str
        As ``evaluate_runs``.
    metrics : sequence of str
        As ``evaluate_runs``; the fits stay.
    domain_intercepts : bool
        Whether each fit, also of a baseline, gives each domain an intercept.
    seed : int
        Of folds, resampling and the baseline ``random``.

    Returns
    -------
    Evaluation
        Of the test runs, with these signals besides: the baselines of ``FITTED_BASELINES``,
        ``combined`` (all measured features), ``combined without answer``, ``combined, domain
        unseen`` (each domain by a fit on the other domains), ``hazard`` and ``hazard with answer``
        (the probability that no step is wrong; as a location the step that they name first) and
        ``position and length only``, the hazard's baseline. ``notes`` has the reason of a fit that
        is not there.

    Raises
    ------
    UnknownName, NoLabelledChains
        As ``evaluate_runs``.
    ConfigError
        If all chains to fit on are of questions of the test runs.
    """
    data = load_fitted_data(
        store,
        fit_runs,
        test_runs,
        targets=target_names(targets),
        domain_intercepts=domain_intercepts,
        seed=seed,
    )
    return evaluate_chains(data, targets=target_names(targets), metrics=metrics)


def load_fitted_data(
    store: Store,
    fit_runs: Sequence[str],
    test_runs: Sequence[str],
    *,
    targets: Sequence[str],
    domain_intercepts: bool = False,
    seed: int = 0,
) -> EvaluationData:
    """Return the chains of the test runs with the signals that ``evaluate_fit`` evaluates.

    As ``evaluate_fit``, whose parameters and errors it has.
    """
    fit_side, test_side = (
        _load_features(store, load_labelled_chains(store, runs, seed=seed))
        for runs in (fit_runs, test_runs)
    )
    test_questions = set(test_side.labelled.chains["cluster"])
    is_unseen = ~fit_side.labelled.chains["cluster"].isin(test_questions)
    if not is_unseen.any():
        raise ConfigError(
            "Every chain of the runs to fit on is of a question of the test runs: nothing would be"
            " held out. Give runs on other questions."
        )
    notes = [
        f"Fitted on {', '.join(fit_side.labelled.runs)}; every number is of"
        f" {', '.join(test_side.labelled.runs)} alone."
    ]
    if n_shared := int((~is_unseen).sum()):
        notes.append(f"{n_shared} chains of questions of the test runs were not fitted on.")
    hazard_signals = _hazard_signals(store, fit_side, test_side, test_questions, seed, notes)
    fitted_signals = {
        name: [
            *_combined_signals(
                fit_side, test_side, name, is_unseen.to_numpy(), domain_intercepts, seed, notes
            ),
            *hazard_signals,
        ]
        for name in targets
    }
    return EvaluationData(test_side.labelled, seed, fitted_signals, tuple(dict.fromkeys(notes)))


def _load_features(store: Store, labelled: LabelledChains) -> _Features:
    """Return the measured features of chains; runs on one suite add theirs to the same chain."""
    table = feature_table(store, labelled.runs)
    rows = [labelled.row_by_item[key] for key in zip(table["run"], table["item_id"], strict=True)]
    names = [name for name in measured_features(table) if name != ANSWER_FEATURE]
    joined = first_known_values(table[names], rows).reindex(labelled.chains.index).astype(float)
    baselines = {signal.name: signal.values for signal in labelled.signals if signal.is_baseline}
    joined[ANSWER_FEATURE] = baselines[ANSWER_FEATURE]
    length, steps = LENGTH_FEATURES
    if length not in joined:
        joined[length] = -baselines["length"]
    if steps not in joined:
        joined[steps] = labelled.chains["n_steps"].astype(float)
    joined[DOMAIN_FEATURE] = domain_of(labelled.chains)
    return _Features(labelled, joined)


def _combined_signals(
    fit_side: _Features,
    test_side: _Features,
    target: str,
    is_unseen: NDArray[np.bool_],
    domain_intercepts: bool,
    seed: int,
    notes: list[str],
) -> list[Signal]:
    """Return the baselines and the combined fits of one target."""
    values = target_values(fit_side.labelled.chains, target)
    rows = np.flatnonzero(is_unseen & values.notna().to_numpy())
    y = values.iloc[rows].astype(bool).to_numpy()
    groups = fit_side.labelled.chains["cluster"].iloc[rows].tolist()
    features = fit_side.table.iloc[rows]
    test_values = target_values(test_side.labelled.chains, target).dropna().astype(bool)
    class_bound = class_bound_features(features, y, COMBINED_FEATURES) | class_bound_features(
        test_side.table.loc[test_values.index], test_values, COMBINED_FEATURES
    )
    features = features.assign(**dict.fromkeys(class_bound, np.nan))
    notes += [
        f"{name} was left out of the fits of {target}, because it {why}."
        for name, why in class_bound.items()
    ]
    domain_names = (DOMAIN_FEATURE,) if domain_intercepts else ()
    shared = [
        name
        for name in measured_features(features)
        if name in test_side.table and test_side.table[name].notna().any()
    ]
    text_names = [name for name in shared if name != ANSWER_FEATURE]

    def fitted(name: str, names: Sequence[str], *, is_baseline: bool = False) -> list[Signal]:
        try:
            fit = fit_combination(features, y, groups, names=(*names, *domain_names), seed=seed)
        except NotCalibrated as error:
            notes.append(f"{name} of {target}: not fitted, {error}.")
            return []
        predictions = pd.Series(fit.predict(test_side.table), index=test_side.table.index)
        return [_probability(name, names, predictions, is_baseline=is_baseline)]

    is_answer_known = features[ANSWER_FEATURE].nunique() > 1
    signals = []
    for name, names in FITTED_BASELINES.items():
        if is_answer_known or ANSWER_FEATURE not in names:
            signals += fitted(name, names, is_baseline=True)
    signals += fitted(COMBINED, shared if is_answer_known else text_names)
    if is_answer_known:
        signals += fitted(COMBINED_TEXT, text_names)
    domains = test_side.table[DOMAIN_FEATURE]
    fit_domains = features[DOMAIN_FEATURE].to_numpy()
    unseen = pd.Series(np.nan, index=test_side.table.index)
    for domain in sorted(set(domains) & set(fit_domains)) if len(set(fit_domains)) > 1 else ():
        is_other = fit_domains != domain
        try:
            fit = fit_combination(
                features[is_other],
                y[is_other],
                [group for group, is_chosen in zip(groups, is_other, strict=True) if is_chosen],
                names=shared if is_answer_known else text_names,
                seed=seed,
            )
        except NotCalibrated as error:
            notes.append(f"{COMBINED_UNSEEN} of {target}: {domain} is not predicted, {error}.")
            continue
        is_domain = domains == domain
        unseen[is_domain] = fit.predict(test_side.table[is_domain])
    if unseen.notna().any():
        signals.append(_probability(COMBINED_UNSEEN, shared, unseen))
    return signals


def _probability(
    name: str, features: Sequence[str], values: pd.Series, *, is_baseline: bool = False
) -> Signal:
    what = f"{_FIT_WHAT}, from {len(features)} feature{'s' * (len(features) != 1)}"
    return Signal(name, what, values, is_baseline=is_baseline, is_probability=True)


def _hazard_signals(
    store: Store,
    fit_side: _Features,
    test_side: _Features,
    test_questions: set[str],
    seed: int,
    notes: list[str],
) -> list[Signal]:
    """Return the hazards that were fitted on the judged steps of the runs to fit on."""
    fit_chains = load_judged_chains(store, fit_side.labelled.runs)
    test_chains = load_judged_chains(store, test_side.labelled.runs)
    if test_chains.chains.empty:
        return []
    is_unseen = ~fit_chains.chains["cluster"].isin(test_questions).to_numpy(dtype=bool)
    steps = fit_chains.steps[is_unseen[fit_chains.steps["chain"].to_numpy(dtype=int)]]
    judged = fit_chains.chains[is_unseen]
    measured = [
        name for name in fit_chains.measured_features if name in test_chains.measured_features
    ]
    notes += [
        f"{name} was left out of the hazard, because it {why}."
        for name, why in {**fit_chains.class_bound, **test_chains.class_bound}.items()
    ]
    features = (*STEP_FEATURES, *measured)
    names_by_signal = {HAZARD_BASELINE: BASELINE_FEATURES, HAZARD: features}
    if all(side.chains["answer_correct"].notna().all() for side in (fit_chains, test_chains)):
        names_by_signal[HAZARD_ANSWER] = (*features, WRONG_ANSWER_FEATURE)
    signals = []
    for name, names in names_by_signal.items():
        try:
            model = fit_hazard(
                steps,
                judged["first_wrong"].to_numpy(dtype=np.int64),
                judged["cluster"].tolist(),
                names=names,
                seed=seed,
            )
        except NotCalibrated as error:
            notes.append(f"{name}: not fitted, {error}.")
            continue
        predicted = model.predict(test_chains.steps)
        what = f"hazard of the first wrong step, from {len(names)} features of each step"
        is_baseline = name == HAZARD_BASELINE
        sound = _by_chain(test_side.labelled, test_chains, predicted.sound)
        located = _by_chain(test_side.labelled, test_chains, predicted.located)
        signals += [
            Signal(name, what, sound, is_baseline=is_baseline, is_probability=True),
            Signal(name, what, located, is_location=True, is_baseline=is_baseline),
        ]
    return signals


def _by_chain(
    labelled: LabelledChains, judged: JudgedChains, values: NDArray[np.generic]
) -> pd.Series:
    """Return values of judged chains by row of the labelled ones."""
    by_row = pd.Series(np.nan, index=labelled.chains.index)
    keys = zip(judged.chains["run"], judged.chains["item_id"], strict=True)
    for key, value in zip(keys, values, strict=True):
        by_row[labelled.row_by_item[key]] = float(value)
    return by_row
