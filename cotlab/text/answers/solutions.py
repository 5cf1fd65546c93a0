"""The values that a reply ends with where a question is solved for several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.notation import matching_brackets, split_items
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.reading import tidy_answer, to_plain_text

_VALUE_PATTERN = r"-?\d+(?:\.\d+)?(?:\s?/\s?\d+)?"
# "x = 3", "y = -2", "t = 1/2"
_SOLUTION_RE = re.compile(rf"(?<![\w\)])([A-Za-z])\s?=\s?({_VALUE_PATTERN})(?![\w(+*^/])")
# "x = 3, y = -2", "x = 3, x = 1 and x = 2", "z = 3" and "y = 2" on lines of their own
_SOLUTIONS_RE = re.compile(
    rf"{_SOLUTION_RE.pattern}(?:(?:[\s,;]|\band\b|\bor\b|[-•]\s){{1,9}}"
    rf"{_SOLUTION_RE.pattern}){{1,5}}"
)
_MARKUP_RE = re.compile(r"[*$`]")
# "Check: 2(3) + (-2) = 4" as a last paragraph
_CHECK_RE = re.compile(
    r"(?i)\n\s{0,9}[>*_ ]{0,4}(?:check|verification|verify|note)\b[^\n]*(?:\n\s*)?$"
)


def closing_solutions(targets: Sequence[str], text: str) -> str | None:
    """Return "x = 3, y = -2" or "{3, 1, 2}" where a reply ends by solving for several values.

    Only where the ground truth is a list, and the reply has no marked answer.
    """
    n_parts = {_count_parts(target) for target in targets}
    if n_parts <= {0, 1} or "\\boxed" in text:
        return None
    plain = to_plain_text(_MARKUP_RE.sub("", _CHECK_RE.sub("", text[-2000:])))
    match = next(reversed(list(_SOLUTIONS_RE.finditer(plain))), None)
    if match is None or re.search(r"[\d=]", plain[match.end() :]):
        return None
    solutions = _SOLUTION_RE.findall(match[0])
    names, values = [name for name, _ in solutions], [value for _, value in solutions]
    if len(solutions) not in n_parts:
        return None
    if len(set(names)) == 1:
        return f"{{{', '.join(values)}}}"
    is_one_each = len(set(names)) == len(names) and not re.search(r"\bor\b", match[0])
    return ", ".join(f"{name} = {value}" for name, value in solutions) if is_one_each else None


@lru_cache(2048)  # the same ground truth is asked about for each reply to an item
def _count_parts(target: str) -> int:
    """Return how many values a list has; 0 for another ground truth."""
    plain = to_plain_text(tidy_answer(target))
    if plain[:1] and plain[:1] in "({" and matching_brackets(plain):
        return len(split_items(plain[1:-1]))
    items = split_items(plain) if len(plain) <= 200 and read_quantity(plain) is None else ()
    return len(items) if all(map(read_formula, items)) else 0
