"""What the page Reliability opens with: the parts that tell models apart, or that none does."""

from __future__ import annotations

import streamlit as st

from cotlab.analysis.verdict.measures import MEASURES, MIN_AUROC, MeasureName, Validation
from cotlab.analysis.verdict.validated import TESTED_TITLE
from cotlab.analysis.verdict.wording import interval, noun_count, percent
from cotlab.analysis.view import RunView
from cotlab.ui import cached
from cotlab.ui.linked import PageLink, show_linked
from cotlab.ui.metric_names import metric_name
from cotlab.ui.reliability import suite
from cotlab.ui.verdict import evidence_link, record_link, run_verdict, validation_link

_TESTED_MEASURES: tuple[MeasureName, ...] = (
    "change",
    "numeric_change",
    "inner_change",
    "alone",
    "moved",
    "sound",
)
"""Measures of a run that may stand in a headline if their validation allows it."""


def render_tested_components(row: RunView) -> None:
    """Show what tells faithful from bypassing models, and which parts do not.

    The means of parts that do not tell are under "More"; here stands what Validation found of them.
    """
    measured = suite.measured_components(row)
    if not measured:
        st.info("No item has been scored for reliability yet.")
        return
    validation_by_component = {name: _component_validation(name) for name in measured}
    tested = [name for name, known in validation_by_component.items() if known.is_usable]
    if tested:
        suite.render_component_means(row, tested, key="tested-parts")
    _render_tested_measures(row)
    untested = {
        name: known for name, known in validation_by_component.items() if name not in tested
    }
    if untested:
        _render_untested_components(untested, is_all=not tested)


def _component_validation(component: str) -> Validation:
    return cached.metric_validation(suite.CARD_METRIC_BY_COMPONENT[component])


def _component_link(component: str) -> PageLink:
    return record_link(cached.metric_validation_record(suite.CARD_METRIC_BY_COMPONENT[component]))


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
    columns = ({"title": "Part"}, {"title": TESTED_TITLE})
    rows = [
        [
            {"text": metric_name(suite.CARD_METRIC_BY_COMPONENT[name])},
            {"text": known.text, "link": _component_link(name)},
        ]
        for name, known in untested.items()
    ]
    content = {"title": "Parts that do not tell models apart", "columns": columns, "rows": rows}
    show_linked("table", content, key="untested-parts")


def _render_tested_measures(row: RunView) -> None:
    """Show the numbers of the run's verdict that may stand in a headline, each with its page."""
    result = run_verdict(row)
    if result is None:
        return
    shares = {name: result.evidence.share(name) for name in _TESTED_MEASURES}
    rows = [
        [
            {"text": percent(share.point), "small": f"{interval(share)} n = {share.n:,}"},
            {"text": MEASURES[name].text, "link": evidence_link(row.id, name)},
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


def render_all_components(row: RunView) -> None:
    """Show the mean of every measured part, and of the composite."""
    suite.render_component_means(row, suite.measured_components(row))
