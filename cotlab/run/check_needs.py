"""What the requests of a plan to a model lean on, which the check of its server then tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cotlab.core.placeholders import placeholder_rounds
from cotlab.core.program import Peers, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Message
from cotlab.core.types import Item, ModelRef, Plan, Suite
from cotlab.providers.capabilities import family_of
from cotlab.providers.probe import CHAIN_NUMBERS, CheckNeeds
from cotlab.run.plan import params_of
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from cotlab.text.prompts.chain import answer_prompt, continuation_prompt

N_EXAMPLE_WORDS = 1_000
"""Words of the long prompt of a check outside of a run."""


def example_needs(ref: ModelRef) -> CheckNeeds:
    """Return needs of all that a run may lean on, with a question of a shipped suite.

    Stop texts are left out: a reply is cut there, whatever the server does.
    """
    suite = load_suite(find_suite("wordproblems"))
    prompt = continuation_prompt(suite.items[0].question, (), "chat")
    request = Complete(ref, prompt.messages, top_logprobs=1)
    texts = " ".join(item.question for item in suite.items).split()[:N_EXAMPLE_WORDS]
    family = family_of(ref.provider, ref.name)
    return CheckNeeds(
        request,
        prefix=family.prefill,
        logprobs=family.logprobs,
        greedy=family.temperature is not None,
        seeded_temperature=1.0 if family.seed and family.temperature is not None else 0.0,
        system=True,
        user_chain=() if ref.form == "continuation" else _user_chain_requests(ref)[:1],
        longest=replace(request, messages=(Message("user", " ".join(texts)),)),
        n_draws=2,
    )


def plan_needs(plan: Plan, suite: Suite, ref: ModelRef) -> CheckNeeds | None:
    """Return what a plan's requests to a model lean on; None where it sends none.

    The first item stands for all, and the longest one for the length of prompts.
    """
    items = plan.items_of(suite)
    if not items:
        return None
    longest_item = max(items, key=_n_item_chars)
    requests = [
        request
        for item in dict.fromkeys((items[0].id, longest_item.id))
        for request in _item_requests(plan, suite, item)
        if isinstance(request, Complete) and request.model == ref
    ]
    needs = needs_of(requests)
    if needs is None or ref != plan.subject or not any(map(_gives_chain_to_user, requests)):
        return needs
    return replace(needs, user_chain=_user_chain_requests(ref))


def _gives_chain_to_user(request: Complete) -> bool:
    """Whether a request shows a chain in the user's turn, as `answer_prompt` writes it."""
    return any(
        heading in message.content
        for message in request.messages
        for heading in ("\n\nReasoning:\n", "\n\nReasoning so far:\n")
    )


def _user_chain_requests(ref: ModelRef) -> tuple[Complete, ...]:
    """Return requests for the answer of chains that state ``CHAIN_NUMBERS``."""
    return tuple(
        Complete(
            ref,
            answer_prompt(
                "A ticket was drawn. What is its number?",
                (
                    f"Step 1: The ticket that was drawn has the number {number}.",
                    f"Step 2: So its number is {number}.",
                ),
                "chat",
            ).messages,
            max_tokens=64,
        )
        for number in CHAIN_NUMBERS
    )


def needs_of(requests: Iterable[Complete]) -> CheckNeeds | None:
    """Return what requests to one model lean on; None where there are none."""
    requests = list(requests)
    if not requests:
        return None
    with_prefix = [request for request in requests if request.prefix]
    seeded = [r.temperature for r in requests if r.temperature > 0 and r.seed is not None]
    return CheckNeeds(
        (with_prefix or requests)[0],
        prefix=bool(with_prefix),
        logprobs=max(request.top_logprobs for request in requests),
        greedy=any(request.temperature == 0 for request in requests),
        seeded_temperature=max(seeded, default=0.0),
        stop=any(request.stop for request in requests),
        system=any(request.system for request in requests),
        longest=max(requests, key=lambda request: len(request.json_bytes)),
        n_draws=max(Counter(replace(request, sample=0).key for request in requests).values()),
    )


def _item_requests(plan: Plan, suite: Suite, item_id: str) -> Iterable[Any]:
    peers = Peers.from_suite(suite, plan.seed)
    item = next(item for item in suite.items if item.id == item_id)
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        for requests in placeholder_rounds(scorer(item, params_of(plan, spec), peers), item):
            yield from requests


def _n_item_chars(item: Item) -> int:
    return len(item.question) + sum(len(step.text) for step in item.steps)
