"""Recipes: the table of a figure and everything else that draws it again, as one JSON file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from cotlab.analysis.tables.catalogue import FIGURE_TABLES, make_figure_table
from cotlab.analysis.tables.declare import DEFAULT_CHOICE, FigureChoice, FigureData, MissingFigure
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest
from cotlab.core.registry import FIGURES
from cotlab.core.text_safety import printable_line
from cotlab.export.tabular import drop_hidden_columns
from cotlab.figures.presets import FigurePreset, print_options
from cotlab.figures.style import CARD, Look
from cotlab.run.plan import code_version
from cotlab.store.recorded_models import captioned_model_name

RECIPE_KIND = "cotlab figure, version 1"
_FILE_NAME_RE = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""A name that names a file in the folder that was chosen, and no file elsewhere."""
_TEXT_FIELDS = ("name", "figure", "note", "run", "preset")
_DTYPE_BY_KIND = {"i": "Int64", "u": "Int64", "f": "float64", "b": "boolean"}


@dataclass(frozen=True, slots=True)
class FigureRecipe:
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
    print_options: dict[str, Any] = field(default_factory=dict)
    """In what it was printed otherwise than its venue's figures: ``width_pt``, say."""
    source: str = ""
    """Model, suite and number of items of the run; "" where the numbers come from several runs."""

    def draw(self, look: Look = CARD) -> Any:
        """Return the figure in a look, by default as a page shows it."""
        return FIGURES[self.figure](self.table, note=self.note, look=look)


def recipe_to_json(recipe: FigureRecipe) -> str:
    """Return a recipe as JSON text; equal figures have equal digests."""
    document = {
        "kind": RECIPE_KIND,
        **{
            name: getattr(recipe, name)
            for name in (*_TEXT_FIELDS, "choice", "print_options", "source")
        },
        "versions": {"plotly": version("plotly"), **recipe.versions},
        "table": table_to_json(recipe.table),
    }
    document["digest"] = _content_digest(document)
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def recipe_from_json(text: str, source: str = "recipe") -> FigureRecipe:
    """Return the recipe of a file.

    Raises
    ------
    ConfigError
        If it is no recipe, its name is no name of a file, its numbers are not those that its digest
        was made of, or its table lacks a column that the figure needs or cannot be drawn.
    UnknownName
        If no figure has the name of its builder.
    """
    try:
        document = json.loads(text)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode(
            "utf-8"
        )  # what was read can be written again
        if not isinstance(document, dict) or document.get("kind") != RECIPE_KIND:
            raise ConfigError(
                f"{source} is no recipe of a figure: its kind is not {RECIPE_KIND!r}."
            )
        if document.get("digest") != _content_digest(document):
            raise ConfigError(
                f"{source} was changed after it was written: its digest is that of other numbers."
            )
        texts = {name: str(document[name]) for name in _TEXT_FIELDS}
        table = table_from_json(document["table"])
        choice, versions = dict(document["choice"]), dict(document["versions"])
        recipe = FigureRecipe(
            table=table,
            choice=choice,
            versions=versions,
            print_options=dict(document.get("print_options", {})),  # absent from earlier ones
            source=str(document.get("source", "")),
            **texts,
        )
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{source} is no recipe of a figure: {type(error).__name__}.") from error
    if not _FILE_NAME_RE.fullmatch(recipe.name):
        raise ConfigError(
            f"{source} is no recipe of a figure: its name must be letters, digits, _ and -, 80 at"
            " most."
        )
    FIGURES.require(recipe.figure)
    missing_columns = [
        column for column in FIGURES[recipe.figure].columns if column not in recipe.table.columns
    ]
    if missing_columns:
        raise ConfigError(
            f"{source} is no recipe of {recipe.figure}: its table lacks"
            f" {', '.join(missing_columns)}."
        )
    try:
        recipe.draw()
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ConfigError(
            f"{source} is no recipe of {recipe.figure}: its table holds values that this figure"
            f" cannot show ({type(error).__name__})."
        ) from error
    return recipe


def _content_digest(document: dict[str, Any]) -> str:
    return digest({name: document.get(name) for name in ("figure", "note", "table")})


def table_to_json(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as columns with their kinds and rows of JSON values; missing is null."""
    visible_table = drop_hidden_columns(table)
    kinds = [
        _DTYPE_BY_KIND.get(visible_table[name].dtype.kind, "object")
        for name in visible_table.columns
    ]
    rows = [
        [_json_value(value) for value in row]
        for row in visible_table.itertuples(index=False, name=None)
    ]
    return {"columns": [str(name) for name in visible_table.columns], "kinds": kinds, "rows": rows}


def table_from_json(document: dict[str, Any]) -> pd.DataFrame:
    """Return the table of ``table_to_json``."""
    columns = {}
    for i, (name, kind) in enumerate(zip(document["columns"], document["kinds"], strict=True)):
        if kind not in (*_DTYPE_BY_KIND.values(), "object"):
            raise ValueError(f"no such kind of column: {kind}")
        columns[name] = pd.Series([row[i] for row in document["rows"]], dtype=kind)
    return pd.DataFrame(columns)


def _json_value(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_json_value(child) for child in value]
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def make_recipe(
    view: RunView, name: str, figure_data: FigureData, preset: FigurePreset | None = None
) -> FigureRecipe:
    """Return the recipe of a figure with its table; that of a partial run says so."""
    note = " ".join(part for part in (figure_data.note, view.partial_note) if part)
    has_source = FIGURE_TABLES[name].scope in ("run", "item") and not figure_data.choice.runs
    return FigureRecipe(
        name,
        FIGURE_TABLES[name].figure,
        figure_data.table,
        note,
        view.run_id,
        "" if preset is None else preset.name,
        figure_data.choice.as_dict(),
        {"cotlab": code_version()},
        {} if preset is None else print_options(preset),
        _source_text(view) if has_source else "",
    )


def _source_text(view: RunView) -> str:
    n_text = f"{view.n_items:,} item{'' if view.n_items == 1 else 's'}"
    model = captioned_model_name(view.model)
    return printable_line(f"{model} on {view.suite_name}, {n_text} (run {view.run_id})")


def make_recipes(
    view: RunView,
    names: Sequence[str] = (),
    choice: FigureChoice = DEFAULT_CHOICE,
    preset: FigurePreset | None = None,
) -> tuple[list[FigureRecipe], dict[str, str]]:
    """Return the recipes of some or all figures of a run, and why others are absent.

    Raises
    ------
    ConfigError
        If a figure that was named is not there.
    UnknownName
        If no figure has the name.
    """
    recipes, reason_by_figure = [], {}
    for name in names or FIGURE_TABLES:
        result = make_figure_table(view, name, choice)
        if isinstance(result, MissingFigure):
            reason_by_figure[name] = result.reason
        else:
            recipes.append(make_recipe(view, name, result, preset))
    if names and reason_by_figure:
        reasons = [
            f"run {view.run_id} has no figure {name}: {reason_by_figure[name]}"
            for name in reason_by_figure
        ]
        raise ConfigError("; ".join(reasons) + ".")
    return recipes, reason_by_figure
