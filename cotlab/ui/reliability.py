"""The tab Reliability of a run: its components and their composite, and those of one item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.readable import composite_lines
from cotlab.analysis.tables import reliability as tables
from cotlab.analysis.tables.chains import (
    ParaphraseChain,
    link_scores,
    link_table,
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
from cotlab.figures.style import ORANGE, VERMILLION, format_number
from cotlab.metrics.composite import DIAGNOSIS_RULES, FEATURE_SOURCES, SCORER_BY_COMPONENT
from cotlab.store import read
from cotlab.ui import cached, charts, components
from cotlab.ui.address import known_param
from cotlab.ui.components import show_cards
from cotlab.ui.item import evidence
from cotlab.ui.item.chain import (
    TextPiece,
    TextRow,
    load_scored_chain,
    render_chain_origin,
    render_rows,
)
from cotlab.ui.linked import show_linked, show_linked_frame
from cotlab.ui.metric_names import metric_name
from cotlab.ui.more import ITEM_SECTION, render_more
from cotlab.ui.pickers import select_item, select_option
from cotlab.ui.places import run_link
from cotlab.ui.run_notes import render_category_split
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict import evidence_link, record_link, run_verdict, validation_link

CARD_METRIC_BY_COMPONENT = {
    component: FEATURE_SOURCES[component][1]
    for component in COMPONENT_ORDER
    if component in FEATURE_SOURCES
} | {"r_raw": "r_raw"}
"""Metric whose card describes a component."""
MAX_STRONG_FACTOR = 0.93
"""Penalties with at most this factor are marked in the stronger colour."""
_COLUMN_HELPS = {**PART_NAMES, "checked": "Share of its weight that could check the chain."}
"""What the heads of the table of items say on hovering."""
_TESTED_MEASURES: tuple[MeasureName, ...] = (
    "change",
    "numeric_change",
    "inner_change",
    "alone",
    "moved",
    "sound",
)
"""Measures of a run that may stand in a headline if their validation allows it."""


class FlagHit(NamedTuple):
    """One penalty of a red flag, located in a step's text."""

    start: int
    """First character of the span."""
    end: int
    """Character after the span."""
    factor: float
    """Factor of the penalty, below 1."""
    hint: str
    """Rule, factor and reason, as the tooltip shows them."""


def render_reliability_tab(run: RunView) -> None:
    """Show the quality checks of a run, and whether they are validated."""
    render_category_split(run)
    render_tested_components(run)
    render_more(
        "means of the parts and the composite, over the suite and by item",
        partial(render_component_means, run),
        partial(render_reliability_items, run),
        name="parts",
        params=("sort", "diagnosis"),
    )
    render_more(
        "correlations and diagnoses",
        partial(charts.show, run, "signal_correlation"),
        partial(render_diagnosis_rates, run),
    )
    render_more("one item", partial(_render_item, run), **ITEM_SECTION)
    st.caption(
        f"{tables.chain_sources_text(run.plan)} C, V, D and F read chains"
        " as text: a model that ignores its chain can write it as consistently and as"
        " soundly as one that follows it, so they cannot distinguish the two. The composite"
        " score (r_raw) is the weighted mean of the defined components, each clipped to [0,"
        " 1]; its weights are examples until they are tuned on labels, and it is not a"
        " probability."
    )


def render_tested_components(run: RunView) -> None:
    """Show what tells faithful from bypassing models, and which parts do not.

    The means of parts that do not tell are under "More"; here stands what Validation found of them.
    """
    measured = _measured_components(run)
    if not measured:
        st.info("No item has been scored for reliability yet.")
        return
    known = {name: cached.metric_validation(CARD_METRIC_BY_COMPONENT[name]) for name in measured}
    tested = {CARD_METRIC_BY_COMPONENT[name]: name for name in measured if known[name].is_usable}
    if tested:
        means = _component_means(run)
        metrics = means["part"].map(CARD_METRIC_BY_COMPONENT)
        labels = [(metric, PART_NAMES[name]) for metric, name in tested.items()]
        components.render_headline(means.assign(metric=metrics), labels)
    _render_tested_measures(run)
    untested = {name: found for name, found in known.items() if not found.is_usable}
    if untested:
        _render_untested_components(untested, is_all=not tested)


