"""``cotlab evaluate`` as it is typed: tables, JSON, one message where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotlab.store.database import Store
from tests.support.command import cotlab
from tests.support.stores.evaluated import N_CHAINS, N_STEPS, add_run, is_sound, suite, values

HOSTILE = "[bold]x[/] \x1b[31m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated") / "store"
    store = Store(folder)
    named = [-1 if is_sound(k) else k % N_STEPS for k in range(N_CHAINS)]
    metrics = {"verification": values("perfect"), "weak_link": values("chance")}
    add_run(store, "one", suite(), metrics, named_steps=named)
    metrics = {"verification": values("weak")}
    add_run(store, "two", suite(), metrics, facet={"verifier": HOSTILE})
    return folder


def test_json_is_as_scripts_expect_it(folder: Path) -> None:
    printed = json.loads(cotlab("evaluate", "one", "--json", store=folder).stdout)
    target = printed["targets"]["T1"]
    assert target["n"] == N_CHAINS and set(printed["targets"]) >= {"T1", "T2"}
    assert target["metrics"]["verification"]["auroc"]["point"] == 1
    assert target["metrics"]["random"]["n_undefined"] == 0
    assert target["location"]["first_mistake_step"]["pb_f1"] == 1


def test_tables_have_a_headline_and_the_differences_between_runs(folder: Path) -> None:
    out = cotlab("evaluate", "one", "two", "--target", "T1", store=folder).stdout
    assert "On 60 labelled chains, verification tells more than length and answer_correct" in out
    for word in ("first wrong step", "other run", "does not tell", "length"):
        assert word in out
    assert "\x1b" not in out and "[bold]x[/]" in out


def test_a_metric_chosen_by_its_beginning_leaves_the_baselines(folder: Path) -> None:
    words = ("evaluate", "one", "--metric", "weak", "--json", "--target", "T1")
    printed = json.loads(cotlab(*words, store=folder).stdout)
    assert set(printed["targets"]["T1"]["metrics"]) == {
        "length",
        "answer_correct",
        "random",
        "weak_link",
    }
    assert set(printed["targets"]) == {"T1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "Unknown run 'nowhere'"),
        (("one", "--target", "T9"), "Unknown target 'T9'"),
        (("one", "--metric", "zzz"), "Unknown metric 'zzz'"),
        (("one", "--target", "faithful"), "no labels to compare"),
    ],
)
def test_what_cannot_be_evaluated_is_one_message(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    done = cotlab("evaluate", *words, store=folder, code=2)
    assert message in " ".join(done.stderr.split())
