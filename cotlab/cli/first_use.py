"""``cotlab demo`` and ``cotlab app``: a first run without any key, and the dashboard."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from cotlab.core.errors import PACKAGES_BY_EXTRA, MissingExtra
from cotlab.core.resources import dashboard_path


def demo_command(
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Only where the store holds no run yet.")
    ] = False,
) -> None:
    """Run the shipped suite on two shipped models: one follows its chain, one ignores it."""
    from cotlab.analysis.report import report_run
    from cotlab.cli.screen import ProgressBar, print_verdict
    from cotlab.run import launch
    from cotlab.run.config import DEMO_MODELS, demo_options, read_config
    from cotlab.store import read
    from cotlab.store.database import Store

    store = Store()
    if if_empty and read.get_store_totals(store)["runs"]:
        return
    reported_runs = []
    for model in DEMO_MODELS:
        with ProgressBar() as bar:
            finished_run = launch.start_run(
                read_config(demo_options(model)),
                store,
                on_progress=bar.show_progress,
                announce=bar.announce,
            )
        reported_runs.append(report_run(store, finished_run))
        print(f"Report: {finished_run.output / 'report.md'}")
    for reported_run in reported_runs:
        print(f"\n{reported_run.report['model_label']} on {reported_run.report['task_suite']}")
        print_verdict(reported_run.report)
    print(demo_question([reported_run.report for reported_run in reported_runs]))
    raise typer.Exit(max(reported_run.exit_code for reported_run in reported_runs))


def demo_question(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return what the demonstration asks at its end, with the verdict on each model."""
    verdicts = "; ".join(
        f"{report['model_label']}: {report['verdict']['headline'].rstrip('.').lower()}"
        for report in reports
    )
    return f"Which of these two would you trust? {verdicts}."


def app_command(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1 that the dashboard listens on.")
    ] = 8501,
) -> None:
    """Serve the dashboard on this machine until Ctrl-C; the exit code is the server's."""
    for package in PACKAGES_BY_EXTRA["app"]:
        if find_spec(package) is None:
            raise MissingExtra("The dashboard", package)
    script_path = str(dashboard_path("app.py"))
    sys.stdout.flush()
    # replaces this process, so that signals and the exit code are the server's
    os.execv(
        sys.executable,
        [sys.executable, "-m", "streamlit", "run", script_path, "--server.port", str(port)],
    )
