"""What a run shows on a terminal: one line of progress, and its estimates at the end. Never markup from data."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from cotlab.analysis.markdown import self_test_lines
from cotlab.run.dryrun import Count
from cotlab.store.live import Progress as RunProgress

_MAX_ROWS = 40


class ProgressBar:
    """A bar on stderr: items done, requests a second, spend, time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("items"),
            TextColumn("{task.fields[more]}", markup=False),
            console=self._console,
        )
        self._task = self._progress.add_task("starting", total=None, more="")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def announce(self, run_id: str) -> None:
        """Show the bar; before this, an error has the screen to itself."""
        self._progress.start()
        self._progress.update(self._task, description=f"run {run_id}")

    def show_progress(self, progress: RunProgress) -> None:
        more = [f"{progress.replies} replies", f"{progress.rate:.0f}/s"]
        if progress.hits:
            more.append(f"{progress.hits} from the log")
        if progress.limited:
            more.append(f"{progress.limited} × 429")
        if progress.failed:
            more.append(f"{progress.failed} failed")
        more.append(
            f"${progress.spent_micro / 1e6:.4f}"
            + (f" of ${progress.cap_micro / 1e6:.2f}" if progress.cap_micro is not None else "")
        )
        if progress.concurrency is not None and progress.in_flight:
            more.append(f"{progress.in_flight} in flight, at most {progress.concurrency}")
        if (pause_s := progress.paused_until - time.time()) > 1:
            more.append(f"pausing {pause_s:.0f} s, as the server asks")
        if progress.waiting_for:
            more.append(f"batches: {progress.waiting_for}")
        if progress.eta_s is not None and progress.status == "running":
            more.append(f"{progress.eta_s:.0f} s left")
        self._progress.update(
            self._task,
            completed=progress.items_done,
            total=progress.items_total,
            more=" · ".join(more),
        )


def print_caution(caution: str) -> None:
    print(f"note: {caution}", file=sys.stderr)


def print_dry_run(items: int, count: Count, cautions: Sequence[str]) -> None:
    """How much a run would ask and cost; the first and the cost's line are FaithCheck's."""
    print(f"Items: {items} | Total API queries: {count.total}")
    if count.estimated:
        print(f"{count.exact} of them are certain; about {count.estimated} follow from replies.")
    if len(count.models) > 1:
        print("By model: " + ", ".join(f"{model} {n}" for model, n in count.models.items()))
    print(f"Estimated cost: ~${count.micro / 1e6:.4f}")
    if count.most_micro:
        print(
            f"At most ${count.most_micro / 1e6:.4f}, without retries, if every reply is as long as"
            " it may be."
        )
    for caution in cautions:
        print_caution(caution)


def print_spend(report: Mapping[str, Any]) -> None:
    """What the run did cost beside what it was expected to, and the tokens behind that; nothing for a free model."""
    cost = report["cost"]
    if cost["spent_usd"]:
        expected = "n/a" if cost["estimated_usd"] is None else f"~${cost['estimated_usd']:.4f}"
        unsettled = (
            f", ${cost['held_usd']:.4f} of it for calls without a reply" if cost["held_usd"] else ""
        )
        print(f"Cost: ${cost['spent_usd']:.4f} (expected {expected}{unsettled})")
        print(
            f"Tokens: {cost['tokens_in']:,} in ({cost['tokens_cached']:,} cached),"
            f" {cost['tokens_out']:,} out ({cost['tokens_reasoning']:,} reasoning)"
        )
    if report["requests"]["asked_again"]:
        print(
            f"{report['requests']['asked_again']} unfinished items were asked again: redacted"
            " replies are not kept."
        )


def print_estimates(report: Mapping[str, Any]) -> None:
    """The run's estimates as a table: point, interval, n, and the reason where there is none."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table(
        title=Text(f"{report['model_id']} on {report['task_suite']}"), title_justify="left"
    )
    for name, right in (
        ("metric", 0),
        ("facet", 0),
        ("estimate", 1),
        ("95% interval", 1),
        ("n", 1),
        ("undefined", 1),
    ):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    rows = [e for e in report["estimates"] if e["metric"] != "topk_rest"]
    for e in rows[:_MAX_ROWS]:
        facet = ", ".join(
            f"{k}={v}"
            for k, v in e["facet"].items()
            if k not in ("chain", "given", "profile", "control")
        )
        table.add_row(
            Text(e["metric"]),
            Text(facet),
            Text("n/a" if e["point"] is None else f"{e['point']:.3f}"),
            Text("n/a" if e["lo"] is None else f"[{e['lo']:.3f}, {e['hi']:.3f}]"),
            str(e["n"]),
            str(e["n_undefined"]),
        )
    console.print(table)
    if len(rows) > _MAX_ROWS:
        console.print(f"… and {len(rows) - _MAX_ROWS} more in the report", markup=False)
    for line in self_test_lines(report):
        console.print(f"Self-test of {line}", markup=False)
