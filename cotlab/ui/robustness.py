"""The tab Robustness of a run: perturbed steps and questions, over the suite and in one item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.declare import FigureChoice, count_reasons
from cotlab.analysis.tables.reliability import item_step_means, with_perturbation
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.robustness import (
    MEASURE_NAMES,
    SERIES_NAMES,
    format_measure,
    order_perturbations,
    perturbation_label,
)
from cotlab.figures.style import ORANGE
from cotlab.metrics.causal import changed_items
from cotlab.metrics.model_steps import model_steps
from cotlab.text.answers.markers import stated_answer_text
from cotlab.text.answers.targets import answer_to
from cotlab.text.prompts.chain import continuation_prompt
from cotlab.ui import cached, charts, components
from cotlab.ui.address import STEP_PARAM, step_query, write_address
from cotlab.ui.components import render_headline, show_cards
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item, select_option
from cotlab.ui.places import PageLink, run_link
from cotlab.ui.run_notes import render_category_split
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict_number import render_verdict_number

HEADLINE_METRICS = (
    ("robustness", "R"),
    ("robustness_dispersion", "Spread of the divergence"),
    ("perturbed_answer_change", "Answer changes"),
)
SUMMARY_METRICS = ("robustness", "robustness_dispersion", "divergence", "perturbed_answer_change")
ALL_PERTURBATIONS, NO_PERTURBATION = "all", "none"
CAUSAL_METRICS = {
    "causal_stability": "Stability rate",
    "rename_stable": "Kept under a rename",
    "number_follows": "Follows a changed number",
    "number_moves": "Moves with a changed number",
}
MEASURE_LABELS = {"divergence": "divergence", "perturbed_answer_change": "answer"}
CHANGED_QUESTIONS = (
    ("Other names", ("rename_stable",)),
    ("Another number", ("number_moves", "number_follows")),
)
"""Title and metrics of each changed question; the first metric has its requests."""
Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]
_STEP_MARKER = "\x00"


class SelectedCell(NamedTuple):
    """The selected cell, as in the address of the page."""

    measure: str
    """The metric of the cell."""
    perturbation: str
    """The perturbation, or "all"."""
    position: int
    """Index of the step, from 0."""


def render_robustness_tab(run: RunView) -> None:
    """Show the effect of a perturbed step on the rest of the chain and on the answer."""
    render_verdict_number(run.id)
    render_category_split(run)
    render_robustness_summary(run)
    charts.show(run, "answer_changes_by_perturbation")
    render_perturbation_values(run)
    render_more(
        "robustness (R), by position and by item",
        partial(charts.show, run, "robustness_by_perturbation"),
        partial(render_positions, run),
        params=("measure", "perturbation", "position"),
    )
    render_causal_rates(run)
    render_more("one item", partial(_render_item, run), **ITEM_SECTION)
    render_robustness_notes(run)


def load_robustness_scores(run: RunView, *metrics: str, with_evidence: bool = True) -> pd.DataFrame:
    """Return scores of these metrics with a column ``perturbation``, "" where there is none."""
    view = cached.cached_run_view(run)
    return with_perturbation(view.scores(*metrics, with_evidence=with_evidence))


def _load_estimates(run: RunView, *metrics: str) -> pd.DataFrame:
    estimates = cached.load_estimates(run.id, run.revision)
    return with_perturbation(estimates[estimates["metric"].isin(metrics)])


def render_robustness_summary(run: RunView) -> None:
    """Show robustness, dispersion and answer changes over all perturbations together."""
    if cached.cached_run_view(run).metrics.isdisjoint(SUMMARY_METRICS):
        st.info("This run has no scores of the scorer 'robustness'.")
        return
    estimates = _load_estimates(run, *SUMMARY_METRICS)
    if estimates.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are under One"
            " item."
        )
        return
    reason_by_metric = {
        metric: next(iter(counts))
        for (metric, perturbation), counts in count_undefined_reasons(run, SUMMARY_METRICS).items()
        if perturbation == ALL_PERTURBATIONS
    }
    is_all = estimates["perturbation"] == ALL_PERTURBATIONS
    render_headline(estimates[is_all], HEADLINE_METRICS, reason_by_metric)
    confidence = float(estimates["confidence"].iloc[0])
    st.caption(
        f"Means over n items, all chosen perturbations together, with {100 * confidence:g} %"
        " intervals. Here an answer counts as changed if any perturbation changes it;"
        " below, each perturbation counts separately."
    )
    show_cards(*SUMMARY_METRICS)


def render_perturbation_values(run: RunView) -> None:
    """Show each perturbation's metrics as a table, with why scores are undefined."""
    estimates = _load_estimates(run, *SUMMARY_METRICS)
    if estimates.empty:
        return
    reason_counts = count_undefined_reasons(run, SUMMARY_METRICS)
    text_by_cell = {
        (estimate["metric"], estimate["perturbation"]): (
            f"{components.estimate_text(estimate)}, n = {int(estimate['n'])}"
        )
        for estimate in estimates.to_dict("records")
    }
    names = order_perturbations(estimates["perturbation"])
    metric_columns = {
        label: [text_by_cell.get((metric, name), "") for name in names]
        for metric, label in (*HEADLINE_METRICS, ("divergence", SERIES_NAMES["divergence"]))
    }
    reasons = [
        "; ".join(
            f"{SERIES_NAMES[metric]}: {text} ({k})"
            for metric in MEASURE_NAMES
            for text, k in reason_counts.get((metric, name), {}).items()
        )
        for name in names
    ]
    labels = [perturbation_label(name) for name in names]
    frame = pd.DataFrame({"perturbation": labels, **metric_columns})
    with st.expander("All values, and why scores are undefined"):
        components.show_table(
            frame.assign(**{"steps without a score": reasons}),
            "group-table",
            right_aligned_names=metric_columns,
        )


