"""Start or resume a run from a configuration, end to end: suite, plan, runner, summary, reports, exit code."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Peers, Scorer
from cotlab.core.provider import AnyProvider, BatchProvider
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import ModelRef, Plan, Suite
from cotlab.run.budget import FREE, Price, price_of
from cotlab.run.config import RunConfig
from cotlab.run.dispatch import Limits
from cotlab.run.dryrun import Count, count_requests
from cotlab.run.plan import code_version, make_plan, open_provider, params_of, subject_of
from cotlab.run.report import write_reports
from cotlab.run.runner import Outcome, Run
from cotlab.run.summary import summarise
from cotlab.store import read, write
from cotlab.store.gate import Store
from cotlab.store.live import LiveState, Progress
from cotlab.suites.jsonl import file_sha256, load_suite
from cotlab.suites.shipped import find_suite

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
DONE, GATE_FAILED, USAGE, UNFINISHED, BUDGET, INCONCLUSIVE = 0, 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended: its code is the exit code of the command, ``message`` what to tell the user about it."""

    run_id: str
    status: str
    code: int
    message: str
    output: Path
    report: Mapping[str, Any]


def load_for(config: RunConfig) -> tuple[Suite, str]:
    """The suite that a configuration names, and the SHA-256 of its file."""
    if not config.task_suite:
        raise ConfigError("No suite: give --task-suite FILE.jsonl or the name of a shipped suite.")
    path = find_suite(config.task_suite)
    suite = load_suite(path, good_lines=config.good_lines, chain=config.chain)
    return suite, file_sha256(path)


def dry_run(config: RunConfig, suite: Suite) -> tuple[Plan, Count]:
    """The plan of a configuration and what it would ask, without opening a provider."""
    PROVIDERS.require(config.provider)
    subject = subject_of(config)
    plan = make_plan(config, suite, {"subject": subject})
    price = price_of(subject, allow_unpriced=config.allow_unpriced)
    peers, count = Peers.of(suite, plan.seed), Count()
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        one = count_requests(scorer, params_of(plan, spec), peers, suite.items[: plan.limit], price)
        count.exact, count.estimated, count.micro = (
            count.exact + one.exact,
            count.estimated + one.estimated,
            count.micro + one.micro,
        )
    return plan, count


def start(
    config: RunConfig,
    store: Store,
    *,
    suite: Suite | None = None,
    tell: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
    run_id: str | None = None,
) -> Finished:
    """Plan and carry out a run; ``announce`` is told its id (``run_id``, or a new one) before the first request."""
    if run_id is not None:
        _check_new(store, run_id)
    sha = ""
    if suite is None:
        suite, sha = load_for(config)
    provider = open_provider(subject_of(config))
    price = _price(provider, config)
    plan = make_plan(config, suite, {"subject": provider.ref})
    run_id = run_id or f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3] + f"-{plan.digest[:4]}"
    output = Path(config.output) if config.output else store.folder / "reports" / run_id
    _check_output(output)
    with store.writing() as connection:
        write.add_suite(connection, suite, file_sha256=sha, redact=config.redact_prompts)
        write.add_run(
            connection,
            run_id,
            plan,
            config=config.model_dump(mode="json"),
            code_version=code_version(),
            output=str(output.resolve()),
            redacted=config.redact_prompts,
            n_items=len(suite.items[: plan.limit]),
        )
    announce(run_id)
    return _carry_out(run_id, plan, suite, store, provider, price, config, output, tell)


