"""``cotlab run``, ``cotlab plan``: measure a model on a suite, or print what that would take."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any, Optional

import typer

from cotlab.cli import options
from cotlab.cli.commands import Commands
from cotlab.core.errors import ConfigError
from cotlab.core.text_safety import printable_text

app = Commands(no_args_is_help=True, rich_markup_mode=None)


@app.command("run")
@options.run_options("run")
def run_command(
    flags: dict[str, Any],
    config: options.ConfigFile = None,
    send_key_to: options.SendKeyToOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count requests and estimate the cost; ask nothing.")
    ] = False,
    run_id: Annotated[
        Optional[str],
        typer.Option("--run-id", help="Name of the new run (default: made from the time)."),
    ] = None,
    resume: Annotated[
        Optional[str], typer.Option(metavar="RUN", help="Go on with this run.")
    ] = None,
    retry_refused: Annotated[
        bool, typer.Option("--retry-refused", help="With --resume: ask refused requests again.")
    ] = False,
) -> None:
    """Run scorers on a suite.

    Exit codes: 0 done, 1 gate failed, 2 usage, 3 not finished, 4 budget, 5 inconclusive, 7 nothing
    measured.
    """
    options.allow_key_hosts(send_key_to)
    from cotlab.analysis.report import report_run
    from cotlab.cli.screen import (
        ProgressBar,
        print_caution,
        print_dry_run,
        print_estimates,
        print_spend,
        print_verdict,
    )
    from cotlab.run import launch
    from cotlab.run.config import read_config
    from cotlab.run.dryrun import plan_cautions
    from cotlab.run.exit_status import last_line
    from cotlab.run.resolved import ResolvedRun
    from cotlab.run.unread_options import check_flags_are_read
    from cotlab.store.database import Store

    store = Store()
    if resume is not None:
        options.validate_resume_flags(flags, dry_run=dry_run, config=config, run_id=run_id)
    elif retry_refused:
        raise ConfigError("--retry-refused goes with --resume RUN.")
    if resume is None:
        resolved = ResolvedRun(read_config(flags, config))
        check_flags_are_read(resolved, flags)
        if dry_run:
            suite, _ = launch.load_configured_suite(resolved)
            plan, request_count = launch.dry_run(resolved, suite)
            print_dry_run(len(plan.items_of(suite)), request_count, plan_cautions(plan, suite))
            return
        with ProgressBar() as bar:
            finished_run = launch.start_run(
                resolved,
                store,
                on_progress=bar.show_progress,
                announce=bar.announce,
                warn=print_caution,
                run_id=run_id,
            )
    else:
        with ProgressBar() as bar:
            finished_run = launch.resume_run(
                resume,
                flags,
                store,
                retry_refused=retry_refused,
                on_progress=bar.show_progress,
                announce=bar.announce,
            )
    reported_run = report_run(store, finished_run)
    print_estimates(reported_run.report)
    print_verdict(reported_run.report)
    print_spend(reported_run.report)
    print(f"Report: {finished_run.output / 'report.md'}")
    if reported_run.message:
        print(printable_text(reported_run.message), file=sys.stderr)
    if finished_run.status == "done":
        print(last_line(reported_run.report))
    raise typer.Exit(reported_run.exit_code)


@app.command("plan")
@options.run_options("plan")
def plan_command(flags: dict[str, Any], config: options.ConfigFile = None) -> None:
    """Print the plan of a run as JSON, with how many requests it needs and what they may cost."""
    from cotlab.run import launch
    from cotlab.run.config import read_config
    from cotlab.run.dryrun import plan_cautions
    from cotlab.run.resolved import ResolvedRun
    from cotlab.run.unread_options import check_flags_are_read

    resolved = ResolvedRun(read_config(flags, config))
    check_flags_are_read(resolved, flags)
    suite, suite_sha256 = launch.load_configured_suite(resolved)
    run_plan, request_count = launch.dry_run(resolved, suite)
    document = {
        "plan": asdict(run_plan),
        "digest": run_plan.digest,
        "task_suite_hash": suite_sha256,
        "requests": {
            "exact": request_count.n_exact_requests,
            "estimated": request_count.n_estimated_requests,
            "by_model": request_count.requests_by_model,
            "sampled_items": request_count.n_sampled_items,
        },
        "estimated_cost_usd": request_count.cost_micro / 1e6,
        "most_cost_usd": request_count.max_cost_micro / 1e6,
        "chains": {
            "requests": request_count.n_chain_requests,
            "max_output_tokens": request_count.chain_tokens,
            "most_cost_usd": request_count.max_chain_cost_micro / 1e6,
        },
        "cautions": plan_cautions(run_plan, suite),
    }
    print(json.dumps(document, indent=1, ensure_ascii=False))
