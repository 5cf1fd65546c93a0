"""Placeholder replies, so that a program can run without any model call (dry run)."""

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
"""Assumed number of steps of a chain if the suite has no reference chain."""


def rounds_of(program: Program | Preparation, item: Item) -> Iterator[Round]:
    """Yield every round of requests of a program that gets placeholder replies.

    A completion is a chain as long as the reference chain, without the steps that its request
    already contains; every perturbation applies to each of its steps. Two requests get two
    different chains, as from a real model. An organism repeats the chain of the suite.
    """
    try:
        round_ = next(program)
        for _ in range(_MAX_ROUNDS):
            yield round_
            round_ = program.send([placeholder(request, item) for request in round_])
    except StopIteration:
        return


def placeholder(request: Request, item: Item) -> Response:
    """Return a response of the right shape for a request."""
    if isinstance(request, Complete):
        return Response(
            request.key,
            "\n".join((*_chain(request, item), f"So the answer is {item.answer or 'unknown'}.")),
        )
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),) * len(request.texts))
    if isinstance(request, Entail):
        # symbolic checks stay undecided, so that requests to the next verifier are counted too
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
    """Return the steps that remain after those that the request contains."""
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
    """Return the log-prob of ideal patching.

    States of the same run change nothing; all states of another run give the answer of that run.
    """
    foreign = request.source.kind != "run" or bool(request.source.messages)
    return -2.0 if foreign and row.layers and len(row.at) < _PIECES else -1.0


def _token_positions(request: Locate, span: Span) -> tuple[int, ...]:
    """Return one position per word of a span; each part of the text starts at a new thousand."""
    text = request.prefix if span.part == PREFIX else request.messages[span.part].content
    start = 1000 * (span.part + 1 if span.part != PREFIX else len(request.messages) + 1) + len(
        text[: span.start].split()
    )
    return tuple(range(start, start + len(text[span.start : span.end].split())))
