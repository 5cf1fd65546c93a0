"""A map of its own for each domain, where it predicts that domain's labels better than the map over all does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.calibrator import Calibrator, Folds, NotCalibrated, select_calibrator
from cotlab.reliability.composite import Floats
from cotlab.review.release.fit_report import interval_json, trial_report
from cotlab.stats.calibration_intervals import measure_difference, measure_interval

FEW = "the map over all domains: "


def domain_maps(
    labels: pd.DataFrame,
    scores: Floats,
    y: np.ndarray[Any, Any],
    over_all: Floats,
    *,
    method: str,
    seed: int,
    folds: Folds | None = None,
    by_fold: Sequence[Floats] | None = None,
) -> tuple[dict[str, Calibrator], dict[str, Any]]:
    """Fit a map for each domain, and keep those that are better than the map over all on the same labels.

    Parameters
    ----------
    told : DataFrame (n rows)
        Labelled items, with ``domain`` and ``question``.
    scores, y : arrays (n,)
        What is mapped, and whether each is acceptable.
    over_all : array (n,) in [0, 1]
        What the map over all predicts of each label, out of fold.
    method, seed
        As ``choose``.
    folds, by_fold : optional
        As ``choose`` of all labels: where weights were tuned fold by fold.

    Returns
    -------
    tuple
        The maps that are used, by domain; and what is told of each domain: ``n, n_positive, used``
        ("own" or "all"), ``why, chosen, methods`` (``trial_report``), and the out-of-fold Brier
        scores on this domain's labels of its ``own`` map, of the one over ``all``, and their
        ``difference`` (own − all, so below 0 where its own is better), each with an interval over
        questions, paired for the difference; None where the domain has too few labels for a map.
        Its own map is used only where the whole interval lies below 0: a domain has fewer labels
        than all have, so a map of its own has to show that it is worth them.
    """
    maps: dict[str, Calibrator] = {}
    report: dict[str, Any] = {}
    for name, rows in labels.reset_index(drop=True).groupby("domain").groups.items():
        at = np.asarray(rows, dtype=int)
        if not str(name):
            continue
        questions = labels["question"].iloc[at].tolist()
        of_all = interval_json(measure_interval("brier", over_all[at], y[at], questions, seed=seed))
        base = {
            "n": len(at),
            "n_positive": int(y[at].sum()),
            "all": of_all,
            "own": None,
            "difference": None,
        }
        which = within = None
        if folds is not None and by_fold is not None:
            used_folds, which = np.unique(folds[at], return_inverse=True)
            within = [by_fold[fold][at] for fold in used_folds]
        try:
            if which is not None and len(set(which)) < 2:
                raise NotCalibrated("its labels lie in one fold")
            choice = select_calibrator(
                scores[at],
                y[at],
                questions,
                method=method,
                seed=seed,
                folds=which,
                fold_scores=within,
            )
        except NotCalibrated as refused:
            report[str(name)] = {
                **base,
                "used": "all",
                "why": f"{FEW}{refused}",
                "chosen": None,
                "methods": [],
            }
            continue
        best = choice.chosen
        assert (
            best.calibrator is not None and best.predicted is not None and best.measured is not None
        )
        improvement = measure_difference(
            "brier", over_all[at], best.predicted, y[at], questions, seed=seed
        )
        better = improvement.hi is not None and improvement.hi < 0
        if better:
            maps[str(name)] = best.calibrator
        report[str(name)] = {
            **base,
            "own": interval_json(best.measured.brier),
            "difference": interval_json(improvement),
            "used": "own" if better else "all",
            "chosen": best.method,
            "methods": [trial_report(trial) for trial in choice.trials],
            "why": (
                choice.reason
                if better
                else f"{FEW}its own, {best.method}, is not better beyond chance"
            ),
        }
    return maps, report
