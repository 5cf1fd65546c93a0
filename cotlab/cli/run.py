"""``cotlab run``, ``cotlab plan``: measure a model on a suite, or print what that would take."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Optional

import typer

from cotlab.cli import options as o
from cotlab.core.errors import ConfigError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("run")
@o.run_options("run")
def run_command(
    flags: dict[str, Any],
    config: o.ConfigFile = None,
    send_key_to: o.SendKeyTo = None,
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

    Exit codes: 0 done, 1 gate failed, 2 usage, 3 not finished, 4 budget, 5 gate inconclusive.
    """
    o.send_key_to(send_key_to)
    from cotlab.analysis.report import report_run
    from cotlab.cli.screen import (
        ProgressBar,
        print_caution,
        print_dry_run,
        print_estimates,
        print_spend,
    )
    from cotlab.run import launch
    from cotlab.run.config import read_config
    from cotlab.run.dryrun import cautions
    from cotlab.run.exit_status import rrr_line
    from cotlab.store.database import Store

    store = Store()
    if resume is not None:
        o.validate_resume_flags(flags, dry_run=dry_run, config=config, run_id=run_id)
    elif retry_refused:
        raise ConfigError("--retry-refused goes with --resume RUN.")
    if resume is None:
        settings = read_config(flags, config)
        if dry_run:
            suite, _ = launch.load_configured_suite(settings)
            plan, count = launch.dry_run(settings, suite)
            print_dry_run(len(suite.items[: plan.limit]), count, cautions(plan))
            return
        with ProgressBar() as bar:
            done = launch.start(
                settings,
                store,
                on_progress=bar.show_progress,
                announce=bar.announce,
                warn=print_caution,
                run_id=run_id,
            )
    else:
        with ProgressBar() as bar:
            done = launch.resume(
                resume,
                flags,
                store,
                retry_refused=retry_refused,
                on_progress=bar.show_progress,
                announce=bar.announce,
            )
    ended = report_run(store, done)
    print_estimates(ended.report)
    print_spend(ended.report)
    print(f"Report: {done.output / 'report.md'}")
    if ended.message:
        print(ended.message, file=sys.stderr)
    if done.status == "done":
        print(rrr_line(ended.report))
    raise typer.Exit(ended.code)


@app.command("plan")
@o.run_options("plan")
def plan_command(flags: dict[str, Any], config: o.ConfigFile = None) -> None:
    """Print the plan of a run as JSON, with how many requests it needs and what they may cost."""
    from cotlab.core.keys import to_json_value
    from cotlab.run import launch
    from cotlab.run.config import read_config
    from cotlab.run.dryrun import cautions

    settings = read_config(flags, config)
    suite, sha = launch.load_configured_suite(settings)
    made, count = launch.dry_run(settings, suite)
    document = {
        "plan": to_json_value(made),
        "digest": made.digest,
        "task_suite_hash": sha,
        "requests": {"exact": count.exact, "estimated": count.estimated, "by_model": count.models},
        "estimated_cost_usd": count.micro / 1e6,
        "most_cost_usd": count.most_micro / 1e6,
        "chains": {
            "requests": count.chains,
            "max_output_tokens": count.chain_tokens,
            "most_cost_usd": count.chains_micro / 1e6,
        },
        "cautions": cautions(made),
    }
    print(json.dumps(document, indent=1, ensure_ascii=False))
