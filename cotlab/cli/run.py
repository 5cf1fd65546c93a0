"""``cotlab run``: measure a model on a suite, or go on with a run that was stopped."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from cotlab.cli import options as o
from cotlab.core.errors import ConfigError

_NOT_CONFIG = ("dry_run", "run_id", "resume", "retry_refused", "config", "send_key_to")


def run_command(
    task_suite: o.Suite = None,
    provider: o.Provider = None,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    output: o.Output = None,
    scorer: o.Scorers = None,
    mode: o.Modes = None,
    metric: o.Metric = None,
    ccs_threshold: o.CcsThreshold = None,
    rr_threshold: o.RrThreshold = None,
    gate_on: o.GateOn = None,
    temperature: o.Temperature = None,
    seed: o.Seed = None,
    repeats: o.Repeats = None,
    chain: o.Chain = None,
    given: o.Given = None,
    source: o.Sources = None,
    control: o.Control = None,
    layers: o.Layers = None,
    donors: o.Donors = None,
    draws: o.Draws = None,
    subsets: o.Subsets = None,
    jump_nats: o.JumpNats = None,
    embedder: o.Embedder = None,
    verifier: o.Verifier = None,
    paraphraser: o.Paraphraser = None,
    judge: o.Judges = None,
    base_run: o.BaseRun = None,
    tuned_run: o.TunedRun = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    backend: o.Backend = None,
    limit: o.Limit = None,
    good_lines: o.GoodLines = None,
    max_concurrent: o.MaxConcurrent = None,
    max_cost: o.MaxCost = None,
    max_requests_per_minute: o.MaxRequests = None,
    max_tokens_per_minute: o.MaxTokens = None,
    max_tries: o.MaxTries = None,
    timeout_s: o.TimeoutS = None,
    batch: o.Batch = None,
    prices: o.Prices = None,
    fail_on_error: o.FailOnError = None,
    allow_unpriced: o.AllowUnpriced = None,
    redact_prompts: o.Redact = None,
    profile: o.Profile = None,
    weights: o.Weights = None,
    set: o.Sets = None,
    tag: o.Tags = None,
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
    """Run scorers on a suite. Exit codes: 0 done, 1 gate failed, 2 usage, 3 not finished, 4 budget, 5 gate inconclusive."""
    flags = o.flags_to_config({k: v for k, v in locals().items() if k not in _NOT_CONFIG})
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
