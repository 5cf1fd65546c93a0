"""Start or resume a run from a configuration: suite, plan, runner, summary."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.garbage import loaded_objects_frozen
from cotlab.core.provider import InProcessProvider, SupportsBatches
from cotlab.core.registry import PROVIDERS
from cotlab.core.types import RECORDED_PROVIDER, ModelRef, Plan, Suite
from cotlab.providers.capabilities import family_of
from cotlab.run.claims import (
    check_new_run_id,
    claim_run,
    released_on_error,
    run_exists_error,
)
from cotlab.run.config import (
    RunConfig,
    read_config,
    resumed_config,
    run_fields,
    stored_options,
)
from cotlab.run.dryrun import RequestCount, count_plan, plan_cautions
from cotlab.run.imports.pairs import PairedRuns, paired_suite
from cotlab.run.output import check_writable, write_run_yaml
from cotlab.run.plan import code_version
from cotlab.run.rescore import version_changes
from cotlab.run.resolved import RAW_TEXT_PROVIDER, ResolvedRun, option_of_role, resolve
from cotlab.run.runner import Outcome, Run
from cotlab.run.server_check import is_checked
from cotlab.run.summary import summarise
from cotlab.run.transport.dispatcher import run_coroutine, stopping_on_signals
from cotlab.run.unread_options import check_flags_are_read, unread_text
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.suites.jsonl import file_sha256, load_suite
from cotlab.suites.shipped import find_suite
from cotlab.text.prompts.options import with_listed_options, with_word_matching


@dataclass(frozen=True, slots=True)
class FinishedRun:
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


def load_configured_suite(
    run: RunConfig | ResolvedRun, store: Store | None = None
) -> tuple[Suite, str]:
    """Return the suite of a configuration and the SHA-256 of its file; pairs have no file.

    Its questions list the options that stand only in ``choices``, as the model is to read them.
    """
    resolved = resolve(run)
    if resolved.config.base_run or resolved.config.tuned_run:
        return load_paired_runs(resolved, store).suite, ""
    suite, suite_sha256 = _load_suite_file(resolved)
    return _readable_suite(suite, resolved.config), suite_sha256


def _readable_suite(suite: Suite, config: RunConfig) -> Suite:
    """Return a suite with all options in its questions, unless its replies are recorded."""
    suite = with_word_matching(suite)
    return suite if config.provider == RECORDED_PROVIDER else with_listed_options(suite)


def _load_suite_file(resolved: ResolvedRun) -> tuple[Suite, str]:
    config = resolved.config
    if not config.task_suite:
        raise ConfigError("No suite: give --task-suite FILE.jsonl or the name of a shipped suite.")
    path = find_suite(config.task_suite)
    suite = load_suite(path, good_lines=config.good_lines, chain=resolved.suite_chains)
    return suite, file_sha256(path)


def load_paired_runs(resolved: ResolvedRun, store: Store | None = None) -> PairedRuns:
    """Return the pairs of the two runs of a configuration; ConfigError where it does more."""
    config = resolved.config
    if not (config.base_run and config.tuned_run):
        raise ConfigError("A pair is of two runs: give --base-run RUN and --tuned-run RUN.")
    if [scorer.name for scorer in resolved.scorers] != ["judge"]:
        raise ConfigError(
            "--base-run and --tuned-run go with --scorer judge, and with no other scorer or"
            " --profile."
        )
    return paired_suite(store or Store(), config.base_run, config.tuned_run)


def dry_run(run: RunConfig | ResolvedRun, suite: Suite) -> tuple[Plan, RequestCount]:
    """Return the plan of a configuration and its count of requests; open no provider."""
    resolved = resolve(run).for_suite(suite)
    PROVIDERS.require(resolved.config.provider)
    plan = resolved.plan(suite)
    _check_model_supports_config(plan.subject, resolved.config)
    prices = {ref: resolved.price_of(ref) for ref in plan.models.values()}
    return plan, count_plan(plan, suite, prices)


def start_run(
    run: RunConfig | ResolvedRun,
    store: Store,
    *,
    suite: Suite | None = None,
    on_progress: Callable[[RunProgress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
    warn: Callable[[str], None] = lambda caution: None,
    run_id: str | None = None,
) -> FinishedRun:
    """Plan and carry out a run.

    Before the first request ``warn`` is called with each caution about the model, and ``announce``
    with the run's id.
    """
    if run_id is not None:
        check_new_run_id(store, run_id)
    suite_sha256, resolved = "", resolve(run)
    if suite is None and (resolved.config.base_run or resolved.config.tuned_run):
        paired_runs = load_paired_runs(resolved, store)
        suite = paired_runs.suite
        resolved = resolved.with_options(tag={**paired_runs.tags, **resolved.config.tag})
        if paired_runs.n_left_out_by_reason:
            warn(paired_runs.left_out_message())
    elif suite is None:
        suite, suite_sha256 = load_configured_suite(resolved)
    else:
        suite = _readable_suite(suite, resolved.config)
    resolved = resolved.for_suite(suite)
    provider_by_role = resolved.open_providers()
    plan = resolved.plan(suite, {role: provider.ref for role, provider in provider_by_role.items()})
    resolved = resolved.with_options(chain_tokens=plan.chain_tokens)
    config = resolved.config
    provider_by_model = {provider.ref: provider for provider in provider_by_role.values()}
    price_by_model = resolved.provider_prices(provider_by_model.values())
    _check_model_supports_config(plan.subject, config)
    run_id = run_id or f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3] + f"-{plan.digest[:4]}"
    output = Path(config.output) if config.output else store.folder / "reports" / run_id
    check_writable(output)
    estimate = None
    if not all(isinstance(provider, InProcessProvider) for provider in provider_by_model.values()):
        estimate = count_plan(plan, suite, price_by_model).as_estimate(price_by_model[plan.subject])
    with store.writing() as connection:
        if write.has_run(connection, run_id):  # since it was looked up, another process began it
            raise run_exists_error(run_id)
        write.add_suite(connection, suite, file_sha256=suite_sha256, redact=config.redact_prompts)
        write.add_run(
            connection,
            run_id,
            plan,
            config=config.model_dump(mode="json"),
            code_version=code_version(),
            output=str(output.resolve()),
            redacted=config.redact_prompts,
            n_items=len(plan.items_of(suite)),
            estimate=estimate,
        )
        claim_run(store, run_id)
    with released_on_error(store, run_id):
        write_run_yaml(config, output)
        for caution in plan_cautions(plan, suite):
            warn(caution)
        announce(run_id)
        return _execute(
            Run(
                id=run_id,
                resolved=resolved,
                plan=plan,
                suite=suite,
                store=store,
                providers=provider_by_model,
                prices=price_by_model,
                output=output,
                on_progress=on_progress,
            )
        )


def resume_run(
    run_id: str,
    flags: Mapping[str, Any],
    store: Store,
    *,
    retry_refused: bool = False,
    on_progress: Callable[[RunProgress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> FinishedRun:
    """Go on with a run: what ended stays, the rest replays through the response log.

    ``flags`` may raise its limits; one that the run does not read raises ConfigError.
    """
    run_row = read.get_run(store, run_id)
    claim_run(store, run_id)
    with released_on_error(store, run_id):
        announce(run_id)
        plan = read.plan_from_row(run_row)
        _require_same_versions(run_id, plan)
        config = resumed_config(stored_options(run_row["config"]), flags)
        resolved = ResolvedRun(config)
        check_flags_are_read(resolved, flags)
        resolved = resolved.with_options(role=_role_addresses(plan, resolved))
        suite = _stored_suite(run_id, plan, resolved, store)
        provider_by_role = resolved.open_providers(plan.models)
        provider_by_model = {provider.ref: provider for provider in provider_by_role.values()}
        for role, ref in plan.models.items():
            if provider_by_role[role].ref != ref:
                raise ConfigError(
                    f"The model {ref} has changed since run {run_id} began; start a new run."
                )
            if isinstance(provider_by_role[role], SupportsBatches) and _has_open_batches(
                store, run_id, ref
            ):
                # what is at the vendor is picked up, whatever the flags are now
                resolved = resolved.with_options(batch=True)
        _check_model_supports_config(plan.subject, resolved.config)
        return _execute(
            Run(
                id=run_id,
                resolved=resolved,
                plan=plan,
                suite=suite,
                store=store,
                providers=provider_by_model,
                prices=resolved.provider_prices(provider_by_model.values()),
                output=Path(run_row["output"]),
                retry_refused=retry_refused,
                on_progress=on_progress,
            )
        )


def _require_same_versions(run_id: str, plan: Plan) -> None:
    """Raise ConfigError where a scorer computes other numbers than when the run began."""
    if changes := version_changes(plan):
        raise ConfigError(
            f"Run {run_id} began with other versions: {', '.join(changes)}. Score it again from its"
            " replies (cotlab doctor --rescore), or start a new run; replies in the log are not"
            " asked for again."
        )


def _role_addresses(plan: Plan, resolved: ResolvedRun) -> dict[str, str]:
    """Return the options of roles with the addresses of a plan; once some had the subject's."""
    return {
        entry: text
        for entry, text in resolved.config.role.items()
        if not entry.endswith(".base_url")
    } | {
        f"{option_of_role(role)}.base_url": ref.base_url
        for role, ref in plan.models.items()
        if role != "subject" and ref.base_url and not resolved.is_played_by_subject(role)
    }


