"""Measure the chain of one conversation: the same scorers as a run, without a store.

Inspect imports this with every evaluation: what scorers need is imported when one first scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread

from cotlab.core.types import Item, Score, Step
from cotlab.suites.importers.log_samples import ModelReply, read_reply

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, ModelOutput

    from cotlab.api.measure import Measurement


class ChainScore(NamedTuple):
    """What one scorer says of a chain."""

    measurement: Measurement
    """The value of its headline, and all other scores."""
    reply: ModelReply
    """Chain, answer and tool calls."""
    steps: tuple[str, ...]
    """The steps that were read."""


async def score_chain(
    scorer: str,
    question: str,
    task_input: str | Sequence[ChatMessage],
    messages: Sequence[ChatMessage],
    output: ModelOutput | None = None,
    headline: tuple[str, Mapping[str, str]] | None = None,
) -> ChainScore:
    """Run a scorer on the chain of a conversation, in a thread of its own."""
    from cotlab.api.measure import measure
    from cotlab.metrics.tool_trace import TOOL_LOG_KEY
    from cotlab.text.steps import split_steps

    reply = read_reply(task_input, messages, output)
    steps = tuple(step for step in split_steps(reply.chain) if step.strip())
    meta = {TOOL_LOG_KEY: list(reply.tools)} if reply.tools else {}
    item = Item(
        "sample", question, None, tuple(Step(i, text) for i, text in enumerate(steps)), meta=meta
    )
    options = {"provider": "echo", "model": "echo", "embedder": None, "chain": "reference"}

    def run_scorer() -> Measurement:
        return measure(scorer, item, options, headline=headline)

    return ChainScore(await to_thread.run_sync(run_scorer), reply, steps)


def explanation_text(chain: ChainScore) -> str:
    """Return the faults of single steps, one a line, or why there is no value."""
    measurement = chain.measurement
    if measurement.value is None:
        return measurement.reason or ""
    lines = [
        f"Step {score.step + 1}: {_score_label(score)} = {score.value:g}: {chain.steps[score.step]}"
        for score in measurement.steps
        if score.step is not None and score.value is not None and score.value < 1
    ]
    return "\n".join(lines) or f"No fault in {len(chain.steps)} steps."


def score_metadata(chain: ChainScore) -> dict[str, Any]:
    """Return the other scores as JSON values, with the status and reason of those without value."""
    measurement = chain.measurement
    return {
        "metric": measurement.metric,
        "status": measurement.status,
        "reason": measurement.reason,
        "answer": chain.reply.answer,
        "reasoning": chain.reply.reasoning,
        "n_steps": len(chain.steps),
        "parts": [_score_record(score) for score in measurement.parts],
        "steps": [_score_record(score) for score in measurement.steps],
    }


def _score_label(score: Score) -> str:
    pairs = ", ".join(f"{name} {value}" for name, value in score.facet if name != "chain")
    return f"{score.metric} ({pairs})" if pairs else score.metric


def _score_record(score: Score) -> dict[str, Any]:
    return {
        "metric": score.metric,
        "facet": dict(score.facet),
        "step": score.step,
        "value": score.value,
        "status": score.status,
        "reason": score.reason,
        "where": list(score.where) if score.where else None,
    }
