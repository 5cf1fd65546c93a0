"""Page New run: a form made from the fields of the configuration, the estimate, the start."""

from __future__ import annotations

import os
from typing import Any

import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.errors import CotlabError
from cotlab.core.registry import PROVIDERS
from cotlab.core.resources import page_path, shipped_organisms
from cotlab.providers.keys import KEY_VARIABLES, check_server, file_naming_server, is_private
from cotlab.run.config import read_config, run_fields
from cotlab.run.options import DEFAULT_MODEL, DEFAULT_PROVIDER, SECTION_HEADINGS, ConfigField
from cotlab.suites.shipped import shipped_suites
from cotlab.ui import access, cached, suites
from cotlab.ui.address import known_param
from cotlab.ui.new_run import processes, recorded
from cotlab.ui.new_run.measures import ANOTHER_MODEL, load_run_settings, measure_settings
from cotlab.ui.new_run.questions import QUESTION_PARAM, question_settings
from cotlab.ui.pickers import select_option
from cotlab.ui.text import escape_markdown

N_PILOT_ITEMS = 5
EXPANDER_SECTIONS = ("sampling", "mediation", "judge", "limits", "gate")
"""Sections of the configuration that stand in an expander each."""
AGAIN_PARAM = "again"
"""Parameter of the address that asks for the settings that were started last."""
_LAST_SETTINGS, _NO_CHAINS = "new-run-last", "new-run-no-chains"
_MODEL_FIELDS = ("provider", "model", "base_url")
"""Fields whose widgets depend on each other."""


def render_run_form(cloned_run_id: str | None) -> tuple[str | None, dict[str, Any]]:
    """Show the widgets; return the chosen suite and the settings as fields of a configuration.

    The form reads files of this machine and starts processes: whoever may not start a run does not
    see it.
    """
    if not access.has_role("admin"):
        st.info("Starting a run spends money and computing time: it needs the role admin.")
        return None, {}
    initial_values = _load_initial_values(cloned_run_id)
    suite_labels = suites.suite_labels()
    if not suite_labels:
        st.info("No suite is stored: upload one on the page Suites.")
        return None, {}
    left_column, right_column = st.columns(2)
    with left_column:
        st.header(SECTION_HEADINGS["model"])
        suite_choice = select_option(
            "Suite", suite_labels, "suite", initial_values.get("_suite", "wordproblems")
        )
        suite = suites.load_chosen_suite(suite_choice)
        recorded.render_offline_proposal(suite)
        _choose_chain_source(has_chains=any(item.steps for item in suite.items))
        config = _render_model_fields(initial_values) | _render_section("model", initial_values, 1)
    with right_column:
        st.header(SECTION_HEADINGS["measure"])
        config |= _render_section("measure", initial_values, 1)
    for section in EXPANDER_SECTIONS:
        with st.expander(SECTION_HEADINGS[section]):
            config |= _render_section(section, initial_values, 3)
    config["source"] = config["source"] or run_fields()["source"].default
    return suite_choice, config


def _choose_chain_source(*, has_chains: bool) -> None:
    """Let the model write the chains of a suite that has none, and of no other suite after it."""
    if not has_chains:
        st.session_state["new-chain"], st.session_state[_NO_CHAINS] = "own", True
        st.caption("The suite has questions alone: the model writes the chains.")
    elif st.session_state.pop(_NO_CHAINS, False):
        st.session_state["new-chain"] = run_fields()["chain"].default


def _render_section(section: str, initial_values: dict[str, Any], n_columns: int) -> dict[str, Any]:
    """Show the widgets of a section, checkboxes first; return the settings by field."""
    fields = [
        field
        for field in run_fields().values()
        if field.setting.section == section
        and field.setting.label
        and field.name not in _MODEL_FIELDS
    ]
    value_by_field = {
        section_field.name: _render_widget(st, section_field, initial_values)
        for section_field in fields
        if _is_checkbox(section_field)
    }
    containers = st.columns(n_columns) if n_columns > 1 else [st]
    for index, field in enumerate(
        section_field for section_field in fields if not _is_checkbox(section_field)
    ):
        value_by_field[field.name] = _render_widget(
            containers[index % n_columns], field, initial_values
        )
    return value_by_field


def _is_checkbox(field: ConfigField) -> bool:
    return field.value_type is bool or field.setting.checkbox


