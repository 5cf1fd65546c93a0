"""Features of a chain as a text: one metric each, from the text alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cotlab.core.program import Option, Params, Peers, Program, scorer
from cotlab.core.types import CHAINS, Item, MetricCard
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
_NO_NUMBER = "The answer has no number."
_FORMULAS: Mapping[str, tuple[str, str, str]] = {
    "text_characters": (_COUNT, "chars", "characters of the steps"),
    "text_words": (_COUNT, "words", "words of three letters or more in the steps"),
    "text_steps": (_COUNT, "steps", "steps with text"),
    "longest_step_characters": (_COUNT, "max chars", "characters of the longest step"),
    "first_step_characters": (_COUNT, "first chars", "characters of the first step"),
    "last_step_characters": (_COUNT, "last chars", "characters of the last step"),
    "step_length_variation": (
        _COUNT,
        "cv",
        "standard deviation of the steps' characters / their mean",
    ),
    "question_characters": (_COUNT, "question", "characters of the question"),
    "hedging_words": (_COUNT, "hedge", "words such as approximately, assume, seems, may"),
    "doubt_words": (_COUNT, "doubt", "words such as however, but, mistake, wait, instead"),
    "checking_words": (_COUNT, "check", "words such as check, verify, satisfies, indeed"),
    "inference_words": (_COUNT, "infer", "words such as therefore, so, since, because"),
    "case_words": (_COUNT, "cases", "words such as case, try, each, possible, at most"),
    "plan_words": (_COUNT, "plan", "phrases such as we need, we can, let us, I will"),
    "operation_words": (_COUNT, "operate", "words such as simplify, substitute, divide"),
    "theory_words": (_COUNT, "theory", "words such as theorem, formula, identity, method"),
    "assertion_words": (_COUNT, "assert", "words such as clearly, simply, just, must"),
    "distinct_numbers": (_COUNT, "numbers", "distinct numerals of the chain"),
    "new_numbers": (
        _COUNT,
        "new",
        "numerals, counted a step, that stand neither in the question nor in a step before",
    ),
    "new_number_share": (
        _SHARE,
        "new share",
        "`new_numbers` / distinct numerals, summed over the steps",
    ),
    "new_number_share_last_step": (
        _SHARE,
        "new last",
        "share of the last step's distinct numerals that stand nowhere before; 0 without one",
    ),
    "new_large_numbers": (_COUNT, "new large", f"`new_numbers` above {SMALL_NUMBER}"),
    "question_numbers": (_COUNT, "q numbers", "distinct numerals of the question"),
    "question_numbers_used": (
        _SHARE,
        "q used",
        "share of the question's distinct numerals that the chain states",
    ),
    "longest_number": (_COUNT, "digits", "digits of the longest run of digits"),
    "decimal_numbers": (_COUNT, "decimals", "numerals with a decimal point"),
    "question_overlap": (
        _SHARE,
        "q overlap",
        "mean over the steps of the Jaccard similarity of a step's and the question's words",
    ),
    "question_overlap_last_step": (
        _SHARE,
        "q overlap last",
        "Jaccard similarity of the last step's and the question's words",
    ),
    "step_overlap": (
        _SHARE,
        "overlap",
        "mean Jaccard similarity of the words of a step and the one before",
    ),
    "new_word_share": (
        _SHARE,
        "new words",
        "mean over the steps of the share of words that stand neither in the question nor before",
    ),
    "repeated_step": (
        _SHARE,
        "repeat",
        "largest Jaccard similarity of the words of two steps at most four apart",
    ),
    "answer_missing": (_FLAG, "no answer", "1 where the chain states no final answer, else 0"),
    "answer_characters": (_COUNT, "answer chars", "characters of the final answer"),
    "answer_in_question": (
        _FLAG,
        "answer in q",
        "1 where every numeral of the answer stands in the question, else 0",
    ),
    "answer_before_last_step": (
        _FLAG,
        "answer before",
        "1 where every numeral of the answer stands in a step before the last, else 0",
    ),
    "answer_mentions": (_COUNT, "mentions", "steps that state every numeral of the answer"),
    "answer_is_last_result": (
        _FLAG,
        "last result",
        "1 where the last number after an equality sign is one of the answer's, else 0",
    ),
    "answer_is_integer": (_FLAG, "integer", "1 where the answer is an integer in digits, else 0"),
    "false_equations": (_COUNT, "false", "equations that arithmetic finds false"),
    "true_equations": (_COUNT, "true", "equations that arithmetic finds true"),
    "undecided_equations": (_COUNT, "open", "equations that arithmetic cannot decide"),
    "checked_step_share": (
        _SHARE,
        "checked",
        "share of the steps with an equation that arithmetic decides",
    ),
}
"""Feature → kind, symbol and formula."""
_UNDEFINED_BY_FEATURE: Mapping[str, str] = {
    "new_number_share": "No step states a numeral.",
    "question_numbers_used": "The question has no numeral.",
    "question_overlap": "No step and not the question has a word.",
    "question_overlap_last_step": "Neither has a word.",
    "step_overlap": "The chain has one step, or no words.",
    "repeated_step": "The chain has one step.",
    "answer_characters": "The chain states no answer.",
    "answer_is_integer": "The chain states no answer.",
    "answer_in_question": _NO_NUMBER,
    "answer_mentions": _NO_NUMBER,
    "answer_before_last_step": f"{_NO_NUMBER} Or the chain has one step.",
    "answer_is_last_result": f"{_NO_NUMBER} Or no number stands after an equality sign.",
}
"""When a feature has no value although there is a chain."""
_BETTER_BY_FEATURE: Mapping[str, Literal["higher", "lower"]] = {
    "answer_missing": "lower",
    "false_equations": "lower",
}
"""Direction of the features that are faults; of all others only labels can say."""


def _feature_card(name: str, family: str) -> MetricCard:
    kind, symbol, formula = _FORMULAS[name]
    return MetricCard(
        name=name,
        symbol=symbol,
        formula=f"{formula}; family {family}",
        undefined=f"{_UNDEFINED_BY_FEATURE.get(name, '')} {_UNDEFINED_TEXT}".lstrip(),
        not_shown=_CAVEAT_BY_FAMILY[family],
        level="chain",
        hi=MAX_COUNT if kind == _COUNT else 1.0,
        flag=kind == _FLAG,
        better=_BETTER_BY_FEATURE.get(name, "neither"),
        source=_SOURCE,
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
    scores.keys = chain.keys
    steps = tuple(step for step in chain.steps if step.strip())
    if not steps:
        return scores.add_missing(CARD_BY_FEATURE.values(), chain.missing_reason)
    text = reply_text(chain.reply) or chain_text(steps)
    features = chain_features(item.question, steps, answer_to(item, text), read_steps(steps))
    for name, value in features.items():
        card = CARD_BY_FEATURE[name]
        number = None if value is None else min(value, MAX_COUNT)
        scores.add(card, number, reason=card.undefined.partition(".")[0])
    return tuple(scores.scores)
