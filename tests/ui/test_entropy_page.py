"""The entropy of a chain on the pages Item and Mediation, from a run of an organism."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.analysis.tables.chains import entropy_steps
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.item.chain import entropy_flag_texts, entropy_rows
from tests.support.pages import app_at

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run

FIGURE = "Token entropy by step of one chain (nats)"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a store with runs of given chains, with mediation, and of the model's own chain."""
    folder = tmp_path_factory.mktemp("entropy") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTLAB_STORE", str(folder))
        given = cotlab.run_suite(
            "wordproblems", model="r100", scorer=["entropy", "mediation"], limit=3
        )
        own = cotlab.run_suite(
            "wordproblems", model="r100", scorer=["entropy"], chain="own", limit=3
        )
        away = cotlab.run_suite(
            "wordproblems", provider="echo", model="echo", scorer=["entropy"], limit=3
        )
    return folder, {"given": given.run_id, "own": own.run_id, "away": away.run_id}


def open_page(name: str, **query: str) -> AppTest:
    app = app_at(name, **query).run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def drawn(app: AppTest) -> dict[str, Any] | None:
    specs = [json.loads(element.proto.spec) for element in app.get("plotly_chart")]
    return next((spec for spec in specs if spec["layout"]["meta"]["title"] == FIGURE), None)


def first_item(folder: Path, run_id: str) -> str:
    return str(read.list_run_items(Store(folder), run_id)["id"].iloc[0])


@pytest.mark.parametrize(
    ("name", "kind"), [("items", "given"), ("items", "own"), ("mediation", "given")]
)
def test_the_figure_has_the_scores_of_the_item(
    ran: tuple[Path, dict[str, str]], name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, runs = ran
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    item = first_item(folder, runs[kind])
    app = open_page(name, run=runs[kind], item=item)
    fig = drawn(app)
    assert fig is not None and "Entropy" in [s.value for s in app.header]
    scores = read.run_scores(
        Store(folder), runs[kind], metrics=["step_entropy"], item_id=item
    ).sort_values("step")
    line = next(trace for trace in fig["data"] if trace["mode"] == "lines")
    assert len(scores) >= 2 and line["y"] == pytest.approx(scores["value"].tolist())
    assert any("Trend over the chain: " in m.value for m in app.markdown)
    said = [c.value for c in app.caption]
    assert any("A jump: more than 0.5 nats" in text for text in said)
    assert any("The chain that the model wrote" in text for text in said) is (kind == "own")


def test_a_chain_without_entropy_says_why(
    ran: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, runs = ran
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    app = open_page("items", run=runs["away"], item=first_item(folder, runs["away"]))
    assert drawn(app) is None
    assert any("only a local model tells the entropy of a given chain" in i.value for i in app.info)


def table(*steps: tuple[float | None, float | None, float | None]) -> pd.DataFrame:
    """Return scores of one item: mean, jump and rise of each step, and an undefined trend."""
    rows: list[tuple[str, int | None, float | None, str | None]] = []
    for i, (mean, jump, rise) in enumerate(steps):
        for metric, value in zip(
            ("step_entropy", "step_entropy_peak", "entropy_jump", "entropy_rise"),
            (mean, mean, jump, rise),
            strict=True,
        ):
            rows.append((metric, i, value, None if value is not None else f"why not {i}"))
    rows.append(("entropy_trend", None, None, "fewer than 3 steps have an entropy"))
    return pd.DataFrame(rows, columns=["metric", "step", "value", "reason"])


def test_a_rise_is_told_as_the_stronger_flag() -> None:
    found = entropy_steps(
        table((0.1, None, None), (0.8, 1.0, None), (None, None, None), (2.0, 1.0, 1.0))
    )
    assert found["flag"].tolist() == ["", "jump", "", "rise"]
    assert (
        found["mean"].isna().tolist() == [False, False, True, False]
        and found["reason"].iloc[2] == "why not 2"
    )
    shown = entropy_rows(found, ["one", "two", "three"])
    assert [b.text for b in shown] == [
        "one",
        "two",
        "three",
        "n/a: the log does not hold this reply",
    ]
    assert (shown[2].score, shown[2].shade, shown[2].hint) == ("n/a", None, "n/a: why not 2")


def test_what_is_said_of_flags_and_trend() -> None:
    assert entropy_flag_texts(table((0.1, None, None), (0.8, 1.0, None))) == [
        "A jump: at step 2.",
        "A jump after rising entropy: n/a, why not 1.",
        "Trend over the chain: n/a, fewer than 3 steps have an entropy.",
    ]
    told = entropy_flag_texts(
        table((0.1, None, None), (0.8, 1.0, None), (0.1, 0.0, 0.0), (2.0, 1.0, 0.0))
    )
    assert told[:2] == ["A jump: at steps 2, 4.", "A jump after rising entropy: at no step."]
