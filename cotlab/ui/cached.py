"""What pages read, cached by run and revision so that nothing is computed twice."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.catalogue import figure_table
from cotlab.analysis.tables.declare import Choice, FigureData, NoFigure
from cotlab.analysis.tables.mediation import with_facets
from cotlab.analysis.view import RunView
from cotlab.core.requests import Response
from cotlab.core.types import Item, Plan, Suite
from cotlab.store import read
from cotlab.store.database import Store, store_folder
from cotlab.store.live import LiveRun, LiveState
from cotlab.store.responses import ResponseLog


def store() -> Store:
    """The store of this server; another COTLAB_STORE is another store."""
    return _store(str(store_folder()))


@st.cache_resource(show_spinner=False)
def _store(folder: str) -> Store:
    return Store()


def run_row(run_id: str) -> dict[str, Any]:
    return read.get_run(store(), run_id)


def run_plan(run_id: str) -> Plan:
    return parse_plan(run_row(run_id)["plan"])


@st.cache_data(show_spinner=False, max_entries=50)
def parse_plan(text: str) -> Plan:
    return read.plan_from_json(text)


def view(row: dict[str, Any]) -> RunView:
    """Return a run as it is stored, the same view until scores of the run are written."""
    return _view(str(store().folder), row["id"], int(row["revision"]))


@st.cache_resource(show_spinner=False, max_entries=8)
def _view(folder: str, run_id: str, revision: int) -> RunView:
    return RunView.read(store(), run_id)


def table(run_id: str, revision: int, name: str, choice: Choice) -> FigureData | NoFigure:
    """Return the table of a figure of a run, as its report, its figures and its files have it."""
    return _table(str(store().folder), run_id, revision, name, choice)


@st.cache_data(show_spinner="Making the table", max_entries=32)
def _table(
    folder: str, run_id: str, revision: int, name: str, choice: Choice
) -> FigureData | NoFigure:
    return figure_table(_view(folder, run_id, revision), name, choice)


def selected_scores(
    run_id: str, revision: int, metrics: tuple[str, ...] | None = None, item_id: str | None = None
) -> pd.DataFrame:
    """Scores of some metrics, or of one item, as they are stored."""
    return _some_scores(str(store().folder), run_id, revision, metrics, item_id)


@st.cache_data(show_spinner="Reading scores", max_entries=32)
def _some_scores(
    folder: str, run_id: str, revision: int, metrics: tuple[str, ...] | None, item_id: str | None
) -> pd.DataFrame:
    items = None if item_id is None else [item_id]
    return read.select_scores(store(), run_id, metrics=metrics, items=items)


def estimates(run_id: str, revision: int) -> pd.DataFrame:
    """Estimates with columns mode and ccs (the metric a run-level statistic is of)."""
    return _estimates(str(store().folder), run_id, revision)


@st.cache_data(show_spinner=False, max_entries=50)
def _estimates(folder: str, run_id: str, revision: int) -> pd.DataFrame:
    table = read.run_estimates(store(), run_id)
    facets = [json.loads(text) for text in table["facet"]]
    return table.assign(
        mode=[f.get("mode", "") for f in facets], ccs=[f.get("metric", "") for f in facets]
    )


def mediation_scores(
    run_id: str, revision: int, metrics: tuple[str, ...] | None = None, item_id: str | None = None
) -> pd.DataFrame:
    """Scores of some metrics, or of one item, with a column for each part of a facet of the scorer mediation."""
    return _mediated(str(store().folder), run_id, revision, metrics, item_id)


@st.cache_data(show_spinner="Reading scores", max_entries=32)
def _mediated(
    folder: str, run_id: str, revision: int, metrics: tuple[str, ...] | None, item_id: str | None
) -> pd.DataFrame:
    return with_facets(_some_scores(folder, run_id, revision, metrics, item_id))


def mediation_estimates(run_id: str, revision: int) -> pd.DataFrame:
    """Estimates with a column for each part of a facet of the scorer mediation."""
    return with_facets(estimates(run_id, revision))


def suite(suite_digest: str) -> Suite:
    return _suite(str(store().folder), suite_digest)


@st.cache_data(show_spinner=False, max_entries=8)
def _suite(folder: str, suite_digest: str) -> Suite:
    return read.get_suite(store(), suite_digest)


def load_item(suite_digest: str, item_id: str) -> Item:
    return read.get_item(store(), suite_digest, item_id)


def live(run_id: str) -> LiveRun | None:
    state = LiveState(store().log_path)
    try:
        return state.get(run_id)
    finally:
        state.close()


def live_runs() -> list[LiveRun]:
    state = LiveState(store().log_path)
    try:
        return state.all()
    finally:
        state.close()


def ask_stop(run_id: str) -> bool:
    state = LiveState(store().log_path)
    try:
        return state.ask_stop(run_id)
    finally:
        state.close()


def exchanges(
    keys: tuple[str, ...],
) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Request and reply behind each key, as far as the log holds them."""
    log = ResponseLog(store().log_path)
    try:
        return log.requests(keys) if keys else {}
    finally:
        log.close()


def responses(keys: tuple[str, ...]) -> dict[str, Response]:
    """The whole reply of each key that the log holds in full."""
    log = ResponseLog(store().log_path)
    try:
        replies = {key: log.get(key) for key in keys}
    finally:
        log.close()
    return {key: reply for key, reply in replies.items() if reply is not None}


def reply_text(reply: dict[str, Any] | None) -> str:
    """What a reply shows on a page."""
    if reply is None:
        return "n/a: the log does not hold this reply"
    if "text_sha256" in reply:
        return f"redacted, SHA-256 {reply['text_sha256']}"
    if reply.get("refused"):
        return "the model refused"
    if "text" not in reply and ("vectors" in reply or "numbers" in reply):
        numbers = ", ".join(f"{value:.6g}" for value in reply.get("numbers", ()))
        return (
            numbers or f"{len(reply['vectors'])} vector{'s' if len(reply['vectors']) > 1 else ''}"
        )
    if reply.get("located"):
        tokens, n_positions = (len(reply["located"][what]) for what in ("pieces", "positions"))
        return (
            f"{tokens} tokens; {n_positions} {'part was' if n_positions == 1 else 'parts were'}"
            " located among them"
        )
    return str(reply.get("text", "")).strip() or "(empty)"
