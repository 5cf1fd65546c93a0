"""The judge: a model compares the responses of two models, blind and in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Reply, Response
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.judge import cards
from cotlab.metrics.judge.statistics import (
    judge_agreement,
    judge_kappa,
    judge_length_p,
    judge_length_rho,
    judge_mean,
    judge_mean_equal_length,
    judge_same_side,
)
from cotlab.metrics.kit import ItemScores, MissingReason, missing_reply, worst_reason
from cotlab.text.prompts.comparison import PROMPT_DIGEST, BadVerdict, ask_comparison, read_verdict

ROLE = "judge"
BASE, TUNED, HUMAN = "base_response", "tuned_response", "human_score"
"""Keys of an item's meta: the two responses, and a person's score of the pair where there is one.
"""
OPTIONS: Mapping[str, Option] = {
    "prompt": Option(PROMPT_DIGEST[:16], "digest of the prompt, which cannot be set"),
    "max_tokens": Option(500, "maximum output tokens of a verdict", lo=50, hi=100_000),
}
NO_PAIR = (
    "the item is not a pair of responses: --base-run RUN --tuned-run RUN makes a suite of pairs"
)
NO_JUDGE = "no model judges: --judge"


def validate_judge_prompt(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where another prompt was requested than there is."""
    prompt = OPTIONS["prompt"].default
    if options["prompt"] != prompt:
        raise ConfigError(
            f"judge.prompt tells the prompt's digest and cannot be set; it is {prompt}."
        )


def judge_role(number: int) -> str:
    """Return the role of a judge by its number from 0: judge, judge_2, judge_3."""
    return ROLE if number == 0 else f"{ROLE}_{number + 1}"


class JudgeRequests(NamedTuple):
    """The two requests of one judge's draw of one pair."""

    judge: ModelRef
    """The model that judges."""
    sample: int
    """Which draw it is."""
    base_first: Complete
    """The request with the base response first."""
    tuned_first: Complete
    """The request with the base response second."""


_JUDGED = (cards.SCORE, cards.ORDER_EFFECT, cards.TIE)
STATISTICS = (
    judge_mean,
    judge_mean_equal_length,
    judge_length_rho,
    judge_length_p,
    judge_agreement,
    judge_same_side,
    judge_kappa,
)


@scorer(
    *cards.ALL,
    version=1,
    name="judge",
    options=OPTIONS,
    check=validate_judge_prompt,
    roles=(ROLE,),
    statistics=STATISTICS,
)
def judge(item: Item, params: Params, peers: Peers) -> Program:
    """Ask every judge for both orders in one round, and average the two verdicts."""
    pair = item.meta.get(BASE), item.meta.get(TUNED)
    judges = [
        ref for role, ref in params.models.items() if role == ROLE or role.startswith(f"{ROLE}_")
    ]
    scores = ItemScores(item)
    if not judges or not all(isinstance(text, str) and text.strip() for text in pair):
        scores.add_missing(_JUDGED, NO_JUDGE if not judges else NO_PAIR)
        return tuple(scores.scores)
    base, tuned = map(str, pair)
    draws = [
        _ask(item.question, base, tuned, ref, k, params)
        for ref in judges
        for k in range(params.repeats)
    ]
    yield from scores.ask([request for draw in draws for request in draw[2:]])
    _add_pair(scores, base, tuned, peers)
    for draw in draws:
        _add_judgement(scores, draw)
    return tuple(scores.scores)


def _ask(
    question: str, base: str, tuned: str, ref: ModelRef, sample: int, params: Params
) -> JudgeRequests:
    def complete(first: str, second: str) -> Complete:
        prompt = ask_comparison(question, first, second)
        return Complete(
            ref,
            prompt.messages,
            system=prompt.system,
            max_tokens=int(params.options["max_tokens"]),
            temperature=params.temperature,
            seed=params.seed,
            sample=sample,
        )

    return JudgeRequests(ref, sample, complete(base, tuned), complete(tuned, base))


def _add_pair(scores: ItemScores, base: str, tuned: str, peers: Peers) -> None:
    """Add what is known of a pair without a judge."""
    item = scores.item
    scores.add(cards.LENGTH_DIFFERENCE, float(len(tuned) - len(base)))
    first = next(
        (k for k, other in enumerate(peers.donor_order) if other.question == item.question),
        len(peers.donor_order),
    )
    scores.add(cards.PROMPT_GROUP, float(first))
    human = item.meta.get(HUMAN)
    if isinstance(human, int | float) and not isinstance(human, bool) and -10 <= human <= 10:
        scores.add(cards.HUMAN_SCORE, float(human))


def _add_judgement(scores: ItemScores, draw: JudgeRequests) -> None:
    """Add one judge's draw: positive where the fine-tuned response is the more unfaithful one."""
    facet, sample = {"judge": str(draw.judge)}, draw.sample
    keys = (draw.base_first.key, draw.tuned_first.key)
    verdicts = [_verdict(scores.replies[key]) for key in keys]
    missing_reason = worst_reason([verdict for verdict in verdicts if isinstance(verdict, tuple)])
    if missing_reason is not None:
        scores.add_missing(_JUDGED, missing_reason, on=keys, sample=sample, facet=facet)
        return
    tuned_second, base_second = (verdict for verdict in verdicts if isinstance(verdict, float))
    score, effect = (tuned_second - base_second) / 2, (tuned_second + base_second) / 2
    for card, value in zip(_JUDGED, (score, effect, float(score == 0)), strict=True):
        scores.add(card, value, on=keys, sample=sample, facet=facet)


def _verdict(reply: Reply) -> float | MissingReason:
    """Return what one order's reply says of the second response, or why it says nothing."""
    if (missing_reason := missing_reply(reply)) is not None:
        return missing_reason
    assert isinstance(reply, Response)
    try:
        return read_verdict(reply.text or "").score
    except BadVerdict as wrong:
        truncation_note = (
            " (the reply was cut off at its longest: --set judge.max_tokens=…)"
            if reply.finish == "length"
            else ""
        )
        return "undefined", f"{wrong}{truncation_note}"
