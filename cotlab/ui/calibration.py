"""The tab Calibrate: scores against labels, the fit of a calibrator, its versions, and steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATION_METRICS, CALIBRATOR_STYLES
from cotlab.figures.style import format_number, interval_text
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.reliability.combination import combination_text
from cotlab.reliability.maps import (
    COMBINED_METHOD,
    METHODS,
    MIN_ISOTONIC_LABELS,
    MIN_ISOTONIC_PER_CLASS,
    MIN_LABELS,
    MIN_LABELS_PER_CLASS,
)
from cotlab.review.labelling import truth
from cotlab.review.release.apply import apply_calibrator, calibrator_target, load_calibrator_row
from cotlab.review.release.calibrate import WEIGHTINGS, calibrate_runs, roll_back_calibrator
from cotlab.review.release.step_hazard import SCORES_MODEL, TEXT_MODEL, fit_step_hazard
from cotlab.stats.composite import EXAMPLE_WEIGHTS
from cotlab.store import calibrators as calibrator_store
from cotlab.store import pending
from cotlab.ui import access, cached, charts, components
from cotlab.ui.address import write_address
from cotlab.ui.more import render_more
from cotlab.ui.navigation import default_run, opened_run
from cotlab.ui.pickers import pick_options, run_labels, select_option, without_archived
from cotlab.ui.places import PageLink, run_link
from cotlab.ui.text import escape_markdown

MESSAGE_KEY = "calibration-message"
"""Key of the message to show on the next run of the page."""


class CalibrationView(NamedTuple):
    """What the tab Calibrate shows."""

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
    def evidence_link(self) -> PageLink:
        """The link "Evidence"."""
        return run_link(self.run_ids[0])


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
            "new_run",
            "Start a run",
            {"profile": "phase3"},
        )
        return None
    revision_by_run = {row.id: row.revision for row in rows}
    newest_label_number = cached.read_once(pending.last_label_number)
    labelled_run_ids = cached.read_once(pending.labelled_runs)
    measured_run_ids = [i for i in revision_by_run if i not in cached.unmeasured_runs()]
    newest_run_id = (measured_run_ids or list(revision_by_run))[0]
    opened_run_id = default_run(newest_run_id, revision_by_run)
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
    fit_chains = None
    if set(fit_run_ids) <= set(revision_by_run):
        fit_revisions = tuple((i, revision_by_run[i]) for i in fit_run_ids)
        fit_target, is_joined = calibrator_target(version), "joined_runs" in fit_report
        fit_chains = _load_chains(
            fit_revisions, newest_label_number, fit_target, is_joined=is_joined
        )
    revisions = tuple((i, revision_by_run[i]) for i in run_ids)
    chains = _load_chains(revisions, newest_label_number, target, is_joined=True)
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


@cached.cache_by_store(8, "Reading scores and labels")
def _load_chains(
    run_revisions: tuple[tuple[str, int], ...],
    newest_label_number: int,
    target: str,
    *,
    is_joined: bool,
) -> pd.DataFrame:
    """Return the chains of runs with their labels' target."""
    run_ids = [run_id for run_id, _ in run_revisions]
    return tables.with_targets(cached.store(), run_ids, target, is_joined=is_joined)


def rerun_with_message(message: str) -> None:
    """Run the page again with the version that is now in use, and a message about it."""
    st.session_state[MESSAGE_KEY] = message
    write_address({"version": None})
    st.rerun()


def render_calibrate_tab() -> None:
    """Show how well the scores predict the labels, and fit a calibrator."""
    view = select_calibration_runs()
    if view is not None:
        _render_view(view)
    render_more("first mistake by step", render_step_models, name="steps")


def _render_view(view: CalibrationView) -> None:
    if view.version is not None:
        render_calibration_verdict(view, view.version)
    render_label_counts(view)
    if view.version is None:
        render_score_histogram(view)
    else:
        render_more(
            "distribution of the scores",
            partial(render_score_histogram, view),
            name="scores",
            params=("score",),
        )
        render_more(
            "calibration methods, domains and weights",
            partial(render_methods, view, view.version),
            partial(render_domains, view.version),
            partial(render_weights, view.version),
        )
        render_more(
            "versions, and putting another into use",
            partial(render_versions, view, view.version),
            name="versions",
        )
    render_calibration_notes(view)


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
    components.page_link("label", "Label chains", "rate_review")
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