def _render_widget(container: Any, field: ConfigField, initial_values: dict[str, Any]) -> Any:
    """Show the widget of a field, by its type; return its value as the configuration takes it."""
    setting, key = field.setting, f"new-{field.name}"
    label, hint = setting.label, setting.hint or field.help
    value = initial_values.get(field.name, field.default)
    has_state = key in st.session_state  # then the value is there, and a default would be a second
    if field.value_type is bool:
        return container.checkbox(label, bool(value), key=key, help=hint)
    if setting.checkbox:
        off_value, on_value = field.choices
        return (
            on_value
            if container.checkbox(label, value == on_value, key=key, help=hint)
            else off_value
        )
    if field.words:
        text = container.text_input(
            label,
            "" if value is None else str(value),
            key=key,
            help=hint,
            placeholder=setting.empty,
        ).strip()
        return int(text) if text.isdecimal() else text or None
    if field.value_type in (int, float):
        return _render_number_input(container, field, value, key, hint)
    if field.value_type is list and field.choices:
        default = None if has_state else value
        return container.multiselect(label, field.choices, default, key=key, help=hint)
    if field.choices:
        choice_labels = {choice: choice or setting.empty for choice in field.choices}
        index = 0 if has_state else _option_index(field.choices, value)
        return container.selectbox(
            label,
            list(choice_labels),
            index,
            key=key,
            help=hint,
            format_func=choice_labels.__getitem__,
        )
    if field.value_type is dict:
        text = container.text_input(label, _pairs_text(value), key=key, help=hint)
        return _parse_pairs(label, text)
    if field.value_type is list:
        joined_values = ", ".join(field.default if value is None else value)
        text = container.text_input(
            label, joined_values, key=key, help=hint, placeholder=setting.empty
        )
        return [part.strip() for part in text.split(",") if part.strip()]
    text = container.text_input(label, value or field.default or "", key=key, help=hint).strip()
    return text or (None if field.allows_none else "")


def _render_number_input(
    container: Any, field: ConfigField, value: Any, key: str, hint: str
) -> Any:
    """Show the widget of a number; one that may be empty stays empty once it was emptied."""
    low, high, step = (
        None if bound is None else field.value_type(bound)
        for bound in (field.minimum, field.maximum, field.setting.step)
    )
    if field.excludes_minimum and low is not None:
        low += step or 1
    initial_number = None if value is None else field.value_type(value)
    if field.allows_none:
        st.session_state.setdefault(key, initial_number)
        initial_number = None
    placeholder_text = field.setting.empty
    return container.number_input(
        field.setting.label,
        low,
        high,
        initial_number,
        step,
        key=key,
        placeholder=placeholder_text,
        help=hint,
    )


def _render_model_fields(initial_values: dict[str, Any]) -> dict[str, Any]:
    """Show the widgets of the model and its provider."""
    provider_names, fields = list(PROVIDERS), run_fields()
    index = 0
    if "new-provider" not in st.session_state:
        index = _option_index(provider_names, initial_values.get("provider") or DEFAULT_PROVIDER)
    label = fields["provider"].setting.label
    provider = st.selectbox(label, provider_names, index, key="new-provider")
    model = _render_model_input(provider, initial_values)
    base_url = None
    server_label = fields["base_url"].setting.label
    if provider in KEY_VARIABLES:
        is_self_hosted = provider == "openai_compat"
        initial_url = (
            initial_values.get("base_url") if initial_values.get("provider") == provider else None
        )
        base_url = st.text_input(
            server_label if is_self_hosted else f"{server_label} (empty: the vendor's own)",
            initial_url or ("http://127.0.0.1:8000/v1" if is_self_hosted else ""),
            key=f"new-url-{provider}",
        )
        if _lacks_key(provider, base_url):
            st.warning(
                f"The variable {KEY_VARIABLES[provider]} is not set: put it into the environment or"
                " .env, then start the app again."
            )
    return {"provider": provider, "model": model, "base_url": base_url or None}


def _lacks_key(provider: str, base_url: str | None) -> bool:
    """Return whether a vendor's key is not set; servers of one's own need none."""
    variable = KEY_VARIABLES.get(provider)
    return bool(variable) and not os.environ.get(str(variable)) and not is_private(base_url)


