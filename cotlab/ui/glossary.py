"""The glossary of metrics, made from their cards: on Search for a word, on Validation in full."""

from __future__ import annotations

import re

import streamlit as st

from cotlab.core.types import MetricCard
from cotlab.ui.address import bind_text
from cotlab.ui.components import card_text, metric_cards_by_name, page_slice
from cotlab.ui.linked import show_linked
from cotlab.ui.metric_names import metric_name

MAX_TERMS, CARDS_PER_PAGE = 3, 10
"""Cards that a search shows, and those of a page of the glossary."""
ABBREVIATIONS = {
    "CCS": "causal contribution of a step: whether, or how far, the answer changes when it does",
    "RRR": "share of the steps without effect: those whose CCS lies below a threshold",
    "CMI": "influence of the chain's hidden states on the answer",
    "KL": "Kullback-Leibler divergence, in nats",
    "AUROC": "area under the ROC curve: 0.5 is chance, 1 separates without error",
}
"""What the abbreviations of the cards stand for."""
_COMMON_TERMS = frozenset(
    ("a", "after", "another", "by", "if", "in", "is", "it", "of", "on", "or", "the", "to", "with")
)
"""Words of names that name no metric."""
_COLUMNS = ({"title": "Metric"}, {"title": "Means"}, {"title": "Does not show"})


def find_cards(text: str, max_cards: int | None = None) -> list[MetricCard]:
    """Return the cards of a word: those called so first, then those whose name holds it."""
    word = " ".join(text.casefold().split())
    if not word:
        return list(metric_cards_by_name().values())[:max_cards]
    ranked = []
    for card in metric_cards_by_name().values():
        names = (card.name, card.symbol, metric_name(card.name))
        terms = {w for name in names for w in re.split(r"[\s()_]+", name.casefold())}
        folded_names = [name.casefold().replace("_", " ") for name in names]
        if word in folded_names or card.name == word:
            ranked.append((0, card))
        elif word in terms - _COMMON_TERMS:
            ranked.append((1, card))
        elif len(word) > 3 and any(word.replace("_", " ") in name for name in folded_names):
            ranked.append((2, card))
    ranked.sort(key=lambda entry: entry[0])
    return [card for _, card in ranked][:max_cards]


def render_terms(text: str) -> None:
    """Show the metrics that a searched word names; nothing where it names none."""
    for card in find_cards(text, MAX_TERMS):
        with st.expander(f"Metric: {metric_name(card.name)}", icon=":material/info:"):
            st.markdown(card_text(card))
            if meanings := abbreviation_texts(card):
                st.caption(" ".join(meanings))


def abbreviation_texts(card: MetricCard) -> list[str]:
    """Return what the abbreviations stand for that a card uses."""
    text = f"{card.symbol} {card.formula} {card.not_shown}"
    return [
        f"{short}: {meaning}."
        for short, meaning in ABBREVIATIONS.items()
        if re.search(rf"\b{short}\b", text)
    ]


def render_glossary() -> None:
    """Show every metric with its meaning and what it does not show, filtered by a word."""
    st.header("Glossary")
    text = st.text_input(
        "Metric or word", placeholder="RRR, faithful, bypass …", **bind_text("term")
    )
    cards = find_cards(text or "")
    if not cards:
        st.info("No metric is called so. Fewer letters find more.")
        return
    table_slot = st.container()
    cards = cards[page_slice(len(cards), "glossary-page", CARDS_PER_PAGE)]
    rows = [
        [
            {"text": metric_name(card.name), "small": card.name},
            {"text": card.formula},
            {"text": card.not_shown},
        ]
        for card in cards
    ]
    content = {"title": "Glossary", "columns": _COLUMNS, "rows": rows, "is_sortable": True}
    with table_slot:
        show_linked("table", content, key="glossary-table")
    st.caption(" ".join(f"{short}: {meaning}." for short, meaning in ABBREVIATIONS.items()))
