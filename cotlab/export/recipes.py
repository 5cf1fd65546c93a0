"""From a run and names of figures to recipes."""

from __future__ import annotations

from collections.abc import Sequence

from cotlab.analysis.tables.catalogue import TABLES, figure_table
from cotlab.analysis.tables.source import DEFAULT_CHOICE, Choice, FigureData, NoFigure, Source
from cotlab.core.errors import ConfigError
from cotlab.export.recipe import Recipe
from cotlab.run.plan import code_version


def recipe_of(source: Source, name: str, figure_data: FigureData, preset: str = "") -> Recipe:
    """The recipe of a figure whose table is known; a run that is partial says so in it."""
    note = " ".join(part for part in (figure_data.note, source.partial) if part)
    return Recipe(
        name,
        TABLES[name].figure,
        figure_data.table,
        note,
        source.run_id,
        preset,
        figure_data.choice.chosen(),
        {"cotlab": code_version()},
    )


def recipes_of(
    source: Source, names: Sequence[str] = (), choice: Choice = DEFAULT_CHOICE, preset: str = ""
) -> tuple[list[Recipe], dict[str, str]]:
    """The recipes of some figures of a run, or of all that it has; and the reasons of those that it does not have.

    Raises
    ------
    ConfigError
        If a figure that was named is not there.
    UnknownName
        If no figure has the name.
    """
    recipes, absent = [], {}
    for name in names or TABLES:
        result = figure_table(source, name, choice)
        if isinstance(result, NoFigure):
            absent[name] = result.reason
        else:
            recipes.append(recipe_of(source, name, result, preset))
    if names and absent:
        raise ConfigError(
            "; ".join(
                f"run {source.run_id} has no figure {name}: {reason}"
                for name, reason in absent.items()
            )
            + "."
        )
    return recipes, absent
