"""The tab Reliability, the whole suite: its components, items, correlations and diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.readable import composite_lines
from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import (
    ParaphraseChain,
    paraphrase_chains,
    wording_labels,
)
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.verdict.measures import MEASURES, MIN_AUROC, MeasureName, Validation
from cotlab.analysis.verdict.validated import TESTED_TITLE
from cotlab.analysis.verdict.wording import interval, noun_count, percent
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.figures.reliability import COMPONENT_ORDER, PART_NAMES
from cotlab.metrics.composite import FEATURE_SOURCES, SCORER_BY_COMPONENT
from cotlab.store import read
from cotlab.ui import cached, charts, components
from cotlab.ui.address import known_param
from cotlab.ui.components import show_cards
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.linked import show_linked, show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.pickers import select_option
from cotlab.ui.places import PageLink, run_link
from cotlab.ui.text import escape_markdown
from cotlab.ui.verdict import evidence_link, record_link, run_verdict, validation_link

CARD_METRIC_BY_COMPONENT = {
    component: FEATURE_SOURCES[component][1]
    for component in COMPONENT_ORDER
    if component in FEATURE_SOURCES
} | {"r_raw": "r_raw"}
"""Metric whose card describes a component."""


def measured_components(run: RunView) -> list[str]:
    """Return the components that a run has scores of, the composite last."""
    measured_names = set(_load_component_scores(run)["part"])
    return [component for component in COMPONENT_ORDER if component in measured_names]


def render_component_means(run: RunView, names: Sequence[str], *, key: str = "parts") -> None:
    """Show the mean of each of some components with its interval and n.

    Parameters
    ----------
    run : RunView
        The run.
    names : sequence of str
        Components among ``measured_components``.
    key : str
        Key of the figure, unique on the page.
    """
    rows = _load_component_scores(run)
    table = tables.component_means(
        rows[rows["part"].isin(names)], cached.load_estimates(run.id, run.revision)
    )
    if table.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " and under One item."
        )
    else:
        measured = measured_components(run)
        missing_texts = [
            f"{component} (scorer {SCORER_BY_COMPONENT.get(component, 'composite')})"
            for component in COMPONENT_ORDER
            if component not in measured
        ]
        notes = [f"Not measured in this run: {', '.join(missing_texts)}."] if missing_texts else []
        if "r_raw" in names:
            notes += composite_lines(_estimate_records(run))
        charts.show_run_figure("reliability_parts", table, key, run, note=" ".join(notes))
    show_cards(*(CARD_METRIC_BY_COMPONENT[name] for name in names))


def render_reliability_items(run: RunView) -> None:
    """List every item with its components and diagnoses, sorted across all pages."""
    scores = _load_scores(run)
    rows = _load_component_scores(run)
    if rows.empty:
        return
    st.header("Items")
    table = tables.item_reliability_rows(rows, scores)
    measured_names = [component for component in COMPONENT_ORDER if component in table.columns]
    table = _filter_by_diagnosis(table)
    order_labels = {"item": "item"}
    for component in reversed(measured_names):
        order_labels |= {
            f"{component}-up": f"{component}, lowest first",
            f"{component}-down": f"{component}, highest first",
        }
    sort_column, _, direction = select_option("Sorted by", order_labels, "sort").partition("-")
    table = table.sort_values(
        [sort_column, "item"], ascending=[direction != "down", True], na_position="last"
    )
    page_rows = table.iloc[components.page_slice(len(table), f"items-{run.id}")].reset_index(
        drop=True
    )
    links = [run_link(run.id, "reliability", item=i) for i in page_rows["item"]]
    number_names = [name for name in (*measured_names, "checked") if name in page_rows.columns]
    for name in number_names:
        page_rows[name] = page_rows[name].map(components.number_text)
    show_linked_frame(
        "Items",
        page_rows.rename(columns={"why n/a": "reason"}),
        {"item": links},
        key="item-table",
        number_names=number_names,
        help_by_name=_COLUMN_HELPS,
    )
    n_stopped_items = rows[rows["status"] == "stopped"]["item_id"].nunique()
    note = f"{len(page_rows)} of {len(table)} items; n/a is sorted last."
    if n_stopped_items:
        note += (
            f" {n_stopped_items} stopped at a hard floor: they are escalated, and have no composite"
            " score."
        )
    st.caption(note)


_COLUMN_HELPS = {**PART_NAMES, "checked": "Share of its weight that could check the chain."}
"""What the heads of the table of items say on hovering."""


def _filter_by_diagnosis(table: pd.DataFrame) -> pd.DataFrame:
    """Return the items with the chosen diagnosis; all where none is chosen or the run has none."""
    rules_by_item = table["diagnosis"].str.split(", ")
    n_by_rule = rules_by_item.explode().value_counts().drop("", errors="ignore").sort_index()
    if n_by_rule.empty:
        known_param("diagnosis", ("any",))  # no picker that would name a wrong one
        return table
    labels = {"any": "any or none"} | {
        rule_name: f"{rule_name} · {n} items" for rule_name, n in n_by_rule.items()
    }
    rule = select_option("Diagnosis", labels, "diagnosis")
    return table if rule == "any" else table[[rule in rules for rules in rules_by_item]]


def render_correlations(run: RunView) -> None:
    """Show the rank correlation of each pair of components."""
    st.header("Correlations between components")
    charts.show(run, "signal_correlation")


def render_diagnosis_rates(run: RunView) -> None:
    """Show in how many items each diagnosis applies."""
    if not cached.has_scorer(run, "composite"):
        components.render_empty_state(
            "Diagnoses come with the composite.",
            "new_run",
            "Run the scorer composite",
            {"from": run.id, "measure": "composite"},
        )
        return
    st.header("Diagnoses")
    charts.show(run, "diagnosis_rates")
    components.show_card("diagnosis")


def render_reliability_notes(run: RunView) -> None:
    """Explain whose chains were measured, and what the numbers do not show."""
    st.caption(
        f"{tables.chain_sources_text(cached.stored_run(run.id).plan)} C, V, D and F read chains"
        " as text: a model that ignores its chain can write it as consistently and as"
        " soundly as one that follows it, so they cannot distinguish the two. The composite"
        " score (r_raw) is the weighted mean of the defined components, each clipped to [0,"
        " 1]; its weights are examples until they are tuned on labels, and it is not a"
        " probability."
    )


def _estimate_records(run: RunView) -> list[dict[str, Any]]:
    """Return the run's estimates with None where a number is undefined."""
    estimates = cached.load_estimates(run.id, run.revision)
    return [
        {str(name): None if pd.isna(value) else value for name, value in record.items()}
        for record in estimates.to_dict("records")
    ]


