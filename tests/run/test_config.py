"""One configuration: the same from a file as from flags, and every option of it on the command and
on the New run form."""

from __future__ import annotations

import inspect
import json
import shlex
import typing
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from cotlab.cli import run as command
from cotlab.cli.options import run_options
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.run.config import RunConfig, config_to_yaml, read_config, resumed_config, run_fields
from cotlab.run.launch import command_line
from cotlab.run.options import ConfigField
from cotlab.run.resolved import ResolvedRun
from cotlab.run.transport.budget import read_prices

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    [
        "null",
        "~",
        "1.0",
        "yes",
        "2026-01-01",
        "- a",
        "a: b",
        "#",
        "'",
        '"',
        "a\r\nb\u2028c\x85",
        "\x00",
        " ",
        "=",
        "<<",
    ]
)


def values(field: ConfigField) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    if field.name == "role":
        entries = ("judge.base_url", "verifier.base_url", "paraphraser.base_url")
        return st.dictionaries(st.sampled_from(entries), TEXT, max_size=3)
    if field.literals:
        return st.sampled_from(field.literals)
    high = 10**12 if field.maximum is None else field.maximum
    kinds: dict[type, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(int(field.minimum or 0), int(high)),
        float: st.floats(field.minimum, high, exclude_min=field.excludes_minimum),
        list: st.lists(TEXT, max_size=3),
        dict: st.dictionaries(TEXT, TEXT, max_size=3),
        str: TEXT,
    }
    return st.none() | kinds[field.value_type] if field.allows_none else kinds[field.value_type]


NOT_ON_THE_FORM = ("task_suite", "good_lines")
"""The suite is chosen above the form, and a kept suite has good lines only."""
NO_LIMIT = (
    "max_requests_per_minute",
    "max_tokens_per_minute",
    "limit",
    "rr_threshold",
    "fail_on_error",
)


@pytest.fixture(autouse=True)
def server_checks_as_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTLAB_PROBE")


@given(st.fixed_dictionaries({name: values(field) for name, field in run_fields().items()}))
@settings(max_examples=40, deadline=None)
def test_a_run_s_file_gives_its_configuration_again(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]
) -> None:
    config = RunConfig(**fields)
    assert config.model_dump() == fields  # nothing is changed on the way in
    path = tmp_path_factory.getbasetemp() / "run.yaml"
    path.write_text(config_to_yaml(config.model_dump(mode="json")), "utf-8")
    assert read_config({}, path).model_dump() == fields


@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\u2029", "\n", "\r\n"])
def test_a_line_end_in_a_text_stays_what_it_is(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        config_to_yaml({"tag": {"": mark, f"a{mark}b": f" {mark} "}, "model": f"{mark}é"}), "utf-8"
    )
    config = read_config({}, path)
    assert (config.tag, config.model) == ({"": mark, f"a{mark}b": f" {mark} "}, f"{mark}é")


def test_no_limit_stays_no_limit(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("".join(f"{name}: null\n" for name in NO_LIMIT))
    config = read_config({}, path)
    assert [getattr(config, name) for name in NO_LIMIT] == [None] * 5
    assert read_config({}).max_requests_per_minute == "default"  # what is not said


def test_a_file_leaves_out_what_no_option_is_called(tmp_path: Path) -> None:
    assert yaml.safe_load(config_to_yaml({"model": "m", "of_tomorrow": 1})) == {"model": "m"}
    path = tmp_path / "run.yaml"
    path.write_text("temprature: 1\n")
    with pytest.raises(UnknownName, match="Did you mean 'temperature'"):
        read_config({}, path)


@pytest.mark.parametrize("value", ["!!timestamp x", '!!int ""', "!!bool x", "!!float []"])
def test_a_tag_that_does_not_fit_is_one_message(tmp_path: Path, value: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"seed: {value}\n")
    with pytest.raises(ConfigError, match=r"run\.yaml: not a YAML file"):
        read_config({}, path)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        read_prices(str(path))


def test_flags_win_over_the_environment_which_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("seed: 1\nrepeats: 2\nmode: [filler]\nmodel: of the file\n")
    monkeypatch.setenv("COTLAB_SEED", "3")
    monkeypatch.setenv("COTLAB_REPEATS", "4")
    monkeypatch.setenv("COTLAB_MODE", "remove, corrupt")
    monkeypatch.setenv("COTLAB_MODEL", "")  # empty: not set
    config = read_config({"seed": 5}, path)
    assert (config.seed, config.repeats, config.mode, config.model) == (
        5,
        4,
        ["remove", "corrupt"],
        "of the file",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_cost", -1.0),
        ("max_cost", float("nan")),
        ("timeout_s", 0),
        ("timeout_s", float("inf")),
        ("max_tries", 0),
        ("max_requests_per_minute", 0),
        ("max_requests_per_minute", "fast"),
        ("max_tokens_per_minute", 0),
        ("given", "system"),
        ("max_concurrent", 257),
        ("temperature", 2.1),
        ("fail_on_error", -0.1),
    ],
)
def test_a_value_that_cannot_be_used_is_said_with_its_option(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name}: "):
        read_config({name: value})


