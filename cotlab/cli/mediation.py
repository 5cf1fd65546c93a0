"""``cotlab mediation``: published CMI scores, recomputed from their own drops and kept in the store."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.core.errors import ConfigError

if TYPE_CHECKING:
    from cotlab.metrics.mediation.published import PublishedFile, PublishedSummary
    from cotlab.run.imports.mediation import ImportedRun

app = typer.Typer(no_args_is_help=True, help="Look at mediation scores (CMI).")


@app.callback()
def _group() -> None:
    """Look at mediation scores (CMI)."""


@app.command("import")
def import_mediation_scores(
    files: Annotated[list[Path], typer.Argument(help="JSON files of published CMI rows.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    output: Annotated[Optional[Path], typer.Option(help="CSV of all rows to write.")] = None,
    threshold: Annotated[
        float, typer.Option(help="Total drop in nats below which a CMI is undefined.")
    ] = 0.01,
    store: Annotated[
        bool,
        typer.Option(help="Keep each file as a run; rows that are there already are not doubled."),
    ] = True,
    model: Annotated[
        Optional[str], typer.Option(help="Whose rows they are; else what the file's name says.")
    ] = None,
) -> None:
    """Recompute published CMI scores from their own drops, say what does not hold, and keep them as runs."""
    from cotlab.metrics.mediation.published import (
        published_cmi,
        published_summary,
        published_warnings,
    )
    from cotlab.suites.importers.tables import read_cmi
    from cotlab.suites.shipped import printable

    published_files = [
        published_cmi(printable(str(path)), read_cmi(path), least_drop=threshold) for path in files
    ]
    summaries, warnings = (
        [published_summary(file) for file in published_files],
        published_warnings(published_files),
    )
    if output is not None:
        if output.exists() and any(path.exists() and output.samefile(path) for path in files):
            raise ConfigError(f"{output}: is one of the files to import; name another --output.")
        _write(published_files, output)
    runs, doubled = (
        _store_files(published_files, threshold, model)
        if store
        else ([None] * len(published_files), [])
    )
    warnings = (*warnings, *doubled)
    if as_json:
        records = [
            {**asdict(s), "run": stored_run.run_id if stored_run else None}
            for s, stored_run in zip(summaries, runs, strict=True)
        ]
        print(json.dumps({"files": records, "warnings": warnings}, indent=2, allow_nan=False))
        return
    for summary in summaries:
        _print_summary(summary)
    for line in warnings:
        print(f"warning: {line}")
    for stored_run in dict.fromkeys(stored_run for stored_run in runs if stored_run):
        status = "Stored" if stored_run.new else "In the store already"
        print(
            f"{status}: run {stored_run.run_id}, {stored_run.model} on {stored_run.suite}. Page:"
            " Mediation."
        )


def _store_files(
    files: list[PublishedFile], threshold: float, model: str | None
) -> tuple[list[ImportedRun | None], list[str]]:
    """Store each file once; its run, and what to tell of rows that an earlier import already holds under another name."""
    from cotlab.metrics.mediation.published import content_digest
    from cotlab.run.imports.mediation import store_published
    from cotlab.store.database import Store

    store, runs, warnings = Store(), [], []
    run_by_digest: dict[str, ImportedRun] = {}
    for file in files:
        rows_digest = content_digest(file)
        if rows_digest not in run_by_digest:
            run_by_digest[rows_digest] = stored_run = store_published(
                store, file, model=model, least_drop=threshold
            )
            if not stored_run.new and stored_run.suite != Path(file.name).stem:
                warnings.append(
                    f"Duplicate file: {file.name} holds the rows of {stored_run.suite}, run"
                    f" {stored_run.run_id}; not stored again."
                )
        runs.append(run_by_digest[rows_digest])
    return list(runs), warnings


def _print_summary(summary: PublishedSummary) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    mean = summary.mean
    table = Table(title=Text(summary.file), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    bounds = (
        f"no interval: {mean.reason}"
        if mean.lo is None
        else f"[{mean.lo:.3f}, {mean.hi:.3f}], n = {mean.n} items"
    )
    share = (
        f"{summary.within / summary.compared:.1%}, {summary.within} of {summary.compared}"
        if summary.compared
        else "n/a"
    )
    for name, value in (
        ("rows", str(summary.rows)),
        ("items", str(summary.items)),
        ("layers", str(summary.layers)),
        ("defined", str(summary.defined)),
        ("undefined: zero total drop", str(summary.zero)),
        ("undefined: below the threshold", str(summary.small)),
        ("mean CMI of defined rows", "n/a" if mean.point is None else f"{mean.point:.3f}"),
        ("95% interval over items", bounds),
        ("published within .02, of rows with a drop", share),
    ):
        table.add_row(name, Text(value))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _write(files: list[PublishedFile], output: Path) -> None:
    import pandas as pd

    from cotlab.export.tabular import disarmed

    rows = [
        {
            "file": f.name,
            **asdict(row),
            "layers": " ".join(map(str, row.layers)),
            "reason": row.reason or "",
        }
        for f in files
        for row in f.rows
    ]
    try:
        disarmed(pd.DataFrame(rows)).to_csv(output, index=False)
    except (OSError, UnicodeEncodeError) as exc:
        raise ConfigError(f"{output}: cannot be written: {exc}") from exc
