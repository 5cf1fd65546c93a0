"""Ask a critic for the first wrong step of a chain, several times, and take the majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.program import Params
from cotlab.core.requests import Complete, Reply, Response
from cotlab.core.types import ModelRef
from cotlab.metrics.kit import MissingReason, missing_reply_reason, reply_text, worst_reason
from cotlab.text.prompts.critic import CriticPrompt, first_wrong_step_prompt, read_first_wrong_step
from cotlab.text.prompts.json_reply import InvalidReply

NO_STEP_REASON = "the critic names no step"
"""Reason of a ``critic_step`` without a value where the critic was asked and finds no mistake."""
CRITIC_ROLE = "critic"
"""Role of the model that is asked about whole chains: ``--verifier critic:PROVIDER/MODEL``."""
CUT_OFF_REASON: MissingReason = (
    "undefined",
    "the critic's reply was cut off at its longest: --role verifier.tokens",
)


class Vote(NamedTuple):
    """One reply of a critic."""

    step: int | None
    """Index from 0 of the first wrong step; None where it names none, or cannot be read."""
    missing_reason: MissingReason | None = None
    """Why the reply cannot be read; None where it can."""


class Verdict(NamedTuple):
    """What the votes of a critic say of a chain."""

    step: int | None
    """Index from 0 of the first wrong step; None where none is named, or nothing is decided."""
    is_sound: bool
    """Whether the majority finds no mistake."""
    missing_reason: MissingReason
    """Why ``step`` is None: `NO_STEP_REASON` exactly where ``is_sound``."""

    @property
    def is_decided(self) -> bool:
        """Whether the votes that can be read decide."""
        return self.is_sound or self.step is not None


def critic_request(model: ModelRef, prompt: CriticPrompt, params: Params, sample: int) -> Complete:
    """Build a request to a critic, the same whichever scorer asks."""
    return Complete(
        model,
        prompt.messages,
        system=prompt.system,
        max_tokens=params.critic_tokens,
        temperature=params.temperature,
        seed=params.seed,
        sample=sample,
        reply_schema=prompt.reply_schema,
    )


def vote_requests(
    model: ModelRef, question: str, steps: Sequence[str], params: Params, repeat: int = 0
) -> list[Complete]:
    """Build the requests for the votes on one chain; each repeat has votes of its own."""
    prompt = first_wrong_step_prompt(question, steps)
    first_sample = repeat * params.critic_votes
    return [
        critic_request(model, prompt, params, first_sample + k) for k in range(params.critic_votes)
    ]


def missing_critic_reason(reply: Reply) -> MissingReason | None:
    """Return why a critic's reply cannot be read: it failed, was refused or was cut off."""
    missing_reason = missing_reply_reason(reply)
    is_cut_off = isinstance(reply, Response) and reply.finish == "length"
    return missing_reason or (CUT_OFF_REASON if is_cut_off else None)


def read_vote(reply: Reply, n_steps: int) -> Vote:
    """Read one reply about a chain of ``n_steps`` steps."""
    missing_reason = missing_critic_reason(reply)
    if missing_reason is not None or not isinstance(reply, Response):
        return Vote(None, missing_reason)
    try:
        return Vote(read_first_wrong_step(reply_text(reply), n_steps))
    except InvalidReply as error:
        return Vote(None, ("undefined", str(error)))


def majority_verdict(votes: Sequence[Vote]) -> Verdict:
    """Return what the majority of an odd number of votes says.

    More than half of all votes decide whether there is a mistake; where there is, the step that is
    named most often is the first wrong one. A vote that is missing counts for neither side: where
    it could change the result, nothing is decided.
    """
    n_missing = sum(vote.missing_reason is not None for vote in votes)
    n_votes_by_step = Counter(vote.step for vote in votes if vote.step is not None)
    n_sound = len(votes) - n_missing - n_votes_by_step.total()
    if 2 * n_sound > len(votes):
        return Verdict(None, True, ("undefined", NO_STEP_REASON))
    missing_reason = worst_reason([vote.missing_reason for vote in votes])
    ranked = n_votes_by_step.most_common(2)
    if 2 * n_votes_by_step.total() > len(votes):
        step, n_first = ranked[0]
        n_second = ranked[1][1] if len(ranked) > 1 else 0
        if n_first > n_second + n_missing:
            return Verdict(step, False, ("undefined", ""))
    numbers_text = ", ".join(str(step + 1) for step in sorted(n_votes_by_step))
    tie_reason: MissingReason = ("undefined", f"the critic's votes tie on the step: {numbers_text}")
    return Verdict(None, False, missing_reason or tie_reason)


def sound_share(votes: Sequence[Vote]) -> float | None:
    """Return the share of the votes that find no mistake, or None where a vote is missing."""
    if any(vote.missing_reason is not None for vote in votes):
        return None
    return sum(vote.step is None for vote in votes) / len(votes)
