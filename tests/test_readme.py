"""What the README promises: its example runs, its tables are complete, its sketches work."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cotlab.core.registry import SCORERS
from cotlab.run.config import RunConfig
from cotlab.run.secrets import ACCESS, access_settings, load_secrets

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def example() -> str:
    return next(code for language, code in BLOCKS if language == "python" and "run_suite" in code)


def test_the_example_is_short() -> None:
    assert len(example().strip().splitlines()) <= 15


@pytest.mark.soak
def test_the_example_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    env = {**os.environ, "COTLAB_STORE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", example()],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^RRR 0\.\d{3}, 95 % interval \(", done.stdout, re.MULTILINE)


def test_the_example_runs_inside_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    scope: dict[str, object] = {}

    async def inside() -> None:
        exec(compile(example(), "README.md", "exec"), scope)  # our own text, read from the checkout

    asyncio.run(inside())
    assert 0 <= scope["result"].rrr <= 1  # type: ignore[attr-defined]


def test_every_card_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)`", README))
    for name in ("ablation",):
        scorer = SCORERS[name]
        for card in (*scorer.cards, *(s.card for s in scorer.statistics)):
            assert card.name in listed, card.name


def test_every_flag_is_listed_and_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "cotlab", "run", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200", "TERM": "dumb"},
    ).stdout
    real = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    section = reference.split("\n## cotlab run\n")[1].split("\n## ")[0]
    told = set(re.findall(r"--[a-z][a-z-]+", section)) - {"--help"}
    assert "(docs/reference/cli.md)" in README
    assert told == real
    fields = {f"--{name.replace('_', '-')}" for name in RunConfig.model_fields}
    assert fields <= real


def test_the_environment_file_lists_every_variable() -> None:
    listed = set(
        re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    wanted = {f"COTLAB_{name.upper()}" for name in RunConfig.model_fields}
    keys = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_COMPAT_API_KEY"}
    others = {"FAITHCHECK_TEMPERATURE", "FAITHCHECK_MAX_COST", *ACCESS}
    assert listed == wanted | keys | others


def test_all_that_the_environment_file_lists_may_be_set_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    lines = re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    (tmp_path / ".env").write_text("".join(f"{name}=1\n" for name in lines))
    load_secrets(tmp_path)
    second_names = {"COTLAB_TEMPERATURE", "COTLAB_MAX_COST"}  # of what FAITHCHECK_ has set
    assert {name for name in lines if os.environ.get(name) != "1"} == {*ACCESS} | second_names
    assert access_settings(tmp_path) == dict.fromkeys(ACCESS, "1")


def test_sketches_are_short() -> None:
    section = README.split("## How to extend it")[1].split("## Dependencies")[0]
    for _, code in re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL):
        assert len(code.strip().splitlines()) <= 20


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make (\w+)", README)) - {"do"} <= targets


def test_the_organisms_table_is_there_for_every_organism() -> None:
    from cotlab.providers.local.organisms import organism_names

    section = README.split("## What the organisms teach")[1].split("## Use")[0]
    rows = re.findall(r"^\| ([\w-]+) \| \d", section, re.MULTILINE)
    assert set(rows) == set(organism_names())
