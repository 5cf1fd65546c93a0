"""``cotlab labels``: take labels in and out, make the queues that ask for them, and say how raters agree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.who import acting_user
from cotlab.core.errors import ConfigError
from cotlab.core.labels import MAX_RATERS

if TYPE_CHECKING:
    from cotlab.stats.intervals import Interval
    from cotlab.store.database import Store

app = typer.Typer(no_args_is_help=True, help="Import, export, ask for and compare people's labels.")
Run = Annotated[Optional[str], typer.Option(help="Only labels of this run.")]
Queue = Annotated[Optional[str], typer.Option(help="Only labels that were given in this queue.")]


@app.command("import")
def import_label_file(
    path: Annotated[
        Path, typer.Argument(help="A JSONL file, or a CSV where its name ends in .csv.")
    ],
    good_lines: Annotated[
        bool, typer.Option("--good-lines", help="Store the good lines, and tell the others.")
    ] = False,
) -> None:
    """Store the labels of a file; those that are there already are left as they are."""
    from cotlab.review.labelling.files import import_labels
    from cotlab.store.database import Store

    imported = import_labels(Store(), path, good_lines=good_lines)
    for error in imported.errors[:20]:
        print(error, file=sys.stderr)
    left = f", {len(imported.errors)} lines left out" if imported.errors else ""
    print(f"{path}: {imported.new} new labels, {imported.had} known already{left}")


@app.command()
def export(
    run: Run = None,
    queue: Queue = None,
    history: Annotated[
        bool, typer.Option("--history", help="Every label ever given, not the current ones alone.")
    ] = False,
    format: Annotated[str, typer.Option(help="jsonl or csv.")] = "jsonl",
    out: Annotated[
        Optional[Path], typer.Option(help="File to write (default: standard output).")
    ] = None,
) -> None:
    """Write labels, in the order in which they were given."""
    from cotlab.review.labelling.files import labels_as_text
    from cotlab.store import labels as label_store
    from cotlab.store.database import Store

    store = Store()
    _require_known(store, run, queue)
    table = label_store.label_table(store, run=run, queue=queue, history=history)
    text = labels_as_text(label_store.as_labels(table), format, label_store.queue_kinds(store))
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror or error}.") from error
    print(f"{out}: {len(table)} labels")


@app.command()
def queue(
    run: Annotated[list[str], typer.Argument(help="One run or several; `cotlab runs` lists them.")],
    name: Annotated[str, typer.Option(help="What raters see it as.")] = "labels",
    raters: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_RATERS, help="Labels that an item wants, each of another rater."
        ),
    ] = 1,
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the items for two raters or more.")
    ] = 0.0,
    limit: Annotated[
        Optional[int], typer.Option(min=1, help="Only the first items of each run.")
    ] = None,
    gold: Annotated[
        Optional[Path],
        typer.Option(
            help="JSONL of expected labels: run, item_id, reasoning and perhaps answer_correct."
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="label; adjudication: what raters differ on; flagged; audit.")
    ] = "label",
) -> None:
    """Make a queue and print its id."""
    from cotlab.review.labelling.agreement import items_to_adjudicate
    from cotlab.review.labelling.queue import flagged_items, make_queue
    from cotlab.store import read
    from cotlab.store.database import Store

    store = Store()
    for run_id in run:
        read.get_run(store, run_id)
    if kind == "adjudication":
        items = items_to_adjudicate(store, runs=run)
    elif kind == "flagged":
        items = flagged_items(store, run)
    else:
        each = {run_id: read.items_of_run(store, run_id)["id"].tolist()[:limit] for run_id in run}
        items = [(run_id, item, "") for run_id, ids in each.items() for item in ids]
    expected = _read_expected_labels(gold) if gold else None
    print(
        make_queue(
            store,
            name,
            items,
            raters=raters,
            overlap=overlap,
            gold=expected,
            kind=kind,
            by=acting_user(None),
        )
    )


@app.command("list")
def list_queues() -> None:
    """List the queues, and how many labels each has."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.review.labelling.queue import progress
    from cotlab.store import labels as label_store
    from cotlab.store.database import Store

    store = Store()
    table = Table()
    for title, right in {
        "queue": False,
        "name": False,
        "kind": False,
        "items": True,
        "labels": True,
        "made": False,
    }.items():
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in label_store.queues(store).to_dict("records"):
        queue_progress = progress(store, row["id"], "")
        made, n_labels = (
            f"{row['made_at']:%Y-%m-%d %H:%M}",
            f"{queue_progress.labels} of {queue_progress.requested}",
        )
        table.add_row(
            *(
                Text(str(cell))
                for cell in (row["id"], row["name"], row["kind"], row["n"], n_labels, made)
            )
        )
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    print(f"{len(label_store.label_table(store))} current labels in all")


