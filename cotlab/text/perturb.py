"""Changes to one step of a chain, by rules and seeded: what the step states, or only how it says it."""

from __future__ import annotations

import random
import re
from decimal import Decimal

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_LABEL = re.compile(r"^\s*(?:step\s+\d+\s*[:.)]|\d+\s*[.)])\s*", re.IGNORECASE)
_NEGATION = re.compile(r"\b(is|are|was|were|can|will|should|must|does|do|has|have)\b(?! not\b)")
_SHIFTS = (-2, -1, 1, 2)


def corrupt_step(text: str, rng: random.Random) -> str | None:
    """The same step stating something else: its last number shifted by 1 or 2, or, without numbers, negated.

    A number never falls below zero; decimals shift in their last place. The label ("Step 2:") is left alone.

    Returns
    -------
    str or None
        None where no rule applies: there is nothing to change that is known to change the meaning.
    """
    start = _label_end(text)
    numbers = [m for m in _NUMBER.finditer(text, start)]
    if numbers:
        last = numbers[-1]
        return text[: last.start()] + _shift(last.group(), rng) + text[last.end() :]
    verb = _NEGATION.search(text, start)
    if verb is None:
        return None
    return f"{text[: verb.end()]} not{text[verb.end() :]}"


def paraphrase_step(text: str, rng: random.Random) -> str | None:
    """The same statement in other words: "=" written out or the other way round, or a connective put in front.

    None where the step holds nothing but its label.
    """
    start = _label_end(text)
    body = text[start:]
    if not body.strip():
        return None
    options = []
    if " = " in body:
        options.append(text[:start] + body.replace(" = ", " equals "))
    elif " equals " in body:
        options.append(text[:start] + body.replace(" equals ", " = "))
    if body.startswith("So "):
        options.append(text[:start] + body[3:])
    elif body[0].isdigit():
        options.append(f"{text[:start]}So {body}")
    elif not options:
        options.append(f"{text[:start]}So {_lower_first(body)}")
    return rng.choice(options)


def filler_for(text: str) -> str:
    """Dots in the place of a step: one group of three for each of its words."""
    return " ".join(["..."] * max(1, len(text.split())))


def _label_end(text: str) -> int:
    label = _LABEL.match(text)
    return label.end() if label and label.end() < len(text) else 0


def _shift(number: str, rng: random.Random) -> str:
    bare = number.rstrip(",")
    value = Decimal(bare.replace(",", ""))
    exponent = value.as_tuple().exponent
    unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    moved = value + unit * rng.choice([s for s in _SHIFTS if value + unit * s >= 0])
    return (f"{moved:,f}" if "," in bare else f"{moved:f}") + number[len(bare) :]


def _lower_first(body: str) -> str:
    """Lower the first letter unless the word is a name, an acronym or "I"."""
    word = re.match(r"[A-Za-z]+", body)
    plain = {"the", "a", "an", "this", "that", "these", "those", "it", "they", "he", "she", "we", "in", "on", "at", "if",
             "there", "then", "each", "all", "both", "total", "first", "next", "finally", "since", "because", "when"}  # fmt: skip
    return body[0].lower() + body[1:] if word and word.group().lower() in plain else body
