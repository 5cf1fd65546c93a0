"""Text from suites, models and raters made safe to show: in figures, Markdown, LaTeX, spreadsheets.

Each function keeps the text readable and leaves nothing in it that the target would run, link or
read as markup.
"""

from __future__ import annotations

import re

WORD_JOINER = "\u2060"
"""Word joiner: it has no width, and an address that contains it is no address any more."""
# "https://…", ":material/home:" and ":streamlit:", "www.example.org", "ann@example.org"; addresses
# are found by readers after escapes are resolved, so escaping alone does not break them
_ADDRESS_PATTERN = re.compile(r":(?=/|material/|streamlit:)|www(?=\.)|(?=@)", re.IGNORECASE)
# "=1+1", "@SUM(A1)", " -2+3", "\tcmd": some spreadsheet runs it, after blanks of any width too
_FORMULA_PATTERN = re.compile(r"[\t\r\n]|[\s\u200b\u2060\ufeff]*[=+\-@＝＋－＠]")
_PLOTLY_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "{}$&#_%"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "Δ": r"$\Delta$",
    "ρ": r"$\rho$",
}
_REPORT_MARKUP_CHARS = "\\`*_{}[]<>()#|!"
_TABLE_MARKUP_PATTERN = re.compile(r"([\\`*_{}\[\]()#+!|~<>&$-])")  # "*", "[", "<", "$" …


def break_links(text: str) -> str:
    """Return the text with a word joiner in each web address, e-mail address and icon name.

    The text reads as before and links nowhere.
    """
    return _ADDRESS_PATTERN.sub(lambda match: f"{match[0]}{WORD_JOINER}", text)


def printable_line(text: object) -> str:
    """Put a text on one line, with a space for each run of blanks and control characters."""
    line = str(text)
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    return " ".join(line.split())


def printable_text(text: str) -> str:
    """Return a text with a space for each control character, its lines kept.

    Escape sequences of terminals, which clear the screen or set its title, are no more than letters
    then; marks that turn the direction of writing are gone as well.
    """
    return "\n".join(
        "".join(c if c.isprintable() else " " for c in line) for line in text.split("\n")
    )


def escape_formula(text: str) -> str:
    """Prefix a quote to a text that a spreadsheet would run as a formula.

    A carriage return becomes a new line; as it is, it would end a row of a CSV file.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{lines}" if _FORMULA_PATTERN.match(text) else lines


def escape_plotly(text: object) -> str:
    """Escape a text for a figure: nothing in it is HTML, TeX or a template's ``%{…}``."""
    return str(text).translate(_PLOTLY_ESCAPES).replace("%{", "&#37;{")


def escape_latex(text: object) -> str:
    """Escape a text for LaTeX, on one line."""
    return "".join(_LATEX_ESCAPES.get(c, c) for c in printable_line(text))


def escape_report(text: object) -> str:
    """Escape a text for one table cell of the Markdown report, on one line."""
    line = break_links(" ".join(str(text).split()))
    return "".join(f"\\{c}" if c in _REPORT_MARKUP_CHARS else c for c in line)


def escape_table(text: object) -> str:
    """Escape a text for one cell of an exported Markdown table, on one line, HTML as entities."""
    escaped_text = _TABLE_MARKUP_PATTERN.sub(r"\\\1", break_links(printable_line(text)))
    return escaped_text.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
