"""Numbers as CSV, LaTeX and Markdown: complete, and harmless whatever their texts say."""

from __future__ import annotations

import csv
import io
import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.text_safety import escape_latex
from cotlab.export.tabular import table_to_csv, table_to_latex, table_to_markdown

TABLE = pd.DataFrame(
    {
        "mode": ["remove", "=HYPERLINK(1)"],
        "point": [0.25, None],
        "lo": [0.1, None],
        "hi": [0.4, None],
        "n": [12, 0],
        "reason": [None, "-1+1|`x` & 50 % of $a_b$"],
        "values": [[0.2, 0.3], []],
        "evidence": [["k1"], ["k2"]],
    }
)
COLUMNS = ("mode", "point", "lo", "hi", "n")
HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_a_csv_holds_what_was_drawn_with_bounds_and_n() -> None:
    first, second = csv.DictReader(io.StringIO(table_to_csv(TABLE)))
    assert [float(first[name]) for name in ("point", "lo", "hi", "n")] == [0.25, 0.1, 0.4, 12]
    assert first["values"] == "0.2 0.3" and "evidence" not in first
    assert [second[name] for name in ("point", "lo", "hi")] == ["n/a"] * 3
    assert second["mode"] == "'=HYPERLINK(1)" and second["reason"].startswith("'-1+1")


def test_a_list_that_begins_with_a_minus_stays_a_list_of_numbers() -> None:
    table = pd.DataFrame(
        {
            "values": [[-1.0, 0.5, None], None, []],
            "texts": [["-1+1", "b"], [-1.0], None],
            "n": [3, 0, 0],
        }
    )
    first, second, third = csv.DictReader(io.StringIO(table_to_csv(table)))
    assert [row["values"] for row in (first, second, third)] == ["-1.0 0.5 n/a", "n/a", ""]
    assert (first["texts"], second["texts"]) == (
        "'-1+1 b",
        "'-1.0",
    )  # a column of texts is disarmed as a whole


def test_a_table_for_latex_has_three_digits_and_rules() -> None:
    text = table_to_latex(TABLE, COLUMNS, "50 % of {a}", "rrr_by_mode")
    assert (
        r"\begin{tabular}{lrrrrl}" in text
        and r"\caption{50 \% of \{a\}}" in text
        and r"\label{tab:rrr-by-mode}" in text
    )
    assert r"remove & 0.250 & 0.100 & 0.400 & 12 & n/a \\" in text
    assert (
        r"=HYPERLINK(1) & n/a & n/a & n/a & 0 & -1+1\textbar{}`x` \& 50 \% of \$a\_b\$ \\" in text
    )
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


@given(HOSTILE)
def test_latex_is_balanced_and_reads_no_command_of_a_text(told: str) -> None:
    shown = escape_latex(told)
    bare = re.sub(r"\\(?:text[a-z]+|ldots)\{\}|\\[{}$&#_%]|\$(?:-|\\[a-zA-Z]+)\$", "", shown)
    assert not set(bare) & set("\\{}$&#_%~^\n")


@given(HOSTILE)
def test_a_text_stays_in_its_cell_of_markdown(told: str) -> None:
    text = table_to_markdown(pd.DataFrame({"text": [told], "n": [1]}), ("text", "n"), "c")
    row = text.split("\n")[2]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3 and row.endswith(" 1 |")
    assert not re.search(r"<[a-zA-Z/!]", text)


def test_a_long_table_goes_over_pages_and_a_short_one_does_not() -> None:
    table = pd.DataFrame(
        {"item": [f"i{k}" for k in range(41)], "point": [0.5] * 41, "reason": [None] * 41}
    )
    long, short = (
        table_to_latex(part, ("item", "point"), "c", "l") for part in (table, table.head(40))
    )
    assert (
        long.count("\\begin{longtable}{lr}") == 1
        and "\\begin{table}" not in long
        and "\\endhead" in long
    )
    assert short.count("\\begin{tabular}{lr}") == 1 and "longtable" not in short
    assert "reason" not in short and "reason" in table_to_latex(
        table.assign(reason="few"), ("item", "point"), "c", "l"
    )
