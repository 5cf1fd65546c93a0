"""The page Calibration, runs and fit: the labels and scores of the chosen runs, and a new fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.core.resources import page
from cotlab.figures.calibration import CALIBRATORS
from cotlab.reliability.maps import (
    METHODS,
    MIN_ISOTONIC,
    MIN_ISOTONIC_OF_CLASS,
    MIN_LABELS,
    MIN_OF_CLASS,
)
from cotlab.review.release.apply import apply_calibrator, version_of
from cotlab.review.release.calibrate import WEIGHTINGS, calibrate_runs
from cotlab.store import calibrators as calibrator_store
from cotlab.store import pending, read
from cotlab.ui import access, cached, components
from cotlab.ui.pickers import pick_many, run_labels, select_option
from cotlab.ui.text import as_code

FITTED = "calibration-fitted"


class CalibrationView(NamedTuple):
    """What the page Calibration shows."""

    runs: list[str]
    """The ids of the chosen runs."""
    chains: pd.DataFrame
    """Their chains, with r_raw and the labels' target."""
    version: dict[str, Any] | None
    """The calibrator version that is shown; None where there is none."""
    limits: tuple[float, float] | None
    """The thresholds (low, high) of the policy in force; None without a policy."""
    seen: pd.DataFrame | None
    """The chains of the runs of the version's fit, to show what changed since."""

    @property
    def labelled(self) -> pd.DataFrame:
        """The chains with a clear verdict and a score, which are the data of a fit."""
        return self.chains[
            self.chains["target"].notna()
            & self.chains["r_raw"].notna()
            & (self.chains["status"] == "ok")
        ]

    @property
    def evidence(self) -> tuple[str, dict[str, str]]:
        """The page and the query of the link "Evidence"."""
        return page("run"), {"run": self.runs[0]}


def select_calibration_runs() -> CalibrationView | None:
    """Choose runs and a version; None (with a message) where no run has a composite score."""
    rows = [
        row
        for row in read.list_runs(cached.store()).to_dict("records")
        if any(spec.name == "composite" for spec in cached.parse_plan(row["plan"]).scorers)
    ]
    if not rows:
        components.empty(
            (
                "No run has a composite score yet, which the labels calibrate. Start a run"
                " with the profile phase3."
            ),
            page("new_run"),
            "Start one",
        )
        return None
    revisions = {str(row["id"]): int(row["revision"]) for row in rows}
    stamp = pending.last_label(cached.store())
    labelled = _labelled_runs(str(cached.store().folder), stamp)
    default = [i for i in revisions if i in labelled] or list(revisions)[:1]
    chosen = pick_many(
        "Runs", run_labels(rows), "run", default, help="By default every run that has labels."
    )
    if not chosen:
        st.info("Choose a run.")
        return None
    version = _version()
    seen = version["report"]["runs"] if version is not None else []
    seen_chains = load_chains(revisions, seen, stamp) if set(seen) <= set(revisions) else None
    return CalibrationView(
        chosen,
        load_chains(revisions, chosen, stamp),
        version,
        tables.current_thresholds(cached.store()),
        seen_chains,
    )


def render_score_histogram(view: CalibrationView) -> None:
    """Show the distribution of the chosen runs' scores by label."""
    st.subheader("Distribution of the scores")
    options = {
        "r_cal": "Calibrated score (r_cal)",
        "r_raw": "Composite score (r_raw), weighted mean of the components",
    }
    score = select_option("Score", options, "score") if view.version is not None else "r_raw"
    scores = apply_calibrator(view.version, view.chains)
    table = tables.histogram_table(
        scores[score], view.chains["target"], score, view.limits if score == "r_cal" else None
    )
    gone = scores.loc[scores[score].isna(), "why"]
    note = f"Chosen runs, {len(view.chains)} chains."
    if len(gone):
        most = gone.value_counts().head(3)
        note += (
            " n/a: "
            + as_code(
                "; ".join(f"{reason or 'no stored reason'} ({n})" for reason, n in most.items())
            )
            + "."
        )
    outside = int(scores["outside"].sum()) if score == "r_cal" else 0
    if outside:
        subject = "1 chain lies" if outside == 1 else f"{outside} chains lie"
        note += (
            f" {subject} outside the range of the labelled scores, and has the value at its edge."
        )
    components.show_figure(
        "score_histogram", table, key="histogram", note=note, evidence=view.evidence
    )
    components.show_card("r_raw")


