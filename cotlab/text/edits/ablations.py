"""Seeded rules that change one step of a chain: its content, or only its wording."""

from __future__ import annotations

import random
import re
from decimal import Decimal, localcontext

from cotlab.text.written_numbers import NUMBER_PATTERN, without_separators

# "18", "1,080.5", ".5"; not "3rd", "x2" or the 2 of "1.2.3"
NUMBER_RE = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\.?\d*(?:st|nd|rd|th)\b)")
# "Step 2: ", "- **Step 3.** ", "3) "
_STEP_LABEL_RE = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:(?:\*\*|__)?"
    r"(?:step\s+\d+(?:\*\*|__)?\s*(?:[:.)]|[-–—](?=\s))|\(?\d{1,3}[.)](?=\s|\*\*|__))"
    r"(?:\*\*|__)?:?\s*)?",
    re.IGNORECASE,
)
# "= $", "equals " before a number
_EQUALS_RE = re.compile(r"(?:[=≈]|\bequals)[\s$€£(*]{0,4}$")
# ", ", " + ", "which": a further clause or operation
_CLAUSE_RE = re.compile(
    r"[,;:.!?](?=\s)|[=+*/×÷→]|\b(?:so|is|are|was|were|has|have|had|gives?|gets?|makes?"
    r"|leav(?:es?|ing)|which|then|and)\b"
)
# "is", "was not", "doesn't", "can't", "cannot"
_VERB_RE = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have|had)\b"
    r"(?!['’])( not\b)?"
    r"|\b(is|are|was|were|could|would|should|must|does|do|did|has|have|had)n['’]t\b"
    r"|\b(ca|wo)n['’]t\b|\b(can)not\b",
    re.IGNORECASE,
)
_VERB_BY_IRREGULAR_STEM = {"ca": "can", "wo": "will"}
# "So ", "Therefore, "; not "So far"
_CONNECTIVE_RE = re.compile(
    r"(?:(?:so|thus|therefore|hence|consequently|accordingly)\b"
    r"(?!\s+(?:far|that|many|much)\b),?\s+)+",
    re.IGNORECASE,
)
# "But", "Let's", "First": a connective cannot precede or replace it
_NOT_AFTER_SO_RE = re.compile(
    r"(?:so|thus|therefore|hence|consequently|accordingly|but|however|yet|although|though|while"
    r"|whereas|alternatively|instead|otherwise|wait|hmm+|no|yes|ok|okay|actually|or|and|also|let"
    r"|let's|suppose|assume|given|consider|note|recall|say|first|firstly|second|secondly|third"
    r"|thirdly|next|finally|lastly|what|how|why|who|which)\b",
    re.IGNORECASE,
)
_NUMBER_SHIFTS = (-2, -1, 1, 2)
_OPENING_WORD_TEXT = (
    "the a an this that these those it they he she we in on at if there then each all both total"
    " since because when his her their its our for after before from by with one every adding"
    " multiplying dividing"
)
_OPENING_TERMS = frozenset(_OPENING_WORD_TEXT.split())
"""First words of a sentence that are no names."""


def corrupt_step(text: str, rng: random.Random) -> str | None:
    """Corrupt a step: shift the number that it states by 1 or 2, or negate a step without numbers.

    The stated number is the result of its last "=", unless another clause with a number follows,
    else its last number. Later repetitions of it change too. A number never falls below zero;
    decimals shift in their last place. The label ("Step 2:") and ordinals ("the 3rd day") stay.

    Returns
    -------
    str or None
        None if no rule applies.
    """
    start = find_label_end(text)
    number_matches = list(NUMBER_RE.finditer(text, start))
    if not number_matches:
        return negate_text(text, start)
    stated_match = find_stated_number(text, number_matches)
    new_number = _shift_number(stated_match.group(), rng)
    return replace_stated_number(text, number_matches, stated_match, new_number)


def replace_stated_number(
    text: str, number_matches: list[re.Match[str]], stated_match: re.Match[str], replacement: str
) -> str:
    """Replace the stated number of a text and its later repetitions among ``number_matches``."""
    for number_match in reversed(number_matches):
        if (
            number_match.start() >= stated_match.start()
            and number_match.group() == stated_match.group()
        ):
            text = text[: number_match.start()] + replacement + text[number_match.end() :]
    return text