def count_undefined_reasons(
    run: RunView, metrics: Sequence[str]
) -> dict[tuple[str, str], dict[str, int]]:
    """Return, for each (metric, perturbation), how many scores are undefined for which reason."""
    return _reasons_at_revision(run.id, run.revision, tuple(metrics), run)


@cached.cache_by_store(16)
def _reasons_at_revision(
    run_id: str, revision: int, metrics: tuple[str, ...], _run: RunView
) -> dict[tuple[str, str], dict[str, int]]:
    scores = load_robustness_scores(_run, *metrics, with_evidence=False)
    undefined_groups = scores[scores["value"].isna()].groupby(["metric", "perturbation"])["reason"]
    return {
        (str(metric), str(name)): count_reasons(reasons)
        for (metric, name), reasons in undefined_groups
    }


def render_positions(run: RunView) -> None:
    """Show perturbations by position; a click on a cell, or the choices, select its items."""
    scores = load_robustness_scores(run, *MEASURE_NAMES)
    scores = scores[scores["step"].notna()]
    if scores.empty:
        return
    st.header("By position")
    measured = set(scores["metric"])
    measure_labels = {name: label for name, label in MEASURE_NAMES.items() if name in measured}
    measure = select_option("Measure", measure_labels, "measure")
    scores = scores[scores["metric"] == measure]
    figure_slot = st.container()
    left_column, right_column = st.columns(2)
    with left_column:
        names = order_perturbations(scores["perturbation"])
        labels = {name: perturbation_label(name) for name in names}
        perturbation = select_option("Perturbation", labels, "perturbation", ALL_PERTURBATIONS)
    with right_column:
        rows = scores[scores["perturbation"] == perturbation]
        n_items_by_step = rows.groupby(rows["step"].astype(int))["item_id"].nunique()
        labels = {str(step + 1): f"{step + 1} · {n} items" for step, n in n_items_by_step.items()}
        position = int(select_option("Position", labels, "position")) - 1
    cell = SelectedCell(measure, perturbation, position)
    with figure_slot:
        charts.show(
            run,
            "perturbation_cells",
            FigureChoice(metric=measure),
            note="Click a cell to list its items.",
            mark=lambda table: table.assign(
                chosen=(table["perturbation"] == perturbation) & (table["step"] == position)
            ),
            on_click=_open_clicked_position,
        )
    render_cell_items(run, cell, scores)
    item_id = st.query_params.get("item")
    st.header("By item")
    charts.show(
        run,
        "item_cells",
        FigureChoice(metric=measure, perturbation=perturbation),
        note="Click a cell to choose its item.",
        mark=lambda table: table.assign(
            chosen=(table["item_id"] == item_id) & (table["step"] == position)
        ),
        on_click=_open_clicked_cell,
    )


