"""The page Mediation, on an empty store and on one with synthetic scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.analysis.tables.catalogue import make_figure_table
from cotlab.analysis.tables.declare import MissingFigure, count_reasons
from cotlab.analysis.view import RunView
from cotlab.store.database import Store
from cotlab.ui.mediation import token_rows
from tests.support.figure_texts import head
from tests.support.mediation_store import (
    HOSTILE,
    PIECES,
    POSITIONS,
    fill,
)
from tests.support.pages import opened

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mediation") / "store"
    fill(folder)
    return folder


def open_page(**query: str) -> AppTest:
    return opened("mediation", **query)


def open_all(**query: str) -> AppTest:
    """Open the page with what is behind its answer."""
    return open_page(more="true", **query)


def open_item(**query: str) -> AppTest:
    """Open the page at one item."""
    return open_page(one="true", **query)


def figures(app: AppTest) -> dict[str, dict[str, Any]]:
    found = {}
    for element in app.get("plotly_chart"):
        spec = json.loads(element.proto.spec)
        found[spec["layout"]["meta"]["title"]] = spec
    return found


def test_an_empty_store_says_which_scorer_to_run() -> None:
    app = opened("mediation", "Run")
    assert [link.proto.label for link in app.main.get("page_link")] == ["Start a run"]


def test_the_filled_page_shows_every_figure_and_the_headline(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app, item_app = open_all(run="run-1"), open_item(run="run-1", item="i-03")
    assert {
        "Density curve (CMI): share of the chain patched (0 to 1, all layers)",
        "Mediation by span of layers (0 to 1; share −1 to 1)",
        "Drop of the answer's log P by layer (mean, nats)",
        "Indices of mediation (mean over items, no unit)",
        "Drops of the answer's log P in this item by donor (nats)",
        "Density curve (CMI) of this item (0 to 1, all layers)",
    } <= {*figures(app), *figures(item_app)}
    density = figures(app)["Density curve (CMI): share of the chain patched (0 to 1, all layers)"]
    assert {t["name"] for t in density["data"] if t.get("showlegend")} == {
        "filler",
        "interchange",
        "literal",
    }
    assert [m.label for m in app.metric][:3] == [
        "CMI, all layers, n = 11",
        "Mass lost, n = 12",
        "No-CoT drop (nats), n = 12",
    ]
    assert all("[" in m.value and "]" in m.value for m in app.metric[:3])
    own = figures(item_app)["Density curve (CMI) of this item (0 to 1, all layers)"]
    assert (
        sum(len(t["x"]) for t in own["data"] if t["mode"] == "markers" and t["marker"]["size"] == 5)
        == 8
    )  # single draws
    cards = [
        m.value
        for m in (*app.markdown, *item_app.markdown)
        if "Does not show:" in m.value and m.value.startswith("**")
    ]
    assert {text.split("**")[1] for text in cards} >= {
        "CMI",
        "density",
        "boundary sensitivity",
        "drop, chain patched",
    }
    assert not app.warning and not item_app.warning


def test_undefined_indices_are_counted_with_their_reasons(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    table = next(
        t.value for t in open_all(run="run-1").dataframe if "why undefined" in t.value.columns
    ).set_index("index")
    assert table.loc["CMI", ["n", "undefined"]].tolist() == [11, 1]
    assert table.loc["CMI", "why undefined"] == "the drops add up to less than 0.01 nat (1)"
    assert table.loc["boundary sensitivity", "mean [interval]"] == "n/a"
    assert (
        table.loc["boundary sensitivity", "why undefined"]
        == "CMI of all layers is below <0.05> (12)"
    )
    indices = figures(open_all(run="run-1"))["Indices of mediation (mean over items, no unit)"]
    assert "n/a (CMI of all layers is below &lt;0.05&gt;)" in head(indices)


def test_a_control_that_does_nothing_and_a_degenerate_source_are_flagged(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_page(run="run-1", source="own~prefix~literal~own")
    noop, literal = [w.value for w in app.warning]
    assert "changes nothing in 12 of 12 items" in noop and "CMI is 1 for every model" in noop
    assert "literal is degenerate" in literal


def test_a_run_without_estimates_says_so_and_shows_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "unfinished", 3, estimated=False)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "unfinished"))
    app = open_page(run="run-1")
    assert "estimated when the run ends" in app.info[0].value
    assert len(figures(open_item(run="run-1"))) == 2


def test_tokens_stand_in_runs_of_one_role() -> None:
    blocks = token_rows({"positions": POSITIONS, "pieces": PIECES, "layers": 4}, "other")
    assert [b.label for b in blocks] == [
        "other: untouched",
        "question: control",
        "chain: patched",
        "cue: untouched",
    ]
    assert [b.score for b in blocks] == ["1 (1)", "2–5 (4)", "6–11 (6)", "12–13 (2)"]
    assert blocks[1].text == f"Ann\u00a0·  has\u00a0·  7\u00a0· {HOSTILE}"
    assert (
        token_rows({"positions": ((0,),), "pieces": ("\n",), "layers": 4}, "other")[0].text == "↵"
    )
    assert blocks[2].shade is not None and blocks[0].shade is None
    assert token_rows({"positions": ((), ()), "pieces": (), "layers": 4}, "other") == []


def test_reasons_that_differ_in_numbers_only_are_one() -> None:
    told = [
        "no donor",
        "both drops are 7.8e-05 nat, below 0.01",
        "both drops are 0.002 nat, below 0.01",
        "CMI 3 < 5",
    ]
    assert count_reasons(told) == {
        "both drops are … nat, below 0.01": 2,
        "no donor": 1,
        "CMI 3 < 5": 1,
    }
    assert count_reasons([]) == {}


def test_the_values_of_one_item_have_intervals_over_donors_and_draws(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    app = open_item(run="run-1", item="i-03")
    table = next(t.value for t in app.dataframe if "donors" in t.value.columns)
    assert table["layers"].tolist()[0] == "all" and table["value"].tolist()[0] == "CMI"
    first = table.iloc[0]
    assert (first["drops"], first["donors"], first["resampled, or reason"]) == (
        16,
        4,
        "over donors, then draws",
    )
    shown = {m.label: m.value for m in app.metric}["CMI, all layers"]
    assert (
        "[" in first["value [95 % interval]"]
        and shown.split(" [")[1] == first["value [95 % interval]"].split(" [")[1]
    )
    dead = open_item(
        run="run-1", item="i-00"
    )  # its stored CMI is undefined whatever its draws: no bounds without a value
    assert "n/a" in {m.label: m.value for m in dead.metric}["CMI, all layers"]


def test_the_question_is_no_control_where_dots_beside_the_chain_are() -> None:
    located = {"pieces": list(PIECES), "positions": POSITIONS}
    roles = {
        control: {row.label for row in token_rows(located, control)}
        for control in ("other", "neutral", "total")
    }
    assert "question: control" in roles["other"] & roles["total"]
    assert "question: untouched" in roles["neutral"]


def test_where_cmi_is_refused_its_curve_is_not_drawn_either(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the store is made to lose more than the chain."""
    folder = tmp_path / "store"
    shutil.copytree(filled, folder)
    with Store(folder).writing() as connection:
        connection.execute("UPDATE estimates SET point = 50 WHERE metric = 'drop_control'")
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    app = open_page(run="run-1")
    assert any("CMI by share of positions is not drawn" in c.value for c in app.caption)
    assert not any(title.startswith("Density curve") for title in figures(app))
    (cmi,) = [m.value for m in app.metric if m.label.startswith("CMI")]
    assert cmi == "n/a"
    printed = make_figure_table(RunView.read(Store(folder), "run-1"), "cmi_density")
    assert isinstance(printed, MissingFigure) and "not drawn" in printed.reason
