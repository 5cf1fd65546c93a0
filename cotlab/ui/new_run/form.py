"""Page New run: a form made from the fields of the configuration, the estimate, the start."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import streamlit as st

from cotlab.core.errors import CotlabError
from cotlab.core.registry import PROVIDERS
from cotlab.core.resources import organism_names, page
from cotlab.providers.keys import KEY_VARIABLES, check_server, is_private, named_by_file
from cotlab.run.config import read_config, run_fields, stored_options
from cotlab.run.dryrun import cautions
from cotlab.run.fields import SECTIONS, ConfigField
from cotlab.run.launch import dry_run, load_configured_suite
from cotlab.run.options import DEFAULT_MODEL, DEFAULT_PROVIDER
from cotlab.suites.shipped import shipped_suites
from cotlab.ui import access, suites
from cotlab.ui import cached as data
from cotlab.ui import components as parts
from cotlab.ui.new_run import processes as launching
from cotlab.ui.pickers import select_option
from cotlab.ui.text import as_code

PILOT = 5
EXPANDERS = ("sampling", "mediation", "judge", "limits", "gate")
"""Sections of the configuration that stand in an expander each."""
_SUBJECT = ("provider", "model", "base_url")
"""Fields whose widgets depend on each other."""


def render_run_form(clone: str | None) -> tuple[str | None, dict[str, Any]]:
    """Show the widgets; return the chosen suite and the settings as fields of a configuration.

    The form reads files of this machine and starts processes: whoever may not start a run does not
    see it.
    """
    if not access.may("admin"):
        st.info("Starting a run spends money and computing time: it needs the role admin.")
        return None, {}
    before = _before(clone)
    labels = suites.suite_choices()
    if not labels:
        st.info("No suite is kept: upload one on the page Suites.")
        return None, {}
    left, right = st.columns(2)
    with left:
        st.subheader(SECTIONS["model"])
        suite = select_option("Suite", labels, "suite", before.get("_suite", "wordproblems"))
        config = _subject(before) | _section("model", before, 1)
    with right:
        st.subheader(SECTIONS["measure"])
        config |= _section("measure", before, 1)
    for section in EXPANDERS:
        with st.expander(SECTIONS[section]):
            config |= _section(section, before, 3)
    config["source"] = config["source"] or run_fields()["source"].default
    return suite, config


def _section(section: str, before: dict[str, Any], columns: int) -> dict[str, Any]:
    """Show the widgets of a section, checkboxes first; return the settings by field."""
    fields = [
        field
        for field in run_fields().values()
        if field.setting.section == section and field.setting.label and field.name not in _SUBJECT
    ]
    settings = {f.name: _widget(st, f, before) for f in fields if _is_checkbox(f)}
    places = st.columns(columns) if columns > 1 else [st]
    for number, field in enumerate(f for f in fields if not _is_checkbox(f)):
        settings[field.name] = _widget(places[number % columns], field, before)
    return settings


def _is_checkbox(field: ConfigField) -> bool:
    return field.kind is bool or field.setting.checkbox


def _widget(place: Any, field: ConfigField, before: dict[str, Any]) -> Any:
    """Show the widget of a field, by its type; return its value as the configuration takes it."""
    setting, key = field.setting, f"new-{field.name}"
    label, hint = setting.label, setting.hint or field.help
    value = before.get(field.name, field.default)
    if field.kind is bool:
        return place.checkbox(label, bool(value), key=key, help=hint)
    if setting.checkbox:
        off, on = field.choices
        return on if place.checkbox(label, value == on, key=key, help=hint) else off
    if field.kind in (int, float):
        return _number(place, field, value, key, hint)
    if field.kind is list and field.choices:
        return place.multiselect(label, field.choices, value, key=key, help=hint)
    if field.choices:
        return place.selectbox(
            label,
            field.choices,
            _index(field.choices, value),
            key=key,
            help=hint,
            format_func=lambda choice: choice or setting.empty,
        )
    if field.kind is dict:
        text = place.text_input(label, _joined(value), key=key, help=hint)
        return _pairs(label, text)
    if field.kind is list:
        shown = ", ".join(field.default if value is None else value)
        text = place.text_input(label, shown, key=key, help=hint, placeholder=setting.empty)
        return [part.strip() for part in text.split(",") if part.strip()]
    text = place.text_input(label, value or field.default or "", key=key, help=hint).strip()
    return text or (None if field.optional else "")


def _number(place: Any, field: ConfigField, value: Any, key: str, hint: str) -> Any:
    """Show the widget of a number; one that may be empty stays empty once it was emptied."""
    low, high, step = (
        None if bound is None else field.kind(bound)
        for bound in (field.low, field.high, field.setting.step)
    )
    if field.excludes_low and low is not None:
        low += step or 1
    if not field.optional:
        start = field.kind(value)
        return place.number_input(field.setting.label, low, high, start, step, key=key, help=hint)
    if key not in st.session_state:
        st.session_state[key] = None if value is None else field.kind(value)
    return place.number_input(
        field.setting.label,
        low,
        high,
        None,
        step,
        key=key,
        placeholder=field.setting.empty,
        help=hint,
    )


def _subject(before: dict[str, Any]) -> dict[str, Any]:
    """Show the widgets of the model and its provider."""
    names = list(PROVIDERS)
    fields = run_fields()
    provider = st.selectbox(
        fields["provider"].setting.label,
        names,
        _index(names, before.get("provider") or DEFAULT_PROVIDER),
        key="new-provider",
    )
    model = _model(provider, before)
    base_url = None
    server = fields["base_url"].setting.label
    if provider in KEY_VARIABLES:
        self_hosted = provider == "openai_compat"
        given = before.get("base_url") if before.get("provider") == provider else None
        base_url = st.text_input(
            server if self_hosted else f"{server} (empty: the vendor's own)",
            given or ("http://127.0.0.1:8000/v1" if self_hosted else ""),
            key=f"new-url-{provider}",
        )
        if not os.environ.get(KEY_VARIABLES[provider]) and not is_private(base_url):
            st.warning(
                f"The variable {KEY_VARIABLES[provider]} is not set: put it into the environment or"
                " .env, then start the app again."
            )
    return {"provider": provider, "model": model, "base_url": base_url or None}


def _joined(pairs: dict[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())


def _pairs(label: str, text: str) -> dict[str, str]:
    """Parse pairs as they are typed; warn of what is no pair."""
    parted = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(key.strip() and equals for key, equals, _ in parted):
        st.warning(f"{label.partition(' (')[0]} are written key=value, with commas between them.")
    return {key.strip(): value.strip() for key, equals, value in parted if key.strip() and equals}


def use_form_labels(message: str) -> str:
    """Return a message about judged runs with the labels of the form instead of the flags."""
    labels = {"--scorer judge": "the scorer judge", "--profile": "a rollout phase"}
    judge = [f for f in run_fields().values() if f.setting.section == "judge"]
    labels |= {f.flag: f.setting.label for f in reversed(judge)}
    for flag, label in labels.items():
        message = message.replace(f"{flag} RUN", label).replace(flag, label)
    return message


def render_estimate(suite_choice: str, config: dict[str, Any]) -> bool:
    """Show the dry run of these settings; return whether they make a run, having shown why not."""
    access.need("admin")
    if not config["scorer"] or not config["mode"]:
        st.warning("Choose at least one scorer and one mode.")
        return False
    try:
        count = _count(str(data.store().folder), suite_choice, json.dumps(config, sort_keys=True))
    except CotlabError as error:
        st.error(as_code(use_form_labels(str(error))))
        return False
    numbers = [
        ("Items", str(count.items)),
        ("Requests, about" if count.estimated else "Requests", f"{count.total:,}"),
        ("Estimated cost", f"~${count.micro / 1e6:,.4f}"),
        ("At most", f"${count.most_micro / 1e6:,.4f}"),
    ]
    if count.chains_micro:
        numbers += [
            ("Output tokens of a chain, at most", f"{count.chain_tokens:,}"),
            ("Chains, at most", f"${count.chains_micro / 1e6:,.4f}"),
        ]
    parts.show_numbers(tuple(numbers))
    for caution in count.cautions:
        st.warning(as_code(caution))
    return True


class _Estimate(NamedTuple):
    """A dry run in numbers that the page can cache."""

    items: int
    """Items that the run measures."""
    total: int
    """Requests."""
    estimated: int
    """Requests that depend on replies."""
    micro: int
    """Likely cost in micro-dollars."""
    most_micro: int
    """Cost if every reply is as long as it may be."""
    chain_tokens: int
    """Maximum output tokens of a request for a whole chain."""
    chains_micro: int
    """Part of ``most_micro`` that requests for a whole chain reserve."""
    cautions: list[str]
    """What the model cannot do for this run."""


@st.cache_data(show_spinner="Counting requests", max_entries=64)
def _count(folder: str, suite_choice: str, config: str) -> _Estimate:
    settings = json.loads(config)
    pairs = settings["base_run"] or settings["tuned_run"]
    suite = (
        load_configured_suite(read_config(settings), data.store())[0]
        if pairs
        else suites.find_choice(suite_choice)
    )
    plan, count = dry_run(read_config({**settings, "task_suite": suite.name}), suite)
    return _Estimate(
        len(suite.items[: plan.limit]),
        count.total,
        count.estimated,
        count.micro,
        count.most_micro,
        count.chain_tokens,
        count.chains_micro,
        cautions(plan),
    )


def render_start_buttons(suite_choice: str, config: dict[str, Any], counted: bool = True) -> None:
    """Show the buttons of pilot and run, disabled where these settings make no run."""
    ready = counted and bool(config["scorer"] and config["mode"] and str(config["model"]).strip())
    if not str(config["model"]).strip():
        st.warning("Name a model.")
    with st.container(horizontal=True):
        if st.button(
            f"Pilot of {PILOT}",
            icon=":material/science:",
            disabled=not ready,
            help="The first five items only.",
        ):
            _start(suite_choice, {**config, "limit": PILOT})
        if st.button("Start run", type="primary", icon=":material/play_arrow:", disabled=not ready):
            _start(suite_choice, config)


def _start(suite_choice: str, config: dict[str, Any]) -> None:
    access.need("admin")
    try:
        check_server(config["provider"], config["base_url"], named_by_file(config["base_url"]))
    except CotlabError as error:
        st.error(as_code(str(error)))
        return
    store = data.store()
    if suite_choice in shipped_suites():
        path = str(shipped_suites()[suite_choice])
    else:
        path = str(launching.keep_suite(store, suites.find_choice(suite_choice)))
    run_id = launching.new_run_id()
    launching.spawn(store, run_id, {**config, "task_suite": path})
    st.switch_page(page("run"), query_params={"run": run_id})


def _before(clone: str | None) -> dict[str, Any]:
    """Return the settings of the run that is cloned; else those of the environment."""
    if not clone:
        usual = read_config({}).model_dump(mode="json")
        return usual if os.environ.get("COTLAB_MODE") else {**usual, "mode": ["remove", "corrupt"]}
    row = data.run_row(clone)
    added = st.query_params.get("profile")
    return {**stored_options(row["config"]), "_suite": _choice_of(row)} | (
        {"profile": added} if added in run_fields()["profile"].choices else {}
    )


def _choice_of(row: dict[str, Any]) -> str:
    same = (name for name in shipped_suites() if suites.shipped_suite(name).digest == row["suite"])
    return next(same, str(row["suite"]))


def _model(provider: str, before: dict[str, Any]) -> str:
    given = before.get("model") if before.get("provider") == provider else None
    if provider == "organism":
        names = list(organism_names())
        return (
            st.selectbox(
                "Organism",
                names,
                _index(names, given or DEFAULT_MODEL),
                key="new-organism",
                help=ORGANISM_HELP,
            )
            or DEFAULT_MODEL
        )
    usual = {
        "echo": "echo",
        "openai": "gpt-4o-mini",
        "anthropic": "claude-sonnet-4-5",
        "google": "gemini-2.5-flash",
    }.get(provider, "")
    hint = {"local": "A Hugging Face folder or hub id", "scripted": "A JSONL file of replies"}.get(
        provider, "The model's name"
    )
    return st.text_input("Model", given or usual, key=f"new-model-{provider}", help=hint)


ORGANISM_HELP = (
    "Tiny models of known faithfulness. r100 reads its answer off the chain, r0 ignores it, r25 to"
    " r75 do so that often; hint answers what a hint in the question says."
)


def _index(options: Any, value: Any) -> int:
    return list(options).index(value) if value in options else 0
