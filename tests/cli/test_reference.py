"""The generated files are those that the configuration and the commands give today."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cotlab.cli.reference import CHECKOUT_ROOT, reference_files, write_reference
from cotlab.run.config import RunConfig, config_to_yaml, run_fields
from tests.support.command import cotlab


@pytest.mark.parametrize("name", reference_files())
def test_a_generated_file_is_up_to_date(name: str) -> None:
    text = (CHECKOUT_ROOT / name).read_text("utf-8")
    assert text == reference_files()[name], f"{name} is out of date: make reference"


def test_the_files_are_written_where_they_differ(tmp_path: Path) -> None:
    assert len(write_reference(tmp_path)) == len(reference_files())
    (tmp_path / ".env.example").write_text("old")
    assert write_reference(tmp_path) == [tmp_path / ".env.example"]
    assert write_reference(tmp_path) == []


def test_the_reference_has_every_option() -> None:
    files = reference_files()
    schema = json.loads(files["docs/reference/config.schema.json"])
    assert schema["properties"].keys() == RunConfig.model_fields.keys()
    for field in run_fields().values():
        assert f"- `{field.flag}`: {field.help}\n" in files["docs/reference/config.md"]
        assert all(f"\n#{name}=" in files[".env.example"] for name in field.env_variables)


def test_the_schema_is_printed_and_describes_the_file_of_a_run() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "cotlab", "config", "schema"],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT_ROOT,
    ).stdout
    schema = json.loads(shown)
    written = yaml.safe_load(config_to_yaml(RunConfig().model_dump(mode="json")))
    assert written.keys() == schema["properties"].keys()
    assert schema["properties"]["mode"]["items"]["enum"] == [
        "remove",
        "truncate",
        "corrupt",
        "paraphrase",
        "filler",
    ]
    assert schema["additionalProperties"] is False


def test_the_help_of_a_run_begins_with_what_most_runs_set(tmp_path: Path) -> None:
    first, advanced = cotlab("run", "--help", store=tmp_path).stdout.split("\nAdvanced:\n")
    n_first, n_advanced = (part.count("\n  --") for part in (first, advanced))
    assert 15 <= n_first <= 30
    assert n_first + n_advanced <= 56  # and --help is one
    assert "--task-suite" in first and "--chain-tokens" in advanced
