"""``cotlab backup``, ``cotlab restore`` and the check of the store in ``cotlab doctor``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Optional

import typer


def backup_command(
    output: Annotated[
        Optional[Path],
        typer.Option(help="New folder for the backup (default: one under the store's backups)."),
    ] = None,
) -> None:
    """Copy the store with its suites and reports; runs may go on meanwhile."""
    from cotlab.store.backup import back_up
    from cotlab.store.database import Store

    backup = back_up(Store(), output)
    print(f"Copied to {backup.folder}: {totals_text(backup.totals)}.")
    print(f"Put it back with: cotlab restore {backup.folder if output else backup.folder.name}")


def restore_command(
    backup: Annotated[
        Optional[str],
        typer.Argument(
            help="A backup's folder or its name under the store's backups (default: list them)."
        ),
    ] = None,
) -> None:
    """Check a backup and put it in the store's place; what the store held is kept as a backup."""
    from cotlab.store.backup import find_backup, list_backups, restore
    from cotlab.store.database import Store

    store = Store()
    if backup is None:
        print("\n".join(list_backups(store)))
        return
    restored = restore(store, find_backup(store, backup))
    print(f"Restored {store.folder}: {totals_text(restored.totals)}.")
    if restored.replaced is not None:
        print(f"What it held before: {restored.replaced}")


def check_store() -> None:
    """Print what of the store is damaged or missing."""
    from cotlab.store.check import find_faults
    from cotlab.store.database import Store

    store = Store()
    faults = find_faults(store)
    for fault in faults:
        print(f"damaged  {fault}")
    if faults:
        print(
            "Damaged rows of cotlab.duckdb are made again by: cotlab doctor --rebuild. For those of"
            " log.sqlite, put a backup in its place: cotlab restore BACKUP"
        )
        raise typer.Exit(3)
    print(f"ok       {store.folder}: every row is as it was written")


def rebuild_store() -> None:
    """Make the DuckDB file again, and print what the store holds then."""
    from cotlab.store.backup import count_rows
    from cotlab.store.database import Store

    store = Store()
    is_recovered = store.rebuild()
    print(f"Made {store.path} again: {totals_text(count_rows(store))}.")
    if is_recovered:
        print(
            "log.sqlite was lost: its runs, labels and scores are those of cotlab.duckdb, its"
            " replies are gone. With a backup, restore that: cotlab restore BACKUP"
        )
        raise typer.Exit(3)


def rescore_store() -> None:
    """Score runs of older scorers again, and print what became of each."""
    from cotlab.run.rescore import rescore_runs
    from cotlab.store.database import Store

    reasons = []
    for rescored in rescore_runs(Store()):
        outcome = "scored again" if rescored.reason is None else f"left: {rescored.reason}"
        print(f"{rescored.run}  {rescored.changes}  {outcome}")
        reasons.append(rescored.reason)
    print(f"{reasons.count(None):,} of {len(reasons):,} runs of older scorers were scored again.")
    if reasons.count(None) < len(reasons):
        raise typer.Exit(3)


def use_old_store() -> None:
    """Put the files of before the migration back."""
    from cotlab.store.database import Store
    from cotlab.store.older import use_old_files

    store = Store()
    new_folder = use_old_files(store.folder)
    print(
        f"{store.folder} holds the files of before the migration; those of after it are in"
        f" {new_folder}. Open them with the version of cotlab that wrote them: this one brings them"
        " forward again."
    )


def totals_text(totals: Mapping[str, int]) -> str:
    """Return what a store holds, as in ``2 runs, 300 scores``."""
    return ", ".join(f"{total:,} {name}" for name, total in totals.items()) or "nothing"
