"""docs/organisms.md: its commands parse, and it names every organism and every figure."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import typer

from cotlab.cli.main import app
from cotlab.organisms import RECIPES
from cotlab.validation.models import ORGANISMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "organisms.md").read_text("utf-8")


def test_every_command_parses() -> None:
    lines = [
        line
        for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) >= 7
    for line in lines:
        name, *words = shlex.split(line, comments=True)
        assert name == "cotlab"
        command = typer.main.get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context(name, words)


def test_every_organism_and_every_figure_of_the_quality_check_is_named() -> None:
    names = {*ORGANISMS, *RECIPES}
    cards = sorted((ROOT / "data" / "organisms").glob("*/organism.json"))
    assert len(cards) >= 6
    for path in cards:
        card = json.loads(path.read_text())
        names |= {figure for checks in card["gate"].values() for figure in checks}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
