"""Recipes: the table of a figure and everything else that draws it again, as one JSON file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cotlab.analysis.tables.catalogue import TABLES, figure_table
from cotlab.analysis.tables.declare import DEFAULT_CHOICE, Choice, FigureData, NoFigure
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest
from cotlab.core.registry import FIGURES
from cotlab.export.tabular import drop_hidden_columns
from cotlab.figures.printed import plotly_version
from cotlab.run.plan import code_version

KIND = "cotlab figure, version 1"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""A name that names a file in the folder that was chosen, and no file elsewhere."""
_DTYPES = {"i": "Int64", "u": "Int64", "f": "float64", "b": "boolean"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What draws a figure."""

    name: str
    """Name of the figure among those of a run; names the files."""
    figure: str
    """Name of its builder in the registry of figures."""
    table: pd.DataFrame
    """The table it is drawn from, without keys into the response log."""
    note: str = ""
    """What the subtitle says besides the figure's own words."""
    run: str = ""
    """Id of the run that the numbers come from; "" where there is none."""
    preset: str = ""
    """The venue it was printed for; "" where there is none."""
    choice: dict[str, str] = field(default_factory=dict)
    """Which item, metric or setting was chosen."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of the code that wrote it."""

    def draw(self) -> Any:
        """Return the figure as a page shows it."""
        return FIGURES[self.figure](self.table, note=self.note)


def recipe_to_json(recipe: Recipe) -> str:
    """Return a recipe as JSON text; equal figures have equal digests."""
    document = {
        "kind": KIND,
        "name": recipe.name,
        "figure": recipe.figure,
        "note": recipe.note,
        "run": recipe.run,
        "preset": recipe.preset,
        "choice": recipe.choice,
        "versions": {"plotly": plotly_version(), **recipe.versions},
        "table": table_to_json(recipe.table),
    }
    return (
        json.dumps(
            {**document, "digest": _digest(document)}, indent=1, ensure_ascii=False, allow_nan=False
        )
        + "\n"
    )


def recipe_from_json(text: str, where: str = "recipe") -> Recipe:
    """Return the recipe of a file.

    Raises
    ------
    ConfigError
        If it is no recipe, its name is no name of a file, its numbers are not those that its digest
        was made of, or its table lacks a column that the figure needs.
    UnknownName
        If no figure has the name of its builder.
    """
    try:
        document = json.loads(text)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode(
            "utf-8"
        )  # what was read can be written again
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise ConfigError(f"{where} is no recipe of a figure: its kind is not {KIND!r}.")
        if document.get("digest") != _digest(document):
            raise ConfigError(
                f"{where} was changed after it was written: its digest is that of other numbers."
            )
        recipe = Recipe(
            str(document["name"]),
            str(document["figure"]),
            table_from_json(document["table"]),
            str(document["note"]),
            str(document["run"]),
            str(document["preset"]),
            dict(document["choice"]),
            dict(document["versions"]),
        )
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{where} is no recipe of a figure: {type(error).__name__}.") from error
    if not _NAME.fullmatch(recipe.name):
        raise ConfigError(
            f"{where} is no recipe of a figure: its name must be letters, digits, _ and -, 80 at"
            " most."
        )
    FIGURES.require(recipe.figure)
    if lacking := [
        name for name in FIGURES[recipe.figure].columns if name not in recipe.table.columns
    ]:
        raise ConfigError(
            f"{where} is no recipe of {recipe.figure}: its table lacks {', '.join(lacking)}."
        )
    return recipe


def _digest(document: dict[str, Any]) -> str:
    return digest({name: document.get(name) for name in ("figure", "note", "table")})


def table_to_json(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as columns with their kinds and rows of JSON values; missing is null."""
    visible = drop_hidden_columns(table)
    kinds = [_DTYPES.get(visible[name].dtype.kind, "object") for name in visible.columns]
    rows = [[_plain(value) for value in row] for row in visible.itertuples(index=False, name=None)]
    return {"columns": [str(name) for name in visible.columns], "kinds": kinds, "rows": rows}


def table_from_json(document: dict[str, Any]) -> pd.DataFrame:
    """Return the table of ``table_to_json``."""
    columns = {}
    for i, (name, kind) in enumerate(zip(document["columns"], document["kinds"], strict=True)):
        if kind not in (*_DTYPES.values(), "object"):
            raise ValueError(f"no such kind of column: {kind}")
        columns[name] = pd.Series([row[i] for row in document["rows"]], dtype=kind)
    return pd.DataFrame(columns)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(element) for element in value]
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def recipe_of(view: RunView, name: str, figure_data: FigureData, preset: str = "") -> Recipe:
    """Return the recipe of a figure with its table; that of a partial run says so."""
    note = " ".join(part for part in (figure_data.note, view.partial) if part)
    return Recipe(
        name,
        TABLES[name].figure,
        figure_data.table,
        note,
        view.run_id,
        preset,
        figure_data.choice.chosen(),
        {"cotlab": code_version()},
    )


def recipes_of(
    view: RunView, names: Sequence[str] = (), choice: Choice = DEFAULT_CHOICE, preset: str = ""
) -> tuple[list[Recipe], dict[str, str]]:
    """Return the recipes of some or all figures of a run, and why others are absent.

    Raises
    ------
    ConfigError
        If a figure that was named is not there.
    UnknownName
        If no figure has the name.
    """
    recipes, absent = [], {}
    for name in names or TABLES:
        result = figure_table(view, name, choice)
        if isinstance(result, NoFigure):
            absent[name] = result.reason
        else:
            recipes.append(recipe_of(view, name, result, preset))
    if names and absent:
        raise ConfigError(
            "; ".join(
                f"run {view.run_id} has no figure {name}: {reason}"
                for name, reason in absent.items()
            )
            + "."
        )
    return recipes, absent
