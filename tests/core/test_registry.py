"""Names to code: lazy, with a suggestion for a wrong name and the missing package by name."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from cotlab.core.errors import MissingExtra, UnknownName
from cotlab.core.registry import PROVIDERS, SCORERS, Registry


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **sources: str) -> None:
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_target_is_loaded_on_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, monkeypatch, lazy_part="VALUE = 7\n")
    registry = Registry("thing", {"lazy": "lazy_part:VALUE"}, "cotlab.nothing")
    assert "lazy" in registry and list(registry) == ["lazy"] and len(registry) == 1
    assert registry.require("lazy") == "lazy_part:VALUE"
    assert "lazy_part" not in sys.modules
    assert registry["lazy"] == 7
    assert "lazy_part" in sys.modules


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName) as error:
        SCORERS["ablaton"]
    assert str(error.value).startswith(
        "Unknown scorer 'ablaton'. Did you mean 'ablation'? Known: ablation"
    )
    assert (error.value.kind, error.value.name) == ("scorer", "ablaton")
    with pytest.raises(UnknownName, match=r"Known: a, b\.$"):
        Registry("thing", {"b": "x:y", "a": "x:y"}, "cotlab.nothing").require("zzzzzz")
    with pytest.raises(UnknownName, match=r"Known: none\.$"):
        Registry("thing", {}, "cotlab.nothing").require("a")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, monkeypatch, wants_extra="import a_package_nobody_has.part\n")
    with pytest.raises(MissingExtra) as error:
        Registry("provider", {"far": "wants_extra:X"}, "cotlab.nothing")["far"]
    assert "provider 'far' needs the package 'a_package_nobody_has" in str(error.value)
    assert "a_package_nobody_has" in str(error.value)


def test_a_missing_module_of_our_own_is_a_bug_not_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError):
        Registry("thing", {"gone": "cotlab.core.gone:X"}, "cotlab.nothing")["gone"]


def test_names_can_be_added_and_outside_packages_cannot_replace_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = [
        importlib.metadata.EntryPoint("theirs", "json:dumps", "cotlab.things"),
        importlib.metadata.EntryPoint("ours", "json:loads", "cotlab.things"),
    ]
    monkeypatch.setattr(
        "cotlab.core.registry.entry_points",
        lambda group: outside if group == "cotlab.things" else [],
    )
    registry = Registry("thing", {"ours": "math:pi"}, "cotlab.things")
    registry.add("more", "math:e")
    assert set(registry) == {"ours", "theirs", "more"}
    assert registry.require("theirs") == "json:dumps" and registry.require("ours") == "math:pi"


@pytest.mark.parametrize("registry", [PROVIDERS, SCORERS], ids=lambda r: r.kind)
def test_every_name_that_ships_can_be_loaded(registry: Registry) -> None:
    for name in registry:
        assert callable(registry[name])
