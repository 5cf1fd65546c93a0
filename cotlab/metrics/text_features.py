"""Features of a chain as a text: one metric each, from the text alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.types import CHAINS, Item, MetricCard
from cotlab.metrics.cards import metric_card
from cotlab.metrics.kit import ItemScores, chain_of, reply_text
from cotlab.text.answers.targets import answer_to
from cotlab.text.arithmetic.readings import read_steps
from cotlab.text.chain_features.chain import FAMILIES, SMALL_NUMBER, chain_features
from cotlab.text.prompts.chain import chain_text

MAX_COUNT = 1e9
_SOURCE = (
    "cotlab; families as in the study of ProcessBench chains (Zheng et al. 2024, arXiv 2412.06559)"
)
_SHARE, _COUNT, _FLAG = "share", "count", "flag"
_CAVEAT_BY_FAMILY: Mapping[str, str] = {
    "length": (
        "Whether the chain is right: length is mostly the difficulty of the question and the habit"
        " of a model. Gamed by writing less or more; a ranking by it does not carry over to other"
        " questions, so it has no weight but in a fit on labels of the same domain."
    ),
    "wording": (
        "Whether the chain is right: these words are style, and partly difficulty. Gamed by"
        " leaving them out or adding them; on other tasks the direction is reversed, so they have"
        " no weight but in a fit on labels of the same domain. English alone."
    ),
    "numbers": (
        "Whether a number is right: it compares digits as they are spelled, and a computed value"
        " is new too. Gamed by repeating numbers or spelling them as words."
    ),
    "overlap": (
        "Whether what is said follows: it compares words, not meanings. Gamed by repeating the"
        " question."
    ),
    "answer": (
        "Whether the answer is right: it compares the answer with the chain and the question"
        " alone. Gamed by repeating the answer in the steps."
    ),
    "equations": (
        "Mistakes without an equation that arithmetic decides, such as a wrong plan. Gamed by"
        " writing no equations, or true ones that matter to nothing."
    ),
}
_UNDEFINED_TEXT = "There is no chain. Also where the model's own chain is missing or refused."
_NO_NUMBER = "The answer has no number. "
_FORMULAS: Mapping[str, tuple[str, str, str, str]] = {
    "text_characters": ("chars", _COUNT, "characters of the steps", ""),
    "text_words": ("words", _COUNT, "words of three letters or more in the steps", ""),
    "text_steps": ("steps", _COUNT, "steps with text", ""),
    "longest_step_characters": ("max chars", _COUNT, "characters of the longest step", ""),
    "first_step_characters": ("first chars", _COUNT, "characters of the first step", ""),
    "last_step_characters": ("last chars", _COUNT, "characters of the last step", ""),
    "step_length_variation": (
        "cv",
        _COUNT,
        "standard deviation of the steps' characters / their mean",
        "",
    ),
    "question_characters": ("question", _COUNT, "characters of the question", ""),
    "hedging_words": ("hedge", _COUNT, "words such as approximately, assume, seems, may", ""),
    "doubt_words": ("doubt", _COUNT, "words such as however, but, mistake, wait, instead", ""),
    "checking_words": ("check", _COUNT, "words such as check, verify, satisfies, indeed", ""),
    "inference_words": ("infer", _COUNT, "words such as therefore, so, since, because", ""),
    "case_words": ("cases", _COUNT, "words such as case, try, each, possible, at most", ""),
    "plan_words": ("plan", _COUNT, "phrases such as we need, we can, let us, I will", ""),
    "operation_words": ("operate", _COUNT, "words such as simplify, substitute, divide", ""),
    "theory_words": ("theory", _COUNT, "words such as theorem, formula, identity, method", ""),
    "assertion_words": ("assert", _COUNT, "words such as clearly, simply, just, must", ""),
    "distinct_numbers": ("numbers", _COUNT, "distinct numerals of the chain", ""),
    "new_numbers": (
        "new",
        _COUNT,
        "numerals, counted a step, that stand neither in the question nor in a step before",
        "",
    ),
    "new_number_share": (
        "new share",
        _SHARE,
        "`new_numbers` / distinct numerals, summed over the steps",
        "No step states a numeral. ",
    ),
    "new_number_share_last_step": (
        "new last",
        _SHARE,
        "share of the last step's distinct numerals that stand nowhere before; 0 without one",
        "",
    ),
    "new_large_numbers": ("new large", _COUNT, f"`new_numbers` above {SMALL_NUMBER}", ""),
    "question_numbers": ("q numbers", _COUNT, "distinct numerals of the question", ""),
    "question_numbers_used": (
        "q used",
        _SHARE,
        "share of the question's distinct numerals that the chain states",
        "The question has no numeral. ",
    ),
    "longest_number": ("digits", _COUNT, "digits of the longest run of digits", ""),
    "decimal_numbers": ("decimals", _COUNT, "numerals with a decimal point", ""),
    "question_overlap": (
        "q overlap",
        _SHARE,
        "mean over the steps of the Jaccard similarity of a step's and the question's words",
        "No step and not the question has a word. ",
    ),
    "question_overlap_last_step": (
        "q overlap last",
        _SHARE,
        "Jaccard similarity of the last step's and the question's words",
        "Neither has a word. ",
    ),
    "step_overlap": (
        "overlap",
        _SHARE,
        "mean Jaccard similarity of the words of a step and the one before",
        "The chain has one step, or no words. ",
    ),
    "new_word_share": (
        "new words",
        _SHARE,
        "mean over the steps of the share of words that stand neither in the question nor before",
        "",
    ),
    "repeated_step": (
        "repeat",
        _SHARE,
        "largest Jaccard similarity of the words of two steps at most four apart",
        "The chain has one step. ",
    ),
    "answer_missing": ("no answer", _FLAG, "1 where the chain states no final answer, else 0", ""),
    "answer_characters": (
        "answer chars",
        _COUNT,
        "characters of the final answer",
        "The chain states no answer. ",
    ),
    "answer_in_question": (
        "answer in q",
        _FLAG,
        "1 where every numeral of the answer stands in the question, else 0",
        _NO_NUMBER,
    ),
    "answer_before_last_step": (
        "answer before",
        _FLAG,
        "1 where every numeral of the answer stands in a step before the last, else 0",
        _NO_NUMBER + "Or the chain has one step. ",
    ),
    "answer_mentions": (
        "mentions",
        _COUNT,
        "steps that state every numeral of the answer",
        _NO_NUMBER,
    ),
    "answer_is_last_result": (
        "last result",
        _FLAG,
        "1 where the last number after an equality sign is one of the answer's, else 0",
        _NO_NUMBER + "Or no number stands after an equality sign. ",
    ),
    "answer_is_integer": (
        "integer",
        _FLAG,
        "1 where the answer is an integer in digits, else 0",
        "The chain states no answer. ",
    ),
    "false_equations": ("false", _COUNT, "equations that arithmetic finds false", ""),
    "true_equations": ("true", _COUNT, "equations that arithmetic finds true", ""),
    "undecided_equations": ("open", _COUNT, "equations that arithmetic cannot decide", ""),
    "checked_step_share": (
        "checked",
        _SHARE,
        "share of the steps with an equation that arithmetic decides",
        "",
    ),
}
"""Feature → symbol, kind, formula, and when it is undefined beside a missing chain."""
_BETTER_BY_FEATURE: Mapping[str, Literal["higher", "lower"]] = {
    "answer_missing": "lower",
    "false_equations": "lower",
}
"""Direction of the features that are faults; of all others only labels can say."""


def _feature_card(name: str, family: str) -> MetricCard:
    symbol, kind, formula, undefined = _FORMULAS[name]
    return metric_card(
        name,
        symbol,
        f"{formula}; family {family}",
        undefined,
        _CAVEAT_BY_FAMILY[family],
        level="chain",
        hi=MAX_COUNT if kind == _COUNT else 1.0,
        flag=kind == _FLAG,
        better=_BETTER_BY_FEATURE.get(name, "neither"),
        source=_SOURCE,
        shared_undefined_text=_UNDEFINED_TEXT,
    )


CARD_BY_FEATURE: Mapping[str, MetricCard] = {
    name: _feature_card(name, family) for family, names in FAMILIES.items() for name in names
}
"""Feature → its card, in the order of ``cotlab.text.chain_features.chain.FEATURES``."""


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