def _measured_components(run: RunView) -> list[str]:
    """Return the components that a run has scores of, the composite last."""
    measured_names = set(_components_at_revision(run.id, run.revision)["part"])
    return [component for component in COMPONENT_ORDER if component in measured_names]


def _component_means(run: RunView) -> pd.DataFrame:
    return tables.component_means(
        _components_at_revision(run.id, run.revision), cached.load_estimates(run.id, run.revision)
    )


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
    rows = []
    for name, known in untested.items():
        metric = CARD_METRIC_BY_COMPONENT[name]
        link = record_link(cached.metric_validation_record(metric))
        rows.append([{"text": metric_name(metric)}, {"text": known.text, "link": link}])
    columns = ({"title": "Part"}, {"title": TESTED_TITLE})
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


def render_component_means(run: RunView) -> None:
    """Show the mean of every measured part, and of the composite."""
    measured = _measured_components(run)
    missing_texts = [
        f"{component} (scorer {SCORER_BY_COMPONENT.get(component, 'composite')})"
        for component in COMPONENT_ORDER
        if component not in measured
    ]
    notes = [f"Not measured in this run: {', '.join(missing_texts)}."] if missing_texts else []
    if "r_raw" in measured:
        notes += composite_lines(_estimate_records(run))
    charts.show(run, "reliability_parts", note=" ".join(notes))
    show_cards(*(CARD_METRIC_BY_COMPONENT[name] for name in measured))


def _estimate_records(run: RunView) -> list[dict[str, Any]]:
    """Return the run's estimates with None where a number is undefined."""
    estimates = cached.load_estimates(run.id, run.revision)
    return [
        {str(name): None if pd.isna(value) else value for name, value in record.items()}
        for record in estimates.to_dict("records")
    ]


@cached.cache_by_store(4, copies_results=False)
def _scores_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return the scores of all components, which no caller may change: a copy costs 0.2 s."""
    return read.select_scores(
        cached.store(), run_id, metrics=tables.RELIABILITY_METRICS, with_evidence=False
    )


@cached.cache_by_store(4, copies_results=False)
def _components_at_revision(run_id: str, revision: int) -> pd.DataFrame:
    """Return a row for each item and component, which no caller may change."""
    return tables.component_scores(_scores_at_revision(run_id, revision))


def render_reliability_items(run: RunView) -> None:
    """List every item with its components and diagnoses, sorted across all pages."""
    rows = _components_at_revision(run.id, run.revision)
    if rows.empty:
        return
    st.header("Items")
    table = tables.item_reliability_rows(rows, _scores_at_revision(run.id, run.revision))
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
    charts.show(run, "diagnosis_rates")
    components.show_card("diagnosis")


def _render_item(run: RunView) -> None:
    item = select_item(run)
    if item is None:
        return
    scores = cached.selected_scores(run.id, run.revision, item_id=item.id)
    render_item_components(run, item, scores)
    render_item_diagnoses(run, item, scores)
    render_flags(run, item, scores)
    render_verification_links(run, item, scores)
    render_paraphrases(run, item, scores)
    evidence.render_requests_link(run, item.id)


def render_item_components(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the item's components beside the suite's means, and why some are undefined."""
    rows = tables.component_scores(scores)
    if rows.empty:
        st.info("This item has not been scored for reliability yet.")
        return
    link = run_link(run.id, "items", item=item.id)
    charts.show(run, "item_parts", FigureChoice(item=item.id), evidence=link)
    frame = pd.DataFrame(
        {
            "part": rows["part"],
            "value": rows["value"].map(components.number_text),
            "reason": rows["reason"].where(rows["value"].isna()).fillna(""),
        }
    )
    evidence.render_score_table(run, rows, frame, title="Parts", key=f"behind-{item.id}")
    shares = tables.component_scores(scores, ("weight", "checked")).set_index("part")["value"]
    if shares.get("weight", 1) < 1:
        undefined_names_text = ", ".join(rows[rows["value"].isna()]["part"])
        st.caption(
            f"r_raw is over {100 * shares['weight']:.0f} % of the weight: without"
            f" {undefined_names_text}, the weights are renormalised."
        )
    if not pd.isna(shares.get("checked")):
        st.caption(f"{100 * shares['checked']:.0f} % of r_raw's weight could check this chain.")
    features = scores[scores["metric"] == "feature"]
    if features.empty:
        return
    names = [json.loads(text).get("feature", "") for text in features["facet"]]
    order = [*COMPONENT_ORDER, *(name for name in names if name not in COMPONENT_ORDER)]
    features = features.assign(feature=names).sort_values(
        "feature", key=lambda column: column.map(order.index)
    )
    frame = pd.DataFrame(
        {
            "feature": features["feature"],
            "value": features["value"].map(components.number_text),
            "status": features["status"],
            "reason": features["reason"].fillna(""),
        }
    )
    with st.expander("The feature vector of this item"):
        evidence.render_score_table(
            run, features, frame, title="Feature vector", key=f"features-{item.id}"
        )


