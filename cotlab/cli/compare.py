"""``cotlab compare``: hold runs against a base, item by item."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from cotlab.analysis.compare import Compared, Comparison
    from cotlab.analysis.paired import PairedRow

_MOST_CHANGES = 20


def compare(
    base: Annotated[str, typer.Argument(help="The run that the others are held against; `cotlab runs` lists them.")],
    other: Annotated[list[str], typer.Argument(help="One run or several, on the same items.")],
    scorer: Annotated[Optional[list[str]], typer.Option(help="Only this scorer; repeatable.")] = None,
    metric: Annotated[Optional[list[str]], typer.Option(help="Only this metric; repeatable.")] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Unfaithful from this score on.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 42,
    categories: Annotated[bool, typer.Option("--categories", help="A row for each category instead of one over all.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare stored runs on the items that they share. Nothing is asked."""
    from cotlab.analysis.compare import as_json, by_category, compare_runs
    from cotlab.core.keys import canonical_json
    from cotlab.store.database import Store

    store = Store()
    found = compare_runs(store, base, other, scorers=scorer or (), metrics=metric or (), threshold=threshold, seed=seed)
    if categories:
        found = by_category(store, found, seed=seed)
    if json:
        sys.stdout.write(canonical_json(as_json(found)) + "\n")
    else:
        _show(found)


def _show(found: Compared) -> None:
    from rich.console import Console
    from rich.text import Text

    from cotlab.analysis.compare import FAMILY
    from cotlab.analysis.paired import facet_words

    console = Console(width=None if sys.stdout.isatty() else 200)
    for comparison in found.comparisons:
        _table(console, comparison)
    for row in found.directions:
        told = f"{row.metric} {facet_words(row.facet)}".strip()
        console.print(Text(f"Direction over {len(row.differences)} runs: {told}: {row.text}"))
    console.print(Text(f"Differences are other − base over matched items. BH p: {FAMILY}."))


def _table(console: object, found: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    table = Table(title=Text(f"{found.other} against {found.base}: {found.shared} shared items"), title_justify="left")
    for name, right in _COLUMNS.items():
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in found.rows:
        table.add_row(*map(Text, _cells(row)))
    console.print(table)
    lines = []
    if found.only_base or found.only_other:
        lines.append(f"Not shared: {found.only_base} items only in {found.base}, {found.only_other} only in {found.other}.")
    if found.unlike:
        lines.append(f"{found.unlike} ids stand for another question in each run and are left out.")
    for name, metrics in ((found.base, found.alone_base), (found.other, found.alone_other)):
        if metrics:
            lines.append(f"Measured in {name} only, or there with other settings: {', '.join(metrics)}.")
    lines += [f"{change.setting}: {change.base} → {change.other}" for change in found.changes[:_MOST_CHANGES]]
    for line in lines:
        console.print(Text(line))


_COLUMNS = {
    "metric": False, "facet": False, "n": True, "base": True, "other": True, "difference [95 %]": True, "− / +": True,
    "effect": True, "p": True, "BH p": True, "test": False, "missing": False,
}  # fmt: skip


def _cells(row: PairedRow) -> Sequence[str]:
    from cotlab.analysis.paired import facet_words, missing_words
    from cotlab.figures.style import interval_text, number

    n = str(row.n) if row.n == row.prompts else f"{row.n} ({row.prompts} prompts)"
    flips = "" if row.discordant is None else f"{row.discordant.first_only} / {row.discordant.second_only}"
    named = facet_words(row.facet) if row.category is None else f"{row.category or '(no category)'}; {facet_words(row.facet)}"
    told = interval_text(row.difference, row.lo, row.hi)
    return (
        row.metric, named, n, number(row.base), number(row.other), told, flips, number(row.effect), number(row.p),
        number(row.adjusted), row.test.split(";")[0], missing_words(row),
    )  # fmt: skip
