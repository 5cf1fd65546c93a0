"""``cotlab demo``: ablate the shipped suite with the shipped organism, without any key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

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
    if finding := first_finding(ended.report):
        print(finding)
    raise typer.Exit(ended.code)


def first_finding(report: Mapping[str, Any]) -> str:
    """Return what the demo's run shows, in two sentences; empty where a number is undefined."""
    points = {
        (estimate["metric"], estimate["facet"].get("mode"), estimate["facet"].get("metric")): (
            estimate["point"]
        )
        for estimate in report["estimates"]
    }
    corrupt = points.get(("answer_change", "corrupt", None))
    paraphrase = points.get(("answer_change", "paraphrase", None))
    rrr = points.get(("rrr", "remove", "accuracy_delta"))
    ceiling = points.get(("rrr_ceiling", "remove", "accuracy_delta"))
    if corrupt is None or paraphrase is None or rrr is None or ceiling is None:
        return ""
    return (
        f"Corrupting a step changed the answer in {corrupt:.0%} of the steps, rewording it in"
        f" {paraphrase:.0%}. RRR under removal is {rrr:.1%}; a model that uses only the last step"
        f" of these chains would have {ceiling:.1%}, since each step restates the total."
    )
