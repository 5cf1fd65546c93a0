"""The page Calibration, versions: how well one is calibrated, its methods, and a rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATORS, METRICS
from cotlab.figures.style import format_number, interval_text
from cotlab.reliability.calibrator import COMBINED
from cotlab.reliability.combine import combination_text
from cotlab.review.release.apply import apply_calibrator
from cotlab.review.release.calibrate import rollback
from cotlab.stats.composite import WEIGHTS
from cotlab.store import calibrators as calibrator_store
from cotlab.ui import access, cached, components
from cotlab.ui.calibration.fit import CalibrationView
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

_SEEN, _FRESH = "seen", "fresh"
RESTORED = "calibration-back"


def render_calibration_verdict(view: CalibrationView) -> None:
    """Show whether the version is calibrated, with its reliability diagram."""
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
        st.warning(f"Not calibrated: the error is larger than chance explains. {ece_text}")
    else:
        st.success(
            f"As far as {row['n']} labels can show, it is calibrated: chance explains the"
            f" error. {ece_text}"
        )
    unseen = view.labelled[~view.labelled["run"].isin(report["runs"])]
    options = {_SEEN: "Labels of the fit, out of fold"}
    if len(unseen):
        options[_FRESH] = f"Labels of the chosen runs that the fit did not see ({len(unseen)})"
    on = select_option("Diagram of", options, "on") if len(options) > 1 else _SEEN
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
    components.show_figure(
        "reliability_diagram", table, key="diagram", note=note, evidence=view.evidence
    )


def render_methods(view: CalibrationView) -> None:
    """Compare the calibration methods, say which was chosen and why, and draw their curves."""
    row = view.version
    if row is None:
        return
    report = row["report"]
    st.subheader("Calibration methods")
    st.markdown(
        as_code(
            f"In use in version {row['version']}: {CALIBRATORS[row['method']][0]}. {report['why']}"
        )
    )
    st.dataframe(method_table(report, row["method"]), hide_index=True)
    st.caption(
        f"Out of fold, {report['n']} labels of {report['n_questions']} questions;"
        " intervals: bootstrap over questions, 95 %. Skill: relative reduction of the Brier"
        f" score against that of the base rate, {_interval_or_na(report['base_brier'])}."
    )
    if report["left_out"]:
        gone = "; ".join(f"{reason} ({n})" for reason, n in report["left_out"].items())
        st.caption(as_code(f"Labelled items that the fit left out: {gone}."))
    components.show_figure(
        "calibrator_comparison",
        tables.method_comparison_table(report, row["method"]),
        key="comparison",
    )
    if "combination" in report:
        st.caption(
            as_code(f"There is no curve over one score: {combination_text(report['combination'])}.")
        )
    else:
        components.show_figure(
            "calibrator_curves", tables.curve_table(row, view.limits), key="curves"
        )


def method_table(report: Mapping[str, Any], chosen: str) -> pd.DataFrame:
    """Return one row per method, with intervals as text; a refused method has its reason."""
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
    """Show which domains have their own calibration map and which use the overall one."""
    domain_reports = view.version["report"]["domains"] if view.version is not None else {}
    if view.version is None:
        return
    st.subheader("By domain")
    if not domain_reports:
        st.caption("One map for all domains: this version was fitted without maps per domain.")
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
                "Own minus overall": _interval_or_na(domain_report.get("difference")),
                "Brier, own map": _interval_or_na(domain_report.get("own") or best.get("brier")),
                "Brier, overall map": _interval_or_na(domain_report.get("all")),
                "Own map": (
                    CALIBRATORS[domain_report["chosen"]][0] if domain_report["chosen"] else "n/a"
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


def render_weights(view: CalibrationView) -> None:
    """Compare tuned weights with the example weights, where the version has tuned ones."""
    if view.version is None:
        return
    st.subheader("Weights of the components")
    weights_report = view.version["report"]["weights"]
    if "combination" in view.version["report"]:
        st.caption("All measured features are combined: components have no weights.")
        return
    if weights_report is None:
        st.caption(
            "r_raw is computed in each run with the example weights "
            + ", ".join(f"{part} {weight:.2f}" for part, weight in WEIGHTS.items())
            + (
                ", which are an illustration. A fit with tuned weights compares both on the"
                " same labels."
            )
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
    components.show_numbers(
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


def _trial(report: Mapping[str, Any], method: str) -> dict[str, Any]:
    match_: dict[str, Any] = next(trial for trial in report["methods"] if trial["method"] == method)
    return match_


def _interval_or_na(estimate: Mapping[str, Any] | None) -> str:
    """Format a stored interval; "n/a" where it has no point estimate."""
    return (
        "n/a"
        if estimate is None
        else interval_text(estimate["point"], estimate["lo"], estimate["hi"])
    )


def render_versions(view: CalibrationView) -> None:
    """List every version with the digest of its labels, and offer a rollback."""
    if view.version is None:
        return
    st.subheader("Versions")
    every = calibrator_store.calibrators(cached.store())
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Version": row["version"],
                    "In use": "yes" if row["current"] else "",
                    "Method": CALIBRATORS[row["method"]][0],
                    "Labels": row["n"],
                    "Acceptable": row["n_positive"],
                    "Weights": (
                        "combined"
                        if row["method"] == COMBINED
                        else "example"
                        if pd.isna(row["weights"])
                        else "tuned"
                    ),
                    "Labels digest": str(row["labels_digest"])[:12],
                    "Made": f"{row['made_at']:%Y-%m-%d %H:%M}",
                    "By": row["made_by"],
                    "Note": row["note"],
                }
                for row in every.to_dict("records")
            ]
        ),
        hide_index=True,
    )
    change_note = "One of its runs is no longer in the store."
    if view.seen is not None:
        change_note = tables.describe_changes(view.seen, view.version)
    st.caption(
        f"Labels digest of version {view.version['version']}: {view.version['labels_digest']}."
        f" {change_note}"
    )
    done = st.session_state.pop(RESTORED, None)
    if done is not None:
        st.success(f"Version {done} is in use.")
    with st.expander("Put another version into use"):
        _render_rollback(every)
    with st.expander("History of the version in use"):
        choices = calibrator_store.calibrator_choices(cached.store())
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "From": f"{row['at_']:%Y-%m-%d %H:%M:%S}",
                        "Version": row["version"],
                        "By": row["by_"],
                        "Reason": row["reason"],
                    }
                    for row in choices.to_dict("records")
                ]
            ),
            hide_index=True,
        )


def _render_rollback(every: pd.DataFrame) -> None:
    others = [int(row["version"]) for row in every.to_dict("records") if not row["current"]]
    if not others:
        st.caption("There is no other version.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        version = st.selectbox("Version", others, key="back-version")
        reason = st.text_input(
            "Reason", key="back-reason", max_chars=300, placeholder="stored in the audit log"
        )
    if not st.button(
        "Use this version", icon=":material/undo:", key="back", **access.only("admin")
    ):
        return
    try:
        who = access.need("admin")
        rollback(cached.store(), version, by=who.name, reason=reason)
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    st.session_state[RESTORED] = version
    st.query_params.pop("version", None)
    st.rerun()