_FIT_LABEL_SET, _UNSEEN_LABEL_SET = "seen", "fresh"


def render_calibration_verdict(view: CalibrationView, version: Mapping[str, Any]) -> None:
    """Show whether the version is calibrated, with its reliability diagram."""
    report = version["report"]
    trial = _find_trial(report, version["method"])
    ece, (lo, hi) = trial["ece"], trial["band"]
    ece_text = (
        f"ECE {_interval_or_na_text(ece)} over {trial['bins']} bins out of fold; with perfect"
        f" probabilities it would lie from {format_number(lo)} to {format_number(hi)}."
    )
    if ece["point"] > hi:
        st.warning(f"Not calibrated: the error is larger than chance explains. {ece_text}")
    else:
        st.success(
            f"As far as {version['n']} labels can show, it is calibrated: chance explains the"
            f" error. {ece_text}"
        )
    unseen_chains = view.labelled_chains[~view.labelled_chains["run"].isin(report["runs"])]
    label_sets = {_FIT_LABEL_SET: "Labels of the fit, out of fold"}
    if len(unseen_chains):
        label_sets[_UNSEEN_LABEL_SET] = (
            f"Labels of the chosen runs that the fit did not see ({len(unseen_chains)})"
        )
    label_set = (
        select_option("Diagram of", label_sets, "on") if len(label_sets) > 1 else _FIT_LABEL_SET
    )
    if label_set == _UNSEEN_LABEL_SET:
        scores = apply_calibrator(version, unseen_chains)["r_cal"]
        has_score = scores.notna()
        table = tables.unseen_diagram_table(
            scores[has_score].tolist(),
            unseen_chains.loc[has_score, "target"].astype(bool).tolist(),
            view.thresholds,
        )
        n_labels = int(has_score.sum())
        note = f"Version {version['version']}, on {n_labels} labels of runs that it has not seen."
        is_printed = len(view.run_ids) == 1 and view.target == calibrator_target(version)
        printed_runs = view.run_ids if is_printed else []
    else:
        table = tables.reliability_diagram_table(report, view.thresholds)
        note = (
            f"Version {version['version']} on its own labels, each predicted by a fit without its"
            f" fold ({report['folds']} folds by question)."
        )
        printed_runs = report["runs"]
    charts.show_figure(
        "reliability_diagram",
        table,
        key="diagram",
        note=note,
        evidence=view.evidence_link,
        paper=view.paper_figure("reliability_diagram", printed_runs),
    )


def render_methods(view: CalibrationView, version: Mapping[str, Any]) -> None:
    """Compare the calibration methods, say which was chosen and why, and draw their curves."""
    report = version["report"]
    st.header("Calibration methods")
    method_label = CALIBRATOR_STYLES[version["method"]][0]
    st.markdown(
        escape_markdown(f"In use in version {version['version']}: {method_label}. {report['why']}")
    )
    st.dataframe(method_table(report, version["method"]), hide_index=True)
    st.caption(
        f"Out of fold, {report['n']} labels of {report['n_questions']} questions;"
        " intervals: bootstrap over questions, 95 %. Skill: relative reduction of the Brier"
        f" score against that of the base rate, {_interval_or_na_text(report['base_brier'])}."
    )
    if report["left_out"]:
        left_out_text = "; ".join(f"{reason} ({n})" for reason, n in report["left_out"].items())
        st.caption(escape_markdown(f"Labelled items that the fit left out: {left_out_text}."))
    charts.show_figure(
        "calibrator_comparison",
        tables.method_comparison_table(report, version["method"]),
        key="comparison",
        paper=view.paper_figure("calibrator_comparison", view.printable_runs),
    )
    if "baselines" in report:
        render_baselines(report)
    if "combination" in report:
        st.caption(
            escape_markdown(
                f"There is no curve over one score: {combination_text(report['combination'])}."
            )
        )
    else:
        charts.show_figure(
            "calibrator_curves",
            tables.curve_table(version, view.thresholds),
            key="curves",
            paper=view.paper_figure("calibrator_curves", view.printable_runs),
        )


