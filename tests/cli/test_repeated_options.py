"""An option that takes one value is refused where it is given twice, in every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from cotlab.cli.main import app


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield (*path, name), command
        if isinstance(command, TyperGroup):
            yield from leaves(command, (*path, name))


def options(command: Any, *, single: bool) -> list[Any]:
    return [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option"
        and not parameter.is_flag
        and parameter.multiple != single
    ]


@pytest.fixture(scope="module")
def commands() -> dict[tuple[str, ...], Any]:
    import typer

    return dict(leaves(typer.main.get_command(app)))


def test_a_repeated_option_is_named_and_nothing_runs(commands: dict[tuple[str, ...], Any]) -> None:
    checked = 0
    for path, command in commands.items():
        for option in options(command, single=True):
            flag = option.opts[0]
            done = CliRunner().invoke(app, [*path, flag, "1", flag, "2"])
            assert done.exit_code == 2, (path, flag, done.output)
            assert f"{flag} takes one value and was given 2 times" in done.output
            checked += 1
    assert checked > 100


def test_an_option_of_several_values_is_repeated(commands: dict[tuple[str, ...], Any]) -> None:
    path = ("run",)
    names = {option.opts[0] for option in options(commands[path], single=False)}
    assert {"--scorer", "--mode", "--tag"} <= names
    plan = ["plan", "--task-suite", "wordproblems", "--provider", "organism"]
    wanted = ["--model", "faithful-a", "--mode", "remove", "--mode", "corrupt", "--limit", "1"]
    done = CliRunner().invoke(app, [*plan, *wanted])
    assert done.exit_code == 0, done.output
    assert '"remove"' in done.output and '"corrupt"' in done.output
