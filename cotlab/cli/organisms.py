"""``cotlab organisms`` and ``cotlab validate``: models of known faithfulness, metrics on them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.core.errors import ConfigError
from cotlab.core.resources import checkout_root, data_path

if TYPE_CHECKING:
    from cotlab.organisms.gate import QualityCheck

app = Commands(no_args_is_help=True, help="Train and check the models of known faithfulness.")
FolderOption = Annotated[
    Optional[Path],
    typer.Option("--output", help="Folder of checkpoints (default: data/organisms)."),
]


@app.command("train")
def train_organism_command(
    name: Annotated[
        str,
        typer.Argument(
            help="control, faithful-a or -b, bypass-a or -b, all-steps-a to -c, or prm-a."
        ),
    ],
    output: FolderOption = None,
) -> None:
    """Train one organism from its recipe, check it, and write the figures beside the weights."""
    from cotlab.organisms.curriculum import find_recipe

    recipe = find_recipe(name)
    if output is None and checkout_root() is None:
        raise ConfigError("Name a folder for the new weights: --output FOLDER.")
    from rich.progress import Progress

    from cotlab.organisms.kinds import run_quality_check, write_card
    from cotlab.organisms.train import train_organism

    folder = _organisms_folder(output) / recipe.name
    with Progress() as bar:
        task = bar.add_task(f"training {recipe.name}", total=recipe.steps)

        def show_progress(step: int, _: int, loss: float) -> None:
            bar.update(task, completed=step, description=f"{recipe.name} loss {loss:.4f}")

        train_organism(recipe, folder, show_progress)
    checks_by_mode = run_quality_check(folder, recipe)
    write_card(folder, recipe, checks_by_mode)
    if not _print_quality_checks(recipe.name, checks_by_mode):
        raise typer.Exit(1)


@app.command("check")
def check_organisms(
    name: Annotated[
        Optional[str], typer.Argument(help="One organism (default: all of the folder).")
    ] = None,
    items: Annotated[int, typer.Option(help="Fresh problems a figure.", min=20)] = 500,
    seed: Annotated[int, typer.Option(help="Another seed, other problems.")] = 12345,
    output: FolderOption = None,
) -> None:
    """Measure the gate's figures on fresh problems; exit with code 1 if one fails."""
    from cotlab.organisms.curriculum import RECIPES, find_recipe

    folder = _organisms_folder(output)
    recipes = [find_recipe(name)] if name else list(RECIPES.values())
    trained_recipes = [r for r in recipes if (folder / r.name / "config.json").is_file()]
    if not trained_recipes:
        missing_name = recipes[0].name if name else "NAME"
        raise ConfigError(
            f"{folder} holds no weights of {name or 'any organism'}. Run: cotlab organisms train"
            f" {missing_name} --output {folder}"
        )
    from cotlab.organisms.kinds import run_quality_check

    passed_flags = []
    for recipe in trained_recipes:
        checks_by_mode = run_quality_check(folder / recipe.name, recipe, n_items=items, seed=seed)
        passed_flags.append(_print_quality_checks(recipe.name, checks_by_mode))
    if not all(passed_flags):
        raise typer.Exit(1)


def _organisms_folder(output: Path | None) -> Path:
    return output or data_path("organisms")


def _print_quality_checks(name: str, checks_by_mode: Mapping[str, Sequence[QualityCheck]]) -> bool:
    """Print every figure of a gate with its bounds; whether all passed."""
    for mode, checks in checks_by_mode.items():
        for check in checks:
            verdict = "ok  " if check.passed else "FAIL"
            print(
                f"{verdict} {name} {mode:5} {check.figure:33} {check.value:.4f} in"
                f" [{check.low:.2f}, {check.high:.2f}]  n = {check.n}"
            )
    return all(check.passed for checks in checks_by_mode.values() for check in checks)


def validate_command(
    items: Annotated[int, typer.Option(min=1, help="How many fresh items each model gets.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the items.")] = 7,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    scorer: Annotated[
        Optional[list[str]], typer.Option(help="Only this scorer; repeatable.")
    ] = None,
    ship: Annotated[
        bool,
        typer.Option(
            "--ship", help="Also write the report to data/validation.json, which ships with cotlab."
        ),
    ] = False,
) -> None:
    """Measure the organisms of known faithfulness: what each metric detects and what it misses."""
    from cotlab.cli.screen import ProgressBar
    from cotlab.validation.measure import validate_metrics as measure
    from cotlab.validation.report import report_to_json, ship_report

    with ProgressBar() as bar:
        report = measure(
            n_items=items,
            seed=seed,
            scorers=scorer or (),
            on_progress=bar.show_progress,
            announce=bar.announce,
        )
    if ship:
        typer.echo(f"Written to {ship_report(report)}", err=True)
    if json:
        sys.stdout.write(report_to_json(report))
    else:
        _print_validation(report)


def _print_validation(report: dict[str, Any]) -> None:
    from cotlab.cli.screen import open_console, print_lines, print_table
    from cotlab.validation.coded_wording import coded_wording_sentence
    from cotlab.validation.findings import dose_sentence, format_auroc, format_decimals
    from cotlab.validation.models import ORGANISMS
    from cotlab.validation.needs_question import needs_question_sentence

    rows, lines = [], []
    for name, metric_report in report["metrics"].items():
        pair_texts = [
            format_decimals(pair["point"], 2) for pair in metric_report["auroc_pairs"].values()
        ]
        mean_texts = [
            format_decimals(metric_report["organisms"][model]["point"]) for model in ORGANISMS
        ]
        spearman_text = format_decimals(metric_report["spearman"], 2)
        rows.append(
            [name, format_auroc(metric_report["auroc"]), *pair_texts, spearman_text, *mean_texts]
        )
        findings = (
            *metric_report["blind_spots"],
            dose_sentence(metric_report),
            needs_question_sentence(metric_report),
            coded_wording_sentence(metric_report),
        )
        lines += [f"{name}: {finding}" for finding in findings if finding is not None]
    console = open_console(180)
    columns = ("metric", "AUROC [95 %]", "pair a", "pair b", "r100 / r0", "Spearman", *ORGANISMS)
    title = f"Means over {report['items']} items of seed {report['seed']}"
    print_table(console, columns, rows, title=title)
    print_lines(console, lines)
