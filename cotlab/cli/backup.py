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
            help="A backup's folder or its name under the store's backups (default: list them, or"
            " finish a restore that was interrupted)."
        ),
    ] = None,
) -> None:
    """Check a backup and put it in the store's place; what the store held is kept as a backup."""
    from cotlab.store.backup import find_backup, finish_restore, list_backups, restore
    from cotlab.store.database import Store

    store = Store()
    if finish_restore(store):
        print("A restore that was interrupted is finished now.")
    elif backup is None:
        for name in list_backups(store):
            print(name)
    if backup is None:
        return
    restored = restore(store, find_backup(store, backup))
    print(f"Restored {store.folder}: {totals_text(restored.totals)}.")
    if restored.replaced is not None:
        print(f"What it held before: {restored.replaced}")


def check_store(*, is_salvaged: bool) -> None:
    """Print what of the store cannot be read, and keep the rest where that is asked for."""
    from cotlab.store.database import Store
    from cotlab.store.salvage import find_damage, salvage

    store = Store()
    damages = find_damage(store)
    for damage in damages:
        print(f"damaged  {damage}")
    if not damages:
        print(f"ok       {store.folder}: every row can be read")
    elif not is_salvaged:
        print(
            "Put a backup in its place: cotlab restore BACKUP. Or keep what can be read: cotlab"
            " doctor --store --salvage"
        )
        raise typer.Exit(3)
    else:
        salvaged = salvage(store)
        for damage in salvaged.damages:
            print(f"lost     {damage}")
        for run in salvaged.runs:
            print(f"Items of {run} lost scores; score them again: cotlab run --resume {run}")
        print(f"The rest is in {store.folder}, the damaged files are in {salvaged.replaced}")


def totals_text(totals: Mapping[str, int]) -> str:
    """Return what a store holds, as in ``2 runs, 300 scores``."""
    return ", ".join(f"{total:,} {name}" for name, total in totals.items()) or "nothing"
