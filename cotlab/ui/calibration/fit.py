"""The parts of the page Calibration: labels and the fit, and what a version of the calibrator is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATORS, METRICS
from cotlab.figures.style import format_number, interval_text
from cotlab.reliability.combine import combination_text
from cotlab.reliability.maps import (
    METHODS,
    MIN_ISOTONIC,
    MIN_ISOTONIC_OF_CLASS,
    MIN_LABELS,
    MIN_OF_CLASS,
)
from cotlab.review.release.apply import apply_calibrator, version_of
from cotlab.review.release.calibrate import WEIGHTINGS, calibrate_runs
from cotlab.stats.composite import WEIGHTS
from cotlab.store import calibrators as calibrator_store
from cotlab.store import pending as due
from cotlab.store import read
from cotlab.ui import access
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.links import page
from cotlab.ui.runs.picking import pick_many, run_labels
from cotlab.ui.text import as_code

FITTED = "calibration-fitted"
_SEEN, _FRESH = "seen", "fresh"


class CalibrationView(NamedTuple):
    """What the page is about: the chosen runs, their chains with r_raw and what people said, the version that is shown (None
    without one), the thresholds of the policy that holds, and the chains of the runs that the
    version saw.
    """

    runs: list[str]
    chains: pd.DataFrame
    version: dict[str, Any] | None
    limits: tuple[float, float] | None
    seen: pd.DataFrame | None

    @property
    def labelled(self) -> pd.DataFrame:
        """The chains with a clear verdict and a score: what a fit sees."""
        return self.chains[
            self.chains["target"].notna()
            & self.chains["r_raw"].notna()
            & (self.chains["status"] == "ok")
        ]

    @property
    def evidence(self) -> tuple[str, dict[str, str]]:
        return page("run"), {"run": self.runs[0]}


def select_calibration_runs() -> CalibrationView | None:
    """Pick runs and a version; None (after saying why) where no run has a composite."""
    rows = [
        row
        for row in read.list_runs(data.store()).to_dict("records")
        if any(spec.name == "composite" for spec in data.parse_plan(row["plan"]).scorers)
    ]
    if not rows:
        parts.empty(
            "No run has the composite score yet, which is what labels calibrate. Measure one with"
            " the profile phase3.",
            page("new_run"),
            "Start one",
        )
        return None
    revisions = {str(row["id"]): int(row["revision"]) for row in rows}
    stamp = due.last_label(data.store())
    labelled = _labelled_runs(str(data.store().folder), stamp)
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
        tables.current_thresholds(data.store()),
        seen_chains,
    )


def render_calibration_verdict(view: CalibrationView) -> None:
    """Whether the version's probabilities hold, in one sentence, and its reliability diagram."""
    row = view.version
    if row is None:
        return
    report = row["report"]
    best = _trial(report, row["method"])
    ece, (lo, hi) = best["ece"], best["band"]
    ece_text = (
        f"ECE {_interval_or_na(ece)} over {best['bins']} bins out of fold; with perfect"
        " probabilities it would lie from "
    )
    ece_text += f"{format_number(lo)} to {format_number(hi)}."
    if ece["point"] > hi:
        st.warning(f"Not quite: the probabilities are off by more than chance explains. {ece_text}")
    else:
        st.success(
            f"As far as {row['n']} labels can tell, yes: what is off is what chance explains."
            f" {ece_text}"
        )
    unseen = view.labelled[~view.labelled["run"].isin(report["runs"])]
    options = {_SEEN: "Labels of the fit, out of fold"}
    if len(unseen):
        options[_FRESH] = f"Labels of the chosen runs that the fit did not see ({len(unseen)})"
    on = parts.select_option("Diagram of", options, "on") if len(options) > 1 else _SEEN
    if on == _FRESH:
        scores = apply_calibrator(row, unseen)["r_cal"]
        known = scores.notna()
        table = tables.unseen_diagram_table(
            scores[known].tolist(), unseen.loc[known, "target"].astype(bool).tolist(), view.limits
        )
        note = (
            f"Version {row['version']}, on {int(known.sum())} labels of runs that it has not seen."
        )
    else:
        table = tables.reliability_diagram_table(report, view.limits)
        note = (
            f"Version {row['version']} on its own labels, each predicted by a fit without its fold"
            f" ({report['folds']} folds by question)."
        )
    parts.show_figure(
        "reliability_diagram", table, key="diagram", note=note, evidence=view.evidence
    )


