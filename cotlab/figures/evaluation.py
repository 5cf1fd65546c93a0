"""Signals against labels: the AUROC of each with its interval, beside the baselines and chance."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cotlab.figures import style
from cotlab.figures.declare import figure, float_value, table_records
from cotlab.figures.marks import Mark, draw_reference_line
from cotlab.figures.rows import draw_estimate_rows


@figure(
    "signal_aurocs",
    columns=("signal", "is_baseline", "point", "lo", "hi", "n", "n_undefined", "text", "reason"),
    caption=(
        "The probability that a signal ranks a chain with the fault below one without it. At the"
        " dotted line it is chance. A signal tells where its bar lies right of that line, and is"
        " worth something beside the baselines (squares) where it lies right of theirs too. It does"
        " not show what a signal adds to the baselines, nor whether it holds on other questions."
    ),
    empty_reason="no signal is defined on labelled chains.",
)
def signal_aurocs(table: pd.DataFrame) -> Any:
    """Draw a row for each signal, in the order of the table; click a mark for its name."""
    rows = table_records(table)
    rows.sort(key=lambda row: float_value(row, "point") is None)
    marks = [
        Mark("baseline" if row["is_baseline"] else "signal", i, str(row["signal"]), row)
        for i, row in enumerate(rows)
    ]
    styles = {
        "baseline": style.CategoryStyle(style.hue(style.ORANGE), "square"),
        "signal": style.CategoryStyle(style.hue(style.BLUE), "circle"),
    }
    fig = draw_estimate_rows(
        marks,
        "How well each signal ranks chains (AUROC, 0 to 1)",
        x="AUROC",
        styles={name: styles[name] for name in styles if any(m.series == name for m in marks)},
        max_name_chars=34,
        row_height_px=34,
    )
    draw_reference_line(fig, x=0.5)
    return fig
