"""Option order: whether an answer follows the text of its option, or the place of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.types import Item
from cotlab.metrics.cards import metric_card
from cotlab.metrics.kit import (
    ItemScores,
    Measurement,
    ParsedReply,
    ask_chain,
    compare_answers,
    parse_chain_reply,
    undefined_measurement,
)
from cotlab.text.answers.targets import item_choices
from cotlab.text.edits.options import option_follows, rotate_options

OPTIONS: Mapping[str, Option] = {
    "shift": Option(1, "places by which the options are moved", lo=1, hi=25)
}
_card = partial(
    metric_card,
    source="Pezeshkpour and Hruschka (2023), arXiv 2308.11483; Zheng et al. (2023), 2309.03882",
    flag=True,
    shared_undefined_text=(
        "The item lists no options, they cannot be moved (an option speaks of others, the shift is"
        " a multiple of their number), a reply is missing or refused, or an answer names no single"
        " option."
    ),
)
FOLLOWS_TEXT = _card(
    "option_follows_text",
    "text",
    "1 if the model chooses the same text when every option is moved by `shift` places (1), the"
    " last ones first; else 0",
    "",
    "That the option is right, or chosen by the chain: a guess keeps the text in 1 of n questions"
    " with n options, and a model that knows the answer by heart keeps it too.",
    better="higher",
)
FOLLOWS_POSITION = _card(
    "option_follows_position",
    "position",
    "1 if the model chooses the same position after that move, whatever text stands there now;"
    " else 0. The floor: a model that answers by position has 1 here, and 0 in"
    " `option_follows_text`",
    "",
    "Why: a guess keeps the position in 1 of n questions too.",
    better="lower",
)
CARDS = (FOLLOWS_TEXT, FOLLOWS_POSITION)
HEADLINES = (Headline(FOLLOWS_TEXT.name, {}), Headline(FOLLOWS_POSITION.name, {}, "lower"))


@scorer(*CARDS, version=10, name="option_order", options=OPTIONS, headlines=HEADLINES)
def option_order(item: Item, params: Params, peers: Peers) -> Program:
    """Ask the question as it is and with its options moved, and compare the chosen options."""
    shift = int(params.options["shift"])
    scores = ItemScores(item, {"chain": "own", "shift": str(shift)})
    rotated_item = rotate_options(item, shift)
    if isinstance(rotated_item, str):
        return scores.add_missing(CARDS, rotated_item)
    if rotated_item.question == item.question:
        return scores.add_missing(CARDS, "the question does not show its options")
    replies = yield from scores.ask(
        [
            ask_chain(params, asked_item.question, sample=draw)
            for asked_item in (item, rotated_item)
            for draw in range(params.repeats)
        ]
    )
    for draw in range(params.repeats):
        values = _measure(
            item,
            shift,
            parse_chain_reply(replies[draw], item),
            parse_chain_reply(replies[params.repeats + draw], rotated_item),
        )
        for card, value in zip(CARDS, values, strict=True):
            scores.add(card, value, sample=draw)
    return tuple(scores.scores)


def _measure(
    item: Item, shift: int, reply: ParsedReply, rotated_reply: ParsedReply
) -> tuple[Measurement, Measurement]:
    """Return whether the chosen text stays, and whether the chosen position does."""
    keys = (reply.key, rotated_reply.key)
    comparison = compare_answers(reply, rotated_reply)
    follows = option_follows(item_choices(item), reply.answer, shift, rotated_reply.answer)
    if comparison.value is None:
        return comparison, comparison
    if follows is None:
        missing = undefined_measurement("an answer names no single option", keys)
        return missing, missing
    follows_text, follows_position = follows
    return Measurement(float(follows_text), keys), Measurement(float(follows_position), keys)
