"""Whether two plain answers are the same: words, numbers, dates, options, lists, mathematics."""

from __future__ import annotations

import re

from cotlab.text.answers.base_units import same_in_base_units
from cotlab.text.answers.counting_notations import as_formulas, counted_formula
from cotlab.text.answers.dates import (
    Date,
    TimeOfDay,
    find_only_value,
    read_ratio,
    same_abbreviation,
    same_date_or_time,
)
from cotlab.text.answers.formula_values import near_value, same_equation, same_formula
from cotlab.text.answers.formulas import Formula, is_plain_number, read_formula
from cotlab.text.answers.general_solutions import same_general_solution
from cotlab.text.answers.notation import (
    rewrite_notation,
    same_emptiness,
    without_powers_of_ten,
)
from cotlab.text.answers.piecewise import same_piecewise
from cotlab.text.answers.quantities import Quantity, same_quantity
from cotlab.text.answers.reading import (
    MAX_PARSED_CHARACTERS,
    AnswerReading,
    CompoundAnswer,
    answer_key,
    named_value,
    read_answer,
)
from cotlab.text.answers.real_sets import same_real_set
from cotlab.text.written_numbers import read_ordinal, word_list

# "<" of "x < 5", "∈" of "x ∈ (2, 5)"
_RELATION_RE = re.compile(r"[<>≤≥≠∈]|\\in\b")
# ", for all x ∈ \\mathbb{R}" after an equation
_FOR_ALL_RE = re.compile(
    r",?(?:(?<!\s)\s+)?(?:\bfor\s+(?:all|every|each|any)\b|\\forall)\s*(?:real\s+(?:numbers?\s+)?)?[a-z]\b"
    r"(?:\s*(?:\\in|∈)\s*(\\mathbb\{[RZNQ]\}|\\mathbb\s?[RZNQ]|[ℝℤℕℚ]))?"
    r"(?=\s*(?:$|[,;]|\band\b|\bor\b))"
)
# ", where C is a constant", ", C ∈ \\mathbb{R}" after an antiderivative
_CONSTANT_RE = re.compile(
    r"(?<=[CcKk)\d}])[,;]\s{0,9}(?:where|with|for)?\s{0,9}(?:[CK]|c)\s{0,9}(?:(?:is|=)\s{1,9}(?:an?\s|the\s|any\s)?"
    r"(?:[a-z]{1,12}\s){0,3}const(?:ant|\.)(?:\sof\sintegration)?|(?:∈|\\in\b)\s{0,9}(?:ℝ|\\mathbb\{?R\}?))$"
)
_ADJECTIVES = frozenset(
    word_list(
        "all even odd positive negative non-negative nonnegative non-zero nonzero real rational"
        " irrational natural whole prime composite distinct finite infinite consecutive"
    )
)
"""Adjectives of numbers, whose order says nothing."""
# "\\angle", "\\overline", "∠", "|" of a name
_NAME_SIGNS_RE = re.compile(
    r"\\(?:angle|triangle|overline|text|mathrm|vec|bar|hat)\b|[\\∠△|{}$]|\bm(?=\s?∠)"
)
# "f(x)"
_FUNCTION_OF_RE = re.compile(r"[a-z]\s?\([a-z]\)")
_LETTER_RE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
# "ACD", and "A, C, and D"
_LETTERS_RE = re.compile(r"A?B?C?D?E?F?G?H?I?J?")
_LETTER_LIST_RE = re.compile(r"\(?[A-J]\)?(?:(?:\s?[,;&]|\sand\b|,\sand\b)\s*\(?[A-J]\)?){1,9}")
# "x, the y", which is not "x, y"
_ARTICLE_IN_LIST_RE = re.compile(r"(?i)[a-z](?:,\s?[a-z]){0,5},\s?the\s[a-z]")
# ", and " of "salt, oil and pepper"
_AND_RE = re.compile(r",?(?<!\s)\s+and\s+|,\s+(?=[^,]{1,60}(?:,|\sand\s))")


