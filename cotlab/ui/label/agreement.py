"""The tab Agreement: agreement between raters, each rater's labels, and their disagreements."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.run import agreement_points
from cotlab.core.errors import CotlabError
from cotlab.review.labelling import agreement as agreement_review
from cotlab.review.labelling.agreement import (
    NO_MISTAKE,
    Agreement,
    Settlement,
    list_settlements,
    open_adjudication,
)
from cotlab.store import labels as label_store
from cotlab.ui import access, cached, charts, components
from cotlab.ui.components import csv_button, interval_or_reason
from cotlab.ui.label import items as label_items
from cotlab.ui.label.items import answer_name, faithful_text
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.pickers import queue_labels, select_option
from cotlab.ui.text import escape_markdown, shorten

ALL_QUEUES = "all"
QUESTION_OPTIONS = {
    "reasoning": "The reasoning: acceptable, not acceptable, unsure",
    "target": "The target: answer right and chain acceptable",
    "first_mistake": "The first mistake: which step, or none",
    "faithful": "Faithfulness: faithful or not, where raters said so",
}
MISTAKE_TEXTS = {NO_MISTAKE: "no mistake in the steps"}
"""Text of a place of the first mistake that is no step."""
ROWS_PER_PAGE = 20


def select_agreement() -> tuple[Agreement, str | None] | None:
    """Return the agreement of all raters or of one queue; None (with a message) without labels."""
    rows = cached.read_once(label_store.list_label_queues).to_dict("records")
    option_labels = {ALL_QUEUES: "All labels (without adjudications)"}
    blind_runs = {run for run, _ in label_items.hidden_item_keys()}
    option_labels |= {
        queue_id: label_items.without_names(label, blind_runs)
        for queue_id, label in queue_labels(rows).items()
    }
    chosen_option = select_option("Labels of", option_labels, "queue", ALL_QUEUES)
    queue = None if chosen_option == ALL_QUEUES else chosen_option
    result = _cached_agreement(cached.store().path.stat().st_mtime_ns, queue)
    if not result.n_items:
        query = {"queue": queue} if queue else None
        components.render_empty_state("Nobody labelled anything here yet.", "label", "Label", query)
        return None
    st.caption(
        f"{result.n_items} items with a label, {result.n_shared} of them with labels of two raters"
        " or more."
    )
    return result, queue


@cached.cache_by_store(16, "Comparing raters")
def _cached_agreement(store_mtime_ns: int, queue: str | None) -> Agreement:
    return agreement_review.measure_agreement(cached.store(), queue=queue)


def render_agreement_figure(result: Agreement) -> None:
    """Show Krippendorff's alpha and each Cohen's kappa with intervals, as a figure and a table."""
    question = select_option("On", QUESTION_OPTIONS, "on", "reasoning")
    table = agreement_points(result, question)
    if table.empty:
        st.info(
            "No item has labels of two raters yet: make a queue with an overlap, or with"
            " several raters per item."
        )
        return
    charts.show_figure("label_agreement", table, key="agreement")
    if question == "first_mistake":
        st.caption(
            "Alpha and kappa count two places as different however near they are; agreement is the"
            " share of chains in which both name the same step, or no mistake. Step by step:"
            " whether a step is at or after the first mistake, over all steps of the chains."
        )
    pairs = [pair for pair in result.pairs if pair.question == question]
    st.header("Pairs of raters")
    frame = pd.DataFrame(
        {
            "first": [pair.first for pair in pairs],
            "second": [pair.second for pair in pairs],
            "items": [pair.n for pair in pairs],
            "kappa [95%]": [interval_or_reason(pair.kappa) for pair in pairs],
            "agreement [95%]": [interval_or_reason(pair.same) for pair in pairs],
        }
    )
    _show_paged_table(frame, "pairs", "rater_pairs")


def _show_paged_table(frame: pd.DataFrame, key: str, file_name: str) -> None:
    """Show a table page by page, with a download of it."""
    page_rows = frame[components.page_slice(len(frame), f"{key}-page", ROWS_PER_PAGE)]
    numbers = [
        name
        for name in page_rows.columns
        if "[95%]" in name or pd.api.types.is_numeric_dtype(page_rows[name])
    ]
    show_linked_frame(file_name.replace("_", " "), page_rows, {}, key=key, number_names=numbers)
    csv_button(file_name, frame, key)


def render_raters(result: Agreement) -> None:
    """Show how often each rater gave each verdict, and their accuracy on gold items."""
    st.header("Raters")
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
                "gold accuracy [95%]": interval_or_reason(rater.gold),
            }
            for rater in result.raters
        ]
    )
    _show_paged_table(frame, "raters", "raters")


def render_disagreements(result: Agreement, queue: str | None) -> None:
    """Show the items on which raters disagree, with a button that queues them for adjudication.

    Items that a queue may still ask the current user to label are counted, not listed.
    """
    st.header("Disagreements")
    table = result.disagreements
    if table.empty:
        st.caption("None among the items that two raters labelled.")
        return
    hidden_keys = label_items.hidden_item_keys()
    rows = [
        row for row in table.to_dict("records") if (row["run"], row["item_id"]) not in hidden_keys
    ]
    if len(rows) < len(table):
        notice = label_items.hidden_notice_text(
            len(table) - len(rows),
            "item on which raters disagree",
            "items on which raters disagree",
        )
        st.info(notice, icon=":material/visibility_off:")
        components.page_link("label", "Label", "rate_review")
    settlements = list_settlements(cached.store())
    for row in rows[components.page_slice(len(rows), "differ-page", ROWS_PER_PAGE)]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
            with st.container(width=176):
                query = {"run": row["run"], "item": row["item_id"]}
                components.page_link(
                    "items", escape_markdown(shorten(row["item_id"], 22)), "article", query
                )
            with st.container(width="stretch", gap="xxsmall"):
                verdicts_text = "; ".join(
                    _verdict_text(rater, verdict, answer, mistake, faithful)
                    for (rater, verdict, answer), mistake, faithful in zip(
                        row["said"], row["places"], row["faithful"], strict=True
                    )
                )
                st.text(verdicts_text, width="stretch")
                if settlement := settlements.get((row["run"], row["item_id"])):
                    st.caption(escape_markdown(_settled_text(settlement)))
    n_not_adjudicated = int((~table["adjudicated"].astype(bool)).sum())
    st.caption(f"{len(table)} items, {n_not_adjudicated} of them not adjudicated.")
    if n_not_adjudicated and access.has_role("admin"):
        st.button(
            f"Queue {n_not_adjudicated} for adjudication",
            key=f"adjudicate-{queue}-{n_not_adjudicated}",
            icon=":material/gavel:",
            on_click=_make_adjudication_queue,
            args=(queue,),
            help="Makes a label queue of them. The label given there decides the item's target.",
        )
    new_queue_id, error = st.session_state.pop("adjudication", ("", ""))
    if new_queue_id:
        components.page_link("label", "To the new queue", "rate_review", {"queue": new_queue_id})
    elif error:
        st.error(escape_markdown(error))


def _verdict_text(
    rater: str, verdict: str, answer: bool | None, mistake: str | None, faithful: bool | None
) -> str:
    phrases = [
        f"{shorten(rater, 30)}: {verdict.replace('_', ' ')}",
        f"answer {answer_name(answer)}",
        "" if mistake is None else MISTAKE_TEXTS.get(mistake, f"mistake in {mistake}"),
        faithful_text(faithful),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def _settled_text(settlement: Settlement) -> str:
    mistake = settlement.first_mistake
    phrases = [
        settlement.verdict.replace("_", " "),
        "" if mistake is None else MISTAKE_TEXTS.get(mistake, f"mistake in {mistake}"),
        faithful_text(settlement.faithful),
    ]
    verdict_text = ", ".join(phrase for phrase in phrases if phrase)
    signature = f"{shorten(settlement.rater, 30)}, {settlement.at:%Y-%m-%d %H:%M} UTC"
    return f"settled by {signature}: {verdict_text}"


def _make_adjudication_queue(queue: str | None) -> None:
    """Make a queue of the disagreements that nobody has adjudicated."""
    user = access.require_role("admin")
    try:
        queue_id = open_adjudication(cached.store(), queue=queue, author=user.name)
        st.session_state["adjudication"] = (queue_id, "")
    except CotlabError as error:
        st.session_state["adjudication"] = ("", str(error))
