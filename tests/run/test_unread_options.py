"""An option that a run would not read is an error where it is given, and a note where it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import cotlab
from cotlab.core.errors import ConfigError
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.providers.capabilities import SHIPPED_PROVIDERS
from cotlab.run.config import read_config, run_fields
from cotlab.run.resolved import ResolvedRun
from cotlab.run.unread_options import (
    PROVIDERS_OF_BATCHES,
    check_flags_are_read,
    scorers_reading,
    unread_notes,
)
from tests.support.command import cotlab as command


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"profile": "phase3", "mode": ["corrupt"]}, "add --scorer ablation, or leave --mode out"),
        ({"donors": 3}, "--donors is read by mediation alone, and this run measures ablation"),
        ({"scorer": ["mediation"], "rr_threshold": 0.5}, "add --scorer ablation"),
        ({"judge": ["echo/echo"]}, "--judge is read by judge alone"),
        ({"embedder": "all-MiniLM-L6-v2"}, "--embedder is read by "),
        (
            {"scorer": ["verification"], "role": {"verifier.votes": "3"}},
            "--verifier critic:PROVIDER/MODEL",
        ),
        ({"provider": "openai", "model": "m", "device": "cuda"}, "models in this process"),
        (
            {"base_url": "http://127.0.0.1:1/v1"},
            "--base-url goes with a provider that asks a server",
        ),
        ({"gate_on": "interval"}, "--gate-on goes with --rr-threshold"),
        ({"role": {"judge.base_url": "http://127.0.0.1:1/v1"}}, "--role judge.base_url: no scorer"),
        ({"set": {"composite.weights": "w.yaml"}}, "--set composite.weights is read by composite"),
        (
            {"provider": "echo", "role": {"subject.dtype": "float16"}},
            "subject.dtype is for models in",
        ),
        ({"given": "prefix"}, "--given goes with a chat model"),
        ({"given": "user"}, "--given goes with a chat model"),
        ({"profile": "offline", "scorer": [], "given": "prefix"}, "--given goes with a chat model"),
        ({"probe": "always"}, "--probe is for models that are asked over a network"),
        ({"allow_unpriced": True}, "--allow-unpriced is for models that are asked over a network"),
        ({"role": {"subject.backend": "hooks"}}, "subject.backend is read by mediation alone"),
        ({"max_requests_per_minute": 5}, "--max-requests-per-minute is for models that are"),
        ({"max_requests_per_minute": "auto"}, "(like --provider openai_compat)"),
        (
            {"provider": "local", "model": "m", "max_requests_per_minute": 600},
            "this run asks local/m",
        ),
        ({"provider": "echo", "max_requests_per_minute": 5}, "this run asks echo/r100"),
        ({"max_tokens_per_minute": 9000}, "--max-tokens-per-minute is for models that are asked"),
        ({"max_concurrent": 50}, "--max-concurrent is for models that are asked over a network"),
        ({"max_tries": 3, "timeout_s": 9.0}, "this run asks organism/r100"),
    ],
)
def test_a_flag_that_no_scorer_reads_names_the_scorer_that_would(
    flags: dict[str, Any], said: str
) -> None:
    config = read_config(flags)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        check_flags_are_read(ResolvedRun(config), flags)
    for name in flags.keys() - {"profile", "scorer", "provider", "model"}:
        assert run_fields()[name].flag in str(caught.value)  # all of them at once


@pytest.mark.parametrize(
    "flags",
    [
        {"mode": ["corrupt"], "metric": "answer_change", "ccs_threshold": 0.2, "rr_threshold": 0.5},
        {"profile": "phase3", "scorer": ["ablation"], "mode": ["corrupt"], "embedder": "none"},
        {"provider": "openai_compat", "model": "m", "base_url": "http://127.0.0.1:1/v1"},
        {
            "scorer": ["judge"],
            "judge": ["openai/m"],
            "role_price": {"judge": "1/2", "judge_2": "1/2"},
        },
        {"rr_threshold": 0.5, "gate_on": "interval"},
        {"scorer": ["mediation"], "donors": 3, "layers": ["all"], "device": "cpu"},
        {"scorer": ["repair"], "verifier": "critic:echo/echo", "critic_votes": 3},
        {"scorer": ["composite"], "weights": "w.yaml", "embedder_dtype": "float32"},
        {"scorer": ["diversity"], "chain": "own"},  # decides what the suite must hold
        {"embedder": "none", "verifier": "none"},  # there is nothing to read
        {"provider": "openai_compat", "model": "m", "given": "prefix", "probe": "always"},
        {"provider": "local", "model": "m", "given": "prefix"},  # where it has a template
        {"provider": "openai", "model": "m", "allow_unpriced": True, "probe": "always"},
        {"scorer": ["judge"], "judge": ["openai/m"], "allow_unpriced": True, "probe": "always"},
        {"probe": "never", "allow_unpriced": False},  # as it is anyway
        {"backend": "hooks", "scorer": ["mediation"]},
        {"provider": "echo", "mode": [], "donors": None},  # not given
        {"max_requests_per_minute": 60, "max_concurrent": 10},  # the usual ones, as FaithCheck's
        {"provider": "openai", "model": "m", "max_requests_per_minute": "auto", "max_tries": 3},
        {"scorer": ["judge"], "judge": ["openai/m"], "max_requests_per_minute": 5},
        {"provider": "echo", "max_concurrent": 3, "max_tries": 3, "timeout_s": 9.0},
    ],
)
def test_what_is_read_passes(flags: dict[str, Any]) -> None:
    check_flags_are_read(ResolvedRun(read_config(flags)), flags)


def test_every_option_of_a_scorer_and_every_role_is_known_to_be_read() -> None:
    read = {name: set(scorers_reading(field)) for name, field in run_fields().items()}
    for field in run_fields().values():
        setting = field.setting
        if setting.scorer_option or setting.scorers:
            assert read[field.name], field.name
    for name in SCORERS:  # a role that an option of its own fills
        for role in SCORERS[name].roles:
            if role in run_fields():
                assert name in read[role]


def test_the_command_refuses_and_a_file_or_the_environment_gets_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = ("run", "--task-suite", "wordproblems", "--limit", "1", "--dry-run")
    told = command(*dry, "--profile", "phase1", "--mode", "corrupt", store=tmp_path, code=2)
    assert "--mode is read by ablation alone" in told.stderr
    (tmp_path / "run.yaml").write_text("donors: 3\nmode: [corrupt]\n")
    error = command(*dry, "--config", tmp_path / "run.yaml", store=tmp_path).stderr
    assert "note: Set by a file or the environment: --donors is read by" in error
    assert "--mode" not in error
    monkeypatch.setenv("COTLAB_DONORS", "5")
    config = read_config({})
    assert len(unread_notes(ResolvedRun(config), {})) == 1 and not unread_notes(
        ResolvedRun(config), {"donors": 5}
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subsets": 2}, "--set mediation.subsets is read by mediation alone"),
        ({"max_requests_per_minute": 5}, "--max-requests-per-minute is for models that are"),
    ],
)
def test_python_refuses_too(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        cotlab.run_suite("wordproblems", store=tmp_path, limit=1, **options)
    with pytest.raises(ConfigError, match=said):
        cotlab.robustness(["2 + 2 = 4."], embedder=None, **options)


def test_which_providers_send_no_single_requests() -> None:
    for name in SHIPPED_PROVIDERS:
        opener = PROVIDERS[name]
        opened = opener if isinstance(opener, type) else get_type_hints(opener)["return"]
        assert hasattr(opened, "send_batch") == (name in PROVIDERS_OF_BATCHES), name


@pytest.mark.parametrize("words", [("--send-key-to", "proxy.example.com"), ("--probe", "always")])
def test_a_run_in_this_process_sends_no_key_and_checks_no_server(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    run = ("run", "--task-suite", "wordproblems", "--limit", "1", *words)
    said = command(*run, store=tmp_path, code=2).stderr
    shown = words[0] if words[0] == "--probe" else " ".join(words)
    assert f"{shown} is for models that are asked over a network" in said
    assert not list(tmp_path.glob("reports/*"))


def test_doctor_without_a_server_takes_none_of_its_options(tmp_path: Path) -> None:
    words = ("doctor", "--base-url", "http://127.0.0.1:1/v1")
    assert "go with --connect" in command(*words, store=tmp_path, code=2).stderr


def test_a_resumed_run_refuses_what_it_does_not_read_and_stays_as_it_was(tmp_path: Path) -> None:
    result = cotlab.run_suite("wordproblems", store=tmp_path, scorer=["flags"], limit=1)
    resume = ("run", "--resume", result.run_id)
    told = command(*resume, "--gate-on", "interval", store=tmp_path, code=2)
    assert "--gate-on goes with --rr-threshold" in told.stderr
    told = command(*resume, "--batch", store=tmp_path, code=2)
    assert "--batch" in told.stderr
    assert "Report:" in command(*resume, store=tmp_path).stdout
