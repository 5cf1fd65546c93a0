r"""Functions by cases: the order of the cases and how their conditions are written say nothing."""

from __future__ import annotations

import re
from typing import NamedTuple

from cotlab.text.answers.formula_values import same_formula
from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.reading import answer_key
from cotlab.text.answers.real_sets import read_real_set, same_real_set

_MAX_CHARACTERS, _MAX_CASES = 1000, 12
# "f(x) = \\begin{cases} x^2 & x > 1 \\\\ 2x & x \\le 1 \\end{cases}"
_CASES_RE = re.compile(
    r"(?:([^=]{1,40})=)?\s*(?:\\begin\{cases\}|\{\s*\\begin\{array\}\{[lcr|\s]{1,9}\})"
    r"(.{1,900}?)\\end\{(?:cases|array)\}[\s.]*",
    re.DOTALL,
)
_ROW_END_RE = re.compile(r"\\\\|\\(?![A-Za-z])")
# "& if ", ", for " between a value and its condition
_CONDITION_RE = re.compile(r"&\s*(?:,\s*)?(?:(?:if|for|when|where)\b)?|\b(?:if|for|when)\b")
_SEPARATORS = " \t\n,;"
_OTHERWISE_RE = re.compile(r"(?i)(?:otherwise|else|in (?:all )?other cases)\W*")
# "x ≤ 1"
_BOUND_RE = re.compile(r"([^<>≤≥=]{1,40})(<=|>=|[<>≤≥])([^<>≤≥=]{1,40})")
_OPPOSITES = {"<": "≥", "≤": ">", "<=": ">", ">": "≤", "≥": "<", ">=": "<"}


class _Case(NamedTuple):
    """A value and where it holds."""

    value: str
    condition: str


def same_piecewise(first_text: str, second_text: str) -> bool | None:
    """Return whether two functions by cases are the same; None unless both are such."""
    first, second = _read_cases(first_text), _read_cases(second_text)
    if first is None or second is None:
        return None
    (name, cases), (other_name, other_cases) = first, second
    if name and other_name and answer_key(name) != answer_key(other_name):
        return False
    unmatched = list(other_cases)
    for case in cases:
        match = next((other for other in unmatched if _same_case(case, other)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return not unmatched


def _read_cases(text: str) -> tuple[str, tuple[_Case, ...]] | None:
    """Return the name and the cases of a function; None for other text."""
    match = _CASES_RE.fullmatch(text.strip()) if len(text) <= _MAX_CHARACTERS else None
    rows = [row for row in _ROW_END_RE.split(match[2]) if row.strip(" ,.;")] if match else []
    if match is None or not 1 < len(rows) <= _MAX_CASES:
        return None
    cases: list[_Case] = []
    for row in rows:
        if _OTHERWISE_RE.search(row) and (
            end := re.search(r"\s{0,9},?\s{0,9}&?\s{0,9},?\s{0,9}(?i:otherwise|else|in )", row)
        ):
            cases.append(_Case(row[: end.start()].strip(" ,;"), "otherwise"))
            continue
        value, *condition = _CONDITION_RE.split(row, maxsplit=1)
        if not condition or not condition[0].strip(f"{_SEPARATORS}."):
            return None
        cases.append(_Case(value.strip(_SEPARATORS), condition[0].strip(f"{_SEPARATORS}.")))
    return (match[1] or "").strip(), _without_otherwise(cases)


def _without_otherwise(cases: list[_Case]) -> tuple[_Case, ...]:
    """Return two cases with "otherwise" written as the opposite of the other condition."""
    conditions = [case.condition for case in cases]
    if len(cases) == 2 and conditions.count("otherwise") == 1:
        i = conditions.index("otherwise")
        if bound := _BOUND_RE.fullmatch(conditions[1 - i]):
            cases[i] = _Case(cases[i].value, f"{bound[1]}{_OPPOSITES[bound[2]]}{bound[3]}")
    return tuple(cases)


def _same_case(case: _Case, other: _Case) -> bool:
    """Return whether two cases have the same value under the same condition."""
    formulas = read_formula(case.value), read_formula(other.value)
    if formulas[0] and formulas[1]:
        is_same = same_formula(formulas[0], formulas[1])
    else:
        is_same = answer_key(case.value) == answer_key(other.value)
    if not is_same:
        return False
    if answer_key(case.condition) == answer_key(other.condition):
        return True
    if not (read_real_set(case.condition) and read_real_set(other.condition)):
        return False
    return same_real_set(case.condition, other.condition) is True
