"""Red flags in the text of a chain, as the reliability seed's section 7 writes them.

Four patterns and word lists: an early answer, an undefined symbol, a wrong unit, hand-waving. They
do not understand a chain, so each carries how often it was right where it was read by hand, and is
on by default only where that was often enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

RULES = ("premature_answer", "undefined_symbol", "unit_inconsistency", "hand_waving")
EARLY_SHARE = 0.4
"""An answer is premature in a step that ends before this share of the chain."""
MIN_SHARE_RIGHT, MIN_SPANS = 0.8, 10
"""Share of right spans from which a rule is on, and spans below which nothing is known."""
READINGS: Mapping[tuple[str, str], tuple[int, int]] = {
    ("premature_answer", "latex"): (20, 19),
    ("premature_answer", "plain"): (20, 16),
    ("undefined_symbol", "latex"): (20, 4),
    ("undefined_symbol", "plain"): (20, 3),
    ("unit_inconsistency", "latex"): (4, 1),
    ("unit_inconsistency", "plain"): (20, 17),
    ("hand_waving", "latex"): (20, 1),
    ("hand_waving", "plain"): (20, 2),
}
"""Spans read by hand, and those that were right, by rule and domain: 20 drawn by a seed, or all.

From 8,977 chains of ProcessBench, GSM8K's model solutions, BIG-Bench-Mistake and a study of
Qwen3-4B; ``benchmarks/flag_verdicts.tsv`` lists them.
"""


class RedFlag(NamedTuple):
    """A span of a step that a rule matched."""

    rule: str
    """Name of the rule, of RULES."""
    step_index: int
    """Index of the step, from 0."""
    start: int
    """First character of the step's text."""
    end: int
    """Character after the last."""
    reason: str
    """Why the rule matched."""


def find_flags(
    question: str, steps: Sequence[str], *, early_share: float = EARLY_SHARE
) -> tuple[RedFlag, ...]:
    """Return the flags of the four textual rules in a chain.

    Symbols in the question are defined. An answer is premature in a step that ends before the share
    ``early_share`` (0 to 1) of the steps. Flags are in the order of RULES, steps and characters;
    the spans of one rule are disjoint.
    """
    return (
        *_find_premature_answers(steps, early_share),
        *_find_undefined_symbols(question, steps),
        *(flag for i, step in enumerate(steps) for flag in _find_unit_mismatches(i, step)),
        *(flag for i, step in enumerate(steps) for flag in _find_hand_waving(i, step)),
    )


# "the answer is 5", "Answer: 5", "the correct option is C", "\boxed{5}", "#### 5"
_ANSWER_RE = re.compile(
    r"(?i)(?<!\bif )(?<!\bonce )(?<!\bthinks )\b(?:the|my|final|correct|best|right) "
    r"(?:(?:final|correct|best|right) )?(?:answer|option|choice)\b(?: is|['’]s| should be|:| =)"
    r" {1,3}(?!not\b|either\b|to\b|in\b)[^\s.,;]{1,40}"
    r"|(?m:^)\*{0,2}answer:\*{0,2} {0,3}[^\s.,;]{1,40}|\\boxed\s?\{[^{}\n]{1,80}\}"
    r"|(?m:^)#### ?[-$]?\d[\d.,]{0,40}$"
)


def _find_premature_answers(steps: Sequence[str], early_share: float) -> Iterator[RedFlag]:
    for i, step in enumerate(steps):
        if (i + 1) / len(steps) < early_share:
            for match in _ANSWER_RE.finditer(step):
                reason = f"an answer in step {i + 1} of {len(steps)}"
                yield RedFlag("premature_answer", i, *match.span(), reason)


