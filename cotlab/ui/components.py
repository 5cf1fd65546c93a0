"""Components of every page: heading, metric cards, empty state, numbers, tables, downloads."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.wording import noun_count
from cotlab.analysis.view import RunView
from cotlab.core.registry import SCORERS
from cotlab.core.resources import page_path
from cotlab.core.types import MetricCard
from cotlab.export.tabular import escape_formulas
from cotlab.figures.style import format_number, interval_text
from cotlab.stats.intervals import Interval
from cotlab.store import run_status
from cotlab.store.item_scores import NOTHING_MEASURED
from cotlab.store.live import LiveRun, RunProgress
from cotlab.store.run_status import FINISHING
from cotlab.ui import cached
from cotlab.ui.address import bind_integer, known_param
from cotlab.ui.metric_names import metric_name
from cotlab.ui.text import FEATURE_DESCRIPTIONS, escape_markdown

ROWS_PER_PAGE = 50
DOWNLOAD_ICON = ":material/download:"
MIN_SCROLLED_ROWS, MAX_TABLE_PX = 13, 460
"""Rows from which a table scrolls, and its height then."""
FileContent = bytes | str | Callable[[], str | bytes]
STATUS_LABELS = {
    FINISHING: "finishing: estimates in a few seconds",
    "budget": "budget reached",
    NOTHING_MEASURED: f":orange[{NOTHING_MEASURED}]",
}
"""Statuses that a page writes otherwise than the store. Without icons: in Markdown these are read
out by their names."""


def render_heading(title: str, question: str) -> None:
    """Show a page's title and the question that it answers."""
    st.title(title)
    st.caption(question)


def metric_cards_by_name() -> dict[str, MetricCard]:
    """Return every metric's card by name."""
    scorers = [SCORERS[name] for name in SCORERS]
    cards = [
        card
        for scorer in scorers
        for card in (*scorer.cards, *(statistic.card for statistic in scorer.statistics))
    ]
    return {card.name: card for card in cards}


def card_text(card: MetricCard) -> str:
    """Format a card as Markdown: formula, range, direction, source, and what it does not show."""
    direction_text = {
        "higher": "Higher is better.",
        "lower": "Lower is better.",
        "neither": "Neither end is better.",
    }[card.better]
    lines = (
        f"**{metric_name(card.name)}**, `{card.name}` ({card.symbol}): {card.formula}",
        (
            f"Range {card.lo:g} to {card.hi:g} {card.unit}, one value per {card.level}."
            f" {direction_text}"
        ),
        f"Undefined: {card.undefined}",
        f"Does not show: {card.not_shown}",
        f"Source: {card.source}",
    )
    return "\n\n".join(lines)


def show_card(name: str) -> None:
    """Show a button that opens a metric's card."""
    card = metric_cards_by_name().get(name)
    if card is not None:
        with st.popover(metric_name(name), icon=":material/info:"):
            st.markdown(card_text(card))


def show_cards(*names: str) -> None:
    """Show the buttons of several metrics' cards in a row."""
    with st.container(horizontal=True):
        for name in names:
            show_card(name)


def render_empty_state(
    message: str, path: str | None = None, label: str = "", query: dict[str, str] | None = None
) -> None:
    """Show an empty state: a message, and a link to where to go."""
    st.info(message)
    if path is not None:
        st.page_link(path, label=label, icon=":material/arrow_forward:", query_params=query)


