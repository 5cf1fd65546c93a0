"""``cotlab unfaithfulness``: published scores and counts of unfaithful responses, kept in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Look at unfaithful responses.")


@app.callback()
def _group() -> None:
    """Look at unfaithful responses."""


@app.command("import")
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
    """Keep published scores as runs, one for each model; what is in the store already is not doubled.

    JSON files are read together as one study of fine-tuning. A CSV table holds counts of classified
    responses by hint, or people's ratings of steps; of several files those that hold neither are
    named and left out.
    """
    from cotlab.run.imports.study import store_study
    from cotlab.run.imports.tables import store_table
    from cotlab.store.database import Store
    from cotlab.suites.importers.study import read_study
    from cotlab.suites.importers.tables import UnknownTable, read_table

    tables, left_out = [], []
    for path in (path for path in files if path.suffix.lower() == ".csv"):
        try:
            tables.append(read_table(path))
        except UnknownTable as error:
            if len(files) == 1:
                raise
            left_out.append(error)
    study_paths = [path for path in files if path.suffix.lower() != ".csv"]
    study = read_study(study_paths) if study_paths else None
    store = Store()
    stored_runs = [
        *(store_study(store, study) if study else ()),
        *(run for table in tables for run in store_table(store, table)),
    ]
    for run in stored_runs:
        status = "Stored" if run.new else "In the store already"
        print(f"{status}: run {run.run_id}, {run.model} on {run.suite}.")
    for unknown in left_out:
        print(f"Left out: {unknown}")
    if left_out and not stored_runs:
        raise typer.Exit(2)
