"""A map of its own for each domain, where it predicts that domain's labels better than the map over all does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.calibrator import Calibrator, Folds, NotCalibrated, choose
from cotlab.reliability.weights import Floats
from cotlab.review.release.fit_report import interval_json, trial_report
from cotlab.stats.calibration import difference, interval

FEW = "the map over all domains: "


def domain_maps(
    told: pd.DataFrame, scores: Floats, y: np.ndarray[Any, Any], over_all: Floats, *, method: str, seed: int,
    folds: Folds | None = None, by_fold: Sequence[Floats] | None = None,
) -> tuple[dict[str, Calibrator], dict[str, Any]]:  # fmt: skip
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
        The maps that are used, by domain; and what is told of each domain: ``n, n_positive, used`` ("own" or "all"), ``why,
        chosen, methods`` (``trial_report``), and the out-of-fold Brier scores on this domain's labels of its ``own`` map, of
        the one over ``all``, and their ``difference`` (own − all, so below 0 where its own is better), each with an interval
        over questions, paired for the difference; None where the domain has too few labels for a map. Its own map is used
        only where the whole interval lies below 0: a domain has fewer labels than all have, so a map of its own has to show
        that it is worth them.
    """
    maps: dict[str, Calibrator] = {}
    report: dict[str, Any] = {}
    for name, rows in told.reset_index(drop=True).groupby("domain").groups.items():
        at = np.asarray(rows, dtype=int)
        if not str(name):
            continue
        questions = told["question"].iloc[at].tolist()
        of_all = interval_json(interval("brier", over_all[at], y[at], questions, seed=seed))
        held = {"n": len(at), "n_positive": int(y[at].sum()), "all": of_all, "own": None, "difference": None}
        which = within = None
        if folds is not None and by_fold is not None:
            kept, which = np.unique(folds[at], return_inverse=True)
            within = [by_fold[fold][at] for fold in kept]
        try:
            if which is not None and len(set(which)) < 2:
                raise NotCalibrated("its labels lie in one fold")
            found = choose(scores[at], y[at], questions, method=method, seed=seed, folds=which, fold_scores=within)
        except NotCalibrated as refused:
            report[str(name)] = {**held, "used": "all", "why": f"{FEW}{refused}", "chosen": None, "methods": []}
            continue
        best = found.chosen
        assert best.calibrator is not None and best.predicted is not None and best.measured is not None
        gap = difference("brier", over_all[at], best.predicted, y[at], questions, seed=seed)
        better = gap.hi is not None and gap.hi < 0
        if better:
            maps[str(name)] = best.calibrator
        report[str(name)] = {
            **held, "own": interval_json(best.measured.brier), "difference": interval_json(gap),
            "used": "own" if better else "all", "chosen": best.method, "methods": [trial_report(one) for one in found.trials],
            "why": found.why if better else f"{FEW}its own, {best.method}, is not better beyond chance",
        }  # fmt: skip
    return maps, report
