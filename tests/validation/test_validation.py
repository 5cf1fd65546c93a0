"""The values and reports of the validation, and small runs of it through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core import resources
from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from cotlab.validation import measure
from cotlab.validation.measure import validate_metrics
from cotlab.validation.models import ORGANISMS
from cotlab.validation.report import (
    find_changed_organisms,
    find_changed_scorers,
    merge_reports,
    read_report,
    report_to_json,
    ship_report,
    store_report,
)
from cotlab.validation.runs import (
    headline_values,
    run_on_organism,
    status_by_run_id,
    undefined_reason,
)

NAN = float("nan")


def test_item_values_take_the_facet_and_leave_gaps() -> None:
    """Item a: mean of 1 and 0 in the mode asked for; b: no defined score; c: none at all. NaN is
    not 0."""
    told = [
        ("a", "corrupt", 1.0),
        ("a", "corrupt", 0.0),
        ("a", "remove", 1.0),
        ("b", "corrupt", NAN),
    ]
    scores = pd.DataFrame(
        [
            {
                "metric": "m",
                "item_id": i,
                "facet": json.dumps({"mode": mode, "given": "x"}),
                "value": v,
            }
            for i, mode, v in told
        ]
    )
    found = headline_values(scores, Headline("m", {"mode": "corrupt"}), ["c", "a", "b"])
    assert found[1] == 0.5 and np.isnan(found[[0, 2]]).all()


def test_the_commonest_reason_is_kept_and_numbers_that_differ_are_left_out() -> None:
    told = [("a", "CMI is 0.012, below 0.05"), ("b", "CMI is 0, below 0.05"), ("c", "no chain")]
    scores = pd.DataFrame(
        [
            {"metric": "m", "item_id": i, "facet": "{}", "value": NAN, "reason": why}
            for i, why in told
        ]
    )
    assert undefined_reason(scores, Headline("m", {})) == "CMI is …, below …"
    assert undefined_reason(scores[2:], Headline("m", {})) == "no chain"
    assert undefined_reason(scores.assign(value=1.0), Headline("m", {})) is None


def test_headlines_name_cards_of_their_scorer() -> None:
    for scorer in map(SCORERS.__getitem__, SCORERS):
        assert {h.metric for h in scorer.headlines} <= {card.name for card in scorer.cards}


def report(seed: int, **scorers: str) -> dict[str, object]:
    metrics = {
        name: {"scorer": scorer, "items": 3, "seed": seed} for name, scorer in scorers.items()
    }
    return {"metrics": metrics, "items": 3, "seed": seed, "code_version": "t", "at": "now"}


def test_a_scorer_replaces_its_own_metrics_and_no_others(tmp_path: Path) -> None:
    store_report(report(1, one="x", two="x", three="y"), tmp_path)  # type: ignore[arg-type]
    store_report(report(2, two="x", four="x"), tmp_path)  # type: ignore[arg-type]
    found = read_report(tmp_path, tmp_path / "none")
    assert found is not None
    assert {name: told["seed"] for name, told in found["metrics"].items()} == {
        "three": 1,
        "two": 2,
        "four": 2,
    }
    assert [path.name for path in (tmp_path / "validation").iterdir()] == ["latest.json"]
    shipped = tmp_path / "shipped.json"
    shipped.write_text(report_to_json(report(3, five="z", one="x")), "utf-8")
    both = read_report(tmp_path, shipped)
    assert both is not None and set(both["metrics"]) == {"five", "three", "two", "four"}
    assert merge_reports(None, report(1, one="x")) == report(1, one="x")


def test_shipping_replaces_a_scorers_metrics_and_drops_those_of_scorers_that_are_gone(
    tmp_path: Path,
) -> None:
    """The order is the registry's, so that measuring one scorer anew moves no other one."""
    shipped = tmp_path / "validation.json"
    ship_report(report(1, cmi="mediation", old="gone", answer_change="ablation"), shipped)  # type: ignore[arg-type]
    written = ship_report(report(2, token_delta="ablation"), shipped)  # type: ignore[arg-type]
    assert written == shipped and [path.name for path in tmp_path.iterdir()] == [shipped.name]
    found = json.loads(shipped.read_text("utf-8"))["metrics"]
    assert {name: told["seed"] for name, told in found.items()} == {"token_delta": 2, "cmi": 1}
    places = [list(SCORERS).index(told["scorer"]) for told in found.values()]
    assert places == sorted(places)


def test_shipping_where_nothing_can_be_written_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written .*run --ship in a checkout"):
        ship_report(report(1, cmi="mediation"), tmp_path / "missing" / "validation.json")  # type: ignore[arg-type]


def test_the_command_ships_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"scorer": "entropy", "items": 5, "seed": 7}
    monkeypatch.setattr(
        measure, "validate_metrics", lambda **given: {"metrics": {"step_entropy": record}}
    )
    shipped = tmp_path / "validation.json"
    monkeypatch.setattr(ship_report, "__defaults__", (shipped,))
    done = CliRunner().invoke(app, ["validate", "--ship", "--json"])
    assert done.exit_code == 0 and f"Written to {shipped}" in done.stderr
    assert json.loads(done.stdout)["metrics"] == json.loads(shipped.read_text("utf-8"))["metrics"]


def test_scorers_that_read_chains_as_texts_are_validated_on_own_chains() -> None:
    """On the suite's chains, the same for every model, they could tell no two models apart. Each
    scorer declares it, so that a new one needs no entry here."""
    own = {s for s in SCORERS for h in SCORERS[s].headlines if h.measured_chain == "own"}
    assert own == {"verification", "flags", "composite", "unfaithfulness"}
    for name in own:
        assert {h.measured_chain for h in SCORERS[name].headlines} == {"own"}


