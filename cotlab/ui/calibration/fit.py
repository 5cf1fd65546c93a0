"""The tab Calibrate, fit: the labels and scores of the chosen runs, and a new fit."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATOR_STYLES
from cotlab.reliability.maps import (
    METHODS,
    MIN_ISOTONIC_LABELS,
    MIN_ISOTONIC_PER_CLASS,
    MIN_LABELS,
    MIN_LABELS_PER_CLASS,
)
from cotlab.review.release.apply import (
    apply_calibrator,
    calibrator_target,
)
from cotlab.review.release.calibrate import WEIGHTINGS, calibrate_runs
from cotlab.ui import access, cached, charts, components
from cotlab.ui.calibration.runs import CalibrationView, rerun_with_message
from cotlab.ui.components import page_link
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown


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
    page_link("label", "Label chains", "rate_review")
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
