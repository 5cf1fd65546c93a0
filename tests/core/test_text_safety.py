"""Text that is shown anywhere reads as before and is never run, linked or read as markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.text_safety import (
    WORD_JOINER,
    break_links,
    escape_formula,
    escape_latex,
    escape_plotly,
    escape_report,
    escape_table,
    printable_line,
)


@pytest.mark.parametrize(
    "text",
    ["https://evil.example/a", "HTTP://x", "www.evil.example", "a@b.example", ":material/home:"],
)
def test_an_address_reads_as_before_and_is_none(text: str) -> None:
    broken = break_links(f"see {text}.")
    assert broken.replace(WORD_JOINER, "") == f"see {text}."
    assert text not in broken


@given(st.text())
def test_only_joiners_are_added(text: str) -> None:
    assert break_links(text).replace(WORD_JOINER, "") == text.replace(WORD_JOINER, "")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\u200b=1", "＝1", "\t=1", "\rx", "\nx"]
)
def test_a_formula_gets_a_quote(text: str) -> None:
    assert escape_formula(text) == "'" + text.replace("\r", "\n")


@pytest.mark.parametrize("text", ["18", "a = b", "x-1", "'=1", "", "Ann"])
def test_what_is_no_formula_stays(text: str) -> None:
    assert escape_formula(text) == text


def test_a_carriage_return_ends_no_row() -> None:
    assert escape_formula("a\r\nb\rc") == "a\nb\nc"


def test_a_line_has_no_control_characters() -> None:
    assert printable_line("a\x1b[31m\tb\x00\u202ec\r\nd") == "a [31m b c d"


@given(st.text())
def test_a_line_is_printable(text: str) -> None:
    assert printable_line(text).isprintable()


@pytest.mark.parametrize(
    ("escape", "expected"),
    [
        (escape_plotly, "&lt;b&gt; &#36;x_1&#36; a&amp;b &#37;{y} | 5 %"),
        (
            escape_latex,
            r"\textless{}b\textgreater{} \$x\_1\$ a\&b \%\{y\} \textbar{} 5 \%",
        ),
        (escape_report, r"\<b\> $x\_1$ a&b %\{y\} \| 5 %"),
        (escape_table, r"&lt;b&gt; \$x\_1\$ a&amp;b %\{y\} \| 5 %"),
    ],
)
def test_markup_of_each_target_is_escaped(escape: object, expected: str) -> None:
    assert callable(escape)
    assert escape("<b> $x_1$ a&b %{y} | 5 %") == expected
