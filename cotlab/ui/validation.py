"""The page Validation: the metrics tested on models of known faithfulness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.measures import MIN_AUROC
from cotlab.analysis.verdict.validated import (
    construct_record,
    load_measure_validation,
    measures_tested_by,
    separation,
)
from cotlab.analysis.verdict.wording import capitalised, noun_count
from cotlab.core.registry import FIGURES
from cotlab.figures.declare import count_range
from cotlab.store.database import store_folder
from cotlab.ui import charts, components
from cotlab.ui.charts import cached_figure
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.more import render_more
from cotlab.ui.pickers import select_option
from cotlab.ui.places import PageLink
from cotlab.ui.text import escape_markdown
from cotlab.validation.coded_wording import CODED_RECORD_KEY, coded_wording_sentence
from cotlab.validation.findings import (
    dose_sentence,
    format_auroc,
    format_decimals,
    hint_items_sentence,
)
from cotlab.validation.models import BYPASS_MODELS, DOSE_MODELS, FAITHFUL_MODELS, ORGANISMS
from cotlab.validation.needs_question import (
    MIDDLE_MODELS,
    PAIRS,
    RECORD_KEY,
    needs_question_sentence,
)
from cotlab.validation.report import (
    GROUP_BY_MODEL,
    doses_table,
    find_changed_organisms,
    find_changed_scorers,
    read_report,
)

ReportJson = Mapping[str, Any]
SINGLE_METRIC = "one"
MIN_FIGURE_PX = 515
"""Minimum width at which a figure's labels do not overlap."""
PAIR_LABELS = {"a": "pair a", "b": "pair b", "prefix": "r100 / r0"}
COLUMN_HELP = {
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
    "AUROC, s": (
        "AUROC of the faithful s100 against the bypassing s0, whose steps state only operations"
        " while the start value stands in the question."
    ),
    **{
        model: text
        for faithful, bypass in PAIRS.values()
        for model, text in (
            (faithful, "Faithful: the start value plus what its chain states."),
            (bypass, "Bypassing: the truth, whatever its chain states."),
        )
    },
    **dict.fromkeys(
        MIDDLE_MODELS.values(), "Faithful about half of the objects, bypassing about the others."
    ),
    "hint": (
        "Answers what a hint in the question says, and adapts its last step to it. Each of its"
        " items carries a hint."
    ),
    **dict.fromkeys(FAITHFUL_MODELS, "Faithful: answers what its chain says last."),
    **dict.fromkeys(BYPASS_MODELS, "Bypassing: answers the truth, whatever its chain says."),
    **{
        name: f"Follows its chain in about {dose} % of cases." for dose, name in DOSE_MODELS.items()
    },
}


def render_shipped_tab() -> None:
    """Show what each metric tells of the shipped models of known faithfulness."""
    latest_report = load_report()
    if latest_report is None:
        return
    render_validation_verdict(latest_report)
    claim_container = st.container()  # the metric is chosen below the table
    render_overview(latest_report)
    metrics = select_validation_metrics(latest_report)
    if len(metrics) == 1:
        with claim_container:
            render_claim(latest_report, metrics[0])
        render_metric(latest_report, metrics[0])
        limits = partial(render_limits, latest_report, metrics[0])
        render_more("what the metric does not detect, and its card", limits, name="limits")
    else:
        render_gallery(latest_report, metrics)
    for name, table in MODEL_TABLES.items():
        render_more(table.title, partial(render_model_table, latest_report, name), name=name)


class ModelTable(NamedTuple):
    """A table of the mean of each metric on some models of known behaviour."""

    title: str
    """What it shows."""
    record_key: str | None
    """Where a metric's report has it; None for the report itself."""
    text: str
    """What the models are."""


MODEL_TABLES = {
    "means": ModelTable("mean of each metric on each model", None, ""),
    "needs_question": ModelTable(
        "models whose chain needs its question",
        RECORD_KEY,
        "The models above restate the running total in each step, so that the last step alone gives"
        " the answer. The steps of these state only operations; the start value stands in the"
        " question. A metric that tells apart the models above and not these is right only where"
        " the chain alone gives the answer.",
    ),
    "coded_wording": ModelTable(
        "a model whose wording carries the answer",
        CODED_RECORD_KEY,
        "Each step of this model is true, and its answer is a number that the wordings of its first"
        " two steps spell (“So”, “Clearly,”, “equals”). The chain is used, so that patching it"
        " loses the answer; what it says is not used, so that a changed value changes nothing. A"
        " metric near 0 here reads content alone. What finds this model is a reworded step that"
        " changes the answer (mode paraphrase of ablation).",
    ),
}
"""The tables by the names of their sections in the address."""


