"""A recipe draws the figure it was made of again, to the last byte, and says so where it was
changed."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest
from cotlab.export.recipe import FigureRecipe, recipe_from_json, recipe_to_json

TABLE = pd.DataFrame(
    {
        "metric": "answer_change",
        "mode": ["remove", "remove", "corrupt"],
        "step": pd.array([0, 1, 0], dtype="Int64"),
        "point": [0.25, 0.5, None],
        "lo": [0.1, 0.2, None],
        "hi": [0.4, 0.8, None],
        "n": [12, 8, 0],
        "n_undefined": [0, 4, 12],
        "method": ["Wilson", "Wilson", "none"],
        "reason": [None, None, "no <b>answer</b> $x$"],
        "values": [[0.0, 1.0], np.array([1.0, np.nan]), []],
        "evidence": [["k"], ["k"], ["k"]],
    }
)
RECIPE = FigureRecipe(
    "mine",
    "ccs_by_position",
    TABLE,
    "Partial: 3 of 4 items scored.",
    "run-1",
    "icml",
    {"metric": "x"},
    {"cotlab": "1"},
)


def test_a_recipe_draws_the_same_figure() -> None:
    again = recipe_from_json(recipe_to_json(RECIPE))
    assert again.draw().to_json() == RECIPE.draw().to_json()
    assert (again.name, again.run, again.preset, again.choice) == (
        "mine",
        "run-1",
        "icml",
        {"metric": "x"},
    )
    assert again.versions["cotlab"] == "1" and "plotly" in again.versions
    assert recipe_to_json(again) == recipe_to_json(RECIPE)


def test_missing_numbers_stay_missing_and_keys_into_the_log_stay_at_home() -> None:
    told = json.loads(recipe_to_json(RECIPE))["table"]
    assert told["rows"][2][3:6] == [None] * 3 and "evidence" not in told["columns"]
    again = recipe_from_json(recipe_to_json(RECIPE)).table
    assert pd.isna(again["point"].iloc[2]) and str(again["step"].dtype) == "Int64"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r["table"]["rows"][0].__setitem__(3, 0.9), "was changed"),
        (lambda r: r.__setitem__("note", "other"), "was changed"),
        (lambda r: r.__setitem__("kind", "else"), "is no recipe"),
        (lambda r: r.pop("table"), "was changed"),
        (lambda r: r["table"].__setitem__("columns", 7), "was changed"),
    ],
)
def test_a_changed_recipe_is_refused(change: object, told: str) -> None:
    recipe = json.loads(recipe_to_json(RECIPE))
    change(recipe)  # type: ignore[operator]
    with pytest.raises(ConfigError, match=told):
        recipe_from_json(json.dumps(recipe))


def test_what_is_no_recipe_says_so() -> None:
    for text in ("", "[]", "{}", "not json", "[" * 5000):
        with pytest.raises(ConfigError, match="no recipe"):
            recipe_from_json(text)


@pytest.mark.parametrize(
    "name", ["../evil", "/tmp/evil", "", "a/b", "a\0b", "a" * 300, "..", "a.b"]
)
def test_a_name_that_would_write_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="its name must be"):
        recipe_from_json(recipe_to_json(FigureRecipe(name, "ccs_by_position", TABLE)))


def test_a_table_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match="its table lacks metric"):
        recipe_from_json(
            recipe_to_json(FigureRecipe("mine", "ccs_by_position", TABLE.drop(columns="metric")))
        )
    told = json.loads(recipe_to_json(RECIPE))
    for broken in (told | {"note": "\ud800"}, told | {"note": float("nan")}):
        with pytest.raises(ConfigError, match="no recipe"):
            recipe_from_json(json.dumps(broken))
    for cut in (
        lambda table: table["rows"][0].clear(),
        lambda table: table["rows"][0].__setitem__(6, 10**30),
    ):
        own = json.loads(recipe_to_json(RECIPE))
        cut(own["table"])
        own["digest"] = digest({name: own[name] for name in ("figure", "note", "table")})
        with pytest.raises(ConfigError, match="no recipe"):
            recipe_from_json(json.dumps(own))
