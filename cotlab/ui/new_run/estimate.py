"""Page New run: what the run of a form would request and cost, and whether it can start."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import streamlit as st

from cotlab.analysis.verdict.measures import MIN_ITEMS
from cotlab.analysis.verdict.wording import noun_count
from cotlab.core.errors import CotlabError
from cotlab.run.config import read_config, run_fields
from cotlab.run.dryrun import RequestCount, plan_cautions
from cotlab.run.launch import dry_run, load_configured_suite
from cotlab.run.unreadable_items import find_unreadable_items
from cotlab.ui import access, cached, components, suites
from cotlab.ui.text import escape_markdown

MODEL_CHAIN_TEXT = "“Whose chain”: own, under Sampling and chain"
"""How a person chooses on this page what the flag ``--chain own`` chooses."""


def _use_form_labels(message: str) -> str:
    """Return a message about judged runs with the labels of the form instead of the flags."""
    label_by_flag = {"--scorer judge": "the scorer judge", "--profile": "a rollout phase"}
    judge_fields = [field for field in run_fields().values() if field.setting.section == "judge"]
    label_by_flag |= {field.flag: field.setting.label for field in reversed(judge_fields)}
    for flag, label in label_by_flag.items():
        message = message.replace(f"{flag} RUN", label).replace(flag, label)
    return message


def _with_labels(message: str) -> str:
    """Return a message with the labels of the form instead of the flags of the command."""
    fields = [field for field in run_fields().values() if field.flag and field.setting.label]
    message = message.replace("--chain own", MODEL_CHAIN_TEXT)
    for field in sorted(fields, key=lambda entry: -len(entry.flag)):
        message = message.replace(field.flag, field.setting.label.partition(" (")[0])
    return message


def render_estimate(suite_choice: str, config: dict[str, Any], *, reuses_replies: bool) -> int:
    """Show the dry run of these settings; return the items of the run that they make.

    0 where they make none, with the reason shown here, or beside the buttons where no model is
    named. With ``reuses_replies`` the settings go on from a run whose replies the log holds.
    """
    access.require_role("admin")
    if not config["scorer"] or not config["mode"]:
        st.warning("Choose at least one scorer and one mode.")
        return 0
    if not str(config["model"]).strip():
        return 0
    try:
        config_json = json.dumps(config, sort_keys=True)
        estimate = _cached_estimate(str(cached.store().folder), suite_choice, config_json)
    except CotlabError as error:
        st.error(escape_markdown(_use_form_labels(str(error))))
        return 0
    request_count = estimate.request_count
    is_rough = request_count.n_estimated_requests or request_count.n_sampled_items is not None
    about = "About " if is_rough else ""
    kind = " old and new" if reuses_replies else ""
    texts = [
        noun_count(estimate.n_items, "item"),
        f"{about}**{request_count.n_requests:,}{kind} requests**",
    ]
    if request_count.max_cost_micro:
        cost = components.money_text(request_count.cost_micro)
        texts.append(f"**~{cost}**, at most {components.money_text(request_count.max_cost_micro)}")
    if request_count.max_chain_cost_micro:
        cost = components.money_text(request_count.max_chain_cost_micro)
        texts.append(f"chains of at most {request_count.chain_tokens:,} tokens, {cost}")
    with st.container(border=True):
        st.markdown(", ".join(texts).replace("$", "\\$") + ".")
    if request_count.sample_text:
        st.caption(request_count.sample_text)
    for caution in estimate.cautions:
        st.warning(escape_markdown(_with_labels(caution)))
    if estimate.reads_questions:
        st.error(
            "The model can read no item of this suite with its chain, only questions: choose"
            f" {MODEL_CHAIN_TEXT}, or another model or suite."
        )
    elif estimate.is_unreadable:
        st.error("The model can read no item of this suite: choose another model or suite.")
    return 0 if estimate.is_unreadable else estimate.n_items


class _RunEstimate(NamedTuple):
    """A dry run as the page shows it."""

    n_items: int
    """Items that the run measures."""
    request_count: RequestCount
    """Requests and their cost."""
    cautions: list[str]
    """What the model cannot do for this run."""
    is_unreadable: bool
    """Whether the model can read no item of the suite as these settings give it."""
    reads_questions: bool
    """Whether it could read the questions of such a suite."""


@st.cache_data(show_spinner="Counting requests", max_entries=64)
def _cached_estimate(folder: str, suite_choice: str, config_json: str) -> _RunEstimate:
    settings = json.loads(config_json)
    suite = suites.load_chosen_suite(suite_choice)
    if settings["base_run"] or settings["tuned_run"]:
        suite = load_configured_suite(read_config(settings), cached.store())[0]
    plan, request_count = dry_run(read_config({**settings, "task_suite": suite.name}), suite)
    unreadable = find_unreadable_items(plan, suite)
    n_items, cautions = len(plan.items_of(suite)), plan_cautions(plan, suite)
    if unreadable is None and n_items < MIN_ITEMS:  # else it says how many are left
        cautions.append(f"{noun_count(n_items, 'item')}: a verdict needs {MIN_ITEMS}.")
    return _RunEstimate(
        n_items,
        request_count,
        cautions,
        unreadable is not None and unreadable.is_all,
        unreadable is not None and unreadable.is_all and unreadable.reads_questions,
    )