def method_table(report: Mapping[str, Any], chosen_method: str) -> pd.DataFrame:
    """Return one row per method, with intervals as text; a refused method has its reason."""
    rows = []
    for trial in report["methods"]:
        method_label = CALIBRATOR_STYLES.get(trial["method"], (trial["method"],))[0]
        interval_texts = {
            heading: _interval_or_na_text(trial.get(metric))
            for metric, (heading, _) in CALIBRATION_METRICS.items()
        }
        refusal_reason, skill = trial["refused"], trial.get("skill")
        rows.append(
            {
                "Method": f"{method_label} (in use)"
                if trial["method"] == chosen_method
                else method_label,
                **interval_texts,
                "ECE if perfect": (
                    " to ".join(map(format_number, trial["band"])) if "band" in trial else "n/a"
                ),
                "Skill": format_number(skill),
                "Note": refusal_reason or trial["note"],
            }
        )
    return pd.DataFrame(rows)


def render_domains(version: Mapping[str, Any]) -> None:
    """Show which domains have their own calibration map and which use the overall one."""
    domain_reports = version["report"]["domains"]
    st.header("By domain")
    if not domain_reports:
        st.caption("One map for all domains: this version was fitted without maps per domain.")
        return
    rows = []
    for domain, domain_report in domain_reports.items():
        domain_trial = _find_trial(domain_report, domain_report["chosen"])
        rows.append(
            {
                "Domain": domain,
                "Map in use": "its own" if domain_report["used"] == "own" else "over all",
                "Labels": domain_report["n"],
                "Acceptable": domain_report["n_positive"],
                "Own minus overall": _interval_or_na_text(domain_report.get("difference")),
                "Brier, own map": _interval_or_na_text(
                    domain_report.get("own") or domain_trial.get("brier")
                ),
                "Brier, overall map": _interval_or_na_text(domain_report.get("all")),
                "Own map": (
                    CALIBRATOR_STYLES[domain_report["chosen"]][0]
                    if domain_report["chosen"]
                    else "n/a"
                ),
                "Reason": domain_report["why"],
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    st.caption(
        "Brier scores out of fold on the domain's own labels, lower is better; 95 %"
        " intervals by bootstrap over questions, paired for the difference. A domain's own"
        " map is used only where the whole interval of the difference lies below 0; else"
        " the overall map is used, which the figures above show."
    )


def render_weights(version: Mapping[str, Any]) -> None:
    """Compare tuned weights with the example weights, where the version has tuned ones."""
    st.header("Weights of the components")
    weights_report = version["report"]["weights"]
    if "combination" in version["report"]:
        st.caption("All measured features are combined: components have no weights.")
        return
    if weights_report is None:
        weights_text = ", ".join(
            f"{component} {weight:.2f}" for component, weight in EXAMPLE_WEIGHTS.items()
        )
        st.caption(
            f"r_raw is computed in each run with the example weights {weights_text}, which are an"
            " illustration. A fit with tuned weights compares both on the same labels."
        )
        return
    objective = {"auc": "AUROC", "brier": "Brier score"}[weights_report["objective"]]
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Part": component,
                    "Example": f"{weight:.2f}",
                    "Tuned": f"{weights_report['weights'].get(component, 0.0):.3f}",
                    "Tuned in each fold": ", ".join(
                        f"{fold_weights.get(component, 0.0):.2f}"
                        for fold_weights in weights_report["fold_weights"]
                    ),
                }
                for component, weight in EXAMPLE_WEIGHTS.items()
            ]
        ),
        hide_index=True,
    )
    components.show_numbers(
        (
            (f"{objective}, example", _interval_or_na_text(weights_report["example"])),
            (f"{objective}, tuned", _interval_or_na_text(weights_report["tuned"])),
            ("Tuned minus example", _interval_or_na_text(weights_report["difference"])),
        )
    )
    st.markdown(escape_markdown(weights_report["why"]))
    st.caption(
        f"Nested: weights of each of {weights_report['folds']} folds were found without it. n ="
        f" {weights_report['n']} labels, {weights_report['left_out']} left out for parts that no"
        " weights allow for. Difference: paired bootstrap over questions, 95 %."
    )