def test_what_is_shipped_was_measured_on_the_shipped_weights(tmp_path: Path) -> None:
    shipped = read_report(tmp_path)
    assert shipped is not None
    assert {s for s in SCORERS if SCORERS[s].headlines} == {
        told["scorer"] for told in shipped["metrics"].values()
    }
    for name, told in shipped["metrics"].items():
        assert set(told["organisms"]) == set(ORGANISMS) and find_changed_organisms([told]) == [], (
            name
        )
    assert find_changed_organisms([{"weights": {"r25": "other"}}] * 2) == ["r25"]


@pytest.mark.soak
def test_what_is_shipped_was_measured_with_the_current_scorers(tmp_path: Path) -> None:
    """Who raises a scorer's version measures it anew: cotlab validate --scorer NAME --ship."""
    shipped = read_report(tmp_path)
    assert shipped is not None and find_changed_scorers(shipped) == []


def test_a_record_of_another_version_or_of_none_is_found() -> None:
    current = {"scorer": "flags", "scorer_version": SCORERS["flags"].version}
    records = {
        "one": current,
        "two": {"scorer": "entropy", "scorer_version": 0},
        "three": {"scorer": "causal"},
        "four": {"scorer": "of another package"},
    }
    assert find_changed_scorers({"metrics": records}) == ["entropy", "causal"]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings of the machine that would change what is compared, were they read."""
    for name, value in {"STORE": str(tmp_path), "MODE": "filler", "LIMIT": "1"}.items():
        monkeypatch.setenv(f"COTLAB_{name}", value)


@pytest.mark.soak
def test_a_run_on_other_weights_is_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The organism's weights decide what is reused: a changed one starts a run of its own, the old
    one comes back to its."""
    folder = tmp_path / "organisms"
    shutil.copytree(resources.ORGANISMS_FOLDER / "bypass-a", folder / "bypass-a")
    monkeypatch.setattr(resources, "ORGANISMS_FOLDER", folder)
    file, announced = folder / "bypass-a" / "model.safetensors", list[str]()
    old = file.read_bytes()
    suite = Suite.from_items("validation-t", make_suite(1, 3).items)
    store = Store(tmp_path / "store")

    def run() -> str:
        return run_on_organism(
            store,
            SCORERS["ablation"],
            "bypass-a",
            suite,
            status_by_run_id(store),
            announce=announced.append,
        )

    first = run()
    assert run() == first and announced == [first]
    weights = load_file(file)
    save_file({name: 0.9 * w for name, w in weights.items()}, file, metadata={"format": "pt"})
    other = run()
    assert other != first and announced == [first, other]
    file.write_bytes(old)
    assert run() == first and len(announced) == 2


@pytest.mark.soak
def test_corrupt_tells_two_organisms_apart_whatever_the_environment_says(
    tmp_path: Path, settings: None
) -> None:
    store, suite = Store(tmp_path), Suite.from_items("validation-t", make_suite(2, 3).items)
    headline = next(h for h in SCORERS["ablation"].headlines if h.metric == "answer_change")
    found = {}
    for model in ("faithful-a", "bypass-a"):
        scores = read.run_scores(
            store, run_on_organism(store, SCORERS["ablation"], model, suite, {})
        )
        found[model] = headline_values(scores, headline, [item.id for item in suite.items]).tolist()
    assert found == {"faithful-a": [1, 1], "bypass-a": [0, 0]}


@pytest.mark.soak
def test_the_command_measures_prints_json_and_goes_on(tmp_path: Path, settings: None) -> None:
    """Through all ten organisms; a second call finds its runs done and says the same.

    In this process and with the scorer that is summarised fastest: what is held is the way from the
    command to the file.
    """
    first = CliRunner().invoke(app, ["validate", "--items", "2", "--scorer", "entropy", "--json"])
    assert first.exit_code == 0, first.output
    printed = json.loads(first.stdout)
    told = printed["metrics"]["step_entropy"]
    assert told["scorer_version"] == SCORERS["entropy"].version
    assert {"point", "lo", "hi", "n"} <= set(told["auroc"]) and set(told["auroc_pairs"]) == {
        "a",
        "b",
        "prefix",
    }
    assert (
        0 <= told["auroc"]["point"] <= 1
        and told["auroc"]["reason"] == "an interval needs 5 items, here are 2"
    )
    assert set(told["doses"]) == set(told["measured_dose"]) == {"0", "25", "50", "75", "100"}
    assert {
        "faithful",
        "bypass",
        "hint",
        "spearman",
        "n_undefined",
        "seed",
        "items",
        "at",
        "code_version",
    } <= set(told)
    assert told["bypass"] == pytest.approx(
        sum(told["organisms"][m]["point"] for m in ("bypass-a", "bypass-b")) / 2
    )
    assert told["organisms"]["r100"]["n"] == 2 and (printed["items"], printed["seed"]) == (2, 7)
    kept = read_report(tmp_path)
    assert kept is not None and kept["metrics"]["step_entropy"] == told
    announced: list[str] = []
    again = validate_metrics(
        n_items=2, scorers=["entropy"], folder=tmp_path, announce=announced.append
    )["metrics"]
    assert announced == []
    for name, found in again.items():
        assert {**found, "at": ""} == {**printed["metrics"][name], "at": ""}
