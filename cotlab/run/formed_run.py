"""Fix the plan of a run whose form is open: choose the form, store it, open its provider."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from cotlab.core.provider import AnyProvider
from cotlab.core.types import ModelRef, Plan, Suite
from cotlab.run.config import RunConfig
from cotlab.run.form_choice import choose_form, raw_text_model, raw_text_plan
from cotlab.run.output import write_run_yaml
from cotlab.run.plan import open_provider
from cotlab.run.server_check import CheckedRun, EarlierChecks
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Journal
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FormedRun:
    """A run whose requests have one form."""

    plan: Plan
    """Its plan."""
    config: RunConfig
    """Its configuration."""
    providers: Mapping[ModelRef, AnyProvider]
    """Opened provider of each model."""
    prices: Mapping[ModelRef, Price]
    """Price of each model."""
    checks: EarlierChecks
    """Checks that were made for the choice of the form."""


async def with_chosen_form(
    run: FormedRun, run_id: str, suite: Suite, store: Store, output: Path, journal: Journal
) -> FormedRun:
    """Return a run in the form that its server takes, which is stored with the run.

    A run that is refused keeps its plan, so that it can be resumed once the server is mended.
    """
    plan, config = run.plan, run.config
    checked = CheckedRun(plan, suite, config.probe, config.redact_prompts, store, run_id)
    with closing(ResponseLog(store.log_path, redact=config.redact_prompts)) as log:
        choice = await choose_form(checked, config, run.prices[plan.subject], log, journal)
    run = replace(run, checks=choice.checks)
    if choice.endpoint is None:
        return run
    logger.warning("%s: %s", plan.subject, choice.reason)
    journal.note("form", endpoint=choice.endpoint)
    config = config.model_copy(update={"form": choice.endpoint})
    if choice.endpoint == "completions":
        chat, raw = plan.subject, raw_text_model(plan.subject)
        plan = raw_text_plan(plan)
        providers, prices = dict(run.providers), dict(run.prices)
        await providers.pop(chat).close()
        providers[raw], prices[raw] = open_provider(raw, config), prices.pop(chat)
        run = replace(run, plan=plan, providers=providers, prices=prices)
    with store.writing() as connection:
        write.set_plan(connection, run_id, plan, config.model_dump(mode="json"))
    write_run_yaml(config, output)
    return replace(run, config=config)
