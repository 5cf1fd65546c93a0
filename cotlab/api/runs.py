"""Run scorers on a suite and read scores and estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from cotlab.analysis.report import headline_rrr, report_run
from cotlab.core.types import Suite
from cotlab.metrics.consistency import HOLDOUT_DIFFERENCE
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.run.resolved import ResolvedRun
from cotlab.run.secrets import load_secrets
from cotlab.run.unread_options import check_flags_are_read
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.jsonl import load_suite as read_suite
from cotlab.suites.shipped import find_suite


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run."""

    run_id: str
    """Id of the run in the store."""
    status: str
    """done, stopped, budget or failed."""
    scores: pd.DataFrame
    """A row for each score: metric, item_id, step, sample, facet, value, status, reason, evidence.
    """
    estimates: pd.DataFrame
    """A row for each estimate: metric, facet, point, lo, hi, n, n_undefined, method, over_, reason.
    """
    rrr: float | None
    """RRR in [0, 1] of the first mode and the chosen metric; None where it is undefined."""
    rrr_interval: tuple[float, float] | None
    """Its 95 % interval; None below five items."""
    folder: Path
    """Folder of the reports."""


def load_suite(
    suite: str | Path,
    *,
    good_lines: bool = False,
    chain: Literal["auto", "reference", "own"] = "auto",
) -> Suite:
    """Read a suite: a JSONL file, or one that ships with cotlab.

    Parameters
    ----------
    suite : str or Path
        A path, or the name of a shipped suite: wordproblems, math, commonsense, evaluation.
    good_lines : bool
        Leave out defective lines instead of refusing the file.
    chain : {"auto", "reference", "own"}
        With "own" an item may lack a reference chain, with "reference" none may; "auto" lets all
        lack it, whose chains a run then asks the model for.

    Returns
    -------
    Suite

    Raises
    ------
    cotlab.core.errors.CotlabError
        If there is no such suite, or with every defect of the file in line order.
    """
    return read_suite(find_suite(suite), good_lines=good_lines, chain=chain)


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
    settings = {**options, **({} if given_suite else {"task_suite": str(suite)})}
    resolved = ResolvedRun(read_config(settings))
    check_flags_are_read(resolved, options)
    finished_run = start_run(resolved, opened_store, suite=given_suite)
    report_run(opened_store, finished_run)
    estimates = read.run_estimates(opened_store, finished_run.run_id)
    plan = read.plan_from_row(read.get_run(opened_store, finished_run.run_id))
    ablation_spec = next((spec for spec in plan.scorers if spec.name == "ablation"), None)
    rrr_row = headline_rrr(estimates, ablation_spec.params) if ablation_spec else None
    scores = _drop_hidden_scores(read.run_scores(opened_store, finished_run.run_id))
    rrr = rrr_row["point"] if rrr_row else None
    interval = (rrr_row["lo"], rrr_row["hi"]) if rrr_row and rrr_row["lo"] is not None else None
    return Result(
        finished_run.run_id,
        finished_run.status,
        scores,
        estimates,
        rrr,
        interval,
        finished_run.output,
    )


def _drop_hidden_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Leave out the scores of the hidden hold-out: tuned against, it would hide nothing."""
    return scores[scores["metric"] != HOLDOUT_DIFFERENCE.name].reset_index(drop=True)