def render_item_diagnoses(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show each diagnosis: whether it applies, and the numbers that it depends on."""
    rules = {rule.name: rule for rule in DIAGNOSIS_RULES}
    results = tables.diagnosis_scores(scores)
    results = results[results["rule"].isin(rules)].sort_values(
        ["value", "rule"], ascending=[False, True], na_position="last"
    )
    if results.empty:
        return
    st.header("Diagnosis")
    numbers = []
    for name in results["rule"]:
        feature_names = rules[name].feature_names
        values = tables.component_scores(scores, feature_names).set_index("part")["value"]
        numbers.append(
            ", ".join(
                f"{feature.replace('_', ' ')} {components.number_text(values.get(feature))}"
                for feature in feature_names
            )
        )
    frame = pd.DataFrame(
        {
            "rule": results["rule"].str.replace("_", " "),
            "fires": results["value"].map({1: "fires", 0: "no"}).fillna("n/a"),
            "its numbers": numbers,
            "reason": results["reason"].fillna(""),
        }
    )
    key = f"diagnosis-{item.id}"
    evidence.render_score_table(run, results, frame, title="Diagnosis", key=key, number_names=())
    components.show_card("diagnosis")


def render_flags(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the chain with every penalty's span marked, and the penalties as a table."""
    flag_scores = scores[scores["scorer"] == "flags"]
    if flag_scores.empty:
        return
    st.header("Red flags")
    chain = load_scored_chain(run, item, flag_scores)
    if not chain.steps:
        reasons = flag_scores[flag_scores["metric"] == "flags"]["reason"].dropna()
        first_reason = [*reasons, "the log does not have all of it"][0]
        st.info(f"No chain to show: {escape_markdown(str(first_reason))}.")
        return
    render_chain_origin(run, chain.from_model)
    penalties = flag_scores[
        (flag_scores["metric"] == "flag_penalty") & flag_scores["value"].notna()
    ].sort_values(["step", "facet", "value"])
    hits_by_step: dict[int, list[FlagHit]] = {}
    lines = []
    for penalty in penalties.to_dict("records"):
        facet = json.loads(penalty["facet"])
        step, rule = int(penalty["step"]), facet.get("rule", "").replace("_", " ")
        text = chain.steps[step] if step < len(chain.steps) else ""
        lo, hi = 0, len(text)
        if not pd.isna(penalty["where_lo"]):
            lo, hi = int(penalty["where_lo"]), int(penalty["where_hi"])
        why = facet.get("why", "") if pd.isna(penalty["reason"]) else str(penalty["reason"])
        factor = f"×{format_number(penalty['value'])}"
        hint = f"{rule} {factor}{f': {why}' if why else ''}"
        hits_by_step.setdefault(step, []).append(FlagHit(lo, hi, float(penalty["value"]), hint))
        lines.append((str(step + 1), rule, factor, shorten(text[lo:hi], 120), why))
    render_rows(
        [_flagged_step_row(i, text, hits_by_step.get(i, ())) for i, text in enumerate(chain.steps)],
        key=f"flags-{run.id}-{item.id}",
    )
    if lines:
        frame = pd.DataFrame(lines, columns=["step", "rule", "factor", "text", "why"])
        evidence.render_score_table(
            run,
            penalties,
            frame,
            title="Penalties",
            key=f"penalties-{item.id}",
            number_names=("step", "factor"),
        )
        st.caption(
            "Marked: text that matched a rule; hover for rule and factor. F is the product"
            " of the factors, at least 0.3."
        )
    else:
        st.caption("No red flag matched.")
    undefined = flag_scores[(flag_scores["metric"] == "flag_count") & flag_scores["value"].isna()]
    rules = [json.loads(facet).get("rule", "").replace("_", " ") for facet in undefined["facet"]]
    components.show_escaped_lines(
        [f"n/a, {rule}: {why}" for rule, why in zip(rules, undefined["reason"], strict=True)]
    )
    components.show_card("flags")


def _flagged_step_row(index: int, text: str, hits: Sequence[FlagHit]) -> TextRow:
    hint = "; ".join(hit.hint for hit in hits)
    score = " ".join(f"×{format_number(hit.factor)}" for hit in hits)
    return TextRow(index, f"{index + 1}", text, None, score, hint, mark_hits(text, hits))


def mark_hits(text: str, hits: Sequence[FlagHit]) -> tuple[TextPiece, ...]:
    """Split a text into pieces, those with a penalty coloured. Joined, they are the text."""
    ends = (position for hit in hits for position in (hit.start, hit.end))
    boundaries = sorted({0, len(text), *(min(max(0, end), len(text)) for end in ends)})
    pieces = []
    for lo, hi in zip(boundaries, boundaries[1:], strict=False):
        covering_hits = [hit for hit in hits if hit.start < hi and hit.end > lo]
        is_strong = any(hit.factor <= MAX_STRONG_FACTOR for hit in covering_hits)
        shade = (VERMILLION if is_strong else ORANGE) if covering_hits else None
        pieces.append(TextPiece(text[lo:hi], shade, "; ".join(hit.hint for hit in covering_hits)))
    return tuple(pieces)


def render_verification_links(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show the links between steps, and which failed or stayed undecided and why."""
    scores = scores[scores["scorer"] == "verification"]
    if scores.empty:
        return
    st.header("Verification")
    chain = load_scored_chain(run, item, scores)
    table = link_table(scores, chain.steps)
    if table.empty:
        reasons = [*scores["reason"].dropna(), "the chain has no link"]
        st.info(f"No link was checked: {escape_markdown(str(reasons[0]))}.")
        return
    render_chain_origin(run, chain.from_model)
    link = run_link(run.id, "items", item=item.id)
    charts.show(run, "verification_links", FigureChoice(item=item.id), evidence=link)
    is_weak = (table["value"].isna() | (table["value"] < 0.5)).to_numpy()
    weak_links = table[is_weak]
    if len(weak_links):
        frame = pd.DataFrame(
            {
                "link": weak_links["link"],
                "step": [str(step + 1) for step in weak_links["step"]],
                "support": [components.number_text(v) for v in weak_links["value"]],
                "decided by": weak_links["verifier"],
                "at": [shorten(quote, 80) for quote in weak_links["quote"]],
                "why undecided": weak_links["reason"].fillna(""),
            }
        )
        evidence.render_score_table(
            run,
            link_scores(scores)[is_weak],
            frame,
            title="Weak links",
            key=f"weak-{item.id}",
            number_names=("step", "support"),
        )
        st.caption("Links that are undecided or below 0.5.")
    components.show_card("link_support")


def render_paraphrases(run: RunView, item: Item, scores: pd.DataFrame) -> None:
    """Show each paraphrase with its chain, and the cosine of each pair of chains.

    Paraphrases of the hold-out are not shown.
    """
    scores = tables.component_scores(scores, ("mu", "sigma", "C")).set_index("part")
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
    score = evidence.score_id(*scores.loc["mu", ["metric", "facet"]])
    charts.show(
        run,
        "chain_cosines",
        FigureChoice(item=item.id),
        note=", ".join(component_texts) + ".",
        evidence=run_link(run.id, "items", item=item.id, score=score),
    )
    columns = st.columns(2)
    for i, (wording, chain) in enumerate(zip(wording_labels(chains, item), chains, strict=True)):
        with columns[i % 2]:
            key = f"paraphrase-{run.id}-{item.id}-{i}"
            render_rows(_paraphrase_rows(wording, chain), key=key)
            evidence.render_requests_link(run, item.id, "Request and reply", request=chain.key)
    st.caption("Paraphrases of the hold-out are not shown, so that nothing is tuned on them.")


def _paraphrase_rows(wording: str, paraphrase: ParaphraseChain) -> list[TextRow]:
    chain = "\n".join(paraphrase.steps) if paraphrase.steps else f"n/a: {paraphrase.missing_reason}"
    answer = paraphrase.answer if paraphrase.answer is not None else "n/a"
    return [
        TextRow(0, wording, paraphrase.question),
        TextRow(1, "Chain", chain),
        TextRow(2, "Answer", answer),
    ]
