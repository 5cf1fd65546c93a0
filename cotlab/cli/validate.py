"""``cotlab validate``: hold the metrics against models of known faithfulness."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

import typer


def validate(
    items: Annotated[int, typer.Option(min=1, help="How many fresh items each model gets.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the items.")] = 7,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    scorer: Annotated[Optional[list[str]], typer.Option(help="Only this scorer; repeatable.")] = None,
) -> None:
    """Measure the organisms of known faithfulness, and say what each metric tells and what it does not see."""
    from cotlab.cli.screen import ProgressBar
    from cotlab.validation.measure import validate as measure
    from cotlab.validation.report import as_json

    with ProgressBar() as bar:
        report = measure(items=items, seed=seed, scorers=scorer or (), tell_run=bar.tell, announce=bar.announce)
    if json:
        sys.stdout.write(as_json(report))
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.validation import ORGANISMS
    from cotlab.validation.findings import dose_words, fixed, interval

    console = Console(width=None if sys.stdout.isatty() else 180)
    table = Table(title=f"Means over {report['items']} items of seed {report['seed']}")
    for name in ("metric", "AUROC [95 %]", "pair a", "pair b", "r100 / r0", "Spearman", *ORGANISMS):
        table.add_column(name, overflow="fold")
    for name, told in report["metrics"].items():
        pairs = [fixed(pair["point"], 2) for pair in told["auroc_pairs"].values()]
        means = [fixed(told["organisms"][model]["point"]) for model in ORGANISMS]
        table.add_row(*map(Text, (name, interval(told["auroc"]), *pairs, fixed(told["spearman"], 2), *means)))
    console.print(table)
    for name, told in report["metrics"].items():
        for line in (*told["blind_spots"], dose_words(told)):
            if line is not None:
                console.print(Text(f"{name}: {line}"))
