"""``cotlab figures``: the figures of a run, or of a recipe, as files for a paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.core.errors import ConfigError

if TYPE_CHECKING:
    from cotlab.export.recipe import Recipe


def figures_command(
    run: Annotated[
        Optional[str], typer.Argument(help="The run's id; `cotlab runs` lists them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("figures"),
    format: Annotated[str, typer.Option(help="pdf, svg, png and html, with commas.")] = "pdf",
    preset: Annotated[
        Optional[str], typer.Option(help="neurips, icml, nature or slide (default: neurips).")
    ] = None,
    figure: Annotated[
        Optional[list[str]], typer.Option(help="A figure's name; may be repeated (default: all).")
    ] = None,
    item: Annotated[
        Optional[str], typer.Option(help="The item of figures of one item (default: the first).")
    ] = None,
    metric: Annotated[
        Optional[str],
        typer.Option(help="The metric of figures of one metric (default: the first)."),
    ] = None,
    classifier: Annotated[
        Optional[str],
        typer.Option(help="Whose rates of unfaithful responses (default: the first)."),
    ] = None,
    recipe: Annotated[
        Optional[Path], typer.Option(help="Draw this recipe again; no run is read.")
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the figures that the run has, and why others are not."),
    ] = False,
) -> None:
    """Export figures with their numbers, captions, tables and recipes, and all of it as one zip."""
    from cotlab.analysis.tables.catalogue import TABLES
    from cotlab.analysis.tables.declare import Choice
    from cotlab.analysis.view import RunView
    from cotlab.export import bundle
    from cotlab.export import recipe as wanted
    from cotlab.store.database import Store

    formats = bundle.parse_formats(format)
    if (run is None) is (recipe is None) and not (list_ and run is None and recipe is None):
        raise ConfigError("Give either a run, as in cotlab figures RUN, or --recipe FILE.")
    absent: dict[str, str] = {}
    if recipe is not None:
        recipes = [_read_recipe(recipe)]
        venue, source_name = (
            bundle.find_preset(preset or recipes[0].preset or "neurips"),
            recipes[0].name,
        )
    else:
        venue, source_name = bundle.find_preset(preset or "neurips"), run or ""
        if run is None:
            print("\n".join(TABLES))
            return
        for name in figure or ():
            TABLES.require(name)
        source = RunView.read(Store(), run)
        choice = Choice(item=item, metric=metric, classifier=classifier)
        recipes, absent = wanted.recipes_of(source, figure or (), choice, venue.name)
    if list_:
        for entry in recipes:
            print(entry.name)
        for name, reason in absent.items():
            print(f"{name}: n/a, {reason}")
        return
    if not recipes:
        raise ConfigError(
            f"run {run} has no figure to export: {'; '.join(dict.fromkeys(absent.values()))}."
        )
    done = bundle.export_figures(
        recipes, formats, venue, _print_progress if sys.stderr.isatty() else None
    )
    written = bundle.write_files(done.files, out, bundle.archive_name(source_name, venue.name))
    print(
        f"{len(recipes)} figure{'s' * (len(recipes) > 1)}, {len(written)} files in {out}; all of"
        f" them: {written[-1]}"
    )
    if done.missing:
        print(f"error: {done.missing}", file=sys.stderr)
        print("HTML, CSV and recipe were written all the same.", file=sys.stderr)
        raise typer.Exit(3)


def _read_recipe(path: Path) -> Recipe:
    from cotlab.export.recipe import recipe_from_json

    try:
        return recipe_from_json(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--recipe {path}: cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _print_progress(done: int, of: int, name: str) -> None:
    print(f"{done + 1} of {of}: {name}", file=sys.stderr)