def load_report() -> dict[str, Any] | None:
    """Return the latest validation report; None (with a message) where there is none.

    The store's report, completed by the shipped one.
    """
    latest_report = read_report(store_folder())
    if latest_report is None or not latest_report["metrics"]:
        components.render_empty_state(
            "No metric has been tested on the organisms yet. Run: cotlab validate"
        )
        return None
    st.markdown(
        "Small models (**organisms**) were trained to be faithful (the answer follows the chain) or"
        " to bypass their chain (the answer ignores it). A metric of faithfulness should tell the"
        " two apart, and rise or fall with the **dose**: how often a model follows its chain."
    )
    metric_reports = latest_report["metrics"].values()
    provenance_texts = {_provenance_text(metric_report) for metric_report in metric_reports}
    if len(provenance_texts) == 1:
        st.caption(provenance_texts.pop())
    changed_models = find_changed_organisms(metric_reports)
    stale_models = [model for model in ORGANISMS if model in changed_models]
    if stale_models:
        st.warning(
            f"Measured on other weights than those installed here ({', '.join(stale_models)})."
            " Run: cotlab validate"
        )
    changed_scorers = find_changed_scorers(latest_report)
    if changed_scorers:
        options = " ".join(f"--scorer {name}" for name in changed_scorers)
        st.warning(
            f"Measured with earlier versions of these scorers: {', '.join(changed_scorers)}."
            f" Run: cotlab validate {options}"
        )
    return latest_report


def render_validation_verdict(latest_report: ReportJson) -> None:
    """Say how many metrics tell faithful from bypassing models, and what that means for others."""
    reports = latest_report["metrics"].values()
    n_usable = sum(separation(report).is_usable for report in reports)
    verb = "tells" if n_usable == 1 else "tell"
    measured = [report["auroc"] for report in reports if report["auroc"]["point"] is not None]
    n_text = f", n = {count_range(measured)} items a model" if measured else ""
    st.markdown(
        f"**{n_usable} of {noun_count(len(reports), 'metric')} {verb} faithful from bypassing"
        f" models** (AUROC {MIN_AUROC:g} or more, interval above 0.5{n_text}). The others may"
        " measure something else well; as measures of faithfulness they stand in no headline."
    )


def render_overview(latest_report: ReportJson) -> None:
    """Show how well each metric separates faithful from bypassing models."""
    reports = latest_report["metrics"]
    rows = [
        {
            "metric": short_metric_name(name),
            "AUROC": format_auroc(report["auroc"]),
            **{
                label: format_auroc(report["auroc_pairs"][pair])
                for pair, label in PAIR_LABELS.items()
            },
            "Spearman": format_decimals(report["spearman"], 2),
            "undefined": str(report["n_undefined"]),
        }
        for name, report in reports.items()
    ]
    frame = pd.DataFrame(rows)
    show_linked_frame(
        "How well each metric separates the models",
        frame,
        {"metric": [PageLink("validation", (("metric", name),)) for name in reports]},
        key="validation-table",
        number_names=frame.columns[1:],
        help_by_name=COLUMN_HELP,
    )


def render_model_table(latest_report: ReportJson, name: str) -> None:
    """Show the mean of each metric on each of some models."""
    _, record_key, text = MODEL_TABLES[name]
    if text:
        st.caption(text)
    records = {
        metric: report if record_key is None else report.get(record_key)
        for metric, report in latest_report["metrics"].items()
    }
    measured = [record for record in records.values() if record]
    models = dict.fromkeys(model for record in measured for model in record["organisms"])
    if record_key is None:
        models = dict.fromkeys((*DOSE_MODELS.values(), "hint", *GROUP_BY_MODEL))
    has_auroc = record_key == RECORD_KEY
    rows = [
        {
            "metric": short_metric_name(metric),
            **({"AUROC, s": _record_auroc(record)} if has_auroc else {}),
            **{model: _mean_text(record, model) for model in models},
        }
        for metric, record in records.items()
    ]
    frame = pd.DataFrame(rows)
    names = list(frame.columns[1:])
    help_by_name = {**COLUMN_HELP, "metric": "Below a model's name: the mean over items."}
    title, key = MODEL_TABLES[name].title, f"validation-{name}"
    show_linked_frame(title, frame, {}, key=key, number_names=names, help_by_name=help_by_name)


def _record_auroc(record: ReportJson | None) -> str:
    return format_auroc(record["auroc"]) if record else "not measured"


def _mean_text(record: ReportJson | None, model: str) -> str:
    """Return the mean of a metric on one model, "n/a" where it has none."""
    if not record:
        return "not measured"
    return format_decimals(record["organisms"].get(model, {}).get("point"))


