"""Notations of lists, intervals and matrices, rewritten to the lists that are compared."""

from __future__ import annotations

import re

from cotlab.text.answers.formulas import is_plain_number, read_formula
from cotlab.text.answers.matrices import matrices_as_lists

_SIGN_REPLACEMENTS = (
    ("<=", "≤"),
    (">=", "≥"),
    ("\\cup", "∪"),
    ("\\in ", "∈"),
    ("+-", "±"),
)
# "\\begin{cases} a + b = 5 \\\\ a - b = 1 \\end{cases}": equations, without conditions
_EQUATIONS_RE = re.compile(r"\\begin\{cases\}([^&{}]{1,400}(?:\{[^{}]*\}[^&{}]*)*)\\end\{cases\}")
_APPROXIMATELY_RE = re.compile(r"≈|\\approx\b")
# "x ≠ 2", "ℝ \\setminus {2}", "all real numbers except 2"
_EXCLUDED_RE = re.compile(
    r"[A-Za-z]\s?≠\s?([^,≠]{1,40})|(?:ℝ|R|\\mathbb\{?R\}?)\s?(?:\\setminus|\\backslash|-|\\)\s?"
    r"\{([^{},]{1,40})\}|(?i:all real (?:numbers|values)(?: of)?(?: [a-z])? except)\s(?:for\s)?"
    r"(?:[a-z]\s?=\s?)?([^,≠]{1,40})"
)
# "-x"
_NEGATED_LETTER_RE = re.compile(r"-\s?([A-Za-z])")
# "0.1\overline{6}"
_REPEATING_DECIMAL_RE = re.compile(r"(\d{0,20})\.(\d{0,20})\\overline\{?(\d{1,20})\}?", re.ASCII)
# "1.5 * 10^8 km", "about 3*10^{-5}": a number with its unit, not "3 * 10^8 x"
_SCIENTIFIC_RE = re.compile(
    r"(?:about |approximately |roughly |≈\s?)?(-?\d{1,9}(?:\.\d{1,20})?)\s?[*x]\s?10\s?\^\s?"
    r"\{?([+-]?\d{1,3})\}?(|\s[a-zA-Z°%$€/^0-9 ]{1,30})"
)
# "x ∈ " of "x ∈ (2, 5]"
_MEMBER_RE = re.compile(r"[A-Za-z]\s?∈\s?")
# "x < 5", "5 ≥ x", "2 < x ≤ 5"
_BOUND_RE = re.compile(r"([^<>≤≥=]{1,80})([<>≤≥])([^<>≤≥=]{1,80})(?:([<>≤≥])([^<>≤≥=]{1,80}))?")
_LETTER_RE = re.compile(r"[A-Za-z]|\\[a-z]{2,8}")
_WORDS_RE = re.compile(r"[A-Za-z]{3}\s[A-Za-z]{2}")
_ALL_REALS = frozenset({"all real numbers", "all reals", "\\mathbb{R}", "ℝ", "R"})
_EMPTY_SET = frozenset(
    {"\\emptyset", "\\varnothing", "∅", "empty set", "the empty set", "empty", "{}", "{ }"}
)
# "no real solution", "There are no integer roots"
_NO_SOLUTION_RE = re.compile(
    r"(?i)(?:there (?:is|are|exists?) )?no (real|integer|rational|positive) "
    r"(?:solutions?|roots?|zeros|values?(?: of [a-z])?)(?: exists?)?"
)
# "negative infinity", "+∞"
_INFINITY_RE = re.compile(
    r"(?i)(?:(-\s?|negative |minus )|\+\s?|positive |plus )?(?:∞|infinity|\\infty)"
)
# "3 R 2", "3r2", "3 remainder 2", "3 with a remainder of 2"
_REMAINDER_RE = re.compile(
    r"(?i)(\d{1,12})\s?,?\s?(?:r\.?|rem\.?|(?:with |and )?(?:an? |the )?remainder(?: of| is)?)"
    r"\s?(\d{1,12})",
    re.ASCII,
)
# "(101)_2", "101_{2}"; "x1"
_BASED_RE = re.compile(r"\(?([\dA-Fa-f.]{1,60})\)?\s?_\{?(\d{1,2})\}?", re.ASCII)
_INDEXED_RE = re.compile(r"([A-Za-z])_?\{?(\d)\}?", re.ASCII)
# "all real numbers x that are greater than or equal to 5"
WORDED_BOUND_RE = re.compile(
    r"(?i)(?:\b(?:all|every|any|each)\s)?(?:\breal\s)?(?:\b(?:numbers?|values? of)\s)?"
    r"(?:\b[a-z]\s|(?<=numbers\s)|(?<=number\s))"
    r"(?:(?:that\s|which\s)?(?:is|are|must be|has to be)\s)?(?:strictly\s)?"
    r"(?:(greater|larger|more|less|smaller) than( or equal to)?|(at least)|(at most))\s"
    r"\$?(-?\d[\d./]*|-?\w)\$?$"
)


