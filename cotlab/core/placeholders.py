"""A stand-in for every reply, so that a program can be walked without asking anything."""

from __future__ import annotations

from collections.abc import Iterator

from cotlab.core.program import Preparation, Program, Round
from cotlab.core.requests import PREFIX, Complete, Embed, Entail, Locate, Located, LogProb, Patched, Request, Response, Span
from cotlab.core.types import Item

_MOST_ROUNDS = 100
_LEAST_STEPS = 8


def rounds_of(program: Program | Preparation, item: Item) -> Iterator[Round]:
    """Every round that a program asks, given placeholders; they are generous: what follows from real ones is seldom more.

    A completion is a chain of twice the reference's steps, at least eight, each of which every rule can change.
    """
    try:
        round_ = next(program)
        for _ in range(_MOST_ROUNDS):
            yield round_
            round_ = program.send([placeholder(request, item) for request in round_])
    except StopIteration:
        return


def placeholder(request: Request, item: Item) -> Response:
    """A reply of the right shape to any request."""
    if isinstance(request, Complete):
        draw = int(request.key[:4], 16)  # another request, another chain
        numbers = range(draw + 1, draw + 1 + max(_LEAST_STEPS, 2 * len(item.steps)))
        steps = (f"Step {k - draw}: {k} + 9 = {k + 9}." for k in numbers)
        return Response(request.key, "\n".join((*steps, f"So the answer is {item.answer or 'unknown'}.")))
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),) * len(request.texts))
    if isinstance(request, Entail):  # what computes links leaves them open, so that whoever is asked next is counted too
        return Response(request.key, numbers=() if request.model.provider == "symbolic" else (0.5,))
    if isinstance(request, LogProb):
        return Response(request.key, numbers=(-1.0,) * len(request.answers))
    if isinstance(request, Patched):
        return Response(request.key, numbers=(-2.0,) * len(request.rows))
    if isinstance(request, Locate):
        places = tuple(_words_in(request, span) for span in request.spans)
        return Response(request.key, located=Located(places, ("x",) * 4096, 4))
    return Response(request.key, numbers=())


def _words_in(request: Locate, span: Span) -> tuple[int, ...]:
    """As many positions as a span has words, of a text that has a thousand words before each part."""
    text = request.prefix if span.part == PREFIX else request.messages[span.part].content
    start = 1000 * (span.part + 1 if span.part != PREFIX else len(request.messages) + 1) + len(text[: span.start].split())
    return tuple(range(start, start + len(text[span.start : span.end].split())))
