"""Names and paths to suite files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.core.errors import SuiteError, UnknownName
from cotlab.suites import find_suite, shipped_suites
from cotlab.suites.jsonl import load_suite


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "suites"
    made.mkdir()
    for name in ("math", "wordproblems"):
        (made / f"{name}.jsonl").touch()
    (made / "notes.txt").touch()
    monkeypatch.setattr("cotlab.suites.shipped.SUITES_FOLDER", made)
    monkeypatch.chdir(tmp_path)
    return made


def test_shipped_names_come_from_the_folder(folder: Path) -> None:
    assert shipped_suites() == {
        "math": folder / "math.jsonl",
        "wordproblems": folder / "wordproblems.jsonl",
    }


def test_no_folder_no_suites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cotlab.suites.shipped.SUITES_FOLDER", tmp_path / "absent")
    assert shipped_suites() == {}
    with pytest.raises(UnknownName, match="Known: none"):
        find_suite("math")


def test_a_name_or_a_path(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.touch()
    (tmp_path / "math").touch()
    assert find_suite("math") == folder / "math.jsonl"
    assert find_suite("./math") == Path("math")
    assert find_suite(Path("math")) == Path("math")
    assert find_suite(str(own)) == find_suite(own) == own


def test_an_unknown_name_gets_a_suggestion(folder: Path) -> None:
    with pytest.raises(
        UnknownName, match=r"Unknown suite 'wordproblem'. Did you mean 'wordproblems'\?"
    ):
        find_suite("wordproblem")


def test_a_wrong_path_gets_a_suggestion(folder: Path) -> None:
    with pytest.raises(
        SuiteError, match=r"suites/meth.jsonl: no such file; did you mean suites/math.jsonl\?"
    ):
        find_suite("suites/meth.jsonl")


@pytest.mark.parametrize(
    "name", ["", "a\x00b", "x" * 5000, "x/" * 5000, "\ud800", "~", "a.b\x1b[2J"]
)
def test_hostile_names(folder: Path, name: str) -> None:
    with pytest.raises((SuiteError, UnknownName)) as caught:
        find_suite(name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", list(shipped_suites()))
def test_every_shipped_suite_loads(name: str) -> None:
    assert load_suite(find_suite(name)).items
