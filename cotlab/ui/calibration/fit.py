"""The page Calibration, runs and fit: the labels and scores of the chosen runs, and a new fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.core.resources import page_path
from cotlab.figures.calibration import CALIBRATOR_STYLES
from cotlab.metrics.text_features.scorer import NAME as TEXT_FEATURES
from cotlab.reliability.maps import (
    METHODS,
    MIN_ISOTONIC_LABELS,
    MIN_ISOTONIC_PER_CLASS,
    MIN_LABELS,
    MIN_LABELS_PER_CLASS,
)
from cotlab.review.labelling import truth
from cotlab.review.release.apply import (
    apply_calibrator,
    calibrator_target,
    load_calibrator_row,
)
from cotlab.review.release.calibrate import WEIGHTINGS, calibrate_runs
from cotlab.store import calibrators as calibrator_store
from cotlab.store import pending
from cotlab.ui import access, cached, charts, components
from cotlab.ui.address import write_address
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
        if any(
            spec.name in ("composite", TEXT_FEATURES)
            for spec in cached.parse_plan(row["plan"]).scorers
        )
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
    revision_by_run = {str(row["id"]): int(row["revision"]) for row in rows}
    newest_label_number = pending.last_label_number(cached.store())
    labelled_run_ids = _cached_labelled_runs(str(cached.store().folder), newest_label_number)
    measured_run_ids = [i for i in revision_by_run if i not in cached.unmeasured_runs()]
    default_run_ids = [i for i in revision_by_run if i in labelled_run_ids] or (
        measured_run_ids or list(revision_by_run)
    )[:1]
    run_ids = pick_options(
        "Runs",
        run_labels(rows),
        "run",
        default_run_ids,
        help="By default every run that has labels.",
    )
    if not run_ids:
        st.info("Choose a run.")
        return None
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
    thresholds = tables.current_thresholds(cached.store())
    current = calibrator_store.current_calibrator(cached.store())
    is_in_use = (version or {}).get("version") == (current or {}).get("version")
    printable_runs = tuple(
        row["id"]
        for row in sorted(rows, key=lambda row: row["id"] not in run_ids)
        if is_in_use and cached.has_scorer(row, "composite")
    )
    return CalibrationView(run_ids, chains, version, thresholds, target, fit_chains, printable_runs)


def render_score_histogram(view: CalibrationView) -> None:
    """Show the distribution of the chosen runs' scores by label."""
    st.header("Distribution of the scores")
    score_labels = {
        "r_cal": "Calibrated score (r_cal)",
        "r_raw": "Composite score (r_raw), weighted mean of the components",
    }
    score_name = (
        select_option("Score", score_labels, "score") if view.version is not None else "r_raw"
    )
    scores = apply_calibrator(view.version, view.chains)
    table = tables.histogram_table(
        scores[score_name],
        view.chains["target"],
        score_name,
        view.thresholds if score_name == "r_cal" else None,
    )
    reasons = scores.loc[scores[score_name].isna(), "why"].replace("", "no stored reason")
    note = f"Chosen runs, {len(view.chains)} chains."
    if len(reasons):
        counts = reasons.value_counts().head(3).items()
        note += f" n/a: {escape_markdown('; '.join(f'{reason} ({n})' for reason, n in counts))}."
    n_outside_range = int(scores["outside"].sum()) if score_name == "r_cal" else 0
    if n_outside_range:
        chains_text = "1 chain lies" if n_outside_range == 1 else f"{n_outside_range} chains lie"
        note += (
            f" {chains_text} outside the range of the labelled scores, and has the value at its"
            " edge."
        )
    is_printed = (
        len(view.run_ids) == 1
        and score_name == ("r_raw" if view.version is None else "r_cal")
        and view.target == calibrator_target(view.version)
    )
    charts.show_figure(
        "score_histogram",
        table,
        key="histogram",
        note=note,
        evidence=view.evidence_link,
        paper=view.paper_figure("score_histogram", view.run_ids) if is_printed else None,
    )
    if not is_printed:
        st.caption("To use this figure in a paper, choose one run, r_cal, and the default target.")
    components.show_card("r_raw")


