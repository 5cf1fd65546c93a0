"""What every page is made of: its head, its figures with their data and evidence, empty states, and cards of metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from cotlab.core.registry import FIGURES, SCORERS
from cotlab.core.types import MetricCard, Plan
from cotlab.export.tabular import disarmed
from cotlab.figures.style import format_number, interval_text
from cotlab.store import read
from cotlab.ui import cached as data
from cotlab.ui.links import page
from cotlab.ui.text import as_code, shorten

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


def head(title: str, question: str) -> None:
    """A page's title, and the one question it answers."""
    st.title(title)
    st.caption(question)


def all_cards() -> dict[str, MetricCard]:
    """Every metric's card by name."""
    by_name: dict[str, MetricCard] = {}
    for name in SCORERS:
        scorer = SCORERS[name]
        by_name |= {
            card.name: card for card in (*scorer.cards, *(s.card for s in scorer.statistics))
        }
    return by_name


def card_text(card: MetricCard) -> str:
    """A card as Markdown of our own words: formula, range, direction, source, and what it does not show."""
    better = {
        "higher": "Higher is better.",
        "lower": "Lower is better.",
        "neither": "Neither end is better.",
    }[card.better]
    lines = (
        f"**{card.name}** ({card.symbol}): {card.formula}",
        f"Range {card.lo:g} to {card.hi:g} {card.unit}, one value a {card.level}. {better}",
        f"Undefined: {card.undefined}",
        f"Does not show: {card.not_shown}",
        f"Source: {card.source}",
    )
    return "\n\n".join(lines)


def show_card(name: str) -> None:
    """A button that opens a metric's card."""
    card = all_cards().get(name)
    if card is not None:
        with st.popover(f"What is {name}?", icon=":material/info:"):
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
    """A registered figure with its caption, a button for its data and a link to its evidence.

    ``clicked`` is given what a mark holds as its custom data when a reader clicks on it, before the
    page is drawn again.
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
        st.download_button(
            "Data (CSV)",
            lambda: disarmed(table).to_csv(index=False),
            file_name=f"{name}.csv",
            mime="text/csv",
            key=f"data-{key}",
            icon=":material/download:",
            on_click="ignore",
        )
        if evidence is not None:
            st.page_link(
                evidence[0],
                label="Evidence",
                icon=":material/fact_check:",
                query_params=evidence[1],
            )


def empty(
    message: str, page: str | None = None, label: str = "", params: dict[str, str] | None = None
) -> None:
    """What a page says where there is nothing to show, and where to go."""
    st.info(message)
    if page is not None:
        st.page_link(page, label=label, icon=":material/arrow_forward:", query_params=params)


def select_option(
    label: str,
    labels: Mapping[str, str],
    name: str,
    default: str | None = None,
    resets: Sequence[str] = (),
) -> str:
    """Choose one of ``labels`` (its label by its id); the id stands in the address as ``name`` and is taken from there.

    Another choice drops ``resets`` from the address: what they name belongs to the choice before.

    A bound widget would put its label into the address, and leave it out where it is the first: no
    address to share.
    """
    key, options, requested = f"pick-{name}", list(labels), st.query_params.get(name)

    def chose() -> None:
        st.query_params[name] = str(st.session_state[key])
        for gone in set(resets) & set(st.query_params):
            del st.query_params[gone]

    if requested is not None and requested not in labels:
        st.warning(f"{label} {as_code(shorten(requested))} is not here; another one is shown.")
    selected: str = next(
        (i for i in (requested, default) if i is not None and i in labels), options[0]
    )
    if requested != selected:
        st.query_params[name] = selected
    st.session_state[key] = selected  # the address decides, so that back and forward do too
    chosen: str = st.selectbox(
        label, options, format_func=labels.__getitem__, key=key, on_change=chose
    )
    return chosen


def pick_run(*scorers: str, shows: Callable[[Plan], bool] | None = None) -> dict[str, Any] | None:
    """The run that a page is about, bound to the address; None (after saying why) where no run has one of these scorers.

    ``shows`` decides which runs there are to choose from, where it is not the names of their
    scorers alone.
    """
    plans = (
        (row, data.parse_plan(row["plan"]))
        for row in read.list_runs(data.store()).to_dict("records")
    )
    rows = [
        row
        for row, plan in plans
        if (shows(plan) if shows else any(s.name in scorers for s in plan.scorers))
    ]
    if not rows:
        empty(
            f"No run has the scorer {' or '.join(map(repr, scorers))} yet.",
            page("new_run"),
            "Start one",
        )
        return None
    by_id = {row["id"]: row for row in rows}
    labels = {i: f"{row['model']} · {row['suite_name']} · {i}" for i, row in by_id.items()}
    row: dict[str, Any] = by_id[select_option("Run", labels, "run")]
    partial_banner(row)
    return row


def status_of(row: dict[str, Any]) -> str:
    """A run's status as it is now: one that says it is running without a heartbeat is interrupted."""
    if row["status"] in ("running", "planned"):
        live = data.live(row["id"])
        return (
            "running"
            if live is not None and live.alive
            else ("interrupted" if row["status"] == "running" else "planned")
        )
    return str(row["status"])


def partial_banner(row: dict[str, Any]) -> None:
    """Say so where a run has not scored all of its items, or scored some with errors."""
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
    """What the progress of a run counts: each of its scorers scores each item once."""
    return "items" if len(data.run_plan(run_id).scorers) < 2 else "items × scorers"


def facet_text(facet: str, *without: str) -> str:
    """A facet in words: ``chain own, perturbation numeric``."""
    return ", ".join(
        f"{name} {value}" for name, value in json.loads(facet).items() if name not in without
    )


def _scorers(row: dict[str, Any]) -> int:
    return len(data.parse_plan(row["plan"]).scorers)


def page_slice(n: int, key: str, size: int = PAGE_ROWS) -> slice:
    """The part of ``n`` rows that is drawn; more than one page brings a number to choose it."""
    pages = -(-n // size)
    at = st.number_input(f"Page of {pages}", 1, pages, 1, key=key) if pages > 1 else 1
    return slice((at - 1) * size, at * size)


def show_numbers(pairs: Sequence[tuple[str, str]]) -> None:
    """Labelled numbers in a row that wraps where the page is narrow."""
    with st.container(horizontal=True, gap="medium"):
        for label, value in pairs:
            st.metric(label, value, width="content")


def money(micro: float) -> str:
    return f"${micro / 1e6:,.4f}"


def estimate_text(row: dict[str, Any]) -> str:
    """ "0.361 [0.340, 0.382]", or n/a."""
    point = row["point"]
    return (
        "n/a"
        if pd.isna(point)
        else interval_text(point, *(None if pd.isna(row[k]) else row[k] for k in ("lo", "hi")))
    )


def number_text(value: Any) -> str:
    return format_number(None if pd.isna(value) else float(value))


def plain_list(lines: Sequence[str]) -> None:
    """Lines of text from outside, as text."""
    for line in lines:
        st.markdown(as_code(line))
