"""How much is reserved for a call: what a server reported before, and what lost calls may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NamedTuple

from cotlab.core.requests import Complete, Request, Response, Usage
from cotlab.run.transport.budget import Price
from cotlab.store.responses import Overshoot

MAX_REPORTED_TOKENS = 10_000_000
"""More than any model reads or writes in a call: a reply that reports more has no count."""
MIN_PROVING_REPLIES = 20
"""Consecutive replies within a raised reserve that allow several calls in flight again."""
MIN_OBSERVED_REPLIES = 20
"""Replies of one kind after which a lost call of that kind no longer holds its full reserve."""
MEAN_FACTOR, MAX_FACTOR = 3, 2
"""A lost call holds so many times the mean of the replies, and at least so many times the most
expensive one."""


def reported_usage(response: Response) -> Usage:
    """Return the tokens that a reply reports, None for a number that is no count.

    No request has 0 input tokens, no text has 0 output tokens, and no call uses more than
    ``MAX_REPORTED_TOKENS``.
    """
    usage = response.usage
    if any(
        n is not None and n > MAX_REPORTED_TOKENS
        for n in (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)
    ):
        return Usage()
    if response.text and usage.tokens_out == 0:
        usage = replace(usage, tokens_out=None)
    return replace(usage, tokens_in=None) if usage.tokens_in == 0 else usage


class LostCall(NamedTuple):
    """A call that may have been billed and whose reply never came in full."""

    call_id: int
    """Row of the call in the log."""
    request: Request
    """What was asked."""
    elapsed_s: float
    """Seconds between the request and the error."""


@dataclass(slots=True)
class ReplyCosts:
    """What the replies to requests of one kind and one max_tokens cost, and how long they took."""

    n_replies: int = 0
    """Replies with a count of tokens."""
    cost_share_sum: Decimal = Decimal(0)
    """Sum of the replies' costs, each as a share of the most that its request allows."""
    max_cost_share: Decimal = Decimal(0)
    """Largest of these shares."""
    max_elapsed_s: float = 0.0
    """Seconds of the slowest reply."""
    max_s_per_token: float = 0.0
    """Seconds of a reply for each of its output tokens, where they were most."""

    def add(self, cost_share: Decimal, tokens_out: int, elapsed_s: float) -> None:
        """Count a reply."""
        self.n_replies += 1
        self.cost_share_sum += cost_share
        self.max_cost_share = max(self.max_cost_share, cost_share)
        self.max_elapsed_s = max(self.max_elapsed_s, elapsed_s)
        self.max_s_per_token = max(self.max_s_per_token, elapsed_s / max(1, tokens_out))

    def likely_share(self, elapsed_s: float, max_tokens_out: int) -> Decimal | None:
        """Return the share that a lost call holds; None where the replies say nothing of it.

        A call that took longer than every reply may be lost because its reply is longer than all
        of them. It is not only where even the longest reply would have come in that time.
        """
        may_be_longest = (
            self.max_elapsed_s < elapsed_s <= self.max_s_per_token * max(1, max_tokens_out)
        )
        if self.n_replies < MIN_OBSERVED_REPLIES or may_be_longest:
            return None
        mean_share = self.cost_share_sum / self.n_replies
        return max(MEAN_FACTOR * mean_share, MAX_FACTOR * self.max_cost_share)