def answers_agree(text_x: str, text_y: str, depth: int = 0) -> bool:
    """Return whether two plain answers agree; ``depth`` counts lists within lists."""
    if answer_key(text_x) == answer_key(text_y):
        return True
    if max(len(text_x), len(text_y)) > MAX_PARSED_CHARACTERS or depth > 3:
        return False
    if bool(_ARTICLE_IN_LIST_RE.fullmatch(text_x)) != bool(_ARTICLE_IN_LIST_RE.fullmatch(text_y)):
        return False
    for option_letters, listed in ((text_x, text_y), (text_y, text_x)):
        if _LETTERS_RE.fullmatch(option_letters) and _LETTER_LIST_RE.fullmatch(listed):
            return sorted(option_letters) == sorted(re.findall(r"\b[A-J]\b", listed))
    text_x, text_y = (_CONSTANT_RE.sub("", text) or text for text in (text_x, text_y))
    text_x, text_y = _without_domains(text_x, text_y)
    if answer_key(text_x) == answer_key(text_y):
        return True
    for compare in (
        same_emptiness,
        same_general_solution,
        same_real_set,
        same_piecewise,
        same_in_base_units,
    ):
        if (verdict := compare(text_x, text_y)) is not None:
            return verdict
    if all(_RELATION_RE.search(text) for text in (text_x, text_y)):
        letters = [set(_LETTER_RE.findall(text)) for text in (text_x, text_y)]
        if letters[0] != letters[1]:
            return False
    text_x, text_y = as_formulas(text_x, text_y)
    text_x, text_y = without_powers_of_ten(rewrite_notation(text_x), rewrite_notation(text_y))
    if answer_key(text_x) == answer_key(text_y):
        return True
    if text_x.count("=") == text_y.count("=") == 1 and _same_equations(text_x, text_y):
        return True
    if min(text_x.count("="), text_y.count("=")) == 1 and _names_differ(text_x, text_y):
        return False
    if _same_words_joined(text_x, text_y) or same_abbreviation(text_x, text_y):
        return True
    parsed_x, parsed_y = read_answer(text_x), read_answer(text_y)
    if isinstance(parsed_x, CompoundAnswer) and isinstance(parsed_y, CompoundAnswer):
        return _compounds_agree(parsed_x, parsed_y, depth)
    for compound, other_text in ((parsed_x, text_y), (parsed_y, text_x)):
        if isinstance(compound, CompoundAnswer):
            if compound.kind == "{}" and len(compound.items) == 1:
                return answers_agree(compound.items[0], other_text, depth + 1)
            return (
                compound.kind == "option"
                and bool(compound.items[1])
                and answers_agree(compound.items[1], other_text, depth + 1)
            )
    if (
        (ratio := read_ratio(text_x))
        and (other_ratio := read_ratio(text_y))
        and not (isinstance(parsed_x, TimeOfDay) and isinstance(parsed_y, TimeOfDay))
    ):
        return ratio == other_ratio
    ordinals = [read_ordinal(text) for text in (text_x, text_y)]
    if ordinals[0] is not None and ordinals[1] is not None:
        return ordinals[0] == ordinals[1]
    for number, text in ((parsed_x, text_y), (parsed_y, text_x)):
        if isinstance(number, Quantity) and number.has_float_noise and not number.units:
            formula = read_formula(named_value(text))
            if formula and is_plain_number(formula) and near_value(formula, number.value):
                return True
    if parsed_x is None or parsed_y is None:
        is_same = _same_mathematics(text_x, text_y)
        if is_same is not None:
            return is_same
    if (parsed_x is None) != (parsed_y is None):  # "she makes $18 every day" beside "18"
        parsed_x, parsed_y = (
            _read_only_value(text_x) if parsed_x is None else parsed_x,
            _read_only_value(text_y) if parsed_y is None else parsed_y,
        )
    for time_answer, hour_answer in ((parsed_x, parsed_y), (parsed_y, parsed_x)):
        if isinstance(time_answer, TimeOfDay) and isinstance(hour_answer, Quantity):
            return (
                not (hour_answer.units or hour_answer.nouns)
                and hour_answer.value == time_answer.written_hour
                and time_answer.seconds % 3600 == 0
            )
    if isinstance(parsed_x, Date | TimeOfDay) and isinstance(parsed_y, Date | TimeOfDay):
        return same_date_or_time(parsed_x, parsed_y)
    if isinstance(parsed_x, Quantity) and isinstance(parsed_y, Quantity):
        return same_quantity(parsed_x, parsed_y)
    return isinstance(parsed_x, bool) and parsed_x is parsed_y


def _same_words_joined(text_x: str, text_y: str) -> bool:
    """Return whether two texts are the same words joined by "and" in another order."""
    parts = [
        sorted(answer_key(part) for part in _AND_RE.split(text) if part)
        for text in (text_x, text_y)
    ]
    terms_x, terms_y = (answer_key(text).split() for text in (text_x, text_y))
    if len(terms_x) > 2 and terms_x[-1:] == terms_y[-1:] and set(terms_x[:-1]) <= _ADJECTIVES:
        return sorted(terms_x) == sorted(terms_y)
    return 1 < len(parts[0]) <= 9 and parts[0] == parts[1] and not any(map(_has_digit, parts[0]))


