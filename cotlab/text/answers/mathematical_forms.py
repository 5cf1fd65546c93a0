r"""Forms in which mathematics is written: 2i - j + 3k for (2, -1, 3), + K for + C, 13_{10} for 13.

Each is read so only where the question or the other answer says that it is meant: "2i" is a complex
number unless the other is a vector, and K a constant only of an integral that has no other K.
"""

from __future__ import annotations

import re

from cotlab.text.answers.agreement import answers_agree
from cotlab.text.answers.base_units import without_derived_unit
from cotlab.text.answers.formulas import is_plain_number, read_formula
from cotlab.text.answers.notation import matching_brackets, rewrite_notation, split_items
from cotlab.text.answers.question import EIGENVALUES_QUESTION_RE
from cotlab.text.answers.reading import tidy_answer, to_plain_text

_MAX_CHARACTERS = 200
# "\hat{i}", "\vec{\jmath}": the letter of a unit vector
_UNIT_VECTOR_RE = re.compile(
    r"\\(?:hat|vec|widehat|bar|boldsymbol|bm|mathbf)\s?\{?\s?\\?([ijk])(?:math)?\s?\}?"
    r"|\\([ij])math(?![A-Za-z])"
)
# "<1, -4>"
_ANGLES_RE = re.compile(r"(?:<|⟨|\\langle)([^<>]{3,80})(?:>|⟩|\\rangle)")
# "- 3*k" of "2i - 3*k"
_VECTOR_TERM_RE = re.compile(r"([+-]?)([^-+ijk]{0,40}?)\*?([ijk])")
_VECTOR_QUESTION_RE = re.compile(
    r"(?i)\b(?:vectors?|velocity|acceleration|displacement|forces?|gradient|curl|cross product"
    r"|momentum)\b|\\(?:vec|mathbf|nabla|overrightarrow)(?![a-z])|∇"
)
# "+ K" at the end of an antiderivative
_CONSTANT_RE = re.compile(r"\+\s?([CKck])(?:_\{?[01]\}?)?$")
_INTEGRAL_QUESTION_RE = re.compile(
    r"(?i)\\int(?![a-z])|∫|\b(?:indefinite integral|integrate|anti-?derivatives?|primitive)\b"
)
# "13_{10}"
_BASE_TEN_RE = re.compile(r"\(?(-?\d{1,60}(?:\.\d{1,60})?)\)?\s?_\{?10\}?")
_BASE_NAMES = r"(decimal|denary|binary|ternary|octal|hex\w*|base[- ]?(?:[a-z]{3,9}|\$?\d{1,2}))"
_TO_BASE_RE = re.compile(rf"(?i)\b(?:to|into|as)\s(?:an?\s|its\s|the\s)?{_BASE_NAMES}")
_IN_BASE_RE = re.compile(rf"(?i)\bin\s{_BASE_NAMES}")
_DECIMAL_RE = re.compile(r"(?i)decimal|denary|base[- ]?(?:ten|\$?10)$")
# "≡ 1 (mod 5)", "1 mod 5" at the end
_MODULO_RE = re.compile(
    r"(?:≡|\\equiv|^)\s?(-?\d{1,30})\s?"
    r"(?:\(\s?mod\s?|\\pmod\s?\{?|\\bmod\s?\{?|,?\s?mod\s)(\d{1,9})\s?[)}]?$"
)
_REMAINDER_QUESTION_RE = re.compile(
    r"(?is)\bremainder\b.{0,200}\b(?:divided by|divide by|dividing by|division by|modulo|mod)\s?\$?"
    r"(\d{1,9})(?!\d|\.\d)"
)
# "mod 5" of "What is 17 * 23 mod 5?"
_MODULO_QUESTION_RE = re.compile(
    r"(?i)\b(?:what is|compute|find|evaluate|calculate)\s[^≡=?]{0,60}\d[^≡=?a-z]{0,20}"
    r"\(?\\?[pb]?mod(?:ulo)?\s?\{?\$?(\d{1,9})(?!\d|\.\d)"
)
# "; so " between the clauses of a congruence
_LAST_CLAUSE_RE = re.compile(
    r"[,;:.]\s|\b(?:so|thus|hence|therefore|and|that|get|have|gives|obtain|then|as)\b"
)
# "a = 0.5 and b = -0.5"
_NAMED_VALUE_RE = re.compile(r"([A-Za-z])\s?=\s?([^=]{1,30})")
# "in the form a + bi." at the end of a question
_FORM_RE = re.compile(
    r"(?i:\bin (?:the )?(?:standard )?form)\s(?:of\s)?\$?([^$.?,;]{3,40}?)\$?[.?]?$"
)
# "λ_1 = 2" of "λ_1 = 2, λ_2 = 5"
_EIGENVALUE_RE = re.compile(r"(?:\\lambda|λ)\s?(?:_?\{?([1-9])\}?)?\s?=\s?([^=]{1,60})")


