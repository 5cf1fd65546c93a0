"""The page Calibration, runs: which runs it is about, their chains and labels, and the version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.resources import page_path
from cotlab.figures.calibration import CALIBRATOR_STYLES
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.review.labelling import truth
from cotlab.review.release.apply import (
    calibrator_target,
    load_calibrator_row,
)
from cotlab.store import calibrators as calibrator_store
from cotlab.store import pending
from cotlab.ui import cached, charts, components
from cotlab.ui.address import write_address
from cotlab.ui.opened_run import default_run, opened_run
from cotlab.ui.pickers import pick_options, run_labels, select_option, without_archived
from cotlab.ui.text import escape_markdown

MESSAGE_KEY = "calibration-message"
"""Key of the message to show on the next run of the page."""


class CalibrationView(NamedTuple):
    """What the page Calibration shows."""

    run_ids: list[str]
    """The ids of the chosen runs."""
    chains: pd.DataFrame
    """Their chains, with r_raw and the labels' target."""
    version: dict[str, Any] | None
    """The calibrator version that is shown; None where there is none."""
    thresholds: tuple[float, float] | None
    """The thresholds (low, high) of the policy in force; None without a policy."""
    target: str
    """The target of the labels, one of ``TARGETS``."""
    fit_chains: pd.DataFrame | None
    """The chains of the runs of the version's fit, to show what changed since."""
    printable_runs: tuple[str, ...]
    """Runs with a composite, the chosen ones first: they can have printed figures of scores. These
    are of the calibrator in use, so () where another version is shown."""

    def paper_figure(self, name: str, runs: Sequence[str]) -> charts.PaperFigure | None:
        """Return the printed form of a figure of the first of ``runs`` that has one."""
        run_id = next((run for run in runs if run in self.printable_runs), None)
        return None if run_id is None else charts.PaperFigure(run_id, name)

    @property
    def labelled_chains(self) -> pd.DataFrame:
        """The chains with a clear verdict and a score, which are the data of a fit."""
        return self.chains[
            self.chains["target"].notna()
            & self.chains["r_raw"].notna()
            & (self.chains["status"] == "ok")
        ]

    @property
    def evidence_link(self) -> tuple[str, dict[str, str]]:
        """The page and the query of the link "Evidence"."""
        return page_path("run"), {"run": self.run_ids[0]}


def select_calibration_runs() -> CalibrationView | None:
    """Choose runs and a version; None (with a message) where no run has scores to fit."""
    rows = [
        row
        for row in cached.stored_runs()
        if any(spec.name in ("composite", TEXT_FEATURES) for spec in row.plan.scorers)
    ]
    rows = without_archived(rows, "run")
    if not rows:
        components.render_empty_state(
            "No run has a composite score yet, which the labels calibrate. Start a run with the"
            " profile phase3.",
            page_path("new_run"),
            "Start one",
            {"profile": "phase3"},
        )
        return None
    revision_by_run = {row.id: row.revision for row in rows}
    newest_label_number = cached.read_once(pending.last_label_number)
    labelled_run_ids = _cached_labelled_runs(str(cached.store().folder), newest_label_number)
    measured_run_ids = [i for i in revision_by_run if i not in cached.unmeasured_runs()]
    newest_run_id = (measured_run_ids or list(revision_by_run))[0]
    opened_run_id = default_run("calibration-run", newest_run_id, revision_by_run)
    default_run_ids = [i for i in revision_by_run if i in labelled_run_ids] or [opened_run_id]
    run_ids = pick_options(
        "Runs",
        run_labels(rows),
        "run",
        default_run_ids,
        help="By default every run that has labels; without labels, the run that was open.",
    )
    if not run_ids:
        st.info("Choose a run.")
        return None
    is_left_out = opened_run() in revision_by_run and opened_run() not in run_ids
    if is_left_out and not st.query_params.get_all("run"):
        st.caption(
            f"The run that was open, {escape_markdown(str(opened_run()))}, has no labels, so it is"
            " not among them."
        )
    target_labels = {name: text[0].upper() + text[1:] for name, (text, _) in truth.TARGETS.items()}
    target = select_option("Target", target_labels, "target", truth.DEFAULT_TARGET)
    version = _select_version()
    fit_report = version["report"] if version is not None else {"runs": []}
    fit_run_ids = fit_report["runs"]
    fit_chains = (
        load_chains(
            revision_by_run,
            fit_run_ids,
            newest_label_number,
            calibrator_target(version),
            is_joined="joined_runs" in fit_report,
        )
        if set(fit_run_ids) <= set(revision_by_run)
        else None
    )
    chains = load_chains(revision_by_run, run_ids, newest_label_number, target)
    thresholds = cached.read_once(tables.current_thresholds)
    current = cached.read_once(calibrator_store.current_calibrator)
    is_in_use = (version or {}).get("version") == (current or {}).get("version")
    printable_runs = tuple(
        row.id
        for row in sorted(rows, key=lambda row: row.id not in run_ids)
        if is_in_use and cached.has_scorer(row, "composite")
    )
    return CalibrationView(run_ids, chains, version, thresholds, target, fit_chains, printable_runs)


def _select_version() -> dict[str, Any] | None:
    """Return the calibrator version of the address, else the current one; None without any."""
    versions = cached.read_once(calibrator_store.list_calibrators)
    if message := st.session_state.pop(MESSAGE_KEY, None):
        st.success(message)
    if versions.empty:
        return None
    rows = versions.to_dict("records")
    version_labels = {
        str(row["version"]): (
            f"Version {row['version']}: {CALIBRATOR_STYLES[row['method']][0]}, {row['n']} labels"
            + (", in use" if row["current"] else "")
        )
        for row in rows
    }
    current_version = next(
        (str(row["version"]) for row in rows if row["current"]), str(rows[0]["version"])
    )
    return load_calibrator_row(
        cached.store(), int(select_option("Calibrator", version_labels, "version", current_version))
    )


def load_chains(
    revision_by_run: Mapping[str, int],
    run_ids: Sequence[str],
    newest_label_number: int,
    target: str,
    *,
    is_joined: bool = True,
) -> pd.DataFrame:
    """Return the chains of runs with their labels' target.

    The cache is keyed by each run's revision and by ``newest_label_number``, the newest label.
    """
    return _cached_chains(
        str(cached.store().folder),
        tuple((run_id, revision_by_run[run_id]) for run_id in run_ids),
        newest_label_number,
        target,
        is_joined,
    )


@st.cache_data(show_spinner="Reading scores and labels", max_entries=8)
def _cached_chains(
    folder: str,
    run_revisions: tuple[tuple[str, int], ...],
    newest_label_number: int,
    target: str,
    is_joined: bool,
) -> pd.DataFrame:
    run_ids = [run_id for run_id, _ in run_revisions]
    return tables.with_targets(cached.store(), run_ids, target, is_joined=is_joined)


@st.cache_data(show_spinner=False, max_entries=8)
def _cached_labelled_runs(folder: str, newest_label_number: int) -> set[str]:
    return pending.labelled_runs(cached.store())


def rerun_with_message(message: str) -> None:
    """Run the page again with the version that is now in use, and a message about it."""
    st.session_state[MESSAGE_KEY] = message
    write_address({"version": None})
    st.rerun()
