"""The page Drift, stored checks: one reference over time, and all of them as a table."""

from __future__ import annotations

import json

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import drift as tables
from cotlab.figures.style import format_number
from cotlab.review.release.drift import DriftCheck, drift_from_json
from cotlab.store.calibrators import list_drift_checks
from cotlab.ui import cached, charts, components
from cotlab.ui.components import csv_button
from cotlab.ui.drift import DriftView
from cotlab.ui.linked import PageLink, show_linked_frame
from cotlab.ui.text import escape_markdown


def render_drift_over_time(view: DriftView) -> None:
    """Show the stored checks of the same reference over time."""
    checks = tables.stored_checks(cached.store(), view.check.reference)
    if not checks:
        return
    st.header("Over time")
    if len(checks) == 1:
        st.caption(
            "One check of this reference is stored so far; from the second on they are"
            " drawn over time."
        )
        return
    table = tables.drift_over_time_rows(checks)
    note = escape_markdown(tables.drift_over_time_note(checks))
    charts.show_figure(
        "drift_over_time",
        table,
        key="drift-time",
        note=note,
        evidence=view.evidence_link,
        paper=view.paper_figure("drift_over_time"),
    )


def render_past_checks() -> None:
    """List the stored checks, the newest first."""
    st.header("Stored checks")
    table = cached.read_once(list_drift_checks)
    if table.empty:
        st.caption("No check has been stored yet.")
        components.page_slice(0, "history-page")
        return
    checks = [drift_from_json(json.loads(text)) for text in table["result"]]
    check_rows = pd.DataFrame(
        {
            "when": [check.at for check in checks],
            "alert": ["alert" if check.alert else "" for check in checks],
            "moved": [", ".join(check.moved_features) for check in checks],
            "largest KS": [_largest_statistic(check, "ks") for check in checks],
            "largest PSI": [_largest_statistic(check, "psi") for check in checks],
            "joint p": [check.joint.energy.p for check in checks],
            "current": [", ".join(check.current) for check in checks],
            "reference": [", ".join(check.reference) for check in checks],
            "part": [check.label for check in checks],
            "by": [check.by for check in checks],
        }
    )
    page = components.page_slice(len(check_rows), "history-page")
    page_rows = check_rows.iloc[page].assign(
        when=[f"{check.at:%Y-%m-%d %H:%M}" for check in checks[page]]
    )
    numbers = ("largest KS", "largest PSI", "joint p")
    for name in numbers:
        page_rows[name] = [format_number(None if pd.isna(v) else v) for v in page_rows[name]]
    links = {"when": [_check_link(check) for check in checks[page]]}
    show_linked_frame("Earlier checks", page_rows, links, key="drift-history", number_names=numbers)
    csv_button("drift_checks", check_rows, "drift-history")


def _check_link(check: DriftCheck) -> PageLink:
    sides = (("reference", check.reference), ("current", check.current))
    return PageLink("drift", tuple((side, run) for side, runs in sides for run in runs))


def _largest_statistic(check: DriftCheck, statistic: str) -> float | None:
    values = (getattr(feature.drift, statistic).value for feature in check.features)
    return max((value for value in values if value is not None), default=None)