def as_vector(text: str, other: str, question: str) -> str:
    """Return "2i - j + 3k" as "(2, -1, 3)" beside a list of two or three; other text as it is.

    So is "<2, -1, 3>" where the question is one of vectors.
    """
    angles = (
        _ANGLES_RE.fullmatch(text.strip(" $")) if _VECTOR_QUESTION_RE.search(question) else None
    )
    if angles and _list_length(f"({angles[1]})"):
        return f"({angles[1]})"
    if len(text) > _MAX_CHARACTERS or not (n := _list_length(other)) or "=" in other:
        return text
    coefficients = _vector_coefficients(text)
    is_vector = (
        _VECTOR_QUESTION_RE.search(question) or _UNIT_VECTOR_RE.search(text) or "k" in coefficients
    )
    if not coefficients or not is_vector or (n == 2 and "k" in coefficients):
        return text
    return "(" + ", ".join(coefficients.get(letter, "0") for letter in "ijk"[:n]) + ")"


def is_unit_vector_sum(text: str) -> bool:
    """Return whether a text is a sum of unit vectors that are written as such."""
    return bool(_UNIT_VECTOR_RE.search(text)) and bool(_vector_coefficients(text))


def _vector_coefficients(text: str) -> dict[str, str]:
    """Return the coefficients of i, j and k in a sum; nothing for other text."""
    if len(text) > _MAX_CHARACTERS:
        return {}
    text = _UNIT_VECTOR_RE.sub(lambda match: match[1] or match[2], text)
    plain = to_plain_text(tidy_answer(text)).rpartition("=")[2].replace(" ", "")
    terms = list(_VECTOR_TERM_RE.finditer(plain))
    coefficients = {m[3]: f"{m[1].strip('+')}{m[2] or '1'}" for m in terms}
    is_sum = all(match[1] for match in terms[1:]) and len(coefficients) == len(terms)
    formulas = [read_formula(value) for value in coefficients.values()]
    is_read = all(formula and is_plain_number(formula) for formula in formulas)
    is_complete = "".join(match[0] for match in terms) == plain
    return coefficients if is_sum and is_read and is_complete else {}


def _list_length(text: str) -> int:
    """Return how many numbers a vector or point has; 0 for other text."""
    plain = rewrite_notation(to_plain_text(tidy_answer(text)).replace("<", "(").replace(">", ")"))
    items = split_items(plain[1:-1]) if plain[:1] == "(" and matching_brackets(plain) else ()
    are_numbers = all(
        (formula := read_formula(item)) and is_plain_number(formula) for item in items
    )
    return len(items) if len(items) in (2, 3) and are_numbers else 0


def with_constant(text: str, other: str, question: str) -> str:
    """Return "x^2 + K" as "x^2 + C" beside "+ C", where the question has no K."""
    plain, plain_other = (
        to_plain_text(tidy_answer(side)).strip() if len(side) <= _MAX_CHARACTERS else ""
        for side in (text, other)
    )
    match, other_match = _CONSTANT_RE.search(plain), _CONSTANT_RE.search(plain_other)
    if not match or not other_match or match[1] == other_match[1] or match[1] == "C":
        return text
    if not _INTEGRAL_QUESTION_RE.search(question):
        return text
    rest = plain[: match.start()] + plain_other[: other_match.start()] + question
    is_used = re.search(rf"(?<![A-Za-z\\]){match[1]}(?![A-Za-z])", rest)
    return text if is_used else f"{plain[: match.start()]}+ {other_match[1]}"


def in_base_ten(text: str, _other: str, question: str) -> str:
    """Return "13_{10}" as "13" where the question wants a decimal number."""
    match = _BASE_TEN_RE.fullmatch(to_plain_text(tidy_answer(text))) if "_" in text else None
    return match[1] if match and expects_decimal(question) else text


def expects_decimal(question: str) -> bool:
    """Return whether a question asks for a number in base ten, by name."""
    bases = _TO_BASE_RE.findall(question) or _IN_BASE_RE.findall(question)
    return bool(bases) and all(map(_DECIMAL_RE.match, bases))


def without_modulus(text: str, _other: str, question: str) -> str:
    """Return "1" for "7^100 ≡ 1 (mod 5)" where the remainder of 7^100 by 5 is wanted."""
    if len(text) > _MAX_CHARACTERS or "mod" not in text:
        return text
    return remainder_of_congruence(to_plain_text(tidy_answer(text)), question) or text


