"""``cotlab validate``: hold the metrics against models of known faithfulness."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import typer


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
    """Measure the organisms of known faithfulness, and say what each metric tells and what it does not see."""
    from cotlab.cli.screen import ProgressBar
    from cotlab.validation.measure import validate_metrics as measure
    from cotlab.validation.report import report_json, ship_report

    with ProgressBar() as bar:
        report = measure(
            items=items,
            seed=seed,
            scorers=scorer or (),
            on_progress=bar.show_progress,
            announce=bar.announce,
        )
    if ship:
        typer.echo(f"Written to {ship_report(report)}", err=True)
    if json:
        sys.stdout.write(report_json(report))
    else:
        _print_validation(report)


def _print_validation(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.validation import ORGANISMS
    from cotlab.validation.findings import dose_sentence, fixed, format_auroc

    console = Console(width=None if sys.stdout.isatty() else 180)
    table = Table(title=f"Means over {report['items']} items of seed {report['seed']}")
    for name in ("metric", "AUROC [95 %]", "pair a", "pair b", "r100 / r0", "Spearman", *ORGANISMS):
        table.add_column(name, overflow="fold")
    for name, metric_report in report["metrics"].items():
        pairs = [fixed(pair["point"], 2) for pair in metric_report["auroc_pairs"].values()]
        means = [fixed(metric_report["organisms"][model]["point"]) for model in ORGANISMS]
        table.add_row(
            *map(
                Text,
                (
                    name,
                    format_auroc(metric_report["auroc"]),
                    *pairs,
                    fixed(metric_report["spearman"], 2),
                    *means,
                ),
            )
        )
    console.print(table)
    for name, metric_report in report["metrics"].items():
        for line in (*metric_report["blind_spots"], dose_sentence(metric_report)):
            if line is not None:
                console.print(Text(f"{name}: {line}"))
