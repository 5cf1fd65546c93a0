"""Numbers as CSV, LaTeX and Markdown, and all scores of a run. Texts are data, never markup."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from cotlab.core.text_safety import disarm_formula, escape_latex, escape_table
from cotlab.figures.style import format_number
from cotlab.store import read
from cotlab.store.database import Store

FORMATS = ("json", "md", "csv", "parquet")
"""Formats of ``cotlab report``; the last two hold one row a score."""
HIDDEN = ("evidence",)
"""Columns that are keys into the response log: of no use outside it."""
ITEMS_AT_A_TIME = 5_000
"""Items whose scores are in memory at once while all scores of a run are written."""
BESIDE = ("n", "draws", "n_undefined", "method", "reason")
"""Columns that a paper's table has beside those that the figure needs."""
PAGE_ROWS = 40
"""A LaTeX table with more rows than this goes over pages."""
_INTEGER_COLUMNS = ("n", "draws", "donors", "n_undefined", "count", "n_steps", "sample")


def drop_hidden_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a figure without keys into the log."""
    return table.drop(columns=[name for name in HIDDEN if name in table.columns])


def score_tables(store: Store, run_id: str) -> Iterator[pd.DataFrame]:
    """Yield a run's scores as flat tables, some items at a time.

    Evidence is joined by spaces, formulas in texts are disarmed. A run without scores gives one
    table without rows.
    """
    items = sorted(read.scored_items(store, run_id))
    for at in range(0, max(1, len(items)), ITEMS_AT_A_TIME):
        table = read.select_scores(store, run_id, items=items[at : at + ITEMS_AT_A_TIME])
        yield disarmed(table.assign(evidence=table["evidence"].map(" ".join)))


def write_scores_csv(store: Store, run_id: str, file: TextIO) -> None:
    """Write a run's scores as CSV, a row a score."""
    for k, table in enumerate(score_tables(store, run_id)):
        file.write(table.to_csv(index=False, header=k == 0))


def write_scores_parquet(store: Store, run_id: str, path: Path) -> None:
    """Write a run's scores as Parquet, a row a score."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {"i": pa.int64(), "f": pa.float64()}
    writer: Any = None
    try:
        for table in score_tables(store, run_id):
            if writer is None:
                schema = pa.schema(
                    [(n, types.get(t.kind, pa.large_string())) for n, t in table.dtypes.items()]
                )
                writer = parquet.ParquetWriter(path, schema)
            writer.write_table(pa.Table.from_pandas(table, schema, preserve_index=False))
    finally:
        if writer is not None:
            writer.close()


def disarmed(table: pd.DataFrame) -> pd.DataFrame:
    """Put a quote before each text and column name that a spreadsheet would run as a formula.

    A carriage return becomes a new line: as it is, it would end a row, and what follows would begin
    one.
    """

    def quoted(value: Any) -> Any:
        return disarm_formula(value) if isinstance(value, str) else value

    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    return table.assign(**{name: table[name].map(quoted) for name in texts}).rename(columns=quoted)


def as_csv(table: pd.DataFrame) -> str:
    """Return the plotted numbers in full: lists joined by spaces, missing as "n/a".

    Formulas are disarmed.

    A list of numbers stays as it is where it begins with a minus: it is no formula, and a quote
    would spoil its first number.
    """
    visible = drop_hidden_columns(table)
    lists = {
        name: visible[name].map(_joined)
        for name in visible.columns
        if visible[name].map(_is_list).any()
    }
    safe = disarmed(visible.assign(**lists))
    numbers = {name: joined for name, joined in lists.items() if visible[name].map(_harmless).all()}
    text: str = safe.assign(**numbers).to_csv(
        index=False, na_rep="n/a", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    return text


def as_latex(table: pd.DataFrame, columns: Sequence[str], caption: str, label: str) -> str:
    """Return a LaTeX table with booktabs: numbers with three digits, texts escaped.

    A long one goes over pages.
    """
    names, kinds, rows = _for_paper(table, columns)
    align = "".join("r" if numeric else "l" for numeric in kinds)
    mark = re.sub("[^A-Za-z0-9-]", "-", label)
    caption_lines, head = (
        [f"\\caption{{{escape_latex(caption)}}}", f"\\label{{tab:{mark}}}"],
        " & ".join(escape_latex(name) for name in names) + r" \\",
    )
    body = [" & ".join(escape_latex(cell) for cell in row) + r" \\" for row in rows]
    if len(rows) > PAGE_ROWS:
        lines = [
            "% needs \\usepackage{booktabs,longtable}",
            f"\\begin{{longtable}}{{{align}}}",
            *caption_lines[:1],
            caption_lines[1] + r" \\",
            "\\toprule",
            head,
            "\\midrule",
            "\\endhead",
            *body,
            "\\bottomrule",
            "\\end{longtable}",
        ]
    else:
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering",
            *caption_lines,
            f"\\begin{{tabular}}{{{align}}}",
            "\\toprule",
            head,
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def as_markdown(table: pd.DataFrame, columns: Sequence[str], caption: str) -> str:
    """Return a Markdown table: numbers with three digits, texts escaped, the caption below."""
    names, kinds, rows = _for_paper(table, columns)
    lines = [
        f"| {' | '.join(map(escape_table, names))} |",
        f"| {' | '.join('---:' if numeric else '---' for numeric in kinds)} |",
        *(f"| {' | '.join(map(escape_table, row))} |" for row in rows),
    ]
    return "\n".join(lines) + f"\n\n{escape_table(caption)}\n"


def _for_paper(
    table: pd.DataFrame, columns: Sequence[str]
) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return the names of the columns, whether each holds numbers, and the cells."""
    selected = [name for name in dict.fromkeys((*columns, *BESIDE)) if name in table.columns]
    selected = [
        name for name in selected if name != "reason" or table[name].notna().any()
    ]  # nothing is missing, nothing to explain
    kinds = [_numeric(table[name]) for name in selected]
    rows = [[_cell(name, row[name]) for name in selected] for row in table.to_dict("records")]
    return [name.replace("_", " ") for name in selected], kinds, rows


def _numeric(column: pd.Series) -> bool:
    known = column.dropna()
    return bool(len(known)) and all(
        isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in known
    )


def _cell(name: str, value: Any) -> str:
    if _is_list(value):
        return str(_joined(value))
    if value is None or pd.isna(value):
        return "n/a"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_):
        is_integer = name in _INTEGER_COLUMNS or name == "step"
        return str(int(value) + (name == "step")) if is_integer else format_number(float(value))
    return str(value) or "n/a"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _harmless(value: Any) -> bool:
    """Return whether a cell of a column of lists holds numbers alone, or nothing."""
    if not _is_list(value):
        return bool(pd.isna(value))
    return all(
        pd.isna(element) or isinstance(element, int | float | np.number) for element in value
    )


def _joined(value: Any) -> Any:
    return " ".join("n/a" if pd.isna(v) else str(v) for v in value) if _is_list(value) else value
