"""The plain form of an answer, what it states (number, date, option, list), and agreement."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from cotlab.text.answers.dates import (
    Clock,
    Date,
    only_stated,
    read_clock,
    read_date,
    read_ratio,
    same_moment,
)
from cotlab.text.answers.quantities import Quantity, read_quantity, same_quantity

MAX_LENGTH = 2000
"""Longer answers are compared as text only."""
# "Yes.", "so no", "True - it holds"
YES_NO = re.compile(
    r"(?i)\W{0,6}(?:(?:so|therefore|thus|hence|in conclusion),?\s+)?"
    r"(yes|no|true|false)(?:[,.!;:*]|\s*$|\s[-–—])"
)
# "(B) the moon", "B. the moon", "option B"
_OPTION = re.compile(
    r"(?is)(?:(?:option|choice|answer)\s+)?"
    r"(?:[(\[]([A-Z])[)\]][.:]?|([A-J])(?:[.:)](?=\s|$)|$))\s*(.*)"
)
# "\text{18 eggs}", "\boxed{5}"
_WRAP = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname|boxed|fbox|mbox)\s?"
    r"\{([^{}]{0,400})\}"
)
# "$x$", "$$x$$", "\(x\)", "\[x\]"
_MATHS = re.compile(r"(?s)\$\$([^$]+)\$\$|\$((?:[^$\\]|\\.)+)\$|\\\(([^$]+)\\\)|\\\[([^$]+)\\\]")
# "\frac{1}{2}", "\dfrac 12"
_FRACTION = re.compile(r"\\[dtc]?frac\s?(?:\{([^{}]{1,200})\}|(\d))\s?(?:\{([^{}]{1,200})\}|(\d))")
_LATEX = {
    "%": "%",
    "#": "#",
    "&": "&",
    "_": "_",
    "{": "{",
    "}": "}",
    ",": " ",
    ";": " ",
    ":": " ",
    " ": " ",
    "!": "",
    "left": "",
    "right": "",
    "displaystyle": "",
    "quad": " ",
    "qquad": " ",
    "cdot": "*",
    "times": "*",
    "div": "/",
    "pi": "pi",
    "infty": "∞",
    "pm": "±",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "degree": "°",
    "circ": "°",
}
# "\cdot", "\%", "\,"
_COMMAND = re.compile(r"\\([a-zA-Z]{1,20}|[%#&_{},;: !])")
_FOLD = dict(zip("−–—‐‑’‘“”·×", "-----''\"\"**", strict=True)) | {"π": "pi"}
_BRACKETS = ("()", "[]", "{}", "[)", "(]")


class CompoundAnswer(NamedTuple):
    """An answer of several parts: an option or a list."""

    kind: str
    """"option", or the brackets of the list ("()", "{}" …, "" without brackets)."""
    items: tuple[str, ...]
    """Letter and text of the option, or the items of the list."""


Reading = CompoundAnswer | bool | Date | Clock | Quantity | tuple[int, ...] | None


def has_content(text: str) -> bool:
    """Return whether a text has content.

    Content is a letter, a digit, a bracket or a mathematical sign, but not an empty pair.
    """
    return any(c.isalnum() or c in "()[]{}<>+=∞√" for c in text) and "".join(text.split()) not in (
        "()",
        "[]",
        "{}",
        "<>",
    )


def tidy_answer(text: str) -> str:
    r"""Strip what surrounds an answer.

    That is Markdown, quotes, delimiters of mathematics, ``\text{}`` and closing punctuation.
    """
    for _ in range(6):
        before, text = text, text.strip().strip('*_`"“”«»').strip()
        text = re.sub(r"^(?:#{1,6}\s+|>\s+(?=\w)|[-•]\s+(?=\D)|[:=]\s*)", "", text).rstrip(
            ".,;:!?…。 "
        )
        if len(text) > 1 and text[0] in "'‘" and text[-1] in "'’":
            text = text[1:-1]
        if wrapped := _WRAP.fullmatch(text) or _MATHS.fullmatch(text):
            text = wrapped[wrapped.lastindex or 0]
        if (
            re.search(r"\w\)$", text)
            and text.count(")") > text.count("(")
            and not re.fullmatch(r"\W?[A-Za-z0-9]\)", text)
        ):
            text = text[:-1]
        if text == before:
            break
    return text.replace("\\$", "$").replace("\\%", "%")


def to_plain_text(text: str) -> str:
    r"""Replace LaTeX, full-width and typographic characters by plain ones.

    ``\frac{1}{2}`` and ½ become 1/2, − becomes -, m² becomes m^2.
    """
    if not text.isascii() and len(text) <= MAX_LENGTH:
        text = "".join(
            (
                f"^{unicodedata.digit(c)}"
                if c in "⁰¹²³⁴⁵⁶⁷⁸⁹"
                else (
                    f" {unicodedata.normalize('NFKC', c).replace('⁄', '/')}"
                    if unicodedata.decomposition(c).startswith("<fraction>")
                    else _FOLD.get(c) or unicodedata.normalize("NFKC", c)
                )
            )
            for c in text
        )
        text = re.sub(r"√\s?(\w{1,40})", r"sqrt(\1)", text)
    if len(text) > MAX_LENGTH or not ("\\" in text or "{" in text or "$" in text):
        return text
    text = text.replace("\\$", "\0").replace("{,}", ",")
    for _ in range(3):
        text = _FRACTION.sub(_divided, _WRAP.sub(r"\1", text))
    text = re.sub(r"\\sqrt\s?(?:\{([^{}]{1,200})\}|(\w))", lambda m: f"sqrt({m[1] or m[2]})", text)
    text = _COMMAND.sub(lambda m: _LATEX.get(m[1], m[0]), re.sub(r"\^\{?\\circ\}?", "°", text))
    text = re.sub(
        r"\$(?=\S)([^$]{1,200}?)(?<=\S)\$(?!\d)", r"\1", re.sub(r"\^\{(-?\w{1,9})\}", r"^\1", text)
    )
    return text.replace("\0", "$")


def _divided(match: re.Match[str]) -> str:
    """Write a matched LaTeX fraction with a slash, after a space where a digit precedes it."""
    above, below = match[1] or match[2], match[3] or match[4]
    space = " " if match.string[: match.start()][-1:].isdigit() else ""
    return (
        f"{space}{above}/{below}"
        if re.fullmatch(r"-?[\d.]+/[\d.]+", f"{above}/{below}")
        else f"({above})/({below})"
    )


def answer_key(text: str) -> str:
    """Return a text that is equal for answers of the same words.

    Case, accents, articles and punctuation are dropped; of a formula (digits or operators) only
    spaces and articles.
    """
    folded = text.casefold()
    if len(text) <= MAX_LENGTH:  # the time to order accents is quadratic
        folded = "".join(
            c for c in unicodedata.normalize("NFKD", folded) if unicodedata.combining(c) < 200
        )
    folded = re.sub(r"(?<=[^\W\d_]{2})-(?=\w)", " ", folded)
    folded = re.sub(r"\b(?:[^\W\d_]\.){1,9}[^\W\d_]\b\.?", lambda m: m[0].replace(".", ""), folded)
    short = "-" in folded and not re.search(r"[^\W\d_]{3}", folded)
    if short or re.search(r"[\d=+^<>*/\\√≤≥≠±|]", folded) or not re.search(r"\w", folded):
        squeezed = (
            re.sub(r"\s?([^\w\s])\s?", r"\1", " ".join(folded.split()))
            .strip(".,;:!?")
            .replace('"', "")
        )
        return re.sub(r"\b(?:an?|the)\s(?=\w)", "", squeezed)
    tokens = [
        word.replace("'", "")
        for word in re.findall(r"[^\W_]+(?:'[^\W_]+)*", folded.replace("&", " and "))
    ]
    return " ".join([word for word in tokens if word not in ("a", "an", "the")] or tokens)


def _split_items(text: str) -> tuple[str, ...]:
    """Split a list at commas outside brackets; nothing if the brackets do not match."""
    items, depth = [""], 0
    for c in re.sub(r",?\s+and\s+", ", ", text):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            return ()
        if c in ",;" and depth == 0:
            items.append("")
        else:
            items[-1] += c
    return tuple(item.strip() for item in items) if len(items) <= 50 else ()


def read_answer(text: str, depth: int = 0) -> Reading:
    """Read a plain answer as number, date, option, list, yes or no; None if it is only words."""
    if len(text) > MAX_LENGTH or depth > 3 or not text:
        return None
    if (
        word := YES_NO.fullmatch(text) or re.match(r"(?i)(yes|no|true|false)(?=[,.;:!])", text)
    ) is not None:
        return word[1].lower() in ("yes", "true")
    ends = text[0] + text[-1]
    if ends in _BRACKETS and not (ends == "()" and read_quantity(text[1:-1])):
        items = _split_items(text[1:-1])
        if len(items) > 1 or (items and ends == "{}"):
            return CompoundAnswer(ends, items)
    if option := _OPTION.fullmatch(text):
        return CompoundAnswer("option", ((option[1] or option[2]).lower(), tidy_answer(option[3])))
    if trailing := re.fullmatch(r"(?i)([^()\n]{1,60}?)\s\(([A-J])\)", text):
        return CompoundAnswer("option", (trailing[2].lower(), tidy_answer(trailing[1])))
    if ends == "()":
        return read_answer(text[1:-1].strip(), depth + 1)
    read = read_date(text) or read_clock(text) or read_ratio(text) or read_quantity(text)
    if read is None and (
        equation := re.fullmatch(r"[^=<>!≤≥≠]{1,80}(?:=[^=<>!≤≥≠]{1,80}){1,9}", text)
    ):
        return read_answer(equation[0].rpartition("=")[2].strip(), depth + 1)
    if (
        read is None
        and len(items := _split_items(text)) > 1
        and all(read_answer(item, depth + 1) is not None for item in items)
    ):
        return CompoundAnswer("", items)
    return read


def _read_within(text: str) -> Reading:
    """Read the one number or date within a clause, as in "she makes $18 every day"."""
    spans = only_stated(text)
    return read_answer(text[spans[0] :]) or read_answer(text[slice(*spans)]) if spans else None


def answers_agree(x: str, y: str, depth: int = 0) -> bool:
    """Return whether two plain answers agree; ``depth`` counts lists within lists."""
    if answer_key(x) == answer_key(y):
        return True
    if max(len(x), len(y)) > MAX_LENGTH or depth > 3:
        return False
    names = [
        name[1].lower() for text in (x, y) if (name := re.match(r"([A-Za-z]\w{0,3})\s?=", text))
    ]
    if len(names) == 2 and names[0] != names[1]:
        return False
    p, q = read_answer(x), read_answer(y)
    if isinstance(p, CompoundAnswer) and isinstance(q, CompoundAnswer):
        return _compounds_agree(p, q, depth)
    for compound, other in ((p, y), (q, x)):
        if isinstance(compound, CompoundAnswer):
            return (
                compound.kind == "option"
                and bool(compound.items[1])
                and answers_agree(compound.items[1], other, depth + 1)
            )
    if (
        (ratio := read_ratio(x))
        and (other_ratio := read_ratio(y))
        and not (isinstance(p, Clock) and isinstance(q, Clock))
    ):
        return ratio == other_ratio
    if (p is None) != (q is None):  # "she makes $18 every day" beside "18"
        p, q = _read_within(x) if p is None else p, _read_within(y) if q is None else q
    for clock, hour in ((p, q), (q, p)):
        if isinstance(clock, Clock) and isinstance(hour, Quantity):
            return (
                not (hour.units or hour.nouns)
                and hour.value == clock.hour_written
                and clock.second % 3600 == 0
            )
    if isinstance(p, Date | Clock) and isinstance(q, Date | Clock):
        return same_moment(p, q)
    if isinstance(p, Quantity) and isinstance(q, Quantity):
        return same_quantity(p, q)
    return isinstance(p, bool) and p is q


def _compounds_agree(p: CompoundAnswer, q: CompoundAnswer, depth: int) -> bool:
    """Return whether two options or two lists agree; the order of a set does not matter."""
    pairs = tuple(zip(p.items, q.items, strict=False))
    if p.kind == q.kind == "option":
        return p.items[0] == q.items[0] and ("" in pairs[1] or answers_agree(*pairs[1], depth + 1))
    if p.kind != q.kind and (p.kind and q.kind or "option" in (p.kind, q.kind)):
        return False
    if (
        "{}" in (p.kind, q.kind) and len(p.items) * len(q.items) <= 900 // 25**depth
    ):  # sets within sets multiply
        table = [[answers_agree(x, y, depth + 1) for y in q.items] for x in p.items]
        return all(map(any, table)) and all(map(any, zip(*table, strict=True)))
    return (
        "{}" not in (p.kind, q.kind)
        and len(p.items) == len(q.items)
        and all(answers_agree(x, y, depth + 1) for x, y in pairs)
    )