def matching_brackets(text: str) -> bool:
    """Return whether the first bracket of a text closes with its last character."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth <= 0 and i < len(text) - 1:
            return False
    return depth == 0


def split_items(text: str) -> tuple[str, ...]:
    """Split a list at commas outside brackets; nothing if the brackets do not match."""
    items, depth = [""], 0
    for c in re.sub(r",?(?<!\s)\s+(?:and|or)\s+", ", ", text):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            return ()
        if c in ",;" and depth == 0:
            items.append("")
        else:
            items[-1] += c
    return tuple(item.strip() for item in items) if len(items) <= 50 else ()


def rewrite_notation(text: str) -> str:
    r"""Rewrite inequalities as intervals, ± and unions as sets, matrices as lists of rows.

    Examples
    --------
    >>> rewrite_notation("2 < x ≤ 5")
    '(2, 5]'
    """
    text = text.strip()
    if text in _ALL_REALS and text != "R":
        return "(-∞, ∞)"
    if text.lower() in _EMPTY_SET:
        return "∅"
    if worded := WORDED_BOUND_RE.fullmatch(text):
        is_low = bool(worded[3]) or (worded[1] or "").lower() in ("greater", "larger", "more")
        is_closed = bool(worded[2] or worded[3] or worded[4])
        text = f"x {'<≤>≥'[2 * is_low + is_closed]} {worded[5]}"
    if infinite := _INFINITY_RE.fullmatch(text):
        return "-∞" if infinite[1] else "∞"
    if divided := _REMAINDER_RE.fullmatch(text):
        return f"{divided[1]} remainder {divided[2]}"
    if based := _BASED_RE.fullmatch(text):
        return f"{based[1]}_{based[2]}"
    if indexed := _INDEXED_RE.fullmatch(text):
        return f"{indexed[1]}_{indexed[2]}"
    for sign, replacement in _SIGN_REPLACEMENTS:
        text = text.replace(sign, replacement)
    if excluded := _EXCLUDED_RE.fullmatch(text):
        value = next(group for group in excluded.groups() if group).strip()
        formula = read_formula(value)
        if formula and is_plain_number(formula):
            return f"{{(-∞, {value}), ({value}, ∞)}}"
    if "\\begin" in text:
        text = matrices_as_lists(text)
    if "\\overline" in text:
        text = _REPEATING_DECIMAL_RE.sub(_repeating_fraction, text)
    if member_match := _MEMBER_RE.match(text):
        text = text[member_match.end() :]
    text = without_approximation(text)
    if cases_match := _EQUATIONS_RE.fullmatch(text):
        rows = [row.strip(" ,") for row in re.split(r"\\\\|\\(?![A-Za-z])", cases_match[1])]
        if len(rows) > 1 and all(row.count("=") == 1 for row in rows):
            return "{" + ", ".join(rows) + "}"
    if "±" in text and text[:1] not in "([{" and not _WORDS_RE.search(text):
        named = [re.match(r"([A-Za-z])\s?=\s?", item) for item in split_items(text)]
        values = [
            item[match.end() :] if match else item
            for item, match in zip(split_items(text), named, strict=True)
        ]
        names = {match[1] for match in named if match}
        if len(values) > 1 and len(names) <= 1 and all(item.count("±") <= 1 for item in values):
            text = "{" + ", ".join(values) + "}"  # ±1, ±i and x = ±2 or x = ±3
    if "∪" in text and not _WORDS_RE.search(text):
        return "{" + ", ".join(rewrite_notation(part) for part in text.split("∪")) + "}"
    if text[:1] == "{" and "±" in text and matching_brackets(text):
        signed = (
            (item.replace("±", "+").lstrip("+ "), item.replace("±", "-"))
            if "±" in item
            else (item,)
            for item in split_items(text[1:-1])
        )
        return "{" + ", ".join(part for variants in signed for part in variants) + "}"
    if text.count("±") == 1 and not _WORDS_RE.search(text):
        name, equals, value = text.rpartition("=")
        if not equals or re.fullmatch(r"\s*[A-Za-z]\s*", name):
            return "{" + value.replace("±", "+") + ", " + value.replace("±", "-") + "}"
    return _interval_of_bounds(text) or text


def without_powers_of_ten(first: str, second: str) -> tuple[str, str]:
    """Return "1.5 * 10^8 km" as "1.5e8 km", and a number beside it alike; other texts as they are.

    Examples
    --------
    >>> without_powers_of_ten("1.5 * 10^8 km", "2 * 10^8")
    ('1.5e8 km', '2e8')
    """
    matches = [_SCIENTIFIC_RE.fullmatch(text) for text in (first, second)]
    if not any(match and match[3] for match in matches):
        return first, second
    has_both = all(match and match[3] for match in matches)
    texts = [
        f"{match[1]}e{match[2]}{match[3] if has_both or match[3][2:] else ''}" if match else text
        for match, text in zip(matches, (first, second), strict=True)
    ]  # the C of "1.6 * 10^-19 C" is a unit that is read nowhere else
    return texts[0], texts[1]


def is_remainder(text: str) -> bool:
    """Return whether a text is a quotient and a remainder: "3 R 2"."""
    return _REMAINDER_RE.fullmatch(text.strip()) is not None


def is_power_of_ten(text: str) -> bool:
    """Return whether a text is a number times a power of ten, with or without a unit."""
    return _SCIENTIFIC_RE.fullmatch(text) is not None


def same_emptiness(first: str, second: str) -> bool | None:
    """Return whether two texts both say that nothing is a solution; None unless both say so.

    "No real solutions" says as much as the empty set; "no solution" alone may speak of something
    else, and "no integer solutions" is not "no real solutions".
    """
    kinds = []
    for text in (first.strip(" ."), second.strip(" .")):
        match = _NO_SOLUTION_RE.fullmatch(text)
        if not (match or text.lower() in _EMPTY_SET):
            return None
        kinds.append(match[1].lower() if match else "")
    return kinds[0] == kinds[1] or "" in kinds


def without_approximation(text: str) -> str:
    """Return "1/3" for "1/3 ≈ 0.333", and "x = 11" for "x ≈ 11"."""
    sides = [part.strip() for part in _APPROXIMATELY_RE.split(text)]
    if len(sides) != 2:
        return text
    exact, approximate = sides
    formula = read_formula(exact.rpartition("=")[2].strip())
    if formula is None:
        return text
    if is_plain_number(formula):
        return exact
    is_name = "=" not in exact and not re.search(r"\d|[-+*/^]", exact)
    return f"{exact} = {approximate}" if is_name else text


def _repeating_fraction(match: re.Match[str]) -> str:
    r"""Return ``0.1\overline{6}`` as the fraction (15/90)."""
    integer_digits, once, repeated = match.groups()
    numerator = int((integer_digits or "0") + once + repeated) - int((integer_digits or "0") + once)
    return f"({numerator}/{(10 ** len(repeated) - 1) * 10 ** len(once)})"


def _interval_of_bounds(text: str) -> str | None:
    """Return the interval of an inequality of one letter between numbers; None for other text."""
    match = _BOUND_RE.fullmatch(text)
    if match is None:
        return None
    left, first_sign, middle, second_sign, right = (
        part.strip() if part else "" for part in match.groups()
    )
    for side in (left, middle):
        if not second_sign and (negated := _NEGATED_LETTER_RE.fullmatch(side)):  # -x > -1
            opposite = middle if side is left else left
            other = opposite[1:] if opposite[:1] == "-" else f"-({opposite})"
            first_sign = _reversed_sign(first_sign)
            left, middle = (negated[1], other) if side is left else (other, negated[1])
            break
    if not second_sign and _LETTER_RE.fullmatch(left):
        left, first_sign, middle = middle, _reversed_sign(first_sign), left
    if not _LETTER_RE.fullmatch(middle):
        return None
    for bound in (left, right) if second_sign else (left,):
        formula = read_formula(bound)
        if formula is None or not (is_plain_number(formula) or bound.lstrip("+-") == "∞"):
            return None
    low: tuple[str, str] = ("-∞", "<")
    high: tuple[str, str] = ("∞", "<")
    for bound, sign in ((left, first_sign), (right, _reversed_sign(second_sign or "<"))):
        if not bound:
            continue
        if sign in "<≤":  # bound < x
            low = (bound, sign)
        else:
            high = (bound, "<" if sign == ">" else "≤")
    if second_sign and (first_sign in "<≤") != (second_sign in "<≤"):
        return None
    opening, closing = "[" if low[1] == "≤" else "(", "]" if high[1] == "≤" else ")"
    return f"{opening}{low[0]}, {high[0]}{closing}"


def _reversed_sign(sign: str) -> str:
    return {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}[sign]
