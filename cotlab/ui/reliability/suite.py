"""The page Reliability, the whole suite: its components, items, correlations and diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.checked_share import composite_lines
from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import (
    ParaphraseChain,
    cosine_table,
    embedded_vectors,
    paraphrase_chains,
    wording_labels,
)
from cotlab.analysis.tables.declare import FigureChoice
from cotlab.analysis.view import RunView
from cotlab.core.resources import page_path
from cotlab.core.types import Item
from cotlab.figures.reliability import COMPONENT_ORDER, PART_NAMES
from cotlab.metrics.composite import FEATURE_SOURCES, SCORER_BY_COMPONENT
from cotlab.store import read
from cotlab.ui import cached, charts, components
from cotlab.ui.address import known_param
from cotlab.ui.components import show_cards
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import TextRow, render_rows
from cotlab.ui.linked import PageLink, show_linked_frame
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown

CARD_METRIC_BY_COMPONENT = {
    component: FEATURE_SOURCES[component][1]
    for component in COMPONENT_ORDER
    if component in FEATURE_SOURCES
} | {"r_raw": "r_raw"}
"""Metric whose card describes a component."""


def measured_components(row: RunView) -> list[str]:
    """Return the components that a run has scores of, the composite last."""
    measured_names = set(_load_component_scores(row)["part"])
    return [component for component in COMPONENT_ORDER if component in measured_names]


def render_component_means(row: RunView, names: Sequence[str], *, key: str = "parts") -> None:
    """Show the mean of each of some components with its interval and n.

    Parameters
    ----------
    row : dict
        The run.
    names : sequence of str
        Components among ``measured_components``.
    key : str
        Key of the figure, unique on the page.
    """
    rows = _load_component_scores(row)
    table = tables.component_means(
        rows[rows["part"].isin(names)], cached.load_estimates(row.id, row.revision)
    )
    if table.empty:
        st.info(
            "The means are estimated when the run ends or is stopped. Single items are in the table"
            " and under One item."
        )
    else:
        measured = measured_components(row)
        missing_texts = [
            f"{component} (scorer {SCORER_BY_COMPONENT.get(component, 'composite')})"
            for component in COMPONENT_ORDER
            if component not in measured
        ]
        notes = [f"Not measured in this run: {', '.join(missing_texts)}."] if missing_texts else []
        if "r_raw" in names:
            notes += composite_lines(_estimate_records(row))
        charts.show_run_figure("reliability_parts", table, key, row, note=" ".join(notes))
    show_cards(*(CARD_METRIC_BY_COMPONENT[name] for name in names))


def render_reliability_items(row: RunView) -> None:
    """List every item with its components and diagnoses, sorted across all pages."""
    scores = _load_scores(row)
    rows = _load_component_scores(row)
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
    page_rows = table.iloc[components.page_slice(len(table), f"items-{row.id}")].reset_index(
        drop=True
    )
    query = (("run", row.id), ("view", evidence.ITEM_TAB_LABEL))
    links = [PageLink("reliability", (*query, ("item", i))) for i in page_rows["item"]]
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


def render_correlations(row: RunView) -> None:
    """Show the rank correlation of each pair of components."""
    st.header("Correlations between components")
    correlations = tables.component_correlations(_load_component_scores(row))
    if correlations.empty:
        st.info("This needs two components; the run measured fewer.")
        return
    charts.show_run_figure("signal_correlation", correlations, "signals", row)


def render_diagnosis_rates(row: RunView) -> None:
    """Show in how many items each diagnosis applies."""
    if not evidence.make_scorer_filter("composite")(row.plan):
        components.render_empty_state(
            "Diagnoses come with the composite.",
            page_path("new_run"),
            "Run the scorer composite",
            {"from": row.id, "measure": "composite"},
        )
        return
    st.header("Diagnoses")
    rates = tables.diagnosis_means(_load_scores(row), cached.load_estimates(row.id, row.revision))
    if rates.empty:
        st.info("The rates are estimated when the run ends or is stopped.")
        return
    charts.show_run_figure(
        "diagnosis_rates", rates.sort_values("point", ascending=False), "diagnoses", row
    )
    components.show_card("diagnosis")


def render_reliability_notes(row: RunView) -> None:
    """Explain whose chains were measured, and what the numbers do not show."""
    st.caption(
        f"{tables.chain_sources_text(cached.stored_run(row.id).plan)} C, V, D and F read chains"
        " as text: a model that ignores its chain can write it as consistently and as"
        " soundly as one that follows it, so they cannot distinguish the two. The composite"
        " score (r_raw) is the weighted mean of the defined components, each clipped to [0,"
        " 1]; its weights are examples until they are tuned on labels, and it is not a"
        " probability."
    )


def _estimate_records(row: RunView) -> list[dict[str, Any]]:
    """Return the run's estimates with None where a number is undefined."""
    estimates = cached.load_estimates(row.id, row.revision)
    return [
        {str(name): None if pd.isna(value) else value for name, value in record.items()}
        for record in estimates.to_dict("records")
    ]


def _load_scores(row: RunView) -> pd.DataFrame:
    return _scores_at_revision(row.id, row.revision)


@cached.cache_by_store(4, copies_results=False)
def _scores_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return the scores of all components, which no caller may change: a copy costs 0.2 s."""
    return read.select_scores(
        cached.store(), run_id, metrics=tables.RELIABILITY_METRICS, with_evidence=False
    )


def _load_component_scores(row: RunView) -> pd.DataFrame:
    return _components_at_revision(row.id, row.revision)


@cached.cache_by_store(4, copies_results=False)
def _components_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return a row for each item and component, which no caller may change."""
    return tables.component_scores(_scores_at_revision(run_id, revision))


def render_paraphrases(row: RunView, item: Item) -> None:
    """Show each paraphrase with its chain, and the cosine of each pair of chains.

    Paraphrases of the hold-out are not shown.
    """
    item_scores = cached.selected_scores(row.id, row.revision, item_id=item.id)
    scores = tables.component_scores(item_scores, ("mu", "sigma", "C")).set_index("part")
    if scores.empty:
        return
    st.header("Paraphrases")
    # where the item was stopped early, the evidence is that of other components
    is_stopped = "mu" not in scores.index or scores.at["mu", "status"] == "stopped"
    keys = () if is_stopped else tuple(scores.at["mu", "evidence"])
    exchange_by_key, reply_by_key = cached.logged_exchanges(keys), cached.logged_responses(keys)
    request_by_key = {key: exchange_by_key[key][0] for key in keys if key in exchange_by_key}
    chains = paraphrase_chains(request_by_key, reply_by_key, item, row.plan.subject.form)
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
    cosine_pairs = cosine_table(wordings, chains, embedded_vectors(request_by_key, reply_by_key))
    if len(cosine_pairs):
        mu_score_id = evidence.score_id(*scores.loc["mu", ["metric", "facet"]])
        charts.show_figure(
            "chain_cosines",
            cosine_pairs,
            key=f"cosines-{item.id}",
            note=", ".join(component_texts) + ".",
            evidence=evidence.requests_address(row, item.id, score=mu_score_id),
            paper=charts.PaperFigure(row.id, "chain_cosines", FigureChoice(item=item.id)),
        )
    for first_index in range(0, len(chains), 2):
        for column, i in zip(
            st.columns(2), range(first_index, min(first_index + 2, len(chains))), strict=False
        ):
            with column:
                render_rows(
                    _paraphrase_rows(wordings[i], chains[i]),
                    key=f"paraphrase-{row.id}-{item.id}-{i}",
                )
                evidence.render_requests_link(
                    row, item.id, "Request and reply", request=chains[i].key
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
