"""Start or resume a run from a configuration, end to end: suite, plan, runner, summary."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.errors import ConfigError, StoreError
from cotlab.core.provider import AnyProvider, Batching, BatchProvider
from cotlab.core.registry import PROVIDERS
from cotlab.core.types import ModelRef, Plan, Suite
from cotlab.providers.capabilities import family_of
from cotlab.run.config import RunConfig, as_yaml, config_again
from cotlab.run.dryrun import Count, cautions, count_plan
from cotlab.run.event_loop import run_anywhere, stopping_on_signals
from cotlab.run.imports.pairs import Paired, paired_suite
from cotlab.run.plan import code_version, make_plan, open_provider
from cotlab.run.roles import models_of, selected_scorers
from cotlab.run.runner import Outcome, Run
from cotlab.run.summary import summarise
from cotlab.run.transport.budget import FREE, Price, price_of, read_prices
from cotlab.run.transport.journal import Journal
from cotlab.run.transport.limits import Limits
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.live import LiveState, Progress
from cotlab.store.responses import ResponseLog
from cotlab.suites.jsonl import file_sha256, load_suite
from cotlab.suites.shipped import find_suite

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
UNLIMITED = ("echo", "scripted")
"""Providers that no rate limit is meant for."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended, with its estimates stored; ``analysis.report.report_run`` reports it."""

    run_id: str
    """Id of the run in the store."""
    outcome: Outcome
    """How it ended, and the message that goes with it."""
    config: RunConfig
    """The configuration that it ran with, after the flags of a resumption."""
    output: Path
    """The folder of its reports."""

    @property
    def status(self) -> str:
        """Return done, stopped, budget or failed."""
        return self.outcome.status


def load_configured_suite(config: RunConfig, store: Store | None = None) -> tuple[Suite, str]:
    """The suite that a configuration names, and the SHA-256 of its file; pairs of two runs of the store have no file."""
    if config.base_run or config.tuned_run:
        return load_paired_runs(config, store).suite, ""
    if not config.task_suite:
        raise ConfigError("No suite: give --task-suite FILE.jsonl or the name of a shipped suite.")
    path = find_suite(config.task_suite)
    suite = load_suite(path, good_lines=config.good_lines, chain=config.chain)
    return suite, file_sha256(path)


def load_paired_runs(config: RunConfig, store: Store | None = None) -> Paired:
    """The pairs of the two runs that a configuration names; ConfigError where it names one, or does more than judge."""
    if not (config.base_run and config.tuned_run):
        raise ConfigError("A pair is of two runs: give --base-run RUN and --tuned-run RUN.")
    if [scorer.name for scorer in selected_scorers(config)] != ["judge"]:
        raise ConfigError(
            "--base-run and --tuned-run go with --scorer judge, and with no other scorer or"
            " --profile."
        )
    return paired_suite(store or Store(), config.base_run, config.tuned_run)


def dry_run(config: RunConfig, suite: Suite) -> tuple[Plan, Count]:
    """The plan of a configuration and what it would ask, without opening a provider."""
    PROVIDERS.require(config.provider)
    plan = make_plan(config, suite, models_of(config))
    _check_model(plan.subject, config)
    return plan, count_plan(
        plan, suite, {ref: price_for(ref, config) for ref in plan.models.values()}
    )


