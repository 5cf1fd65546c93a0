"""cotlab from Python: run scorers on a suite and read scores and estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.analysis.report import headline_rrr, report_run
from cotlab.core.types import Suite
from cotlab.metrics.consistency.cards import HIDDEN
from cotlab.run.config import read_config
from cotlab.run.launch import start
from cotlab.run.secrets import load_secrets
from cotlab.store import read
from cotlab.store.database import Store


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run.

    ``scores`` has one row a score (metric, item_id, step, sample, facet, value, status, reason,
    evidence); ``estimates`` one row an estimate (metric, facet, point, lo, hi, n, n_undefined,
    method, over_, reason).
    """

    run_id: str
    status: str
    scores: pd.DataFrame
    estimates: pd.DataFrame
    rrr: float | None
    rrr_interval: tuple[float, float] | None
    folder: Path


def run_suite(
    suite: Suite | str | Path, *, store: str | Path | None = None, **options: Any
) -> Result:
    """Run scorers on a suite and keep everything in the store.

    Parameters
    ----------
    suite : Suite, path or name of a shipped suite
    store : folder, default data/store or COTLAB_STORE
    **options
        The flags of ``cotlab run`` with underscores: provider, model, scorer, mode, limit, repeats,
        …

    Returns
    -------
    Result
        ``rrr`` in [0, 1] for the first mode and the chosen metric; None where it is undefined.
        ``rrr_interval`` is None below five items.

    Raises
    ------
    cotlab.core.errors.CotlabError
        With one message that says what failed and what to do.

    Notes
    -----
    Works from a script and inside a running event loop, which it blocks until the run has ended.
    """
    load_secrets()
    opened_store = Store(Path(store) if store is not None else None)
    given_suite = suite if isinstance(suite, Suite) else None
    config = read_config({**options, **({} if given_suite else {"task_suite": str(suite)})})
    done = start(config, opened_store, suite=given_suite)
    report_run(opened_store, done)
    estimates = read.run_estimates(opened_store, done.run_id)
    spec = next(
        (
            s
            for s in read.stored_plan(read.get_run(opened_store, done.run_id)).scorers
            if s.name == "ablation"
        ),
        None,
    )
    best = headline_rrr(estimates, spec.params) if spec else None
    known = best is not None and best["lo"] is not None
    return Result(
        done.run_id,
        done.status,
        _without_hidden_scores(read.run_scores(opened_store, done.run_id)),
        estimates,
        best["point"] if best else None,
        (best["lo"], best["hi"]) if best is not None and known else None,
        done.output,
    )


def _without_hidden_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """All scores but those of the hidden hold-out, which is told over the run only: tuned against, it would hide nothing."""
    return scores[scores["metric"] != HIDDEN.name].reset_index(drop=True)