def resume(
    run_id: str,
    flags: Mapping[str, Any],
    store: Store,
    *,
    retry_refused: bool = False,
    tell: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> Finished:
    """Go on with a run: what ended stays, the rest replays through the response log. ``flags`` may raise its limits."""
    row = read.run(store, run_id)
    live = LiveState(store.log_path)
    try:
        if (holder := live.claim(run_id)) is not None:
            raise ConfigError(f"Run {run_id} is still going, in process {holder}: stop it before it is resumed.")
    finally:
        live.close()
    announce(run_id)
    plan = read.plan_of(row)
    config = RunConfig(**{**json.loads(row["config"]), **{k: v for k, v in flags.items() if v is not None and v != []}})
    if read.is_redacted(store, plan.suite_digest):
        suite, _ = load_for(config)
        if suite.digest != plan.suite_digest:
            raise ConfigError(f"The suite {config.task_suite!r} has changed since run {run_id} began; start a new run.")
    else:
        suite = read.suite(store, plan.suite_digest)
    provider = open_provider(plan.subject)
    if provider.ref != plan.subject:
        raise ConfigError(f"The model {plan.subject} has changed since run {run_id} began; start a new run.")
    price = _price(provider, config)
    return _carry_out(run_id, plan, suite, store, provider, price, config, Path(row["output"]), tell, retry_refused)


def _price(provider: AnyProvider, config: RunConfig) -> Price:
    """Free for a model in this process, else what is known of it."""
    return FREE if isinstance(provider, BatchProvider) else price_of(provider.ref, allow_unpriced=config.allow_unpriced)


def _check_output(folder: Path) -> None:
    """Say before anything is asked that the reports could not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").touch()
    except OSError as error:
        raise ConfigError(f"--output {folder}: reports cannot be written there: {error.strerror}.") from error


def _check_new(store: Store, run_id: str) -> None:
    if not RUN_ID.fullmatch(run_id):
        raise ConfigError(f"--run-id takes up to 80 letters, digits, dots, dashes and underscores, got {run_id!r}.")
    if run_id in set(read.runs(store)["id"]):
        raise ConfigError(f"There is a run {run_id!r} already: --resume goes on with it, another --run-id starts a new one.")


def _carry_out(
    run_id: str,
    plan: Plan,
    suite: Suite,
    store: Store,
    provider: AnyProvider,
    price: Price,
    config: RunConfig,
    output: Path,
    tell: Callable[[Progress], None],
    retry_refused: bool = False,
) -> Finished:
    local = isinstance(provider, BatchProvider)
    limits = Limits(
        config.max_concurrent,
        None if local or config.provider in ("echo", "scripted") else config.max_requests_per_minute,
        round(config.max_cost * 1e6),
    )
    models: dict[ModelRef, AnyProvider] = {plan.subject: provider}

    async def go() -> Outcome:
        run = Run(
            run_id, plan, suite, store, models, dict.fromkeys(models, price), limits, config.redact_prompts, retry_refused, tell
        )
        with _stopping_on_signals(run.stop):
            return await run.go()

    outcome = _run_anywhere(go)
    summarise(store, run_id, plan)
    report = write_reports(store, run_id, output)
    code, message = judge(outcome, report, config)
    return Finished(run_id, outcome.status, code, message, output, report)


def judge(outcome: Outcome, report: Mapping[str, Any], config: RunConfig) -> tuple[int, str]:
    """The exit code of a run that ended, and the line that explains it; 0 only where nothing is left open."""
    if outcome.status == "budget":
        return BUDGET, outcome.note or ""
    if outcome.status != "done":
        return UNFINISHED, f"{outcome.note}. What was done is kept; go on with: cotlab run --resume {report['run_id']}"
    bad, total = report["items_with_errors"], report["items_total"]
    if bad and (bad == total or (config.fail_on_error is not None and _too_many(bad, total, config.fail_on_error))):
        last = outcome.progress.last_errors[-1] if outcome.progress.last_errors else "see the report"
        return UNFINISHED, f"{bad} of {total} items have failed requests; the last error: {last}"
    if config.rr_threshold is None:
        return DONE, f"{bad} of {total} items have failed requests; --resume asks them again." if bad else ""
    rrr: float | None = report.get("aggregate_rrr")
    lo, hi = (
        (rrr, rrr)
        if config.gate_on == "point"
        else (report.get("aggregate_rrr_ci_lower"), report.get("aggregate_rrr_ci_upper"))
    )
    if rrr is None or lo is None or hi is None:
        return INCONCLUSIVE, f"Gate inconclusive: RRR or its interval is undefined ({report.get('aggregate_rrr_note')})."
    if lo <= config.rr_threshold < hi:
        return INCONCLUSIVE, f"Gate inconclusive: the interval {lo:.1%} to {hi:.1%} straddles {config.rr_threshold:.1%}."
    if lo > config.rr_threshold:
        return GATE_FAILED, f"Gate failed: RRR {rrr:.1%} exceeds {config.rr_threshold:.1%}."
    return DONE, ""


def rrr_line(report: Mapping[str, Any]) -> str:
    """How a run's last line gives RRR."""
    if report.get("aggregate_rrr") is None:
        return f"Done. RRR: n/a ({report.get('aggregate_rrr_note', 'no ablation in this run')})"
    return f"Done. RRR: {report['aggregate_rrr']:.1%}"


def _too_many(bad: int, total: int, allowed: float) -> bool:
    return bad / total > allowed if allowed < 1 else bad > allowed


def _run_anywhere(go: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end, also where this thread has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(go())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(go())).result()


@contextmanager
def _stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set ``stop`` once; a second one ends the process the usual way."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()

    def give_back() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def once() -> None:
        stop.set()
        give_back()

    for number in numbers:
        loop.add_signal_handler(number, once)
    try:
        yield
    finally:
        give_back()
