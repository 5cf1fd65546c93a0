"""Check the servers of a run before its first request, and refuse what they cannot give."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cotlab.core.errors import CotlabError, SelfTestFailed
from cotlab.core.provider import AnyProvider, Finding, SupportsServerCheck
from cotlab.core.requests import Failed
from cotlab.core.types import ModelRef, Plan, Suite
from cotlab.providers.capabilities import provider_info
from cotlab.providers.probe import CHECKS, MAX_REQUESTS, CheckNeeds, run_checks
from cotlab.run.check_needs import plan_needs
from cotlab.run.server_findings import caution_texts, refusal_texts
from cotlab.run.transport.dispatcher import Dispatcher, SendCheck
from cotlab.store.server_checks import (
    ServerCheck,
    add_server_check,
    find_recent_check,
)

if TYPE_CHECKING:
    from cotlab.store.database import Store

logger = logging.getLogger(__name__)
MAX_DETAIL_CHARS = 400
"""Characters of a finding's detail that are stored."""
MAX_CHECK_TRIES = 3
"""Tries of each request of a check after its first: a server may fail on what it asks for."""
_GOOD_VERDICTS = {
    "prefix": ("continued", "echoed"),
    "logprobs": ("given",),
    "reasoning": ("none", "hidden", "in the reply"),
    "user_chain": ("read",),
    "long_prompt": ("whole",),
    "greedy": ("same reply", "other reply"),
    "system": ("read",),
    "stop": ("honoured", "ignored", "refused"),
    "seed": ("honoured", "ignored"),
    "choices": ("given", "one reply", "refused"),
}
"""Verdicts that are used again by a later run; any other is checked anew."""


@dataclass(frozen=True, slots=True)
class EarlierChecks:
    """Checks of servers that chose the form of a run's requests, and are not made again."""

    outcome_by_model: Mapping[ModelRef, ServerCheck | CotlabError] = field(default_factory=dict)
    """What was found of a model's server, or the error that ended the check."""
    refusal: str = ""
    """Why another form is not used, for the message of a run that is refused; "" without one."""


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """The run whose servers are checked, or one scorer's call through the Python interface."""

    plan: Plan
    """What is measured."""
    suite: Suite
    """All items of the suite."""
    probe: str
    """auto, always or never."""
    redact: bool = False
    """Whether the server's messages are left out of what is stored."""
    store: Store | None = None
    """Store that keeps the findings; None for none."""
    run_id: str = ""
    """Id of the run; "" without a store."""
    earlier: EarlierChecks = EarlierChecks()
    """Checks that this process has made for the run before."""


async def check_servers(
    run: CheckedRun, dispatcher: Dispatcher, providers: Mapping[ModelRef, AnyProvider]
) -> None:
    """Check each server that the run asks, store what was found, and let providers adapt to it.

    Raises
    ------
    SelfTestFailed
        If a server cannot give what the plan leans on.
    CotlabError
        If the check that was made before this one failed.
    """
    refusals = []
    for ref, provider in providers.items():
        if not is_checked(ref, run.probe) or not dispatcher.sends_at_once(ref):
            continue
        needs = plan_needs(run.plan, run.suite, ref)
        if needs is None:
            continue
        earlier = run.earlier.outcome_by_model.get(ref)
        if isinstance(earlier, CotlabError):
            raise earlier
        if earlier is not None:
            check = earlier
            if isinstance(provider, SupportsServerCheck):
                provider.use_findings(check.findings)
        else:
            check = await check_and_store(run, dispatcher, provider, ref, needs)
        refusals += refusal_texts(run.plan, ref, check.findings)
        for caution in caution_texts(run.plan, check.findings):
            logger.warning("%s: %s", ref, caution)
    if refusals:
        raise SelfTestFailed(" ".join(filter(None, [*refusals, run.earlier.refusal])))


