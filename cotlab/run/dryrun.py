"""Count the requests of a plan and estimate their cost, without sending any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

from cotlab.core.placeholders import SOLVER_PROVIDER, placeholder_rounds
from cotlab.core.program import Peers, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Request
from cotlab.core.types import (
    DISTRIBUTION_METRICS,
    IN_PROCESS_PROVIDERS,
    RECORDED_PROVIDER,
    Item,
    ModelRef,
    Plan,
    Suite,
)
from cotlab.metrics.votes import CRITIC_ROLE
from cotlab.providers.capabilities import family_of
from cotlab.run.plan import params_of
from cotlab.run.transport.budget import FREE_PRICE, Price
from cotlab.run.unreadable_items import find_unreadable_items

_MAX_ANSWER_TOKENS = 64
_LIKELY_ANSWER_TOKENS = 20
_LIKELY_CHAIN_TOKENS = 150
_LIKELY_REASONING_TOKENS = 600
"""Tokens of a likely reply: a request for at most ``_MAX_UPRIGHT_CHARS`` is for an answer, another
for a chain.
"""


MAX_COUNTED_ITEMS = 400
"""Items up to which every request of a plan is counted; of more, those of a sample are."""
N_SAMPLED_ITEMS, N_FIRST_ITEMS = 200, 20
"""Items of the sample. Its first items stand for themselves alone, so that what all items share is
counted once; each further one stands for an equal part of the items that are not counted too."""

PriceByModel = Mapping[ModelRef, Price]
NO_PRICES: PriceByModel = MappingProxyType({})


@dataclass(slots=True)
class RequestCount:
    """Distinct requests of a plan, and what they may cost in micro-dollars."""

    n_exact_requests: int = 0
    """Requests that do not depend on a reply."""
    n_estimated_requests: int = 0
    """Requests of later rounds, which depend on replies."""
    cost_micro: int = 0
    """Likely cost."""
    max_cost_micro: int = 0
    """Cost if every reply is as long as it may be, which is what a run reserves."""
    chain_tokens: int = 0
    """Maximum output tokens of a request for a complete chain."""
    n_chain_requests: int = 0
    """Requests for a complete chain."""
    max_chain_cost_micro: int = 0
    """Part of the maximum cost that requests for a complete chain reserve."""
    requests_by_model: Counter[str] = field(default_factory=Counter)
    """Requests by model."""
    n_items: int = 0
    """Items of the plan."""
    n_sampled_items: int | None = None
    """Items whose requests were counted; None if those of all items were."""
    seen_keys: set[str] = field(default_factory=set, repr=False)
    """Keys of the requests that are counted."""

    @property
    def n_requests(self) -> int:
        """All requests, certain or estimated."""
        return self.n_exact_requests + self.n_estimated_requests

    @property
    def n_computed_requests(self) -> int:
        """Requests that a solver of this process computes: no model is asked."""
        return sum(
            n
            for name, n in self.requests_by_model.items()
            if name.startswith(f"{SOLVER_PROVIDER}:")
        )

    @property
    def sample_text(self) -> str:
        """The sentence on a count of a sample of the items; "" if all were counted."""
        if self.n_sampled_items is None:
            return ""
        return f"An estimate: counted on {self.n_sampled_items:,} of {self.n_items:,} items."

    def add(
        self, request: Request, prices: PriceByModel, *, is_first_round: bool, n_alike: int = 1
    ) -> None:
        """Count a request once, whichever scorer sends it, for ``n_alike`` items.

        A model without a price is free.
        """
        if request.key in self.seen_keys:
            return
        self.seen_keys.add(request.key)
        self.n_exact_requests += n_alike * is_first_round
        self.n_estimated_requests += n_alike * (not is_first_round)
        self.requests_by_model[f"{request.model.provider}:{request.model.name}"] += n_alike
        price = prices.get(request.model, FREE_PRICE)
        max_cost = n_alike * price.max_cost(request)
        self.cost_micro += 0 if price.is_free else n_alike * _likely_cost(request, price)
        self.max_cost_micro += max_cost
        if isinstance(request, Complete) and request.max_tokens == self.chain_tokens:
            self.n_chain_requests += n_alike
            self.max_chain_cost_micro += max_cost

    def as_estimate(self, price: Price) -> dict[str, Any]:
        """Return what is stored with a run, to be compared with what it did cost."""
        sampled = {} if self.n_sampled_items is None else {"sampled_items": self.n_sampled_items}
        return {
            **sampled,
            "requests": self.n_requests,
            "cost_usd": self.cost_micro / 1e6 if price.is_known else None,
            "most_usd": self.max_cost_micro / 1e6 if price.is_known else None,
            "price_in_usd_per_million": float(price.input_price),
            "price_out_usd_per_million": float(price.output_price),
            "price_source": price.source,
        }


def count_plan(plan: Plan, suite: Suite, prices: PriceByModel = NO_PRICES) -> RequestCount:
    """Count the requests of a plan; a request of several scorers counts once.

    Of more than ``MAX_COUNTED_ITEMS`` items ``N_SAMPLED_ITEMS`` are counted, drawn at random with
    the plan's seed; the count then says so.
    """
    donor_ring = Peers.from_suite(suite, plan.seed)
    items: Sequence[Item] = plan.items_of(suite)
    n_alike_by_item = [1] * len(items)
    count = RequestCount(chain_tokens=plan.chain_tokens, n_items=len(items))
    if len(items) > MAX_COUNTED_ITEMS:
        # neighbours on the ring, which the seed decides, share donors as all items do
        planned_ids = {item.id for item in items}
        ring_items = (item for item in donor_ring.ring_items if item.id in planned_ids)
        n_sharing = N_SAMPLED_ITEMS - N_FIRST_ITEMS
        n_each, n_left = divmod(len(items) - N_FIRST_ITEMS, n_sharing)
        items = list(islice(ring_items, N_SAMPLED_ITEMS))
        n_alike_by_item = [1] * N_FIRST_ITEMS + [n_each + (k < n_left) for k in range(n_sharing)]
        count.n_sampled_items = len(items)
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        params = params_of(plan, spec)
        if scorer.prepare is not None and items:
            rounds = placeholder_rounds(scorer.prepare(suite, params), suite.items[0])
            for request in chain.from_iterable(rounds):
                count.add(request, prices, is_first_round=False)
        for item, n_alike in zip(items, n_alike_by_item, strict=True):
            rounds = placeholder_rounds(scorer(item, params, donor_ring), item)
            for number, requests in enumerate(rounds):
                for request in requests:
                    count.add(request, prices, is_first_round=number == 0, n_alike=n_alike)
    return count


def plan_cautions(plan: Plan, suite: Suite) -> list[str]:
    """Return a sentence for each limitation of the model, or of the items, that affects a plan."""
    subject = plan.subject
    family = family_of(subject.provider, subject.name)
    cautions = _file_cautions(plan, suite)
    unreadable = find_unreadable_items(plan, suite)
    if unreadable is not None:
        cautions.append(unreadable.caution(subject.name))
    if family.temperature is None:
        cautions.append(
            f"{subject.name} takes no temperature, so its replies vary: --repeats 3 measures by how"
            " much."
        )
    critic = plan.models.get(CRITIC_ROLE)
    if critic is not None and plan.critic_votes > 1 and plan.temperature == 0:
        critic_family = family_of(critic.provider, critic.name)
        if critic_family.temperature is not None:
            cautions.append(
                f"{plan.critic_votes} votes of {critic.name} at temperature 0 repeat one another:"
                " --temperature 1."
            )
    metrics = {str(spec.params.get("metric")) for spec in plan.scorers} & set(DISTRIBUTION_METRICS)
    if metrics and not family.logprobs:
        cautions.append(
            f"{subject.name} gives no log-probabilities: {', '.join(sorted(metrics))} will be"
            " undefined."
        )
    entropy_chain = next(
        (spec.params["chain"] for spec in plan.scorers if spec.name == "entropy"), None
    )
    if entropy_chain is not None and not family.logprobs:
        cautions.append(
            f"{subject.name} gives no log-probabilities: its entropy will be undefined."
        )
    elif entropy_chain == "reference" and subject.provider not in IN_PROCESS_PROVIDERS:
        cautions.append(
            f"{subject.name} tells the entropy of its own chain only, not of a given one: --chain"
            " own."
        )
    return cautions


def _file_cautions(plan: Plan, suite: Suite) -> list[str]:
    """Return a sentence where questions came with files that no request holds."""
    n_items = sum(bool(item.meta.get("files_given")) for item in suite.items)
    if not n_items or plan.subject.provider == RECORDED_PROVIDER:
        return []
    return [
        f"{n_items} of {len(suite.items)} questions came with images or other files, of which only"
        f" the names were kept: {plan.subject.name} is asked without them."
    ]


def _likely_cost(request: Request, price: Price) -> int:
    """Return a likely cost: a token is four characters, a reply an answer or a short chain."""
    if not isinstance(request, Complete):
        return price.max_cost(request)
    n_characters = (
        sum(len(message.content) for message in request.messages)
        + len(request.system)
        + len(request.prefix)
    )
    reply_tokens = min(
        _LIKELY_ANSWER_TOKENS if request.max_tokens <= _MAX_ANSWER_TOKENS else _LIKELY_CHAIN_TOKENS,
        request.max_tokens,
    )
    reasoning_tokens = min(_LIKELY_REASONING_TOKENS, price.headroom)
    return round(
        price.input_price * (n_characters // 4 + 1)
        + price.output_price * (reply_tokens + reasoning_tokens)
    )