def render_cell_items(run: RunView, cell: SelectedCell, scores: pd.DataFrame) -> None:
    """List the items of one cell, each with a link."""
    rows = item_step_means(scores, cell.perturbation)
    rows = rows[rows["step"] == cell.position].sort_values(
        "value", ascending=False, na_position="last", kind="stable"
    )
    rows = rows.iloc[components.page_slice(len(rows), "cell-page")]
    is_in_cell = (scores["perturbation"] == cell.perturbation) & (scores["step"] == cell.position)
    score_by_item = scores[is_in_cell].drop_duplicates("item_id").set_index("item_id", drop=False)
    cell_label = f"**{perturbation_label(cell.perturbation)}, step {cell.position + 1}**"
    st.markdown(f"{cell_label}: {MEASURE_NAMES[cell.measure].lower()}")
    frame = pd.DataFrame(
        {
            "item": rows["item_id"],
            "value": [_value_text(value, cell.measure) for value in rows["value"]],
            "draws": rows["draws"],
            "reason": rows["reason"].where(rows["value"].isna(), ""),
        }
    )
    evidence.render_score_table(
        run,
        score_by_item.loc[rows["item_id"]],
        frame,
        title="Items of the cell",
        key="cell-items",
        number_names=("value", "draws"),
        links={"item": [_item_link(run, item, cell.position) for item in rows["item_id"]]},
    )


def _item_link(run: RunView, item_id: str, step: int | None = None) -> PageLink:
    """Return the link to an item on this tab."""
    query = {} if step is None else step_query(step)
    return run_link(run.id, "robustness", item=item_id, **query)


def _open_clicked_position(cell_data: Sequence[Any]) -> None:
    write_address({"position": str(int(cell_data[0]) + 1), "perturbation": str(cell_data[1])})


def _open_clicked_cell(cell_data: Sequence[Any]) -> None:
    position, item_id = int(cell_data[0]), str(cell_data[1])
    write_address({"position": str(position + 1), **step_query(position), "item": item_id})


def render_causal_rates(run: RunView) -> None:
    """Show the rates of the perturbed questions, with Wilson intervals and undefined items."""
    metrics = tuple(CAUSAL_METRICS)
    scores = load_robustness_scores(run, *metrics, with_evidence=False)
    if scores.empty:
        return
    st.header("Perturbed questions")
    estimates = _load_estimates(run, *metrics)
    if estimates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    reason_counts = count_undefined_reasons(run, metrics)
    first_reasons = {metric: next(iter(reasons)) for (metric, _), reasons in reason_counts.items()}
    render_headline(estimates, list(CAUSAL_METRICS.items()), first_reasons)
    methods_text = ", ".join(dict.fromkeys(estimates["method"]))
    st.caption(
        f"Share of n items, with {100 * float(estimates['confidence'].iloc[0]):g} % intervals"
        f" ({methods_text}). A rename must keep the answer; a changed number must move it to the"
        " value recomputed through the reference chain."
    )
    lines = [
        f"{label}: n/a in {k} item{'s' * (k > 1)}, {text}."
        for metric, label in CAUSAL_METRICS.items()
        for text, k in reason_counts.get((metric, ""), {}).items()
    ]
    if lines:
        with st.expander("Why scores are undefined"):
            components.show_escaped_lines(lines)
    show_cards(*metrics)
    failed = scores[(scores["value"] == 0) & (scores["metric"] != "causal_stability")]
    if not failed.empty:
        _render_failures(run, failed)


def _render_failures(run: RunView, failed: pd.DataFrame) -> None:
    labels_by_item = failed["metric"].map(CAUSAL_METRICS).groupby(failed["item_id"], sort=True)
    fails = labels_by_item.agg(lambda labels: ", ".join(dict.fromkeys(labels)))
    with st.expander(f"Items that fail ({len(fails)})"):
        fails = fails.iloc[components.page_slice(len(fails), "failures-page")]
        frame = pd.DataFrame({"item": fails.index, "fails": fails.to_numpy()})
        links = {"item": [_item_link(run, item) for item in fails.index]}
        show_linked_frame("Items that fail", frame, links, key="failures")


