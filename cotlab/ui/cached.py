"""Reads of the store and the response log, cached by run and revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from contextlib import closing
from copy import deepcopy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import (
    DEFAULT_CHOICE,
    FigureChoice,
    FigureData,
    MissingFigure,
)
from cotlab.analysis.verdict.measures import HEADLINE_METRICS, Validation
from cotlab.analysis.verdict.validated import headline_record, headline_validation
from cotlab.analysis.view import RunView
from cotlab.core.requests import Response
from cotlab.core.types import Item, Suite
from cotlab.store import read
from cotlab.store.calibrators import count_drift_checks, current_calibrator
from cotlab.store.database import FileState, Store, store_folder
from cotlab.store.decisions import current_policy
from cotlab.store.item_scores import list_unmeasured_runs
from cotlab.store.live import LiveRun, LiveRunStore
from cotlab.store.pending import last_label_number
from cotlab.store.responses import ResponseLog
from cotlab.validation.report import REPORT_FILE, REPORT_FOLDER

P = ParamSpec("P")
R = TypeVar("R")


def store() -> Store:
    """Return the store of this server, which COTLAB_STORE names."""
    return _open_store(str(store_folder()))


@st.cache_resource(show_spinner=False)
def _open_store(folder: str) -> Store:
    return Store()


def cache_by_store(
    max_entries: int | None, spinner_text: str | None = None, *, copies_results: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache what a function reads, by the store's folder and the function's arguments.

    As in Streamlit, an argument whose name begins with ``_`` does not count.

    Parameters
    ----------
    max_entries : int or None
        Maximum number of cached results; None for no limit.
    spinner_text : str or None
        Text beside the spinner while the function runs.
    copies_results : bool
        Whether each caller gets a copy of its own; if not, all share one result.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cache = st.cache_data if copies_results else st.cache_resource

        @cache(show_spinner=spinner_text or False, max_entries=max_entries)
        @wraps(function)
        def cached_function(*args: Any, store_folder: str, **kwargs: Any) -> R:
            return function(*args, **kwargs)

        @wraps(function)
        def call_cached(*args: P.args, **kwargs: P.kwargs) -> R:
            result: R = cached_function(*args, store_folder=str(store().folder), **kwargs)
            return result

        return call_cached

    return decorate


_KEPT_READS: dict[str, tuple[FileState, dict[Hashable, Any]]] = {}
"""Folder of a store → the newest state of its file, and what was read in it."""


def read_once(function: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what a function reads of the store's tables, read once for each state of its file.

    The function is one of a module, with hashable arguments, and reads nothing else: neither the
    response log nor the reports. Each caller gets a copy of its own. No lock is held while it
    reads, so two callers may read the same at once, and a caller may hold the store open.
    """
    return deepcopy(_read_shared(function, *args, **kwargs))


