"""The page Agreement: agreement between raters, each rater's labels, and their disagreements."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.review import agreement_points
from cotlab.core.errors import CotlabError
from cotlab.core.resources import page
from cotlab.figures.style import interval_text
from cotlab.review.labelling import agreement as agreement_review
from cotlab.review.labelling import queue as queues
from cotlab.review.labelling.agreement import Agreement, Pair
from cotlab.stats.intervals import Interval
from cotlab.store import labels as label_store
from cotlab.ui import access, cached, components
from cotlab.ui.components import csv_button
from cotlab.ui.label import items as label_items
from cotlab.ui.label.items import ANSWERS
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code, shorten

ALL = "all"
QUESTIONS = {
    "reasoning": "The reasoning: acceptable, not acceptable, unsure",
    "target": "The target: answer right and chain acceptable",
}
ROWS = 20


def select_agreement() -> tuple[Agreement, str | None] | None:
    """Return the agreement of all raters or of one queue; None (with a message) without labels."""
    rows = label_store.queues(cached.store()).to_dict("records")
    names = {ALL: "All labels (without adjudications)"}
    names |= {str(r["id"]): f"{r['name']} · {r['n']} items · {r['id']}" for r in rows}
    chosen = select_option("Labels of", names, "queue", ALL)
    queue = None if chosen == ALL else chosen
    result = _agreement(str(cached.store().folder), _stamp(), queue)
    if not result.n_items:
        components.empty(
            "Nobody labelled anything here yet.",
            page("label"),
            "Label",
            {"queue": queue} if queue else None,
        )
        return None
    st.caption(
        f"{result.n_items} items with a label, {result.n_shared} of them with labels of two raters"
        " or more."
    )
    return result, queue


def _stamp() -> int:
    """Return a number that changes with each write to the store."""
    return cached.store().path.stat().st_mtime_ns


@st.cache_data(show_spinner="Comparing raters", max_entries=16)
def _agreement(folder: str, stamp: int, queue: str | None) -> Agreement:
    return agreement_review.measure_agreement(cached.store(), queue=queue)


def render_agreement_figure(result: Agreement) -> None:
    """Show Krippendorff's alpha and each Cohen's kappa with intervals, as a figure and a table."""
    question = select_option("On", QUESTIONS, "on", "reasoning")
    table = agreement_points(result, question)
    if table.empty:
        st.info(
            "No item has labels of two raters yet: make a queue with an overlap, or with"
            " several raters per item."
        )
        return
    components.show_figure("label_agreement", table, key="agreement")
    pairs = [pair for pair in result.pairs if pair.question == question]
    st.subheader("Pairs of raters")
    frame = pd.DataFrame([_pair(pair) for pair in pairs])
    st.dataframe(
        frame[components.page_slice(len(frame), "pairs-page", ROWS)], hide_index=True, key="pairs"
    )
    csv_button("rater_pairs", frame, "pairs")


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "items": pair.n,
        "kappa [95%]": _interval_or_reason(pair.kappa),
        "agreement [95%]": _interval_or_reason(pair.same),
    }


def _interval_or_reason(value: Interval) -> str:
    """Format an interval, or "n/a" with the reason."""
    if value.point is None:
        return f"n/a: {value.reason}"
    return interval_text(value.point, value.lo, value.hi)


def render_raters(result: Agreement) -> None:
    """Show how often each rater gave each verdict, and their accuracy on gold items."""
    st.subheader("Raters")
    frame = pd.DataFrame(
        [
            {
                "rater": rater.rater,
                "labels": rater.n,
                "acceptable": rater.acceptable,
                "not acceptable": rater.not_acceptable,
                "unsure": rater.unsure,
                "flagged": rater.flagged,
                "gold items": rater.gold.n,
                "gold accuracy [95%]": _interval_or_reason(rater.gold),
            }
            for rater in result.raters
        ]
    )
    st.dataframe(
        frame[components.page_slice(len(frame), "raters-page", ROWS)], hide_index=True, key="raters"
    )
    csv_button("raters", frame, "raters")


def render_disagreements(result: Agreement, queue: str | None) -> None:
    """Show the items on which raters disagree, with a button that queues them for adjudication.

    Items that a queue may still ask the current user to label are counted, not listed.
    """
    st.subheader("Disagreements")
    table = result.disagreements
    if table.empty:
        st.caption("None among the items that two raters labelled.")
        return
    unseen = label_items.hidden_items()
    rows = [row for row in table.to_dict("records") if (row["run"], row["item_id"]) not in unseen]
    if len(rows) < len(table):
        gone = label_items.hidden_notice(
            len(table) - len(rows),
            "item on which raters disagree",
            "items on which raters disagree",
        )
        st.info(gone, icon=":material/visibility_off:")
        st.page_link(page("label"), label="Label", icon=":material/rate_review:")
    for row in rows[components.page_slice(len(rows), "differ-page", ROWS)]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
            with st.container(width=176):
                st.page_link(
                    page("item"),
                    label=as_code(shorten(row["item_id"], 22)),
                    icon=":material/article:",
                    query_params={"run": row["run"], "item": row["item_id"]},
                )
            with st.container(width="stretch", gap="xxsmall"):
                st.text(
                    "; ".join(_verdict_text(*verdict) for verdict in row["said"]), width="stretch"
                )
                if row["adjudicated"]:
                    st.caption(":material/gavel: adjudicated")
    left = int((~table["adjudicated"].astype(bool)).sum())
    st.caption(f"{len(table)} items, {left} of them not adjudicated.")
    if left and access.may("admin"):
        st.button(
            f"Queue {left} for adjudication",
            key=f"adjudicate-{queue}-{left}",
            icon=":material/gavel:",
            on_click=_adjudicate,
            args=(queue,),
            help="Makes a label queue of them. The label given there decides the item's target.",
        )
    made = st.session_state.pop("adjudication", None)
    if made is not None and made[0]:
        st.page_link(
            page("label"),
            label="To the new queue",
            icon=":material/rate_review:",
            query_params={"queue": made[0]},
        )
    elif made is not None:
        st.error(as_code(made[1]))


def _verdict_text(rater: str, verdict: str, answer: bool | None) -> str:
    word = next(word for word, value in ANSWERS.items() if value is answer)
    return f"{shorten(rater, 30)}: {verdict.replace('_', ' ')}, answer {word}"


def _adjudicate(queue: str | None) -> None:
    """Make a queue of the disagreements that nobody has adjudicated."""
    who = access.need("admin")
    try:
        items = agreement_review.items_to_adjudicate(cached.store(), queue=queue)
        name = "adjudication" + (f" of {queue}" if queue else "")
        st.session_state["adjudication"] = (
            queues.make_queue(cached.store(), name, items, kind="adjudication", by=who.name),
            "",
        )
    except CotlabError as error:
        st.session_state["adjudication"] = ("", str(error))