def _names_differ(text_x: str, text_y: str) -> bool:
    """Return whether two equations name different things: P(A) = 1/3 and P(B) = 1/3."""
    names = [_NAME_SIGNS_RE.sub("", text.partition("=")[0]) for text in (text_x, text_y)]
    names = [" ".join(name.split()).casefold() for name in names]
    if names[0] == names[1] or "".join(names[0].split()) == "".join(names[1].split()):
        return False
    if not all(re.search(r"[a-z]", name) for name in names):
        return False  # 9 * 2 = 18
    terms = [set(re.findall(r"[a-z]{3,}", name)) for name in names]
    if all(terms) and not any(re.search(r"[\d(^]", name) for name in names):
        return not (terms[0] <= terms[1] or terms[1] <= terms[0])
    for name, other in (names, names[::-1]):
        if name == "y" and _FUNCTION_OF_RE.fullmatch(other):  # y = 2x + 3, f(x) = 2x + 3
            return False
        if len(name) == 1 and other.startswith(f"{name}("):  # P = 1/3, P(A) = 1/3
            return False
    formulas = [read_formula(name) for name in names]
    return not (formulas[0] and formulas[1] and same_formula(formulas[0], formulas[1]))


def _without_domains(text_x: str, text_y: str) -> tuple[str, str]:
    r"""Return both without "for all x ∈ \mathbb{R}", unless they name different domains."""
    domains = [set(_FOR_ALL_RE.findall(text)) - {""} for text in (text_x, text_y)]
    if (domains[0] and domains[1] and domains[0] != domains[1]) or "=" not in text_x + text_y:
        return text_x, text_y
    return _FOR_ALL_RE.sub("", text_x), _FOR_ALL_RE.sub("", text_y)


def _has_digit(text: str) -> bool:
    return any(c.isdigit() for c in text)


def _same_mathematics(text_x: str, text_y: str) -> bool | None:
    """Compare two expressions or two equations; None where either is neither."""
    if any(text.isalpha() and text != "pi" for text in (text_x, text_y)):
        return None  # words
    formulas = [read_formula(named_value(text)) for text in (text_x, text_y)]
    for i, text in enumerate((text_x, text_y)):
        other = formulas[1 - i]
        if formulas[i] is None and other and is_plain_number(other) and not other.unit:
            formulas[i] = counted_formula(text)  # 10 ways beside \\binom{5}{2}
    if formulas[0] and formulas[1]:
        return same_formula(formulas[0], formulas[1])
    return _same_equations(text_x, text_y)


def _same_equations(text_x: str, text_y: str) -> bool | None:
    """Return whether two equations are multiples of each other; None where either is none."""
    equations: list[tuple[Formula, Formula]] = []
    for text in (text_x, text_y):
        left, _, right = text.partition("=")
        left_formula, right_formula = read_formula(left), read_formula(right)
        if left_formula is None or right_formula is None:
            return None
        equations.append((left_formula, right_formula))
    return same_equation(*equations)


def _read_only_value(text: str) -> AnswerReading:
    """Read the one number or date within a clause, as in "she makes $18 every day"."""
    span = find_only_value(text)
    return read_answer(text[span[0] :]) or read_answer(text[slice(*span)]) if span else None


def _compounds_agree(
    first_answer: CompoundAnswer, second_answer: CompoundAnswer, depth: int
) -> bool:
    """Return whether two options or two lists agree; the order of a set does not matter."""
    item_pairs = tuple(zip(first_answer.items, second_answer.items, strict=False))
    if first_answer.kind == second_answer.kind == "option":
        return first_answer.items[0] == second_answer.items[0] and (
            "" in item_pairs[1] or answers_agree(*item_pairs[1], depth + 1)
        )
    kinds = {first_answer.kind, second_answer.kind}
    if kinds & {"option", "assignments"} and len(kinds) > 1:
        return False
    if len(kinds) > 1 and not kinds & {"", "and"}:
        return False
    if len(kinds) > 1 and kinds & {"[)", "(]"}:
        return False  # an interval is no list of its ends
    if kinds == {"and", "[]"} and len(first_answer.items) == 2:
        return False
    if ("{}" in kinds or kinds == {"and"}) and len(first_answer.items) * len(
        second_answer.items
    ) <= 900 // 25**depth:  # sets within sets multiply
        agreement_matrix = [
            [answers_agree(x, y, depth + 1) for y in second_answer.items]
            for x in first_answer.items
        ]
        return all(map(any, agreement_matrix)) and all(
            map(any, zip(*agreement_matrix, strict=True))
        )
    return (
        "{}" not in kinds
        and len(first_answer.items) == len(second_answer.items)
        and all(answers_agree(x, y, depth + 1) for x, y in item_pairs)
    )