def _read_shared(
    function: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Return what ``read_once`` does, without a copy: no caller may change it."""
    current = store()
    file_state = current.file_state()
    key = (function.__module__, function.__qualname__, args, tuple(sorted(kwargs.items())))
    kept = _kept_reads(str(current.folder), file_state)
    if key in kept:
        kept_result: R = kept[key]
        return kept_result
    result = function(current, *args, **kwargs)
    if file_state:
        kept[key] = result
    return result


def _kept_reads(folder: str, file_state: FileState) -> dict[Hashable, Any]:
    """Return what was read in a state of the file; what was read in another one is dropped."""
    entry = _KEPT_READS.get(folder)
    if entry is None or entry[0] != file_state:
        entry = _KEPT_READS[folder] = (file_state, {})
    return entry[1]


def stored_run(run_id: str) -> RunView:
    """Return a run of the store; UnknownName where the store has no such run."""
    return _read_shared(RunView.read, run_id)


def stored_runs() -> list[RunView]:
    """Return all runs, the newest first."""
    return list(_read_shared(_list_run_views))


def _list_run_views(store: Store) -> list[RunView]:
    return [RunView.from_row(store, row) for row in read.list_runs(store).to_dict("records")]


def has_scorer(run: RunView, *names: str) -> bool:
    """Return whether a run has one of these scorers."""
    return any(spec.name in names for spec in run.plan.scorers)


def cached_run_view(run: RunView) -> RunView:
    """Return a run with what was read of its scores, the same until some of them are written."""
    return _run_view_at_revisions(run.id, _figure_revisions(run))


def _figure_revisions(run: RunView, *others: str) -> tuple[tuple[str, int], ...]:
    """Return the revisions of what a run's figures may show: all runs on its suite, and others."""
    return tuple(
        (other.id, other.revision)
        for other in stored_runs()
        if other.suite == run.suite or other.id in others
    )


@cache_by_store(8, copies_results=False)
def _run_view_at_revisions(run_id: str, revisions: tuple[tuple[str, int], ...]) -> RunView:
    return RunView.read(store(), run_id)


def run_figure_table(
    run: RunView, name: str, choice: FigureChoice = DEFAULT_CHOICE
) -> FigureData | MissingFigure:
    """Return the table of a figure of a run, as its report, its figures and its files have it.

    Raises
    ------
    ConfigError
        If the run does not have what was chosen.
    """
    revisions = _figure_revisions(run, *(choice.runs or "").split(","))
    return _figure_table(run.id, revisions, read_once(_release_state), name, choice)


@cache_by_store(64, "Making the table")
def _figure_table(
    run_id: str,
    revisions: tuple[tuple[str, int], ...],
    release_state: tuple[int, ...],
    name: str,
    choice: FigureChoice,
) -> FigureData | MissingFigure:
    return make_figure_table(_run_view_at_revisions(run_id, revisions), name, choice)


def _release_state(store: Store) -> tuple[int, ...]:
    """Return what figures depend on besides runs: labels, calibrator, policy and drift checks."""
    in_use = (current_calibrator(store), current_policy(store))
    versions = [0 if row is None else int(row["version"]) for row in in_use]
    return last_label_number(store), *versions, count_drift_checks(store)


@cache_by_store(32, "Reading scores")
def selected_scores(
    run_id: str, revision: int, metrics: tuple[str, ...] | None = None, item_id: str | None = None
) -> pd.DataFrame:
    """Return scores of some metrics, or of one item, as they are stored."""
    items = None if item_id is None else [item_id]
    return read.select_scores(store(), run_id, metrics=metrics, items=items)


@cache_by_store(50)
def load_estimates(run_id: str, revision: int) -> pd.DataFrame:
    """Return a run's estimates, with columns ``mode`` and ``ccs`` (the metric behind an RRR)."""
    table = read.run_estimates(store(), run_id)
    facets = [json.loads(text) for text in table["facet"]]
    return table.assign(
        mode=[facet.get("mode", "") for facet in facets],
        ccs=[facet.get("metric", "") for facet in facets],
    )


@cache_by_store(8)
def stored_suite(suite_digest: str) -> Suite:
    """Return a stored suite by its digest."""
    return read.get_suite(store(), suite_digest)


@cache_by_store(64)
def count_suite_items(suite_digest: str) -> int:
    """Count the items of a stored suite."""
    return read.count_items(store(), suite_digest)


def load_item(suite_digest: str, item_id: str) -> Item:
    """Return one item of a stored suite."""
    return read.get_item(store(), suite_digest, item_id)


def validated_at() -> int:
    """Return when the store's validation report was written, in nanoseconds; 0 without one."""
    path = store().folder / REPORT_FOLDER / REPORT_FILE
    return path.stat().st_mtime_ns if path.is_file() else 0


def metric_validation(metric: str) -> Validation:
    """Return what is known of a metric, for what it claims."""
    return headline_validation(metric, store().folder, validated_at())


def metric_validation_record(metric: str) -> str | None:
    """Return the record of the validation report in which that is; None without one."""
    return headline_record(metric, store().folder, validated_at())


def unmeasured_runs() -> frozenset[str]:
    """Return the runs that measured nothing of their model."""
    return read_once(list_unmeasured_runs, HEADLINE_METRICS)


def live_run(run_id: str) -> LiveRun | None:
    """Return the live state of a run (progress, heartbeat); None where it has none."""
    with closing(LiveRunStore(store().log_path)) as live_store:
        return live_store.get(run_id)


def live_runs() -> list[LiveRun]:
    """Return the live state of every run that has one."""
    with closing(LiveRunStore(store().log_path)) as live_store:
        return live_store.list_live_runs()


def request_stop(run_id: str) -> bool:
    """Ask a run to stop, and return whether it could be asked."""
    live_store = LiveRunStore(store().log_path)
    with closing(live_store):
        return live_store.request_stop(run_id)


def logged_exchanges(
    keys: tuple[str, ...],
) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Return the request and the reply of each key, each None where the log does not have it."""
    with closing(ResponseLog(store().log_path)) as log:
        return log.load_exchanges(keys) if keys else {}


def logged_responses(keys: tuple[str, ...]) -> dict[str, Response]:
    """Return the reply of each key that the log has in full."""
    with closing(ResponseLog(store().log_path)) as log:
        return {key: reply for key in keys if (reply := log.get(key)) is not None}


def reply_text(reply: dict[str, Any] | None) -> str:
    """Format a reply for display: its text, numbers or token counts, or why there is none."""
    if reply is None:
        return "n/a: the log does not hold this reply"
    if "text_sha256" in reply:
        return f"redacted, SHA-256 {reply['text_sha256']}"
    if reply.get("refused"):
        return "the model refused"
    if "text" not in reply and ("vectors" in reply or "numbers" in reply):
        numbers = ", ".join(f"{value:.6g}" for value in reply.get("numbers", ()))
        n_vectors = len(reply.get("vectors", ()))
        return numbers or f"{n_vectors} vector{'s' if n_vectors > 1 else ''}"
    if reply.get("located"):
        n_tokens, n_spans = (len(reply["located"][name]) for name in ("pieces", "positions"))
        spans_text = "1 part was" if n_spans == 1 else f"{n_spans} parts were"
        return f"{n_tokens} tokens; {spans_text} located among them"
    return str(reply.get("text", "")).strip() or "(empty)"
