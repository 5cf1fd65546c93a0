"""The page Home: totals, active runs, pending reviews, and the first steps of a new user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.verdict.collect import MEASURES
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.result import NOTHING_RULE
from cotlab.analysis.verdict.wording import noun_count, percent
from cotlab.core.errors import UnknownName
from cotlab.core.resources import page_path
from cotlab.metrics.cards import mean_by_item
from cotlab.run.config import DEMO_MODELS, demo_options
from cotlab.run.imports.mediation import is_imported
from cotlab.store import pending, read
from cotlab.store.run_status import FINISHING
from cotlab.ui import access, cached, components, tour, verdict
from cotlab.ui.item.evidence import ITEM_VIEWS
from cotlab.ui.linked import PageLink, show_linked
from cotlab.ui.new_run import processes
from cotlab.ui.new_run.questions import QUESTION_PARAM
from cotlab.ui.runs.list import show_latest_runs
from cotlab.ui.text import escape_markdown, shorten
from cotlab.ui.verdict_number import load_verdict_number

MAX_LISTED_ENTRIES = 5
"""Maximum number of queues and of alerts that are listed; the others are counted."""


DEMO_QUESTION = "Which of these two would you trust?"
PROGRESS_POLL_S = 2.0
"""Seconds between two looks at runs that are running."""
N_LATEST_RUNS = 5
"""Runs in the table of the latest."""
MAX_CANDIDATES = 50
"""Items among which the one that Home proposes to read is chosen."""


def is_store_empty() -> bool:
    """Return whether the store has no run."""
    return read.get_store_totals(cached.store())["runs"] == 0


def render_first_use() -> None:
    """Show what to do where there is no run yet."""
    st.info(
        "There is no run yet. The shipped suite and two shipped organisms (tiny models, one that"
        " follows its chain and one that ignores it) need no API key and take about half a minute."
    )
    label = "Run the shipped suite on two shipped organisms"
    if st.button(
        label, type="primary", icon=":material/play_arrow:", **access.role_control("admin")
    ):
        access.require_role("admin")
        for model in DEMO_MODELS:
            run_id = processes.new_run_id()
            processes.spawn_run(cached.store(), run_id, demo_options(model))
        st.switch_page(page_path("run"), query_params={"run": run_id})
    render_first_steps()


def render_first_steps() -> None:
    """Explain the three steps: suite, run, look."""
    st.markdown(
        "1. **Suite**: choose a shipped suite or upload your own (one JSON object per"
        " line).\n2. **Run**: choose a model and what to measure; a dry run estimates"
        " requests and cost.\n3. **Look**: *Steps* shows which steps the answer depends on;"
        " every number links to the replies behind it."
    )
    with st.container(horizontal=True):
        components.page_link("suites", "Suites", "list_alt")
        components.page_link("new_run", "New run", "play_arrow")
        components.page_link("steps", "Steps", "stairs")
        tour.render_tour_link(1, "Tour of the demonstration")


def find_verdict_run(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the newest run that has ended or is running; None where there is none."""
    for row in rows:
        if components.current_status(row) != "planned" and not is_imported(
            cached.parse_plan(row["plan"])
        ):
            return row
    return None


def is_demo_first(rows: Sequence[dict[str, Any]]) -> bool:
    """Return whether the demonstration opens Home: no other run is there, or the tour is there."""
    return len(rows) == len(DEMO_MODELS) or tour.is_stop("home")


def render_demo_question(row_by_model: Mapping[str, dict[str, Any]]) -> None:
    """Ask which of the two demonstration models is to be trusted, with both verdicts."""
    st.header(DEMO_QUESTION)
    st.caption("Both give right answers, and their chains look alike.")
    columns = ({"title": "Model"}, {"title": "Verdict"}, {"title": "What was found"})
    table = []
    for model in DEMO_MODELS:
        result = verdict.run_verdict(row_by_model[model])
        if result is not None:
            cell = verdict.verdict_cell(result)
            table.append(
                [
                    {"text": model, "link": PageLink("run", (("run", row_by_model[model]["id"]),))},
                    cell,
                    {"text": result.verdict.headline},
                ]
            )
    show_linked("table", {"title": "Two models", "columns": columns, "rows": table}, key="demo")
    with st.container(horizontal=True):
        _render_demo_links(row_by_model)