def render_robustness_notes(run: RunView) -> None:
    """Explain whose chains were perturbed, which steps, and how vectors are pooled."""
    spec = next((spec for spec in run.plan.scorers if spec.name == "robustness"), None)
    if spec is None:
        return
    params = spec.params
    chain_owner = "the suite's" if params["chain"] == "reference" else "the model's own"
    share = float(params["fraction"])
    steps_text = "all" if share >= 1 else f"a seeded {100 * share:g} %, at least one,"
    steps_text += (
        " of the steps; the last has no suffix, so its divergence is undefined"
        if spec.version == 1
        else " of the steps that another follows and to which a perturbation applies"
    )
    st.caption(
        f"Chains: {chain_owner}. Perturbed: {steps_text}. Vectors pooled by"
        f" {escape_markdown(str(params['pool']))}. The cosine of two sentences hardly changes with"
        " one number: for numeric perturbations, answer changes are more informative."
    )


def _render_item(run: RunView) -> None:
    item = select_item(run)
    if item is None:
        return
    scores = load_robustness_scores(run, *SUMMARY_METRICS, *CAUSAL_METRICS)
    scores = scores[scores["item_id"] == item.id]
    step_scores = scores[scores["metric"].isin(MEASURE_NAMES)]
    if step_scores.empty:
        st.info("No step of this item was perturbed.")
    elif (unperturbed := step_scores[step_scores["step"].isna()]).empty:
        _render_item_summary(scores)
        render_steps_table(run, step_scores)
        render_perturbed_steps(run, item, step_scores)
    else:
        reason = escape_markdown(str(unperturbed["reason"].iloc[0]))
        st.info(f"No step was perturbed: {reason}.")
    render_perturbed_questions(run, item, scores[scores["metric"].isin(CAUSAL_METRICS)])


def _render_item_summary(scores: pd.DataFrame) -> None:
    """Show robustness and dispersion of the item over all perturbations."""
    scores = scores[scores["perturbation"] == ALL_PERTURBATIONS].sort_values(["sample", "metric"])
    labels = dict(HEADLINE_METRICS[:2])
    numbers, lines = [], []
    for score in scores[scores["metric"].isin(labels)].itertuples():
        draw_text = f", draw {int(score.sample) + 1}" if scores["sample"].nunique() > 1 else ""
        label = labels[score.metric] + draw_text
        numbers.append((label, components.number_text(score.value)))
        if pd.isna(score.value):
            lines.append(f"{label}: n/a, {score.reason}.")
    components.show_numbers(numbers)
    components.show_escaped_lines(lines)


def render_steps_table(run: RunView, scores: pd.DataFrame) -> None:
    """List every perturbed step with its divergence and whether the answer changed."""
    perturbations = order_perturbations(scores["perturbation"])
    scores = scores.assign(place=scores["perturbation"].map(perturbations.index))
    rows = []
    for (step, place, sample), group in scores.groupby(["step", "place", "sample"]):
        value_by_metric = dict(zip(group["metric"], group["value"], strict=True))
        reasons = group.loc[group["value"].isna(), "reason"].astype(str)
        rows.append(
            {
                "step": int(step) + 1,
                "perturbation": perturbation_label(perturbations[place]),
                "draw": int(sample) + 1,
                **{
                    label: _value_text(value_by_metric[metric], metric)
                    if metric in value_by_metric
                    else ""
                    for metric, label in MEASURE_LABELS.items()
                },
                "reason": "; ".join(dict.fromkeys(reasons)),
            }
        )
    components.show_table(pd.DataFrame(rows), "item-steps", right_aligned_names=("divergence",))


