"""An option that no scorer of a run reads is an error where it is given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cotlab
from cotlab.core.errors import ConfigError
from cotlab.core.registry import SCORERS
from cotlab.run.config import read_config, run_fields
from cotlab.run.resolved import ResolvedRun
from cotlab.run.unread_options import check_flags_are_read, scorers_reading
from tests.support.command import cotlab as command

ADDRESS = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"profile": "phase3", "mode": ["corrupt"]}, "add --scorer ablation, or leave --mode out"),
        ({"donors": 3}, "--donors is read by mediation alone, and this run measures ablation"),
        ({"scorer": ["mediation"], "rr_threshold": 0.5}, "add --scorer ablation"),
        ({"judge": ["echo/echo"]}, "--judge is read by judge alone"),
        ({"embedder": "all-MiniLM-L6-v2"}, "--embedder is read by "),
        ({"base_url": ADDRESS}, "--base-url goes with a provider that asks a server"),
        ({"gate_on": "interval"}, "--gate-on goes with --rr-threshold"),
        ({"role": {"judge.base_url": ADDRESS}}, "--role judge.base_url: no scorer"),
        ({"set": {"composite.weights": "w.yaml"}}, "--set composite.weights is read by composite"),
    ],
)
def test_a_flag_that_no_scorer_reads_names_the_scorer_that_would(
    flags: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_flags_are_read(ResolvedRun(read_config(flags)), flags)


@pytest.mark.parametrize(
    "flags",
    [
        {"mode": ["corrupt"], "metric": "answer_change", "ccs_threshold": 0.2, "rr_threshold": 0.5},
        {"profile": "phase3", "scorer": ["ablation"], "mode": ["corrupt"], "embedder": "none"},
        {"provider": "openai_compat", "model": "m", "base_url": ADDRESS, "given": "prefix"},
        {"scorer": ["judge"], "judge": ["openai/m"], "role_price": {"judge_2": "1/2"}},
        {"rr_threshold": 0.5, "gate_on": "interval"},
        {"scorer": ["repair"], "verifier": "critic:echo/echo", "critic_votes": 3},
        {"scorer": ["composite"], "weights": "w.yaml", "embedder_dtype": "float32"},
        {"scorer": ["diversity"], "chain": "own"},  # decides what the suite must hold
        {"embedder": "none", "verifier": "none"},  # there is nothing to read
        {"provider": "echo", "mode": [], "donors": None},  # not given
        {"max_requests_per_minute": 5, "max_concurrent": 3, "timeout_s": 9.0},  # changes no number
    ],
)
def test_what_is_read_passes(flags: dict[str, Any]) -> None:
    check_flags_are_read(ResolvedRun(read_config(flags)), flags)


def test_every_option_of_a_scorer_and_every_role_is_known_to_be_read() -> None:
    read = {name: set(scorers_reading(field)) for name, field in run_fields().items()}
    for field in run_fields().values():
        if field.setting.scorer_option or field.setting.scorers:
            assert read[field.name], field.name
    for name in SCORERS:  # a role that an option of its own fills
        for role in SCORERS[name].roles:
            if role in run_fields():
                assert name in read[role]


def test_command_and_python_refuse_and_a_file_may_say_it_for_other_runs(tmp_path: Path) -> None:
    dry = ("run", "--task-suite", "wordproblems", "--limit", "1", "--dry-run")
    told = command(*dry, "--profile", "phase1", "--mode", "corrupt", store=tmp_path, code=2)
    assert "--mode is read by ablation alone" in told.stderr
    (tmp_path / "run.yaml").write_text("donors: 3\n")
    command(*dry, "--config", tmp_path / "run.yaml", store=tmp_path)
    options: dict[str, Any] = {"subsets": 2}
    with pytest.raises(ConfigError, match="--set mediation.subsets is read by mediation alone"):
        cotlab.run_suite("wordproblems", store=tmp_path, limit=1, **options)
    with pytest.raises(ConfigError, match="--set mediation.subsets is read by mediation alone"):
        cotlab.robustness(["2 + 2 = 4."], embedder=None, **options)


def test_a_resumed_run_refuses_what_it_does_not_read_and_stays_as_it_was(tmp_path: Path) -> None:
    result = cotlab.run_suite("wordproblems", store=tmp_path, scorer=["flags"], limit=1)
    resume = ("run", "--resume", result.run_id)
    told = command(*resume, "--gate-on", "interval", store=tmp_path, code=2)
    assert "--gate-on goes with --rr-threshold" in told.stderr
    assert "Report:" in command(*resume, store=tmp_path).stdout
