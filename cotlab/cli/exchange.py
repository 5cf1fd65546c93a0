"""``cotlab import`` and ``cotlab export``: runs from logs of other tools, and runs as logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from cotlab.cli.options import explain_write_errors
from cotlab.core.errors import ConfigError, SuiteErrors

LogFormat = Literal["inspect"]


def import_command(
    format: Annotated[LogFormat, typer.Argument(help="inspect: logs of Inspect AI.")],
    paths: Annotated[list[Path], typer.Argument(help="Logs, or folders of logs.")],
    scorer: Annotated[
        Optional[list[str]],
        typer.Option(
            help=(
                "flags, verification, tool_trace (default: these), repair, text_features; may be"
                " repeated."
            )
        ),
    ] = None,
    tag: Annotated[
        Optional[list[str]], typer.Option(help="key=value, kept with the runs; may be repeated.")
    ] = None,
) -> None:
    """Keep each log as a run: its chains are the model's own, its answers the stored replies."""
    from cotlab.analysis.report import write_reports
    from cotlab.run.imports.logs import DEFAULT_SCORERS, store_inspect_log
    from cotlab.store.database import Store
    from cotlab.suites.importers.logs import log_paths, read_inspect_log
    from cotlab.text.steps import split_steps

    pairs = [text.partition("=") for text in tag or ()]
    if not all(name.strip() and separator for name, separator, _ in pairs):
        raise ConfigError("--tag is written key=value.")
    tags = {name.strip(): value.strip() for name, _, value in pairs}
    files = [file for path in paths for file in log_paths(path)]
    store, n_left_out = Store(), 0
    for file in files:
        try:
            log = read_inspect_log(file, split_steps)
        except SuiteErrors as error:
            if len(files) == 1:
                raise
            print("\n".join(f"Left out: {defect}" for defect in error.errors), file=sys.stderr)
            n_left_out += 1
            continue
        run = store_inspect_log(store, log, scorer or DEFAULT_SCORERS, tags=tags)
        if run.is_new:
            write_reports(store, run.run_id, store.folder / "reports" / run.run_id)
        status = "Stored" if run.is_new else "In the store already"
        n_no_reply = len(log.items) - len(log.replies)
        print(
            f"{status}: run {run.run_id}, {run.model} on {run.suite}: {len(log.items)} samples,"
            f" {log.n_errors} ended in an error, {n_no_reply} without a reply."
        )
    print("Not read: events and stores of the samples.")
    if n_left_out:
        print(f"error: {n_left_out} of {len(files)} logs were left out.", file=sys.stderr)
        raise typer.Exit(2)


def export_command(
    run: Annotated[str, typer.Argument(help="The run's id; `cotlab runs` lists them.")],
    output: Annotated[Path, typer.Option(help="File to write: .eval, or .json.")],
    format: Annotated[LogFormat, typer.Option(help="inspect: a log of Inspect AI.")] = "inspect",
) -> None:
    """Write a run as another tool reads it: samples, replies, scores and where they come from."""
    from cotlab.export.inspect_log import write_inspect_log
    from cotlab.store.database import Store

    with explain_write_errors(f"--output {output}"):
        written = write_inspect_log(Store(), run, output)
    print(
        f"{output}: {written.n_samples} samples, {written.n_scores} scores of cotlab."
        " See: inspect view start"
    )
    if written.left_out:
        print(f"Not in it, though the imported log held it: {'; '.join(written.left_out)}.")
