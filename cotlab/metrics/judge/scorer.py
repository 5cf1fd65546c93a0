"""The judge: a model compares the responses of two models, blind and in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Reply, Response
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.judge import cards
from cotlab.metrics.judge.statistics import STATISTICS
from cotlab.metrics.kit import (
    ItemScores,
    MissingReason,
    missing_reply_reason,
    reply_text,
    worst_reason,
)
from cotlab.text.prompts.comparison import (
    PROMPT_DIGEST,
    InvalidVerdict,
    comparison_prompt,
    read_verdict,
)

JUDGE_ROLE = "judge"
BASE_KEY, TUNED_KEY, HUMAN_KEY = "base_response", "tuned_response", "human_score"
"""Keys of an item's meta: the two responses, and a person's score of the pair where there is one.
"""
OPTIONS: Mapping[str, Option] = {
    "prompt": Option(PROMPT_DIGEST[:16], "digest of the prompt, which cannot be set"),
    "max_tokens": Option(500, "maximum output tokens of a verdict", lo=50, hi=100_000),
}
NO_PAIR_REASON = (
    "the item is not a pair of responses: --base-run RUN --tuned-run RUN makes a suite of pairs"
)
NO_JUDGE_REASON = "no model judges: --judge"


def validate_judge_prompt(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where another prompt was requested than there is."""
    prompt = OPTIONS["prompt"].default
    if options["prompt"] != prompt:
        raise ConfigError(
            f"judge.prompt tells the prompt's digest and cannot be set; it is {prompt}."
        )


def judge_role(judge_number: int) -> str:
    """Return the role of a judge by its number from 0: judge, judge_2, judge_3."""
    return JUDGE_ROLE if judge_number == 0 else f"{JUDGE_ROLE}_{judge_number + 1}"


class JudgeRequests(NamedTuple):
    """The two requests of one judge's draw of one pair."""

    judge: ModelRef
    """The model that judges."""
    sample: int
    """Which draw it is."""
    base_first_request: Complete
    """The request with the base response first."""
    tuned_first_request: Complete
    """The request with the base response second."""


_VERDICT_CARDS = (cards.JUDGE_SCORE, cards.ORDER_EFFECT, cards.TIE)


@scorer(
    *cards.ALL_CARDS,
    version=2,
    name="judge",
    options=OPTIONS,
    check=validate_judge_prompt,
    roles=(JUDGE_ROLE,),
    statistics=STATISTICS,
)
def judge(item: Item, params: Params, peers: Peers) -> Program:
    """Ask every judge for both orders in one round, and average the two verdicts."""
    response_pair = item.meta.get(BASE_KEY), item.meta.get(TUNED_KEY)
    judges = [
        judge_model
        for role, judge_model in params.models.items()
        if role == JUDGE_ROLE or role.startswith(f"{JUDGE_ROLE}_")
    ]
    scores = ItemScores(item)
    if not judges or not all(isinstance(text, str) and text.strip() for text in response_pair):
        return scores.add_missing(_VERDICT_CARDS, NO_JUDGE_REASON if not judges else NO_PAIR_REASON)
    base_response, tuned_response = map(str, response_pair)
    judge_requests = [
        _make_judge_requests(item.question, base_response, tuned_response, judge_model, k, params)
        for judge_model in judges
        for k in range(params.repeats)
    ]
    yield from scores.ask(
        [request for request_pair in judge_requests for request in request_pair[2:]]
    )
    _add_pair_scores(scores, base_response, tuned_response, peers)
    for request_pair in judge_requests:
        _add_verdict_scores(scores, request_pair)
    return tuple(scores.scores)


def _make_judge_requests(
    question: str,
    base_response: str,
    tuned_response: str,
    judge_model: ModelRef,
    sample: int,
    params: Params,
) -> JudgeRequests:
    def verdict_request(first_response: str, second_response: str) -> Complete:
        prompt = comparison_prompt(question, first_response, second_response)
        return Complete(
            judge_model,
            prompt.messages,
            system=prompt.system,
            max_tokens=int(params.options["max_tokens"]),
            temperature=params.temperature,
            seed=params.seed,
            sample=sample,
        )

    return JudgeRequests(
        judge_model,
        sample,
        verdict_request(base_response, tuned_response),
        verdict_request(tuned_response, base_response),
    )


def _add_pair_scores(
    scores: ItemScores, base_response: str, tuned_response: str, peers: Peers
) -> None:
    """Add what is known of a pair without a judge."""
    item = scores.item
    scores.add(cards.LENGTH_DIFFERENCE, float(len(tuned_response) - len(base_response)))
    group_index = next(
        (
            k
            for k, other_item in enumerate(peers.ring_items)
            if other_item.question == item.question
        ),
        len(peers.ring_items),
    )
    scores.add(cards.PROMPT_GROUP, float(group_index))
    human_score = item.meta.get(HUMAN_KEY)
    if (
        isinstance(human_score, int | float)
        and not isinstance(human_score, bool)
        and -10 <= human_score <= 10
    ):
        scores.add(cards.HUMAN_SCORE, float(human_score))


def _add_verdict_scores(scores: ItemScores, request_pair: JudgeRequests) -> None:
    """Add one judge's draw: positive where the fine-tuned response is the more unfaithful one."""
    facet, sample = {"judge": str(request_pair.judge)}, request_pair.sample
    keys = (request_pair.base_first_request.key, request_pair.tuned_first_request.key)
    verdicts = [_read_score_or_reason(scores.replies[key]) for key in keys]
    missing_reason = worst_reason([verdict for verdict in verdicts if isinstance(verdict, tuple)])
    if missing_reason is not None:
        scores.add_missing(
            _VERDICT_CARDS, missing_reason, rests_on=keys, sample=sample, facet=facet
        )
        return
    tuned_second_score, base_second_score = (
        verdict for verdict in verdicts if isinstance(verdict, float)
    )
    score = (tuned_second_score - base_second_score) / 2
    order_effect = (tuned_second_score + base_second_score) / 2
    for card, value in zip(_VERDICT_CARDS, (score, order_effect, float(score == 0)), strict=True):
        scores.add(card, value, rests_on=keys, sample=sample, facet=facet)


def _read_score_or_reason(reply: Reply) -> float | MissingReason:
    """Return what one order's reply says of the second response, or why it says nothing."""
    if (missing_reason := missing_reply_reason(reply)) is not None:
        return missing_reason
    assert isinstance(reply, Response)
    try:
        return read_verdict(reply_text(reply)).score
    except InvalidVerdict as error:
        truncation_note = (
            " (the reply was cut off at its longest: --set judge.max_tokens=…)"
            if reply.finish == "length"
            else ""
        )
        return "undefined", f"{error}{truncation_note}"