def remainder_of_congruence(plain: str, question: str) -> str | None:
    """Return "1" where a text ends "7^100 ≡ 1 (mod 5)" and a question asks for that remainder.

    Only for the modulus and the number of the question; what is no remainder (6, -4) is None.
    """
    match = _MODULO_RE.search(plain[-_MAX_CHARACTERS:])
    moduli = [
        modulus
        for pattern in (_REMAINDER_QUESTION_RE, _MODULO_QUESTION_RE)
        for modulus in pattern.findall(question[-1000:])
        if match
    ]
    if match is None or set(moduli) != {match[2]} or not 0 <= int(match[1]) < int(match[2]):
        return None
    sides = re.split(r"≡|\\equiv|=", plain[-_MAX_CHARACTERS:][: match.start()].rstrip())
    first = _LAST_CLAUSE_RE.split(sides[0])[-1]
    for side in sides[1:]:
        clauses = _LAST_CLAUSE_RE.split(side)
        first = clauses[-1] if len(clauses) > 1 else first
    signs = [c for c in first if c not in " $*\\(){}"]
    plain_question = re.sub(r"[$*\\(){}]", "", to_plain_text(question))
    pattern = r"\s*".join(map(re.escape, signs))
    is_same = not signs or re.search(rf"(?<![\w^]){pattern}(?![\d^!])", plain_question)
    return match[1] if is_same else None


def in_form_of_question(text: str, other: str, question: str) -> str:
    """Return "a = 2, b = -1" as "(2) + (-1)i" where the question ends "in the form a + bi"."""
    form = _FORM_RE.search(question.strip()[-80:])
    plain = to_plain_text(tidy_answer(text))
    if form is None or "=" in other or len(plain) > _MAX_CHARACTERS:
        return text
    named = [_NAMED_VALUE_RE.fullmatch(item) for item in split_items(plain)]
    values = {match[1]: match[2].strip() for match in named if match}
    expression = to_plain_text(form[1])
    letters = set(re.findall(r"[A-Za-z]", re.sub(r"sqrt|\\[a-z]+", "", expression))) - {
        "i",
        "x",
        "e",
    }
    if not all(named) or len(values) < max(2, len(named)) or set(values) != letters:
        return text
    formulas = [read_formula(value) for value in values.values()]
    if not all(formula and is_plain_number(formula) for formula in formulas):
        return text
    return "".join(f"({values[c]})" if c in values else c for c in expression)


def eigenvalues_as_set(text: str, other: str, question: str) -> str:
    """Return "λ_1 = 2, λ_2 = 5" and "5, 2" as sets where a question asks for eigenvalues.

    Only where as many are listed on both sides and none twice: 2, 2, 5 is not 2, 5, 5.
    """
    if not EIGENVALUES_QUESTION_RE.search(question[-400:]):
        return text
    values, other_values = _eigenvalues(text), _eigenvalues(other)
    if len(values) < 2 or len(values) != len(other_values):
        return text
    for items in (values, other_values):
        if any(answers_agree(x, y) for i, x in enumerate(items) for y in items[:i]):
            return text
    return f"{{{', '.join(values)}}}"


def _eigenvalues(text: str) -> tuple[str, ...]:
    """Return the values of a list, without their names; nothing for other text."""
    plain = rewrite_notation(to_plain_text(tidy_answer(text)))
    if len(plain) > _MAX_CHARACTERS:
        return ()
    if plain[:1] in ("{", "(") and matching_brackets(plain):
        plain = plain[1:-1]
    items = split_items(plain)
    named = [_EIGENVALUE_RE.fullmatch(item) for item in items]
    if all(named):
        items = tuple(match[2] for match in named if match)
        indices = [match[1] for match in named if match and match[1]]
        if indices and sorted(indices) != [str(i + 1) for i in range(len(items))]:
            return ()
    elif named and named[0] and not any(named[1:]) and "_" not in items[0]:
        items = (named[0][2], *items[1:])  # λ = 2, 5
    formulas = [read_formula(re.sub(r"i(?![A-Za-z])", "*2", item)) for item in items]
    return items if all(formula and is_plain_number(formula) for formula in formulas) else ()


def in_mathematical_form(text: str, other: str, question: str) -> str:
    """Return an answer in the form that the question or the other answer has."""
    for rewrite in (
        as_vector,
        with_constant,
        in_base_ten,
        without_modulus,
        in_form_of_question,
        eigenvalues_as_set,
        without_derived_unit,
    ):
        text = rewrite(text, other, question)
    return text