def page_link(
    name: str,
    label: str,
    icon: str,
    query: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> None:
    """Show a link to a page, by the name of its file and of a Material symbol."""
    st.page_link(page_path(name), label=label, icon=f":material/{icon}:", query_params=query)


def current_status(row: RunView) -> str:
    """Return a run's current status: one that is running without a heartbeat is "interrupted"."""
    return run_status.live_status(vars(row), _live_run(row))


def display_status(row: RunView) -> str:
    """Return the status that is shown.

    A run is finishing until its estimates are there; one that is done without any value measured
    nothing.
    """
    return run_status.visible_status(
        vars(row),
        _live_run(row),
        lambda: not cached.load_estimates(row.id, row.revision).empty,
        lambda: row.id in cached.unmeasured_runs(),
    )


def may_write_estimates(row: RunView) -> bool:
    """Return whether a run has ended just now and the process that carried it out goes on."""
    return run_status.is_estimating(vars(row), _live_run(row))


def _live_run(row: RunView) -> LiveRun | None:
    """Return the live state of a run; None where it cannot count any more."""
    return cached.live_run(row.id) if run_status.is_process_of_interest(vars(row)) else None


def warn_if_partial(row: RunView) -> None:
    """Warn where a run has not scored all of its items, or scored some with errors."""
    n_ended, n_total, n_errors = row.n_ended, n_evaluations(row), row.n_errors
    if n_ended < n_total or n_errors:
        st.warning(
            f"Partial: {n_ended} of {n_total} {progress_unit(row.id)} scored,"
            f" {noun_count(n_errors, 'score')} with an error ({current_status(row)})."
        )


def progress_unit(run_id: str) -> str:
    """Return the unit of a run's progress: each of its scorers scores each item once."""
    return "items" if len(cached.stored_run(run_id).plan.scorers) < 2 else "items × scorers"


def progress_share(progress: RunProgress) -> float:
    """Return the finished share of a run's progress, 0 to 1."""
    return min(1.0, progress.items_done / progress.items_total) if progress.items_total else 0.0


def facet_text(facet: str, *excluded_names: str) -> str:
    """Format a facet: "chain own, perturbation numeric"."""
    return ", ".join(
        f"{name} {value}" for name, value in json.loads(facet).items() if name not in excluded_names
    )


def n_evaluations(row: RunView) -> int:
    """Return the number of evaluations of a run: each of its scorers scores each item once."""
    return row.n_items * len(row.plan.scorers)


def page_slice(n: int, key: str, rows_per_page: int = ROWS_PER_PAGE) -> slice:
    """Return the rows of the current page of ``n``; a widget chooses among several pages."""
    n_pages = -(-n // rows_per_page)
    page_number = 1
    if n_pages > 1:
        page_number = st.number_input(
            f"Page of {n_pages}", 1, n_pages, step=1, **bind_integer(key, 1, n_pages)
        )
    else:
        known_param(key, ("1",))
    return slice((page_number - 1) * rows_per_page, page_number * rows_per_page)


def show_numbers(labelled_numbers: Sequence[tuple[str, str]]) -> None:
    """Show labelled numbers in a row that wraps on a narrow page."""
    with st.container(horizontal=True, gap="medium"):
        for label, value in labelled_numbers:
            st.metric(label, value, width="content")


def money_text(micro_dollars: float) -> str:
    """Format micro-dollars: "$0.0123"."""
    return f"${micro_dollars / 1e6:,.4f}"


def estimate_text(row: Mapping[str, Any]) -> str:
    """Format an estimate: "0.361 [0.340, 0.382]", or "n/a"."""
    point, lo, hi = (None if pd.isna(row[name]) else row[name] for name in ("point", "lo", "hi"))
    return "n/a" if point is None else interval_text(point, lo, hi)


def interval_or_reason(interval: Interval) -> str:
    """Format an interval, or "n/a" with the reason."""
    if interval.point is None:
        return f"n/a: {interval.reason}"
    return interval_text(interval.point, interval.lo, interval.hi)


def number_text(value: Any) -> str:
    """Format a number, or "n/a"."""
    return format_number(None if pd.isna(value) else float(value))


def show_escaped_lines(lines: Sequence[str]) -> None:
    """Show lines of text from outside, escaped."""
    for line in lines:
        st.markdown(escape_markdown(line))


def render_feature_help(names: Iterable[str]) -> None:
    """Show a button that explains these features."""
    with st.popover("What are these features?", icon=":material/info:"):
        described_names = [name for name in names if name in FEATURE_DESCRIPTIONS]
        st.markdown(
            "\n".join(f"- **{name}**: {FEATURE_DESCRIPTIONS[name]}" for name in described_names)
        )
        st.caption(
            "The page Reliability has the card of each component: formula, range, and what"
            " it does not show."
        )


def right_aligned_config(*names: str) -> dict[str, Any]:
    """Return the configuration of table columns with numbers as text."""
    return {name: st.column_config.TextColumn(name, alignment="right") for name in names}


def show_table(
    frame: pd.DataFrame,
    key: str,
    column_config: Mapping[str, Any] | None = None,
    right_aligned_names: Iterable[str] = (),
) -> None:
    """Show a table without its index; a long one scrolls.

    ``column_config`` configures columns; those in ``right_aligned_names`` hold numbers as text.
    """
    is_short = len(frame) < MIN_SCROLLED_ROWS
    height: int | Literal["content"] = "content" if is_short else MAX_TABLE_PX
    merged_config = {**right_aligned_config(*right_aligned_names), **(column_config or {})}
    st.dataframe(frame, hide_index=True, key=key, height=height, column_config=merged_config)


def download_button(
    label: str,
    data: FileContent,
    file_name: str,
    key: str | None = None,
    *,
    is_primary: bool = False,
) -> None:
    """Show a download, which does not run the page again."""
    mime, _ = mimetypes.guess_type(file_name)
    button_type: Literal["primary", "secondary"] = "primary" if is_primary else "secondary"
    st.download_button(
        label, data, file_name, mime, key, icon=DOWNLOAD_ICON, on_click="ignore", type=button_type
    )


def csv_button(name: str, table: Any, key: str) -> None:
    """Show a download of a table as CSV; cells that a spreadsheet would run are escaped."""
    download_button(
        "Data (CSV)",
        lambda: str(escape_formulas(table).to_csv(index=False)),
        f"{name}.csv",
        f"data-{key}",
    )


def render_headline(
    estimates: pd.DataFrame,
    headline: Sequence[tuple[str, str]],
    reason_by_metric: Mapping[str, str] | None = None,
) -> None:
    """Show estimates with interval and n, and below them the reason of a missing value.

    A metric that is not tested for what it claims, or fails the test, is no headline: it stands
    below in small print.

    Parameters
    ----------
    estimates : DataFrame
        One row per metric.
    headline : sequence of (str, str)
        Metric and label of each number.
    reason_by_metric : mapping, optional
        Reason by metric; by default that of the estimate.
    """
    estimate_by_metric = {
        str(estimate["metric"]): estimate for estimate in estimates.to_dict("records")
    }
    labelled_numbers, missing_texts, small_texts = [], [], []
    for metric, label in headline:
        estimate = estimate_by_metric.get(metric, {"point": None, "n": 0, "reason": "not measured"})
        validation = cached.metric_validation(metric)
        label_text, value_text = f"{label}, n = {int(estimate['n'])}", estimate_text(estimate)
        if validation.is_usable:
            labelled_numbers.append((label_text, value_text))
        else:
            small_texts.append(f"{label_text}: {value_text} ({validation.text}).")
        if pd.isna(estimate["point"]):
            reason = (
                (reason_by_metric or {}).get(metric)
                or estimate["reason"]
                or "no item has a defined value"
            )
            missing_texts.append(f"{label}: n/a, {reason}.")
    show_numbers(labelled_numbers)
    if small_texts:
        text = f"Not validated for what they claim: {' '.join(small_texts)}"
        st.caption(escape_markdown(text))
    show_escaped_lines(missing_texts)
