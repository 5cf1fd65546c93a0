"""What every quality check of a model that writes chains uses: prompts, answers, a figure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.errors import CotlabError
from cotlab.core.requests import Complete, Message, Response
from cotlab.providers.local.provider import LocalModel
from cotlab.suites.wordproblems import ANSWER_CUE, MAX_NUMBER, Problem

# "So the answer is 9."
_ANSWER_PATTERN = re.compile(r"So the answer is (\d+)\.")


class QualityCheck(NamedTuple):
    """One figure of the quality check."""

    figure: str
    """Name of the figure."""
    value: float
    """Measured share."""
    low: float
    """Smallest accepted value."""
    high: float
    """Largest accepted value."""
    n: int
    """Number of cases."""

    @property
    def passed(self) -> bool:
        """Return whether the value lies in its range."""
        return self.low <= self.value <= self.high


def mean_check(
    figure: str, values: Sequence[float], low: float = 0.99, high: float = 1
) -> QualityCheck:
    """Return the check that the mean of ``values`` lies in [low, high]."""
    return QualityCheck(figure, sum(values) / len(values), low, high, len(values))


def send_prompts(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[Response]:
    """Return the replies to problems, each with a text that the reply goes on from.

    Raises
    ------
    CotlabError
        If a request to the model fails.
    """
    replies = model.send_batch(
        [
            Complete(
                model.ref,
                (Message("user", p.question),),
                prefix=prefix,
                max_tokens=3 if prefix.endswith(ANSWER_CUE) else 110,
                top_logprobs=MAX_NUMBER + 9 if prefix.endswith(ANSWER_CUE) else 0,
            )
            for p, prefix in cases
        ]
    )
    responses = [reply for reply in replies if isinstance(reply, Response)]
    errors = [reply for reply in replies if not isinstance(reply, Response)]
    if errors:
        raise CotlabError(f"the quality check got no reply: {errors[0]}")
    return responses


def reply_texts(model: LocalModel, cases: Sequence[tuple[Problem, str]]) -> list[str]:
    """Return the texts of the replies to problems."""
    return [reply.text or "" for reply in send_prompts(model, cases)]


def parse_answer(text: str) -> int | None:
    """Return the last answer that a text states; None where it states none."""
    matches = _ANSWER_PATTERN.findall(text)
    return int(matches[-1]) if matches else None


def answer_probability(reply: Response, answer: int) -> float:
    """Return the probability of an answer as the first token of a reply after the cue, 0 to 1."""
    top = {text.strip(): math.exp(logp) for text, logp in reply.tokens[0].top}
    return top.get(str(answer), 0.0)
