"""Decide what a run asks its servers before its first request, and what follows from the answers.

A server gets the questions of ``providers.probe`` that the requests of the plan rely on. What was
found is stored with the run; what limits its numbers has a code, by which it is refused, doubted or
has a caution.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cotlab.core.errors import ConfigError, SelfTestFailed
from cotlab.core.placeholders import placeholder_rounds
from cotlab.core.program import Peers, Scorer
from cotlab.core.provider import AnyProvider, Finding, InProcessProvider, SupportsServerCheck
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Failed
from cotlab.core.text_safety import printable_line
from cotlab.core.types import DISTRIBUTION_METRICS, Item, ModelRef, Plan, Suite
from cotlab.providers.capabilities import family_of, provider_info
from cotlab.providers.probe import (
    Findings,
    ServerNeeds,
    ask_server,
    count_prompt_tokens,
    finding_text,
)
from cotlab.run.plan import params_of
from cotlab.run.resolved import (
    RAW_TEXT_PROVIDER,
    open_provider,
)
from cotlab.run.transport.budget import price_of
from cotlab.run.transport.dispatcher import Dispatcher, SendCheck, run_coroutine
from cotlab.run.transport.limits import Limits
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.store.server_checks import ServerCheck, add_server_check, list_server_checks
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from cotlab.text.prompts.chain import continuation_prompt

if TYPE_CHECKING:
    from cotlab.store.database import Store

logger = logging.getLogger(__name__)
MAX_DETAIL_CHARS = 400
"""Characters of a finding's detail that are stored."""
MAX_CHECK_TRIES = 3
"""Tries of each request of a check after its first: a server may fail on what it asks for."""
N_EXAMPLE_TOKENS = 1_000
"""Tokens of the long prompt of a check outside of a run."""
MAX_COST_MICRO, TIMEOUT_S = 500_000, 60.0
"""Cap on the spend of a check outside of a run, in micro-dollars, and seconds to wait for a reply.
"""
LimitCode = Literal[
    "prefix_not_continued",
    "prefix_unknown",
    "no_logprobs",
    "prompts_cut",
    "reasoning_not_read",
    "answers_unparsed",
    "chain_not_read",
]
LimitKind = Literal["refused", "doubt", "caution"]


class ServerLimit(NamedTuple):
    """What an answer of a server means for the numbers of a run."""

    code: LimitCode
    """What it is."""
    kind: LimitKind
    """refused: nothing is measured; doubt: numbers pass no gate; caution: they are shown."""
    text: str
    """What was found, and what to do."""


_LIMITS: Mapping[tuple[str, str], tuple[LimitCode, LimitKind, str]] = {
    **dict.fromkeys(
        (("prefix", "new turn"), ("prefix", "refused"), ("prefix", "not established")),
        (
            "prefix_not_continued",
            "refused",
            "The server does not continue the assistant's message (--given prefix): {seen}. Its"
            " replies do not follow from the chain, so none is scored.",
        ),
    ),
    ("prefix", "unknown"): (
        "prefix_unknown",
        "doubt",
        "It could not be established that the server continues the assistant's message (--given"
        " prefix). Its scores mean something only if it does; --given user needs no such server.",
    ),
    ("long_prompt", "cut"): (
        "prompts_cut",
        "refused",
        "The server silently cuts prompts as long as the longest one of the plan: {seen}."
        " Raise the server's context (llama.cpp: -c, Ollama: num_ctx), or leave out long items.",
    ),
    ("reasoning", "not read"): (
        "reasoning_not_read",
        "caution",
        "Reasoning in an unknown format: {seen}. A reply in this form has no answer: start the"
        " server with its reasoning parser.",
    ),
    # asked of the servers of older runs
    ("user_chain", "not read"): (
        "chain_not_read",
        "doubt",
        "The model does not seem to read a chain in the user's turn (--given user): {seen}.",
    ),
}
"""(question, verdict) → what follows from it; the others limit nothing."""


def server_limits(plan: Plan, check: ServerCheck) -> list[ServerLimit]:
    """Return what a check means for a plan; [] for a form that the plan does not use."""
    if not is_used_form(plan, check.model):
        return []
    limits = []
    for name, finding in check.findings.items():
        if (entry := _LIMITS.get((name, finding.verdict))) is not None:
            code, kind, text = entry
            seen = ": ".join(filter(None, (finding.verdict, finding.detail)))
            limits.append(ServerLimit(code, kind, text.format(seen=seen)))
    logprobs = check.findings.get("logprobs", Finding("given"))
    options = _logprob_options(plan)
    if options and logprobs.verdict in ("absent", "refused"):
        reason = f" ({logprobs.detail})" if logprobs.detail else ""
        text = (
            f"The server gives no log-probabilities{reason}, so {' and '.join(options)} would have"
            " no value. Use --metric accuracy_delta or answer_change, or a server that returns"
            " logprobs with top_logprobs."
        )
        limits.append(ServerLimit("no_logprobs", "refused", text))
    return limits


