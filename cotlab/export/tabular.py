"""Numbers as CSV, LaTeX and Markdown, and all scores of a run. Texts are data, never markup."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from cotlab.core.text_safety import escape_formula, escape_latex, escape_table
from cotlab.figures.style import format_number
from cotlab.store import read
from cotlab.store.database import Store

REPORT_FORMATS = ("json", "md", "csv", "parquet")
"""Formats of ``cotlab report``; the last two hold one row a score."""
HIDDEN_COLUMNS = ("evidence",)
"""Columns that are keys into the response log: of no use outside it."""
ITEMS_AT_A_TIME = 5_000
"""Items whose scores are in memory at once while all scores of a run are written."""
EXTRA_COLUMNS = ("n", "draws", "n_undefined", "method", "reason")
"""Columns that a paper's table has beside those that the figure needs."""
MAX_ROWS_PER_PAGE = 40
"""A LaTeX table with more rows than this goes over pages."""
_INTEGER_COLUMNS = ("n", "draws", "donors", "n_undefined", "count", "n_steps", "sample")


def drop_hidden_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a figure without keys into the log."""
    return table.drop(columns=[name for name in HIDDEN_COLUMNS if name in table.columns])


def score_tables(store: Store, run_id: str) -> Iterator[pd.DataFrame]:
    """Yield a run's scores as flat tables, some items at a time.

    Evidence is joined by spaces, formulas in texts are disarmed. A run without scores gives one
    table without rows.
    """
    items = sorted(read.list_scored_items(store, run_id))
    for batch_start in range(0, max(1, len(items)), ITEMS_AT_A_TIME):
        table = read.select_scores(
            store, run_id, items=items[batch_start : batch_start + ITEMS_AT_A_TIME]
        )
        yield escape_formulas(table.assign(evidence=table["evidence"].map(" ".join)))


def write_scores_csv(store: Store, run_id: str, file: TextIO) -> None:
    """Write a run's scores as CSV, a row a score."""
    for index, table in enumerate(score_tables(store, run_id)):
        file.write(table.to_csv(index=False, header=index == 0))


def write_scores_parquet(store: Store, run_id: str, path: Path) -> None:
    """Write a run's scores as Parquet, a row a score."""
    import pyarrow as pa
    from pyarrow import parquet

    arrow_types = {"i": pa.int64(), "f": pa.float64()}
    writer: Any = None
    try:
        for table in score_tables(store, run_id):
            if writer is None:
                schema = pa.schema(
                    [
                        (column, arrow_types.get(dtype.kind, pa.large_string()))
                        for column, dtype in table.dtypes.items()
                    ]
                )
                writer = parquet.ParquetWriter(path, schema)
            writer.write_table(pa.Table.from_pandas(table, schema, preserve_index=False))
    finally:
        if writer is not None:
            writer.close()


def escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put a quote before each text and column name that a spreadsheet would run as a formula.

    A carriage return becomes a new line: as it is, it would end a row, and what follows would begin
    one.
    """

    def escape_cell(value: Any) -> Any:
        return escape_formula(value) if isinstance(value, str) else value

    text_columns = [
        name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])
    ]
    return table.assign(**{name: table[name].map(escape_cell) for name in text_columns}).rename(
        columns=escape_cell
    )


def table_to_csv(table: pd.DataFrame) -> str:
    """Return the plotted numbers in full: lists joined by spaces, missing as "n/a".

    Formulas are disarmed.

    A list of numbers stays as it is where it begins with a minus: it is no formula, and a quote
    would spoil its first number.
    """
    visible_table = drop_hidden_columns(table)
    joined_lists = {
        name: visible_table[name].map(_join_list)
        for name in visible_table.columns
        if visible_table[name].map(_is_list).any()
    }
    escaped_table = escape_formulas(visible_table.assign(**joined_lists))
    number_lists = {
        name: joined_list
        for name, joined_list in joined_lists.items()
        if visible_table[name].map(_has_only_numbers).all()
    }
    text: str = escaped_table.assign(**number_lists).to_csv(
        index=False, na_rep="n/a", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    return text


def table_to_latex(table: pd.DataFrame, columns: Sequence[str], caption: str, label: str) -> str:
    """Return a LaTeX table with booktabs: numbers with three digits, texts escaped.

    A long one goes over pages.
    """
    names, numeric_flags, rows = _paper_table(table, columns)
    column_alignment = "".join("r" if is_numeric else "l" for is_numeric in numeric_flags)
    label_name = re.sub("[^A-Za-z0-9-]", "-", label)
    caption_line = f"\\caption{{{escape_latex(caption)}}}"
    label_line = f"\\label{{tab:{label_name}}}"
    header_line, *body_lines = [
        " & ".join(map(escape_latex, row)) + r" \\" for row in (names, *rows)
    ]
    if len(rows) > MAX_ROWS_PER_PAGE:
        lines = [
            "% needs \\usepackage{booktabs,longtable}",
            f"\\begin{{longtable}}{{{column_alignment}}}",
            caption_line,
            label_line + r" \\",
            *("\\toprule", header_line, "\\midrule", "\\endhead", *body_lines, "\\bottomrule"),
            "\\end{longtable}",
        ]
    else:
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering",
            caption_line,
            label_line,
            f"\\begin{{tabular}}{{{column_alignment}}}",
            *("\\toprule", header_line, "\\midrule", *body_lines, "\\bottomrule"),
            "\\end{tabular}",
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def table_to_markdown(table: pd.DataFrame, columns: Sequence[str], caption: str) -> str:
    """Return a Markdown table: numbers with three digits, texts escaped, the caption below."""
    names, numeric_flags, rows = _paper_table(table, columns)
    lines = [
        f"| {' | '.join(map(escape_table, names))} |",
        f"| {' | '.join('---:' if is_numeric else '---' for is_numeric in numeric_flags)} |",
        *(f"| {' | '.join(map(escape_table, row))} |" for row in rows),
    ]
    return "\n".join(lines) + f"\n\n{escape_table(caption)}\n"


def _paper_table(
    table: pd.DataFrame, columns: Sequence[str]
) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return the names of the columns, whether each holds numbers, and the cells."""
    column_names = [
        name for name in dict.fromkeys((*columns, *EXTRA_COLUMNS)) if name in table.columns
    ]
    if "reason" in column_names and table["reason"].isna().all():
        column_names.remove("reason")
    numeric_flags = [_is_numeric(table[name]) for name in column_names]
    rows = [
        [_cell_text(name, row[name]) for name in column_names] for row in table.to_dict("records")
    ]
    return [name.replace("_", " ") for name in column_names], numeric_flags, rows


def _is_numeric(column: pd.Series) -> bool:
    values = column.dropna()
    return bool(len(values)) and all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool)
        for value in values
    )


def _cell_text(name: str, value: Any) -> str:
    if _is_list(value):
        return str(_join_list(value))
    if value is None or pd.isna(value):
        return "n/a"
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_):
        is_integer = name in _INTEGER_COLUMNS or name == "step"
        return str(int(value) + (name == "step")) if is_integer else format_number(float(value))
    return str(value) or "n/a"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _has_only_numbers(value: Any) -> bool:
    """Return whether a cell of a column of lists holds numbers alone, or nothing."""
    if not _is_list(value):
        return bool(pd.isna(value))
    return all(
        pd.isna(element) or isinstance(element, int | float | np.number) for element in value
    )


def _join_list(value: Any) -> Any:
    return (
        " ".join("n/a" if pd.isna(element) else str(element) for element in value)
        if _is_list(value)
        else value
    )
