"""Print tables, lines and runs on a terminal; what comes from data is text, never markup."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from cotlab.analysis.markdown import self_test_lines
from cotlab.analysis.readable import composite_lines, decimal_text, readable_estimate
from cotlab.analysis.reply_notes import cut_reply_lines, restated_step_warnings
from cotlab.analysis.verdict.record import verdict_lines
from cotlab.core.types import CHAIN_ORIGINS
from cotlab.run.dryrun import RequestCount
from cotlab.store.live import RunProgress

_MAX_ROWS = 40
_LOG_COLUMNS = 240
"""Width of the line of progress where it goes to a file: no terminal cuts it."""
_HEADLINE_RANKS = {
    **dict.fromkeys(("answer_change", "perturbed_answer_change", "mass_lost", "hint_followed"), 0),
    "r_raw": 1,
    "weight_checked": 2,
}
"""Metrics above all others in the table: what a verdict rests on, then the composite."""


class ProgressBar:
    """A bar on stderr: items done, requests a second, spend, time left."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, width=None if sys.stderr.isatty() else _LOG_COLUMNS)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TextColumn("{task.fields[more]}", markup=False),
            console=self._console,
        )
        self._task = self._progress.add_task("starting", total=None, more="", unit="items")

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def announce(self, run_id: str) -> None:
        """Show the bar; before this, an error has the screen to itself."""
        self._progress.start()
        self._progress.update(self._task, description=f"run {run_id}")

    def show_progress(self, progress: RunProgress) -> None:
        """Update the bar with the progress of a run."""
        n_replies = progress.answered or 0
        texts = [f"{n_replies:,} {'reply' if n_replies == 1 else 'replies'}"]
        if progress.rate:
            texts.append(f"{progress.rate:.0f} requests/s")
        counts = (progress.hits, progress.limited, progress.failed)
        for n, outcome in zip(counts, ("from the log", "× 429", "failed"), strict=True):
            if n:
                texts.append(f"{n} {outcome}")
        spent_text = f"${progress.spent_micro / 1e6:.4f}"
        if progress.cap_micro is not None:
            spent_text += f" of ${progress.cap_micro / 1e6:.2f}"
        texts.append(spent_text)
        if progress.concurrency is not None and progress.in_flight:
            texts.append(f"{progress.in_flight} in flight, at most {progress.concurrency}")
        if (pause_s := progress.paused_until - time.time()) > 1:
            texts.append(f"pausing {pause_s:.0f} s, as the server asks")
        if progress.retried_error and progress.status == "running":
            texts.append(f"trying again after: {progress.retried_error[:80]}")
        if progress.waiting_for:
            texts.append(f"batches: {progress.waiting_for}")
        if progress.eta_s is not None and progress.status == "running":
            texts.append(f"{progress.eta_s:.0f} s left")
        self._progress.update(
            self._task,
            completed=progress.items_done,
            total=progress.items_total,
            unit="items" if progress.n_scorers < 2 else "items × scorers",
            more=" · ".join(texts),
        )


def print_caution(caution: str) -> None:
    """Print a caution to stderr."""
    print(f"note: {caution}", file=sys.stderr)


def print_dry_run(n_items: int, request_count: RequestCount, cautions: Sequence[str]) -> None:
    """Print what a run would ask and cost; the first two lines and the cost are FaithCheck's."""
    print("[DRY RUN] Estimating cost...")
    n_computed = request_count.n_computed_requests
    print(f"Items: {n_items} | Total API queries: {request_count.n_requests - n_computed}")
    if request_count.sample_text:
        print(request_count.sample_text)
    if n_computed:
        print(f"{n_computed} more requests are computed by algebra in this process.")
    if request_count.n_estimated_requests:
        print(
            f"{request_count.n_exact_requests} of them are certain; about"
            f" {request_count.n_estimated_requests} follow from replies."
        )
    if n_computed < request_count.n_requests and len(request_count.requests_by_model) > 1:
        print(
            "By model: "
            + ", ".join(f"{model} {n}" for model, n in request_count.requests_by_model.items())
        )
    print(f"Estimated cost: ~${request_count.cost_micro / 1e6:.4f}")
    if request_count.max_cost_micro:
        print(
            f"At most ${request_count.max_cost_micro / 1e6:.4f}, without retries, if every reply is"
            " as long as it may be."
        )
    if request_count.n_chain_requests:
        cost_text = (
            f": ${request_count.max_chain_cost_micro / 1e6:.4f} of that"
            if request_count.max_chain_cost_micro
            else ""
        )
        print(
            f"{request_count.n_chain_requests} requests for a chain, each of at most"
            f" {request_count.chain_tokens:,} output tokens (--chain-tokens){cost_text}."
        )
    for caution in cautions:
        print_caution(caution)