def _logprob_options(plan: Plan) -> list[str]:
    """Return the options of a plan that have no value without log-probabilities."""
    metrics = {str(s.params.get("metric")) for s in plan.scorers if s.name == "ablation"}
    options = [f"--metric {name}" for name in sorted(metrics & set(DISTRIBUTION_METRICS))]
    return options + ["--scorer entropy" for s in plan.scorers if s.name == "entropy"]


def is_used_form(plan: Plan, ref: ModelRef) -> bool:
    """Return whether a plan asks a checked model in the form of the check; older runs have two."""
    return any(
        (model.provider, model.name, model.base_url, model.endpoint)
        == (ref.provider, ref.name, ref.base_url, ref.endpoint)
        for model in plan.models.values()
    )


async def check_servers(
    plan: Plan,
    suite: Suite,
    probe: str,
    dispatcher: Dispatcher,
    *,
    keep: Callable[[ServerCheck], None] = lambda check: None,
    raw_text_command: str = "",
) -> None:
    """Check each server that a plan asks, and let providers adapt to it.

    ``keep`` stores what was found; ``raw_text_command`` is the command of the same run by raw text,
    for the message of one that is refused.

    Raises
    ------
    SelfTestFailed
        If a server cannot give what the plan relies on.
    """
    refusals = []
    for ref, provider in dispatcher.providers.items():
        if not is_checked(ref, probe) or not dispatcher.sends_at_once(ref):
            continue
        needs = plan_needs(plan, suite, ref)
        if needs is None:
            continue
        check = await _check_server(provider, ref, needs, dispatcher.send_check)
        keep(check)
        verdicts = {name: finding.verdict for name, finding in check.findings.items()}
        dispatcher.job.journal.note(
            "server check", model=str(ref), endpoint=ref.endpoint, findings=verdicts
        )
        for limit in server_limits(plan, check):
            if limit.kind != "refused":
                logger.warning("%s: %s", ref, limit.text)
                continue
            advice = ""
            if limit.code == "prefix_not_continued":
                advice = _other_form_advice(ref, raw_text_command)
            refusals.append(f"{limit.text}{advice}")
    if refusals:
        raise SelfTestFailed(" ".join(refusals))


def is_checked(ref: ModelRef, probe: str) -> bool:
    """Return whether the server of a model is checked: one that the user names, or with always any.

    What a vendor's models take is known from its documentation.
    """
    info = provider_info(ref.provider)
    if probe == "never" or info.free or info.in_process:
        return False
    return probe == "always" or bool(ref.base_url and info.key_variable and not info.hosts)


def _other_form_advice(ref: ModelRef, raw_text_command: str) -> str:
    """Return how a chain can be given to a server that does not continue a prefix."""
    other_way = "give the chain in the user's turn (--given user)."
    if ref.endpoint == "completions" or ref.provider != RAW_TEXT_PROVIDER:
        return f" Instead {other_way}"
    command = raw_text_command or "--role subject.form=completions"
    return f" Ask it by raw text, `{command}`, or {other_way}"


