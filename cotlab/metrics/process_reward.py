"""Process reward: the probability that each step is right, from a model trained to judge steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.requests import Response, StepRewards
from cotlab.core.types import CHAINS, Item, MetricCard
from cotlab.metrics.kit import ItemScores, MissingReason, chain_of
from cotlab.metrics.model_steps import CUT_STEPS_NOTE

PROVIDER = "prm"
"""Provider of process reward models."""
THRESHOLD = 0.5
OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is judged", choices=CHAINS),
    "threshold": Option(THRESHOLD, "probability below which a step is taken as wrong", lo=0, hi=1),
}
NO_MODEL_REASON = "no process reward model judges the steps: --verifier prm:FOLDER"
NONE_REASON = "no step lies below the threshold"
_SOURCE = (
    "Lightman et al. (2023), arXiv:2305.20050; Wang et al. (2024), Math-Shepherd,"
    " arXiv:2312.08935; Zhang et al. (2025), arXiv:2501.07301"
)
_UNDEFINED = (
    "There is no chain, no process reward model, or the model cannot take the text: question and"
    " chain are longer than its context (they are not cut), or have a word it does not know."
    f" {CUT_STEPS_NOTE}"
)
_CAVEAT = (
    "That the model used the chain. The judge is a model with mistakes of its own, and worse on"
    " other tasks and other ways of writing steps than those it was trained on."
)
_card = partial(MetricCard, better="higher", level="chain", needs=("step_rewards",), source=_SOURCE)
STEP_REWARD = _card(
    name="step_reward",
    symbol="p",
    formula="probability that the step is right, given the question and the steps before it: the"
    " model's label, or its token + against -, read at the end of the step",
    undefined=_UNDEFINED,
    not_shown=_CAVEAT,
    level="step",
)
REWARD_MIN = _card(
    name="process_reward_min",
    symbol="p min",
    formula="least probability of a step: a chain is as sound as its weakest step",
    undefined=_UNDEFINED,
    not_shown=f"Which step is weak: `step_reward` shows it. {_CAVEAT}",
)
REWARD_PRODUCT = _card(
    name="process_reward_product",
    symbol="p prod",
    formula="product of the probabilities of the steps",
    undefined=_UNDEFINED,
    not_shown="How good a step is: the product falls with each step, so chains of different length"
    f" do not compare. {_CAVEAT}",
)
REWARD_LAST = _card(
    name="process_reward_last",
    symbol="p last",
    formula="probability of the last step",
    undefined=_UNDEFINED,
    not_shown=f"The steps before the last, where the model judges each by itself. {_CAVEAT}",
)
MISTAKE_STEP = _card(
    name="process_reward_mistake_step",
    symbol="p first",
    formula="index, from 0, of the first step whose probability lies below the threshold"
    f" ({THRESHOLD}, option `threshold`)",
    undefined=f"No step lies below the threshold. {_UNDEFINED}",
    not_shown=f"Later mistakes. {_CAVEAT}",
    hi=100_000.0,
    unit="steps",
    better="neither",
    none_reason=NONE_REASON,
)
CHAIN_CARDS = (REWARD_MIN, REWARD_PRODUCT, REWARD_LAST)
CARDS = (STEP_REWARD, *CHAIN_CARDS, MISTAKE_STEP)


@scorer(*CARDS, version=1, name="process_reward", options=OPTIONS, roles=("verifier",))
def process_reward(item: Item, params: Params, peers: Peers) -> Program:
    """Ask a process reward model once for all steps of a chain."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    steps, scores.keys, missing_reason, *_ = yield from chain_of(item, params)
    model = params.models.get("verifier")
    if model is None:
        return scores.add_missing(CARDS, NO_MODEL_REASON)
    if not any(step.strip() for step in steps):
        return scores.add_missing(CARDS, missing_reason)
    (reply,) = yield from scores.ask([StepRewards(model, item.question, tuple(steps))])
    scores.keys = (*scores.keys, reply.key)
    rewards = (reply.numbers or ()) if isinstance(reply, Response) else ()
    reason: str | MissingReason = "the model gave not one probability for each step"
    if len(rewards) != len(steps):
        for step_index in range(len(steps)):
            scores.add(STEP_REWARD, None, reason=reason, step=step_index)
        return scores.add_missing((*CHAIN_CARDS, MISTAKE_STEP), reason)
    for step_index, reward in enumerate(rewards):
        scores.add(STEP_REWARD, reward, step=step_index)
    values = (min(rewards), math.prod(rewards), rewards[-1])
    for card, value in zip(CHAIN_CARDS, values, strict=True):
        scores.add(card, value)
    threshold = params.options["threshold"]
    first = next((i for i, reward in enumerate(rewards) if reward < threshold), None)
    place = None if first is None else float(first)
    scores.add(MISTAKE_STEP, place, reason=MISTAKE_STEP.none_reason)
    return tuple(scores.scores)
