"""``cotlab compare``: hold runs against a base, item by item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from cotlab.analysis.compare import Comparison, ComparisonSet
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
    json: JsonOption = False,
) -> None:
    """Compare stored runs on the items that they share. Nothing is asked."""
    from cotlab.analysis.compare import compare_by_category, compare_runs, comparison_json
    from cotlab.store.database import Store

    store = Store()
    comparison_set = compare_runs(
        store,
        base,
        other,
        scorers=scorer or (),
        metrics=metric or (),
        threshold=threshold,
        seed=seed,
    )
    if categories:
        comparison_set = compare_by_category(store, comparison_set, seed=seed)
    if json:
        print_json(comparison_json(comparison_set))
    else:
        _print_comparisons(comparison_set)


def _print_comparisons(comparison_set: ComparisonSet) -> None:
    from cotlab.analysis.compare import CORRECTION_NOTE
    from cotlab.analysis.paired import facet_label
    from cotlab.cli.screen import open_console, print_lines, print_table

    console = open_console(200)
    for comparison in comparison_set.comparisons:
        print_table(
            console,
            _COLUMNS,
            map(_row_cells, comparison.rows),
            title=(
                f"{comparison.other} against {comparison.base}: {comparison.n_shared} shared items"
            ),
            right_columns=_COLUMNS[2:10],
        )
        print_lines(console, _comparison_notes(comparison))
    for row in comparison_set.directions:
        label = f"{row.metric} {facet_label(row.facet)}".strip()
        print_lines(console, [f"Direction over {len(row.differences)} runs: {label}: {row.text}"])
    print_lines(
        console, [f"Differences are other − base over matched items. BH p: {CORRECTION_NOTE}."]
    )


def _comparison_notes(comparison: Comparison) -> Iterator[str]:
    """Yield what the two runs do not share, and the settings in which they differ."""
    from cotlab.analysis.tables.comparison import version_warning

    if warning := version_warning(comparison):
        yield f"Warning: {warning}"
    base_run, other_run = comparison.base, comparison.other
    if comparison.n_only_base or comparison.n_only_other:
        yield (
            f"Not shared: {comparison.n_only_base} items only in {base_run},"
            f" {comparison.n_only_other} only in {other_run}."
        )
    if comparison.n_changed_questions:
        yield (
            f"{comparison.n_changed_questions} ids stand for another question in each run and are"
            " left out."
        )
    for name, metrics in (
        (base_run, comparison.metrics_only_base),
        (other_run, comparison.metrics_only_other),
    ):
        if metrics:
            yield f"Measured in {name} only, or there with other settings: {', '.join(metrics)}."
    for change in comparison.changes[:_MAX_CHANGES]:
        yield f"{change.setting}: {change.base} → {change.other}"


_COLUMNS = (
    *("metric", "facet", "n", "base", "other", "difference [95 %]", "− / +"),
    *("effect", "p", "BH p", "test", "missing"),
)


def _row_cells(row: PairedRow) -> Sequence[str]:
    from cotlab.analysis.paired import facet_label, missing_items_text
    from cotlab.analysis.readable import METRIC_LABELS, readable_value
    from cotlab.figures.style import format_number, interval_text

    n_text = str(row.n) if row.n == row.prompts else f"{row.n} ({row.prompts} prompts)"
    flips_text, facet = "", facet_label(row.facet)
    if row.discordant is not None:
        flips_text = f"{row.discordant.first_only} / {row.discordant.second_only}"
    if row.category is not None:
        facet = f"{row.category or '(no category)'}; {facet}"
    mean_texts = [format_number(readable_value(row.metric, x)) for x in (row.base, row.other)]
    difference_text = interval_text(row.difference, row.lo, row.hi)
    test_texts = map(format_number, (row.effect, row.p, row.adjusted))
    test_name = row.test.split(";")[0]
    return (
        METRIC_LABELS.get(row.metric, row.metric),
        facet,
        n_text,
        *mean_texts,
        difference_text,
        flips_text,
        *test_texts,
        test_name,
        missing_items_text(row),
    )
