"""A stand-in for every reply, so that a program can be walked without asking anything."""

from __future__ import annotations

from collections.abc import Iterator

from cotlab.core.program import Preparation, Program, Round
from cotlab.core.requests import (
    PREFIX,
    Complete,
    Embed,
    Entail,
    Locate,
    Located,
    LogProb,
    Patched,
    PatchRow,
    Request,
    Response,
    Span,
)
from cotlab.core.types import Item

_MAX_ROUNDS = 100
_PIECES = 4096
_STEPS = 6
"""How many steps a chain is taken to have where the suite has none to go by."""


def rounds_of(program: Program | Preparation, item: Item) -> Iterator[Round]:
    """Every round that a program asks, given placeholders.

    A completion is a chain as long as the reference's, less the steps that its request holds; every
    rule can change each step. Two requests get two chains, as from a real model; an organism writes
    as the suite does.
    """
    try:
        round_ = next(program)
        for _ in range(_MAX_ROUNDS):
            yield round_
            round_ = program.send([placeholder(request, item) for request in round_])
    except StopIteration:
        return


def placeholder(request: Request, item: Item) -> Response:
    """A reply of the right shape to any request."""
    if isinstance(request, Complete):
        return Response(
            request.key,
            "\n".join((*_chain(request, item), f"So the answer is {item.answer or 'unknown'}.")),
        )
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),) * len(request.texts))
    if isinstance(
        request, Entail
    ):  # what computes links leaves them open, so that whoever is asked next is counted too
        return Response(request.key, numbers=() if request.model.provider == "symbolic" else (0.5,))
    if isinstance(request, LogProb):
        return Response(request.key, numbers=(-1.0,) * len(request.answers))
    if isinstance(request, Patched):
        return Response(request.key, numbers=tuple(_patched(request, row) for row in request.rows))
    if isinstance(request, Locate):
        positions = tuple(_token_positions(request, span) for span in request.spans)
        return Response(request.key, located=Located(positions, ("x",) * _PIECES, 4))
    return Response(request.key, numbers=())


def _chain(request: Complete, item: Item) -> list[str]:
    """The steps that are left to write after those that the request holds."""
    suite_steps = [step.text for step in item.steps]
    lines = "\n".join(
        (*(message.content for message in request.messages), request.prefix)
    ).splitlines()
    given = [line for line in lines if line in suite_steps or line.startswith("Step ")]
    steps = range(len(given) + 1, max(len(suite_steps) or _STEPS, 0 if given else 1) + 1)
    if request.model.provider == "organism" and suite_steps and set(given) <= set(suite_steps):
        return suite_steps[len(given) :]
    draw = int(request.key[:4], 16)
    return [f"Step {k}: {draw + k} + 9 = {draw + k + 9}." for k in steps]


def _patched(request: Patched, row: PatchRow) -> float:
    """As sound patching answers: the own run's states change nothing, every state of another run makes it that run's answer."""
    foreign = request.source.kind != "run" or bool(request.source.messages)
    return -2.0 if foreign and row.layers and len(row.at) < _PIECES else -1.0


def _token_positions(request: Locate, span: Span) -> tuple[int, ...]:
    """As many positions as a span has words, of a text that has a thousand words before each part."""
    text = request.prefix if span.part == PREFIX else request.messages[span.part].content
    start = 1000 * (span.part + 1 if span.part != PREFIX else len(request.messages) + 1) + len(
        text[: span.start].split()
    )
    return tuple(range(start, start + len(text[span.start : span.end].split())))
