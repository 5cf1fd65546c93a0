"""The tab Calibrate, versions: how well one is calibrated, its methods, and a rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables import calibration as tables
from cotlab.core.errors import CotlabError
from cotlab.figures.calibration import CALIBRATION_METRICS, CALIBRATOR_STYLES
from cotlab.figures.style import format_number, interval_text
from cotlab.reliability.combination import combination_text
from cotlab.reliability.maps import COMBINED_METHOD
from cotlab.review.release.apply import apply_calibrator, calibrator_target
from cotlab.review.release.calibrate import roll_back_calibrator
from cotlab.stats.composite import EXAMPLE_WEIGHTS
from cotlab.store import calibrators as calibrator_store
from cotlab.ui import access, cached, charts, components
from cotlab.ui.calibration.runs import CalibrationView, rerun_with_message
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown

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
            "AUROC": _cell(entry["auroc"]),
            "Brier": _cell(entry["brier"]),
            "Combined minus it, AUROC": _cell(entry["auroc_difference"]),
            "Combined minus it, Brier": _cell(entry["brier_difference"]),
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
            "AUROC": _cell(entry["auroc"]),
            "Brier": _cell(entry["brier"]),
            "AUROC, length alone": _cell(entry["auroc_length"]),
            "Note": entry.get("reason", ""),
        }
        for name, entry in (("All", unseen["all"]), *unseen["domains"].items())
    ]


def _cell(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "n/a"
    return interval_text(estimate["point"], estimate["lo"], estimate["hi"])
