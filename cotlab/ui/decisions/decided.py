"""The tab Decisions, one run: its decisions, the review queue, the audit log and the rollout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.wording import capitalised
from cotlab.analysis.view import RunView
from cotlab.core.labels import ACTIONS
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.reliability.policy import Policy
from cotlab.reliability.volumes import schedule_reviews
from cotlab.review.labelling.queue import make_queue
from cotlab.review.labelling.readable_chains import left_out_text, require_readable
from cotlab.review.release.decide import (
    count_reasons,
    decide_run,
    load_policy,
    load_scored_items,
)
from cotlab.review.release.rollout import rollout_progress
from cotlab.store import decisions as decision_store
from cotlab.store.calibrators import current_calibrator
from cotlab.store.decisions import list_decisions, review_counts
from cotlab.ui import access, cached, components
from cotlab.ui.address import known_param
from cotlab.ui.components import csv_button
from cotlab.ui.linked import show_linked_frame
from cotlab.ui.pickers import pick_run, select_option
from cotlab.ui.places import run_link
from cotlab.ui.text import display_errors, escape_markdown, shorten

SCORERS_WITH_FEATURES = ("composite", TEXT_FEATURES)
"""Scorers whose runs can have a calibrated score."""


class DecisionView(NamedTuple):
    """What the tab Decisions shows."""

    row: RunView
    """The run's row of the store."""
    answers: pd.DataFrame
    """Its answers with r_raw, r_cal and the labels' target."""
    policy: Policy
    """The policy in force."""
    stored_decisions: pd.DataFrame
    """The stored decisions on the run."""
    counts: dict[str, int]
    """The counts of ``cotlab.store.decisions.review_counts``."""

    @property
    def label_counts(self) -> tuple[int, int]:
        """The counts of given and of chosen labels, which change with every label."""
        return self.counts["said"], self.counts["chosen"]

    @property
    def has_calibrated_scores(self) -> bool:
        """Whether any answer has an r_cal; without one, nothing can be released."""
        return bool(self.answers["r_cal"].notna().any())

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.row.id


def select_decision_run() -> DecisionView | None:
    """Choose a run; None (with a message) where none has scored items."""
    row = pick_run(*SCORERS_WITH_FEATURES)
    if row is None:
        st.caption(
            "Decisions use a calibrated score: of the composite (cotlab run --profile phase3), or"
            " of combined features (cotlab run --scorer text_features)."
        )
        return None
    store, counts = cached.store(), review_counts(cached.store())
    answers = _cached_scores(row.id, row.revision, counts["said"], counts["chosen"])
    if answers.empty:
        st.info("No item of this run has been scored yet.")
        return None
    if answers["r_cal"].isna().all():
        reason = next(filter(None, answers["told"]))
        st.warning(
            escape_markdown(
                "No answer of this run has a calibrated score (r_cal), so nothing can be released:"
                " each would be escalated, whatever the thresholds."
                f" {capitalised(shorten(reason, 200))}."
            )
        )
    return DecisionView(row, answers, load_policy(store), list_decisions(store, row.id), counts)


@cached.cache_by_store(8, "Reading scores")
def _cached_scores(run_id: str, revision: int, n_labels: int, n_chosen_labels: int) -> pd.DataFrame:
    return load_scored_items(cached.store(), [run_id])


MAX_QUEUED_ITEMS = 500
"""Maximum number of items of a label queue that this page makes."""
ORDER_LABELS = {
    "cost": "Expected cost: lowest r_cal first",
    "boundary": "Closest to a threshold first",
}
RIGHT_ALIGNED_COLUMNS = ("place", "day", "r_raw", "r_cal", "low", "high")


