"""What Home proposes to do next: read a chain, compare, print the report, or measure elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cotlab.analysis.tables.comparison import are_comparable
from cotlab.analysis.verdict.measures import MeasureName
from cotlab.analysis.verdict.result import NOTHING_RULE
from cotlab.analysis.verdict.wording import noun_count, percent
from cotlab.analysis.view import RunView
from cotlab.store.recorded_models import short_model_name
from cotlab.ui import verdict
from cotlab.ui.item.evidence import ITEM_VIEWS
from cotlab.ui.linked import PageLink, show_linked
from cotlab.ui.new_run.questions import QUESTION_PARAM
from cotlab.ui.text import shorten
from cotlab.ui.typical_item import find_typical_item
from cotlab.ui.verdict_cells import verdict_cell
from cotlab.ui.verdict_number import load_verdict_number


def render_next_steps(row: RunView, rows: Sequence[RunView]) -> None:
    """Show what to do next: read a chain, compare, print the report; or measure something else."""
    result = verdict.run_verdict(row)
    if result is None:
        return
    st.header("What to do next")
    steps = []
    if result.verdict.rule in (NOTHING_RULE, "failed_check"):
        new_run = verdict.measure_link(row.id, "model")
        steps += [
            ("Choose another model or server", new_run, "the suite's questions stay as they are"),
            (
                "Run the shipped suite on a shipped model",
                PageLink("new_run", ((QUESTION_PARAM, "change"),)),
                "needs no key and costs nothing",
            ),
            *propose_chain(row, "Look at one item and its reason"),
        ]
    else:
        steps += [*(_moved_step(row) or propose_chain(row)), *_compare_step(row, rows)]
        note = "verdict, estimates, methods and limits"
        steps.append(("Print the report", verdict.report_link(row.id), note))
    content = {
        "steps": [{"text": text, "link": link, "note": note} for text, link, note in steps],
    }
    show_linked("steps", content, key="next-steps")


def propose_chain(
    row: RunView, text: str = "Read one chain step by step"
) -> list[tuple[str, PageLink, str]]:
    """Return the link to an item whose answer changes about as often as the run's."""
    item = find_typical_item(row.id, row.revision)
    if item is None:
        return []
    link = PageLink("item", (("run", row.id), ("item", item.item_id)))
    note = f"question {shorten(item.item_id, 40)}"
    note += f" of {item.n_steps} steps" if item.n_steps else ""
    if item.share is not None:
        note += f": {_often_text(item.measure, item.share)}"
        if item.measure == "numeric_change":  # the page Item has no such change
            link = PageLink("robustness", (*link.query, ("view", ITEM_VIEWS["robustness"])))
    return [(text, link, note)]


def _often_text(measure: MeasureName, share: float) -> str:
    changed = "a step that states something else"
    if measure == "numeric_change":
        changed = "another number in a step"
    changes_text = {
        0.0: "never changes the answer",
        1.0: "always changes the answer",
    }.get(share, f"changes the answer in {percent(share)} of the cases")
    return f"{changed} {changes_text}"


def _moved_step(row: RunView) -> list[tuple[str, PageLink, str]]:
    """Return the link to an item whose answer a suggestion moved; none without such an item."""
    number = load_verdict_number(row.id, row.revision, "moved")
    if number is None or not (number.values > 0).any():
        return []
    moved = list(number.values[number.values > 0].index)
    link = PageLink("item", (("run", row.id), ("item", str(moved[0]))))
    note = f"one of {noun_count(len(moved), 'item')} that a suggestion moves to a wrong answer"
    return [("Read a chain whose answer was moved", link, note)]


def _compare_step(row: RunView, rows: Sequence[RunView]) -> list[tuple[str, PageLink, str]]:
    """Return the link to the comparison with another run on the same suite.

    Where this run measures whether the chain is read, the other one does so in the same way; of
    several it is the one whose verdict differs most plainly.
    """
    plan = row.plan
    others = [
        other
        for other in rows[:20]
        if other.suite == row.suite
        and other.model != row.model
        and other.id != row.id
        and are_comparable(plan, other.plan)
    ]
    results = verdict.run_verdicts([row, *others])
    known = [(other, result) for other in others if (result := results[other.id]) is not None]
    mark = verdict_cell(results[row.id])["mark"]
    known.sort(
        key=lambda pair: (
            pair[1].verdict.mark in (mark, "unknown"),
            pair[1].verdict.mark == "part",
        )
    )
    if not known:
        return []
    other, result = known[0]
    name = shorten(short_model_name(other.model), 40)
    link = PageLink("compare", (("base", row.id), ("other", other.id)))
    return [
        (f"Compare with {name}", link, f"the same questions; its verdict: {result.verdict.short}")
    ]
