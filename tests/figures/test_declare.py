"""What every declared figure does, whatever it draws."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from cotlab.core.registry import FIGURES
from cotlab.figures.declare import FigureBuilder, figure


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_registered_name_is_a_builder_of_that_name(name: str) -> None:
    builder = FIGURES[name]
    assert isinstance(builder, FigureBuilder)
    assert builder.name == name
    assert builder.columns and builder.caption.endswith(".")


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_an_empty_table_gives_a_sentence(name: str) -> None:
    for table in (pd.DataFrame(), pd.DataFrame(columns=list(FIGURES[name].columns))):
        fig = FIGURES[name](table, note="partial: 0 of 60").to_dict()
        assert fig["data"] == []
        assert fig["layout"]["annotations"][0]["text"].startswith("Nothing to draw: ")
        assert "partial: 0 of 60" in fig["layout"]["meta"]["subtitle"]


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_missing_columns_are_named(name: str) -> None:
    first, *others = FIGURES[name].columns
    with pytest.raises(
        ValueError,
        match=f"figure '{name}' needs the columns {', '.join(others)}; the table has {first}",
    ):
        FIGURES[name](pd.DataFrame({first: [1]}))


def test_a_figure_is_declared_in_one_place() -> None:
    @figure(
        "answers", columns=["model"], caption="Answers by model.", empty_reason="no model answered."
    )
    def answers(table: pd.DataFrame) -> go.Figure:
        return go.Figure(go.Bar(x=table["model"].tolist()))

    assert (answers.name, answers.columns, answers.caption) == (
        "answers",
        ("model",),
        "Answers by model.",
    )
    assert answers(pd.DataFrame({"model": ["a"]})).data[0].x == ("a",)
    assert (
        answers(pd.DataFrame()).layout.annotations[0].text == "Nothing to draw: no model answered."
    )
