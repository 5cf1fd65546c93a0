"""New run on a suite of recorded chains, and the model under which such runs are listed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import cotlab
from cotlab.core.types import Item, Step, Suite
from cotlab.run.config import read_config
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.suites.jsonl import write_suite
from cotlab.ui.new_run.recorded import OFFLINE_SETTINGS, recorded_models
from tests.support.hostile import IMAGE
from tests.support.pages import opened
from tests.ui.test_hostile_pages import LIVE

STEPS = (Step(0, "7 + 5 = 12."), Step(1, "So the answer is 12."))


def chains(name: str | None = "gen7b", *, n: int = 2) -> Suite:
    meta = {"first_mistake": None} | ({} if name is None else {"generator": name})
    items = [Item(f"i{k}", f"Ann has {k} apples?", "12", STEPS, "", meta) for k in range(n)]
    return Suite.from_items("recorded", items)


def page(suite: Suite) -> AppTest:
    with Store().writing() as connection:
        write.add_suite(connection, suite)
    return opened("new_run", suite=suite.digest)


def proposals(app: AppTest) -> list[str]:
    return [text for one in app.info if "recorded chains" in (text := str(one.value))]


def test_recorded_chains_are_told_from_reference_chains() -> None:
    assert recorded_models(chains()) == ["gen7b"] and recorded_models(chains(None)) == []
    plain = Suite.from_items("plain", [Item("i", "Q?", "1", STEPS)])
    empty = Suite.from_items("empty", [Item("i", "Q?", "1", (), meta={"generator": "x"})])
    assert recorded_models(plain) is None and recorded_models(empty) is None


def test_the_page_proposes_the_offline_profile_and_sets_it() -> None:
    app = page(chains())
    (text,) = proposals(app)
    assert "recorded chains of gen7b" in text
    app.button(key="new-offline").click().run()
    assert not app.exception and not proposals(app)
    assert app.selectbox(key="new-profile").value == "offline"
    assert app.multiselect(key="new-scorer").value == ["text_features"]
    assert app.selectbox(key="new-provider").value == "echo"
    assert any("**0 requests**" in text.value for text in app.markdown) and not app.error
    assert not [w.value for w in app.warning if "Session State" in str(w.value)]
    config = {key.removeprefix("new-"): value for key, value in OFFLINE_SETTINGS.items()}
    assert read_config(config).profile == "offline"


def test_a_suite_of_reference_chains_gets_no_proposal() -> None:
    assert not proposals(opened("new_run"))


def test_a_generator_s_name_is_text() -> None:
    (text,) = proposals(page(chains(IMAGE)))
    assert not LIVE.search(text)


@pytest.mark.parametrize(
    ("scorers", "listed"),
    [
        (["text_features", "flags", "verification", "tool_trace"], True),
        (["text_features", "ablation"], False),
    ],
)
def test_a_run_that_asks_no_model_is_listed_under_the_recorded_one(
    tmp_path: Path, scorers: list[str], listed: bool
) -> None:
    write_suite(chains(), tmp_path / "recorded.jsonl")
    run = cotlab.run_suite(
        str(tmp_path / "recorded.jsonl"),
        provider="echo",
        model="echo",
        scorer=scorers,
        embedder="none",
    ).run_id
    expected = "none (recorded chains of gen7b)" if listed else "echo/echo"
    assert read.get_run(Store(), run)["model"] == expected
    with closing(sqlite3.connect(Store().log_path)) as log:
        asked = [json.loads(text) for (text,) in log.execute("SELECT request FROM replies")]
    is_asked = any((request.get("model") or {}).get("provider") == "echo" for request in asked)
    assert is_asked is not listed


def test_a_run_without_a_named_generator_keeps_its_model(tmp_path: Path) -> None:
    write_suite(chains(None), tmp_path / "recorded.jsonl")
    run = cotlab.run_suite(
        str(tmp_path / "recorded.jsonl"), provider="echo", model="echo", scorer=["text_features"]
    ).run_id
    assert read.get_run(Store(), run)["model"] == "echo/echo"
