"""Seeded rules that change one step of a chain: its content, or only its wording."""

from __future__ import annotations

import random
import re
from decimal import Decimal, localcontext

# "18", "1,080.5", ".5"; not "3rd", "x2" or the 2 of "1.2.3"
NUMBER = re.compile(
    r"(?<![\w.])(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d++)(?:\.\d++)?|\.\d++)(?!\.?\d*(?:st|nd|rd|th)\b)"
)
# "Step 2: ", "- **Step 3.** ", "3) "
_LABEL = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:(?:\*\*|__)?"
    r"(?:step\s+\d+(?:\*\*|__)?\s*(?:[:.)]|[-–—](?=\s))|\(?\d{1,3}[.)](?=\s|\*\*|__))"
    r"(?:\*\*|__)?:?\s*)?",
    re.IGNORECASE,
)
# "= $", "equals " before a number
_EQUALS = re.compile(r"(?:[=≈]|\bequals)[\s$€£(*]{0,4}$")
# ", ", " + ", "which": a further clause or operation
_CLAUSE = re.compile(
    r"[,;:.!?](?=\s)|[=+*/×÷→]|\b(?:so|is|are|was|were|has|have|had|gives?|gets?|makes?"
    r"|leav(?:es?|ing)|which|then|and)\b"
)
# "is", "was not", "doesn't", "can't", "cannot"
_VERB = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have|had)\b"
    r"(?!['’])( not\b)?"
    r"|\b(is|are|was|were|could|would|should|must|does|do|did|has|have|had)n['’]t\b"
    r"|\b(ca|wo)n['’]t\b|\b(can)not\b",
    re.IGNORECASE,
)
_IRREGULAR = {"ca": "can", "wo": "will"}
# "So ", "Therefore, "; not "So far"
_CONNECTIVE = re.compile(
    r"(?:(?:so|thus|therefore|hence|consequently|accordingly)\b"
    r"(?!\s+(?:far|that|many|much)\b),?\s+)+",
    re.IGNORECASE,
)
# "But", "Let's", "First": a connective cannot precede or replace it
_NOT_AFTER_SO = re.compile(
    r"(?:so|thus|therefore|hence|consequently|accordingly|but|however|yet|although|though|while"
    r"|whereas|alternatively|instead|otherwise|wait|hmm+|no|yes|ok|okay|actually|or|and|also|let"
    r"|let's|suppose|assume|given|consider|note|recall|say|first|firstly|second|secondly|third"
    r"|thirdly|next|finally|lastly|what|how|why|who|which)\b",
    re.IGNORECASE,
)
_SHIFTS = (-2, -1, 1, 2)
_OPENINGS = (
    "the a an this that these those it they he she we in on at if there then each all both total"
    " since because when his her their its our for after before from by with one every adding"
    " multiplying dividing"
)
_PLAIN_OPENINGS = frozenset(_OPENINGS.split())
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
    start = label_end(text)
    numbers = list(NUMBER.finditer(text, start))
    if not numbers:
        return negated(text, start)
    stated = stated_number(text, numbers)
    shifted = _shift(stated.group(), rng)
    for number in reversed(numbers):
        if number.start() >= stated.start() and number.group() == stated.group():
            text = text[: number.start()] + shifted + text[number.end() :]
    return text


def paraphrase_step(text: str, rng: random.Random) -> str | None:
    """Paraphrase a step: spell out "=" or the reverse, drop an opening connective or add one.

    None if the step is only a label, or begins with a word that no connective can precede or
    replace.
    """
    start = label_end(text)
    label, body = text[:start], text[start:]
    if not body.strip():
        return None
    options = []
    if " = " in body:
        options.append(label + body.replace(" = ", " equals "))
    elif " equals " in body:
        options.append(label + body.replace(" equals ", " = "))
    lead = _CONNECTIVE.match(body)
    if lead and lead.end() < len(body):
        options.append(label + body[lead.end()].upper() + body[lead.end() + 1 :])
    elif body[0].isdigit():
        options.append(f"{label}So {body}")
    elif (
        not options
        and body[0].isalpha()
        and not body.rstrip().endswith("?")
        and not _NOT_AFTER_SO.match(body)
    ):
        options.append(f"{label}So {_lower_first(body)}")
    return rng.choice(options) if options else None


def filler_for(text: str) -> str:
    """Return dots in place of a step, one group of three per word."""
    return " ".join(["..."] * max(1, len(text.split())))


def label_end(text: str) -> int:
    """Return the end of a step's label ("Step 2:", "3.", a bullet), or 0."""
    label = _LABEL.match(text)
    return label.end() if label else 0


def stated_number(text: str, numbers: list[re.Match[str]]) -> re.Match[str]:
    """Return the result of the last "=", or the last number if another clause follows."""
    for number in reversed(numbers):
        if _EQUALS.search(text, max(0, number.start() - 12), number.start()):
            return (
                number
                if not _CLAUSE.search(text, number.end(), numbers[-1].start())
                else numbers[-1]
            )
    return numbers[-1]


def negated(text: str, start: int = 0) -> str | None:
    """Add "not" to the first verb that can take it, or remove it; None if there is no such verb."""
    verb = _VERB.search(text, start)
    if verb is None:
        return None
    positive, denied, contracted, irregular, cannot = verb.groups()
    affirmed = positive or contracted or cannot or _IRREGULAR[irregular.lower()]
    return (
        text[: verb.start()]
        + affirmed
        + (" not" if positive and not denied else "")
        + text[verb.end() :]
    )


def _shift(number: str, rng: random.Random) -> str:
    """Shift a number by 1 or 2 in its last place, not below zero."""
    with localcontext(prec=len(number) + 2):  # exact, however long the number is
        value = Decimal(number.replace(",", ""))
        exponent = value.as_tuple().exponent
        unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        moved = value + unit * rng.choice([s for s in _SHIFTS if value + unit * s >= 0])
    formatted = f"{moved:,f}" if "," in number else f"{moved:f}"
    return formatted.removeprefix("0") if number.startswith(".") else formatted


def _lower_first(body: str) -> str:
    """Write the first letter in lower case if the first word is surely no name."""
    word = re.match(r"[A-Za-z]+", body)
    plain = word is not None and word.group().lower() in _PLAIN_OPENINGS
    return body[0].lower() + body[1:] if plain else body
