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
    from cotlab.analysis.view import RunView
    from cotlab.export.tabular import FORMATS, write_scores_csv, write_scores_parquet
    from cotlab.store.database import Store

    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    store = Store()
    if format == "parquet":
        if output is None:
            raise ConfigError("parquet is not text: give --output FILE.parquet")
        run_id = RunView.read(store, run).id
        _write_or_fail(lambda: write_scores_parquet(store, run_id, output), output)
        return
    if format == "csv":
        run_id = RunView.read(store, run).id
        if output is None:
            write_scores_csv(store, run_id, sys.stdout)
            return

        def write() -> None:
            with output.open("w", encoding="utf-8", newline="") as file:
                write_scores_csv(store, run_id, file)

        _write_or_fail(write, output)
        return
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