def paraphrase_step(text: str, rng: random.Random) -> str | None:
    """Paraphrase a step: spell out "=" or the reverse, drop an opening connective or add one.

    None if the step is only a label, or begins with a word that no connective can precede or
    replace.
    """
    start = find_label_end(text)
    label, body = text[:start], text[start:]
    if not body.strip():
        return None
    options = []
    if " = " in body:
        options.append(label + body.replace(" = ", " equals "))
    elif " equals " in body:
        options.append(label + body.replace(" equals ", " = "))
    connective_match = _CONNECTIVE_RE.match(body)
    if connective_match and connective_match.end() < len(body):
        options.append(
            label + body[connective_match.end()].upper() + body[connective_match.end() + 1 :]
        )
    elif body[0].isdigit():
        options.append(f"{label}So {body}")
    elif (
        not options
        and body[0].isalpha()
        and not body.rstrip().endswith("?")
        and not _NOT_AFTER_SO_RE.match(body)
    ):
        options.append(f"{label}So {_lower_first_letter(body)}")
    return rng.choice(options) if options else None


def dots_text(count: int) -> str:
    """Return ``count`` groups of three dots, such as "... ... ..."."""
    return " ".join(["..."] * count)


def filler_text(text: str) -> str:
    """Return dots in place of a step, one group of three per word."""
    return dots_text(max(1, len(text.split())))


def find_label_end(text: str) -> int:
    """Return the end of a step's label ("Step 2:", "3.", a bullet), or 0."""
    label_match = _STEP_LABEL_RE.match(text)
    return label_match.end() if label_match else 0


def find_stated_number(text: str, number_matches: list[re.Match[str]]) -> re.Match[str]:
    """Return the result of the last "=", or the last number if another clause follows."""
    for number_match in reversed(number_matches):
        if _EQUALS_RE.search(text, max(0, number_match.start() - 12), number_match.start()):
            is_last = not _CLAUSE_RE.search(text, number_match.end(), number_matches[-1].start())
            return number_match if is_last else number_matches[-1]
    return number_matches[-1]


def negate_text(text: str, start: int = 0) -> str | None:
    """Add "not" to the first verb that can take it, or remove it; None if there is no such verb."""
    verb_match = _VERB_RE.search(text, start)
    if verb_match is None:
        return None
    plain_verb, has_not, contracted_verb, irregular_stem, cannot_verb = verb_match.groups()
    affirmed_verb = (
        plain_verb
        or contracted_verb
        or cannot_verb
        or _VERB_BY_IRREGULAR_STEM[irregular_stem.lower()]
    )
    suffix = " not" if plain_verb and not has_not else ""
    return f"{text[: verb_match.start()]}{affirmed_verb}{suffix}{text[verb_match.end() :]}"


def _shift_number(number: str, rng: random.Random) -> str:
    """Shift a number by 1 or 2 in its last place, not below zero."""
    with localcontext(prec=len(number) + 2):  # exact, however long the number is
        value, last_digit_unit = value_and_last_place(number)
        shifted_value = value + last_digit_unit * rng.choice(
            [shift for shift in _NUMBER_SHIFTS if value + last_digit_unit * shift >= 0]
        )
    return format_number_like(shifted_value, number)


def value_and_last_place(number: str) -> tuple[Decimal, Decimal]:
    """Return the value of a number as written, and one unit of its last place."""
    value = Decimal(without_separators(number))
    exponent = value.as_tuple().exponent
    return value, Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)


def format_number_like(value: Decimal, number: str) -> str:
    """Write a value with thousands separators, and without a leading 0, where the number is so."""
    formatted_number = f"{value:,f}" if "," in number else f"{value:f}"
    if "{,}" in number:
        formatted_number = formatted_number.replace(",", "{,}")
    return formatted_number.removeprefix("0") if number.startswith(".") else formatted_number


def _lower_first_letter(body: str) -> str:
    """Write the first letter in lower case if the first word is surely no name."""
    word_match = re.match(r"[A-Za-z]+", body)
    is_not_name = word_match is not None and word_match.group().lower() in _OPENING_TERMS
    return body[0].lower() + body[1:] if is_not_name else body
