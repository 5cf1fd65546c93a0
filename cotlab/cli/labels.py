"""``cotlab labels``, ``cotlab next-labels``: import, export, queue and compare labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.cli.options import JsonOption, acting_user, explain_write_errors, print_json
from cotlab.core.errors import ConfigError
from cotlab.core.labels import MAX_RATERS

if TYPE_CHECKING:
    from cotlab.stats.intervals import Interval
    from cotlab.store.database import Store


app = Commands(no_args_is_help=True, help="Import, export, ask for and compare people's labels.")
RunOption = Annotated[Optional[str], typer.Option(help="Only labels of this run.")]
QueueOption = Annotated[
    Optional[str], typer.Option(help="Only labels that were given in this queue.")
]


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

    label_import = import_labels(Store(), path, good_lines_only=good_lines)
    for error in label_import.errors[:20]:
        print(error, file=sys.stderr)
    left_out_text = f", {len(label_import.errors)} lines left out" if label_import.errors else ""
    print(
        f"{path}: {label_import.n_new} new labels, {label_import.n_known} known"
        f" already{left_out_text}"
    )
    if label_import.n_other_steps:
        print(
            f"{label_import.n_other_steps} of them are of other steps than the items have here:"
            " their steps do not count.",
            file=sys.stderr,
        )


@app.command()
def export(
    run: RunOption = None,
    queue: QueueOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="Every label ever given, not the current ones alone.")
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            help=(
                "jsonl or csv: a label a line. processbench: the chains of --run with the first"
                " wrong step that raters settled on."
            )
        ),
    ] = "jsonl",
    out: Annotated[
        Optional[Path], typer.Option(help="File to write (default: standard output).")
    ] = None,
) -> None:
    """Write labels, in the order in which they were given."""
    from cotlab.review.labelling.files import labels_as_text
    from cotlab.review.labelling.processbench import PROCESSBENCH_FORMAT
    from cotlab.store import labels as label_store
    from cotlab.store.database import Store

    store = Store()
    _require_run_and_queue(store, run, queue)
    if format == PROCESSBENCH_FORMAT:
        if run is None or queue is not None or history:
            raise ConfigError("--format processbench takes --run, no --queue and no --history")
        _export_chains(store, run, out)
        return
    table = label_store.list_labels(store, run=run, queue=queue, history=history)
    text = labels_as_text(
        label_store.labels_from_table(table), format, label_store.kinds_by_queue(store)
    )
    _write_text(text, out, f"{len(table)} labels")


def _export_chains(store: Store, run: str, out: Path | None) -> None:
    """Write the labelled chains of a run in ProcessBench's form, and say what is left out."""
    from cotlab.review.labelling.processbench import processbench_labels

    chains = processbench_labels(store, run)
    _write_text(chains.text, out, f"{chains.n_chains} labelled chains")
    for reason, count in chains.n_left_out_by_reason.items():
        print(f"Left out: {count} chains: {reason}.", file=sys.stderr)


def _write_text(text: str, out: Path | None, content: str) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    with explain_write_errors(f"--out {out}"):
        out.write_text(text, "utf-8", newline="")
    print(f"{out}: {content}")


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
    from cotlab.review.labelling.agreement import find_items_to_adjudicate
    from cotlab.review.labelling.queue import find_flagged_items, make_queue
    from cotlab.review.labelling.readable_chains import left_out_text, require_readable
    from cotlab.store import read
    from cotlab.store.database import Store

    store = Store()
    for run_id in run:
        read.get_run(store, run_id)
    if kind == "adjudication":
        items = find_items_to_adjudicate(store, runs=run)
    elif kind == "flagged":
        items = find_flagged_items(store, run)
    else:
        item_ids_by_run = {
            run_id: read.list_run_items(store, run_id)["id"].tolist()[:limit] for run_id in run
        }
        readable = require_readable(
            store,
            [
                (run_id, item_id, "")
                for run_id, item_ids in item_ids_by_run.items()
                for item_id in item_ids
            ],
        )
        items = readable.items
        if readable.n_left_out_by_reason:
            print(f"Left out: {left_out_text(readable.n_left_out_by_reason)}.", file=sys.stderr)
    queue_id = make_queue(
        store,
        name,
        items,
        raters=raters,
        overlap=overlap,
        gold=_read_expected_labels(gold) if gold else None,
        kind=kind,
        author=acting_user(None),
    )
    print(queue_id)


@app.command("list")
def list_queues() -> None:
    """List the queues, and how many labels each has."""
    from cotlab.cli.screen import open_console, print_table
    from cotlab.review.labelling.queue import measure_progress
    from cotlab.store import labels as label_store
    from cotlab.store.database import Store

    store = Store()
    rows = []
    for row in label_store.list_label_queues(store).to_dict("records"):
        queue_progress = measure_progress(store, row["id"], "")
        labels_text = f"{queue_progress.n_labels} of {queue_progress.n_requested}"
        made_at_text = f"{row['made_at']:%Y-%m-%d %H:%M}"
        rows.append((row["id"], row["name"], row["kind"], str(row["n"]), labels_text, made_at_text))
    columns = ("queue", "name", "kind", "items", "labels", "made")
    print_table(open_console(200), columns, rows, right_columns=("items", "labels"))
    print(f"{len(label_store.list_labels(store))} current labels in all")


