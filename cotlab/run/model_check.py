"""Check a model's server outside of a run, as ``cotlab doctor`` and the page New run do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cotlab.core.errors import ConfigError, NotFound, ProviderError
from cotlab.core.provider import (
    AnyProvider,
    Finding,
    InProcessProvider,
    SupportsModelList,
    SupportsServerCheck,
)
from cotlab.core.requests import Complete, Failed, Message
from cotlab.core.text_safety import printable_line
from cotlab.core.types import Form, ModelRef
from cotlab.providers.capabilities import provider_info
from cotlab.providers.probe import REFUSED_PREFIXES
from cotlab.run.check_needs import example_needs
from cotlab.run.form_choice import (
    N_RAW_TEXT_REQUESTS,
    check_raw_text,
    raw_text_model,
    raw_text_problem,
    refused_raw_text,
)
from cotlab.run.plan import open_provider
from cotlab.run.roles import NO_TEMPLATE, RAW_TEXT_PROVIDER, SERVER_TEMPLATE
from cotlab.run.server_check import check_server
from cotlab.run.transport.budget import price_of
from cotlab.run.transport.dispatcher import Dispatcher, SendCheck, run_coroutine
from cotlab.run.transport.limits import Limits
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.store.server_checks import ServerCheck, add_server_check

if TYPE_CHECKING:
    from cotlab.store.database import Store

MAX_COST_MICRO, TIMEOUT_S = 500_000, 60.0
"""Cap on the spend of a check outside of a run, in micro-dollars, and seconds to wait for a reply.
"""
MODEL_LIST_TIMEOUT_S, MAX_LISTED_MODELS = 10.0, 20
"""Seconds to wait for the list of a server's models, and how many of them a message names."""


class ModelCheck(NamedTuple):
    """What the check of a model's server found."""

    check: ServerCheck
    """Findings of the form that was asked for."""
    raw_text_check: ServerCheck | None
    """Whether raw text is continued, where the assistant's message is not; None where it was not
    checked."""
    spent_micro: int
    """Cost in micro-dollars."""
    caution: str
    """Why the name of the model may be wrong; "" where the server lists it or has no list."""

    @property
    def checks(self) -> list[ServerCheck]:
        """All checks that were made."""
        return [self.check, *filter(None, [self.raw_text_check])]

    @property
    def n_requests(self) -> int:
        """Requests that were sent."""
        return sum(check.n_requests for check in self.checks)


def check_model(
    ref: ModelRef, store: Store | None = None, chat_template: str = "server"
) -> ModelCheck:
    """Check a model's server outside of a run; return what was found.

    Runs of the next day use it, where there is a store.

    Raises
    ------
    ConfigError, ProviderError, SelfTestFailed
        If the model is in this process, cannot be opened, is not in the list of models of a server
        that the user names, or does not answer.
    """
    if chat_template != SERVER_TEMPLATE:
        form: Form = "continuation" if chat_template == NO_TEMPLATE else ref.form
        ref = replace(raw_text_model(ref), form=form)
        if ref.provider != RAW_TEXT_PROVIDER:
            raise ConfigError(f"--chat-template goes with {RAW_TEXT_PROVIDER}, not {ref.provider}.")
    provider = open_provider(ref, chat_template=chat_template)
    if isinstance(provider, InProcessProvider):
        raise ConfigError(f"{ref} runs in this process: there is no server to check.")
    providers: dict[ModelRef, AnyProvider] = {provider.ref: provider}
    if ref.provider == RAW_TEXT_PROVIDER and ref.endpoint == "chat":
        raw_ref = raw_text_model(provider.ref)
        providers[raw_ref] = open_provider(raw_ref)
    price = price_of(ref, allow_unpriced=True)
    limits = Limits(concurrency=1, cap_micro=MAX_COST_MICRO, max_tries=2, timeout_s=TIMEOUT_S)

    async def run_check() -> ModelCheck:
        with closing(ResponseLog(Path(":memory:"))) as log:
            dispatcher = Dispatcher(
                "check", providers, dict.fromkeys(providers, price), log, limits, RunProgress()
            )
            try:
                caution = await check_model_name(provider, provider.ref, dispatcher.send_check)
                check, raw_text_check = await _check_both_forms(providers, dispatcher.send_check)
                return ModelCheck(check, raw_text_check, sum(log.get_spend("check")), caution)
            finally:
                await dispatcher.drain()
                for opened in providers.values():
                    await opened.close()

    model_check: ModelCheck = run_coroutine(run_check)
    if store is not None:
        for made_check in model_check.checks:
            add_server_check(store, "", made_check)
    return model_check


async def _check_both_forms(
    providers: Mapping[ModelRef, AnyProvider], send: SendCheck
) -> tuple[ServerCheck, ServerCheck | None]:
    """Check the first provider, and the second one where the first continues no prefix."""
    (ref, provider), *others = providers.items()
    needs = example_needs(ref)
    problem = ""
    for raw_ref, raw_provider in others:
        problem = await raw_text_problem(raw_provider, replace(needs.request, model=raw_ref))
    n_reserved = N_RAW_TEXT_REQUESTS if others and not problem else 0
    check = await check_server(provider, ref, needs, send, n_reserved=n_reserved)
    prefix = check.findings.get("prefix", Finding("continued"))
    if not others or prefix.verdict not in REFUSED_PREFIXES:
        return check, None
    if problem:
        return check, refused_raw_text(raw_ref, problem)
    return check, await check_raw_text(raw_provider, raw_ref, needs.request, send)


async def check_model_name(provider: AnyProvider, ref: ModelRef, send: SendCheck) -> str:
    """Return a caution where the server does not list the model and answers all the same.

    "" where it lists the model, or has no list.

    Raises
    ------
    ConfigError
        Where a server that the user names lists other models and answers no request for this one.
    """
    if not isinstance(provider, SupportsModelList):
        return ""
    try:
        async with asyncio.timeout(MODEL_LIST_TIMEOUT_S):
            names = list(await provider.models())
    except (ProviderError, TimeoutError):  # the check itself says what is wrong with the server
        return ""
    if not names or {ref.name, f"{ref.name}:latest"} & {*names}:
        return ""
    listed = ", ".join(printable_line(name) for name in names[:MAX_LISTED_MODELS])
    if len(names) > MAX_LISTED_MODELS:
        listed += f" and {len(names) - MAX_LISTED_MODELS} more"
    text = f"The server does not list the model {ref.name}; it lists: {listed}."
    version = ""
    if isinstance(provider, SupportsServerCheck):
        version = await provider.server_version()
    if version.startswith("llama.cpp"):
        return f"{text} It answers with its one model, whatever name is given."
    if provider_info(ref.provider).hosts:
        return f"{text} The name may be an alias."
    try:
        reply = await send(Complete(ref, (Message("user", "Say 7."),), max_tokens=16))
    except NotFound:
        reply = None
    if reply is None or isinstance(reply, Failed):
        raise ConfigError(f"{text} Give one of these names.")
    answered_as = printable_line(reply.model or "no name")
    return (
        f"{text} It answers to that name, as {answered_as}: it may load models on demand, or take"
        " any name."
    )
