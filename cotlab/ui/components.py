"""Components of every page: heading, figure with its data, metric card, empty state, numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.registry import FIGURES, SCORERS
from cotlab.core.resources import page
from cotlab.core.types import MetricCard
from cotlab.export.tabular import disarmed
from cotlab.figures.style import format_number, interval_text
from cotlab.ui import cached
from cotlab.ui.text import as_code

PAGE_ROWS = 50
STATUS = {
    "planned": ":material/schedule: planned",
    "running": ":material/play_circle: running",
    "done": ":material/check_circle: done",
    "stopped": ":material/pause_circle: stopped",
    "budget": ":material/savings: budget reached",
    "failed": ":material/error: failed",
    "interrupted": ":material/warning: interrupted",
}
METRIC_NAMES = {
    "accuracy_delta": "Change of correctness (CCS)",
    "answer_change": "Change of the answer (CCS)",
    "token_delta": "Change of the reply's words (CCS)",
    "kl_divergence": "Change of the first token (CCS)",
    "baseline_correct": "Answer correct with the full chain",
    "baseline_flip": "Answer changes without ablation (noise)",
    "rrr": "Share of steps without effect (RRR)",
    "rrr_micro": "Share of steps without effect, pooled (RRR)",
    "rrr_ceiling": "Highest RRR if one step has an effect",
    "ccs_above_noise": "Causal contribution above noise",
    "cmi": "Influence of the chain's states (CMI)",
    "bypass": "Bypass of the chain (1 − CMI)",
    "mass_lost": "Answer probability lost by patching",
    "step_entropy": "Entropy of a step",
    "consistency": "Consistency (C)",
    "consistency_mu": "Mean similarity of chains (μ)",
    "consistency_sigma": "Spread of the similarity of chains (σ)",
    "c_dtw": "Consistency by alignment of steps (DTW)",
    "robustness": "Robustness (R)",
    "verification": "Verification (V)",
    "diversity": "Diversity (D)",
    "flags": "Red flags (F)",
    "r_raw": "Composite score (r_raw)",
    "robustness_dispersion": "Dispersion of the divergence",
    "divergence": "Divergence after a perturbed step",
    "perturbed_answer_change": "Answer changes after a perturbed step",
    "rename_stable": "Same answer with other names",
    "number_follows": "Right answer with another number",
    "number_moves": "Other answer with another number",
    "causal_stability": "Stable under both changes of the question",
    "link_support": "Support of a link between steps",
    "unfaithfulness": "Unfaithfulness score",
    "unfaithful_rate": "Share of unfaithful responses",
    "classifier_kappa": "Agreement of two classifiers (kappa)",
    "judge_score": "Judge's score",
    "judge_order_effect": "Effect of the order on the judge",
    "judge_length_rho": "Correlation of judge's score and length",
    "answer_correct": "Answer correct",
    "arithmetic_ok": "Steps with correct arithmetic",
}
"""Names of metrics on pages; a metric that is not listed is named by its own words."""
FEATURE_DESCRIPTIONS = {
    "r_raw": "the composite score: the weighted mean of the components C, R, V, D, F",
    "weight": "share of its weight that is defined",
    "correct": "the model's answer is right (1) or not (0)",
    "C": "consistency of the model's chains over paraphrases",
    "mu": "mean similarity of those chains",
    "sigma": "spread of that similarity",
    "agreement": "share of pairs of those chains with the same answer",
    "R": "robustness when a step is perturbed",
    "R_sd": "spread of how far the chain diverges then",
    "V": "verification of the links between steps",
    "pass_rate": "share of the links that hold",
    "weak_link": "V's mean minus the longest run of weak links",
    "coverage": "share of the links that a verifier could decide",
    "D": "diversity of the strategies that reach the answer",
    "clusters": "number of strategies",
    "F": "red flags in the chain; 1 is clean",
    "early_answer": "answers given too early",
    "jumps": "steps far from the one before",
    "ccs_corrupt": "share of the steps whose corruption changes the answer",
    "mass_lost": "probability of the answer that is lost without the chain's states",
    "bypass": "1 − CoT-mediated influence",
}


def metric_name(name: str) -> str:
    """Return a metric's name for readers: "Share of steps without effect (RRR)" for ``rrr``."""
    words = name.replace("_", " ")
    return METRIC_NAMES.get(name, words[:1].upper() + words[1:])