def start(
    config: RunConfig,
    store: Store,
    *,
    suite: Suite | None = None,
    on_progress: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
    warn: Callable[[str], None] = lambda caution: None,
    run_id: str | None = None,
) -> Finished:
    """Plan and carry out a run.

    Before the first request ``warn`` is told what the model cannot give, and ``announce`` the run's
    id.
    """
    if run_id is not None:
        _check_new(store, run_id)
    sha = ""
    if suite is None and (config.base_run or config.tuned_run):
        paired = load_paired_runs(config, store)
        suite, config = (
            paired.suite,
            config.model_copy(update={"tag": {**paired.tags, **config.tag}}),
        )
        if paired.left_out:
            warn(paired.left_out_message())
    elif suite is None:
        suite, sha = load_configured_suite(config)
    models = _opened(models_of(config), config)
    plan = make_plan(config, suite, {role: provider.ref for role, provider in models.items()})
    providers = {provider.ref: provider for provider in models.values()}
    prices = {ref: _price(provider, config) for ref, provider in providers.items()}
    price = prices[plan.subject]
    _check_model(plan.subject, config)
    run_id = run_id or f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3] + f"-{plan.digest[:4]}"
    output = Path(config.output) if config.output else store.folder / "reports" / run_id
    _check_output(output)
    with store.writing() as connection:
        if write.has_run(connection, run_id):  # since it was looked up, another process began it
            raise _taken(run_id)
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
            estimate=(
                None
                if all(map(_in_process, providers.values()))
                else count_plan(plan, suite, prices).as_estimate(price)
            ),
        )
        _claim(store, run_id)
    with _released_on_error(store, run_id):
        (output / "run.yaml").write_text(
            as_yaml(config.model_dump(mode="json") | {"output": None}), "utf-8"
        )
        for caution in cautions(plan):
            warn(caution)
        announce(run_id)
        return _execute(run_id, plan, suite, store, providers, prices, config, output, on_progress)