@app.command()
def agreement(run: RunOption = None, queue: QueueOption = None, json: JsonOption = False) -> None:
    """Say how far raters agree, and on which items they do not."""
    from cotlab.review.labelling import agreement as agreement_module
    from cotlab.store.database import Store

    store = Store()
    _require_run_and_queue(store, run, None)  # the next call raises for an unknown queue
    result = agreement_module.measure_agreement(store, runs=[run] if run else None, queue=queue)
    if json:
        print_json(agreement_module.agreement_json(result))
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
        verdicts_text = ", ".join(
            f"{rater!r} {verdict}{_details_text(mistake, faithful)}"
            for (rater, verdict, _), mistake, faithful in zip(
                row["said"], row["places"], row["faithful"], strict=True
            )
        )
        print(
            f"differ on {row['on']}: {row['run']} {row['item_id']!r}:"
            f" {verdicts_text}{' (settled)' if row['adjudicated'] else ''}"
        )


def _details_text(mistake: str | None, faithful: bool | None) -> str:
    """Return what a rater says beside the verdict, in brackets; "" for nothing."""
    faithful_text = "" if faithful is None else "faithful" if faithful else "not faithful"
    details = ", ".join(text for text in (mistake, faithful_text) if text)
    return f" ({details})" if details else ""


def _require_run_and_queue(store: Store, run: str | None, queue: str | None) -> None:
    """Raise UnknownName where the store lacks a named run or queue."""
    from cotlab.core.errors import UnknownName
    from cotlab.store import labels as label_store
    from cotlab.store import read

    if run is not None and label_store.list_labels(store, run=run, history=True).empty:
        read.get_run(store, run)  # the labels of a deleted run stay
    if queue is not None:
        queue_ids = set(label_store.kinds_by_queue(store))
        if (
            queue not in queue_ids
            and label_store.list_labels(store, queue=queue, history=True).empty
        ):
            raise UnknownName("queue", queue, sorted(queue_ids)[:20])


def _interval_summary(interval: Interval) -> str:
    from cotlab.figures.style import interval_text

    reason_text = f" ({interval.reason})" if interval.reason else ""
    return (
        f"{interval_text(interval.point, interval.lo, interval.hi)}{reason_text}, n = {interval.n}"
    )


def _read_expected_labels(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the expected labels of a file, by (run, item)."""
    from cotlab.core.errors import SuiteError
    from cotlab.suites.shipped import open_suite_file
    from cotlab.suites.strict_json import read_records

    labels_by_item: dict[tuple[str, str], dict[str, Any]] = {}
    with open_suite_file(path) as stream:
        for parsed in read_records(stream, str(path)):
            row = parsed.value or {}
            missing = [name for name in ("run", "item_id") if not isinstance(row.get(name), str)]
            defects = parsed.defects or [(name, "is missing, or no text") for name in missing]
            if defects:
                raise SuiteError(str(path), parsed.line, *defects[0])
            labels_by_item[row.pop("run"), row.pop("item_id")] = row
    return labels_by_item


def next_labels_command(
    run: Annotated[list[str], typer.Argument(help="Runs whose items may be asked for.")],
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="How many items.")] = 20,
    epsilon: Annotated[float, typer.Option(help="How near to a threshold r_cal must be.")] = 0.1,
    threshold: Annotated[
        Optional[list[float]], typer.Option(help="Instead of the policy's thresholds; repeatable.")
    ] = None,
    unscored: Annotated[
        float, typer.Option(min=0, max=1, help="The share for items without r_cal.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    queue: Annotated[Optional[str], typer.Option(help="Make a queue of this name.")] = None,
    by: Annotated[Optional[str], typer.Option(help="Who makes the queue.")] = None,
    json: JsonOption = False,
) -> None:
    """Choose unlabelled items near the decision boundary that differ from each other."""
    from cotlab.review.labelling.acquisition import queue_selection, select_items_to_label
    from cotlab.store.database import Store

    if not 0 < epsilon <= 1 or not all(0 <= value <= 1 for value in threshold or ()):
        raise ConfigError("--epsilon lies above 0 and up to 1, --threshold in [0, 1]")
    store = Store()
    selection = select_items_to_label(
        store,
        run,
        k,
        epsilon=epsilon,
        thresholds=threshold or (),
        unscored_share=unscored,
        seed=seed,
    )
    queue_id = queue_selection(store, selection, queue, author=acting_user(by)) if queue else None
    rows = [
        {**row, "r_cal": None if row["r_cal"] != row["r_cal"] else row["r_cal"]}
        for row in selection.items.to_dict("records")
    ]
    if json:
        output = {
            "items": rows,
            "thresholds": list(selection.thresholds),
            "epsilon": selection.epsilon,
            "near": selection.n_near,
            "said": selection.note,
            "queue": queue_id,
        }
        print_json(output)
        return
    from cotlab.cli.screen import open_console, print_lines, print_table
    from cotlab.figures.style import format_number

    console = open_console(140)
    table_rows = (
        (str(row["run"]), str(row["item_id"]), format_number(row["r_cal"]), str(row["why"]))
        for row in rows
    )
    print_table(console, ("run", "item", "r_cal", "why"), table_rows, right_columns=("r_cal",))
    thresholds_text = ", ".join(f"{value:g}" for value in selection.thresholds)
    lines = [
        f"{selection.n_near} unlabelled items lie within {selection.epsilon:.2g} of"
        f" {thresholds_text}."
    ]
    if selection.note:
        lines.append(f"Note: {selection.note}.")
    if queue_id:
        lines.append(f"Queue {queue_id}: label it on the page Label.")
    print_lines(console, lines)
