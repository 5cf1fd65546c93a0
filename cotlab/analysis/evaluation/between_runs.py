"""Differences of each signal between runs, on the same chains or on the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cotlab.analysis.evaluation.results import RunDifference
from cotlab.analysis.evaluation.signal_results import TargetChains
from cotlab.analysis.evaluation.signals import LabelledChains, Signal
from cotlab.stats.ranking import auroc_difference


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
