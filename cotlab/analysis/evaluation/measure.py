"""Which signals tell on labelled chains: every stored metric against people's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cotlab.analysis.evaluation.results import (
    SHORT_NAMES,
    Evaluation,
    LocationResult,
    RunDifference,
    SignalResult,
    TargetResult,
)
from cotlab.analysis.evaluation.signal_results import (
    TargetChains,
    domain_of,
    evaluate_signal,
    load_target,
)
from cotlab.analysis.evaluation.signals import (
    EvaluationData,
    LabelledChains,
    Signal,
    load_labelled_chains,
)
from cotlab.core.errors import CotlabError, UnknownName
from cotlab.review.labelling.truth import TARGETS
from cotlab.stats.ranking import (
    NO_MISTAKE,
    auroc_difference,
    location_difference,
    location_measures,
)
from cotlab.store.database import Store

TARGET_BY_SHORT_NAME: Mapping[str, str] = {short: name for name, short in SHORT_NAMES.items()}


class NoLabelledChains(CotlabError):
    """The runs have no chain with a label of the target."""


def evaluate_runs(
    store: Store,
    runs: Sequence[str],
    *,
    targets: Sequence[str] = tuple(TARGETS),
    metrics: Sequence[str] = (),
    seed: int = 0,
) -> Evaluation:
    """Compare every stored metric of runs with the labels of their chains.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids, at least one.
    targets : sequence of str
        Names of ``TARGETS`` or T1, T2.
    metrics : sequence of str
        Only signals whose name starts with one of these; the baselines stay. All by default.
    seed : int
        Of the bootstrap and of the baseline ``random``.

    Returns
    -------
    Evaluation

    Raises
    ------
    UnknownName
        If there is no such run, target or metric.
    NoLabelledChains
        If no chain of the runs has labels of both kinds.
    """
    names = target_names(targets)
    data = EvaluationData(load_labelled_chains(store, runs, seed=seed), seed)
    return evaluate_chains(data, targets=names, metrics=metrics)


def target_names(targets: Sequence[str]) -> list[str]:
    """Return the names of targets that may be given by their short names; UnknownName if not."""
    names = [TARGET_BY_SHORT_NAME.get(name, name) for name in targets]
    for name in names:
        if name not in TARGETS:
            raise UnknownName("target", name, (*TARGETS, *TARGET_BY_SHORT_NAME))
    return list(dict.fromkeys(names))


def evaluate_chains(
    data: EvaluationData,
    *,
    targets: Sequence[str],
    metrics: Sequence[str] = (),
    with_details: bool = True,
) -> Evaluation:
    """Evaluate the signals of labelled chains.

    Parameters
    ----------
    data : EvaluationData
    targets : sequence of str
        Names of ``TARGETS``.
    metrics : sequence of str
        As ``evaluate_runs``; fitted signals stay.
    with_details : bool
        Whether each signal has all its measures. Without them it has its AUROC, differences and
        verdict, which are the same; ``signal_details`` has the others of one signal.

    Returns
    -------
    Evaluation

    Raises
    ------
    UnknownName, NoLabelledChains
        As ``evaluate_runs``.
    """
    labelled = data.labelled
    signals = _chosen_signals(labelled.signals, metrics)
    results, left_out = [], {}
    for name in targets:
        values = load_target(labelled.chains, name)
        counts = values.dropna().astype(bool).value_counts()
        if len(counts) == 2:
            fitted = data.fitted_signals.get(name, ())
            results.append(_evaluate_target(data, name, values, [*signals, *fitted], with_details))
        elif len(counts):
            kind = "true" if counts.index[0] else "false"
            left_out[name] = f"it is {kind} of all {counts.iloc[0]} labelled chains"
        else:
            left_out[name] = "no chain has this label"
    if not results:
        raise NoLabelledChains(_missing_labels_message(labelled, left_out))
    notes = (*data.notes, *_notes(labelled, signals))
    return Evaluation(labelled.runs, len(labelled.chains), tuple(results), left_out, notes)


def signal_details(data: EvaluationData, target: str, name: str) -> SignalResult:
    """Return all measures of one signal, as ``evaluate_chains`` has them.

    Parameters
    ----------
    data : EvaluationData
    target : str
        One that has labels of both kinds.
    name : str
        Name of a signal that is no location.

    Returns
    -------
    SignalResult

    Raises
    ------
    UnknownName
        If there is no such signal.
    """
    signals = [*data.labelled.signals, *data.fitted_signals.get(target, ())]
    by_name = {signal.name: signal for signal in signals if not signal.is_location}
    if name not in by_name:
        raise UnknownName("signal", name, tuple(by_name))
    values = load_target(data.labelled.chains, target)
    chains = TargetChains.select(data.labelled, values, signals, seed=data.seed)
    return evaluate_signal(chains, by_name[name], with_details=True)


def _chosen_signals(signals: Sequence[Signal], metrics: Sequence[str]) -> list[Signal]:
    for metric in metrics:
        if not any(signal.name.startswith(metric) for signal in signals):
            raise UnknownName("metric", metric, tuple(signal.name for signal in signals))
    return [
        signal
        for signal in signals
        if signal.is_baseline or not metrics or signal.name.startswith(tuple(metrics))
    ]


def _evaluate_target(
    data: EvaluationData,
    name: str,
    values: pd.Series,
    signals: Sequence[Signal],
    with_details: bool,
) -> TargetResult:
    chains = TargetChains.select(data.labelled, values, signals, seed=data.seed)
    results = [
        evaluate_signal(chains, signal, with_details=with_details)
        for signal in signals
        if not signal.is_location
    ]
    others = [result for result in results if not result.is_baseline]
    others.sort(key=lambda result: -(result.auroc.point or 0.0))
    judged = chains.table[chains.table["steps_judged"].astype(bool)]
    return TargetResult(
        name,
        TARGETS[name][0],
        len(chains.table),
        int(chains.is_false.sum()),
        int(chains.table["cluster"].nunique()),
        (*(result for result in results if result.is_baseline), *others),
        _evaluate_locations(judged, [s for s in signals if s.is_location], data.seed),
        run_differences(data.labelled, chains, signals),
    )


def _evaluate_locations(
    judged: pd.DataFrame, signals: Sequence[Signal], seed: int
) -> tuple[LocationResult, ...]:
    """Return the results of signals that name a step of some judged chain."""
    true_steps = judged["first_wrong_step"].fillna(NO_MISTAKE).astype(int)
    clusters, domains = judged["cluster"], domain_of(judged)
    values_by_signal = {signal.name: signal.values[judged.index] for signal in signals}
    baselines = [signal.name for signal in signals if signal.is_baseline]
    results = []
    for signal in signals:
        named = values_by_signal[signal.name].dropna().astype(int)
        rows = named.index
        if rows.empty:
            continue
        differences = {}
        for baseline in baselines:
            shared = rows.intersection(values_by_signal[baseline].dropna().index)
            if baseline != signal.name and len(shared):
                differences[baseline] = location_difference(
                    values_by_signal[baseline][shared].astype(int),
                    named[shared],
                    true_steps[shared],
                    clusters[shared].tolist(),
                    domains[shared].tolist(),
                    seed=seed,
                )
        measures = location_measures(
            named, true_steps[rows], clusters[rows].tolist(), domains[rows].tolist(), seed=seed
        )
        n_undefined = len(judged) - len(rows)
        results.append(
            LocationResult(
                signal.name,
                signal.what,
                measures,
                len(rows),
                n_undefined,
                signal.is_baseline,
                differences,
            )
        )
    return tuple(results)


def _notes(labelled: LabelledChains, signals: Sequence[Signal]) -> tuple[str, ...]:
    notes = []
    if labelled.model_chain_runs:
        notes.append(
            f"{', '.join(labelled.model_chain_runs)}: the chains are the model's own, of which"
            " labels that were imported with the suite say nothing."
        )
    n_tried = sum(not signal.is_baseline and not signal.is_location for signal in signals)
    if n_tried >= 20:
        notes.append(
            f"{n_tried} signals were tried: by chance about {round(n_tried * 0.025)} of them have"
            " an interval above a half. Measure what tells on other chains before it is used."
        )
    return tuple(notes)


def _missing_labels_message(labelled: LabelledChains, left_out: Mapping[str, str]) -> str:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
    return (
        f"The {len(labelled.chains)} chains of {', '.join(labelled.runs)} have no labels to compare"
        f" metrics with ({reasons}). Label them on the page Label, import labels with `cotlab"
        " labels import`, or run a suite that was imported with its labels."
    )


def run_differences(
    labelled: LabelledChains, chains: TargetChains, signals: Sequence[Signal]
) -> tuple[RunDifference, ...]:
    """Return each signal's difference in AUROC between a run and the first that shares questions.

    Parameters
    ----------
    labelled : LabelledChains
    chains : TargetChains
        Those of them that have a label of the target.
    signals : sequence of Signal
        Those that are evaluated; others are left out.

    Returns
    -------
    tuple of RunDifference
        Runs on the same chains are compared on those that both have a value of; runs on chains of
        their own on the questions of which both have labelled chains. Without signals that both
        runs measured alike, and without those that rank one class only.
    """
    by_run = labelled.signals_by_run
    metrics = tuple({signal.name.partition(" ")[0].rstrip(",") for signal in signals})
    differences: list[RunDifference] = []
    for index, second in enumerate(labelled.runs):
        for name, signal in sorted(by_run.get(second, {}).items()):
            if signal.is_location or not name.startswith(metrics):
                continue
            for first in labelled.runs[:index]:
                if name not in by_run.get(first, {}):
                    continue
                difference = _difference(chains, by_run[first][name], signal, (first, second, name))
                if difference is not None:
                    differences.append(difference)
                    break
    return tuple(differences)


def _difference(
    chains: TargetChains, first: Signal, second: Signal, names: tuple[str, str, str]
) -> RunDifference | None:
    """Return the difference of one signal between two runs; None where they cannot be compared."""
    first_values, second_values = (
        signal.values[chains.table.index].to_numpy(dtype=float) for signal in (first, second)
    )
    first_rows, second_rows = ~np.isnan(first_values), ~np.isnan(second_values)
    shared = first_rows & second_rows
    is_same_chains = bool(shared.any())
    if is_same_chains:
        first_rows = second_rows = shared
        if np.array_equal(first_values[shared], second_values[shared]):
            return None
    else:
        questions = set(chains.groups[first_rows]) & set(chains.groups[second_rows])
        is_shared = pd.Series(chains.groups).isin(questions).to_numpy()
        first_rows, second_rows = first_rows & is_shared, second_rows & is_shared
    if any(len(set(chains.is_false[rows])) < 2 for rows in (first_rows, second_rows)):
        return None
    first_chains, second_chains = chains.resampled(first_rows), chains.resampled(second_rows)
    first_scores, second_scores = -first_values[first_rows], -second_values[second_rows]
    first_aurocs = first_chains.aurocs(first_scores)
    if not first.has_direction and (first_chains.interval(first_aurocs).point or 0.0) < 0.5:
        # the card claims no direction: the first run's labels give it to both
        first_scores, second_scores = -first_scores, -second_scores
        first_aurocs = first_chains.aurocs(first_scores)
    second_aurocs = second_chains.aurocs(second_scores)
    difference = (
        first_chains.difference(first_aurocs, second_aurocs)
        if is_same_chains
        else auroc_difference(first_chains, first_scores, second_chains, second_scores)
    )
    run, other_run, name = names
    return RunDifference(
        name,
        run,
        other_run,
        is_same_chains,
        first_chains.interval(first_aurocs),
        second_chains.interval(second_aurocs),
        difference,
    )
