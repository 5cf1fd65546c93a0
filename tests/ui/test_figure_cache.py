"""A figure is drawn once for each table and theme, and is the one that its table makes."""

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.printed import without_title
from cotlab.ui import charts as figure_cache
from cotlab.ui.charts import cached_figure

CELL = {"one": "C", "other": "V", "point": 0.5, "lo": 0.4, "hi": 0.6, "n": 30, "reason": None}


def test_the_same_table_is_drawn_once_and_another_one_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    builder, n_drawn = FIGURES["signal_correlation"], []

    def draw(table: pd.DataFrame) -> object:
        n_drawn.append(1)
        return builder(table)

    monkeypatch.setattr(figure_cache, "FIGURES", {"signal_correlation": draw})
    tables = [pd.DataFrame([CELL | {"point": point}]) for point in (0.5, 0.5, 0.55)]
    first, again, other = (cached_figure("signal_correlation", table) for table in tables)
    assert first is again and len(n_drawn) == 2
    untitled = without_title(builder(tables[0]))
    assert first.to_json() == untitled.to_json() != other.to_json()
    assert other.to_json() == without_title(builder(tables[2])).to_json()