async def check_and_store(
    run: CheckedRun,
    dispatcher: Dispatcher,
    provider: AnyProvider,
    ref: ModelRef,
    needs: CheckNeeds,
    max_requests: int = MAX_REQUESTS,
) -> ServerCheck:
    """Check one server of a run, store what was found with the run, and return it.

    Raises
    ------
    SelfTestFailed
        If it answers not even the first request of the plan.
    """
    calls_before = count_calls(dispatcher)
    check = await check_server(provider, ref, needs, dispatcher.send_check, run, max_requests)
    check = replace(check, n_requests=count_calls(dispatcher) - calls_before)
    store_check(run, dispatcher, check)
    return check


def store_check(run: CheckedRun, dispatcher: Dispatcher, check: ServerCheck) -> None:
    """Store a check with its run, without the server's words where the run is redacted."""
    if run.store is not None:
        add_server_check(run.store, run.run_id, _redacted(check) if run.redact else check)
    dispatcher.job.journal.note(
        "server check",
        model=str(check.model),
        endpoint=check.model.endpoint,
        findings={name: finding.verdict for name, finding in check.findings.items()},
    )


def is_checked(ref: ModelRef, probe: str) -> bool:
    """Return whether the server of a model is checked: one that the user names, or with always any.

    What a vendor's models take is known from its documentation.
    """
    info = provider_info(ref.provider)
    if probe == "never" or info.free or info.in_process:
        return False
    return probe == "always" or bool(ref.base_url and info.key_variable and not info.hosts)


async def check_server(
    provider: AnyProvider,
    ref: ModelRef,
    needs: CheckNeeds,
    send: SendCheck,
    run: CheckedRun | None = None,
    max_requests: int = MAX_REQUESTS,
    n_reserved: int = 0,
) -> ServerCheck:
    """Check one server, as far as no earlier check of a day says the same.

    ``n_reserved`` requests are left where it continues no prefix.

    Raises
    ------
    SelfTestFailed
        If it answers not even the first request of the plan.
    """
    version, stored_check = "", None
    if isinstance(provider, SupportsServerCheck):
        version = await provider.server_version()
    is_identified = bool(version) or bool(provider_info(ref.provider).hosts)
    if run is not None and run.store is not None and run.probe == "auto" and is_identified:
        stored_check = find_recent_check(run.store, ref, version)
    findings = _stored_findings(stored_check, needs)
    names = tuple(name for name in CHECKS if needs.demand(name) and name not in findings)
    checked_at = stored_check.checked_at if stored_check and findings else datetime.now(UTC)
    n_requests = 0
    if names and names != ("reasoning",):
        program = run_checks(needs, names, time.time_ns() // 1_000_000, max_requests, n_reserved)
        try:
            request = next(program)
            while True:
                n_requests += 1
                # a server that answers nothing yet may still be loading its model
                max_tries = MAX_CHECK_TRIES if n_requests > 1 else None
                request = program.send(await send(request, max_tries))
        except StopIteration as end:
            if isinstance(end.value, Failed):
                raise SelfTestFailed(
                    f"The check of the server got no reply: {end.value.error}."
                ) from None
            findings |= end.value
    if isinstance(provider, SupportsServerCheck):
        provider.use_findings(findings)
    ordered = {name: _shortened(findings[name]) for name in CHECKS if name in findings}
    return ServerCheck(ref, version, ordered, n_requests, checked_at)


def _stored_findings(stored_check: ServerCheck | None, needs: CheckNeeds) -> dict[str, Finding]:
    """Return the findings of an earlier check that say enough for these needs."""
    return {
        name: finding
        for name, finding in (stored_check.findings if stored_check else {}).items()
        if name in CHECKS
        and finding.verdict in _GOOD_VERDICTS[name]
        and (name != "long_prompt" or (finding.count or 0) >= needs.demand(name))
        and (name != "logprobs" or (finding.count or 0) >= needs.demand(name))
    }


def _shortened(finding: Finding) -> Finding:
    return replace(finding, detail=finding.detail[:MAX_DETAIL_CHARS])


def _redacted(check: ServerCheck) -> ServerCheck:
    """Return a check without what the server wrote."""
    findings = {name: replace(finding, detail="") for name, finding in check.findings.items()}
    return replace(check, findings=findings)


def count_calls(dispatcher: Dispatcher) -> int:
    """Return the requests that a run has sent to servers."""
    job = dispatcher.job
    return job.response_log.get_call_counts(job.run_id)["calls"]