def test_every_option_is_a_flag_of_the_command_and_may_be_left_out() -> None:
    flags = inspect.signature(command.run_command).parameters
    others = {"dry_run", "run_id", "resume", "retry_refused", "config", "send_key_to"}
    assert flags.keys() - others == RunConfig.model_fields.keys()
    assert all(flags[name].default is None for name in RunConfig.model_fields)
    named = typing.get_type_hints(command.run_command, include_extras=True)
    for name in RunConfig.model_fields:
        (option,) = typing.get_args(named[name])[1:]
        spelt = (
            option.default if isinstance(option.default, str) else None
        )  # typer keeps a given name in the default
        assert spelt in (None, "--" + name.replace("_", "-"))


def _form() -> None:
    import streamlit as st

    from cotlab.ui.new_run import form as new_run

    st.session_state["suite"], st.session_state["told"], _ = new_run.render_run_form(None)


@pytest.fixture(scope="module")
def form(tmp_path_factory: pytest.TempPathFactory) -> AppTest:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTLAB_STORE", str(tmp_path_factory.mktemp("form")))
        app = AppTest.from_function(_form, default_timeout=300).run()
    assert not app.exception
    return app


def test_every_option_is_on_the_form_and_as_usual_there(form: AppTest) -> None:
    told = form.session_state["told"]
    assert told.keys() == RunConfig.model_fields.keys() - {*NOT_ON_THE_FORM}
    usual = RunConfig().model_dump()
    assert {name: value for name, value in told.items() if value != usual[name]} == {
        "mode": ["remove", "corrupt", "paraphrase"]  # with the control that a verdict needs
    }


def started_from(form: AppTest, folder: Path) -> RunConfig:
    """What a run started now would be told."""
    form.run()
    (folder / "run.yaml").write_text(config_to_yaml(form.session_state["told"]), "utf-8")
    return read_config({}, folder / "run.yaml")


def test_what_is_set_on_the_form_reaches_the_run(form: AppTest, tmp_path: Path) -> None:
    form.text_input(key="new-max_requests_per_minute").set_value("500")
    form.number_input(key="new-max_tokens_per_minute").set_value(9_000)
    form.number_input(key="new-max_tries").set_value(3)
    form.number_input(key="new-timeout_s").set_value(7.5)
    form.checkbox(key="new-batch").set_value(True)
    form.checkbox(key="new-given").set_value(True)
    form.text_input(key="new-prices").set_value("prices.yaml")
    form.text_input(key="new-tag").set_value("who=me, why=a test")
    form.text_input(key="new-judge").set_value("openai/a, google/b")
    form.text_input(key="new-base_run").set_value(" one ")
    form.text_input(key="new-tuned_run").set_value("two")
    config = started_from(form, tmp_path)
    assert (config.judge, config.base_run, config.tuned_run) == (
        ["openai/a", "google/b"],
        "one",
        "two",
    )
    assert (config.max_requests_per_minute, config.max_tokens_per_minute, config.max_tries) == (
        500,
        9_000,
        3,
    )
    assert (config.timeout_s, config.batch, config.given, config.prices) == (
        7.5,
        True,
        "prefix",
        "prices.yaml",
    )
    assert config.tag == {"who": "me", "why": "a test"}
    form.number_input(key="new-max_tokens_per_minute").set_value(None)
    assert started_from(form, tmp_path).max_tokens_per_minute is None


FAITHCHECK_SETTINGS = """
default_temperature: 0.3
default_seed: 7
default_max_concurrent: 5
default_max_cost_usd: 25.0
default_max_rpm: 30
default_ccs_threshold: 0.2
providers:
  anthropic:
    name: anthropic
    api_key_env: ANTHROPIC_API_KEY
    max_requests_per_minute: 50
    timeout_seconds: 90
  custom:
    name: custom
    api_key_env: CUSTOM_KEY
    base_url: "https://api.custom.example/v1"
"""