def _pairs_text(pairs: dict[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())


def _parse_pairs(label: str, text: str) -> dict[str, str]:
    """Parse pairs as they are typed; warn of what is no pair."""
    split_pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(key.strip() and equals_sign for key, equals_sign, _ in split_pairs):
        st.warning(f"{label.partition(' (')[0]} are written key=value, with commas between them.")
    return {
        key.strip(): value.strip()
        for key, equals_sign, value in split_pairs
        if key.strip() and equals_sign
    }


def render_start_buttons(suite_choice: str, config: dict[str, Any], n_items: int) -> None:
    """Show the buttons of pilot and run, disabled where these settings make no run.

    A run of ``n_items`` that is no larger than a pilot has none.
    """
    can_start = n_items > 0 and bool(
        config["scorer"] and config["mode"] and str(config["model"]).strip()
    )
    can_start = can_start and not _lacks_key(config["provider"], config["base_url"])
    if not str(config["model"]).strip():
        st.warning("Name a model.")
    with st.container(horizontal=True):
        pilot_label = f"Pilot of {N_PILOT_ITEMS}"
        hint = f"The first {N_PILOT_ITEMS} items only."
        is_small = 0 < n_items <= N_PILOT_ITEMS
        if not is_small and st.button(
            pilot_label, icon=":material/science:", disabled=not can_start, help=hint
        ):
            _start_run(suite_choice, {**config, "limit": N_PILOT_ITEMS})
        if st.button(
            "Start run", type="primary", icon=":material/play_arrow:", disabled=not can_start
        ):
            _start_run(suite_choice, config)


def _start_run(suite_choice: str, config: dict[str, Any]) -> None:
    access.require_role("admin")
    st.session_state[_LAST_SETTINGS] = {**config, "_suite": suite_choice}
    try:
        check_server(config["provider"], config["base_url"], file_naming_server(config["base_url"]))
    except CotlabError as error:
        st.error(escape_markdown(str(error)))
        return
    store = cached.store()
    if suite_choice in shipped_suites():
        path = str(shipped_suites()[suite_choice])
    else:
        path = str(processes.save_suite(store, suites.load_chosen_suite(suite_choice)))
    run_id = processes.new_run_id()
    processes.spawn_run(store, run_id, {**config, "task_suite": path})
    st.switch_page(page_path("run"), query_params={"run": run_id})


def _load_initial_values(cloned_run_id: str | None) -> dict[str, Any]:
    """Return the settings of the run that is cloned; else those of the environment."""
    if known_param(AGAIN_PARAM, ("true",)) and (last := st.session_state.get(_LAST_SETTINGS)):
        return dict(last)
    measure = st.query_params.get("measure")
    profile = known_param("profile", tuple(run_fields()["profile"].choices))
    added_profile = {} if profile is None else {"profile": profile}
    if not cloned_run_id:
        default_settings = read_config({}).model_dump(mode="json")
        if measure == suites.LABELLED_CHAINS:
            return {**default_settings, **recorded.LABELLED_CHAIN_SETTINGS}
        default_modes = (
            {} if os.environ.get("COTLAB_MODE") else {"mode": ["remove", "corrupt", "paraphrase"]}
        )
        chosen = question_settings(st.query_params.get(QUESTION_PARAM))
        settings = measure_settings({**default_settings, **default_modes}, measure)
        return {**settings, **chosen, **added_profile}
    row = cached.stored_run(cloned_run_id)
    settings = measure_settings(load_run_settings(row), measure)
    if measure == ANOTHER_MODEL:
        settings["model"] = ""
    return {**settings, "_suite": _find_suite_choice(row), **added_profile}


def _find_suite_choice(row: RunView) -> str:
    matching_names = (
        name for name in shipped_suites() if suites.shipped_suite(name).digest == row.suite
    )
    return next(matching_names, row.suite)


def _render_model_input(provider: str, initial_values: dict[str, Any]) -> str:
    initial_model = (
        initial_values.get("model") if initial_values.get("provider") == provider else None
    )
    if provider == "organism":
        organisms = list(shipped_organisms())
        index = _option_index(organisms, initial_model or DEFAULT_MODEL)
        chosen: str | None = st.selectbox(
            "Organism",
            organisms,
            None if initial_model == "" else index,
            key="new-organism",
            placeholder="Choose another model",
            help=ORGANISM_HELP,
        )
        return chosen or ""
    default_model = {
        "echo": "echo",
        "openai": "gpt-4o-mini",
        "anthropic": "claude-sonnet-4-5",
        "google": "gemini-2.5-flash",
    }.get(provider, "")
    hint = {"local": "A Hugging Face folder or hub id", "scripted": "A JSONL file of replies"}.get(
        provider, "The model's name"
    )
    return st.text_input(
        "Model",
        default_model if initial_model is None else initial_model,
        key=f"new-model-{provider}",
        help=hint,
    )


ORGANISM_HELP = (
    "Tiny models of known faithfulness. r100 reads its answer off the chain, r0 ignores it, r25 to"
    " r75 do so that often; hint answers what a hint in the question says. s100-a states only the"
    " operations, so that its chain needs its question; s0-a ignores such a chain. The"
    " answer of encoded-c is what the wording of its chain spells, whatever the chain says."
)


def _option_index(options: Any, value: Any) -> int:
    return list(options).index(value) if value in options else 0
