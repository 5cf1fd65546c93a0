"""``cotlab report`` and ``cotlab runs``: read what is stored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Optional

import typer

from cotlab.core.errors import ConfigError, UnknownName


def report_command(
    run: Annotated[str, typer.Argument(help="The run's id; `cotlab runs` lists them.")],
    format: Annotated[
        str, typer.Option(help="json, md, csv or parquet; the last two hold one row a score.")
    ] = "md",
    output: Annotated[
        Optional[Path], typer.Option(help="File to write (default: standard output).")
    ] = None,
) -> None:
    """Print the report of a stored run."""
    import json

    from cotlab.analysis.markdown import render_markdown
    from cotlab.analysis.report import build_report
    from cotlab.export.tabular import FORMATS, scores_table
    from cotlab.store.database import Store

    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    store = Store()
    if format == "parquet":
        if output is None:
            raise ConfigError("parquet is not text: give --output FILE.parquet")
        build_report(store, run)
        _write_or_fail(lambda: scores_table(store, run).to_parquet(output), output)
        return
    if format == "csv":
        build_report(store, run)
        text = scores_table(store, run).to_csv(index=False)
    else:
        document = build_report(store, run)
        text = (
            render_markdown(document)
            if format == "md"
            else json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        )
    if output is None:
        sys.stdout.write(text)
    else:
        _write_or_fail(lambda: output.write_text(text, "utf-8"), output)


def _write_or_fail(write: Callable[[], object], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise ConfigError(
            f"--output {path}: cannot be written: {error.strerror or error}."
        ) from error


def runs_command(
    status: Annotated[Optional[str], typer.Option(help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option(help="How many, the newest first.")] = 20,
) -> None:
    """List stored runs."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.store import read
    from cotlab.store.database import Store

    table = Table()
    for name in ("run", "status", "suite", "model", "items", "spent"):
        table.add_column(name, overflow="fold")
    for row in read.list_runs(Store(), status).head(limit).itertuples():
        table.add_row(
            *map(
                Text,
                (
                    row.id,
                    row.status,
                    row.suite_name,
                    row.model,
                    f"{row.n_ended} of {row.n_items * len(read.plan_from_json(row.plan).scorers)}",
                    f"${row.spent_micro / 1e6:.4f}",
                ),
            )
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)
