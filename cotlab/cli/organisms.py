"""``cotlab organisms``: train the tiny models of known faithfulness, and hold them against their gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout, data_path

if TYPE_CHECKING:
    from cotlab.organisms.quality_check import Check

app = typer.Typer(no_args_is_help=True, help="Train and check the models of known faithfulness.")
Folder = Annotated[
    Optional[Path],
    typer.Option("--output", help="Folder of checkpoints (default: data/organisms)."),
]


@app.command()
def train(
    name: Annotated[
        str, typer.Argument(help="control, faithful-a, faithful-b, bypass-a or bypass-b.")
    ],
    output: Folder = None,
) -> None:
    """Train one organism from its recipe, then run its gate and write the figures beside the weights."""
    from cotlab.organisms.curriculum import find_recipe

    recipe = find_recipe(name)
    if output is None and checkout() is None:
        raise ConfigError("Name a folder for the new weights: --output FOLDER.")
    from rich.progress import Progress

    from cotlab.organisms.train import describe_recipe
    from cotlab.organisms.train import train_organism as train_one

    folder = _folder(output) / recipe.name
    with Progress() as bar:
        task = bar.add_task(f"training {recipe.name}", total=recipe.steps)
        train_one(
            recipe,
            folder,
            lambda step, _, loss: bar.update(
                task, completed=step, description=f"{recipe.name} loss {loss:.4f}"
            ),
        )
    from cotlab.organisms.quality_check import run_quality_check, write_card

    checks = run_quality_check(folder, recipe)
    write_card(folder, describe_recipe(recipe), checks)
    if not _print_checks(recipe.name, checks):
        raise typer.Exit(1)


@app.command()
def check(
    name: Annotated[Optional[str], typer.Argument(help="One organism (default: all).")] = None,
    items: Annotated[int, typer.Option(help="Fresh problems a figure.", min=20)] = 500,
    seed: Annotated[int, typer.Option(help="Another seed, other problems.")] = 12345,
    output: Folder = None,
) -> None:
    """Measure the gate's figures on fresh problems; exit with code 1 if one fails."""
    from cotlab.organisms.curriculum import RECIPES, find_recipe

    recipes = [find_recipe(name)] if name else list(RECIPES.values())
    from cotlab.organisms.quality_check import run_quality_check

    passed = [
        _print_checks(
            recipe.name,
            run_quality_check(_folder(output) / recipe.name, recipe, items=items, seed=seed),
        )
        for recipe in recipes
    ]
    if not all(passed):
        raise typer.Exit(1)


def _folder(output: Path | None) -> Path:
    return output or data_path("organisms")


def _print_checks(name: str, checks_by_mode: Mapping[str, Sequence[Check]]) -> bool:
    """Print every figure of a gate with its bounds; whether all passed."""
    for mode, checks in checks_by_mode.items():
        for c in checks:
            verdict = "ok  " if c.passed else "FAIL"
            print(
                f"{verdict} {name} {mode:5} {c.figure:33} {c.value:.4f} in [{c.low:.2f},"
                f" {c.high:.2f}]  n = {c.n}"
            )
    return all(c.passed for checks in checks_by_mode.values() for c in checks)