def render_perturbed_steps(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show, for the chosen step, each perturbation beside the original chain."""
    compared_keys = scores["evidence"].map(lambda keys: [*keys[:2], *keys[-1:]])
    exchange_by_key = cached.logged_exchanges(
        tuple(evidence.request_keys(scores.assign(evidence=compared_keys)))
    )
    chain = perturbed_chain(item, scores, exchange_by_key)
    labels = {
        str(i + 1): f"{i + 1} · {shorten(chain[i] if i < len(chain) else 'n/a', 80)}"
        for i in sorted(map(int, scores["step"].unique()))
    }
    step = int(select_option("Perturbed step", labels, STEP_PARAM)) - 1
    n_draws, draw = int(scores["sample"].max()) + 1, 1
    if n_draws > 1:
        draw = int(st.number_input(f"Draw of {n_draws}", 1, n_draws, 1, key="draw"))
    scores = scores[(scores["step"] == step) & (scores["sample"] == draw - 1)]
    st.text(item.question)
    perturbations_by_reason: dict[str, list[str]] = {}
    is_first = True
    names = set(scores["perturbation"]) - {ALL_PERTURBATIONS}
    for perturbation in order_perturbations(sorted(names)):
        rows = scores[scores["perturbation"] == perturbation]
        score_by_metric = {str(row["metric"]): row for row in rows.to_dict("records")}
        original, perturbed = _find_exchanges(score_by_metric, exchange_by_key)
        if perturbed is None:
            reason = str(next(iter(score_by_metric.values()))["reason"])
            perturbations_by_reason.setdefault(reason, []).append(perturbation_label(perturbation))
            continue
        title = " · ".join(_perturbation_texts(perturbation, score_by_metric))
        is_open = is_first or perturbation == st.query_params.get("perturbation")
        is_first = False
        form = run.plan.subject.form
        step_text = perturbed_text(perturbed[0], item.question, chain[:step], form)
        sides = (
            _original_rows(item, chain, step, original),
            _perturbed_rows(item, step_text, step, perturbed, perturbation),
        )
        with st.expander(title, expanded=is_open):
            for column, side, blocks in zip(st.columns(2), ("left", "right"), sides, strict=True):
                with column:
                    render_rows(blocks, key=f"{side}-{item.id}-{step}-{draw}-{perturbation}")
            for metric, label in MEASURE_LABELS.items():
                score = score_by_metric.get(metric)
                if score is not None and len(score["evidence"]):
                    name = evidence.score_id(metric, score["facet"], step, draw - 1)
                    text = f"Requests behind the {label} ({len(score['evidence'])})"
                    evidence.render_requests_link(run, item.id, text, score=name)
    if perturbations_by_reason:
        reasons = (f"{', '.join(n)} ({reason})" for reason, n in perturbations_by_reason.items())
        st.caption(escape_markdown(f"Not measured: {'; '.join(reasons)}."))
    st.caption(
        "Left: the original chain, and the model's answer when it continues from the"
        " original step. Right: the perturbed step, the model's continuation, and its"
        " answer."
    )
    evidence.render_requests_link(run, item.id, "Every request and reply of this item")


def render_perturbed_questions(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the original and the changed question, with their answers."""
    if scores.empty:
        return
    st.header("Perturbed questions")
    exchange_by_key = cached.logged_exchanges(tuple(evidence.request_keys(scores)))
    items = (item, *changed_items(item, run.plan.seed).items.values())
    scores = scores[scores["sample"] == scores["sample"].min()]
    score_by_metric = {str(row["metric"]): row for row in scores.to_dict("records")}
    for title, metrics in CHANGED_QUESTIONS:
        score = score_by_metric.get(metrics[0])
        keys = [] if score is None else list(score["evidence"])
        if len(keys) < 2:
            reason = "not measured" if score is None else escape_markdown(str(score["reason"]))
            st.markdown(f"**{title}**: n/a, {reason}")
            continue
        values = [
            f"{CAUSAL_METRICS[name].lower()}: {_value_text(score_by_metric[name]['value'], name)}"
            for name in metrics
            if name in score_by_metric
        ]
        st.markdown(f"**{title}** · {escape_markdown(' · '.join(values))}")
        for column, key, label in zip(st.columns(2), keys, ("Original", "Changed"), strict=False):
            with column:
                request, reply = exchange_by_key.get(key, (None, None))
                prompt = "n/a: the log holds no text of this request"
                if request:
                    prompt = request["messages"][0]["content"]
                asked_item = next((i for i in items if i.question in prompt), item)
                blocks = [TextRow(0, label, prompt), *_reply_rows(asked_item, reply, 0, 1)]
                render_rows(blocks, key=f"{metrics[0]}-{item.id}-{label}")
                evidence.render_requests_link(run, item.id, "Request and reply", request=key)


def perturbed_chain(
    item: Item, scores: pd.DataFrame, exchange_by_key: Mapping[str, Exchange]
) -> tuple[str, ...]:
    """Return the steps that were perturbed: the item's, or those of the model's own reply."""
    if json.loads(str(scores["facet"].iloc[0])).get("chain") != "own":
        return tuple(step.text for step in item.steps if step.text.strip())
    keys = (list(score_keys)[-1] for score_keys in scores["evidence"] if len(score_keys))
    reply = next((exchange_by_key[key][1] for key in keys if key in exchange_by_key), None)
    return _reply_steps(reply)


def perturbed_text(
    request: dict[str, Any] | None, question: str, previous_steps: Sequence[str], prompt_form: Any
) -> str | None:
    """Return the step of a request that follows ``previous_steps``; None where there is none."""
    if request is None:
        return None
    prompt = continuation_prompt(question, (*previous_steps, _STEP_MARKER), prompt_form)
    template = "\n".join([*(message.content for message in prompt.messages), prompt.prefix])
    head, _, tail = template.partition(_STEP_MARKER)
    contents = [message["content"] for message in request["messages"]]
    full_text = "\n".join([*contents, request.get("prefix") or ""])
    matches_template = full_text.startswith(head) and full_text[len(head) :].endswith(tail)
    return full_text[len(head) : len(full_text) - len(tail)] if matches_template else None


def _value_text(value: Any, metric: str) -> str:
    if pd.isna(value):
        return "n/a"
    if metric in MEASURE_NAMES:
        return format_measure(metric, float(value))
    return "yes" if value else "no"


def _find_exchanges(
    score_by_metric: Mapping[str, dict[Any, Any]], exchange_by_key: Mapping[str, Exchange]
) -> tuple[Exchange | None, Exchange | None]:
    """Return the exchanges from the original step and from the perturbed one.

    Of the original step itself both are the same.
    """
    keys = list(score_by_metric.get("perturbed_answer_change", {}).get("evidence", ()))[:2]
    if len(keys) < 2:
        keys = list(score_by_metric.get("divergence", {}).get("evidence", ()))[:1] * 2
    if not keys:
        return None, None
    return exchange_by_key.get(keys[0], (None, None)), exchange_by_key.get(keys[1], (None, None))


def _perturbation_texts(
    perturbation: str, score_by_metric: Mapping[str, dict[Any, Any]]
) -> list[str]:
    texts = [f"**{escape_markdown(perturbation_label(perturbation))}**"]
    for metric, label in MEASURE_LABELS.items():
        if (score := score_by_metric.get(metric)) is not None:
            text = f"{label} {_value_text(score['value'], metric)}"
            if pd.isna(score["value"]):
                text += f" ({escape_markdown(str(score['reason']))})"
            texts.append(text)
    return texts


def _original_rows(
    item: Item, chain: Sequence[str], step: int, exchange: Exchange | None
) -> list[TextRow]:
    rows = [
        TextRow(i, f"{i + 1}", text, hint="the original chain")
        for i, text in enumerate(chain[step:], start=step)
    ]
    if exchange is not None:
        hint = "continuing from the original step"
        rows.append(TextRow(len(chain), "Answer", _reply_answer_text(item, exchange[1]), hint=hint))
    return rows or [TextRow(0, "Chain", "n/a: the log does not hold this reply")]


def _perturbed_rows(
    item: Item, step_text: str | None, step: int, exchange: Exchange, perturbation: str
) -> list[TextRow]:
    text = "n/a: the log holds no text of this request"
    if step_text is not None:
        text = step_text.rstrip("\n")
    shade = None if perturbation == NO_PERTURBATION else ORANGE
    step_row = TextRow(step, f"{step + 1}", text, shade, hint="the step that the model was given")
    return [step_row, *_reply_rows(item, exchange[1], step + 1, step + 1)]


def _reply_rows(
    item: Item, reply: dict[str, Any] | None, first_index: int, first_label: int
) -> list[TextRow]:
    """Return a reply's continuation, steps numbered from ``first_label``, and its answer."""
    step_texts = _reply_steps(reply)
    rows = [
        TextRow(first_index + i, f"{first_label + i + (first_label > 1 or first_index > 0)}", text)
        for i, text in enumerate(step_texts)
    ]
    if not step_texts:
        rows = [TextRow(first_index, "Reply", cached.reply_text(reply))]
    return [*rows, TextRow(first_index + len(rows), "Answer", _reply_answer_text(item, reply))]


def _reply_steps(reply: dict[str, Any] | None) -> tuple[str, ...]:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return ()
    return model_steps(reply.get("reasoning") or "") or model_steps(str(reply.get("text") or ""))


def _reply_answer_text(item: Item, reply: dict[str, Any] | None) -> str:
    if reply is None or "text_sha256" in reply or reply.get("refused"):
        return cached.reply_text(reply)
    text = str(reply.get("text") or "")
    answer = answer_to(item, stated_answer_text(text) if reply.get("finish") == "length" else text)
    return answer if answer is not None else "n/a: the answer is unparsed"
