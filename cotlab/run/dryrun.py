"""How many requests a plan needs, and what they may cost, without asking anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cotlab.core.program import Params, Peers, Scorer
from cotlab.core.requests import Complete, Embed, Entail, LogProb, Patched, Request, Response
from cotlab.core.types import Item
from cotlab.run.budget import Price

_REPLY_TOKENS = 40
_MOST_ROUNDS = 100
_LEAST_STEPS = 8


@dataclass(slots=True)
class Count:
    """Distinct requests: ``exact`` depend on no reply, ``estimated`` come in later rounds. ``micro`` is the likely cost."""

    exact: int = 0
    estimated: int = 0
    micro: int = 0

    @property
    def total(self) -> int:
        return self.exact + self.estimated


def count_requests(scorer: Scorer, params: Params, peers: Peers, items: Iterable[Item], price: Price | None = None) -> Count:
    """Drive every program with placeholder replies, which are generous: what follows from real ones is seldom more.

    A completion is a chain of twice the reference's steps, at least eight, each of which every rule can change.
    """
    count = Count()
    seen: set[str] = set()
    for item in items:
        program = scorer(item, params, peers)
        try:
            round_ = next(program)
            for number in range(_MOST_ROUNDS):
                for request in round_:
                    key = request.key
                    if key in seen:
                        continue
                    seen.add(key)
                    if number == 0:
                        count.exact += 1
                    else:
                        count.estimated += 1
                    if price is not None:
                        count.micro += _likely_cost(request, price)
                round_ = program.send([_placeholder(request, item) for request in round_])
        except StopIteration:
            continue
    return count


def _placeholder(request: Request, item: Item) -> Response:
    if isinstance(request, Complete):
        steps = (f"Step {k}: {k} + 9 = {k + 9}." for k in range(1, 1 + max(_LEAST_STEPS, 2 * len(item.steps))))
        return Response(request.key, "\n".join((*steps, f"So the answer is {item.answer or 'unknown'}.")))
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),) * len(request.texts))
    if isinstance(request, Entail):
        return Response(request.key, numbers=(0.5,))
    if isinstance(request, LogProb):
        return Response(request.key, numbers=(-1.0,) * len(request.answers))
    if isinstance(request, Patched):
        return Response(request.key, numbers=(-2.0,) * len(request.rows))
    return Response(request.key, numbers=())


def _likely_cost(request: Request, price: Price) -> int:
    """A token is about four characters; a reply about as long as asked for, at most a short chain."""
    if not isinstance(request, Complete):
        return price.most(request)
    given = sum(len(m.content) for m in request.messages) + len(request.system) + len(request.prefix)
    return round(price.tokens_in * (given // 4 + 1) + price.tokens_out * min(_REPLY_TOKENS, request.max_tokens))