def test_faithcheck_s_own_settings_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "faithcheck.yaml"
    file.write_text(FAITHCHECK_SETTINGS)
    config = read_config({"provider": "anthropic", "model": "m"}, file)
    assert (config.temperature, config.seed, config.max_concurrent) == (0.3, 7, 5)
    assert (config.max_cost, config.ccs_threshold, config.timeout_s) == (25.0, 0.2, 90)
    assert (config.max_requests_per_minute, config.base_url) == (50, None)
    monkeypatch.setenv("FAITHCHECK_TEMPERATURE", "0.5")
    config = read_config({"provider": "custom", "model": "m", "seed": 1}, file)
    assert (config.provider, config.seed, config.temperature) == ("openai_compat", 1, 0.5)
    assert config.base_url == "https://api.custom.example/v1"
    assert config.file_of("base_url") == str(file) and config.max_requests_per_minute == 30
    assert config.role == {"subject.key_variable": "CUSTOM_KEY"}
    assert config.file_of("role.subject.key_variable") == str(file)


def test_a_stored_run_with_more_in_flight_than_today_s_bound_goes_on() -> None:
    stored = read_config({}).model_dump(mode="json") | {"max_concurrent": 1000}
    assert resumed_config(stored, {}).max_concurrent == 256


def test_a_chat_template_makes_raw_text_and_no_turns() -> None:
    options = {"provider": "openai_compat", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    assert ResolvedRun(read_config(options)).subject.endpoint == "chat"
    config = read_config({**options, "chat_template": "none"})
    assert ResolvedRun(config).subject.endpoint == "completions"
    both = {"subject.chat_template": "none", "subject.form": "chat"}
    with pytest.raises(ConfigError, match="chat_template=none goes with subject"):
        assert ResolvedRun(read_config({**options, "role": both})).subject


def test_the_command_of_a_run_repeats_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTLAB_REPEATS", "3")  # of another run, and not as this one
    flags = {
        "provider": "openai_compat",
        "model": "a model",
        "base_url": "http://127.0.0.1:1/v1",
        "mode": ["remove", "corrupt"],
        "set": {"ablation.draws": "2"},
        "allow_unpriced": True,
        "repeats": 1,
        "max_cost": 0.5,
        "task_suite": "math",
    }
    config = read_config(flags)
    words = shlex.split(command_line(ResolvedRun(config)))
    assert words[:2] == ["cotlab", "run"] and "--chain-tokens" not in words
    seen: list[dict[str, Any]] = []
    app = typer.Typer()

    @app.command()
    @run_options("run")
    def taken(flags: dict[str, Any]) -> None:
        seen.append(flags)

    app(words[2:], standalone_mode=False)
    assert read_config(seen[0]) == config


def test_an_option_of_before_is_an_entry_of_today_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: dict[str, Any] = {
        "role_price": {"judge": "1/2"},
        "dtype": "bfloat16",
        "embedder_dtype": "float32",
        "critic_votes": 3,
        "critic_tokens": 900,
        "equivalence": "openai/m",
        "form": "chat",
        "jump_nats": 0.7,
        "control": "other",
        "subsets": 2,
        "weights": "w.yaml",
    }
    role = {
        "judge.price": "1/2",
        "subject.dtype": "bfloat16",
        "embedder.dtype": "float32",
        "verifier.votes": "3",
        "verifier.tokens": "900",
        "equivalence.model": "openai/m",
        "subject.form": "chat",
    }
    entries = {"entropy.jump_nats": "0.7", "mediation.control": "other"}
    entries |= {"mediation.subsets": "2", "composite.weights": "w.yaml"}
    assert (read_config(before).role, read_config(before).set) == (role, entries)
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps(before))
    assert (read_config({}, file).role, read_config({}, file).set) == (role, entries)
    file.write_text(
        "role: {verifier: {votes: 3}, judge.price: 1/2}\nset: {mediation: {subsets: 2}}"
    )
    nested = read_config({}, file)
    assert nested.role == {"verifier.votes": "3", "judge.price": "1/2"}
    assert nested.set == {"mediation.subsets": "2"}
    file.write_text(json.dumps(before))
    stored = resumed_config({**before, "backend": "auto", "chat_template": "server"}, {})
    assert (stored.role, stored.set) == (role, entries)  # nobody chose the defaults
    monkeypatch.setenv("COTLAB_SUBSETS", "4")
    monkeypatch.setenv("COTLAB_ROLE_PRICE", "judge=3/4,verifier=5/6")
    monkeypatch.setenv("COTLAB_ROLE", "judge.key_variable=JUDGE_KEY")
    config = read_config({"role": {"judge.price": "9/9"}, "set": {"entropy.jump_nats": "1"}}, file)
    assert config.role == {
        **role,
        "judge.price": "9/9",
        "verifier.price": "5/6",
        "judge.key_variable": "JUDGE_KEY",
    }
    assert config.set == {**entries, "mediation.subsets": "4", "entropy.jump_nats": "1"}
    assert resumed_config(before, {}).role == role  # a stored run has its own alone


@pytest.mark.parametrize("entry", ["subject.model=m", "verifier.vote=3", "judge_2.model=a/b"])
def test_an_entry_that_its_role_does_not_have_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="is no option; there are"):
        read_config({"role": entry})
