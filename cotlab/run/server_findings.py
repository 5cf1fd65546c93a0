"""What the findings of a server mean for a plan: refusals, cautions, and records for reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Any

from cotlab.core.provider import Finding
from cotlab.core.reasoning import UNREAD_MARKUP
from cotlab.core.types import DISTRIBUTION_METRICS, ModelRef, Plan
from cotlab.providers.continuation import PREFIX_ADVICE
from cotlab.providers.finding_texts import finding_text
from cotlab.providers.probe import REFUSED_PREFIXES
from cotlab.store.server_checks import ServerCheck, list_server_checks

if TYPE_CHECKING:
    from cotlab.store.database import Store


def refusal_texts(plan: Plan, ref: ModelRef, findings: Mapping[str, Finding]) -> list[str]:
    """Return why a run is refused, a sentence or two for each reason; [] where it is not."""
    texts = []
    prefix = findings.get("prefix", Finding("continued"))
    if prefix.verdict in REFUSED_PREFIXES:
        texts.append(prefix.detail)
    elif prefix.verdict == "unknown" and prefix.detail:  # there was no reply
        texts.append(
            "The check of the server's continuation of a prefix (--given prefix) got no reply:"
            f" {prefix.detail}. {PREFIX_ADVICE}"
        )
    logprobs = findings.get("logprobs", Finding("given"))
    if ref == plan.subject and logprobs.verdict in ("absent", "refused"):
        texts += _logprob_refusals(plan, logprobs)
    long_prompt = findings.get("long_prompt", Finding("whole"))
    if long_prompt.verdict == "cut":
        texts.append(
            f"The server cuts long prompts without a word: {long_prompt.detail}. The plan's longest"
            f" prompt has {long_prompt.count:,} words. Raise the server's context (llama.cpp: -c,"
            " Ollama: num_ctx), or leave out long items."
        )
    system = findings.get("system", Finding("read"))
    if system.verdict in ("dropped", "refused"):
        texts.append(
            f"The server does not read the system prompt of {ref} ({system.detail}), which says"
            " what to judge: serve the model with a chat template that has the system role."
        )
    return texts


def _logprob_refusals(plan: Plan, finding: Finding) -> list[str]:
    reason = f" ({finding.detail})" if finding.detail else ""
    metrics = {
        str(spec.params.get("metric")) for spec in plan.scorers if spec.name == "ablation"
    } & set(DISTRIBUTION_METRICS)
    needs = [f"--metric {name}" for name in sorted(metrics)]
    needs += ["--scorer entropy"] if any(spec.name == "entropy" for spec in plan.scorers) else []
    if not needs:
        return []
    return [
        f"The server gives no log-probabilities{reason}, so {' and '.join(needs)} would have no"
        " value. Use --metric accuracy_delta or answer_change, or a server that returns"
        " logprobs with top_logprobs."
    ]


def run_cautions(plan: Plan, check: ServerCheck) -> list[str]:
    """Return the cautions of one check of a run; a form that it does not use limits nothing."""
    if is_used_form(plan, check.model):
        return caution_texts(plan, check.findings)
    if check.model.endpoint == "completions":
        return ["Raw text is not used: the server does not continue it."]
    return ["Turns are not used: requests are raw text (--form completions)."]


def doubt_texts(findings: Mapping[str, Finding]) -> list[str]:
    """Return why the numbers of a run may not be about its chains; [] where nothing says so."""
    verdicts = {name: finding.verdict for name, finding in findings.items()}
    texts = []
    if verdicts.get("prefix") == "unknown" and not findings["prefix"].detail:
        texts.append(
            "It could not be established that the server continues the assistant's message (--given"
            " prefix). Its scores mean something only if it does; --given user needs no such"
            " server."
        )
    if verdicts.get("user_chain") == "not read":
        texts.append(
            "The model does not seem to read a chain in the user's turn (--given user):"
            f" {findings['user_chain'].detail}. Its scores mean something only if it does; see"
            " whether the chat template passes the whole message on, or use --given prefix or"
            " --form completions."
        )
    return texts


def caution_texts(plan: Plan, findings: Mapping[str, Finding]) -> list[str]:
    """Return a sentence for each finding that limits what the run's numbers mean."""
    verdicts = {name: finding.verdict for name, finding in findings.items()}
    texts = doubt_texts(findings)
    if verdicts.get("greedy") == "other reply" and plan.repeats == 1:
        texts.append(
            "One request got two different replies at temperature 0: part of each effect may be"
            " noise. --repeats 3 measures the noise floor."
        )
    if verdicts.get("seed") == "ignored":
        texts.append("The server ignores the seed: another run draws other replies.")
    if verdicts.get("long_prompt") == "refused":
        texts.append(
            "The server rejects the longest prompt of the plan, and items of that length get no"
            f" value. It says: {findings['long_prompt'].detail}"
        )
    if verdicts.get("reasoning") == "not read":
        texts.append(
            f"{UNREAD_MARKUP.capitalize()} ({findings['reasoning'].detail}). A reply in this form"
            " has no answer: start the server with its reasoning parser."
        )
    if verdicts.get("reasoning") in ("hidden", "in the reply", "not read"):
        texts.append(
            "The model reasons before it answers: a reply of few tokens may end before its answer."
        )
    return texts


def is_used_form(plan: Plan, ref: ModelRef) -> bool:
    """Return whether a plan asks a checked model in the form of the check.

    One of several forms is chosen by checks of each.
    """
    return any(
        (model.provider, model.name, model.base_url, model.endpoint)
        == (ref.provider, ref.name, ref.base_url, ref.endpoint)
        for model in plan.models.values()
    )


def check_records(store: Store, run_id: str, plan: Plan) -> list[dict[str, Any]]:
    """Return the checks of a run's servers as JSON values, with what they mean for its plan."""
    return [
        {
            "model": str(check.model),
            "base_url": check.model.base_url,
            "endpoint": check.model.endpoint,
            "used": is_used_form(plan, check.model),
            "server_version": check.server_version or None,
            "checked_at": check.checked_at.astimezone(UTC).isoformat(timespec="seconds"),
            "requests": check.n_requests,
            "findings": {name: asdict(finding) for name, finding in check.findings.items()},
            "cautions": run_cautions(plan, check),
            "doubts": doubt_texts(check.findings) if is_used_form(plan, check.model) else [],
            "lines": [finding_text(name, finding) for name, finding in check.findings.items()],
        }
        for check in list_server_checks(store, run_id)
    ]


def count_check_requests(store: Store, run_id: str) -> int:
    """Return the requests that a run sent to check its servers."""
    return sum(check.n_requests for check in list_server_checks(store, run_id))