def resume(
    run_id: str,
    flags: Mapping[str, Any],
    store: Store,
    *,
    retry_refused: bool = False,
    on_progress: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> Finished:
    """Go on with a run: what ended stays, the rest replays through the response log. ``flags`` may raise its limits."""
    row = read.get_run(store, run_id)
    _claim(store, run_id)
    with _released_on_error(store, run_id):
        announce(run_id)
        return _go_on(run_id, row, flags, store, on_progress, retry_refused)


def _go_on(
    run_id: str,
    row: Mapping[str, Any],
    flags: Mapping[str, Any],
    store: Store,
    tell: Callable[[Progress], None],
    retry_refused: bool,
) -> Finished:
    plan = read.stored_plan(row)
    config = config_again(json.loads(row["config"]), flags)
    if read.is_redacted(store, plan.suite_digest):
        suite, _ = load_configured_suite(config, store)
        if suite.digest != plan.suite_digest:
            raise ConfigError(
                f"The suite {config.task_suite!r} has changed since run {run_id} began; start a new"
                " run."
            )
    else:
        suite = read.get_suite(store, plan.suite_digest)
    models = _opened(plan.models, config)
    providers = {provider.ref: provider for provider in models.values()}
    for role, ref in plan.models.items():
        if models[role].ref != ref:
            raise ConfigError(
                f"The model {ref} has changed since run {run_id} began; start a new run."
            )
        if isinstance(models[role], Batching) and _has_open_batches(store, run_id, ref):
            config = config.model_copy(
                update={"batch": True}
            )  # what is at the vendor is picked up, whatever is said now
    _check_model(plan.subject, config)
    prices = {ref: _price(provider, config) for ref, provider in providers.items()}
    return _execute(
        run_id,
        plan,
        suite,
        store,
        providers,
        prices,
        config,
        Path(row["output"]),
        tell,
        retry_refused,
    )


def _opened(models: Mapping[str, ModelRef], config: RunConfig) -> dict[str, AnyProvider]:
    """The provider of each role; two roles of one model share it."""
    opened = {ref: open_provider(ref, config) for ref in dict.fromkeys(models.values())}
    return {role: opened[ref] for role, ref in models.items()}


def _in_process(provider: AnyProvider) -> bool:
    return isinstance(provider, BatchProvider)


def _has_open_batches(store: Store, run_id: str, ref: ModelRef) -> bool:
    log = ResponseLog(store.log_path)
    try:
        return bool(log.open_batches(run_id, str(ref)))
    finally:
        log.close()


def price_for(ref: ModelRef, config: RunConfig) -> Price:
    """What a model costs under a configuration: its price file, its batch mode, its leave to run unpriced."""
    prices = read_prices(config.prices)
    return price_of(ref, allow_unpriced=config.allow_unpriced, prices=prices, batch=config.batch)


def _price(provider: AnyProvider, config: RunConfig) -> Price:
    """Free for a model in this process, else what is known of it."""
    return FREE if _in_process(provider) else price_for(provider.ref, config)


def _check_model(ref: ModelRef, config: RunConfig) -> None:
    """Say before anything is asked what the model would turn away every time."""
    family = family_of(ref.provider, ref.name)
    if config.batch and not family.batch:
        raise ConfigError(f"{ref} has no batch interface: --batch goes with openai and anthropic.")
    if family.temperature is not None and config.temperature > family.temperature:
        raise ConfigError(
            f"{ref} takes temperatures up to {family.temperature:g}, not {config.temperature:g}."
        )
    if ref.form == "prefill" and not family.prefill:
        raise ConfigError(
            f"{ref} does not go on from the start of its own turn: leave out --given prefix."
        )


def _check_output(folder: Path) -> None:
    """Say before anything is asked that the reports could not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").touch()
    except OSError as error:
        raise ConfigError(
            f"--output {folder}: reports cannot be written there: {error.strerror}."
        ) from error


def _check_new(store: Store, run_id: str) -> None:
    if not RUN_ID.fullmatch(run_id):
        raise ConfigError(
            "--run-id takes up to 80 letters, digits, dots, dashes and underscores, got"
            f" {run_id!r}."
        )
    if run_id in set(read.list_runs(store)["id"]):
        raise _taken(run_id)


def _taken(run_id: str) -> ConfigError:
    return ConfigError(
        f"There is a run {run_id!r} already: --resume goes on with it, another --run-id starts a"
        " new one."
    )


def _claim(store: Store, run_id: str) -> None:
    """Take a run for this process; ConfigError where another one has it and may still run."""
    with closing(LiveState(store.log_path)) as live:
        holder = live.claim(run_id)
    if holder is not None:
        place = "" if holder.is_here else f" on {holder.host}"
        later = (
            ""
            if holder.is_here
            else f" If it was killed, the run can be resumed in {holder.free_in_s:.0f} s."
        )
        raise ConfigError(
            f"Run {run_id} is still going, in process {holder.pid}{place}: stop it before it is"
            f" resumed.{later}"
        )


@contextmanager
def _released_on_error(store: Store, run_id: str) -> Iterator[None]:
    """Give up the claim of a run that ends in an error, so that it can be resumed from another machine without a wait."""
    try:
        yield
    except BaseException:
        with suppress(StoreError), closing(LiveState(store.log_path)) as live:
            live.release(run_id)
        raise


def _limits(providers: Iterable[AnyProvider], config: RunConfig) -> Limits:
    free_running = all(
        _in_process(provider) or provider.ref.provider in UNLIMITED for provider in providers
    )
    return Limits(
        concurrency=config.max_concurrent,
        per_minute=None if free_running else config.max_requests_per_minute,
        tokens_per_minute=config.max_tokens_per_minute,
        cap_micro=round(config.max_cost * 1e6),
        tries=config.max_tries,
        timeout_s=config.timeout_s,
    )


def _execute(
    run_id: str,
    plan: Plan,
    suite: Suite,
    store: Store,
    providers: Mapping[ModelRef, AnyProvider],
    prices: Mapping[ModelRef, Price],
    config: RunConfig,
    output: Path,
    on_progress: Callable[[Progress], None],
    retry_refused: bool = False,
) -> Finished:
    async def go() -> Outcome:
        run = Run(
            run_id,
            plan,
            suite,
            store,
            providers,
            prices,
            _limits(providers.values(), config),
            config.redact_prompts,
            retry_refused,
            on_progress,
            Journal(output, redact=config.redact_prompts),
            config.batch,
        )
        with stopping_on_signals(run.stop):
            return await run.go()

    outcome = run_anywhere(go)
    summarise(store, run_id, plan)
    return Finished(run_id, outcome, config, output)