def head(title: str, question: str) -> None:
    """Show a page's title and the question that it answers."""
    st.title(title)
    st.caption(question)


def all_cards() -> dict[str, MetricCard]:
    """Return every metric's card by name."""
    by_name: dict[str, MetricCard] = {}
    for name in SCORERS:
        scorer = SCORERS[name]
        by_name |= {
            card.name: card for card in (*scorer.cards, *(s.card for s in scorer.statistics))
        }
    return by_name


def card_text(card: MetricCard) -> str:
    """Format a card as Markdown: formula, range, direction, source, and what it does not show."""
    better = {
        "higher": "Higher is better.",
        "lower": "Lower is better.",
        "neither": "Neither end is better.",
    }[card.better]
    lines = (
        f"**{metric_name(card.name)}**, `{card.name}` ({card.symbol}): {card.formula}",
        f"Range {card.lo:g} to {card.hi:g} {card.unit}, one value per {card.level}. {better}",
        f"Undefined: {card.undefined}",
        f"Does not show: {card.not_shown}",
        f"Source: {card.source}",
    )
    return "\n\n".join(lines)


def show_card(name: str) -> None:
    """Show a button that opens a metric's card."""
    card = all_cards().get(name)
    if card is not None:
        with st.popover(metric_name(name), icon=":material/info:"):
            st.markdown(card_text(card))


def show_figure(
    name: str,
    table: pd.DataFrame,
    *,
    key: str,
    note: str = "",
    evidence: tuple[str, dict[str, str]] | None = None,
    clicked: Callable[[Sequence[Any]], None] | None = None,
) -> None:
    """Show a registered figure with its caption, a download of its data and a link to its evidence.

    Parameters
    ----------
    name : str
        Name of the figure in the registry.
    table : DataFrame
        The figure's data.
    key : str
        Key of the chart's widget, unique on the page.
    note : str
        Text after the figure's caption.
    evidence : (str, dict) or None
        Page and query of the link "Evidence".
    clicked : callable or None
        Called with a mark's custom data when it is clicked, before the page runs again.
    """
    builder, widget_key = FIGURES[name], f"figure-{key}"

    def chose() -> None:
        points = st.session_state[widget_key]["selection"]["points"]
        if points and clicked is not None and points[0].get("customdata"):
            clicked(points[0]["customdata"])

    st.plotly_chart(
        builder(table),
        theme=None,
        key=widget_key,
        config={"displaylogo": False, "displayModeBar": False},
        on_select="ignore" if clicked is None else chose,
        selection_mode="points",
    )
    st.caption(" ".join(part for part in (builder.caption, note) if part))
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_button(name, table, key)
        if evidence is not None:
            st.page_link(
                evidence[0],
                label="Evidence",
                icon=":material/fact_check:",
                query_params=evidence[1],
            )


def show_run_figure(
    name: str,
    table: pd.DataFrame,
    key: str,
    row: dict[str, Any],
    note: str = "",
    clicked: Callable[[Sequence[Any]], None] | None = None,
) -> None:
    """Show a registered figure whose evidence is the page of the run."""
    evidence = (page("run"), {"run": row["id"]})
    show_figure(name, table, key=key, note=note, evidence=evidence, clicked=clicked)


def empty(
    message: str, path: str | None = None, label: str = "", params: dict[str, str] | None = None
) -> None:
    """Show an empty state: a message, and a link to where to go."""
    st.info(message)
    if path is not None:
        st.page_link(path, label=label, icon=":material/arrow_forward:", query_params=params)