# "x", "x_1", "k2"; not "p" of "p.m.", "x" of "x-ray", "s" of "it's"
_LETTER_RE = re.compile(r"(?<![A-Za-z\\'’.&-])[A-Za-z](?:_\w{1,8}|\d)?(?![A-Za-z'’&]|[-.]\w)")
# "2 * " before a letter and " + 1" behind it
_OPERATOR_BEFORE_RE = re.compile(r"[+*/^=<>≤≥×·(]\s?$|\s-\s$|[-+*/^=×·(]\s?\d{1,9}$")
_OPERATOR_BEHIND_RE = re.compile(r"\s?[+*/^=<>≤≥×·]|\s-\s")
# "let x", "the price p", "where x", "x is the", "x ="
_INTRODUCTION_PATTERN = (
    r"\b(?i:let|where|for|call|by|variable|suppose|an?|each|(?:the|an?) [a-z]{2,20}) {0}(?!\w)"
    r"|(?<!\w){0} (?:be|being|is|are|was|the|denotes?|represents?|stands?)\b"
    r"|(?:^|[^-+*/^=\w(]\s?|[a-z]{2} ){0}\s?:?=(?!=)"
)
_UNIT_BEFORE_RE = re.compile(r"(?:\d\s?|[a-z%]/|\bper )$")  # "5 ", "km/"
_NO_SYMBOLS = frozenset("aAI")


def _find_undefined_symbols(question: str, steps: Sequence[str]) -> Iterator[RedFlag]:
    """Yield the letters beside an operator that neither stood before nor are introduced."""
    known_symbols = {*_LETTER_RE.findall(question), *_NO_SYMBOLS}
    for i, step in enumerate(steps):
        for match in _LETTER_RE.finditer(step):
            symbol, start, end = match[0], match.start(), match.end()
            before = step[max(0, start - 12) : start]
            is_used = _OPERATOR_BEFORE_RE.search(before) or _OPERATOR_BEHIND_RE.match(step, end)
            is_unit = symbol in "mgslhLVNJWCFxX" and _UNIT_BEFORE_RE.search(before)
            if symbol not in known_symbols and is_used and not is_unit:
                if not re.search(_INTRODUCTION_PATTERN.replace("{0}", re.escape(symbol)), step):
                    reason = f"{symbol} stands here for the first time"
                    yield RedFlag("undefined_symbol", i, start, end, reason)
                known_symbols.add(symbol)
        known_symbols |= {*_LETTER_RE.findall(step)}


_UNIT_PATTERN = (
    r"(?:(?:square|sq|cubic) )?(?:mm|cm|km|kg|mg|ml|mL|lb|ft|yd|mph|kph|m|g|s|h|inch(?:es)?"
    r"|foot|feet|(?:(?:centi|kilo|milli)?(?:met(?:er|re)|gram|lit(?:er|re))|yard|mile|pound|ounce|gallon"
    r"|second|minute|hour|day|week)s?)(?:\^[23]|²|³)?(?![A-Za-z\d^²³])"
)
_UNITS_PATTERN = rf"(?:{_UNIT_PATTERN}(?:/{_UNIT_PATTERN})?)"
_NUMBER_PATTERN = r"\d[\d,]{0,20}(?:\.\d{1,9})?"
_PART_PATTERN = rf"{_NUMBER_PATTERN}(?:\s?{_UNITS_PATTERN})?"
_GOES_ON_PATTERN = r"(?!\s?[-+*/×·÷=]|\s(?:per|an?|each|every|divided|times)\b)"
# "8 m * 5 m = 40 m"
_EQUATION_RE = re.compile(
    rf"(?<![\w.$*/×·÷+−-])(?<![*/×·÷+−-] )(?P<left>{_PART_PATTERN}"
    rf"(?:\s?[*/×·÷+−-]\s?{_PART_PATTERN}){{1,8}})\s?=\s?(?P<right>{_NUMBER_PATTERN}\s?(?P<unit>{_UNITS_PATTERN}))"
    rf"{_GOES_ON_PATTERN}"
)
_LEFT_RE = re.compile(rf"(?P<sign>[*/×·÷+−-]?)\s?{_NUMBER_PATTERN}\s?(?P<unit>{_UNITS_PATTERN}?)")
# "area of the garden is 40 m"
_MEASURE_RE = re.compile(
    r"(?i:\b(?:(?P<area>area)|(?P<volume>volume)|(?P<length>length|height|distance|perimeter|radius)"
    r"|(?P<speed>speed)|(?P<mass>weight|mass))\b)[^.,;=\d]{0,40}\s(?:is|was)\s"
    rf"(?:about )?(?P<right>{_NUMBER_PATTERN}\s?(?P<unit>{_UNITS_PATTERN}))"
    rf"{_GOES_ON_PATTERN}"
)
_UNIT_BY_MEASURE = {"area": "m^2", "volume": "m^3", "length": "m", "speed": "m/s", "mass": "kg"}


