"""How many requests a plan needs, and what they may cost, without asking anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cotlab.core.placeholders import rounds_of
from cotlab.core.program import Params, Peers, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Request
from cotlab.core.types import Item, ModelRef, Plan, Suite
from cotlab.core.vocabulary import DISTRIBUTION_METRICS, IN_PROCESS
from cotlab.providers.capabilities import family_of
from cotlab.run.plan import params_of
from cotlab.run.transport.budget import FREE, Price

_SHORT, _ANSWER_TOKENS, _CHAIN_TOKENS, _REASONING_TOKENS = 64, 20, 150, 600
"""How long a reply is likely to be: one asked for at most so many tokens is an answer, a longer one
holds a chain."""


Prices = Mapping[ModelRef, Price]
NO_PRICES: Prices = MappingProxyType({})


@dataclass(slots=True)
class Count:
    """Distinct requests: ``exact`` depend on no reply, ``estimated`` come in later rounds; ``models`` has both by model.

    ``micro`` is the likely cost in micro-dollars, ``most_micro`` the cost if every reply is as long
    as it may be.
    """

    exact: int = 0
    estimated: int = 0
    micro: int = 0
    most_micro: int = 0
    models: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set, repr=False)

    @property
    def total(self) -> int:
        return self.exact + self.estimated

    def add(self, request: Request, prices: Prices, *, first_round: bool) -> None:
        """Count a request once, whoever asks it; a model without a price is free."""
        if request.key in self.seen:
            return
        self.seen.add(request.key)
        self.exact += first_round
        self.estimated += not first_round
        model = f"{request.model.provider}:{request.model.name}"
        self.models[model] = self.models.get(model, 0) + 1
        price = prices.get(request.model, FREE)
        if not price.free:
            self.micro += _likely_cost(request, price)
            self.most_micro += price.max_cost(request)

    def as_estimate(self, price: Price) -> dict[str, Any]:
        """What is kept with a run, to be held against what it did cost."""
        return {
            "requests": self.total,
            "cost_usd": self.micro / 1e6 if price.known else None,
            "most_usd": self.most_micro / 1e6 if price.known else None,
            "price_in_usd_per_million": float(price.tokens_in),
            "price_out_usd_per_million": float(price.tokens_out),
            "price_source": price.source,
        }


def count_plan(plan: Plan, suite: Suite, prices: Prices = NO_PRICES) -> Count:
    """What a plan would ask; a request that several scorers ask counts once."""
    peers, count = Peers.of(suite, plan.seed), Count()
    for spec in plan.scorers:
        scorer: Scorer = SCORERS[spec.name]
        if scorer.prepare is not None and suite.items:
            for round_ in rounds_of(scorer.prepare(suite, params_of(plan, spec)), suite.items[0]):
                for request in round_:
                    count.add(request, prices, first_round=False)
        count_requests(
            SCORERS[spec.name],
            params_of(plan, spec),
            peers,
            suite.items[: plan.limit],
            prices,
            count,
        )
    return count


def count_requests(
    scorer: Scorer,
    params: Params,
    peers: Peers,
    items: Iterable[Item],
    prices: Prices = NO_PRICES,
    count: Count | None = None,
) -> Count:
    """Walk every program with placeholders for replies."""
    count = count or Count()
    for item in items:
        for number, round_ in enumerate(rounds_of(scorer(item, params, peers), item)):
            for request in round_:
                count.add(request, prices, first_round=number == 0)
    return count


def cautions(plan: Plan) -> list[str]:
    """What a plan cannot get from its model, in words for whoever is about to pay for it."""
    subject = plan.subject
    family = family_of(subject.provider, subject.name)
    messages = []
    if family.temperature is None:
        messages.append(
            f"{subject.name} takes no temperature, so its replies vary: --repeats 3 measures by how"
            " much."
        )
    metrics = {str(spec.params.get("metric")) for spec in plan.scorers} & set(DISTRIBUTION_METRICS)
    if metrics and not family.logprobs:
        messages.append(
            f"{subject.name} gives no log-probabilities: {', '.join(sorted(metrics))} will be"
            " undefined."
        )
    chain = next((spec.params["chain"] for spec in plan.scorers if spec.name == "entropy"), None)
    if chain is not None and not family.logprobs:
        messages.append(
            f"{subject.name} gives no log-probabilities: its entropy will be undefined."
        )
    elif chain == "reference" and subject.provider not in IN_PROCESS:
        messages.append(
            f"{subject.name} tells the entropy of its own chain only, not of a given one: --chain"
            " own."
        )
    return messages


def _likely_cost(request: Request, price: Price) -> int:
    """A token is about four characters; a reply is an answer or a short chain, after some reasoning where the model does it."""
    if not isinstance(request, Complete):
        return price.max_cost(request)
    given = (
        sum(len(m.content) for m in request.messages) + len(request.system) + len(request.prefix)
    )
    made = min(
        _ANSWER_TOKENS if request.max_tokens <= _SHORT else _CHAIN_TOKENS, request.max_tokens
    )
    reasoned = min(_REASONING_TOKENS, price.headroom)
    return round(price.tokens_in * (given // 4 + 1) + price.tokens_out * (made + reasoned))
