"""``cotlab runs``: list stored runs, and name, note, archive and delete them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.cli.options import acting_user

if TYPE_CHECKING:
    from cotlab.store.database import Store

app = Commands(
    invoke_without_command=True, help="List stored runs; name, note, archive and delete them."
)
RunArgument = Annotated[str, typer.Argument(help="The run's id; `cotlab runs` lists them.")]
ByOption = Annotated[
    Optional[str], typer.Option(help="Who changes it, for the audit (default: your user name).")
]


@app.callback()
def runs_command(
    context: typer.Context,
    status: Annotated[Optional[str], typer.Option(help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option(help="How many, the newest first.")] = 20,
    archived: Annotated[bool, typer.Option("--archived", help="List archived runs too.")] = False,
) -> None:
    """List stored runs; name, note, archive and delete them."""
    if context.invoked_subcommand is not None:
        return
    from cotlab.analysis.verdict.measures import HEADLINE_METRICS
    from cotlab.cli.screen import open_console, print_table
    from cotlab.store import read
    from cotlab.store.database import Store
    from cotlab.store.item_scores import list_unmeasured_runs
    from cotlab.store.run_status import with_visible_status

    store = Store()
    unmeasured = list_unmeasured_runs(store, HEADLINE_METRICS)
    table = with_visible_status(store, read.list_runs(store), unmeasured)
    if status is not None:
        table = table[table["status"] == status]
    is_listed = ~table["is_archived"].astype(bool) | archived
    rows, columns = [], ("run", "status", "suite", "model", "items × scorers", "spent")
    for run in table[is_listed].head(limit).itertuples():
        n_items = run.n_items * len(read.plan_from_json(run.plan).scorers)
        progress_text, spent_text = f"{run.n_ended} of {n_items}", f"${run.spent_micro / 1e6:.4f}"
        row = (run.id, run.status, run.suite_name, run.model, progress_text, spent_text)
        rows.append((run.name, *row))
    if any(row[0] for row in rows):
        print_table(open_console(140), ("name", *columns), rows)
    else:
        print_table(open_console(140), columns, [row[1:] for row in rows])
    if n_hidden := int((~is_listed).sum()):
        print(f"{n_hidden} archived; --archived lists them too.")


@app.command("name")
def name_run(
    run: RunArgument,
    name: Annotated[str, typer.Argument(help='At most 80 characters; "" removes the name.')],
    by: ByOption = None,
) -> None:
    """Give a run a name, which stands wherever the run is listed; its id stays."""
    _edit(run, by, name=name)
    print(f"Run {run}: {'named' if name.strip() else 'has no name any more'}.")


@app.command("note")
def note_run(
    run: RunArgument,
    note: Annotated[
        str, typer.Argument(help='Plain text of at most 2,000 characters; "" removes the note.')
    ],
    by: ByOption = None,
) -> None:
    """Give a run a note, which its page and its report show."""
    _edit(run, by, note=note)
    print(f"Run {run}: {'noted' if note.strip() else 'has no note any more'}.")


@app.command("archive")
def archive_run(run: RunArgument, by: ByOption = None) -> None:
    """Leave a run out of lists and pickers; nothing of it is lost."""
    _edit(run, by, is_archived=True)
    print(f"Run {run}: archived. Back: cotlab runs unarchive {run}")


@app.command("unarchive")
def unarchive_run(run: RunArgument, by: ByOption = None) -> None:
    """Put an archived run back into lists and pickers."""
    _edit(run, by, is_archived=False)
    print(f"Run {run}: not archived any more.")


@app.command("delete")
def delete_stored_run(
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without a question.")] = False,
    by: ByOption = None,
) -> None:
    """Delete a run with its scores, after a question that names what is lost."""
    from cotlab.core.text_safety import printable_line
    from cotlab.store import read, run_names

    store = _open_store()
    row = read.get_run(store, run)
    content = run_names.count_run_content(store, run)
    label = f"{printable_line(row['name'])}, {run}" if row["name"] else run
    print(f"Run {label}.", file=sys.stderr)
    print(f"Lost: {content.lost_text}.", file=sys.stderr)
    print(f"Not lost: {content.preserved_text}.", file=sys.stderr)
    if not yes:
        typer.confirm("Delete this run?", abort=True, err=True)
    run_names.delete_run(store, run, acting_user(by))
    print(f"Run {run}: deleted.")


def _edit(run: str, by: str | None, **changes: Any) -> None:
    from cotlab.store import read
    from cotlab.store.run_names import edit_run

    store = _open_store()
    read.get_run(store, run)
    with store.writing() as connection:
        edit_run(connection, run, acting_user(by), **changes)


def _open_store() -> Store:
    from cotlab.store.database import Store

    return Store()
