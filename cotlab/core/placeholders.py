"""Placeholder replies, so that a program can run without any model call (dry run)."""

from __future__ import annotations

from collections.abc import Iterator

from cotlab.core.program import Preparation, Program, RequestRound
from cotlab.core.requests import (
    PREFIX_INDEX,
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
    StepRewards,
)
from cotlab.core.types import Item

_MAX_ROUNDS = 100
_N_TOKENS = 4096
_DEFAULT_N_STEPS = 6
"""Assumed number of steps of a chain if the suite has no reference chain."""

SOLVER_PROVIDER = "symbolic"
"""The provider that computes in this process: it is no model, and nothing is asked of one."""


def placeholder_rounds(program: Program | Preparation, item: Item) -> Iterator[RequestRound]:
    """Yield every round of requests of a program that gets placeholder replies.

    A completion is a chain as long as the reference chain, without the steps that its request
    already contains; every perturbation applies to each of its steps. Two requests get two
    different chains, as from a real model. An organism repeats the chain of the suite.
    """
    try:
        requests = next(program)
        for _ in range(_MAX_ROUNDS):
            yield requests
            requests = program.send([placeholder_response(request, item) for request in requests])
    except StopIteration:
        return


def placeholder_response(request: Request, item: Item) -> Response:
    """Return a response of the right shape for a request."""
    if isinstance(request, Complete):
        return Response(
            request.key,
            "\n".join(
                (*_remaining_steps(request, item), f"So the answer is {item.answer or 'unknown'}.")
            ),
        )
    if isinstance(request, Embed):
        return Response(request.key, vectors=((1.0, 0.0),) * len(request.texts))
    if isinstance(request, Entail):
        # symbolic checks stay undecided, so that requests to the next verifier are counted too
        return Response(
            request.key, numbers=() if request.model.provider == SOLVER_PROVIDER else (0.5,)
        )
    if isinstance(request, StepRewards):
        return Response(request.key, numbers=(0.5,) * len(request.steps))
    if isinstance(request, LogProb):
        return Response(request.key, numbers=(-1.0,) * len(request.answers))
    if isinstance(request, Patched):
        return Response(
            request.key, numbers=tuple(_patched_log_prob(request, row) for row in request.rows)
        )
    if isinstance(request, Locate):
        positions = tuple(_token_positions(request, span) for span in request.spans)
        return Response(request.key, located=Located(positions, ("x",) * _N_TOKENS, 4))
    return Response(request.key, numbers=())


def _remaining_steps(request: Complete, item: Item) -> list[str]:
    """Return the steps that remain after those that the request contains."""
    suite_steps = [step.text for step in item.steps]
    lines = "\n".join(
        (*(message.content for message in request.messages), request.prefix)
    ).splitlines()
    given_steps = [line for line in lines if line in suite_steps or line.startswith("Step ")]
    step_numbers = range(
        len(given_steps) + 1, max(len(suite_steps) or _DEFAULT_N_STEPS, 0 if given_steps else 1) + 1
    )
    if (
        request.model.provider == "organism"
        and suite_steps
        and set(given_steps) <= set(suite_steps)
    ):
        return suite_steps[len(given_steps) :]
    first_number = int(request.key[:4], 16)
    return [f"Step {k}: {first_number + k} + 9 = {first_number + k + 9}." for k in step_numbers]


def _patched_log_prob(request: Patched, row: PatchRow) -> float:
    """Return the log-prob of ideal patching.

    States of the same run change nothing; all states of another run give the answer of that run.
    """
    is_from_other_run = request.source.kind != "run" or bool(request.source.messages)
    return -2.0 if is_from_other_run and row.layers and len(row.at) < _N_TOKENS else -1.0


def _token_positions(request: Locate, span: Span) -> tuple[int, ...]:
    """Return one position per word of a span; each part of the text starts at a new thousand."""
    text = request.prefix if span.part == PREFIX_INDEX else request.messages[span.part].content
    first_position = 1000 * (
        span.part + 1 if span.part != PREFIX_INDEX else len(request.messages) + 1
    ) + len(text[: span.start].split())
    return tuple(range(first_position, first_position + len(text[span.start : span.end].split())))
