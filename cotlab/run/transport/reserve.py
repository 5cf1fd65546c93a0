"""What is reserved for the calls of one model, raised once its server reports more tokens than a request allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cotlab.core.requests import Request, Response, Usage
from cotlab.run.transport.budget import Price
from cotlab.store.overshoots import Overshoot

MOST_TOKENS = 10_000_000
"""More than any model reads or writes in a call: a reply that reports more has no count."""
PROVING_REPLIES = 20
"""Replies in a row within a raised reserve after which several calls may be in flight again."""


def counted(response: Response) -> Usage:
    """Return the tokens that a reply reports, None for a number that is no count.

    No request has 0 input tokens, no text has 0 output tokens, and no call uses more than
    ``MOST_TOKENS``.
    """
    used = response.usage
    if any(
        n is not None and n > MOST_TOKENS
        for n in (used.tokens_in, used.tokens_out, used.cached, used.reasoning)
    ):
        return Usage()
    if response.text and used.tokens_out == 0:
        used = replace(used, tokens_out=None)
    return replace(used, tokens_in=None) if used.tokens_in == 0 else used


@dataclass(slots=True)
class Reserve:
    """The amount that is reserved for each call of one model.

    It is the most that the price allows, which is no bound where a server ignores max_tokens or
    counts more input than it was sent. A reply that cost more raises every later reserve by the
    tokens that it reported, and one call at a time is in flight until ``PROVING_REPLIES`` in a row
    were within that. The first call of a process goes alone as well: a server that reports more
    usually does so every time.

    Attributes
    ----------
    price : Price
        The price of the model.
    more_in, more_out : int
        Tokens that are reserved on top of those that a request allows.
    unproven : int
        Replies still to come within the raised reserve before several calls may be in flight again.
    tried : bool
        Whether a call of this process has ended.
    """

    price: Price
    more_in: int = 0
    more_out: int = 0
    unproven: int = 0
    tried: bool = False

    @property
    def alone(self) -> bool:
        """Whether a call may be sent only while no other is in flight."""
        return not self.price.free and (self.unproven > 0 or not self.tried)

    def most(self, request: Request) -> int:
        """Return the micro-dollars to reserve for a call."""
        return self.price.max_cost(request, self.more_in, self.more_out)

    def most_tokens(self, request: Request) -> int:
        """Return the tokens to reserve for a call."""
        return self.price.max_tokens(request) + self.more_in + self.more_out

    def learn(self, request: Request, used: Usage) -> bool:
        """Raise the reserve if a reply cost more than is reserved for its request now; return whether it did."""
        cost = self.price.cost(used)
        if self.price.free or cost is None or used.tokens_in is None or used.tokens_out is None:
            return False
        if cost <= self.most(request):
            self.unproven = max(0, self.unproven - 1)
            return False
        self._raise(
            used.tokens_in if used.tokens_in > len(request.json_bytes) else 0,
            used.tokens_out if used.tokens_out > self.price.most_out(request) else 0,
        )
        return True

    def recall(self, seen: Overshoot) -> None:
        """Raise the reserve by what an earlier process of the run saw."""
        if not self.price.free:
            self._raise(
                seen.tokens_in if seen.beyond_in is None or seen.beyond_in > 0 else 0,
                (
                    seen.tokens_out
                    if seen.beyond_out is None or seen.beyond_out > self.price.headroom
                    else 0
                ),
            )

    def _raise(self, more_in: int, more_out: int) -> None:
        """Add all tokens that were reported, not the excess alone: the next request may allow fewer and use as many."""
        self.more_in, self.more_out = max(self.more_in, more_in), max(self.more_out, more_out)
        self.unproven = PROVING_REPLIES
