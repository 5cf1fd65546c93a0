"""A figure is drawn once for each table and theme, and is the one that its table makes."""

import pandas as pd
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.style import Look
from cotlab.ui import charts as figure_cache
from cotlab.ui.charts import cached_figure

CELL = {"one": "C", "other": "V", "point": 0.5, "lo": 0.4, "hi": 0.6, "n": 30, "reason": None}


def test_the_same_table_is_drawn_once_and_another_one_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    builder, n_drawn = FIGURES["signal_correlation"], []

    def draw(table: pd.DataFrame, look: Look) -> object:
        n_drawn.append(1)
        return builder(table, look=look)

    monkeypatch.setattr(figure_cache, "FIGURES", {"signal_correlation": draw})
    tables = [pd.DataFrame([CELL | {"point": point}]) for point in (0.5, 0.5, 0.55)]
    first, again, other = (cached_figure("signal_correlation", table) for table in tables)
    assert first is again and len(n_drawn) == 2
    assert first.to_json() == builder(tables[0]).to_json() != other.to_json()
    assert other.to_json() == builder(tables[2]).to_json()