def render_score_histogram(view: CalibrationView) -> None:
    """Where the scores of the chosen runs lie, by what people said."""
    st.subheader("Where do the scores lie?")
    options = {"r_cal": "r_cal, calibrated", "r_raw": "r_raw, weighed mean of the parts"}
    score = parts.select_option("Score", options, "score") if view.version is not None else "r_raw"
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
                "; ".join(f"{reason or 'no reason is stored'} ({n})" for reason, n in most.items())
            )
            + "."
        )
    outside = int(scores["outside"].sum()) if score == "r_cal" else 0
    if outside:
        subject = "1 chain scores" if outside == 1 else f"{outside} chains score"
        note += (
            f" {subject} outside the range of the labels, and the value at its edge stands for it."
        )
    parts.show_figure("score_histogram", table, key="histogram", note=note, evidence=view.evidence)
    parts.show_card("r_raw")


def render_label_counts(view: CalibrationView) -> None:
    """How many labels there are, how many a fit still needs, and the fit itself."""
    st.subheader("Labels")
    target = view.labelled["target"].astype(bool)
    clear = view.chains["target"].notna()
    parts.show_numbers(
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
        st.info(f"A fit needs {gaps} of the chosen runs.")
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
    """How many labels are missing, in words; "" where none is.

    Parameters
    ----------
    target : Series (n,) of bool
    least, of_class : int
        Labels that are needed in all, and of either class.
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
            "Weights of the parts",
            list(WEIGHTINGS),
            key="fit-weights",
            help=(
                "Tuned weights are looked for within each fold, so that the numbers out of fold"
                " stay honest. Combined: all measured features in one regression, a probability"
                " already."
            ),
        )
        by_domain = st.toggle(
            "A map of its own for each domain where that is better", key="fit-domain"
        )
    note = st.text_input("Why", key="fit-note", placeholder="kept with the version", max_chars=300)
    only = access.only("admin", disabled=not ready)
    if not st.button("Fit", type="primary", icon=":material/model_training:", key="fit", **only):
        return
    try:
        who = access.need("admin")
        with st.spinner("Fitting three calibrators, with folds and resamples"):
            made = calibrate_runs(
                data.store(),
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


def render_methods(view: CalibrationView) -> None:
    """The methods side by side, which was chosen and why, and their curves."""
    row = view.version
    if row is None:
        return
    report = row["report"]
    st.subheader("Which method?")
    st.markdown(
        as_code(
            f"In use in version {row['version']}: {CALIBRATORS[row['method']][0]}. {report['why']}"
        )
    )
    st.dataframe(method_table(report, row["method"]), hide_index=True)
    st.caption(
        f"Out of fold, {report['n']} labels of {report['n_questions']} questions; intervals:"
        " bootstrap over questions, 95 %. Skill: by how much of the base rate's Brier score"
        f" ({_interval_or_na(report['base_brier'])}) the method's is lower."
    )
    if report["left_out"]:
        gone = "; ".join(f"{reason} ({n})" for reason, n in report["left_out"].items())
        st.caption(as_code(f"Labelled items that the fit left out: {gone}."))
    parts.show_figure(
        "calibrator_comparison",
        tables.method_comparison_table(report, row["method"]),
        key="comparison",
    )
    if "combination" in report:
        st.caption(as_code(f"No curve of one score: {combination_text(report['combination'])}."))
    else:
        parts.show_figure("calibrator_curves", tables.curve_table(row, view.limits), key="curves")


def method_table(report: Mapping[str, Any], chosen: str) -> pd.DataFrame:
    """A row for each method, numbers with their intervals as text; a refused one says why."""
    rows = []
    for trial in report["methods"]:
        name = CALIBRATORS.get(trial["method"], (trial["method"],))[0]
        cells = {head: _interval_or_na(trial.get(metric)) for metric, (head, _) in METRICS.items()}
        refused, skill = trial["refused"], trial.get("skill")
        rows.append(
            {
                "Method": f"{name} (in use)" if trial["method"] == chosen else name,
                **cells,
                "ECE if perfect": (
                    " to ".join(map(format_number, trial["band"])) if "band" in trial else "n/a"
                ),
                "Skill": format_number(skill),
                "Note": refused or trial["note"],
            }
        )
    return pd.DataFrame(rows)


def render_domains(view: CalibrationView) -> None:
    """Which domains have a map of their own, and which fall back to the one over all."""
    domain_reports = view.version["report"]["domains"] if view.version is not None else {}
    if view.version is None:
        return
    st.subheader("By domain")
    if not domain_reports:
        st.caption("One map for all domains: this version was fitted without maps of their own.")
        return
    rows = []
    for name, domain_report in domain_reports.items():
        best: Mapping[str, Any] = next(
            (
                trial
                for trial in domain_report["methods"]
                if trial["method"] == domain_report["chosen"]
            ),
            {},
        )
        rows.append(
            {
                "Domain": name,
                "Map in use": "its own" if domain_report["used"] == "own" else "over all",
                "Labels": domain_report["n"],
                "Acceptable": domain_report["n_positive"],
                "Own minus all": _interval_or_na(domain_report.get("difference")),
                "Brier, own map": _interval_or_na(domain_report.get("own") or best.get("brier")),
                "Brier, map over all": _interval_or_na(domain_report.get("all")),
                "Own map": (
                    CALIBRATORS[domain_report["chosen"]][0] if domain_report["chosen"] else "n/a"
                ),
                "Why": domain_report["why"],
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    st.caption(
        "Brier scores out of fold on the domain's own labels, lower is better; 95 % intervals by"
        " bootstrap over questions, paired for the difference. A domain's own map is used only"
        " where the whole interval of the difference lies below 0; else the map over all holds,"
        " which the figures above are of."
    )


def render_weights(view: CalibrationView) -> None:
    """Tuned weights against the example weights, where the version has them."""
    if view.version is None:
        return
    st.subheader("Weights of the parts")
    weights_report = view.version["report"]["weights"]
    if "combination" in view.version["report"]:
        st.caption("All measured features are combined: no weights of parts.")
        return
    if weights_report is None:
        st.caption(
            "r_raw is each run's own, by the example weights "
            + ", ".join(f"{part} {weight:.2f}" for part, weight in WEIGHTS.items())
            + ", which are an illustration. A fit with tuned weights compares them with the"
            " example's on the same labels."
        )
        return
    objective = {"auc": "AUROC", "brier": "Brier score"}[weights_report["objective"]]
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Part": part,
                    "Example": f"{weight:.2f}",
                    "Tuned": f"{weights_report['weights'].get(part, 0.0):.3f}",
                    "Tuned in each fold": ", ".join(
                        f"{fold_weights.get(part, 0.0):.2f}"
                        for fold_weights in weights_report["fold_weights"]
                    ),
                }
                for part, weight in WEIGHTS.items()
            ]
        ),
        hide_index=True,
    )
    parts.show_numbers(
        (
            (f"{objective}, example", _interval_or_na(weights_report["example"])),
            (f"{objective}, tuned", _interval_or_na(weights_report["tuned"])),
            ("Tuned minus example", _interval_or_na(weights_report["difference"])),
        )
    )
    st.markdown(as_code(weights_report["why"]))
    st.caption(
        f"Nested: weights of each of {weights_report['folds']} folds were found without it. n ="
        f" {weights_report['n']} labels, {weights_report['left_out']} left out for parts that no"
        " weights allow for. Difference: paired bootstrap over questions, 95 %."
    )


def render_calibration_notes(view: CalibrationView) -> None:
    st.caption(
        "A chain counts as acceptable where its answer is right and people found the reasoning"
        " adequate; of several raters the majority counts, a tie or nobody sure gives no verdict. A"
        " calibrated score holds for chains like the labelled ones: check drift before it is used"
        " on others. Chains whose r_raw is undefined, stopped or refused have no r_cal."
    )


def _version() -> dict[str, Any] | None:
    """The version that the address names, else the one in use; None where there is none."""
    every = calibrator_store.calibrators(data.store())
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
    return version_of(data.store(), int(parts.select_option("Calibrator", names, "version", now)))


def _trial(report: Mapping[str, Any], method: str) -> dict[str, Any]:
    match_: dict[str, Any] = next(trial for trial in report["methods"] if trial["method"] == method)
    return match_


def _interval_or_na(estimate: Mapping[str, Any] | None) -> str:
    """A stored interval as text; n/a where there is no point."""
    return (
        "n/a"
        if estimate is None
        else interval_text(estimate["point"], estimate["lo"], estimate["hi"])
    )


def load_chains(revisions: Mapping[str, int], runs: Sequence[str], stamp: int) -> pd.DataFrame:
    """The chains of runs with what people said; read again where a run's revision or the newest label (``stamp``) changed."""
    return _chains(str(data.store().folder), tuple((run, revisions[run]) for run in runs), stamp)


@st.cache_data(show_spinner="Reading scores and labels", max_entries=8)
def _chains(folder: str, runs: tuple[tuple[str, int], ...], stamp: int) -> pd.DataFrame:
    return tables.with_targets(data.store(), [run for run, _ in runs])


@st.cache_data(show_spinner=False, max_entries=8)
def _labelled_runs(folder: str, stamp: int) -> set[str]:
    return due.labelled_runs(data.store())
