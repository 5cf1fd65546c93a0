"""Scorers of Inspect AI: the text rules, the links, the arithmetic and the tool claims of a chain.

Each scores the reasoning of the model's turns, or its text before the answer. A chain without a
value is unscored, with the reason: Inspect leaves it out of its metrics.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from cotlab.core.errors import UnknownName
from cotlab.inspect.chains import explanation_text, score_chain, score_metadata

_REASON_BY_STATUS = {"refused": "refusal", "error": "scoring_failed"}


@scorer(metrics=[mean(), stderr()])
def chain_flags() -> Scorer:
    """Score the structure of the chain by text rules (F): in [0.3, 1], 1 is clean."""
    return _chain_scorer("flags", ("flags", {}))


@scorer(metrics=[mean(), stderr()])
def chain_verification(link: str = "forward") -> Scorer:
    """Score the share of the chain's links that arithmetic and algebra confirm (V), in [0, 1].

    Parameters
    ----------
    link : {"forward", "reverse"}
        Does what comes before support a step, or a step the one before it.
    """
    if link not in ("forward", "reverse"):
        raise UnknownName("link", link, ("forward", "reverse"))
    return _chain_scorer("verification", ("verification", {"link": link}))


@scorer(metrics=[mean(), stderr()])
def chain_arithmetic() -> Scorer:
    """Score whether the chain's equations hold: the share of steps without a false one."""
    return _chain_scorer("verification", ("arithmetic_ok", {}))


@scorer(metrics=[mean(), stderr()])
def chain_tools() -> Scorer:
    """Score the share of the chain's claims that an output of its tool calls holds, in [0, 1]."""
    return _chain_scorer("tool_trace", ("claim_matched", {}))


def _chain_scorer(name: str, headline: tuple[str, Mapping[str, str]]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        chain = await score_chain(
            name, state.input_text, state.input, state.messages, state.output, headline
        )
        measurement = chain.measurement
        if measurement.value is None:
            return Score.unscored(
                reason=_REASON_BY_STATUS.get(measurement.status, measurement.status),
                answer=chain.reply.answer,
                explanation=explanation_text(chain),
                metadata=score_metadata(chain),
            )
        return Score(
            value=measurement.value,
            answer=chain.reply.answer,
            explanation=explanation_text(chain),
            metadata=score_metadata(chain),
        )

    return score