def print_spend(report: Mapping[str, Any]) -> None:
    """Print the cost of a run, what it was expected to be, and its tokens; nothing if free."""
    cost = report["cost"]
    if cost["spent_usd"]:
        expected_text = "n/a" if cost["estimated_usd"] is None else f"~${cost['estimated_usd']:.4f}"
        if cost["held_usd"]:
            expected_text += f", ${cost['held_usd']:.4f} of it for calls without a reply"
        print(f"Cost: ${cost['spent_usd']:.4f} (expected {expected_text})")
        print(
            f"Tokens: {cost['tokens_in']:,} in ({cost['tokens_cached']:,} cached),"
            f" {cost['tokens_out']:,} out ({cost['tokens_reasoning']:,} reasoning)"
        )
    if report["requests"]["asked_again"]:
        print(
            f"{report['requests']['asked_again']} unfinished items were asked again: redacted"
            " replies are not kept."
        )


def print_verdict(report: Mapping[str, Any]) -> None:
    """Print the verdict on a run: headline, what it rests on, its limits, and the lamps."""
    print_lines(open_console(140), ["", *verdict_lines(report["verdict"]), ""])


def print_estimates(report: Mapping[str, Any]) -> None:
    """Print the estimates of a run: point, interval, n, and the reason where there is none."""
    console = open_console(140)
    hidden_facets = {"chain", "given", "profile", "control"}
    estimates = [estimate for estimate in report["estimates"] if estimate["metric"] != "topk_rest"]
    estimates.sort(key=lambda estimate: _HEADLINE_RANKS.get(estimate["metric"], 3))
    chains = {estimate["facet"].get("chain") for estimate in estimates} - {None}
    if len(chains) > 1:
        hidden_facets.discard("chain")
    rows = []
    for stored_estimate in estimates[:_MAX_ROWS]:
        estimate = readable_estimate(stored_estimate)
        facet = ", ".join(
            f"{name}={value}"
            for name, value in estimate["facet"].items()
            if name not in hidden_facets
        )
        point_text = decimal_text(stored_estimate["metric"], estimate["point"])
        interval_text = (
            "n/a" if estimate["lo"] is None else f"[{estimate['lo']:.3f}, {estimate['hi']:.3f}]"
        )
        rows.append(
            (
                estimate["metric"],
                facet,
                point_text,
                interval_text,
                str(estimate["n"]),
                str(estimate["n_undefined"]),
            )
        )
    columns = ("metric", "facet", "estimate", "95% interval", "items", "undefined scores")
    title = f"{report['model_label']} on {report['task_suite']}"
    print_table(console, columns, rows, title=title, right_columns=columns[2:])
    if len(chains) == 1:
        print_lines(console, [f"Measured on {CHAIN_ORIGINS[chains.pop()]}."])
    if len(estimates) > _MAX_ROWS:
        print_lines(console, [f"… and {len(estimates) - _MAX_ROWS} more in the report"])
    print_lines(console, composite_lines(report["estimates"]))
    print_lines(console, (f"Self-test of {line}" for line in self_test_lines(report)))
    for line in (*cut_reply_lines(report), *restated_step_warnings(report)):
        print_caution(line)


def open_console(width: int) -> Console:
    """Return a console on standard output, ``width`` columns wide where that is no terminal."""
    return Console(width=None if sys.stdout.isatty() else width)


def print_table(
    console: Console,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    right_columns: Collection[str] = (),
) -> None:
    """Print rows under their columns; those in ``right_columns`` are aligned right."""
    table = Table(title=Text(title) if title else None, title_justify="left")
    for name in columns:
        table.add_column(
            name, justify="right" if name in right_columns else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print each line as it is."""
    for line in lines:
        console.print(Text(line))