def _find_trial(report: Mapping[str, Any], method: str) -> dict[str, Any]:
    return next((trial for trial in report["methods"] if trial["method"] == method), {})


def _interval_or_na_text(estimate: Mapping[str, Any] | None) -> str:
    """Format a stored interval; "n/a" where it has no point estimate."""
    return (
        "n/a"
        if estimate is None
        else interval_text(estimate["point"], estimate["lo"], estimate["hi"])
    )


def render_versions(view: CalibrationView, version: Mapping[str, Any]) -> None:
    """List every version with the digest of its labels, and offer a rollback."""
    st.header("Versions")
    versions = cached.read_once(calibrator_store.list_calibrators)
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Version": row["version"],
                    "In use": "yes" if row["current"] else "",
                    "Method": CALIBRATOR_STYLES[row["method"]][0],
                    "Labels": row["n"],
                    "Acceptable": row["n_positive"],
                    "Weights": _weights_label(row),
                    "Labels digest": str(row["labels_digest"])[:12],
                    "Made": f"{row['made_at']:%Y-%m-%d %H:%M}",
                    "By": row["made_by"],
                    "Note": row["note"],
                }
                for row in versions.to_dict("records")
            ]
        ),
        hide_index=True,
    )
    change_note = "One of its runs is no longer in the store."
    if view.fit_chains is not None:
        change_note = tables.calibrator_changes_text(view.fit_chains, version)
    st.caption(
        f"Labels digest of version {version['version']}: {version['labels_digest']}. {change_note}"
    )
    render_version_choice(versions, calibrator_store.CHAIN_KIND)


def _weights_label(row: Mapping[str, Any]) -> str:
    if row["method"] == COMBINED_METHOD:
        return "combined"
    return "example" if pd.isna(row["weights"]) else "tuned"


def render_version_choice(versions: pd.DataFrame, kind: str) -> None:
    """Offer a rollback to another version of a kind, and show which was in use when."""
    with st.expander("Put another version into use"):
        _render_rollback(versions, "back" if kind == calibrator_store.CHAIN_KIND else "steps-back")
    with st.expander("History of the version in use"):
        history = calibrator_store.list_calibrator_choices(cached.store(), kind)
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "From": f"{row['at_']:%Y-%m-%d %H:%M:%S}",
                        "Version": row["version"],
                        "By": row["by_"],
                        "Reason": row["reason"],
                    }
                    for row in history.to_dict("records")
                ]
            ),
            hide_index=True,
        )


