"""Find symbols that a chain uses before it says what they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cotlab.text.arithmetic.units import mask_latex_dollars
from cotlab.text.written_units import PINT_NAME_BY_SPELLING

_GREEK_LETTERS = "αβγδεζηθκλνξρστφχψωΓΘΛΦΨΩ"
# "x", "P_0", "n2", "α"
_SYMBOL_RE = re.compile(
    r"(?<![\w\\.'’&@#_])(?:[A-Za-z](?:_\w{1,8}|_\{\w{1,8}\}|\d{1,2})?"
    rf"|[{_GREEK_LETTERS}](?:_\w{{1,8}}|\d{{1,2}})?)(?![\w'’&@_])"
)
# "3x"
_COEFFICIENT_RE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?([b-df-hj-zA-Z])(?![\w'’])")
# "- 4ac": letters multiplied without a sign
_IMPLICIT_PRODUCT_RE = re.compile(r"[-+*/=(−]\s?\d+([a-z]{2,3})(?![\w'’])")
_NON_PRODUCT_TERMS = frozenset(
    {"st", "nd", "rd", "th", "ths", "rds", "am", "pm", *PINT_NAME_BY_SPELLING}
)
_BRACKETED_SUM_RE = re.compile(r"\(\s?\d+(?:\.\d+)?\s?[-+−]")  # "(3 + " of "P(3 + x)"
# "N/A", "w/o"
_ABBREVIATION_RE = re.compile(
    r"(?<![\w/=+*^(])(?:N/A|n/a|[wc]/o|A/C|I/O|A/B(?=\s+test))(?![\w/]|\s?[=+*×^<>≈])"
)
_LATEX_COMMAND_RE = re.compile(r"\\[A-Za-z]+")  # "\frac"
_UNIT_LETTERS = frozenset("mglhsdkLNJWVACFKBM%")
# "5 ", "5 km/", "per ", "$5/" before a letter that is a unit
_NUMBER_BEFORE_UNIT_RE = re.compile(
    r"(?:\d|[½¼¾²³)])[\s\u00a0]?(?:°\s?)?$|(?:\d\s?[A-Za-zµ]{1,5}|\bper)\s?/\s?$"
    r"|\b(?:per|each|every|square|cubic)\s+$|[$€£]\d[\d.,]*\s?/\s?$"
)
# " + 3", "^2", " = 5", " times", "(x + 1)"
_OPERATOR_AFTER_RE = re.compile(
    r"\s?(?:\^|\*\*|[+*/×·÷=<>≤≥≈²³!](?!\w*-)|−)|\s[-–]\s(?=[\dA-Za-z(])|\((?=[\w+ -]{1,20}\))"
    r"|\s(?:times|plus|minus|divided|squared|cubed)\b"
)
# "= ", "5 × ", "times "
_OPERATOR_BEFORE_RE = re.compile(
    r"(?:[+*/×·÷=<>≤≥≈^(−]|\s[-–])\s?(?:\d+(?:\.\d+)?\s?)?$|\b(?:times|plus|minus|by)\s$"
)
# "5 " before x and " 3" after it: x is a multiplication sign
_FACTOR_BEFORE_RE = re.compile(r"[\d)²³½¼¾%]\s?$|\w\s$")
# " 3", " apples of"
_FACTOR_AFTER_RE = re.compile(r"\s?[\d($€£.½¼¾]|\s[a-z]{3,}\s(?:of|per)\b")
# "point " of "point A"
_LABEL_NOUN_RE = re.compile(
    r"(?:^|[\s(\"“])(?!(?:the|and|for|but|with|than|are|was|has|have|had|its|his|her|is|by|then"
    r"|that|where|let|equals|times|plus|minus|gives?|from|into|sum|product|of|or|to|in|at|as|if|so"
    r"|on|be|we|need|mean|find)\s)[A-Za-z]{3,}\s$",
    re.IGNORECASE,
)
# "the price " of "the price p"
_DETERMINED_NOUN_RE = re.compile(
    r"(?i)\b(?:the|an?|his|her|its|their|our|this|that|each|unknown|variable|parameter|quantity)\s+"
    r"(?:(?!(?:is|are|was|were|be|equals|by|of|has|have|to|and|or|than|times|plus|minus|from|in|at"
    r"|for)\b)[a-z-]+\s+){0,3}(?:(?!(?:is|are|was|were|be|equals|by|of|has|have|to|and|or|than"
    r"|times|plus|minus|from|in|at|for|the|an?)\b)[a-z-]{3,}\s+)$"
)
# "Let ", "for all ", "denoted by "
_INTRODUCTION_RE = re.compile(
    r"(?i)\b(?:let|suppose|assume|consider|say|define|defining|denote[ds]?|denoting"
    r"|call(?:ed|ing)?|name[ds]?|represented by|writ(?:e|ing)|for (?:all|any|each|every|some)"
    r"|there (?:is|are|exists?) (?:an?|some))\b[^.;=]{0,80}$"
)
# " is the ", " := ", " denotes " after a symbol
_DEFINITION_AFTER_PATTERN = (
    r"(?:\s+(?:is|are|be|being|denotes?|means|stands? for|represents?|counts?|was|gives)\s+"
    r"(?:the|an?|its|our|his|her|their|how|what|some|any|number)\b"
    r"|\s*(?::=|≔)|\s+(?:the|its)\s+[a-z]|\s+(?:counts?|denotes?|stands? for|represents?)\s)"
)
# ", ", "so ", "\(" before "x = 5"
_BEFORE_ASSIGNMENT_RE = re.compile(r"(?:^|[^\w\s+*/×·÷=<>≤≥≈^()−-]|[A-Za-z]{2}\s|\\\(|\$)\s?$")
_CLAUSE_RE = re.compile(r"\b(?:if|where|with|when|for)\s")  # "where "
_N_NEAR_CHARACTERS = 120
"""Characters before a symbol that the rule reads."""
_WORD_LETTERS = frozenset({"a", "A", "I", "i", "o", "O"})
_FUNCTION_LETTERS = frozenset({"P", "E", "O"})


def find_undefined_symbols(
    question: str, steps: Sequence[str]
) -> Iterator[tuple[int, int, int, str]]:
    """Yield the step, start, end and reason of each symbol that is not defined where it is used.

    Only the first occurrence counts, and a definition in the same step.
    A symbol is a letter, with or without an index, that is used as a variable: a capital letter
    next to an operator, or a small or Greek letter that is no word, unit, list mark, initial or
    part of a hyphenated word. It is defined by an earlier occurrence, by words (let x be, where P
    is, the price p), or by an equation that gives it a value (x = …).
    """
    known_symbols = {match[0] for match in _SYMBOL_RE.finditer(question)} | {
        match[1] for match in _COEFFICIENT_RE.finditer(question)
    }
    for i, step in enumerate(steps):
        masked_text = mask_latex_dollars(step)
        plain_text = _LATEX_COMMAND_RE.sub(lambda match: " " * len(match[0]), masked_text)
        for start, symbol, is_variable in _find_symbols(plain_text):
            is_new = is_variable and symbol not in known_symbols
            if is_new and not _is_defined(plain_text, start, symbol):
                reason = f"{symbol} stands here for the first time"
                yield i, start, start + len(symbol), reason
            known_symbols.add(symbol)


def _find_symbols(text: str) -> list[tuple[int, str, bool]]:
    """Return (start, symbol, is variable) of the letters that are or name something."""
    symbol_by_start = {}
    for match in _SYMBOL_RE.finditer(text):
        is_variable = _is_variable(text, match.start(), match.end())
        text_before = text[max(0, match.start() - _N_NEAR_CHARACTERS) : match.start()]
        if is_variable or (
            match[0][0].isupper()
            and match[0] not in _WORD_LETTERS
            and not _NUMBER_BEFORE_UNIT_RE.search(text_before)
        ):
            symbol_by_start[match.start()] = (match[0], is_variable)
    for match in _COEFFICIENT_RE.finditer(text):
        if match[1] not in _UNIT_LETTERS and not (
            match[1] == "x" and _FACTOR_AFTER_RE.match(text, match.end())
        ):
            symbol_by_start[match.start(1)] = (match[1], True)
    for match in _IMPLICIT_PRODUCT_RE.finditer(text):
        if match[1] not in _NON_PRODUCT_TERMS:
            symbol_by_start |= {
                match.start(1) + k: (letter, True) for k, letter in enumerate(match[1])
            }
    return [(start, *symbol_by_start[start]) for start in sorted(symbol_by_start)]


def _is_variable(text: str, start: int, end: int) -> bool:
    """Return whether a letter of a text is a variable."""
    symbol, text_before = text[start:end], text[max(0, start - 60) : start]
    text_after = text[end : end + 12]
    abbreviations = _ABBREVIATION_RE.finditer(text, max(0, start - 2), end + 12)
    if any(match.start() <= start < match.end() for match in abbreviations):
        return False
    if (
        text_after[:1] in ("-", "‑") and text_after[1:2].isalpha() and text_after[2:3].isalpha()
    ):  # X-ray, p-value
        return False
    if text_before.endswith("-") and text_before[-2:-1].isalpha():  # vitamin-D
        return False
    is_page_reference = re.match(r"\.\s[A-Z\d]", text_after) and symbol in "pvcdnfh"  # p. 5
    if text_after.startswith(".") and (
        text_after[1:2].isalpha() or is_page_reference or re.search(r"[A-Za-z]\.$", text_before)
    ):
        return False  # e.g.
    if text_after.startswith(")"):
        if text_before.endswith("(") and not text_before[-2:-1].isalpha():  # (b)
            return False
        if not text_before.strip(" "):  # a) at the start of a line
            return False
    has_factor_after = symbol[1:].isdigit() or _FACTOR_AFTER_RE.match(text_after)
    if symbol[0] in "xX" and _FACTOR_BEFORE_RE.search(text_before) and has_factor_after:
        return False
    if symbol[0] in _UNIT_LETTERS and _NUMBER_BEFORE_UNIT_RE.search(text_before):
        return False
    is_function_call = text_after.startswith("(") and not _BRACKETED_SUM_RE.match(text_after)
    if symbol in _FUNCTION_LETTERS and is_function_call:
        return False
    if symbol == "e" and re.match(r"\s?(?:\^|\*\*)", text_after):
        return False
    if symbol == "p" and re.match(r"\s?[<>=≤]\s?0?\.\d", text_after):
        return False
    if symbol in _WORD_LETTERS:
        starts_operation = re.match(r"\s?[=^*+/<>]", text_after)
        has_operator = bool(starts_operation or re.search(r"[=*+/^]\s?$", text_before))
        return has_operator and not text_after.startswith(" (")
    if _OPERATOR_AFTER_RE.match(text_after) or _OPERATOR_BEFORE_RE.search(text_before):
        return True
    return not (symbol[0].isupper() and symbol.isascii())


def _is_defined(text: str, start: int, symbol: str) -> bool:
    """Return whether the step itself defines the symbol."""
    sentence_start = max(text.rfind(mark, 0, start) for mark in (". ", "; ", "\n")) + 1
    text_before = text[max(sentence_start, start - _N_NEAR_CHARACTERS) : start]
    text_after = text[start + len(symbol) :]
    if _INTRODUCTION_RE.search(text_before) or _DETERMINED_NOUN_RE.search(text_before):
        return True
    if symbol[0].isupper() and _LABEL_NOUN_RE.search(text_before):
        return True
    if re.match(r"\s?(?:=(?!=)|:=)", text_after) and _BEFORE_ASSIGNMENT_RE.search(text_before):
        return True
    symbol_pattern = rf"(?<![\w\\.]){re.escape(symbol)}"
    if re.search(rf"{symbol_pattern}{_DEFINITION_AFTER_PATTERN}", text[start:]) or re.search(
        rf"(?i:\b(?:let|and))\s+{symbol_pattern}\s+be\b", text[:start]
    ):
        return True
    clause_match = _CLAUSE_RE.search(text, start)
    return bool(
        clause_match and re.search(rf"{symbol_pattern}\s?=(?!=)", text[clause_match.start() :])
    )
