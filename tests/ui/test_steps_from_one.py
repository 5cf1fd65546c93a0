"""People read steps from 1 wherever a metric's value is a step, and files hold them from 0."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cotlab.analysis.readable import readable_value
from cotlab.cli.main import app
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.linked import linked_frames
from tests.support.pages import opened, opened_item
from tests.support.stores.evaluated import add_run, suite

STEPS = {"low": [0] * 12, "high": [2] * 12}
METRIC = "First step with a mistake (from 1)"


@pytest.fixture
def store() -> Store:
    """Two runs of which one names the first step of each chain, the other the third."""
    made, chains = Store(), suite(n=12)
    for run, steps in STEPS.items():
        add_run(made, run, chains, {}, named_steps=steps)
    return made


def test_only_metrics_of_steps_are_shifted() -> None:
    assert [readable_value("critic_step", x) for x in (0.0, None)] == [1.0, None]
    assert readable_value("critic_sound", 0.0) == 0.0


def test_an_item_s_table_counts_from_1(store: Store) -> None:
    table = next(t for t in linked_frames(opened_item("high", "i001")) if "Measure" in t.columns)
    assert table.set_index("Measure").loc[METRIC, "Mean"] == "3.00"
    assert read.select_scores(store, "high", items=["i001"])["value"].tolist() == [2.0]


def test_compare_shows_means_and_changed_items_from_1(store: Store) -> None:
    headline = r"No tested metric was measured in both synthetic · low and synthetic · high\."
    page = opened("compare", headline, base="low", other="high", more="true")
    table = next(t.value for t in page.dataframe if "BH p" in t.value.columns)
    row = table.set_index("metric").loc[METRIC]
    assert (row["base"], row["other"]) == ("1.00", "3.00")
    assert str(row["difference [95% interval]"]).startswith("2")
    changed = next(t for t in linked_frames(page) if "base →" in t.columns)
    assert set(changed["base"]) == {"1.00"} and set(changed["other"]) == {"3.00"}
    assert set(changed["difference"]) == {"2.00"}


def test_the_command_shows_means_from_1(store: Store) -> None:
    printed = CliRunner().invoke(app, ["compare", "low", "high"]).output
    (line,) = [line for line in printed.splitlines() if "first_mistake_step" in line]
    cells = [cell.strip() for cell in line.strip("│┃ ").split("│")]
    assert cells[0].startswith("first_mistake_step (") and cells[3:5] == ["1.00", "3.00"]