@dataclass(slots=True)
class Reserve:
    """The amount that is reserved for each call of one model.

    It is the most that the price allows, which is no bound where a server ignores max_tokens or
    counts more input than it was sent. A reply that cost more raises every later reserve by the
    tokens that it reported, and one call at a time is in flight until enough consecutive replies
    were within that. The first call of a process goes alone as well: a server that reports more
    usually does so every time.
    """

    price: Price
    """Price of the model."""
    extra_tokens_in: int = 0
    """Input tokens that are reserved on top of those that a request allows."""
    extra_tokens_out: int = 0
    """Output tokens that are reserved on top of those that a request allows."""
    n_unproven_replies: int = 0
    """Replies still to come within the raised reserve before several calls may be in flight."""
    was_tried: bool = False
    """Whether a call of this process has ended."""
    _reply_costs: dict[tuple[str, int], ReplyCosts] = field(default_factory=dict)
    """Costs of the replies of this process by kind and max_tokens."""
    _lost_calls: list[LostCall] = field(default_factory=list)
    """Lost calls of this process that hold their full reserve."""
    _exact_micro: Decimal = Decimal(0)
    """What the replies of this process cost, in micro-dollars."""
    _charged_micro: int = 0
    """The part of it that was charged, in whole micro-dollars."""

    @property
    def is_exclusive(self) -> bool:
        """Whether a call may be sent only while no other is in flight."""
        return not self.price.is_free and (self.n_unproven_replies > 0 or not self.was_tried)

    def max_cost(self, request: Request) -> int:
        """Return the micro-dollars to reserve for a call."""
        return self.price.max_cost(request, self.extra_tokens_in, self.extra_tokens_out)

    def max_tokens(self, request: Request) -> int:
        """Return the tokens to reserve for a call."""
        return self.price.max_tokens(request) + self.extra_tokens_in + self.extra_tokens_out

    def charge(self, usage: Usage) -> int | None:
        """Return the micro-dollars to charge for a reply; None where it has no count of tokens.

        Their sum is the sum of the exact costs, rounded up once and not at every reply.
        """
        cost = self.price.exact_cost(usage)
        if cost is None:
            return None
        self._exact_micro += cost
        charged_before, self._charged_micro = self._charged_micro, math.ceil(self._exact_micro)
        return self._charged_micro - charged_before

    def update_from_usage(
        self, request: Request, usage: Usage, elapsed_s: float | None = None
    ) -> bool:
        """Learn from a reply; return whether it cost more than reserved and raised the reserve.

        Parameters
        ----------
        request : Request
        usage : Usage
        elapsed_s : float or None, seconds
            What the reply took; None for one of a batch.
        """
        cost = self.price.exact_cost(usage)
        if (
            self.price.is_free
            or cost is None
            or usage.tokens_in is None
            or usage.tokens_out is None
        ):
            return False
        if elapsed_s is not None:
            cost_share = cost / max(1, self.price.max_cost(request))
            self._costs_of(request).add(cost_share, usage.tokens_out, elapsed_s)
        if cost <= self.max_cost(request):
            self.n_unproven_replies = max(0, self.n_unproven_replies - 1)
            return False
        self._increase(
            usage.tokens_in if usage.tokens_in > len(request.json_bytes) else 0,
            usage.tokens_out if usage.tokens_out > self.price.max_tokens_out(request) else 0,
        )
        return True

    def add_lost_call(self, lost_call: LostCall) -> None:
        """Remember a lost call until the replies say what such a call costs."""
        if not self.price.is_free:
            self._lost_calls.append(lost_call)

    def lowered_reserves(self) -> list[tuple[int, int]]:
        """Return the lost calls whose likely cost is known by now: row and micro-dollars of each.

        Each is returned once.
        """
        remaining_calls, lowered_reserves = list[LostCall](), list[tuple[int, int]]()
        for lost_call in self._lost_calls:
            request = lost_call.request
            share = self._costs_of(request).likely_share(
                lost_call.elapsed_s, self.price.max_tokens_out(request)
            )
            if share is None:
                remaining_calls.append(lost_call)
            else:
                likely_cost = math.ceil(share * self.price.max_cost(request))
                lowered_reserves.append((lost_call.call_id, likely_cost))
        self._lost_calls = remaining_calls
        return lowered_reserves

    def restore_overshoot(self, overshoot: Overshoot) -> None:
        """Raise the reserve by what an earlier process of the run saw."""
        if not self.price.is_free:
            exceeds_input = overshoot.excess_tokens_in is None or overshoot.excess_tokens_in > 0
            exceeds_output = (
                overshoot.excess_tokens_out is None
                or overshoot.excess_tokens_out > self.price.headroom
            )
            self._increase(
                overshoot.tokens_in if exceeds_input else 0,
                overshoot.tokens_out if exceeds_output else 0,
            )

    def _costs_of(self, request: Request) -> ReplyCosts:
        max_tokens = request.max_tokens if isinstance(request, Complete) else 0
        return self._reply_costs.setdefault((request.kind, max_tokens), ReplyCosts())

    def _increase(self, extra_tokens_in: int, extra_tokens_out: int) -> None:
        """Add all tokens that were reported: the next request may allow fewer and use as many."""
        self.extra_tokens_in, self.extra_tokens_out = (
            max(self.extra_tokens_in, extra_tokens_in),
            max(self.extra_tokens_out, extra_tokens_out),
        )
        self.n_unproven_replies = MIN_PROVING_REPLIES