def render_review_queue(view: DecisionView) -> None:
    """List the items that need a review, the most urgent first, and offer a label queue of them."""
    decisions_table = view.stored_decisions
    if decisions_table.empty:
        st.info("There are no decisions on this run yet.")
        known_param("order", ORDER_LABELS)
        components.page_slice(0, "queue-page")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        order = select_option("Order of reviews", ORDER_LABELS, "order")
        rows = schedule_reviews(
            decisions_table, view.policy, order="boundary" if order == "boundary" else "cost"
        )
        page_rows = rows.iloc[components.page_slice(len(rows), "queue-page")]
    if rows.empty:
        st.success("All decided items of this run are released.")
        return
    _show_decisions(
        page_rows,
        view.run_id,
        ("action", "place", "day", "item", "domain", "r_cal", "low", "high", "reason"),
        "queue",
    )
    n_waiting_reviews = (
        int((rows["day"] > 1).sum()) if view.policy.capacity else int(rows["place"].notna().sum())
    )
    capacity_text = (
        "No capacity is set"
        if view.policy.capacity is None
        else f"At {view.policy.capacity} reviews a day"
    )
    st.caption(
        f"{len(page_rows)} of {len(rows)}: escalated first, then reviews by their place."
        f" {capacity_text}: {n_waiting_reviews} review{'s' * (n_waiting_reviews != 1)}"
        f" wait{'s' * (n_waiting_reviews == 1)}. Items that wait are not released."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        csv_button("queue", rows, "queue")
        max_items = min(MAX_QUEUED_ITEMS, len(rows))
        n_items = st.number_input(
            "Items for raters",
            1,
            max_items,
            min(20, max_items),
            key=f"queue-size-{max_items}",
            width=150,
        )
        is_pressed = st.button(
            "Make a label queue of the first",
            icon=":material/playlist_add:",
            key="make-queue",
            **access.role_control("admin"),
        )
    if is_pressed:
        with display_errors():
            user = access.require_role("admin")
            first_items = rows.head(int(n_items)).assign(run=view.run_id)[
                ["run", "item_id", "reason"]
            ]
            chosen_items = list(first_items.astype(str).itertuples(index=False, name=None))
            readable = require_readable(cached.store(), chosen_items)
            queue_id = make_queue(
                cached.store(), f"Review of {view.run_id}", readable.items, author=user.name
            )
            st.success(f"A queue of {len(readable.items)} items was made.")
            if readable.n_left_out_by_reason:
                st.caption(f"Left out: {left_out_text(readable.n_left_out_by_reason)}.")
            components.page_link("label", "Label them", "label", {"queue": queue_id})


def render_all_decisions(view: DecisionView) -> None:
    """List every decision on the run with its inputs."""
    decisions_table = view.stored_decisions
    if decisions_table.empty:
        known_param("action", ("all",))
        return
    st.header("Decisions of this run")
    counts = decisions_table["action"].value_counts().to_dict()
    labels = {a: f"{a} ({counts[a]})" for a in ACTIONS if a in counts}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen_action = select_option(
            "Show", {"all": f"All {len(decisions_table)}", **labels}, "action"
        )
        rows = (
            decisions_table
            if chosen_action == "all"
            else decisions_table[decisions_table["action"] == chosen_action]
        )
        page_rows = rows.iloc[components.page_slice(len(rows), f"decisions-page-{chosen_action}")]
    columns = (
        "item",
        "domain",
        "action",
        "r_raw",
        "r_cal",
        "low",
        "high",
        "calibrator",
        "policy",
        "by_",
        "at_",
        "reason",
    )
    _show_decisions(page_rows, view.run_id, columns, f"decisions-{chosen_action}")
    csv_button("decisions", rows, "decisions")
    reasons_text = ", ".join(
        f"{action}: {shorten(kind, 60)} ({n})"
        for action, kind, n in count_reasons(zip(rows["action"], rows["reason"], strict=True))
    )
    st.caption(escape_markdown(f"{len(page_rows)} of {len(rows)}. {reasons_text}."))


def render_rollout(view: DecisionView | None) -> None:
    """Show the current phase of the rollout, and what the next one needs."""
    progress = rollout_progress(cached.store(), None if view is None else view.counts)
    st.header(f"Rollout: phase {progress.n_reached} of {len(progress.phases)}")
    with st.container(border=True):
        for phase in progress.phases:
            state = "reached" if phase.reached else "not reached"
            st.markdown(
                f"**{phase.number}. {phase.title}** ({state}): {escape_markdown(phase.has)}."
            )
        if progress.next_phase is not None:
            st.markdown(
                f"Phase {progress.next_phase.number} needs"
                f" {escape_markdown(progress.next_phase.needs)}."
            )
            st.code(progress.next_phase.command, language="text", wrap_lines=True)


def render_audit_log() -> None:
    """List who changed what, the newest first."""
    st.header("Audit")
    rows = decision_store.list_audit(cached.store())
    if rows.empty:
        st.info("Nothing has been changed or decided yet.")
        return
    page_rows = rows.iloc[components.page_slice(len(rows), "audit-page")]
    frame = pd.DataFrame(
        {
            "when (UTC)": page_rows["at_"].dt.tz_convert("UTC").dt.strftime("%Y-%m-%d %H:%M:%S"),
            "who": page_rows["who"],
            "what": page_rows["what"],
            "of": page_rows["subject"],
            "before": page_rows["before"].fillna(""),
            "after": page_rows["after"].fillna(""),
            "reason": page_rows["reason"],
        }
    )
    components.show_table(frame, "audit")
    csv_button("audit", rows, "audit")


def render_decide_button(view: DecisionView) -> None:
    """Show the button that decides, how many items need a review, and outdated decisions."""
    decisions_table = view.stored_decisions
    if decisions_table.empty:
        st.info("There are no decisions on this run yet.")
    else:
        current_versions = {
            "policy": {view.policy.version},
            "calibrator": set(view.answers["calibrator"]),
        }
        outdated_inputs = [
            name
            for name, versions in current_versions.items()
            if {None if pd.isna(v) else int(v) for v in decisions_table[name]} != versions
        ]
        if outdated_inputs:
            st.warning(
                f"These decisions were made with another {' and another '.join(outdated_inputs)}."
                " Decide again."
            )
        elif n := count_answers_to_decide(view.answers, decisions_table):
            st.warning(
                f"{n} answers were scored, or scored again, since these decisions. Decide again."
            )
        n_unreleased = int((decisions_table["action"] != "release").sum())
        st.caption(f"Decided: {n_unreleased} of {len(decisions_table)} items need a review.")
    help_text = "No answer has a calibrated score."
    if view.has_calibrated_scores:
        help_text = "Uses the policy in force, not the sliders."
    if st.button(
        "Decide on this run" if decisions_table.empty else "Decide again",
        icon=":material/gavel:",
        key="decide",
        type="primary" if decisions_table.empty else "secondary",
        **access.role_control("admin", disabled=not view.has_calibrated_scores, help=help_text),
    ):
        with display_errors():
            user = access.require_role("admin")
            decide_run(cached.store(), view.run_id, author=user.name)
            st.rerun()


def count_answers_to_decide(scores: pd.DataFrame, decided_scores: pd.DataFrame) -> int:
    """Count the answers without a decision, or with one made on another score.

    Parameters
    ----------
    scores : DataFrame (n,) with item_id, r_raw, r_cal
        The current scores.
    decided_scores : DataFrame (m,) with the same columns
        The scores at the time of the decisions.
    """
    decided_by_item = (
        decided_scores.drop_duplicates("item_id")
        .set_index("item_id")[["r_raw", "r_cal"]]
        .astype(float)
    )
    current_by_item = scores.set_index("item_id")[["r_raw", "r_cal"]].astype(float)
    previous_scores = decided_by_item.reindex(current_by_item.index)
    has_same_score = ((current_by_item - previous_scores).abs() <= 1e-12) | (
        current_by_item.isna() & previous_scores.isna()
    )  # sums of floats may differ in the last digit
    return int(
        (~(has_same_score.all(axis=1) & current_by_item.index.isin(decided_by_item.index))).sum()
    )


def _show_decisions(rows: pd.DataFrame, run_id: str, columns: Sequence[str], key: str) -> None:
    """Show these columns of the decisions, with a link to each item."""
    cells = rows.assign(
        item=rows["item_id"],
        at_=rows["at_"].dt.tz_convert("UTC").dt.strftime("%Y-%m-%d %H:%M"),
    )
    for name in {"r_raw", "r_cal", "low", "high"} & set(columns):
        cells[name] = rows[name].map(components.number_text)
    for name in {"place", "day"} & set(columns):
        cells[name] = list(map(_queue_position, rows["action"], rows[name]))
    frame = cells[list(columns)].rename(columns=lambda name: name.rstrip("_"))
    links = [run_link(run_id, "items", item=item) for item in rows["item_id"]]
    show_linked_frame(
        "Decisions", frame, {"item": links}, key=key, number_names=RIGHT_ALIGNED_COLUMNS
    )


def _queue_position(action: str, value: Any) -> str:
    """Format a place in the queue; escalated items come at once."""
    if action == "escalate":
        return "at once"
    return "n/a" if pd.isna(value) else str(int(value))


MAX_OFFERED_RUNS = 3
"""Runs that the fit has not seen which are offered, the newest first."""


def render_fit_warning(view: DecisionView) -> None:
    """Say where the calibrator was fitted on labels of this run, and offer runs that it has not.

    On these labels a calibrated score fits better than on new items.
    """
    calibrator = cached.read_once(current_calibrator)
    fit_runs = set() if calibrator is None else set((calibrator["report"] or {}).get("runs", []))
    if calibrator is None or view.run_id not in fit_runs:
        return
    st.warning(
        f"Calibrator version {calibrator['version']} was fitted on labels of this run. On them its"
        " scores fit better than on new items, so the figures below are no test of it."
    )
    others = [
        row
        for row in cached.stored_runs()
        if row.id not in fit_runs
        and not row.is_archived
        and cached.has_scorer(row, *SCORERS_WITH_FEATURES)
    ]
    with st.container(horizontal=True):
        for row in others[:MAX_OFFERED_RUNS]:
            name = escape_markdown(shorten(str(row.name or row.suite_name), 40))
            label = f"Decide on {name}, {row.id}"
            components.page_link("decisions", label, "gavel", {"run": row.id})
