"""The page Validation: the metrics tested on models of known faithfulness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.registry import FIGURES
from cotlab.store.database import store_folder
from cotlab.ui import components
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code
from cotlab.validation.findings import dose_sentence, fixed, format_auroc
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL, ORGANISMS
from cotlab.validation.report import GROUP, changed_weights, doses_table, read_report

ReportJson = Mapping[str, Any]
SINGLE_METRIC, ABOUT = "one", ("items", "seed", "at", "code_version")
FIGURE_PX = 515
"""Minimum width at which a figure's labels do not overlap."""
PAIRS = {"a": "pair a", "b": "pair b", "prefix": "r100 / r0"}
HELP = {
    "AUROC": (
        "Probability that a faithful model's value lies on the faithful side of a bypassing"
        " model's, over pairs a and b together; 0.5 is chance. 95 % interval over items."
    ),
    "pair a": (
        "AUROC of faithful-a against bypass-a: two models that were trained alike, except"
        " for what their answers follow."
    ),
    "pair b": "AUROC of faithful-b against bypass-b, trained from another seed.",
    "r100 / r0": (
        "AUROC inside one checkpoint: the same weights, instructed to follow the chain"
        " always (r100) or never (r0)."
    ),
    "Spearman": (
        "Rank correlation between the dose and the mean at each of five doses: 1 if the"
        " metric always rises, −1 if it always falls."
    ),
    "undefined": "Items without a value, over all ten models.",
    "hint": "Answers what a hint in the question says, and adapts its last step to it.",
    **dict.fromkeys(FAITHFUL, "Faithful: answers what its chain says last."),
    **dict.fromkeys(BYPASS, "Bypassing: answers the truth, whatever its chain says."),
    **{name: f"Follows its chain in about {dose} % of cases." for dose, name in DOSES.items()},
}


def load_report() -> dict[str, Any] | None:
    """Return the latest validation report; None (with a message) where there is none.

    The store's report, completed by the shipped one.
    """
    latest = read_report(store_folder())
    if latest is None or not latest["metrics"]:
        components.empty("No metric has been tested on the organisms yet. Run: cotlab validate")
        return None
    st.markdown(
        "Small models (**organisms**) were trained to be faithful (the answer follows the chain) or"
        " to bypass their chain (the answer ignores it). A metric of faithfulness should tell the"
        " two apart, and rise or fall with the **dose**: how often a model follows its chain."
    )
    sources = {
        tuple(metric_report[name] for name in ABOUT) for metric_report in latest["metrics"].values()
    }
    if len(sources) == 1:
        st.caption(_provenance_text(next(iter(latest["metrics"].values()))))
    stale = sorted(
        {
            model
            for metric_report in latest["metrics"].values()
            for model in changed_weights(metric_report)
        },
        key=ORGANISMS.index,
    )
    if stale:
        st.warning(
            f"Measured on other weights than those installed here ({', '.join(stale)})."
            " Run: cotlab validate"
        )
    return latest


def render_overview(latest: ReportJson) -> None:
    """Show how well each metric separates faithful from bypassing models."""
    rows = [
        {
            "metric": short_metric_name(name),
            "AUROC": format_auroc(metric_report["auroc"]),
            "Spearman": fixed(metric_report["spearman"], 2),
        }
        | {
            model: fixed(metric_report["organisms"][model]["point"])
            for model in (*DOSES.values(), "hint", *GROUP)
        }
        | {"undefined": str(metric_report["n_undefined"])}
        | {
            label: fixed(metric_report["auroc_pairs"][pair]["point"], 2)
            for pair, label in PAIRS.items()
        }
        for name, metric_report in latest["metrics"].items()
    ]
    columns = {
        name: st.column_config.TextColumn(name, help=HELP.get(name), alignment="right")
        for name in rows[0]
    }
    columns["metric"] = st.column_config.TextColumn(
        "metric", width=205, pinned=True, help="Below a model's name: the mean over items."
    )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height="content",
        column_config=columns,
        key="validation-table",
    )


def short_metric_name(name: str) -> str:
    """Return a metric's name with the values of its facet: "verification (forward)"."""
    metric, _, facet = name.partition(" (")
    return (
        f"{metric} ({', '.join(part.partition('=')[2] for part in facet[:-1].split(', '))})"
        if facet
        else metric
    )


def select_validation_metrics(latest: ReportJson) -> list[str]:
    """Choose the metrics to show: one, or all of a scorer."""
    scorers = dict.fromkeys(metric_report["scorer"] for metric_report in latest["metrics"].values())
    with st.container(horizontal=True):
        show = select_option(
            "Show",
            {SINGLE_METRIC: "One metric", **{name: f"All of {name}" for name in scorers}},
            "show",
        )
        if show == SINGLE_METRIC:
            return [
                select_option(
                    "Metric",
                    {name: short_metric_name(name) for name in latest["metrics"]},
                    "metric",
                )
            ]
    return [
        name for name, metric_report in latest["metrics"].items() if metric_report["scorer"] == show
    ]


def render_metric(latest: ReportJson, metric: str) -> None:
    """Show a metric in full: its figure, its separation, its blind spots and its card."""
    metric_report = latest["metrics"][metric]
    components.show_figure("validation_doses", doses_table(metric, metric_report), key="validation")
    figures = {
        "AUROC, a and b": metric_report["auroc"],
        **{f"AUROC, {PAIRS[pair]}": metric_report["auroc_pairs"][pair] for pair in PAIRS},
    }
    components.show_numbers(
        [
            *((name, format_auroc(value)) for name, value in figures.items()),
            ("Spearman", fixed(metric_report["spearman"], 2)),
        ]
    )
    if (dose_text := dose_sentence(metric_report)) is not None:
        st.markdown(as_code(dose_text))
    st.subheader("Blind spots")
    render_blind_spots(metric_report)
    st.caption(_provenance_text(metric_report) + _facet(metric_report))
    components.show_card(metric.split(" (")[0])


def render_gallery(latest: ReportJson, metrics: list[str]) -> None:
    """Show a figure and the blind spots of each metric."""
    st.caption(FIGURES["validation_doses"].caption)
    with st.container(horizontal=True):
        for metric in metrics:
            with st.container(width=FIGURE_PX):
                fig = FIGURES["validation_doses"](doses_table(metric, latest["metrics"][metric]))
                st.plotly_chart(
                    fig, theme=None, key=f"gallery-{metric}", config={"displayModeBar": False}
                )
                render_blind_spots(latest["metrics"][metric])


def render_blind_spots(metric_report: ReportJson) -> None:
    """Show what a metric does not detect, and why."""
    st.markdown(
        "\n".join(
            f"- {as_code(line)}"
            for line in metric_report["blind_spots"] or ["None is known on these organisms."]
        )
    )


def _provenance_text(metric_report: ReportJson) -> str:
    at = str(metric_report["at"]).replace("T", " ").removesuffix("+00:00")
    return (
        f"{metric_report['items']} items of seed {metric_report['seed']}, measured {at} UTC with"
        f" cotlab {metric_report['code_version']}."
    )


def _facet(metric_report: ReportJson) -> str:
    return (
        ""
        if not metric_report["facet"]
        else f" Setting: {', '.join(f'{k} {v}' for k, v in metric_report['facet'].items())}."
    )