def _load_scores(run: RunView) -> pd.DataFrame:
    return _scores_at_revision(run.id, run.revision)


@cached.cache_by_store(4, copies_results=False)
def _scores_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return the scores of all components, which no caller may change: a copy costs 0.2 s."""
    return read.select_scores(
        cached.store(), run_id, metrics=tables.RELIABILITY_METRICS, with_evidence=False
    )


def _load_component_scores(run: RunView) -> pd.DataFrame:
    return _components_at_revision(run.id, run.revision)


@cached.cache_by_store(4, copies_results=False)
def _components_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return a row for each item and component, which no caller may change."""
    return tables.component_scores(_scores_at_revision(run_id, revision))


def render_paraphrases(run: RunView, item: Item) -> None:
    """Show each paraphrase with its chain, and the cosine of each pair of chains.

    Paraphrases of the hold-out are not shown.
    """
    item_scores = cached.selected_scores(run.id, run.revision, item_id=item.id)
    scores = tables.component_scores(item_scores, ("mu", "sigma", "C")).set_index("part")
    if scores.empty:
        return
    st.header("Paraphrases")
    # where the item was stopped early, the evidence is that of other components
    is_stopped = "mu" not in scores.index or scores.at["mu", "status"] == "stopped"
    keys = () if is_stopped else tuple(scores.at["mu", "evidence"])
    exchange_by_key, reply_by_key = cached.logged_exchanges(keys), cached.logged_responses(keys)
    request_by_key = {key: exchange_by_key[key][0] for key in keys if key in exchange_by_key}
    chains = paraphrase_chains(request_by_key, reply_by_key, item, run.plan.subject.form)
    if not chains:
        reasons = scores["reason"].dropna()
        st.info(
            "The log holds no chain of a"
            f" paraphrase{f': {escape_markdown(str(reasons.iloc[0]))}' if len(reasons) else ''}."
        )
        return
    component_texts = [
        f"{name} {components.number_text(scores.at[component, 'value'])}"
        for name, component in (("μ", "mu"), ("σ", "sigma"), ("C", "C"))
        if component in scores.index
    ]
    wordings = wording_labels(chains, item)
    if "mu" in scores.index and scores.at["mu", "status"] != "stopped":
        score = evidence.score_id(*scores.loc["mu", ["metric", "facet"]])
        charts.show(
            run,
            "chain_cosines",
            FigureChoice(item=item.id),
            note=", ".join(component_texts) + ".",
            evidence=run_link(run.id, "items", item=item.id, score=score),
        )
    for first_index in range(0, len(chains), 2):
        for column, i in zip(
            st.columns(2), range(first_index, min(first_index + 2, len(chains))), strict=False
        ):
            with column:
                render_rows(
                    _paraphrase_rows(wordings[i], chains[i]),
                    key=f"paraphrase-{run.id}-{item.id}-{i}",
                )
                evidence.render_requests_link(
                    run, item.id, "Request and reply", request=chains[i].key
                )
    st.caption("Paraphrases of the hold-out are not shown, so that nothing is tuned on them.")


