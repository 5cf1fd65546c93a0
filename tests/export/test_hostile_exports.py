"""Texts from outside in files that leave the project: no formula in CSV, no markup in Markdown, no
command in LaTeX."""

from __future__ import annotations

import csv
import io
import re

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from cotlab.core.text_safety import escape_report
from cotlab.export.tabular import escape_formulas, table_to_csv, table_to_latex, table_to_markdown

FORMULAS = (
    '=HYPERLINK("https://evil.example","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\u00a0=1",
    "\ufeff=1",
    "\u200b+1",
    "＝1",
    "－1",
)
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](https://evil.example)",
    "![x](https://evil.example/i.png)",
    "<https://evil.example>",
    "https://evil.example/x",
    "www.evil.example",
    "ann@evil.example",
    "**bold** _it_ `code` ~~x~~",
    "a | b | c",
    "\n\n# head\n\n- item\n\n    code",
    '[x]: https://evil.example "t"',
    "&lt;b&gt;<b>x</b>",
    "HTTPS://EVIL.example",
)
TEX = (
    r"\input{/etc/passwd}",
    r"\write18{id}",
    r"}\end{tabular}\immediate\openout3=x",
    "%",
    "$x$ & \\\\ #1 ^^5cinput _a ~b",
)


def test_no_cell_of_a_csv_is_a_formula() -> None:
    table = pd.DataFrame(
        {"item": FORMULAS, "n": range(len(FORMULAS)), "=name": ["x"] * len(FORMULAS)}
    )
    for text in (table_to_csv(table), escape_formulas(table).to_csv(index=False)):
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        assert len(rows) == len(FORMULAS)
        for row in [head, *rows]:
            for cell in row:
                assert not re.match(r"\s*[=+\-@＝＋－＠\ufeff\u200b]", cell), cell
        assert [row[0] for row in rows] == [
            f"'{formula}".replace("\r", "\n") for formula in FORMULAS
        ]  # all of it is there


def test_no_row_begins_within_a_cell() -> None:
    """A carriage return without a line feed is not quoted by pandas: a reader would begin a row,
    and a formula, after it."""
    text = escape_formulas(
        pd.DataFrame({"item": ["harmless\r=1+1", "a\r\nb"], "n": [1, 2]})
    ).to_csv(index=False)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["item", "n"], ["harmless\n=1+1", "1"], ["a\nb", "2"]]


@pytest.mark.parametrize("text", MARKUP)
def test_a_text_in_markdown_is_text(text: str) -> None:
    table = pd.DataFrame({"item": [text, "plain"], "point": [0.5, 0.25], "n": [3, 4]})
    shown = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .render(table_to_markdown(table, ["item", "point"], text))
    )
    tags = {tag.lower() for tag in re.findall(r"<(\w+)", shown)}
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert shown.count("<td") == 6
    for line in (
        table_to_markdown(table, ["item", "point"], text),
        escape_report(text),
    ):  # what finds addresses in bare text finds none
        assert not re.search(r"(?:https?://|www\.)[\w.]|\w@\w", line, re.IGNORECASE)
    inline = MarkdownIt("commonmark").render(f"# {escape_report(text)}")
    assert {tag.lower() for tag in re.findall(r"<(\w+)", inline)} == {"h1"}


@pytest.mark.parametrize("text", [*TEX, *MARKUP])
def test_a_text_in_latex_is_text(text: str) -> None:
    written = table_to_latex(
        pd.DataFrame({"item": [text], "point": [0.5], "n": [3]}), ["item", "point"], text, text
    )
    plain = table_to_latex(
        pd.DataFrame({"item": ["x"], "point": [0.5], "n": [3]}), ["item", "point"], "x", "x"
    )
    ours = set(re.findall(r"\\[a-zA-Z]+", plain)) | {
        r"\textbackslash",
        r"\textasciitilde",
        r"\textasciicircum",
        r"\textless",
        r"\textgreater",
        r"\textbar",
        r"\textquotedbl",
        r"\ldots",
    }
    assert set(re.findall(r"\\[a-zA-Z]+", written)) <= ours
    bare = re.sub(r"\\[\\{}$&#_%]", "", written)
    assert bare.count("{") == bare.count("}") and bare.count("%") == 1  # the one comment is ours
    assert len(written.splitlines()) == len(plain.splitlines())
