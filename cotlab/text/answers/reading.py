"""The plain form of an answer, what it states (number, date, option, list), and agreement."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from cotlab.text.answers.articles import PRIME, mark_primes, without_articles
from cotlab.text.answers.dates import (
    Date,
    TimeOfDay,
    read_date,
    read_ratio,
    read_time_of_day,
)
from cotlab.text.answers.formulas import is_plain_number, read_formula
from cotlab.text.answers.notation import (
    matching_brackets,
    split_items,
    without_approximation,
)
from cotlab.text.answers.quantities import Quantity, read_quantity
from cotlab.text.answers.spelling import american_spelling
from cotlab.text.written_units import find_units

MAX_PARSED_CHARACTERS = 2000
"""Longer answers are compared as text only."""
_N_CACHED_TEXTS = 2048  # the same few answers are read for each reply of a run
# "Yes.", "so no", "True - it holds"
YES_NO_RE = re.compile(
    r"(?i)\W{0,6}(?:(?:so|therefore|thus|hence|in conclusion),?\s+)?"
    r"(yes|no|true|false)(?:[,.!;:*]|\s*$|\s[-–—])"
)
# "(B) the moon", "B. the moon", "option B"
_OPTION_RE = re.compile(
    r"(?is)(?:(?:option|choice|answer)\s+)?"
    r"(?:[(\[]([A-Z])[)\]](?!\s*(?:[+*/^=!<>]|-\s*[\d(]))[.:]?|([A-J])(?:[.:)](?=\s|$)|$))\s*(.*)"
)
# "\text{18 eggs}", "\boxed{5}"
_LATEX_WRAPPER_RE = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|normal)?|math(?:rm|bf|it|sf)|operatorname|ce|boxed|fbox|mbox)\s?"
    r"\{((?:[^{}]|[\^_]\{[^{}]{1,12}\}){0,400})\}"
)
# "$x$", "$$x$$", "\(x\)", "\[x\]"
_MATHS_DELIMITER_RE = re.compile(
    r"(?s)\$\$([^$]+)\$\$|\$((?:[^$\\]|\\.)+)\$|\\\(([^$]+)\\\)|\\\[([^$]+)\\\]"
)
# "\(f\)", which is no option (f)
_INLINE_MATHS_RE = re.compile(r"(?<!\\)\\\(\s?((?:(?!\\[()]).){1,400}?)\s?\\\)")
# "\frac{1}{2}", "\dfrac 12"
_LATEX_FRACTION_RE = re.compile(
    r"\\[dtc]?frac\s?(?:\{([^{}]{1,200})\}|(\d))\s?(?:\{([^{}]{1,200})\}|(\d))"
)
# "x" of "\frac{1}{2}x", "\pi", "(", "^2", not " m" nor " cup"
_FACTOR_RE = re.compile(
    r"\s?(?:\\(?!circ|degree|quad|qquad|right|pm|cup|le(?!ft)|ge|ne|approx|implies|Right|in(?:fty)?\b)[A-Za-z]+|[(!]|\^(?!\{?\\circ)|[a-zA-Z](?![a-zA-Z]))"
)
_LATEX_REPLACEMENTS = (
    {character: character for character in "%#&_{}"}
    | dict.fromkeys([*",;: ", "quad", "qquad"], " ")
    | dict.fromkeys(["!", "left", "right", "displaystyle"], "")
    | {"cdot": "*", "times": "*", "div": "/", "pm": "±", "pi": "pi", "infty": "∞"}
    | dict.fromkeys(["le", "leq", "leqslant"], "≤")
    | dict.fromkeys(["ge", "geq", "geqslant"], "≥")
    | dict.fromkeys(["ldots", "dots", "cdots"], "...")
    | {"lt": "<", "gt": ">", "ne": "≠", "neq": "≠", "approx": "≈", "lvert": "|", "rvert": "|"}
    | {
        "cup": "∪",
        "implies": "⟹",
        "Rightarrow": "⟹",
        "degree": "°",
        "circ": "°",
        "langle": "(",
        "rangle": ")",
    }
)
# "\cdot", "\%", "\,"
_LATEX_COMMAND_RE = re.compile(r"\\([a-zA-Z]{1,20}|[%#&_{},;: !])")
_CHARACTER_REPLACEMENTS = dict(zip("−–—‐‑’‘“”·×", "-----''\"\"**", strict=True)) | {
    "π": "pi",
    "¢": " cents",
    "⟨": "(",
    "⟩": ")",
    "′": "'",
    "″": "''",
}
# "\quad" of "\quad\text{or}", "\in" of "x\in[0, 1)"
_BEFORE_COMMAND_RE = re.compile(r"\\q?quad(?=\\)|\\in(?=[\[({])")
# "^{\\prime}" of "f^{\\prime}"
_PRIME_RE = re.compile(r"\^\{?\s?\\prime\s?\}?")
# "5'6" of 5'6"
_FEET_AND_INCHES_RE = re.compile(r"\s*(\d{1,2})\s?'\s?(\d|1[01])(?:\"|'')?\s*", re.ASCII)
# ",\! " of "11,\! 111"
_THOUSANDS_RE = re.compile(r"(?<=\d),\s?\\!\s?(?=\d{3}(?!\d))", re.ASCII)
# ", ..." at the end of a list that goes on
_ELLIPSIS_RE = re.compile(r",\s?(?:\.{3}|…|\\[lc]?dots\b)[\s.$)\\]*$")
# "6** such": one end of bold text that was cut
_BOLD_END_RE = re.compile(r"(?<=\w)\*\*(?=[\s,.;:!?])")
# "4" of "4!", "n" of "n!", not "yes" of "yes!"
_FACTORIAL_RE = re.compile(r"(?:[\d)}]|(?<![^\W\d_])[^\W\d_])!")
_FACTORIAL_END_RE = re.compile(r"[\d)}]$|(?<![A-Za-z])[A-Za-z]$")
# "9 * 2 = 18", "x = y = 5"
_EQUATION_RE = re.compile(r"[^=<>≤≥≠]{1,80}(?:=[^=<>≤≥≠]{1,200}){1,9}")
# "x =", "x_1 ="
_ASSIGNMENT_RE = re.compile(r"\s*\\?[A-Za-z]{1,8}(?:_\{?\w\}?|\([a-z]\))?\s?=\s?\S")
# ", attained at x" before "=": what follows is of another clause
_SENTENCE_RE = re.compile(r"[,;.]\s+\(?[A-Za-z]{3,}\s")
# "sqrt(x)", "log_2 x": what an equation is still to be solved for
_UNSOLVED_RE = re.compile(
    r"(?:sqrt\(|\\sqrt\{|\\?(?:log|ln)(?![a-z])\S{0,6}?[\s(])\s?-?\d{0,9}[a-z]\b"
)
# "A" of "A = pi r^2 = 25 pi"
_LETTER_NAME_RE = re.compile(r"\\?[A-Za-z]{1,8}(?:_\{?\w\}?)?")
# "|x|", "-x", "e^x": names of what is still to be solved for
_OPEN_NAME_RE = re.compile(
    r"(?i:not)\s.{1,80}|\|[^|]{1,40}\||-\s?[A-Za-z]|[A-Za-z\d]\s?\^\s?\{?\(?[a-z]\)?\}?|\\?(?:sin|cos|tan)\s?\(?[a-z]\)?"
)
# "¹⁹", "⁻³", "ⁿ⁺¹"
_SUPERSCRIPTS_RE = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ⁺⁻⁽⁾ˣʸᵃᵇᵏᵐᵗ]{1,20}")
# "₃" of "12₃" and "(12)₃", not of "H₂O"
_BASE_DIGITS_RE = re.compile("(?:(?<=\\d)|(?<=\\d\\)))(?<![₀-₉])[₀-₉]{1,2}")
# "f^{-1}(x)", "A^{-1}"
_INVERSE_RE = re.compile(
    r"\s*[a-zA-Z]\^\{?\(?-1\)?\}?\s?\([a-z]\)\s*|\s*[A-Z]\^\{?\(?(?:-1|T)\)?\}?\s*"
)
# "F" of "F(x)", which is not f(x)
_CAPITAL_FUNCTION_RE = re.compile(r"(?<![^\W_])([A-Z])(?='{0,3}\([a-z]\))")
# "cos" of "-cos(x)", whose sign is no punctuation
_FUNCTION_RE = re.compile(
    r"\b(?:arc)?(?:sin|cos|tan|cot|sec|csc|ln|log|exp|sqrt)h?\b\s?(?:[(^\d]|\\?[a-z]\b)"
)
# "bob's", "f′"
_WORD_RE = re.compile(rf"[^\W_]+(?:['{PRIME}]+[^\W_]+)*{PRIME}{{0,3}}")
# "-" of "south-west", " " of "north east"
_COMPASS_RE = re.compile(r"(?<=\b(?:north|south))[- ](?=(?:east|west)(?:ern|erly)?\b)")
_CONJUNCTION_RE = re.compile(r"(?i)\s(?:and|or)\s")
_BRACKET_PAIRS = ("()", "[]", "{}", "[)", "(]")


class CompoundAnswer(NamedTuple):
    """An answer of several parts: an option or a list."""

    kind: str
    """"option", or the brackets of the list ("()", "{}" …, "" without brackets)."""
    items: tuple[str, ...]
    """Letter and text of the option, or the items of the list."""


AnswerReading = CompoundAnswer | bool | Date | TimeOfDay | Quantity | tuple[int, ...] | None


def has_content(text: str, *, pair: bool = False) -> bool:
    """Return whether a text has content.

    Content is a letter, a digit, a bracket or a mathematical sign, but not an empty pair of
    brackets unless ``pair``.
    """
    return any(c.isalnum() or c in "()[]{}<>+=∞√∅" for c in text) and (
        pair
        or "".join(text.split())
        not in (
            "()",
            "[]",
            "{}",
            "<>",
        )
    )


@lru_cache(_N_CACHED_TEXTS)
def tidy_answer(text: str) -> str:
    r"""Strip what surrounds an answer.

    That is Markdown, quotes, delimiters of mathematics, ``\text{}`` and closing punctuation.
    """
    for _ in range(6):
        previous_text, text = text, text.strip().strip('*_`"“”«»').strip()
        text = re.sub(r"^(?:#{1,6}\s+|>\s+(?=\w)(?!\d[\d.,]*$)|[-•]\s+(?=\D)|[:=]\s*)", "", text)
        body = text.rstrip(".,;:!?…。 ")
        if _ELLIPSIS_RE.search(text) and "," in body:
            body = f"{_ELLIPSIS_RE.sub('', text)}, ..."
        is_factorial = text[len(body) :].startswith("!") and _FACTORIAL_END_RE.search(body[-2:])
        text = f"{body}!" if is_factorial and text[len(body) + 1 :][:1] != "!" else body
        if len(text) > 1 and text[0] in "'‘" and text[-1] in "'’":
            text = text[1:-1]
        if wrapper_match := _LATEX_WRAPPER_RE.fullmatch(text) or _MATHS_DELIMITER_RE.fullmatch(
            text
        ):
            text = wrapper_match[wrapper_match.lastindex or 0]
        if (
            re.search(r"\w\)$", text)
            and text.count(")") > text.count("(") + text.count("[") - text.count("]")
            and not re.fullmatch(r"\W?[A-Za-z0-9]\)", text)
        ):
            text = text[:-1]
        if text == previous_text:
            break
    if text.count("**") == 1:
        text = _BOLD_END_RE.sub("", text)
    return text.replace("\\$", "$").replace("\\%", "%")


@lru_cache(_N_CACHED_TEXTS)
def to_plain_text(text: str) -> str:
    r"""Replace LaTeX, full-width and typographic characters by plain ones.

    ``\frac{1}{2}`` and ½ become 1/2, − becomes -, m² becomes m^2.
    """
    if not text.isascii() and len(text) <= MAX_PARSED_CHARACTERS:
        text = _SUPERSCRIPTS_RE.sub(_format_exponent, text)
        text = _BASE_DIGITS_RE.sub(r"_\g<0>", text)
        text = "".join(
            (
                f" {unicodedata.normalize('NFKC', c).replace('⁄', '/')}"
                if unicodedata.decomposition(c).startswith("<fraction>")
                else _CHARACTER_REPLACEMENTS.get(c) or unicodedata.normalize("NFKC", c)
            )
            for c in text
        )
        text = re.sub(r"(?<=\d)  (?=\d/\d)", " ", text)  # 1 ½
        text = re.sub(r"(?<=[A-Za-z])(?=√)", " ", text)
        text = re.sub(r"√\s?(\d{1,40}|[A-Za-z])(?!\w)", r"sqrt(\1)", text)
        text = re.sub(r"∛\s?(\d{1,40}|[A-Za-z])(?!\w)", r"(\1)^(1/3)", text)
    text = text.replace(" != ", " ≠ ")
    if len(text) <= 20 and (length_match := _FEET_AND_INCHES_RE.fullmatch(text)):
        return f"{length_match[1]} feet {length_match[2]} inches"
    if len(text) > MAX_PARSED_CHARACTERS or not ("\\" in text or "{" in text or "$" in text):
        return text
    text = _THOUSANDS_RE.sub(",", text).replace("\\$", "\0").replace("{,}", ",")
    text = _BEFORE_COMMAND_RE.sub(r"\g<0> ", text.replace("\\!", ""))
    text = _PRIME_RE.sub("'", _INLINE_MATHS_RE.sub(r"\1", text))
    text = re.sub(r"(?<!\\)\\(?=[\d()])", "", text)
    for _ in range(3):
        text = _LATEX_FRACTION_RE.sub(_format_fraction, _LATEX_WRAPPER_RE.sub(r"\1", text))
    text = re.sub(r"(?<=[A-Za-z])(?=\\sqrt)", " ", text)
    text = re.sub(r"\\sqrt\s?(?:\{([^{}]{1,200})\}|(\w))", lambda m: f"sqrt({m[1] or m[2]})", text)
    text = _LATEX_COMMAND_RE.sub(
        lambda m: _LATEX_REPLACEMENTS.get(m[1], m[0]), re.sub(r"\^\{?\\circ\}?", "°", text)
    )
    text = re.sub(
        r"\$(?=\S)([^$]{1,200}?)(?<=\S)\$(?!\d)",
        r"\1",
        re.sub(r"\^\{(-?(?:\d{1,9}|[A-Za-z]))\}", r"^\1", re.sub(r"_\{(\w)\}", r"_\1", text)),
    )
    return text.replace("\0", "$")


def _format_exponent(match: re.Match[str]) -> str:
    """Write superscripts after "^": ¹⁹ as ^19, ⁻³ as ^-3, ⁿ⁺¹ as ^(n+1)."""
    exponent = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
    return f"^{exponent}" if re.fullmatch(r"-?\d+|[a-z]", exponent) else f"^({exponent})"


def _format_fraction(match: re.Match[str]) -> str:
    """Write a matched LaTeX fraction with a slash, after a space where a digit precedes it.

    A fraction that is a factor or an exponent is put in brackets.
    """
    numerator, denominator = match[1] or match[2], match[3] or match[4]
    before, after = match.string[: match.start()][-1:], match.string[match.end() :]
    is_number = re.fullmatch(r"-?[\d.]+/[\d.]+", f"{numerator}/{denominator}")
    letters = re.match(r"[A-Za-z]{2,3}(?![A-Za-z])", after)  # "mv" of "\frac{1}{2}mv^2"
    is_factor = _FACTOR_RE.match(after) or (letters and not find_units(letters[0]))
    if not is_number or before in (*"^})]!/",) or before.isalpha() or is_factor:
        return f"(({numerator})/({denominator}))"
    return f"{' ' if before.isdigit() else ''}{numerator}/{denominator}"


@lru_cache(_N_CACHED_TEXTS)
def answer_key(text: str) -> str:
    """Return a text that is equal for answers of the same words.

    Case, accents, articles and punctuation are dropped; of a formula (digits or operators) only
    spaces and articles. The names of a list and the primes of a symbol stay.
    """
    text = _CAPITAL_FUNCTION_RE.sub(r"capital\1", text)
    folded_text = mark_primes(re.sub(r",\s?\.{3}", ",⋯", text.casefold()))
    if len(text) <= MAX_PARSED_CHARACTERS and not folded_text.isascii():
        # longer texts are left as they are: the time to order accents is quadratic
        folded_text = "".join(
            c for c in unicodedata.normalize("NFKD", folded_text) if unicodedata.combining(c) < 200
        )
    folded_text = _COMPASS_RE.sub("", folded_text)
    folded_text = re.sub(r"(?<=[^\W\d_]{2})-(?=\w)", " ", folded_text)
    folded_text = re.sub(
        r"\b(?:[^\W\d_]\.){1,9}[^\W\d_]\b\.?", lambda m: m[0].replace(".", ""), folded_text
    )
    has_minus = re.search(r"(?<![^\W\d_])[-−]|[-−](?![^\W\d_])", folded_text) is not None
    is_short_formula = "-" in folded_text and not re.search(r"[^\W\d_]{3}", folded_text)
    if has_minus and _FUNCTION_RE.search(folded_text):
        is_short_formula, folded_text = True, folded_text.replace("−", "-")
    has_factorial = "!" in folded_text and _FACTORIAL_RE.search(folded_text)
    if (
        is_short_formula
        or has_factorial
        or re.search(r"[\d=+^<>*/\\√≤≥≠±|¬~∧∨∪∩→↔⇒⇔⊂⊆∈∉∅⊕∀∃≡]", folded_text)
        or not re.search(r"\w", folded_text)
    ):
        compact_text = (
            re.sub(r"\s?([^\w\s])\s?", r"\1", " ".join(folded_text.split()))
            .strip(".,;:?" if has_factorial else ".,;:!?")
            .replace('"', "")
        )
        return without_articles(compact_text, is_formula=True).replace(PRIME, "'")
    tokens = [
        word.replace("'", "")
        for word in _WORD_RE.findall(without_articles(folded_text).replace("&", " and "))
    ]
    words = " ".join(tokens)
    return american_spelling(words) if len(words) <= MAX_PARSED_CHARACTERS else words


def read_answer(text: str, depth: int = 0) -> AnswerReading:
    """Read a plain answer as number, date, option, list, yes or no; None if it is only words."""
    if len(text) > MAX_PARSED_CHARACTERS or depth > 3 or not text:
        return None
    if (
        yes_no_match := YES_NO_RE.fullmatch(text)
        or re.match(r"(?i)(yes|no|true|false)(?=[,.;:!*])", text)
    ) is not None:
        return yes_no_match[1].lower() in ("yes", "true")
    brackets = text[0] + text[-1] if matching_brackets(text) else ""
    if len(assignments := _read_assignments(text)) > 1:
        names = {item.partition("=")[0].strip() for item in assignments}
        if len(names) == 1:  # x = 1 or x = 2
            return CompoundAnswer("{}", tuple(item.partition("=")[2] for item in assignments))
        return CompoundAnswer("assignments", tuple(sorted(assignments)))
    if brackets in _BRACKET_PAIRS and not (brackets == "()" and read_quantity(text[1:-1])):
        items = split_items(text[1:-1])
        if len(items) > 1 or (items and brackets == "{}"):
            return CompoundAnswer(brackets, items)
    if option_match := _OPTION_RE.fullmatch(text):
        return CompoundAnswer(
            "option", ((option_match[1] or option_match[2]).lower(), tidy_answer(option_match[3]))
        )
    if trailing_option_match := re.fullmatch(r"(?i)([^()\n]{1,60}?)\s\(([A-J])\)", text):
        return CompoundAnswer(
            "option", (trailing_option_match[2].lower(), tidy_answer(trailing_option_match[1]))
        )
    if brackets == "()":
        return read_answer(text[1:-1].strip(), depth + 1)
    parsed_answer = (
        read_date(text) or read_time_of_day(text) or read_ratio(text) or read_quantity(text)
    )
    if parsed_answer is None and (value := named_value(text)) != text:
        return read_answer(value, depth + 1)
    if (
        parsed_answer is None
        and len(items := split_items(text)) > 1
        and all(
            item == "..." or read_answer(item, depth + 1) is not None or read_formula(item)
            for item in items
        )
    ):
        return CompoundAnswer("and" if _CONJUNCTION_RE.search(text) else "", items)
    return parsed_answer


def _read_assignments(text: str) -> tuple[str, ...]:
    """Return the parts of "x = 1, y = 2" or "x = 1 or x = 2"; nothing for other text."""
    if text.count("=") < 2 or len(text) > 400:
        return ()
    parts = split_items(re.sub(r"(?<!\s)\s+or\s+", ", ", text))
    return parts if all(_ASSIGNMENT_RE.match(part) for part in parts) else ()


def named_value(text: str) -> str:
    """Return what follows the last "=" of a text that names or computes it; else the text.

    In "x = 5", "f(x) = 2x", "a + b = 7" and "9 * 2 = 18" the last side is the answer, in "2x = 18"
    it is not.
    """
    text = without_approximation(text)
    if not _EQUATION_RE.fullmatch(text):
        return text
    *names, value = text.rpartition("⟹")[2].split("=")
    if _UNSOLVED_RE.search(names[-1]) or _OPEN_NAME_RE.fullmatch(names[-1].strip()):
        return text
    n_open = sum(value.count(c) for c in "([{")
    if n_open < sum(value.count(c) for c in ")]}") or any(map(_SENTENCE_RE.search, names)):
        return text
    is_chain = (
        _LETTER_NAME_RE.fullmatch(names[0].strip())
        and not _CONJUNCTION_RE.search(text)
        and all(map(read_formula, names[1:]))
    )
    for name in names[:1] if is_chain else names:  # A = pi r^2 = 25 pi
        formula = None if _INVERSE_RE.fullmatch(name) else read_formula(name)
        if formula and not is_plain_number(formula) and re.search(r"(?<![_{\d])\d", name):
            return text
    if _ASSIGNMENT_RE.match(f"{value} = 0") and (number := read_formula(names[-1])):
        return names[-1].strip() if is_plain_number(number) else value.strip()  # 3 = x
    number, formula = read_formula(names[-1]), read_formula(value)
    if number and formula and is_plain_number(number) and not is_plain_number(formula):
        return text  # 7 = 11a + c
    return value.strip()