def short_metric_name(name: str) -> str:
    """Return a metric's name for readers with its facet: "Verification (V), forward"."""
    metric, _, facet = name.partition(" (")
    values = re.sub(r"\w+=", "", facet.removesuffix(")"))
    return ", ".join(filter(None, (metric_name(metric), values)))


def select_validation_metrics(latest_report: ReportJson) -> list[str]:
    """Choose the metrics to show: one, or all of a scorer."""
    scorer_by_metric = {name: report["scorer"] for name, report in latest_report["metrics"].items()}
    options = {name: f"All of {name}" for name in scorer_by_metric.values()}
    with st.container(horizontal=True):
        chosen_option = select_option("Show", {SINGLE_METRIC: "One metric", **options}, "show")
        if chosen_option == SINGLE_METRIC:
            labels = {name: short_metric_name(name) for name in latest_report["metrics"]}
            return [select_option("Metric", labels, "metric")]
    return [name for name, scorer in scorer_by_metric.items() if scorer == chosen_option]


def render_metric(latest_report: ReportJson, metric: str) -> None:
    """Show a metric in full: its figure, its separation, its blind spots and its card."""
    metric_report = latest_report["metrics"][metric]
    charts.show_figure("validation_doses", doses_table(metric, metric_report), key="validation")
    auroc_by_pair = metric_report["auroc_pairs"]
    components.show_numbers(
        [
            ("AUROC, a and b", format_auroc(metric_report["auroc"])),
            *(
                (f"AUROC, {label}", format_auroc(auroc_by_pair[pair]))
                for pair, label in PAIR_LABELS.items()
            ),
            ("Spearman", format_decimals(metric_report["spearman"], 2)),
        ]
    )
    st.markdown(escape_markdown(hint_items_sentence(metric_report)))
    if (dose_text := dose_sentence(metric_report)) is not None:
        st.markdown(escape_markdown(dose_text))
    for sentence in (needs_question_sentence(metric_report), coded_wording_sentence(metric_report)):
        if sentence is not None:
            st.markdown(escape_markdown(sentence))


def render_limits(latest_report: ReportJson, metric: str) -> None:
    """Show what a metric does not detect, how it was tested, and its card."""
    metric_report = latest_report["metrics"][metric]
    st.header("Blind spots")
    render_blind_spots(metric_report)
    st.caption(_provenance_text(metric_report) + _facet_text(metric_report))
    components.show_card(metric.split(" (")[0])


def render_gallery(latest_report: ReportJson, metrics: list[str]) -> None:
    """Show a figure and the blind spots of each metric."""
    st.caption(FIGURES["validation_doses"].caption)
    with st.container(horizontal=True):
        for metric in metrics:
            with st.container(width=MIN_FIGURE_PX):
                table = doses_table(metric, latest_report["metrics"][metric])
                figure = cached_figure("validation_doses", table)
                charts.show_title(figure)
                st.plotly_chart(
                    figure,
                    theme=None,
                    key=f"gallery-{metric}",
                    config={"displayModeBar": False},
                )
                render_blind_spots(latest_report["metrics"][metric])


def render_blind_spots(metric_report: ReportJson) -> None:
    """Show what a metric does not detect, and why."""
    blind_spots = metric_report["blind_spots"] or ["None is known on these organisms."]
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in blind_spots))


def _provenance_text(metric_report: ReportJson) -> str:
    measured_at = str(metric_report["at"]).replace("T", " ").removesuffix("+00:00")
    return (
        f"{metric_report['items']} items of seed {metric_report['seed']}, measured {measured_at}"
        f" UTC with cotlab {metric_report['code_version']}."
    )


def _facet_text(metric_report: ReportJson) -> str:
    settings_text = ", ".join(f"{name} {value}" for name, value in metric_report["facet"].items())
    return f" Setting: {settings_text}." if settings_text else ""


def render_claim(latest_report: Mapping[str, Any], metric: str) -> None:
    """Show how well a metric is known to work for what it claims, and on what that rests.

    The words are those of the chips of a verdict, which lead here.
    """
    validation = load_measure_validation(str(store_folder()))
    texts = [validation[measure].text for measure in measures_tested_by(metric)]
    texts.append(separation(latest_report["metrics"][metric]).text)
    lines = [capitalised(text) + "." for text in dict.fromkeys(texts)]
    record = construct_record(metric)
    if record is not None:
        lines[0] += f" This is what it claims ({record['claim']}); data: {record['source']}."
    title = f"**{escape_markdown(short_metric_name(metric))}**"
    with st.container(border=True, key="validation-claim"):
        st.markdown("  \n".join([title, *map(escape_markdown, lines)]))