async def _check_server(
    provider: AnyProvider, ref: ModelRef, needs: ServerNeeds, send: SendCheck
) -> ServerCheck:
    """Ask one server, and let its provider adapt to the answers.

    Raises
    ------
    SelfTestFailed
        If it answers not even the first request of the plan.
    """
    program, n_requests = ask_server(needs, sample=time.time_ns() // 1_000_000), 0
    try:
        request = next(program)
        while True:
            n_requests += 1
            # a server that answers nothing yet may still be loading its model
            reply = await send(request, MAX_CHECK_TRIES if n_requests > 1 else None)
            request = program.send(reply)
    except StopIteration as end:
        findings: Findings | Failed = end.value
    if isinstance(findings, Failed):
        raise SelfTestFailed(f"The check of the server got no reply: {findings.error}.")
    if isinstance(provider, SupportsServerCheck):
        provider.use_findings(findings)
    shortened = {
        name: replace(finding, detail=printable_line(finding.detail)[:MAX_DETAIL_CHARS])
        for name, finding in findings.items()
    }
    return ServerCheck(ref, shortened, n_requests, datetime.now(UTC))


def store_check(store: Store, run_id: str, check: ServerCheck, *, redact: bool) -> None:
    """Store a check with its run, without the server's words where the run is redacted."""
    if redact:
        findings = {name: replace(found, detail="") for name, found in check.findings.items()}
        check = replace(check, findings=findings)
    add_server_check(store, run_id, check)


def plan_needs(plan: Plan, suite: Suite, ref: ModelRef) -> ServerNeeds | None:
    """Return what a plan's requests to a model rely on; None where it sends none.

    The first item stands for all, and the longest one for the length of prompts.
    """
    items = plan.items_of(suite)
    if not items:
        return None
    longest_item = max(items, key=_n_item_chars)
    examples = items[:1] if longest_item is items[0] else (items[0], longest_item)
    requests = [
        request
        for item in examples
        for request in _item_requests(plan, suite, item)
        if isinstance(request, Complete) and request.model == ref
    ]
    if not requests:
        return None
    with_prefix = [request for request in requests if request.prefix]
    return ServerNeeds(
        (with_prefix or requests)[0],
        prefix=bool(with_prefix),
        logprobs=max(request.top_logprobs for request in requests),
        n_prompt_tokens=max(map(count_prompt_tokens, requests)),
    )


def _item_requests(plan: Plan, suite: Suite, item: Item) -> Iterable[Any]:
    peers = Peers.from_suite(suite, plan.seed)
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        for requests in placeholder_rounds(scorer(item, params_of(plan, spec), peers), item):
            yield from requests


def _n_item_chars(item: Item) -> int:
    return len(item.question) + sum(len(step.text) for step in item.steps)


def check_records(store: Store, run_id: str, plan: Plan) -> list[dict[str, Any]]:
    """Return the checks of a run's servers as JSON values, with what they mean for its plan."""
    records = []
    for check in list_server_checks(store, run_id):
        limits = [limit for limit in server_limits(plan, check) if limit.kind != "refused"]
        records.append(
            {
                "model": str(check.model),
                "base_url": check.model.base_url,
                "endpoint": check.model.endpoint,
                "used": is_used_form(plan, check.model),
                "checked_at": check.checked_at.astimezone(UTC).isoformat(timespec="seconds"),
                "requests": check.n_requests,
                "findings": {name: asdict(finding) for name, finding in check.findings.items()},
                "cautions": [limit.text for limit in limits],
                "doubts": [limit.text for limit in limits if limit.kind == "doubt"],
                "lines": [finding_text(name, finding) for name, finding in check.findings.items()],
            }
        )
    return records


def count_check_requests(store: Store, run_id: str) -> int:
    """Return the requests that a run sent to check its servers."""
    return sum(check.n_requests for check in list_server_checks(store, run_id))


class ModelCheck(NamedTuple):
    """What the check of a model's server outside of a run found."""

    check: ServerCheck
    """The findings."""
    spent_micro: int
    """Cost in micro-dollars."""


def check_model(ref: ModelRef) -> ModelCheck:
    """Ask a model's server all questions, outside of a run; return what was found.

    Raises
    ------
    ConfigError, ProviderError, SelfTestFailed
        If the model is in this process, cannot be opened or does not answer.
    """
    provider = open_provider(ref)
    if isinstance(provider, InProcessProvider):
        raise ConfigError(f"{ref} runs in this process: there is no server to check.")
    ref = provider.ref
    family = family_of(ref.provider, ref.name)
    question = load_suite(find_suite("wordproblems")).items[0].question
    request = Complete(ref, continuation_prompt(question, (), "chat").messages)
    needs = ServerNeeds(request, family.prefill, family.logprobs, N_EXAMPLE_TOKENS)
    limits = Limits(concurrency=1, cap_micro=MAX_COST_MICRO, max_tries=2, timeout_s=TIMEOUT_S)

    async def run_check() -> ModelCheck:
        with closing(ResponseLog(Path(":memory:"))) as log:
            price = price_of(ref, allow_unpriced=True)
            dispatcher = Dispatcher(
                "check", {ref: provider}, {ref: price}, log, limits, RunProgress()
            )
            try:
                check = await _check_server(provider, ref, needs, dispatcher.send_check)
                return ModelCheck(check, sum(log.get_spend("check")))
            finally:
                await dispatcher.drain()
                await provider.close()

    model_check: ModelCheck = run_coroutine(run_check)
    return model_check