def render_demo_line(row_by_model: Mapping[str, dict[str, Any]]) -> None:
    """Show the demonstration on one line, where other runs have the page.

    It has both models with their verdicts, the comparison, and the tour.
    """
    suite_name = shorten(str(row_by_model[DEMO_MODELS[0]]["suite_name"]), 24)
    with st.container(horizontal=True, vertical_alignment="center", key="demo-line"):
        st.markdown(
            f"**Demonstration on {escape_markdown(suite_name)}**: {DEMO_QUESTION}", width="content"
        )
        results = verdict.run_verdicts(row_by_model.values())
        for model, row in row_by_model.items():
            finding = verdict.verdict_cell(results[row["id"]])["text"]
            components.page_link("run", f"{model}: {finding}", "monitoring", {"run": row["id"]})
        _render_demo_links(row_by_model)


def _render_demo_links(row_by_model: Mapping[str, dict[str, Any]]) -> None:
    base, other = (row_by_model[model]["id"] for model in DEMO_MODELS)
    tour.render_tour_link(1, f"Take the tour, {len(tour.STOPS)} stops")
    components.page_link(
        "compare",
        "Compare them",
        "compare_arrows",
        {"base": base, "other": other},
    )


def render_next_steps(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Show what to do next: read a chain, compare, print the report; or measure something else."""
    result = verdict.run_verdict(row)
    if result is None:
        return
    st.header("What to do next")
    steps = []
    if result.verdict.rule in (NOTHING_RULE, "failed_check"):
        new_run = verdict.measure_link(row["id"], "model")
        steps += [
            ("Choose another model or server", new_run, "the suite's questions stay as they are"),
            (
                "Run the shipped suite on a shipped model",
                PageLink("new_run", ((QUESTION_PARAM, "change"),)),
                "needs no key and costs nothing",
            ),
            *_chain_step(row, "Look at one item and its reason"),
        ]
    else:
        steps += [*(_moved_step(row) or _chain_step(row)), *_compare_step(row, rows)]
        note = "verdict, estimates, methods and limits"
        steps.append(("Print the report", verdict.report_link(row["id"]), note))
    content = {
        "steps": [{"text": text, "link": link, "note": note} for text, link, note in steps],
    }
    show_linked("steps", content, key="next-steps")


def _chain_step(
    row: dict[str, Any], text: str = "Read one chain step by step"
) -> list[tuple[str, PageLink, str]]:
    """Return the link to an item whose answer changes about as often as the run's.

    Among the first ones, the item with the longest of such chains.
    """
    items = read.list_run_items(cached.store(), row["id"], MAX_CANDIDATES)
    if items.empty:
        return []
    items = items.set_index(items["id"].astype(str)).sort_values(
        "n_steps", ascending=False, kind="stable"
    )
    item_id, change_text = items.index[0], ""
    result = verdict.run_verdict(row)
    measure = "change" if result is None else result.evidence.change_name
    changes = _changes_by_item(row, measure, list(items.index))
    if not changes.empty:
        share = None if result is None else result.evidence.share(measure)
        typical = changes.mean() if share is None else share.point
        item_id = str((changes - typical).abs().idxmin())
        change_text = f": {_often_text(measure, float(changes[item_id]))}"
    link = PageLink("item", (("run", row["id"]), ("item", item_id)))
    if change_text and measure == "numeric_change":  # the page Item has no such change
        view = ("view", ITEM_VIEWS["robustness"])
        link = PageLink("robustness", (*link.query, view))
    n_steps = int(items.loc[item_id, "n_steps"])
    note = f"question {shorten(item_id, 40)}" + (f" of {n_steps} steps" if n_steps else "")
    return [(text, link, note + change_text)]


def _changes_by_item(row: dict[str, Any], measure: MeasureName, item_ids: list[str]) -> pd.Series:
    """Return how often a changed step changes each item's answer, in the order of the ids."""
    metric, facet = MEASURES[measure]
    scores = read.select_scores(
        cached.store(),
        row["id"],
        metrics=[metric],
        facet=facet,
        items=item_ids,
        with_evidence=False,
    )
    return mean_by_item(scores).groupby("item_id")["value"].mean().reindex(item_ids).dropna()


def _often_text(measure: MeasureName, share: float) -> str:
    changed = "a step that states something else"
    if measure == "numeric_change":
        changed = "another number in a step"
    changes_text = {
        0.0: "never changes the answer",
        1.0: "always changes the answer",
    }.get(share, f"changes the answer in {percent(share)} of the cases")
    return f"{changed} {changes_text}"


def _moved_step(row: dict[str, Any]) -> list[tuple[str, PageLink, str]]:
    """Return the link to an item whose answer a suggestion moved; none without such an item."""
    number = load_verdict_number(row["id"], int(row["revision"]), "moved")
    if number is None or not (number.values > 0).any():
        return []
    moved = list(number.values[number.values > 0].index)
    link = PageLink("item", (("run", row["id"]), ("item", str(moved[0]))))
    note = f"one of {noun_count(len(moved), 'item')} that a suggestion moves to a wrong answer"
    return [("Read a chain whose answer was moved", link, note)]


def _compare_step(
    row: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> list[tuple[str, PageLink, str]]:
    """Return the link to the comparison with another run on the same suite."""
    others = [
        other
        for other in rows[:20]
        if other["suite"] == row["suite"]
        and other["model"] != row["model"]
        and other["id"] != row["id"]
        and _share_scorers(row, other)
    ]
    results = verdict.run_verdicts([row, *others])
    known = [(other, result) for other in others if (result := results[other["id"]]) is not None]
    mark = verdict.verdict_cell(results[row["id"]])["mark"]
    known.sort(key=lambda pair: pair[1].verdict.mark in (mark, "unknown"))
    if not known:
        return []
    other, result = known[0]
    name = shorten(cached.parse_plan(other["plan"]).subject.name, 40)
    link = PageLink("compare", (("base", row["id"]), ("other", other["id"])))
    return [
        (f"Compare with {name}", link, f"the same questions; its verdict: {result.verdict.short}")
    ]


def _share_scorers(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two runs have a scorer in common, with the same chain and modes."""
    scorers, other_scorers = (
        {
            (spec.name, *(str(spec.params.get(name)) for name in ("chain", "modes")))
            for spec in cached.parse_plan(run["plan"]).scorers
        }
        for run in (row, other)
    )
    return not scorers.isdisjoint(other_scorers)


class PendingReviews(NamedTuple):
    """What waits for somebody."""

    queues: list[dict[str, Any]]
    """Queues with labels that the current user should give."""
    alerts: list[dict[str, Any]]
    """Alerts of drift."""


def load_pending_reviews() -> PendingReviews:
    """Return the labels that the current user should give, and drift alerts."""
    queues = pd.DataFrame()
    if access.has_role("labeller"):
        queues = pending.pending_queues(cached.store(), access.current_person().name)
    alerts = pending.list_drift_alerts(cached.store())
    return PendingReviews(queues.to_dict("records"), alerts.to_dict("records"))


def render_totals(reviews: PendingReviews) -> None:
    """Show on one line how many suites, runs and scores there are, and the money spent."""
    counts = read.get_store_totals(cached.store())
    n_runs, n_suites, n_scores = (
        noun_count(counts[f"{noun}s"], noun) for noun in ("run", "suite", "score")
    )
    is_waiting = bool(reviews.queues or reviews.alerts)
    no_reviews_text = "" if is_waiting else " No labels are due, and there is no drift alert."
    st.caption(
        f"In brackets: 95 % intervals. {n_runs} on {n_suites}, {n_scores},"
        f" spent {components.money_text(counts['spent_micro'])}.{no_reviews_text}"
    )


def render_running_runs(rows: Sequence[dict[str, Any]]) -> None:
    """Show the active runs with their progress; without one, the page is not refreshed.

    A run that has ended is followed until its estimates are there.
    """
    run_ids = {live_run.run for live_run in cached.live_runs() if live_run.is_running}
    finishing = {
        row["id"] for row in rows[:N_LATEST_RUNS] if components.display_status(row) == FINISHING
    }
    run_every = PROGRESS_POLL_S if run_ids or finishing else None
    st.fragment(_render_progress, run_every=run_every)(run_ids, finishing)


def _render_progress(run_ids: set[str], finishing: set[str]) -> None:
    """Show the progress of the active runs.

    ``run_ids`` were active, and ``finishing`` without estimates, when the page ran as a whole.
    """
    live_runs = [live_run for live_run in cached.live_runs() if live_run.is_running]
    if {live_run.run for live_run in live_runs} != run_ids or not all(
        components.display_status(cached.run_row(run_id)) == FINISHING for run_id in finishing
    ):
        st.rerun()
    for live_run in live_runs:
        progress = live_run.progress
        eta_text = f", {progress.eta_s:.0f} s left" if progress.eta_s is not None else ""
        st.progress(
            components.progress_share(progress),
            text=(
                f"{live_run.run}: {progress.items_done} of {progress.items_total}"
                f" {_progress_unit(live_run.run)}, {progress.rate:.0f} requests/s{eta_text}"
            ),
        )
        components.page_link("run", f"Watch {live_run.run}", "monitoring", {"run": live_run.run})


def _progress_unit(run_id: str) -> str:
    """Return the unit of a run's progress; a run that just started may not be in the store yet."""
    try:
        return components.progress_unit(run_id)
    except UnknownName:
        return "items"


def render_pending_reviews(reviews: PendingReviews) -> None:
    """Show labels that the current user should give, and drift alerts."""
    queues, alerts = reviews
    if queues:
        st.header("Labels due")
    for row in queues[:MAX_LISTED_ENTRIES]:
        name = escape_markdown(shorten(row["name"], 60))
        label = f"{name}: {row['due']} of {row['n']} items left for you"
        components.page_link("label", label, "rate_review", {"queue": str(row["id"])})
    _render_more_count(len(queues), "queues")
    if alerts:
        st.header("Drift alerts")
    for row in alerts[:MAX_LISTED_ENTRIES]:
        runs_text = " to ".join(
            escape_markdown(shorten(", ".join(row[side]), 60)) for side in ("reference", "current")
        )
        st.warning(
            f"{runs_text}, {row['at_']:%Y-%m-%d %H:%M}:"
            f" {escape_markdown(shorten(row['reason'], 300))}"
        )
        query = [(side, run) for side in ("reference", "current") for run in row[side]]
        components.page_link("drift", f"Drift from {runs_text}", "trending_up", query)
    _render_more_count(len(alerts), "alerts")


def _render_more_count(n: int, noun: str) -> None:
    """Show how many more there are than are listed."""
    if n > MAX_LISTED_ENTRIES:
        st.caption(f"and {n - MAX_LISTED_ENTRIES} more {noun}")


def render_recent_runs(rows: Sequence[dict[str, Any]], n_archived: int) -> None:
    """Show the latest of the runs that are not archived, with their verdicts."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Latest runs")
        components.page_link("runs", "All runs", "history")
    if n_archived:
        st.caption(f"{n_archived} archived; the page Runs lists them too.")
    show_latest_runs(rows[:N_LATEST_RUNS])
