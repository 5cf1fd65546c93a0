"""The page Drift: current items against the calibrator's reference, by feature and jointly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.drift import (
    MAX_PANELS,
    compared_features,
    distribution_rows,
    score_rows,
    stored_checks,
    time_note,
    time_rows,
)
from cotlab.core.errors import CotlabError
from cotlab.core.resources import page
from cotlab.figures.style import format_number, interval_text
from cotlab.review.release.drift import KS, PSI, feature_values, measure_drift
from cotlab.review.release.drift_check import DriftCheck, drift_from_json, store_drift_check
from cotlab.review.release.reaudit import reaudit, released
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.calibrators import current_calibrator, drift_checks
from cotlab.ui import access, cached, components
from cotlab.ui.components import csv_button
from cotlab.ui.pickers import pick_many, run_labels
from cotlab.ui.text import as_code

Stamps = tuple[tuple[str, int], ...]
_NOTICE = "drift-said"


class DriftView(NamedTuple):
    """What the page Drift shows."""

    check: DriftCheck
    """The drift check of the chosen runs."""
    runs: Stamps
    """The runs of both sides with their revisions."""


def select_drift_runs() -> DriftView | None:
    """Choose the runs of both sides; None (with a message) where nothing can be compared."""
    rows = read.list_runs(cached.store()).to_dict("records")
    if len(rows) < 2:
        components.empty(
            "A drift check needs two runs: a reference and a later one.",
            page("new_run"),
            "Start one",
        )
        return None
    labels, stamps = run_labels(rows), {str(row["id"]): int(row["revision"]) for row in rows}
    first = _first_reference(rows)
    reference = pick_many(
        "Reference",
        labels,
        "reference",
        first,
        help="By default the runs that the calibrator was fitted on.",
    )
    others = {run: label for run, label in labels.items() if run not in reference}
    current = pick_many(
        "Current", others, "current", list(others)[:1], help="The runs to check for drift."
    )
    if not reference or not current:
        st.info("Choose at least one run on each side.")
        return None
    for row in (row for row in rows if row["id"] in (*reference, *current)):
        components.partial_banner(row)
    with st.container(horizontal=True):
        ks = st.number_input(
            "KS threshold", 0.01, 1.0, KS, 0.05, key="ks", bind="query-params", width=170
        )
        psi = st.number_input(
            "PSI threshold (nats)",
            0.01,
            10.0,
            PSI,
            0.05,
            key="psi",
            bind="query-params",
            width=170,
        )
    runs = tuple((run, stamps[run]) for run in (*reference, *current))
    try:
        check = _measured(
            str(cached.store().folder), runs, len(reference), float(ks), float(psi), _learnt()
        )
    except CotlabError as error:
        st.info(as_code(str(error)))
        return None
    return DriftView(check, runs)


def render_drift_verdict(view: DriftView) -> None:
    """Show whether there is an alert, and why."""
    check = view.check
    (st.error if check.alert else st.success)(
        f"{'Drift.' if check.alert else 'No drift.'} {as_code(check.reason)}",
        icon=":material/warning:" if check.alert else ":material/check_circle:",
    )
    n, joint, quality = len(compared_features(check)), check.joint, check.quality
    numbers = [
        ("Features moved", f"{len(check.moved)} of {n}"),
        ("All features together, p", format_number(joint.energy.p)),
        (
            "Energy coefficient (0 to 1)",
            (
                f"{format_number(joint.energy.value)}, shuffled ≤"
                f" {format_number(joint.energy.null_hi)}"
            ),
        ),
    ]
    for name, estimate in (("Brier", quality.brier), ("ECE", quality.ece)):
        value = (
            "n/a"
            if estimate is None
            else interval_text(estimate["point"], estimate["lo"], estimate["hi"])
        )
        numbers.append((f"{name} since the fit, n = {quality.n}", value))
    components.show_numbers(numbers)
    st.caption(as_code(_quality_text(check)))


def render_drift_figures(view: DriftView) -> None:
    """Show how far each feature moved, and the distributions."""
    check, evidence = view.check, (page("run"), {"run": view.check.current[0]})
    st.subheader("Drift by feature")
    components.show_figure("drift_scores", score_rows(check), key="drift-scores", evidence=evidence)
    names = compared_features(check)
    components.render_feature_help(feature.name for feature in check.features)
    if not names:
        return
    st.subheader("Distributions")
    part = names[components.page_slice(len(names), "drift-page", MAX_PANELS)]
    values = _values(str(cached.store().folder), view.runs, check)
    components.show_figure(
        "feature_distributions",
        distribution_rows(values, check, part),
        key="distributions",
        evidence=evidence,
    )


def render_drift_actions(view: DriftView) -> None:
    """Offer what to do: store the check, queue a re-audit, fit a new calibrator."""
    check = view.check
    st.subheader("What to do")
    notice = st.session_state.pop(_NOTICE, None)
    if notice:
        st.success(as_code(notice))
    if check.suggestion:
        st.warning(as_code(check.suggestion))
        with st.container(horizontal=True):
            st.page_link(page("calibration"), label="Fit again", icon=":material/query_stats:")
            st.page_link(page("label"), label="Label", icon=":material/edit_note:")
    else:
        st.caption("These runs give no reason to fit the calibrator again.")
    out = released(cached.store(), check.current)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = int(st.number_input("Released items to audit", 1, 1000, 20, key="reaudit-n", width=190))
        locked = access.only(
            "admin",
            disabled=not out,
            help=None if out else "No item of the current runs is released.",
        )
        if st.button(
            f"Queue a re-audit (of {len(out)})", key="reaudit", icon=":material/rule:", **locked
        ):
            _reaudit(check, n)
        if st.button(
            "Store this check", key="keep-check", icon=":material/save:", **access.only("admin")
        ):
            _keep(check)
    st.caption(
        "The re-audit is a random sample, so its findings apply to all released items."
        " From a terminal:"
    )
    sides = f"{','.join(check.reference)} {' '.join(check.current)}"
    st.code(
        f"cotlab drift {sides} --ks {check.ks:g} --psi {check.psi:g}",
        language="text",
        wrap_lines=True,
    )


def render_drift_over_time(view: DriftView) -> None:
    """Show the stored checks of the same reference over time."""
    checks = stored_checks(cached.store(), view.check.reference)
    if not checks:
        return
    st.subheader("Over time")
    if len(checks) == 1:
        st.caption(
            "One check of this reference is stored so far; from the second on they are"
            " drawn over time."
        )
        return
    components.show_figure(
        "drift_over_time",
        time_rows(checks),
        key="drift-time",
        note=as_code(time_note(checks)),
        evidence=(page("run"), {"run": view.check.current[0]}),
    )


def render_past_checks() -> None:
    """List the stored checks, the newest first."""
    st.subheader("Stored checks")
    table = drift_checks(cached.store())
    if table.empty:
        st.caption("No check has been stored yet.")
        return
    checks = [drift_from_json(json.loads(text)) for text in table["result"]]
    rows = pd.DataFrame(
        {
            "when": [check.at for check in checks],
            "look": [_check_url(check) for check in checks],
            "alert": ["alert" if check.alert else "" for check in checks],
            "moved": [", ".join(check.moved) for check in checks],
            "largest KS": [_largest(check, "ks") for check in checks],
            "largest PSI": [_largest(check, "psi") for check in checks],
            "joint p": [check.joint.energy.p for check in checks],
            "current": [", ".join(check.current) for check in checks],
            "reference": [", ".join(check.reference) for check in checks],
            "part": [check.label for check in checks],
            "by": [check.by for check in checks],
        }
    )
    part = rows.iloc[components.page_slice(len(rows), "history-page")]
    st.dataframe(
        part,
        hide_index=True,
        key="drift-history",
        column_config={
            "when": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            "look": st.column_config.LinkColumn(display_text="open"),
            **{
                name: st.column_config.NumberColumn(format="%.3g")
                for name in ("largest KS", "largest PSI", "joint p")
            },
        },
    )
    csv_button("drift_checks", rows, "drift-history")


def render_drift_notes(view: DriftView) -> None:
    """Explain the statistics and the condition of an alert."""
    check = view.check
    same = (
        f"{check.shared} questions occur on both sides; each is compared with itself. "
        if check.shared
        else ""
    )
    st.caption(
        f"{same}Each statistic is compared with {check.permutations} permutations of whole"
        f" questions (seed {check.seed}). An alert needs KS ≥ {check.ks:g} or PSI ≥"
        f" {check.psi:g}, and p ≤ {check.alpha:g} after Benjamini and Hochberg over PSI and"
        " KS of all features. PSI and KL: nats, bins by quantiles of the reference, 0.5"
        f" added to each count. All features together: {check.joint.method}. Drift means"
        " that items differ from those of the reference; it does not mean that scores are"
        " wrong, and scores can become wrong without it."
    )


def _reaudit(check: DriftCheck, n: int) -> None:
    who = access.need("admin")
    queue, n_sampled = reaudit(cached.store(), check.current, n, by=who.name)
    st.session_state[_NOTICE] = f"{n_sampled} released items were added to the queue {queue}."
    st.rerun()


def _keep(check: DriftCheck) -> None:
    who = access.need("admin")
    new = store_drift_check(cached.store(), replace(check, by=who.name))
    st.session_state[_NOTICE] = (
        "The check was stored." if new else ("This check was already stored.")
    )
    st.rerun()


def _quality_text(check: DriftCheck) -> str:
    quality = check.quality
    if quality.brier is None:
        return f"Brier and ECE since the fit: n/a, {quality.reason}."
    at_fit = (
        ""
        if quality.fitted is None
        else f" At the fit Brier was {format_number(quality.fitted)}, out of fold."
    )
    worse = " It is worse now: the whole interval lies above." if quality.worse else ""
    perfect = "" if quality.band is None else " to ".join(map(format_number, quality.band))
    band = f" A perfectly calibrated forecaster's ECE lies from {perfect}." if perfect else ""
    return (
        f"Brier and ECE of calibrator {quality.version} on {quality.n} items labelled since"
        f" its fit, lower is better, 95 % intervals.{at_fit}{worse}{band} Items that were"
        " chosen near a threshold are harder than most."
    )


def _check_url(check: DriftCheck) -> str:
    sides = (("reference", check.reference), ("current", check.current))
    return f"/drift?{urlencode([(side, run) for side, runs in sides for run in runs])}"


def _largest(check: DriftCheck, measure: str) -> float | None:
    known = [
        value
        for feature in check.features
        if (value := getattr(feature.drift, measure).value) is not None
    ]
    return max(known, default=None)


def _first_reference(rows: list[dict[str, Any]]) -> list[str]:
    """Return the default reference.

    The runs of the current calibrator's fit, else the oldest run with a composite, else the
    oldest.
    """
    known = [str(row["id"]) for row in rows]
    row = current_calibrator(cached.store())
    seen = [run for run in ((row or {}).get("report") or {}).get("runs", ()) if run in known]
    if seen and len(seen) < len(known):
        return seen
    with_composite = [
        str(r["id"])
        for r in rows
        if any(spec.name == "composite" for spec in cached.parse_plan(r["plan"]).scorers)
    ]
    return (with_composite or known)[-1:]


def _learnt() -> tuple[int, int]:
    """Return the newest label and the current calibrator, on which the quality depends."""
    table, row = (
        label_store.label_table(cached.store(), history=True),
        current_calibrator(cached.store()),
    )
    return (0 if table.empty else int(table["seq"].max())), (
        0 if row is None else int(row["version"])
    )


@st.cache_data(show_spinner="Shuffling the runs", max_entries=16)
def _measured(
    folder: str, runs: Stamps, n_reference: int, ks: float, psi: float, learnt: tuple[int, int]
) -> DriftCheck:
    ids = [run for run, _ in runs]
    return measure_drift(cached.store(), ids[:n_reference], ids[n_reference:], ks=ks, psi=psi)


@st.cache_data(show_spinner="Reading the features", max_entries=16)
def _values(folder: str, runs: Stamps, _check: DriftCheck) -> pd.DataFrame:
    return feature_values(cached.store(), _check)
