"""From a run and names of figures to recipes."""

from __future__ import annotations

from collections.abc import Sequence

from cotlab.analysis.tables.catalogue import TABLES, figure_table
from cotlab.analysis.tables.source import FIRST, Absent, Choice, Drawn, Source
from cotlab.core.errors import ConfigError
from cotlab.export.recipe import Recipe
from cotlab.run.plan import code_version


def recipe_of(source: Source, name: str, drawn: Drawn, preset: str = "") -> Recipe:
    """The recipe of a figure whose table is known; a run that is partial says so in it."""
    note = " ".join(part for part in (drawn.note, source.partial) if part)
    return Recipe(
        name, TABLES[name].figure, drawn.table, note, source.run_id, preset, drawn.choice.given(), {"cotlab": code_version()}
    )


def recipes_of(
    source: Source, names: Sequence[str] = (), choice: Choice = FIRST, preset: str = ""
) -> tuple[list[Recipe], dict[str, str]]:
    """The recipes of some figures of a run, or of all that it has; and the reasons of those that it does not have.

    Raises
    ------
    ConfigError
        If a figure that was named is not there.
    UnknownName
        If no figure has the name.
    """
    found, absent = [], {}
    for name in names or TABLES:
        told = figure_table(source, name, choice)
        if isinstance(told, Absent):
            absent[name] = told.reason
        else:
            found.append(recipe_of(source, name, told, preset))
    if names and absent:
        raise ConfigError("; ".join(f"run {source.run_id} has no figure {name}: {why}" for name, why in absent.items()) + ".")
    return found, absent