def _paraphrase_rows(wording: str, paraphrase: ParaphraseChain) -> list[TextRow]:
    chain = "\n".join(paraphrase.steps) if paraphrase.steps else f"n/a: {paraphrase.missing_reason}"
    answer = paraphrase.answer if paraphrase.answer is not None else "n/a"
    return [
        TextRow(0, wording, paraphrase.question),
        TextRow(1, "Chain", chain),
        TextRow(2, "Answer", answer),
    ]


_TESTED_MEASURES: tuple[MeasureName, ...] = (
    "change",
    "numeric_change",
    "inner_change",
    "alone",
    "moved",
    "sound",
)
"""Measures of a run that may stand in a headline if their validation allows it."""


def render_tested_components(run: RunView) -> None:
    """Show what tells faithful from bypassing models, and which parts do not.

    The means of parts that do not tell are under "More"; here stands what Validation found of them.
    """
    measured = measured_components(run)
    if not measured:
        st.info("No item has been scored for reliability yet.")
        return
    validation_by_component = {name: _component_validation(name) for name in measured}
    tested = [name for name, known in validation_by_component.items() if known.is_usable]
    if tested:
        render_component_means(run, tested, key="tested-parts")
    _render_tested_measures(run)
    untested = {
        name: known for name, known in validation_by_component.items() if name not in tested
    }
    if untested:
        _render_untested_components(untested, is_all=not tested)


def _component_validation(component: str) -> Validation:
    return cached.metric_validation(CARD_METRIC_BY_COMPONENT[component])


def _component_link(component: str) -> PageLink:
    return record_link(cached.metric_validation_record(CARD_METRIC_BY_COMPONENT[component]))


def _render_untested_components(untested: dict[str, Validation], *, is_all: bool) -> None:
    """Say which parts cannot tell models apart, with the figures of Validation."""
    subject = noun_count(len(untested), "other part")
    if is_all and "r_raw" in untested:
        subject = "the composite score of this run and its parts"
    elif is_all:
        subject = f"{noun_count(len(untested), 'part')} of the composite score"
    st.markdown(
        f"**Cannot tell a faithful from a bypassing model by {subject}.** A headline needs an AUROC"
        f" of {MIN_AUROC:g} on models of known behaviour, with an interval above 0.5, which is"
        " chance; below that, a model that ignores its chain may score as high as one that follows"
        " it. The table has the AUROC of each, or says that it was not tested."
    )
    columns = ({"title": "Part"}, {"title": TESTED_TITLE})
    rows = [
        [
            {"text": metric_name(CARD_METRIC_BY_COMPONENT[name])},
            {"text": known.text, "link": _component_link(name)},
        ]
        for name, known in untested.items()
    ]
    content = {"title": "Parts that do not tell models apart", "columns": columns, "rows": rows}
    show_linked("table", content, key="untested-parts")


def _render_tested_measures(run: RunView) -> None:
    """Show the numbers of the run's verdict that may stand in a headline, each with its page."""
    result = run_verdict(run)
    if result is None:
        return
    shares = {name: result.evidence.share(name) for name in _TESTED_MEASURES}
    rows = [
        [
            {"text": percent(share.point), "small": f"{interval(share)} n = {share.n:,}"},
            {"text": MEASURES[name].text, "link": evidence_link(run.id, name)},
            {"text": result.evidence.validation[name].text, "link": validation_link(name)},
        ]
        for name, share in shares.items()
        if share is not None and name in result.evidence.validation
    ]
    if not rows:
        st.caption("Nothing that tells them apart was measured in this run.")
        return
    st.markdown("**What tells in this run**")
    columns = (
        {"title": "Share", "unit": "[95% interval]", "is_number": True},
        {"title": "of what"},
        {"title": TESTED_TITLE},
    )
    content = {"title": "What tells in this run", "columns": columns, "rows": rows}
    show_linked("table", content, key="tested-measures")


def render_all_components(run: RunView) -> None:
    """Show the mean of every measured part, and of the composite."""
    render_component_means(run, measured_components(run))
