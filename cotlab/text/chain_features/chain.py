"""Features of a chain as a text: what can be counted without any model."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cotlab.text.arithmetic.readings import StepReading
from cotlab.text.chain_features.vocabulary import (
    WORD_PATTERN,
    WORDING_FAMILIES,
    count_wording,
    numerals_of,
    overlap,
    terms_of,
)

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "length": (
        *("text_characters", "text_words", "text_steps", "longest_step_characters"),
        *("first_step_characters", "last_step_characters", "step_length_variation"),
        "question_characters",
    ),
    "wording": WORDING_FAMILIES,
    "numbers": (
        *("distinct_numbers", "new_numbers", "new_number_share", "new_number_share_last_step"),
        *("new_large_numbers", "question_numbers", "question_numbers_used", "longest_number"),
        "decimal_numbers",
    ),
    "overlap": (
        *("question_overlap", "question_overlap_last_step", "step_overlap", "new_word_share"),
        "repeated_step",
    ),
    "answer": (
        *("answer_missing", "answer_characters", "answer_in_question", "answer_before_last_step"),
        *("answer_mentions", "answer_is_last_result", "answer_is_integer"),
    ),
    "equations": (
        *("false_equations", "true_equations", "undecided_equations", "checked_step_share"),
    ),
}
"""Family of features → its features, in the order in which they are returned."""
FEATURES = tuple(name for names in FAMILIES.values() for name in names)
"""Every feature of a chain."""
SMALL_NUMBER = 12
"""Numbers up to this one arise by counting and say little."""
_REPEAT_DISTANCE = 4
"""Steps back to which a step is compared for repetition."""
_INTEGER_PATTERN = re.compile(r"\$?-?\d[\d,]*(?:\.0*)?\$?")
_RESULT_PATTERN = re.compile(r"=\s{0,3}\\?\$?(-?\d[\d,]*(?:\.\d+)?)\s{0,3}(?=$|[.,;)\\$\n])")
_DECIMAL_PATTERN = re.compile(r"\d\.\d")
_DIGITS_PATTERN = re.compile(r"\d+")


def chain_features(
    question: str,
    steps: Sequence[str],
    answer: str | None,
    readings: Sequence[StepReading] | None = None,
) -> dict[str, float | None]:
    """Return the features of a chain as a text.

    Parameters
    ----------
    question : str
    steps : sequence of str
        At least one; blank ones are left out.
    answer : str or None
        The final answer as the chain states it; None where it states none.
    readings : sequence of StepReading, optional
        ``cotlab.text.arithmetic.readings.read_steps`` of the steps; without them the family
        ``equations`` is None.

    Returns
    -------
    dict of str to float or None
        The names of ``FEATURES``. Counts (at least 0), or shares and Jaccard similarities in [0,
        1]; ``step_length_variation`` is the standard deviation of the steps' lengths over their
        mean. None where a feature does not exist: an overlap of a single step with the one
        before, a share of the question's numbers where it states none.

    Raises
    ------
    ValueError
        If no step has text.

    Notes
    -----
    Numbers are compared as they are spelled in digits, words (three letters or more) in lower case.
    "New" is what stands neither in the question nor in a step before.
    """
    texts = [step for step in steps if step.strip()]
    if not texts:
        raise ValueError("the chain has no step with text")
    return {
        **_length_features(question, texts),
        **count_wording("\n".join(texts)),
        **_number_features(question, texts),
        **_overlap_features(question, texts),
        **_answer_features(question, texts, answer),
        **_equation_features(readings),
    }


def _length_features(question: str, texts: Sequence[str]) -> dict[str, float | None]:
    lengths = [len(text) for text in texts]
    return {
        "text_characters": float(sum(lengths)),
        "text_words": float(sum(len(WORD_PATTERN.findall(text)) for text in texts)),
        "text_steps": float(len(texts)),
        "longest_step_characters": float(max(lengths)),
        "first_step_characters": float(lengths[0]),
        "last_step_characters": float(lengths[-1]),
        "step_length_variation": statistics.pstdev(lengths) / statistics.fmean(lengths),
        "question_characters": float(len(question)),
    }


def _number_features(question: str, texts: Sequence[str]) -> dict[str, float | None]:
    question_numbers = numerals_of(question)
    known_numbers = set(question_numbers)
    chain_numbers: set[str] = set()
    n_stated = n_new = n_large = 0
    last_share = 0.0
    for text in texts:
        numbers = numerals_of(text)
        new_numbers = numbers - known_numbers
        n_stated, n_new = n_stated + len(numbers), n_new + len(new_numbers)
        n_large += sum(is_large(number) for number in new_numbers)
        last_share = len(new_numbers) / max(1, len(numbers))
        known_numbers |= numbers
        chain_numbers |= numbers
    chain_text = "\n".join(texts)
    return {
        "distinct_numbers": float(len(chain_numbers)),
        "new_numbers": float(n_new),
        "new_number_share": n_new / n_stated if n_stated else None,
        "new_number_share_last_step": last_share,
        "new_large_numbers": float(n_large),
        "question_numbers": float(len(question_numbers)),
        "question_numbers_used": (
            len(question_numbers & chain_numbers) / len(question_numbers)
            if question_numbers
            else None
        ),
        "longest_number": float(max(map(len, _DIGITS_PATTERN.findall(chain_text)), default=0)),
        "decimal_numbers": float(sum(1 for _ in _DECIMAL_PATTERN.finditer(chain_text))),
    }


def is_large(numeral: str) -> bool:
    """Return whether a numeral is above ``SMALL_NUMBER``."""
    integer_part = numeral.partition(".")[0]
    return len(integer_part) > 2 or float(numeral) > SMALL_NUMBER


def _overlap_features(question: str, texts: Sequence[str]) -> dict[str, float | None]:
    question_terms = terms_of(question)
    term_sets = [terms_of(text) for text in texts]
    known_terms = set(question_terms)
    new_shares = []
    for terms in term_sets:
        new_shares.append(len(terms - known_terms) / max(1, len(terms)))
        known_terms |= terms
    repeats = [
        overlap(term_sets[i], term_sets[j]) or 0.0
        for i in range(len(texts))
        for j in range(max(0, i - _REPEAT_DISTANCE), i)
    ]
    return {
        "question_overlap": _mean_defined([overlap(terms, question_terms) for terms in term_sets]),
        "question_overlap_last_step": overlap(term_sets[-1], question_terms),
        "step_overlap": _mean_defined([overlap(a, b) for a, b in pairwise(term_sets)]),
        "new_word_share": statistics.fmean(new_shares),
        "repeated_step": max(repeats, default=None),
    }


def _mean_defined(values: Sequence[float | None]) -> float | None:
    defined_values = [value for value in values if value is not None]
    return statistics.fmean(defined_values) if defined_values else None


def _answer_features(
    question: str, texts: Sequence[str], answer: str | None
) -> dict[str, float | None]:
    numbers = numerals_of(answer) if answer else frozenset[str]()
    numbers_by_step = [numerals_of(text) for text in texts]
    earlier_numbers = frozenset[str]().union(*numbers_by_step[:-1])
    results = _RESULT_PATTERN.findall("\n".join(texts))
    last_result = numerals_of(results[-1]) if results else frozenset[str]()
    return {
        "answer_missing": float(answer is None),
        "answer_characters": float(len(answer)) if answer else None,
        "answer_in_question": float(numbers <= numerals_of(question)) if numbers else None,
        "answer_before_last_step": (
            float(numbers <= earlier_numbers) if numbers and len(texts) > 1 else None
        ),
        "answer_mentions": (
            float(sum(numbers <= step_numbers for step_numbers in numbers_by_step))
            if numbers
            else None
        ),
        "answer_is_last_result": float(last_result <= numbers) if numbers and results else None,
        "answer_is_integer": (
            float(bool(_INTEGER_PATTERN.fullmatch(answer.strip()))) if answer else None
        ),
    }


def _equation_features(readings: Sequence[StepReading] | None) -> dict[str, float | None]:
    if not readings:
        return dict.fromkeys(FAMILIES["equations"])
    verdicts = [equation.holds for reading in readings for equation in reading.equations]
    return {
        "false_equations": float(verdicts.count(False)),
        "true_equations": float(verdicts.count(True)),
        "undecided_equations": float(verdicts.count(None)),
        "checked_step_share": sum(r.is_checked for r in readings) / len(readings),
    }
