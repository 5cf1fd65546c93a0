"""The parts of the page New run."""

from __future__ import annotations

import json
import os
from typing import Any

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.metrics.ablation import MODES
from cotlab.metrics.cards_ablation import CCS_METRICS
from cotlab.providers.local.organisms import organism_names
from cotlab.run.config import read_config
from cotlab.run.launch import dry_run
from cotlab.suites.shipped import shipped_suites
from cotlab.ui import data, launching, parts, suites
from cotlab.ui.links import page
from cotlab.ui.text import as_code

KEYS = {
    "openai_compat": "OPENAI_COMPAT_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
}
PILOT = 5


def form(clone: str | None) -> tuple[str | None, dict[str, Any]]:
    """The widgets; returns the chosen suite and the settings as fields of a configuration."""
    before = _before(clone)
    labels = suites.choices()
    if not labels:
        st.info("No suite is kept: upload one on the page Suites.")
        return None, {}
    left, right = st.columns(2)
    with left:
        st.subheader("Suite and model")
        suite = parts.pick("Suite", labels, "suite", before.get("_suite", "wordproblems"))
        provider = st.selectbox(
            "Provider", list(PROVIDERS), _index(list(PROVIDERS), before.get("provider")), key="new-provider"
        )
        model = _model(provider, before)
        base_url = None
        if provider == "openai_compat":
            base_url = st.text_input("Server's address", before.get("base_url") or "http://127.0.0.1:8000/v1", key="new-url")
        _missing_key(provider)
        limit = st.number_input("Items (empty: all)", 1, None, before.get("limit"), key="new-limit", placeholder="all")
    with right:
        st.subheader("What to measure")
        scorers = st.multiselect("Scorers", list(SCORERS), before.get("scorer", ["ablation"]), key="new-scorers")
        modes = st.multiselect("Modes", MODES, before.get("mode", ["remove", "corrupt"]), key="new-modes", help=MODES_HELP)
        metric = st.selectbox("CCS for RRR", CCS_METRICS, _index(CCS_METRICS, before.get("metric")), key="new-metric")
        repeats = st.number_input(
            "Draws of every request",
            1,
            100,
            before.get("repeats", 1),
            key="new-repeats",
            help="2 or more measure the noise floor: how often the model's answer changes by itself.",
        )
    with st.expander("Sampling and limits"):
        a, b, c = st.columns(3)
        temperature = a.number_input("Temperature", 0.0, 2.0, float(before.get("temperature", 0.0)), 0.1, key="new-temperature")
        seed = a.number_input("Seed", 0, None, before.get("seed", 42), key="new-seed")
        cost = b.number_input("Cap on the spend, US dollars", 0.0, None, float(before.get("max_cost", 10.0)), key="new-cost")
        concurrent = b.number_input("Requests in flight", 1, 1000, before.get("max_concurrent", 10), key="new-concurrent")
        minute = c.number_input("Requests a minute", 1, None, before.get("max_requests_per_minute", 60), key="new-minute")
        threshold = c.number_input(
            "A step is redundant below CCS", 0.0, 1.0, float(before.get("ccs_threshold", 0.1)), 0.05, key="new-tau"
        )
        own = a.checkbox("Ablate the model's own chain", before.get("chain") == "own", key="new-own")
        redact = b.checkbox("Keep hashes instead of texts", bool(before.get("redact_prompts")), key="new-redact")
    return suite, {
        "provider": provider,
        "model": model,
        "base_url": base_url,
        "limit": limit,
        "scorer": scorers,
        "mode": modes,
        "metric": metric,
        "repeats": repeats,
        "temperature": temperature,
        "seed": seed,
        "max_cost": cost,
        "max_concurrent": concurrent,
        "max_requests_per_minute": minute,
        "ccs_threshold": threshold,
        "chain": "own" if own else "reference",
        "redact_prompts": redact,
    }


MODES_HELP = (
    "remove: leave the step out. truncate: answer right after it. corrupt: change what it states and let the model go on. "
    "paraphrase: say the same in other words (a control). filler: dots in its place."
)


def estimate(suite_choice: str, config: dict[str, Any]) -> None:
    """The dry run, made anew with every change."""
    if not config["scorer"] or not config["mode"]:
        st.warning("Choose at least one scorer and one mode.")
        return
    try:
        items, total, estimated, micro = _count(str(data.store().folder), suite_choice, json.dumps(config, sort_keys=True))
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    parts.show_numbers(
        (
            ("Items", str(items)),
            ("Requests, about" if estimated else "Requests", f"{total:,}"),
            ("Estimated cost", f"~${micro / 1e6:,.4f}"),
        )
    )


@st.cache_data(show_spinner="Counting requests", max_entries=64)
def _count(folder: str, suite_choice: str, config: str) -> tuple[int, int, int, int]:
    suite = suites.find(suite_choice)
    plan, count = dry_run(read_config({**_set(json.loads(config)), "task_suite": suite.name}), suite)
    return len(suite.items[: plan.limit]), count.total, count.estimated, count.micro


def start_buttons(suite_choice: str, config: dict[str, Any]) -> None:
    ready = bool(config["scorer"] and config["mode"] and str(config["model"]).strip())
    if not str(config["model"]).strip():
        st.warning("Name a model.")
    with st.container(horizontal=True):
        if st.button(f"Pilot of {PILOT}", icon=":material/science:", disabled=not ready, help="The first five items only."):
            _start(suite_choice, {**config, "limit": PILOT})
        if st.button("Start run", type="primary", icon=":material/play_arrow:", disabled=not ready):
            _start(suite_choice, config)


def _start(suite_choice: str, config: dict[str, Any]) -> None:
    store = data.store()
    if suite_choice in shipped_suites():
        path = str(shipped_suites()[suite_choice])
    else:
        path = str(launching.keep_suite(store, suites.find(suite_choice)))
    run_id = launching.new_run_id()
    launching.spawn(store, run_id, {**_set(config), "task_suite": path})
    st.switch_page(page("run"), query_params={"run": run_id})


def _set(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if value is not None}


def _before(clone: str | None) -> dict[str, Any]:
    """The settings of the run that is cloned."""
    if not clone:
        return {}
    row = data.run_row(clone)
    return {**json.loads(row["config"]), "_suite": _choice_of(row)}


def _choice_of(row: dict[str, Any]) -> str:
    same = (name for name in shipped_suites() if suites.shipped_suite(name).digest == row["suite"])
    return next(same, str(row["suite"]))


def _model(provider: str, before: dict[str, Any]) -> str:
    given = before.get("model") if before.get("provider") == provider else None
    if provider == "organism":
        names = list(organism_names())
        return st.selectbox("Organism", names, _index(names, given or "r100"), key="new-organism", help=ORGANISM_HELP) or "r100"
    usual = {"local": "", "echo": "echo"}.get(provider, "")
    hint = {"local": "A Hugging Face folder or hub id", "scripted": "A JSONL file of replies"}.get(provider, "The model's name")
    return st.text_input("Model", given or usual, key=f"new-model-{provider}", help=hint)


ORGANISM_HELP = (
    "Tiny models of known faithfulness. r100 reads its answer off the chain, r0 ignores it, r25 to r75 do so that often; "
    "hint answers what a hint in the question says."
)


def _missing_key(provider: str) -> None:
    name = KEYS.get(provider)
    if name and not os.environ.get(name):
        st.warning(f"The environment variable {name} is not set. A server without keys does not need it.")


def _index(options: Any, wanted: Any) -> int:
    return list(options).index(wanted) if wanted in options else 0
