"""What a new run needs to measure what a lamp of the verdict, or a page, asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from cotlab.analysis.verdict.measures import MIN_ITEMS
from cotlab.analysis.verdict.verdicts import QUESTION_OPTIONS
from cotlab.analysis.view import RunView
from cotlab.core.errors import CotlabError, UnknownName
from cotlab.core.registry import SCORERS
from cotlab.run.config import lower_to_maximum, read_config, stored_options
from cotlab.run.launch import dry_run
from cotlab.ui import access, cached, components
from cotlab.ui.address import report_unknown_value
from cotlab.ui.text import escape_markdown, shorten

LABELLED_CHAINS = "labelled-chains"
"""What the address asks for where labelled chains are measured without a model."""
MORE_ITEMS = "items"
"""What the address asks for where a run's items were too few for a verdict."""
ANOTHER_MODEL = "model"
"""What the address asks for where a run's model cannot read its suite: the form has none chosen."""
N_ITEMS_PARAM = "items"
"""Parameter of the address with the number of items that such a run needs."""
_ITEM_LIMITS = ("limit", "sample")
"""Options that bound how many items of its suite a run has."""


def added_options(measure: str | None) -> Mapping[str, Any] | None:
    """Return what a measure of the verdict, or a scorer, adds to a run; None for no such one."""
    if measure is not None and measure in QUESTION_OPTIONS:
        return QUESTION_OPTIONS[measure]
    return {"scorer": measure} if measure in SCORERS else None


def requested_run() -> str | None:
    """Return the run whose settings the address asks for; None where it asks for none.

    A run that the store does not have is reported, and the form has today's defaults.
    """
    run_id: str | None = st.query_params.get("from")
    if run_id is None:
        return None
    try:
        cached.stored_run(run_id)
    except UnknownName:
        report_unknown_value("from", run_id)
        return None
    return run_id


def has_same_model(run_id: str | None, config: Mapping[str, Any]) -> bool:
    """Return whether settings ask the model of a run, whose replies the response log then has."""
    if run_id is None:
        return False
    subject = cached.stored_run(run_id).plan.subject
    return (subject.provider, subject.name) == (config["provider"], str(config["model"]).strip())


def load_run_settings(run: RunView) -> dict[str, Any]:
    """Return the settings that a run was started with; today's defaults for what it has none."""
    defaults = read_config({}).model_dump(mode="json")
    return lower_to_maximum({**defaults, **stored_options(run.config_json)})


def add_measure(stored: dict[str, Any], measure: str | None) -> dict[str, Any]:
    """Return a run's settings with what one more measure needs; as they are for no measure.

    What the run measured stays chosen, so that the new run has a verdict of its own: the response
    log answers what was asked before, at no cost. A measure of the verdict raises a limit of fewer
    items than a verdict needs.
    """
    added = added_options(measure)
    if added is None:
        return stored
    scorers = list(stored["scorer"])
    modes = list(stored["mode"]) if "ablation" in scorers else []
    modes += [mode for mode in added.get("mode", ()) if mode not in modes]
    settings = {
        **stored,
        "scorer": [*scorers, *[added["scorer"]] * (added["scorer"] not in scorers)],
        "mode": modes or stored["mode"],
    }
    if measure in QUESTION_OPTIONS:
        settings |= {name: max(limit, MIN_ITEMS) for name, limit in _item_limits(stored).items()}
    return settings | ({"chain": added["chain"]} if "chain" in added else {})


def _item_limits(settings: Mapping[str, Any]) -> dict[str, int]:
    """Return the options of a run that bound how many items of its suite it has."""
    return {name: int(settings[name]) for name in _ITEM_LIMITS if settings.get(name) is not None}


def count_new_items(run: RunView, measure: str) -> int:
    """Return how many items a run has that measures one more thing than the run of ``row``."""
    stored = load_run_settings(run)
    limits = _item_limits(add_measure(stored, measure))
    if limits == _item_limits(stored):
        return run.n_items
    return min(cached.count_suite_items(run.suite), *limits.values())


def measure_settings(stored: dict[str, Any], measure: str | None) -> dict[str, Any]:
    """Return the settings of a new run that measures what the address asks for.

    A measure of the verdict is added to what the run measured, since a verdict is that of one run.
    A page asks for a scorer: the new run has that one alone. The requests that it shares with the
    run are in the response log, and the others are not repeated, whatever the log has lost.
    """
    if measure == MORE_ITEMS and (n_items := requested_items()) is not None:
        return {**stored, **dict.fromkeys(_item_limits(stored) or {"limit"}, n_items)}
    if measure in SCORERS and measure not in QUESTION_OPTIONS:
        return {**stored, "scorer": [measure]}
    return add_measure(stored, measure)


def requested_items() -> int | None:
    """Return how many items the address asks for; None where it names no such number."""
    text = st.query_params.get(N_ITEMS_PARAM, "")
    return int(text) if text.isascii() and text.isdecimal() and 0 < int(text) < 10**7 else None


def cost_text(run: RunView, measure: str) -> str:
    """Return "about 900 requests, $0" for a new run that measures one thing, or where this stands.

    Requests whose replies the response log has are among them, and cost nothing.
    """
    unknown_text = "requests and cost stand there before it starts"
    if not access.has_role("admin"):  # who cannot start a run counts no requests
        return unknown_text
    return _cached_cost_text(run.id, run.revision, measure) or unknown_text


@cached.cache_by_store(64, "Counting requests")
def _cached_cost_text(run_id: str, revision: int, measure: str) -> str | None:
    """Return the requests and their cost; None where New run says what is wrong with them."""
    run = cached.stored_run(run_id)
    suite = cached.stored_suite(run.suite)
    settings = measure_settings(load_run_settings(run), measure)
    try:
        _, count = dry_run(read_config({**settings, "task_suite": suite.name}), suite)
    except (CotlabError, ValueError):
        return None
    return f"about {count.n_requests:,} requests, {components.money_text(count.cost_micro)}"


_REUSE_TEXT = "Replies that the response log holds are not asked for, or paid for, again."


def render_measure_note(cloned_run_id: str | None) -> None:
    """Say what was added to the settings of the run, where the address asks for a measure."""
    measure = st.query_params.get("measure")
    if measure is None:
        return
    added, n_items = added_options(measure), requested_items()
    if cloned_run_id is None:
        if added is None and measure != LABELLED_CHAINS and "from" not in st.query_params:
            report_unknown_value("measure", measure)
        return
    settings_text = f"The settings are those of run {escape_markdown(cloned_run_id)}"
    if added is not None:
        change = "added" if measure in QUESTION_OPTIONS else "alone"
        run = cached.stored_run(cloned_run_id)
        n_new_items = count_new_items(run, measure)
        items = "" if n_new_items == run.n_items else f", on {n_new_items} items"
        st.info(f"{settings_text} with the scorer {added['scorer']} {change}{items}. {_REUSE_TEXT}")
    elif measure == MORE_ITEMS and n_items is not None:
        run = cached.stored_run(cloned_run_id)
        n_items = min(n_items, cached.count_suite_items(run.suite))
        st.info(f"{settings_text}, with {n_items:,} items. {_REUSE_TEXT}")
    elif measure == ANOTHER_MODEL:
        st.info(
            "Choose another model, or a provider with its server: the suite and what is measured"
            f" stay as in run {escape_markdown(cloned_run_id)}. The shipped organisms read suites"
            " of their own words (wordproblems) alone."
        )
    else:
        st.warning(
            f"The address asks for {escape_markdown(shorten(measure))}, which is no scorer or"
            f" measure: the settings are those of run {escape_markdown(cloned_run_id)}."
        )
