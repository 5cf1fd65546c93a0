"""``cotlab mediation``, ``cotlab unfaithfulness``: keep published scores in the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.cli.options import explain_write_errors
from cotlab.core.errors import ConfigError

if TYPE_CHECKING:
    from cotlab.metrics.mediation.published import PublishedFile, PublishedSummary
    from cotlab.run.imports.mediation import ImportedRun


mediation_app = Commands(no_args_is_help=True, help="Look at mediation scores (CMI).")


@mediation_app.callback()
def _mediation_group() -> None:
    """Look at mediation scores (CMI)."""


@mediation_app.command("import")
def import_mediation_scores(
    files: Annotated[list[Path], typer.Argument(help="JSON or JSON Lines files of published CMI.")],
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
        Optional[str],
        typer.Option(help="Whose rows they are; else what the file's name, or its folder, says."),
    ] = None,
) -> None:
    """Recompute published CMI scores from their own drops, report errors, store them as runs."""
    from cotlab.metrics.mediation.published import published_summary
    from cotlab.metrics.mediation.published_checks import first_warnings_by_kind
    from cotlab.run.imports.published import (
        import_status_text,
        read_mediation_files,
        store_mediation_files,
    )
    from cotlab.store.database import Store

    published_files, checks, warnings = read_mediation_files(
        {str(path): path for path in files}, least_drop=threshold
    )
    summaries = [published_summary(file) for file in published_files]
    if output is not None:
        if output.exists() and any(path.exists() and output.samefile(path) for path in files):
            raise ConfigError(f"{output}: is one of the files to import; name another --output.")
        _write_rows_csv(published_files, output)
    runs: list[ImportedRun | None] = [None] * len(published_files)
    if store:
        stored_runs, duplicate_warnings = store_mediation_files(
            Store(), published_files, model=model, least_drop=threshold
        )
        runs, warnings = [*stored_runs], (*warnings, *duplicate_warnings)
    if as_json:
        records = [
            {**asdict(summary), "run": run.run_id if run else None}
            for summary, run in zip(summaries, runs, strict=True)
        ]
        document = {"files": records, "warnings": warnings, "summaries": checks}
        print(json.dumps(document, indent=2, allow_nan=False))
        return
    for summary in summaries:
        _print_summary(summary)
    for check in checks:
        print(check)
    for warning in first_warnings_by_kind(warnings):
        print(f"warning: {warning}")
    for run in dict.fromkeys(run for run in runs if run):
        print(f"{import_status_text(run)} Page: Mediation.")


def _print_summary(summary: PublishedSummary) -> None:
    from rich.table import Table
    from rich.text import Text

    from cotlab.cli.screen import open_console
    from cotlab.run.imports.published import summary_texts

    table = Table(title=Text(summary.file), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, text in summary_texts(summary).items():
        table.add_row(name, Text(text))
    open_console(140).print(table)


def _write_rows_csv(files: Sequence[PublishedFile], output: Path) -> None:
    import pandas as pd

    from cotlab.export.tabular import escape_formulas

    rows = [
        {"file": file.name, **asdict(row), "layers": " ".join(map(str, row.layers))}
        | {"reason": row.reason or ""}
        for file in files
        for row in file.rows
    ]
    with explain_write_errors(str(output)):
        escape_formulas(pd.DataFrame(rows)).to_csv(output, index=False)


ablation_app = Commands(no_args_is_help=True, help="Look at ablation scores (CCS).")


@ablation_app.callback()
def _ablation_group() -> None:
    """Look at ablation scores (CCS)."""


@ablation_app.command("import")
def import_ablation_scores(
    files: Annotated[list[Path], typer.Argument(help="report.json of FaithCheck or cotlab.")],
) -> None:
    """Keep the step scores of reports as runs, without their texts; nothing is stored twice."""
    from cotlab.run.imports.published import import_status_text, store_report_files
    from cotlab.store.database import Store

    for run in store_report_files(Store(), files):
        print(import_status_text(run))


unfaithfulness_app = Commands(no_args_is_help=True, help="Look at unfaithful responses.")


@unfaithfulness_app.callback()
def _unfaithfulness_group() -> None:
    """Look at unfaithful responses."""


@unfaithfulness_app.command("import")
def import_unfaithfulness_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            help=(
                "All JSON files of one study (comparison, interpretability, analysis), or CSV"
                " tables."
            )
        ),
    ],
) -> None:
    """Keep published scores as runs, one for each model; nothing is stored twice.

    JSON files are read together as one study of fine-tuning. A CSV table holds counts of classified
    responses by hint, or people's ratings of steps; of several files those that hold neither are
    named and left out.
    """
    from cotlab.run.imports.published import import_status_text, store_unfaithfulness_files
    from cotlab.store.database import Store

    stored_runs, unknown_tables = store_unfaithfulness_files(Store(), files)
    for run in stored_runs:
        print(import_status_text(run))
    for unknown_table in unknown_tables:
        print(f"Left out: {unknown_table}")
    if unknown_tables and not stored_runs:
        raise typer.Exit(2)