def render_label_counts(view: CalibrationView) -> None:
    """Show how many labels there are, how many a fit still needs, and the form of a fit."""
    st.header("Labels")
    target = view.labelled_chains["target"].astype(bool)
    has_verdict = view.chains["target"].notna()
    verdicts = view.chains.loc[has_verdict, "target"].astype(bool)
    components.show_numbers(
        (
            ("Chains", f"{len(view.chains):,}"),
            ("With a verdict", f"{len(verdicts):,}"),
            ("Acceptable", f"{int(verdicts.sum()):,}"),
            ("Not acceptable", f"{int((~verdicts).sum()):,}"),
            ("With a verdict and an r_raw", f"{len(target):,}"),
            ("Without a clear verdict", f"{int((~has_verdict).sum()):,}"),
        )
    )
    missing_text = missing_labels_text(target)
    all_missing_text = missing_labels_text(verdicts)
    if missing_text and not all_missing_text:
        st.info(
            f"A fit of r_raw needs {missing_text} with an r_raw; {len(verdicts):,} chains"
            " have a verdict, so all measured features can be combined."
        )
    elif missing_text:
        st.info(f"A fit needs {missing_text} in the chosen runs.")
    else:
        isotonic_missing_text = missing_labels_text(
            target, MIN_ISOTONIC_LABELS, MIN_ISOTONIC_PER_CLASS
        )
        if isotonic_missing_text:
            st.caption(
                f"Isotonic would need {isotonic_missing_text}; Platt and beta can be fitted."
            )
    st.page_link(page_path("label"), label="Label chains", icon=":material/rate_review:")
    with st.expander("Fit a calibrator", expanded=view.version is None):
        _render_fit_form(view, can_fit=not all_missing_text)


def missing_labels_text(
    target: pd.Series,
    min_labels: int = MIN_LABELS,
    min_labels_per_class: int = MIN_LABELS_PER_CLASS,
) -> str:
    """Describe how many labels are missing; "" where none is.

    Parameters
    ----------
    target : Series (n,) of bool
        The labels that there are.
    min_labels : int
        Labels that are needed in total.
    min_labels_per_class : int
        Labels that are needed of each class.
    """
    n, n_positive = len(target), int(target.sum())
    shortfalls = [
        (min_labels - n, "more labels"),
        (min_labels_per_class - n_positive, "more acceptable chains"),
        (min_labels_per_class - (n - n_positive), "more chains that are not acceptable"),
    ]
    shortage_texts = [
        f"{shortfall} {label_kind}" for shortfall, label_kind in shortfalls if shortfall > 0
    ]
    class_shortages_text = " and ".join(shortage_texts[1:])
    return (
        f"{shortage_texts[0]}, with at least {class_shortages_text}"
        if class_shortages_text
        else "".join(shortage_texts)
    )


def _render_fit_form(view: CalibrationView, *, can_fit: bool) -> None:
    method_labels = {"auto": "Lowest Brier score out of fold"} | {
        name: CALIBRATOR_STYLES[name][0] for name in METHODS
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = st.selectbox(
            "Method", list(method_labels), format_func=method_labels.__getitem__, key="fit-method"
        )
        weighting = st.selectbox(
            "Weights of the components",
            list(WEIGHTINGS),
            key="fit-weights",
            help=(
                "Tuned weights are chosen within each fold, so that the out-of-fold"
                " numbers are unbiased. Combined: one regression on all measured features,"
                " whose result is a probability."
            ),
        )
        use_domain_maps = st.toggle(
            "A separate calibration map for each domain where it is better", key="fit-domain"
        )
    note = st.text_input(
        "Reason", key="fit-note", placeholder="stored with the version", max_chars=300
    )
    button_options = access.role_control("admin", disabled=not can_fit)
    if not st.button(
        "Fit", type="primary", icon=":material/model_training:", key="fit", **button_options
    ):
        return
    try:
        admin = access.require_role("admin")
        with st.spinner("Fitting three calibrators, with cross-validation and bootstrap"):
            calibration = calibrate_runs(
                cached.store(),
                view.run_ids,
                author=admin.name,
                method=method,
                weights=weighting,
                domain=use_domain_maps,
                target=view.target,
                note=note.strip(),
            )
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    if calibration.refusal:
        st.warning(escape_markdown(f"No version is kept: {calibration.refusal}"))
        charts.show_figure(
            "calibrator_comparison",
            tables.method_comparison_table(calibration.report, None),
            key="comparison-refused",
        )
        return
    rerun_with_message(f"Version {calibration.version} is fitted and in use.")


def rerun_with_message(message: str) -> None:
    """Run the page again with the version that is now in use, and a message about it."""
    st.session_state[MESSAGE_KEY] = message
    write_address({"version": None})
    st.rerun()


def render_calibration_notes(view: CalibrationView) -> None:
    """Show what counts as acceptable, and where a calibrated score does not hold."""
    st.caption(
        "A chain counts as acceptable by the target: unless another is chosen, if its answer is"
        " right and raters found the reasoning adequate. With several raters the majority counts;"
        " a tie, or only unsure raters, gives no verdict. Where no rater labelled a chain, labels"
        " that came with its suite count. A calibrated score holds for chains like the"
        " labelled ones: check for drift before you use it on others. Chains whose r_raw is"
        " undefined, stopped or refused have no r_cal; where a version combines all measured"
        " features, one whose r_raw is undefined may have one."
    )


def _select_version() -> dict[str, Any] | None:
    """Return the calibrator version of the address, else the current one; None without any."""
    versions = calibrator_store.list_calibrators(cached.store())
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