def _stored_suite(run_id: str, plan: Plan, resolved: ResolvedRun, store: Store) -> Suite:
    """Return the suite of a stored run: from its file where the store keeps only hashes of it."""
    if not read.is_suite_redacted(store, plan.suite_digest):
        return read.get_suite(store, plan.suite_digest)
    task_suite = resolved.config.task_suite
    suite, _ = load_configured_suite(resolved, store)
    if suite.digest != plan.suite_digest and task_suite:
        suite, _ = _load_suite_file(resolved)  # runs of before asked the questions as they stand
    if suite.digest != plan.suite_digest:
        raise ConfigError(
            f"The suite {task_suite!r} has changed since run {run_id} began; start a new run."
        )
    return suite


def _has_open_batches(store: Store, run_id: str, ref: ModelRef) -> bool:
    with closing(ResponseLog(store.log_path)) as response_log:
        return bool(response_log.list_open_batches(run_id, str(ref)))


def _check_model_supports_config(ref: ModelRef, config: RunConfig) -> None:
    """Raise ConfigError before the first request for what the model would always reject."""
    family = family_of(ref.provider, ref.name)
    if config.batch and not family.batch:
        raise ConfigError(f"{ref} has no batch interface: --batch goes with openai and anthropic.")
    if family.temperature is not None and config.temperature > family.temperature:
        raise ConfigError(
            f"{ref} takes temperatures up to {family.temperature:g}, not {config.temperature:g}."
        )
    needs_check = ref.form == "prefill" and ref.endpoint == "chat" and is_checked(ref, "auto")
    if needs_check and config.probe == "never":
        raise ConfigError(
            "--given prefix is measured only on a server that is known to continue a prefix: leave"
            " out --probe never."
        )
    if ref.form == "prefill" and not family.prefill:
        raise ConfigError(
            f"{ref} does not go on from the start of its own turn: leave out --given prefix."
        )


