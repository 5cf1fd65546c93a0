"""Features of a chain as a text: one metric each, from the text alone."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.types import CHAINS, Item
from cotlab.metrics.kit import ItemScores, chain_of, reply_text
from cotlab.metrics.text_features.cards import CARD_BY_FEATURE, MAX_COUNT
from cotlab.text.answers.targets import answer_to
from cotlab.text.arithmetic.readings import read_steps
from cotlab.text.chain_features.chain import chain_features
from cotlab.text.prompts.chain import chain_text

OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is read", choices=CHAINS),
}
NAME = "text_features"


@scorer(*CARD_BY_FEATURE.values(), version=11, name=NAME, options=OPTIONS)
def text_features(item: Item, params: Params, peers: Peers) -> Program:
    """Read the chain and its final answer as texts."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    chain = yield from chain_of(item, params)
    steps = tuple(step for step in chain.steps if step.strip())
    if not steps:
        return scores.add_missing(
            CARD_BY_FEATURE.values(), chain.missing_reason, rests_on=chain.keys
        )
    text = reply_text(chain.reply) or chain_text(steps)
    features = chain_features(item.question, steps, answer_to(item, text), read_steps(steps))
    for name, value in features.items():
        card = CARD_BY_FEATURE[name]
        scores.add(
            card,
            None if value is None else min(value, MAX_COUNT),
            rests_on=chain.keys,
            reason=card.undefined.partition(".")[0],
        )
    return tuple(scores.scores)