def render_label_counts(view: CalibrationView) -> None:
    """Show how many labels there are, how many a fit still needs, and the form of a fit."""
    st.subheader("Labels")
    target = view.labelled["target"].astype(bool)
    clear = view.chains["target"].notna()
    components.show_numbers(
        (
            ("Chains", f"{len(view.chains):,}"),
            ("With a verdict and a score", f"{len(target):,}"),
            ("Acceptable", f"{int(target.sum()):,}"),
            ("Not acceptable", f"{int((~target).sum()):,}"),
            ("Without a clear verdict", f"{int((~clear).sum()):,}"),
        )
    )
    gaps = missing_labels_text(target)
    if gaps:
        st.info(f"A fit needs {gaps} in the chosen runs.")
    else:
        more = missing_labels_text(target, MIN_ISOTONIC, MIN_ISOTONIC_OF_CLASS)
        if more:
            st.caption(f"Isotonic would need {more}; Platt and beta can be fitted.")
    st.page_link(page("label"), label="Label chains", icon=":material/rate_review:")
    with st.expander("Fit a calibrator", expanded=view.version is None):
        _fit(view, ready=not gaps)


def missing_labels_text(
    target: pd.Series, least: int = MIN_LABELS, of_class: int = MIN_OF_CLASS
) -> str:
    """Describe how many labels are missing; "" where none is.

    Parameters
    ----------
    target : Series (n,) of bool
        The labels that there are.
    least : int
        Labels that are needed in total.
    of_class : int
        Labels that are needed of each class.
    """
    n, good = len(target), int(target.sum())
    gaps = [
        (least - n, "more labels"),
        (of_class - good, "more acceptable chains"),
        (of_class - (n - good), "more chains that are not acceptable"),
    ]
    shortages = [f"{shortfall} {what}" for shortfall, what in gaps if shortfall > 0]
    return (
        ", with at least ".join([shortages[0], " and ".join(shortages[1:])])
        if len(shortages) > 1
        else "".join(shortages)
    )


def _fit(view: CalibrationView, *, ready: bool) -> None:
    options = {"auto": "Lowest Brier score out of fold"} | {
        name: CALIBRATORS[name][0] for name in METHODS
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = st.selectbox(
            "Method", list(options), format_func=options.__getitem__, key="fit-method"
        )
        weights = st.selectbox(
            "Weights of the components",
            list(WEIGHTINGS),
            key="fit-weights",
            help=(
                "Tuned weights are chosen within each fold, so that the out-of-fold"
                " numbers are unbiased. Combined: one regression on all measured features,"
                " whose result is a probability."
            ),
        )
        by_domain = st.toggle(
            "A separate calibration map for each domain where it is better", key="fit-domain"
        )
    note = st.text_input(
        "Reason", key="fit-note", placeholder="stored with the version", max_chars=300
    )
    only = access.only("admin", disabled=not ready)
    if not st.button("Fit", type="primary", icon=":material/model_training:", key="fit", **only):
        return
    try:
        who = access.need("admin")
        with st.spinner("Fitting three calibrators, with cross-validation and bootstrap"):
            made = calibrate_runs(
                cached.store(),
                view.runs,
                by=who.name,
                method=method,
                weights=weights,
                domain=by_domain,
                note=note.strip(),
            )
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    st.session_state[FITTED] = made.version
    st.query_params.pop("version", None)
    st.rerun()


def render_calibration_notes(view: CalibrationView) -> None:
    """Show what counts as acceptable, and where a calibrated score does not hold."""
    st.caption(
        "A chain counts as acceptable if its answer is right and raters found the"
        " reasoning adequate. With several raters the majority counts; a tie, or only"
        " unsure raters, gives no verdict. A calibrated score holds for chains like the"
        " labelled ones: check for drift before you use it on others. Chains whose r_raw is"
        " undefined, stopped or refused have no r_cal."
    )


def _version() -> dict[str, Any] | None:
    """Return the calibrator version of the address, else the current one; None without any."""
    every = calibrator_store.calibrators(cached.store())
    done = st.session_state.pop(FITTED, None)
    if done is not None:
        st.success(f"Version {done} is fitted and in use.")
    if every.empty:
        return None
    rows = every.to_dict("records")
    names = {
        str(row["version"]): (
            f"Version {row['version']}: {CALIBRATORS[row['method']][0]}, {row['n']} labels"
            + (", in use" if row["current"] else "")
        )
        for row in rows
    }
    now = next((str(row["version"]) for row in rows if row["current"]), str(rows[0]["version"]))
    return version_of(cached.store(), int(select_option("Calibrator", names, "version", now)))


def load_chains(revisions: Mapping[str, int], runs: Sequence[str], stamp: int) -> pd.DataFrame:
    """Return the chains of runs with their labels.

    The cache is keyed by each run's revision and by ``stamp``, the newest label.
    """
    return _chains(str(cached.store().folder), tuple((run, revisions[run]) for run in runs), stamp)


@st.cache_data(show_spinner="Reading scores and labels", max_entries=8)
def _chains(folder: str, runs: tuple[tuple[str, int], ...], stamp: int) -> pd.DataFrame:
    return tables.with_targets(cached.store(), [run for run, _ in runs])


@st.cache_data(show_spinner=False, max_entries=8)
def _labelled_runs(folder: str, stamp: int) -> set[str]:
    return pending.labelled_runs(cached.store())
