"""Word lists of the wording features, and the words and numbers of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

WORD_PATTERN = re.compile(r"[A-Za-z]{3,}")
_NUMBER_PATTERN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")  # "1,000", "3.50"
_PATTERN_BY_FAMILY: Mapping[str, str] = {
    "hedging_words": (
        r"approx(?:imately)?|roughly|assum\w+|suppose|probably|likely|seems?|appears?|guess|perhaps"
        r"|maybe|may|might|could|intuit\w+|typically|usually|observ\w+|pattern"
    ),
    "doubt_words": (
        r"however|but|mistakes?|errors?|re-?evaluat\w+|re-?consider\w*|wait|incorrect\w*|recheck"
        r"|instead|actually|oops|contradict\w+|not possible|doesn['’]t"
    ),
    "checking_words": (
        r"check\w*|verif\w+|confirm\w*|satisf\w+|valid\w*|indeed|consistent\w*|test\w*"
    ),
    "inference_words": r"therefore|thus|hence|so|since|because|impl(?:y|ies)|follows",
    "case_words": (
        r"try\w*|consider\w*|cases?|possib\w+|each|every|all|any|maximum|minimum|largest|smallest"
        r"|optimal|at least|at most"
    ),
    "plan_words": r"we need|we can|we have|we must|we want|let us|let['’]s|i will|i['’]ll",
    "operation_words": (
        r"simplif\w*|substitut\w*|expand\w*|factor\w*|solv(?:e|ing)|rearrang\w*|divid\w*"
        r"|multipl\w*|subtract\w*|add(?:s|ed|ing)?"
    ),
    "theory_words": (
        r"general\w*|known|theorems?|lemmas?|propert(?:y|ies)|formulas?|identit(?:y|ies)"
        r"|inequalit(?:y|ies)|recurs\w+|recurrence|induct\w*|structure\w*|construct\w*|strateg\w+"
        r"|approach\w*|methods?|principles?"
    ),
    "assertion_words": (
        r"obvious\w*|clear(?:ly)?|trivial\w*|evident\w*|easy|easily|straightforward|simply|just"
        r"|of course|note that|notice|must"
    ),
}
WORDING_FAMILIES = tuple(_PATTERN_BY_FAMILY)
"""Names of the word lists: the features that count them."""
_COMPILED_BY_FAMILY = {
    family: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for family, pattern in _PATTERN_BY_FAMILY.items()
}


def count_wording(text: str) -> dict[str, float]:
    """Return how often words of each list of ``WORDING_FAMILIES`` occur in an English text."""
    return {
        family: float(sum(1 for _ in pattern.finditer(text)))
        for family, pattern in _COMPILED_BY_FAMILY.items()
    }


@lru_cache(4096)
def terms_of(text: str) -> frozenset[str]:
    """Return the distinct words of three letters or more, in lower case."""
    return frozenset(word.lower() for word in WORD_PATTERN.findall(text))


@lru_cache(4096)
def numerals_of(text: str) -> frozenset[str]:
    """Return the distinct unsigned numerals, "1,000.50" as "1000.5"."""
    return frozenset(_plain_numeral(numeral) for numeral in _NUMBER_PATTERN.findall(text))


def _plain_numeral(numeral: str) -> str:
    """Return a numeral without separators, leading zeros and zeros after the point."""
    integer_part, _, decimals = numeral.replace(",", "").partition(".")
    decimals = decimals.rstrip("0")
    return (integer_part.lstrip("0") or "0") + (f".{decimals}" if decimals else "")


def overlap(first: frozenset[str], second: frozenset[str]) -> float | None:
    """Return the Jaccard similarity of two sets, [0, 1]; None where both are empty."""
    return len(first & second) / len(first | second) if first or second else None