def _find_unit_mismatches(i: int, step: str) -> Iterator[RedFlag]:
    """Yield the quantities whose unit has another dimension than it must have, by pint."""
    for match in _EQUATION_RE.finditer(step):
        right, none = _dimension(match["unit"]), _dimension("")
        parts = list(_LEFT_RE.finditer(match["left"]))
        signs = {part["sign"] for part in parts[1:]}
        if signs <= {"+", "-", "−"}:
            is_equal = all(_dimension(part["unit"]) in (right, none) for part in parts)
        else:
            left = none
            for part in parts:
                dimension = _dimension(part["unit"])
                left = left / dimension if part["sign"] in ("/", "÷") else left * dimension
            is_equal = bool(signs & {"+", "-", "−"}) or left in (right, none)
        if not is_equal:
            reason = f"{match['right']} for {match['left']}"
            yield RedFlag("unit_inconsistency", i, *match.span("right"), reason)
    for match in _MEASURE_RE.finditer(step):
        measure = next(name for name in _UNIT_BY_MEASURE if match[name])
        if _dimension(match["unit"]) != _dimension(_UNIT_BY_MEASURE[measure]):
            yield RedFlag("unit_inconsistency", i, *match.span("right"), f"for a {measure}")


@lru_cache(1)
def _unit_registry() -> Any:
    import pint

    return pint.UnitRegistry()


@lru_cache(4096)
def _dimension(unit: str) -> Any:
    """Return the dimension of a unit that `_UNIT_PATTERN` matches, or of what is left of it."""
    text = unit.strip().replace("²", "^2").replace("³", "^3")
    text = re.sub(r"(?:square|sq) (\w+)", r"\1^2", text)
    text = re.sub(r"cubic (\w+)", r"\1^3", text)
    return _unit_registry().parse_units(text.replace("^", "**")).dimensionality


# "clearly", "it is obvious that", "needless to say"
_HAND_WAVING_RE = re.compile(
    r"(?i)(?<!\bnot )\b(?:obviously|clearly|trivially|evidently|certainly|undoubtedly|of course"
    r"|it is (?:obvious|clear|trivial|evident|easy to see)(?: that)?|every(?:one|body) knows"
    r"|needless to say|without (?:a )?doubt|there is no doubt|it goes without saying)\b"
)
# "because", "7 + 5 = 12"
_REASON_RE = re.compile(r"(?i)\b(?:because|since|given|due to|therefore|hence|thus|so|as)\b|[=≈]")


def _find_hand_waving(i: int, step: str) -> Iterator[RedFlag]:
    """Yield words that assert without a reason or an equation before them in their step."""
    reason = _REASON_RE.search(step)
    for match in _HAND_WAVING_RE.finditer(step):
        if reason is None or reason.end() > match.start():
            yield RedFlag("hand_waving", i, *match.span(), "no reason stands before it")


# "\frac", "\(", "$x$" but not "$5 and $6"
_LATEX_RE = re.compile(r"\\[A-Za-z]{2,}|\\[\[(]|\$[^\s$][^$\n]{0,200}(?<!\s)\$(?!\d)")


def chain_domain(question: str, steps: Sequence[str], declared: object = None) -> str:
    """Return the domain of a chain: what its item declares, else latex or plain by its text."""
    if declared is not None:
        return str(declared)
    return "latex" if any(map(_LATEX_RE.search, (question, *steps))) else "plain"


def off_reason(rule: str, domain: str) -> str | None:
    """Return why a rule is off for a domain; None where it is on."""
    n_read, n_right = READINGS.get((rule, domain), (0, 0))
    if n_read < MIN_SPANS:
        return f"{n_read} spans read in {domain} text, and {MIN_SPANS} are needed"
    if n_right / n_read < MIN_SHARE_RIGHT:
        counts = f"{n_right} of {n_read} spans read in {domain} text were right"
        return f"{counts}, and {MIN_SHARE_RIGHT:.0%} are needed"
    return None
