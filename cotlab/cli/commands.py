"""Commands whose options have headings, and where a repeated one is never dropped in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _SingleValues:
    """Refuses a second value of an option that takes a single one.

    The parser itself would take the last and drop those before it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a usage error names the option that was repeated."""
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))  # type: ignore[attr-defined]
        for parameter, count in Counter(parameters).items():
            is_single = parameter.param_type_name == "option" and not (
                parameter.multiple or parameter.is_flag or parameter.count
            )
            if is_single and count > 1:
                ctx.fail(f"{parameter.opts[0]} takes one value and was given {count} times.")
        return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]


class Command(_SingleValues, TyperCommand):
    """A command."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the options by their headings, those without one first."""
        records: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                records.setdefault(heading, []).append(record)
        for heading, rows in records.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


class CommandGroup(_SingleValues, TyperGroup):
    """A group of commands with options of its own."""


class Commands(typer.Typer):
    """A group of commands, each a Command unless it names a class of its own."""

    def __init__(self, *, cls: type[TyperGroup] | None = None, **settings: Any) -> None:
        """Take the settings of typer.Typer."""
        super().__init__(cls=cls or CommandGroup, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[Any], Any]:
        """Add a command, as typer.Typer.command does."""
        return super().command(name, cls=cls or Command, **settings)
