"""Changes to one step of a chain, by rules and seeded: what the step states, or only how it says it."""

from __future__ import annotations

import random
import re
from decimal import Decimal, localcontext

NUMBER = re.compile(
    r"(?<![\w.])(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d++)(?:\.\d++)?|\.\d++)(?!\.?\d*(?:st|nd|rd|th)\b)"
)
_LABEL = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:(?:\*\*|__)?(?:step\s+\d+(?:\*\*|__)?\s*(?:[:.)]|[-–—](?=\s))|\(?\d{1,3}[.)](?=\s|\*\*|__))"
    r"(?:\*\*|__)?:?\s*)?",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"(?:[=≈]|\bequals)[\s$€£(*]{0,4}$")
_CLAUSE = re.compile(
    r"[,;:.!?](?=\s)|[=+*/×÷→]|\b(?:so|is|are|was|were|has|have|had|gives?|gets?|makes?|leav(?:es?|ing)|which|then|and)\b"
)
_VERB = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have|had)\b(?!['’])("
    r" not\b)?"
    r"|\b(is|are|was|were|could|would|should|must|does|do|did|has|have|had)n['’]t\b|\b(ca|wo)n['’]t\b|\b(can)not\b",
    re.IGNORECASE,
)
_IRREGULAR = {"ca": "can", "wo": "will"}
_CONNECTIVE = re.compile(
    r"(?:(?:so|thus|therefore|hence|consequently|accordingly)\b(?!\s+(?:far|that|many|much)\b),?\s+)+",
    re.IGNORECASE,
)
_NOT_AFTER_SO = re.compile(
    r"(?:so|thus|therefore|hence|consequently|accordingly|but|however|yet|although|though|while|whereas|alternatively|instead"
    r"|otherwise|wait|hmm+|no|yes|ok|okay|actually|or|and|also|let|let's|suppose|assume|given|consider|note|recall|say|first"
    r"|firstly|second|secondly|third|thirdly|next|finally|lastly|what|how|why|who|which)\b",
    re.IGNORECASE,
)
_SHIFTS = (-2, -1, 1, 2)


def corrupt_step(text: str, rng: random.Random) -> str | None:
    """The same step stating something else: the number it states shifted by 1 or 2, or, without numbers, negated.

    The number it states is what its last "=" gives, where no further clause follows, else its last
    number. What repeats it later in the step changes with it. A number never falls below zero;
    decimals shift in their last place. The label ("Step 2:") and ordinals ("the 3rd day") are left
    alone.

    Returns
    -------
    str or None
        None where no rule applies: there is nothing to change that is known to change the meaning.
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
    """The same statement in other words: "=" written out or the other way round, a connective dropped or put in front.

    None where the step holds nothing but its label, or begins with a word that no connective can
    precede or replace.
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
    """Dots in the place of a step: one group of three for each of its words."""
    return " ".join(["..."] * max(1, len(text.split())))


def label_end(text: str) -> int:
    """Where a step's own words begin: behind its label ("Step 2:", "3.", a bullet), 0 where it has none."""
    label = _LABEL.match(text)
    return label.end() if label else 0


def stated_number(text: str, numbers: list[re.Match[str]]) -> re.Match[str]:
    """What the last "=" gives, unless a clause with a further number follows it; else the last number."""
    for number in reversed(numbers):
        if _EQUALS.search(text, max(0, number.start() - 12), number.start()):
            return (
                number
                if not _CLAUSE.search(text, number.end(), numbers[-1].start())
                else numbers[-1]
            )
    return numbers[-1]


def negated(text: str, start: int = 0) -> str | None:
    """The first verb that can take "not" gains it, or loses it."""
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
    with localcontext(prec=len(number) + 2):  # exact, however long the number is
        value = Decimal(number.replace(",", ""))
        exponent = value.as_tuple().exponent
        unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        moved = value + unit * rng.choice([s for s in _SHIFTS if value + unit * s >= 0])
    formatted = f"{moved:,f}" if "," in number else f"{moved:f}"
    return formatted.removeprefix("0") if number.startswith(".") else formatted


def _lower_first(body: str) -> str:
    """Lower the first letter unless the word is a name, an acronym or "I"."""
    word = re.match(r"[A-Za-z]+", body)
    plain = {
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "those",
        "it",
        "they",
        "he",
        "she",
        "we",
        "in",
        "on",
        "at",
        "if",
        "there",
        "then",
        "each",
        "all",
        "both",
        "total",
        "since",
        "because",
        "when",
        "his",
        "her",
        "their",
        "its",
        "our",
        "for",
        "after",
        "before",
        "from",
        "by",
        "with",
        "one",
        "every",
        "adding",
        "multiplying",
        "dividing",
    }
    return body[0].lower() + body[1:] if word and word.group().lower() in plain else body