def status_of(row: dict[str, Any]) -> str:
    """Return a run's current status: one that is running without a heartbeat is "interrupted"."""
    if row["status"] in ("running", "planned"):
        live = cached.live(row["id"])
        return (
            "running"
            if live is not None and live.alive
            else ("interrupted" if row["status"] == "running" else "planned")
        )
    return str(row["status"])


def partial_banner(row: dict[str, Any]) -> None:
    """Warn where a run has not scored all of its items, or scored some with errors."""
    ended, total, errors = (
        int(row["n_ended"]),
        int(row["n_items"]) * _scorers(row),
        int(row["n_errors"]),
    )
    if ended < total or errors:
        unit = "items scored" if _scorers(row) < 2 else f"{progress_unit(row['id'])} scored"
        st.warning(
            f"Partial: {ended} of {total} {unit}, {errors} scores with an error ({status_of(row)})."
        )


def progress_unit(run_id: str) -> str:
    """Return the unit of a run's progress: each of its scorers scores each item once."""
    return "items" if len(cached.run_plan(run_id).scorers) < 2 else "items × scorers"


def facet_text(facet: str, *without: str) -> str:
    """Format a facet: "chain own, perturbation numeric"."""
    return ", ".join(
        f"{name} {value}" for name, value in json.loads(facet).items() if name not in without
    )


def _scorers(row: dict[str, Any]) -> int:
    """Return the number of a run's scorers."""
    return len(cached.parse_plan(row["plan"]).scorers)


def page_slice(n: int, key: str, size: int = PAGE_ROWS) -> slice:
    """Return the rows of the current page of ``n``; a widget chooses among several pages."""
    pages = -(-n // size)
    at = st.number_input(f"Page of {pages}", 1, pages, 1, key=key) if pages > 1 else 1
    return slice((at - 1) * size, at * size)


def show_numbers(pairs: Sequence[tuple[str, str]]) -> None:
    """Show labelled numbers in a row that wraps on a narrow page."""
    with st.container(horizontal=True, gap="medium"):
        for label, value in pairs:
            st.metric(label, value, width="content")


def money(micro: float) -> str:
    """Format micro-dollars: "$0.0123"."""
    return f"${micro / 1e6:,.4f}"


def estimate_text(row: dict[str, Any]) -> str:
    """Format an estimate: "0.361 [0.340, 0.382]", or "n/a"."""
    point = row["point"]
    return (
        "n/a"
        if pd.isna(point)
        else interval_text(point, *(None if pd.isna(row[k]) else row[k] for k in ("lo", "hi")))
    )


def number_text(value: Any) -> str:
    """Format a number, or "n/a"."""
    return format_number(None if pd.isna(value) else float(value))


def plain_list(lines: Sequence[str]) -> None:
    """Show lines of text from outside, escaped."""
    for line in lines:
        st.markdown(as_code(line))


def render_feature_help(names: Iterable[str]) -> None:
    """Show a button that explains these features."""
    with st.popover("What are these features?", icon=":material/info:"):
        st.markdown(
            "\n".join(
                f"- **{name}**: {FEATURE_DESCRIPTIONS[name]}"
                for name in names
                if name in FEATURE_DESCRIPTIONS
            )
        )
        st.caption(
            "The page Reliability has the card of each component: formula, range, and what"
            " it does not show."
        )


def right_aligned(*names: str) -> dict[str, Any]:
    """Return the configuration of table columns with numbers as text."""
    return {name: st.column_config.TextColumn(name, alignment="right") for name in names}


def csv_button(name: str, table: Any, key: str) -> None:
    """Show a download of a table as CSV; cells that a spreadsheet would run are escaped."""
    st.download_button(
        "Data (CSV)",
        lambda: disarmed(table).to_csv(index=False),
        f"{name}.csv",
        "text/csv",
        key=f"data-{key}",
        icon=":material/download:",
        on_click="ignore",
    )
