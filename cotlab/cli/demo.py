"""``cotlab demo``: step ablation on the shipped suite with the shipped organism, in every mode, without any key."""

from __future__ import annotations

from typing import Annotated

import typer


def demo_command(
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Only where the store holds no run yet.")
    ] = False,
) -> None:
    """Run the shipped suite on the shipped organism."""
    from cotlab.analysis.report import report_run
    from cotlab.cli.screen import ProgressBar, print_estimates
    from cotlab.run import launch
    from cotlab.run.config import DEMO, read_config
    from cotlab.store import read
    from cotlab.store.database import Store

    store = Store()
    if if_empty and read.store_totals(store)["runs"]:
        return
    with ProgressBar() as bar:
        done = launch.start(
            read_config(DEMO), store, on_progress=bar.show_progress, announce=bar.announce
        )
    ended = report_run(store, done)
    print_estimates(ended.report)
    print(f"Report: {done.output / 'report.md'}")
    raise typer.Exit(ended.code)
