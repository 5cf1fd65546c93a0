"""Choose how a server is asked where ``--form auto`` leaves it open: in turns, or by raw text.

The choice is made before the plan is fixed, since requests and the plan's digest name the form:
from the replies in the log, else from a check of the server. A resumed run keeps what was chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from cotlab.core.errors import CotlabError, ProviderError
from cotlab.core.placeholders import placeholder_rounds
from cotlab.core.program import Peers
from cotlab.core.provider import AnyProvider, Finding, SupportsRawText, SupportsServerCheck
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete
from cotlab.core.text_safety import printable_line
from cotlab.core.types import Endpoint, ModelRef, Plan, Suite
from cotlab.providers.probe import MAX_REQUESTS, REFUSED_PREFIXES, CheckNeeds
from cotlab.run.check_needs import plan_needs
from cotlab.run.config import RunConfig
from cotlab.run.plan import configured_limits, open_provider, params_of
from cotlab.run.roles import RAW_TEXT_PROVIDER, SERVER_TEMPLATE
from cotlab.run.server_check import (
    CheckedRun,
    EarlierChecks,
    check_and_store,
    check_server,
    count_calls,
    is_checked,
    store_check,
)
from cotlab.run.transport.budget import Price
from cotlab.run.transport.context import Journal
from cotlab.run.transport.dispatcher import Dispatcher, SendCheck
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.store.server_checks import ServerCheck, find_latest_check, find_recent_check

if TYPE_CHECKING:
    from cotlab.store.database import Store

GOOD_PREFIXES = ("continued", "echoed")
"""Verdicts on a prefix under which replies follow from it."""
TEMPLATE_TIMEOUT_S = 30.0
"""Seconds to wait for a server that applies its chat template."""
N_RAW_TEXT_REQUESTS = 3
"""Requests that are left for raw text: a reply, and two beginnings of it to be continued."""
FORM_LABELS: Mapping[Endpoint, str] = {
    "chat": "in turns (--form chat)",
    "completions": "by raw text (--form completions)",
}
"""Endpoint → how it is named in messages."""


@dataclass(frozen=True, slots=True)
class FormChoice:
    """How a server is asked, and why."""

    endpoint: Endpoint | None
    """The chosen endpoint; None where nothing was chosen, so that the plan stays as it is."""
    reason: str = ""
    """A sentence about it."""
    checks: EarlierChecks = field(default_factory=EarlierChecks)
    """Checks that were made for the choice."""


def is_form_open(config: RunConfig, subject: ModelRef) -> bool:
    """Return whether the check of the server decides how it is asked."""
    return (
        (config.form, config.chat_template) == ("auto", SERVER_TEMPLATE)
        and subject.provider == RAW_TEXT_PROVIDER
        and (subject.form, subject.endpoint) == ("prefill", "chat")
        and is_checked(subject, config.probe)
    )


def raw_text_model(ref: ModelRef) -> ModelRef:
    """Return a model as one that is asked by raw text."""
    return replace(ref, endpoint="completions")


def raw_text_plan(plan: Plan) -> Plan:
    """Return a plan whose subject is asked by raw text, in every role that it plays."""
    subject = plan.subject
    models = {
        role: raw_text_model(ref) if ref == subject else ref for role, ref in plan.models.items()
    }
    return replace(plan, models=models)


async def choose_form(
    run: CheckedRun, config: RunConfig, price: Price, log: ResponseLog, journal: Journal
) -> FormChoice:
    """Choose how the subject of a run is asked, by at most ten requests under the run's id.

    Chat is kept where the server continues the assistant's message there; raw text is chosen where
    it does not and raw text is continued. Where neither is, the run is refused by its own check,
    which takes over what was found here.
    """
    assert run.store is not None
    chat, raw = run.plan.subject, raw_text_model(run.plan.subject)
    needs = plan_needs(run.plan, run.suite, chat)
    raw_needs = plan_needs(raw_text_plan(run.plan), run.suite, raw)
    if needs is None or raw_needs is None or not needs.prefix:
        return FormChoice(None)
    if endpoint := _logged_endpoint(run.plan, run.suite, log):
        return FormChoice(endpoint, _logged_text(endpoint))
    providers = {ref: open_provider(ref, config) for ref in (chat, raw)}
    dispatcher = Dispatcher(
        run.run_id,
        providers,
        {chat: price, raw: price},
        log,
        configured_limits(config),
        RunProgress(),
        journal,
    )
    try:
        return await _check_forms(run, dispatcher, providers, (needs, raw_needs))
    finally:
        await dispatcher.drain()
        for provider in providers.values():
            await provider.close()


async def _check_forms(
    run: CheckedRun,
    dispatcher: Dispatcher,
    providers: Mapping[ModelRef, AnyProvider],
    needs_by_form: tuple[CheckNeeds, CheckNeeds],
) -> FormChoice:
    (chat, chat_provider), (raw, raw_provider) = providers.items()
    needs, raw_needs = needs_by_form
    check = await _refused_before(run, chat, raw, chat_provider)
    if check is not None:
        store_check(run, dispatcher, check)
    else:
        try:
            check = await check_and_store(run, dispatcher, chat_provider, chat, needs)
        except CotlabError as error:
            return FormChoice(None, checks=EarlierChecks({chat: error}))
    prefix = check.findings.get("prefix", Finding("unknown"))
    if prefix.verdict not in REFUSED_PREFIXES:
        endpoint: Literal["chat"] | None = "chat" if prefix.verdict in GOOD_PREFIXES else None
        reason = f"The server is asked {FORM_LABELS['chat']}: it continues the assistant's message."
        return FormChoice(endpoint, reason if endpoint else "", EarlierChecks({chat: check}))
    if problem := await raw_text_problem(raw_provider, raw_needs.request):
        return _neither_form(chat, check, problem)
    n_before = count_calls(dispatcher)
    max_requests = max(N_RAW_TEXT_REQUESTS, MAX_REQUESTS - check.n_requests)
    try:
        raw_check = await check_and_store(
            run, dispatcher, raw_provider, raw, raw_needs, max_requests
        )
    except CotlabError as error:
        raw_check = _failed_check(raw, error, count_calls(dispatcher) - n_before)
        store_check(run, dispatcher, raw_check)
    if refusal := _prefix_refusal(raw_check):
        return _neither_form(chat, check, refusal)
    return FormChoice(
        "completions",
        f"The server is asked {FORM_LABELS['completions']}: in turns it does not continue the"
        f" assistant's message ({prefix.verdict}).",
        EarlierChecks({raw: raw_check}),
    )


def _neither_form(chat: ModelRef, check: ServerCheck, refusal: str) -> FormChoice:
    """Return the choice of none, with which the run is refused."""
    text = f"Raw text (--form completions) was tried as well. {refusal}"
    return FormChoice(None, checks=EarlierChecks({chat: check}, text))


async def raw_text_problem(provider: AnyProvider, request: Complete) -> str:
    """Return why no raw text can be made of a request; "" where it can. The model is not asked."""
    if not isinstance(provider, SupportsRawText):
        return f"{request.model} takes no raw text."
    try:
        async with asyncio.timeout(TEMPLATE_TIMEOUT_S):
            await provider.check_template(request)
    except ProviderError as error:
        return printable_line(error)
    except TimeoutError:
        return f"Its chat template was not applied within {TEMPLATE_TIMEOUT_S:.0f} s."
    return ""


async def _refused_before(
    run: CheckedRun, chat: ModelRef, raw: ModelRef, provider: AnyProvider
) -> ServerCheck | None:
    """Return a check of the last day that refused chat where raw text was continued.

    Alone, a refusal is checked anew, as it may be mended; here nothing is refused.
    """
    if run.store is None or run.probe != "auto" or not isinstance(provider, SupportsServerCheck):
        return None
    version = await provider.server_version()
    if not version:
        return None
    check, raw_check = (find_recent_check(run.store, ref, version) for ref in (chat, raw))
    is_known = _prefix_verdict(check) in REFUSED_PREFIXES and (
        _prefix_verdict(raw_check) in GOOD_PREFIXES
    )
    return replace(check, n_requests=0) if check is not None and is_known else None


async def check_raw_text(
    provider: AnyProvider,
    ref: ModelRef,
    request: Complete,
    send: SendCheck,
) -> ServerCheck:
    """Check by three requests whether a server continues raw text; an error is a refusal."""
    needs = CheckNeeds(replace(request, model=ref, top_logprobs=0), prefix=True)
    try:
        return await check_server(provider, ref, needs, send, max_requests=N_RAW_TEXT_REQUESTS)
    except CotlabError as error:
        return _failed_check(ref, error, 0)


def refused_raw_text(ref: ModelRef, problem: str) -> ServerCheck:
    """Return the check of raw text that cannot be made."""
    return ServerCheck(ref, "", {"prefix": Finding("refused", problem)}, 0, datetime.now(UTC))


def _failed_check(ref: ModelRef, error: CotlabError, n_requests: int) -> ServerCheck:
    return replace(refused_raw_text(ref, printable_line(error)), n_requests=n_requests)


def _prefix_verdict(check: ServerCheck | None) -> str:
    return check.findings.get("prefix", Finding("")).verdict if check is not None else ""


def _prefix_refusal(check: ServerCheck) -> str:
    """Return why replies to raw text do not follow from a prefix; "" where nothing says so."""
    prefix = check.findings.get("prefix", Finding("unknown", "it was not checked"))
    is_refused = prefix.verdict in REFUSED_PREFIXES or prefix.verdict == "unknown"
    return prefix.detail if is_refused else ""


def form_notes(config: RunConfig, plan: Plan, suite: Suite, store: Store) -> list[str]:
    """Return a sentence on what ``--form auto`` would choose, and why; [] where it is settled."""
    subject = replace(plan.subject, endpoint="chat")
    models = {**plan.models, "subject": subject}
    reason = expected_form(config, replace(plan, models=models), suite, store).reason
    return [reason] if reason else []


def expected_form(config: RunConfig, plan: Plan, suite: Suite, store: Store) -> FormChoice:
    """Return what a run of a plan would choose, as far as that is known without asking the server.

    The endpoint is None, and the reason "", where there is nothing to choose.
    """
    if not is_form_open(config, plan.subject):
        return FormChoice(None)
    needs = plan_needs(plan, suite, plan.subject)
    if needs is None or not needs.prefix:
        return FormChoice(None)
    if store.log_path.exists():
        with closing(ResponseLog(store.log_path)) as log:
            if endpoint := _logged_endpoint(plan, suite, log):
                return FormChoice(endpoint, _logged_text(endpoint))
    if config.probe == "auto":
        check, raw_check = (
            find_latest_check(store, ref) for ref in (plan.subject, raw_text_model(plan.subject))
        )
        verdict = _prefix_verdict(check)
        is_refused = verdict in REFUSED_PREFIXES and _prefix_verdict(raw_check) in GOOD_PREFIXES
        if check is not None and (verdict in GOOD_PREFIXES or is_refused):
            chosen: Endpoint = "completions" if is_refused else "chat"
            result = f"is not continued ({verdict})" if is_refused else "is continued"
            return FormChoice(
                chosen,
                f"--form auto: the server would be asked {FORM_LABELS[chosen]}. In turns the"
                f" assistant's message {result}, as found at {check.checked_at:%Y-%m-%d %H:%M} UTC"
                f" ({printable_line(check.server_version)}).",
            )
    return FormChoice(
        None,
        "--form auto: how the server is asked is not known before its check, with which the run"
        f" begins: {FORM_LABELS['chat']} where it continues the assistant's message, else"
        f" {FORM_LABELS['completions']}.",
    )


def _logged_text(endpoint: Endpoint) -> str:
    return (
        f"--form auto: the server is asked {FORM_LABELS[endpoint]}, as the replies to the plan's"
        " first requests are in the log in that form."
    )


def _logged_endpoint(plan: Plan, suite: Suite, log: ResponseLog) -> Endpoint | None:
    """Return the form in which the log has the reply to each first request; None without one."""
    for form_plan in (plan, raw_text_plan(plan)):
        is_logged = False
        for key in _first_keys(form_plan, suite):
            is_logged = log.get(key) is not None
            if not is_logged:
                break
        if is_logged:
            return form_plan.subject.endpoint
    return None


def _first_keys(plan: Plan, suite: Suite) -> Iterator[str]:
    """Yield the keys of the requests to the subject that do not depend on a reply."""
    peers = Peers.from_suite(suite, plan.seed)
    for item in plan.items_of(suite):
        for spec in plan.scorers:
            program = SCORERS[spec.name](item, params_of(plan, spec), peers)
            for request in next(iter(placeholder_rounds(program, item)), ()):
                if isinstance(request, Complete) and request.model == plan.subject:
                    yield request.key
