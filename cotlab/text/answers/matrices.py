r"""Matrices and vectors as lists of rows, with a factor multiplied in: ``2\begin{pmatrix}...``."""

from __future__ import annotations

import re

from cotlab.text.answers.formulas import read_formula

# "\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"
_MATRIX_RE = re.compile(
    r"[(\[]?\s?\\begin\{(?:(?:[pb]|small)?matrix|array)\}(?:\{[clr|\s]{1,20}\})?"
    r"((?:(?!\\begin|\\end).){1,800})\\end\{(?:(?:[pb]|small)?matrix|array)\}\s?[)\]]?",
    re.DOTALL,
)
# "3A", "-A", which a matrix may be given for
_MULTIPLE_RE = re.compile(r"\s*(?:-\s?)?\d*\s?[A-Z]\s*")
_TIMES_RE = re.compile(r"(?:(?<!\s)\s+)?(?:(?:\*|\\cdot|\\times)\s*)?$")


def matrices_as_lists(text: str) -> str:
    r"""Return a text with its matrices as lists of rows; a factor before the only one is within.

    Examples
    --------
    >>> matrices_as_lists(r"A = 2\begin{pmatrix}1&2\\3&x\end{pmatrix}")
    'A =((2, (2)*(2)), ((2)*(3), (2)*(x)))'
    """
    name, *sides = text.split("=")
    if len(sides) > 1 and "\\begin" not in name and "\\begin" in sides[-1]:
        text = f"{name}={sides[-1]}"  # 3A = 3 (...) = (...)
    if sides and not name.strip().isalpha() and _MULTIPLE_RE.fullmatch(name):
        text = text.partition("=")[2]
    matches = list(_MATRIX_RE.finditer(text))
    if len(matches) == 1 and not text[matches[0].end() :].strip(" .,"):
        name, equals, factor = text[: matches[0].start()].rpartition("=")
        factor = _TIMES_RE.sub("", factor).strip()
        factor = {"-": "-1", "+": "1"}.get(factor, factor)
        if factor and read_formula(factor):
            return f"{name}{equals}{_rows_as_lists(matches[0][1], factor)}"
    return _MATRIX_RE.sub(lambda match: _rows_as_lists(match[1]), text)


def _rows_as_lists(body: str, factor: str = "") -> str:
    """Return the rows of a matrix as a list of lists; a single column or row as one list."""
    rows = [
        [_times(factor, cell.strip()) if factor else cell.strip() for cell in row.split("&")]
        for row in re.split(r"\\\\|\\(?![A-Za-z])", body)
        if row.strip()
    ]
    if all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]
    texts = ["(" + ", ".join(row) + ")" for row in rows]
    return texts[0] if len(texts) == 1 else "(" + ", ".join(texts) + ")"


def _times(factor: str, cell: str) -> str:
    """Return a product, without brackets where it is 0 or the factor itself."""
    return {"0": "0", "1": factor}.get(cell, f"({factor})*({cell})")
