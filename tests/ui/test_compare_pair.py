"""The page Compare: items and chains of two runs are as stored, the choice is the address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.core.types import Item, Step, Suite
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.ui.pair import items
from tests.support import hostile
from tests.support.pages import component, send
from tests.support.stores.judged import add_measured_run
from tests.ui.test_pages import open_page

pytestmark = pytest.mark.soak
LIMIT = 8


class Runs(NamedTuple):
    """Two runs in a store."""

    folder: Path
    base: str
    other: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A model that follows its own chains, and one that follows hints."""
    folder = tmp_path_factory.mktemp("pair") / "store"
    options: dict[str, Any] = {"provider": "organism", "scorer": ["ablation"], "limit": LIMIT}
    options |= {"mode": ["corrupt", "paraphrase"], "chain": "own"}
    ids = [
        cotlab.run_suite("wordproblems", store=folder, model=model, **options).run_id
        for model in ("r100", "hint")
    ]
    return Runs(folder, *ids)


@pytest.fixture
def runs(made: Runs, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setenv("COTLAB_STORE", str(made.folder))
    return made


def compared(runs: Runs, **query: str) -> AppTest:
    app = open_page("compare", base=runs.base, other=runs.other, **query)
    assert not app.exception, [e.value for e in app.exception]
    return app


def view(app: AppTest) -> dict[str, Any]:
    return component(app, "chips")


def address(data: dict[str, Any], link: int) -> dict[str, str]:
    return {
        name: values[0] for name, values in parse_qs(urlsplit(data["hrefs"][link]).query).items()
    }


def without_order(data: dict[str, Any]) -> dict[str, Any]:
    """The same data, whatever the order of names in its addresses."""
    return {**data, "hrefs": [address(data, k) for k in range(len(data["hrefs"]))]}


def choose(app: AppTest, data: dict[str, Any], link: int) -> AppTest:
    """Click a link as the component sends it."""
    query = data["hrefs"][link].partition("?")[2]
    return send(app, "chips", {"choice": {"address": query}})


def param(app: AppTest, name: str) -> str:
    value: Any = app.query_params[name]
    return str(value if isinstance(value, str) else value[0])


def right_by_item(run: str) -> dict[str, bool]:
    table = read.run_scores(Store(), run)
    rows = table[table["metric"] == "baseline_correct"]
    return {str(i): bool(v) for i, v in zip(rows["item_id"], rows["value"], strict=True)}


def test_chips_answers_and_effects_are_the_stored_ones(runs: Runs) -> None:
    data = view(compared(runs))
    base, other = right_by_item(runs.base), right_by_item(runs.other)
    counts = {chip["text"]: chip["count"] for chip in data["chips"]}
    n_regressed = sum(base[i] and not other[i] for i in base)
    assert 0 < n_regressed < LIMIT and counts["Regressed"] == n_regressed
    assert counts["Both right"] == sum(base[i] and other[i] for i in base)
    assert counts["All"] == len(data["rows"]) == LIMIT
    assert [row["outcome"] for row in data["rows"][:n_regressed]] == ["regressed"] * n_regressed
    kinds = [[answer["kind"] for answer in row["answers"]] for row in data["rows"]]
    assert kinds[0] == ["right", "wrong"] and kinds[-1] == ["right", "right"]

    pair = data["pair"]
    item = address(data, data["rows"][0]["link"])["item"]
    for side, run in enumerate((runs.base, runs.other)):
        table = read.run_scores(Store(), run, item_id=item)
        rows = table[
            (table["metric"] == "answer_change") & table["facet"].str.contains('"corrupt"')
        ]
        stored = rows.dropna(subset=["value"]).groupby("step")["value"].mean().tolist()
        assert [line[side]["tint"] for line in pair["lines"]] == stored
    first, last = pair["lines"][0], pair["lines"][-1]
    assert not first[0]["changes"] and not first[1]["changes"], "the chains begin alike"
    assert "removed" in dict(last[0]["changes"]) and "added" in dict(last[1]["changes"])
    assert [fact["kind"] for side in pair["sides"] for fact in side["facts"]][1::3] == [
        "right",
        "wrong",
    ]
    assert pair["sides"][1]["href"] == f"/run?run={runs.other}&item={item}&tab=items"


def test_each_choice_is_in_the_address_and_a_link_restores_it(runs: Runs) -> None:
    app = compared(runs)
    data = view(app)
    chip = next(chip for chip in data["chips"] if chip["text"] == "Both right")
    app = choose(app, data, chip["link"])
    data = view(app)
    assert param(app, "show") == "both right"
    assert {row["outcome"] for row in data["rows"]} == {"both right"}
    app = choose(app, data, data["neighbours"]["j"])
    data = view(app)
    app = choose(app, data, data["pair"]["modes"][1]["link"])
    last = view(app)
    assert [row["selected"] for row in last["rows"]].index(True) == 1
    query = {name: param(app, name) for name in ("show", "item", "effect")}
    assert without_order(view(compared(runs, **query))) == without_order(last)

    app = send(app, "chips", {"choice": {"search": "zoe"}})
    assert "item" not in app.query_params and param(app, "q") == "zoe"
    for forged in ({"address": 3}, {"search": 3}, {}):
        before = view(app)
        app = send(app, "chips", {"choice": forged})
        assert view(app) == before
    app = send(app, "chips", {"choice": {"address": "base=gone&item=gone&x=1"}})
    assert param(app, "base") == runs.base and "x" not in app.query_params
    data = view(compared(runs, item="gone", show="none of them", sort="gone", effect="gone"))
    assert "no item gone" in data["note"] and len(data["rows"]) == LIMIT
    found = view(compared(runs, q="no such question"))
    assert found["rows"] == [] and found["pair"] is None and found["part"] == "No item matches."


def test_more_is_read_only_where_it_is_opened(runs: Runs) -> None:
    closed, opened = compared(runs), compared(runs, more="true")
    assert not closed.dataframe and opened.dataframe


def test_hostile_text_is_text_and_lists_are_paged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    suite = Suite.from_items(
        f"s {hostile.ALL}",
        [
            Item(f"i{k} {hostile.ALL}", f"{k}? {hostile.ALL}", "1", (Step(0, hostile.ALL),))
            for k in range(items.ROWS_PER_LIST + 1)
        ],
    )
    for run in ("run-1", "run-2"):
        add_measured_run(Store(tmp_path), run, {"change": 1.0}, suite=suite, model=hostile.ALL)
    app = open_page("compare", base="run-1", other="run-2")
    assert not app.exception, [e.value for e in app.exception]
    for element in (*app.markdown, *app.caption, *app.warning, *app.info):
        assert "<script>" not in element.value and f"](https://{hostile.HOST}" not in element.value
    data = view(app)
    assert len(data["rows"]) == items.ROWS_PER_LIST and "Later" in data["pages"]
    assert data["pair"]["lines"][0][0]["text"] == hostile.ALL, "sent whole, set as text"
    assert all(href.startswith("/compare?") for href in data["hrefs"])
    json.dumps(data)
    folder = Path(items.__file__).parent
    for name in ("items.js", "../item/chain_rows.js"):
        source = (folder / name).read_text("utf-8")
        assert "innerHTML" not in source and "insertAdjacentHTML" not in source


def test_runs_of_other_chains_say_what_is_not_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suggestions are paired, answers and changes of steps are of other chains in each run."""
    folder = tmp_path / "store"
    monkeypatch.setenv("COTLAB_STORE", str(folder))
    options: dict[str, Any] = {"scorer": ["ablation", "unfaithfulness"], "limit": LIMIT}
    options |= {"provider": "organism", "mode": ["corrupt", "paraphrase"], "store": folder}
    base, other = (
        cotlab.run_suite("wordproblems", model=model, chain=chain, **options).run_id
        for model, chain in (("r100", "own"), ("hint", "reference"))
    )
    app = open_page("compare", base=base, other=other)
    assert not app.exception, [e.value for e in app.exception]
    how = "on the model's own chains in r100, on the suite's chains in hint"
    caption = next(c.value.replace("\\", "") for c in app.caption if "comparable" in c.value)
    assert "In both runs, but not comparable: Answers right" in caption and how in caption
    assert "Reads its chain" in caption
    data = view(app)
    assert [chip["text"] for chip in data["chips"]] == ["All"]
    assert data["reasons"] == [f"right and wrong are not paired: judged {how}"]
    assert data["pair"]["outcome"] == data["reasons"][0]
    heads = ["answers as asked", "answers moved, points"]  # without the suggestion
    assert data["heads"] == heads
