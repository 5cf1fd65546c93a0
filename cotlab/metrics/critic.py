"""The critic: a model reads a whole chain and names its first wrong step, or rates it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial

from cotlab.core.program import Option, Params, Peers, Program, RequestRound, scorer
from cotlab.core.requests import Reply, Response
from cotlab.core.types import CHAINS, Item, MetricCard
from cotlab.metrics.kit import (
    ItemScores,
    MissingReason,
    chain_of,
    reply_text,
    worst_reason,
)
from cotlab.metrics.votes import (
    CRITIC_ROLE,
    NO_STEP_REASON,
    critic_request,
    majority_verdict,
    missing_critic_reason,
    read_vote,
    sound_share,
    vote_requests,
)
from cotlab.text.prompts.critic import (
    Rating,
    rating_prompt,
    read_rating,
)
from cotlab.text.prompts.json_reply import InvalidReply

_CAVEAT = (
    "A critic is a language model that reads text which others wrote: the steps stand between marks"
    " that they cannot forge, but may sway it, and it may share the faults of those it judges. What"
    " its verdicts are worth here is measured against labels: `cotlab evaluate`."
)
_FAILED_TEXT = (
    "Undefined where the request failed or was refused, or the reply was cut off or is not the JSON"
    " that was asked for: a critic that fails finds nothing sound."
)
_card = partial(
    MetricCard, level="chain", source="cotlab; the task is that of ProcessBench, arXiv:2412.06559"
)
CRITIC_STEP = _card(
    name="critic_step",
    symbol="critic",
    formula="index, from 0, of the first wrong step that the critic names, in one request for the"
    " whole chain. Of several votes (`--role verifier.votes`) the majority decides whether there"
    " is a mistake, and the step named most often where it is",
    undefined=f"“{NO_STEP_REASON}”: it finds no mistake. Any other reason: not known. The votes"
    f" tie on the step, or votes are missing that could change the result. {_FAILED_TEXT}",
    not_shown=f"Mistakes after the first. {_CAVEAT}",
    hi=100_000.0,
    unit="steps",
    none_reason=NO_STEP_REASON,
)
CRITIC_SOUND = _card(
    name="critic_sound",
    symbol="sound",
    formula="share of the critic's votes that find no mistake in the chain; with one vote 1 or 0",
    undefined=f"A vote is missing. {_FAILED_TEXT}",
    not_shown="A probability: votes at temperature 0 repeat one another, and a share of votes is"
    f" not calibrated (`cotlab calibrate`). That the model used the chain. {_CAVEAT}",
    better="higher",
)
CRITIC_CARDS = (CRITIC_STEP, CRITIC_SOUND)
_rating_card = partial(_card, better="higher", source="cotlab")
LEGIBILITY = _rating_card(
    name="legibility",
    symbol="leg",
    formula="the critic's rating from 0 to 1 of how well a reader who knows the field can follow"
    " each step from those before it; its reason stands in the reply",
    undefined=_FAILED_TEXT,
    not_shown="Whether the chain is right, or was used. The numbers of two critics are not on one"
    f" scale. {_CAVEAT}",
)
QUESTION_COVERAGE = _rating_card(
    name="question_coverage",
    symbol="q-cov",
    formula="the critic's rating from 0 to 1 of the share of what the question asks and states"
    " that the steps take up; its reason stands in the reply",
    undefined=_FAILED_TEXT,
    not_shown="Whether what is taken up is taken up rightly. The numbers of two critics are not on"
    f" one scale. {_CAVEAT}",
)
RATING_CARDS = (LEGIBILITY, QUESTION_COVERAGE)
OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is judged", choices=CHAINS)
}
NO_CRITIC_REASON = "no critic is asked: --verifier critic:PROVIDER/MODEL"


def _read_chain(
    item: Item, params: Params, metric_cards: Sequence[MetricCard]
) -> Generator[RequestRound, Sequence[Reply], tuple[ItemScores, Sequence[str]]]:
    """Return the item's scores and the steps to judge; none where the scores say why not."""
    model = params.models.get(CRITIC_ROLE)
    scores = ItemScores(item, {"chain": str(params.options["chain"]), "critic": str(model or "")})
    if model is None:
        scores.add_missing(metric_cards, NO_CRITIC_REASON)
        return scores, ()
    steps, scores.keys, missing_reason, *_ = yield from chain_of(item, params)
    if not any(step.strip() for step in steps):
        scores.add_missing(metric_cards, missing_reason)
        return scores, ()
    return scores, steps


@scorer(*CRITIC_CARDS, version=2, name="critic", options=OPTIONS, roles=(CRITIC_ROLE,))
def critic(item: Item, params: Params, peers: Peers) -> Program:
    """Ask the critic for the first wrong step, as often as it has votes, in one round."""
    scores, steps = yield from _read_chain(item, params, CRITIC_CARDS)
    if not steps:
        return tuple(scores.scores)
    requests = [
        vote_requests(params.models[CRITIC_ROLE], item.question, steps, params, repeat)
        for repeat in range(params.repeats)
    ]
    yield from scores.ask([request for votes in requests for request in votes])
    for repeat, repeat_requests in enumerate(requests):
        votes = [read_vote(scores.replies[r.key], len(steps)) for r in repeat_requests]
        verdict, sound = majority_verdict(votes), sound_share(votes)
        keys = [request.key for request in repeat_requests]
        read_keys = [k for k, vote in zip(keys, votes, strict=True) if vote.missing_reason is None]
        scores.add(
            CRITIC_STEP,
            None if verdict.step is None else float(verdict.step),
            rests_on=read_keys if verdict.is_decided else keys,
            reason=verdict.missing_reason,
            sample=repeat,
        )
        scores.add(
            CRITIC_SOUND,
            sound,
            rests_on=keys,
            reason=worst_reason([vote.missing_reason for vote in votes]),
            sample=repeat,
        )
    return tuple(scores.scores)


@scorer(*RATING_CARDS, version=2, name="rubric", options=OPTIONS, roles=(CRITIC_ROLE,))
def rubric(item: Item, params: Params, peers: Peers) -> Program:
    """Ask the critic to rate the chain, once for each repeat."""
    scores, steps = yield from _read_chain(item, params, RATING_CARDS)
    if not steps:
        return tuple(scores.scores)
    prompt, model = rating_prompt(item.question, steps), params.models[CRITIC_ROLE]
    requests = [critic_request(model, prompt, params, n) for n in range(params.repeats)]
    replies = yield from scores.ask(requests)
    for repeat, reply in enumerate(replies):
        rating = _read_rating_or_reason(reply)
        if not isinstance(rating, Rating):
            scores.add_missing(RATING_CARDS, rating, rests_on=[reply], sample=repeat)
            continue
        scores.add(LEGIBILITY, rating.legibility, rests_on=[reply], sample=repeat)
        scores.add(QUESTION_COVERAGE, rating.question_coverage, rests_on=[reply], sample=repeat)
    return tuple(scores.scores)


def _read_rating_or_reason(reply: Reply) -> Rating | MissingReason:
    missing_reason = missing_critic_reason(reply)
    if missing_reason is not None or not isinstance(reply, Response):
        return missing_reason or ("undefined", "no reply")
    try:
        return read_rating(reply_text(reply))
    except InvalidReply as error:
        return "undefined", str(error)
