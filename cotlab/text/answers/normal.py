"""The plain form of an answer: typography, delimiters and wrappers do not count."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_ANSWER_CHARACTERS = 2000
"""Characters of an answer; what follows is not read."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUPERSCRIPTS_RE = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_FRACTION_RE = re.compile("[¼-¾⅐-⅞]")
_CHARACTERS = str.maketrans("−–‐‑’‘“”·⁄", "----''\"\"·/")
# "**18**", "__18__", "`18`"
_EMPHASIS_RE = re.compile(r"\*\*|__|`|^\s*[*_]+|[*_]+\s*$")
# "$18$", "\(18\)", "“18”", all of a text
_DELIMITED_RE = re.compile(
    r"(?s)(?:\\\[(.*)\\\]|\\\((.*)\\\)|\$\$(.*)\$\$|\$([^$]*)\$|\"([^\"]*)\"|“([^”]*)”|'([^']*)')"
    r"\s?[.,;:!]{0,9}"
)
# "\boxed{18}", "\text{18}", all of a text
_WRAPPED_RE = re.compile(r"(?s)\s*\\(?:boxed|fbox|text|mathrm|textbf|mathbf)\s?\{(.*)\}\s*")
_TEXT_COMMAND_RE = re.compile(r"\\(?:text(?:bf|it|rm|normal)?|math(?:rm|bf)|mbox)\s?\{([^{}]*)\}")
# ",\\! " of "11,\\! 111"
_THIN_SPACE_RE = re.compile(r"\s?\\!\s?")
# "$5$" in a text, not the amounts of "$5 and $6"
_INLINE_RE = re.compile(r"\$(?=\S)([^$]{1,200}?)(?<=\S)\$(?!\d)|\\\((.{1,200}?)\\\)")
_DEGREE_RE = re.compile(r"\^\s?\{?\s?\\(?:circ|degree)\s?\}?|\\degree(?![a-z])")
# "\left", "\;": LaTeX that only sets type
_TYPESETTING_RE = re.compile(r"\\(?:left|right|quad|qquad|displaystyle)(?![a-z])|\\[;: ]|~")
# what says nothing between words; not the signs of "x > y", "C#", "¬p", "4!"
_PUNCTUATION_RE = re.compile(r"(?<=[^\W\d_]{2})!|[\s,;:?\"'`“”‘’(){}\[\]*_…|&]+")
_ARTICLE_RE = re.compile(r"(?i)\b(?:the|a|an)\s+(?=\w)")
# "^{2}" of "x^{2}"
_BRACED_EXPONENT_RE = re.compile(r"\^\{(\w)\}")


def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text between spaces."""
    return tuple(text.split())


def unify_characters(text: str) -> str:
    """Replace full-width letters, digits of all scripts, fractions and signs by plain ones.

    Examples
    --------
    >>> unify_characters("１８, ১৮, ½, x², −5")
    '18, 18, 1/2, x^2, -5'
    """
    if text.isascii():
        return text
    text = _SUPERSCRIPTS_RE.sub(lambda m: f"^{{{m[0].translate(_SUPERSCRIPTS)}}}", text)
    text = _BRACED_EXPONENT_RE.sub(r"^\1", text)
    text = _FRACTION_RE.sub(lambda m: f" {m[0]}" if m.start() else m[0], text)
    text = re.sub(r"(\s)\s(?=[¼-¾⅐-⅞])", r"\1", text)
    text = unicodedata.normalize("NFKC", text).translate(_CHARACTERS)
    return "".join(
        c if c.isascii() or not c.isdecimal() else str(unicodedata.decimal(c)) for c in text
    )


@lru_cache(4096)
def tidy(text: str) -> str:
    r"""Strip what surrounds an answer: Markdown, delimiters of mathematics, wrappers, a full stop.

    Examples
    --------
    >>> tidy(r"**$\boxed{18}$**.")
    '18'
    """
    text = _EMPHASIS_RE.sub("", text[:MAX_ANSWER_CHARACTERS].strip()).replace("\\$", "$")
    for _ in range(6):
        before = text
        text = text.strip()
        text = text.rstrip(".,;:。") or text
        body = text.rstrip("!")
        if len(body) > 1 and body[-2:].isalpha():  # of "yes!", not of "4!" and "n!"
            text = body
        for quote in "\"'":
            text = text.strip(quote) if text.count(quote) == 1 else text
        if match := _DELIMITED_RE.fullmatch(text.strip()):
            text = next(group for group in match.groups() if group is not None)
        if (match := _WRAPPED_RE.fullmatch(text)) and is_balanced(match[1]):
            text = match[1]
        if text == before:
            break
    return " ".join(text.split())


def is_balanced(text: str) -> bool:
    """Return whether each brace of a text is closed within it."""
    depth = 0
    for c in text:
        depth += {"{": 1, "}": -1}.get(c, 0)
        if depth < 0:
            return False
    return depth == 0


@lru_cache(4096)
def plain_text(text: str) -> str:
    r"""Write an answer without LaTeX that only sets type: ``\$1{,}000\,\text{km}`` is $1,000 km."""
    text = tidy(unify_characters(text))
    if "\\" in text or "{" in text:
        text = text.replace("\\$", "$").replace("\\%", "%").replace("{,}", ",")
        text = _THIN_SPACE_RE.sub("", text)
        text = _TEXT_COMMAND_RE.sub(r" \1", text.replace("\\,", " "))
        text = _TYPESETTING_RE.sub(" ", _DEGREE_RE.sub("°", text))
        text = _BRACED_EXPONENT_RE.sub(r"^\1", text)
    text = _INLINE_RE.sub(lambda m: (m[1] or m[2]).strip(), text)
    return " ".join(text.split())


@lru_cache(4096)
def word_key(text: str) -> str:
    """Return what answers of the same words have in common, without case, articles, punctuation.

    Examples
    --------
    >>> word_key("The *Blue* whale!") == word_key("blue whale")
    True
    """
    text = plain_text(text)
    folded = unicodedata.normalize("NFKD", text)
    folded = "".join(c for c in folded if not unicodedata.combining(c))
    folded = _ARTICLE_RE.sub(" ", re.sub(r"(?<=[^\W\d_]{2})-(?=\w)", " ", folded.casefold()))
    return " ".join(_PUNCTUATION_RE.sub(" ", folded).split()).strip(" .")