def command_line(resolved: ResolvedRun) -> str:
    """Return the command of a run: the options that differ from those of one without flags."""
    words, config_without_flags = ["cotlab", "run"], read_config({})
    for name, field in run_fields().items():
        value = getattr(resolved.config, name)
        is_default = value in (getattr(config_without_flags, name), None)
        if is_default or unread_text(resolved, name, value):
            continue
        if field.value_type is bool:
            words.append(field.flag)
        elif field.value_type is dict:
            words += [word for key in value for word in (field.flag, f"{key}={value[key]}")]
        else:
            values = value if field.value_type is list else [value]
            words += [word for entry in values for word in (field.flag, str(entry))]
    return shlex.join(words)


def _raw_text_command(resolved: ResolvedRun, subject: ModelRef) -> str:
    """Return the command of the same run by raw text, for a server that may not continue a turn."""
    if (subject.provider, subject.form, subject.endpoint) != (RAW_TEXT_PROVIDER, "prefill", "chat"):
        return ""
    role = {**resolved.config.role, "subject.form": "completions"}
    return command_line(resolved.with_options(role=role))


def _execute(run: Run) -> FinishedRun:
    run.raw_text_command = _raw_text_command(run.resolved, run.plan.subject)

    async def execute_run() -> Outcome:
        with stopping_on_signals(run.stop_event):
            return await run.execute()

    with loaded_objects_frozen():
        with closing(run.journal):
            outcome = run_coroutine(execute_run)
        summarise(run.store, run.id, run.plan)
    return FinishedRun(run.id, outcome, run.resolved.config, run.output)
