"""Published scores on the page Suites: the importers of the command line, by upload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from cotlab.store import read
from cotlab.store.database import Store
from tests.run.imports.test_study import study
from tests.support.hostile import HOST, IMAGE, SCRIPT
from tests.support.pages import opened
from tests.ui.test_hostile_pages import LIVE

Upload = tuple[str, bytes, str]
DROPS = (3.0, 1.0)
"""Drops of chain and control: CMI = (3 - 1) / (3 + 1) = .5."""


def cmi_file(name: str, item: str = "i-1") -> Upload:
    row = {"cot_drop": DROPS[0], "control_drop": DROPS[1], "cmi_score": 0.5, "bypass_score": 0.5}
    rows = [{"layer": k, **row} for k in range(2)]
    return name, json.dumps({item: rows}).encode(), "application/json"


def uploaded(page: AppTest, kind: str, *files: Upload, model: str = "") -> AppTest:
    page.selectbox(key="published-kind").select(kind).run()
    page.file_uploader(key=f"published-files-{kind}").set_value(list(files)).run()
    if model:
        page.text_input(key="published-model").set_value(model).run()
    page.button(key="published-store").click().run()
    assert not page.exception, [e.value for e in page.exception]
    return page


def plain(element: Any) -> str:
    """Return the text of an element without the escapes of Markdown."""
    return str(element.value).replace("\\", "")


def runs(folder: Path) -> Any:
    return read.list_runs(Store(folder))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    return opened("suites", "Suites")


def test_published_cmi_becomes_a_run_as_by_the_command(page: AppTest, tmp_path: Path) -> None:
    uploaded(page, "mediation", cmi_file("cmi_layers_gpt2.json"))
    run = runs(tmp_path).iloc[0]
    assert (run["model"], run["suite_name"]) == ("published/gpt2", "cmi_layers_gpt2")
    assert plain(page.success[0]).startswith("Stored: run import-")
    scores = read.select_scores(Store(tmp_path), run["id"], metrics=["cmi"])
    assert scores["value"].tolist() == [0.5, 0.5]
    summary = next(t.value for t in page.dataframe if "layers" in t.value.columns)
    assert summary.loc[0, ["file", "rows", "items", "layers"]].tolist() == [
        "cmi_layers_gpt2.json",
        "2",
        "1",
        "2",
    ]

    uploaded(page, "mediation", cmi_file("again_gpt2.json"))
    assert "In the store already" in plain(page.success[0]) and len(runs(tmp_path)) == 1
    assert "Duplicate file" in plain(page.warning[0])


def test_a_file_whose_name_says_no_model_needs_one(page: AppTest, tmp_path: Path) -> None:
    uploaded(page, "mediation", cmi_file("results.json"))
    assert plain(page.error[0]) == (
        "results.json: its name says no model: type it in the field Model."
    )
    assert runs(tmp_path).empty
    uploaded(page, "mediation", cmi_file("results.json"), model="mine")
    assert runs(tmp_path)["model"].tolist() == ["published/mine"]


def test_a_study_becomes_a_run_a_model_and_a_table_of_no_kind_is_named(
    page: AppTest, tmp_path: Path
) -> None:
    files = [
        (f"{name}.json", json.dumps(content).encode(), "application/json")
        for name, content in study().items()
    ]
    uploaded(page, "unfaithfulness", *files, ("other.csv", b"a,b\n1,2\n", "text/csv"))
    assert sorted(runs(tmp_path)["model"]) == ["published/Model_epoch2", "published/Some/Model"]
    assert plain(page.warning[0]).startswith("Left out: other.csv:1: is no table that is known")


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [
        ("mediation", [("a.json", b"{", "")], "a.json:1: is not JSON"),
        ("mediation", [cmi_file("b_x.json"), ("c.json", b"[]", "")], "c.json: must be a JSON"),
        ("mediation", [cmi_file("b_x.json"), cmi_file("b_x.json", "i-2")], "Two files are called"),
        ("unfaithfulness", [("d.csv", b"a,b\n1,2\n", "")], "d.csv:1: is no table that is known"),
        ("unfaithfulness", [("e.json", b"{}", "")], "e.json: metadata: is missing"),
        ("ablation", [("f.json", b"{}", "")], "f.json: "),
    ],
)
def test_a_bad_file_is_one_message_and_what_was_stored_stays(
    page: AppTest, tmp_path: Path, kind: str, files: list[Upload], message: str
) -> None:
    uploaded(page, "mediation", cmi_file("cmi_gpt2.json"))
    before = runs(tmp_path)["id"].tolist()
    uploaded(page, kind, *files)
    assert len(page.error) == 1 and not page.success
    text = plain(page.error[0])
    assert text.startswith(message) and "/tmp" not in text
    assert runs(tmp_path)["id"].tolist() == before


def test_texts_of_files_are_shown_as_they_are(page: AppTest) -> None:
    name = f"{IMAGE}[x](https:{HOST}).json".replace("/", "")
    for item in (SCRIPT, f"i{SCRIPT}\n"):
        uploaded(page, "mediation", cmi_file(name, item), model=IMAGE)
        shown = [*page.success, *page.error, *page.warning, *page.caption, *page.markdown]
        assert shown and [text.value for text in shown if LIVE.search(text.value)] == []
