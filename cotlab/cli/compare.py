"""``cotlab compare``: hold runs against a base, item by item."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from cotlab.analysis.compare import Compared, Comparison
    from cotlab.analysis.paired import PairedRow

_MAX_CHANGES = 20


def compare_command(
    base: Annotated[
        str,
        typer.Argument(help="The run that the others are held against; `cotlab runs` lists them."),
    ],
    other: Annotated[list[str], typer.Argument(help="One run or several, on the same items.")],
    scorer: Annotated[
        Optional[list[str]], typer.Option(help="Only this scorer; repeatable.")
    ] = None,
    metric: Annotated[
        Optional[list[str]], typer.Option(help="Only this metric; repeatable.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Unfaithful from this score on.")
    ] = 0.5,
    seed: Annotated[
        Optional[int],
        typer.Option(min=0, help="Seed of the resampling (default: that of the base's plan)."),
    ] = None,
    categories: Annotated[
        bool, typer.Option("--categories", help="A row for each category instead of one over all.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare stored runs on the items that they share. Nothing is asked."""
    from cotlab.analysis.compare import compare_by_category, compare_runs, comparison_json
    from cotlab.core.keys import canonical_json
    from cotlab.store.database import Store

    store = Store()
    compared = compare_runs(
        store,
        base,
        other,
        scorers=scorer or (),
        metrics=metric or (),
        threshold=threshold,
        seed=seed,
    )
    if categories:
        compared = compare_by_category(store, compared, seed=seed)
    if json:
        sys.stdout.write(canonical_json(comparison_json(compared)) + "\n")
    else:
        _print_compared(compared)


def _print_compared(compared: Compared) -> None:
    from rich.console import Console
    from rich.text import Text

    from cotlab.analysis.compare import FAMILY
    from cotlab.analysis.paired import facet_label

    console = Console(width=None if sys.stdout.isatty() else 200)
    for comparison in compared.comparisons:
        _print_comparison(console, comparison)
    for row in compared.directions:
        label = f"{row.metric} {facet_label(row.facet)}".strip()
        console.print(Text(f"Direction over {len(row.differences)} runs: {label}: {row.text}"))
    console.print(Text(f"Differences are other − base over matched items. BH p: {FAMILY}."))


def _print_comparison(console: object, comparison: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    table = Table(
        title=Text(
            f"{comparison.other} against {comparison.base}: {comparison.shared} shared items"
        ),
        title_justify="left",
    )
    for name, right in _COLUMNS.items():
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in comparison.rows:
        table.add_row(*map(Text, _cells(row)))
    console.print(table)
    lines = []
    if comparison.only_base or comparison.only_other:
        lines.append(
            f"Not shared: {comparison.only_base} items only in {comparison.base},"
            f" {comparison.only_other} only in {comparison.other}."
        )
    if comparison.unlike:
        lines.append(
            f"{comparison.unlike} ids stand for another question in each run and are left out."
        )
    for name, metrics in (
        (comparison.base, comparison.alone_base),
        (comparison.other, comparison.alone_other),
    ):
        if metrics:
            lines.append(
                f"Measured in {name} only, or there with other settings: {', '.join(metrics)}."
            )
    lines += [
        f"{change.setting}: {change.base} → {change.other}"
        for change in comparison.changes[:_MAX_CHANGES]
    ]
    for line in lines:
        console.print(Text(line))


_COLUMNS = {
    "metric": False,
    "facet": False,
    "n": True,
    "base": True,
    "other": True,
    "difference [95 %]": True,
    "− / +": True,
    "effect": True,
    "p": True,
    "BH p": True,
    "test": False,
    "missing": False,
}


def _cells(row: PairedRow) -> Sequence[str]:
    from cotlab.analysis.paired import facet_label, missing_text
    from cotlab.figures.style import format_number, interval_text

    n = str(row.n) if row.n == row.prompts else f"{row.n} ({row.prompts} prompts)"
    flips = (
        ""
        if row.discordant is None
        else f"{row.discordant.first_only} / {row.discordant.second_only}"
    )
    named = (
        facet_label(row.facet)
        if row.category is None
        else f"{row.category or '(no category)'}; {facet_label(row.facet)}"
    )
    difference = interval_text(row.difference, row.lo, row.hi)
    return (
        row.metric,
        named,
        n,
        format_number(row.base),
        format_number(row.other),
        difference,
        flips,
        format_number(row.effect),
        format_number(row.p),
        format_number(row.adjusted),
        row.test.split(";")[0],
        missing_text(row),
    )