@app.command()
def agreement(
    run: Run = None,
    queue: Queue = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say how far raters agree, and on which items they do not."""
    from cotlab.core.keys import canonical_json
    from cotlab.review.labelling import agreement as review
    from cotlab.store.database import Store

    store = Store()
    _require_known(store, run, None)  # an unknown queue is told by the next
    result = review.measure_agreement(store, runs=[run] if run else None, queue=queue)
    if json:
        sys.stdout.write(canonical_json(review.agreement_json(result)) + "\n")
        return
    print(f"{result.n_items} labelled items, {result.n_shared} of them by two raters or more")
    for question, alpha in result.alpha.items():
        print(f"Krippendorff's alpha of {question}: {_interval_summary(alpha)}")
    for pair in result.pairs:
        print(
            f"{pair.question}: {pair.first!r} and {pair.second!r}: kappa"
            f" {_interval_summary(pair.kappa)}; the same {_interval_summary(pair.same)}"
        )
    for rater_counts in result.raters:
        print(
            f"{rater_counts.rater!r}: {rater_counts.n} items: {rater_counts.acceptable} acceptable,"
            f" {rater_counts.not_acceptable} not, {rater_counts.unsure} unsure,"
            f" {rater_counts.flagged} flagged; gold items right:"
            f" {_interval_summary(rater_counts.gold)}"
        )
    for row in result.disagreements.to_dict("records"):
        verdicts = ", ".join(f"{rater!r} {verdict}" for rater, verdict, _ in row["said"])
        print(
            f"differ on {row['on']}: {row['run']} {row['item_id']!r}:"
            f" {verdicts}{' (settled)' if row['adjudicated'] else ''}"
        )


def _require_known(store: Store, run: str | None, queue: str | None) -> None:
    """A run or a queue that is named and that the store does not have is told, so that no slip looks like no labels."""
    from cotlab.core.errors import UnknownName
    from cotlab.store import labels as label_store
    from cotlab.store import read

    if run is not None:
        read.get_run(store, run)
    if queue is not None:
        ids = set(label_store.queue_kinds(store))
        if queue not in ids and label_store.label_table(store, queue=queue, history=True).empty:
            raise UnknownName("queue", queue, sorted(ids)[:20])


def _interval_summary(interval: Interval) -> str:
    from cotlab.figures.style import interval_text

    reason = f" ({interval.reason})" if interval.reason else ""
    return f"{interval_text(interval.point, interval.lo, interval.hi)}{reason}, n = {interval.n}"


def _read_expected_labels(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The expected labels of a file, by (run, item)."""
    from json import loads

    from cotlab.review.labelling.label_rows import LabelError

    try:
        lines = path.read_text("utf-8-sig").split("\n")  # a text may hold other ends of line
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--gold {path}: cannot be read as UTF-8 text: {error}") from error
    out: dict[tuple[str, str], dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = loads(line)
        except (ValueError, RecursionError) as error:
            raise LabelError(str(path), number, "", f"is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise LabelError(str(path), number, "", "is no JSON object: one expected label a line")
        for field in ("run", "item_id"):
            if not isinstance(row.get(field), str):
                raise LabelError(str(path), number, field, "is missing, or no text")
        out[row["run"], row["item_id"]] = {
            name: value for name, value in row.items() if name not in ("run", "item_id")
        }
    return out