def _render_rollback(versions: pd.DataFrame, key: str) -> None:
    other_versions = [
        int(row["version"]) for row in versions.to_dict("records") if not row["current"]
    ]
    if not other_versions:
        st.caption("There is no other version.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        version = st.selectbox("Version", other_versions, key=f"{key}-version")
        reason = st.text_input(
            "Reason", key=f"{key}-reason", max_chars=300, placeholder="stored in the audit log"
        )
    if not st.button(
        "Use this version", icon=":material/undo:", key=key, **access.role_control("admin")
    ):
        return
    try:
        admin = access.require_role("admin")
        roll_back_calibrator(cached.store(), version, author=admin.name, reason=reason)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    rerun_with_message(f"Version {version} is in use.")


def render_baselines(report: Mapping[str, Any]) -> None:
    """Show a combined fit beside length, answer correctness and both, and on unseen domains."""
    st.header("Beside what is trivial to know")
    st.dataframe(pd.DataFrame(baseline_rows(report)), hide_index=True)
    st.caption(
        "Each is fitted in the same folds; differences are paired, 95 % intervals by bootstrap over"
        " questions. A version is kept only where the whole interval of its Brier score minus that"
        " of the best baseline lies below 0; one with the answer counts where the fit reads it."
    )
    unseen = report["unseen_domains"]
    if not unseen:
        st.caption("The labels are of one domain: how the fit does on others is not known.")
        return
    st.dataframe(pd.DataFrame(unseen_domain_rows(unseen)), hide_index=True)
    st.caption("Each domain (suite, where items have none) is predicted by a fit on the others.")


def baseline_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one row a baseline, with intervals as text; where it is not measured, why not."""
    return [
        {
            "Alone": name,
            "AUROC": _interval_or_na_text(entry["auroc"]),
            "Brier": _interval_or_na_text(entry["brier"]),
            "Combined minus it, AUROC": _interval_or_na_text(entry["auroc_difference"]),
            "Combined minus it, Brier": _interval_or_na_text(entry["brier_difference"]),
            "To beat": "yes" if entry["is_bar"] else "",
            "Note": entry["reason"],
        }
        for name, entry in report["baselines"].items()
    ]


def unseen_domain_rows(unseen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row a domain that the fit did not see, after all of them together."""
    return [
        {
            "Domain": name,
            "Labels": entry["n"],
            "Acceptable": entry["n_positive"],
            "AUROC": _interval_or_na_text(entry["auroc"]),
            "Brier": _interval_or_na_text(entry["brier"]),
            "AUROC, length alone": _interval_or_na_text(entry["auroc_length"]),
            "Note": entry.get("reason", ""),
        }
        for name, entry in (("All", unseen["all"]), *unseen["domains"].items())
    ]


def render_step_models() -> None:
    """List the versions for the steps, and offer a fit on all runs whose steps were judged."""
    st.header("First mistake by step")
    versions = calibrator_store.list_calibrators(cached.store(), calibrator_store.STEP_KIND)
    if message := st.session_state.pop(MESSAGE_KEY, None):
        st.success(message)
    if len(versions):
        cells = [_version_cells(row) for row in versions.to_dict("records")]
        st.dataframe(pd.DataFrame(cells), hide_index=True)
    st.caption(
        "A version gives each step of a chain a probability of being the first wrong one; an item"
        " shows it under “Look here first”. PB-F1 (in percent, out of fold): harmonic mean of exact"
        " steps in chains with a mistake and of none in chains without, averaged over the domains."
        " A fit that does not beat position and length alone is not kept."
    )
    if len(versions):
        render_version_choice(versions, calibrator_store.STEP_KIND)
    if not st.button(
        "Fit on all labelled steps",
        icon=":material/footprint:",
        key="fit-steps",
        **access.role_control("admin"),
    ):
        return
    try:
        admin = access.require_role("admin")
        with st.spinner("Fitting the steps, with cross-validation and bootstrap"):
            fit = fit_step_hazard(cached.store(), None, author=admin.name)
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    if fit.refusal:
        st.warning(escape_markdown(f"No version is kept: {fit.refusal}"))
        return
    rerun_with_message(f"Version {fit.version} is fitted and in use for the steps.")


def _version_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    models = json.loads(row["report"])["models"]
    model = models.get(SCORES_MODEL, models[TEXT_MODEL])
    return {
        "Version": row["version"],
        "In use": "yes" if row["current"] else "",
        "Chains": row["n"],
        "Without a mistake": row["n_positive"],
        "PB-F1": _percent_text(model["pb_f1"]),
        "Minus position and length": _percent_text(model["difference"]),
        "Domains": ", ".join(json.loads(row["report"])["domains"]),
        "Made": f"{row['made_at']:%Y-%m-%d %H:%M}",
        "By": row["made_by"],
        "Note": row["note"],
    }


def _percent_text(estimate: Mapping[str, Any]) -> str:
    return interval_text(
        *(None if estimate[key] is None else 100 * estimate[key] for key in ("point", "lo", "hi"))
    )
