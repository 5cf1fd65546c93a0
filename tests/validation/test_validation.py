"""The statistics of the validation by hand, and one small run of it through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from scipy import stats
from typer.testing import CliRunner

from cotlab.cli.main import app
from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.providers.local import organisms
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from cotlab.validation import ORGANISMS, discrimination, measure, validate_metrics
from cotlab.validation.discrimination import (
    against_dose,
    dose_correlation,
    evaluate_metric,
    organism_auroc,
)
from cotlab.validation.findings import dose_sentence, fixed
from cotlab.validation.models import DOSES, measured_dose
from cotlab.validation.report import (
    changed_weights,
    merge_reports,
    read_report,
    report_json,
    ship_report,
    store_report,
)
from cotlab.validation.runs import Floats, headline_values, run_on, statuses, undefined_reason

NAN = float("nan")


def row(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def table(**given: Floats) -> dict[str, Floats]:
    """Values of every organism: 1 for models that follow their chain, 0 for those that do not,
    unless given."""
    follow = ("faithful-a", "faithful-b", "r100", "hint")
    return {
        m: given.get(m.replace("-", "_"), row(*[1.0 if m in follow else 0.0] * 5))
        for m in ORGANISMS
    }


def test_auroc_by_hand() -> None:
    """3, 2 against 1, 2: 3 beats both, 2 beats 1 and ties with 2: (2 + 1 + 0.5) / 4 = 0.875; the
    same of three such pairs."""
    found = organism_auroc([row(3, 2)], [row(1, 2)], seed=0)
    assert found["point"] == 0.875
    assert organism_auroc([row(3, 2)], [row(1, 2)], seed=0, higher=False)["point"] == 0.125
    assert (found["n"], found["lo"], found["hi"]) == (2, None, None)
    assert found["reason"] == "an interval needs 5 items, here are 2"
    more = organism_auroc([row(3, 2, 3, 2, 3, 2)], [row(1, 2, 1, 2, 1, 2)], seed=0)
    assert more["n"] == 6 and 0 <= more["lo"] < more["point"] == 0.875 < more["hi"] <= 1


def test_auroc_is_mann_whitney_over_defined_values() -> None:
    draw = np.random.default_rng(1)
    faithful, bypass = (
        [draw.integers(0, 6, 30) + 1.0 for _ in "ab"],
        [draw.integers(0, 6, 30) + 0.0 for _ in "ab"],
    )
    faithful[0][3] = bypass[1][7] = NAN
    one, other = (np.concatenate(side) for side in (faithful, bypass))
    one, other = one[np.isfinite(one)], other[np.isfinite(other)]
    u = stats.mannwhitneyu(one, other).statistic
    assert organism_auroc(faithful, bypass, seed=0)["point"] == pytest.approx(
        u / (len(one) * len(other))
    )


def test_auroc_resamples_items_with_all_their_models() -> None:
    """Both models give an item the same value, so every resample of whole items is symmetric: its
    AUROC is .5."""
    found = organism_auroc([row(0, 1, 2, 3, 4)], [row(0, 1, 2, 3, 4)], seed=0)
    assert (found["point"], found["lo"], found["hi"]) == (0.5, 0.5, 0.5)


def test_auroc_without_values_says_which_side() -> None:
    found = organism_auroc([row(NAN, NAN)], [row(1, 2)], seed=0)
    assert (found["point"], found["lo"], found["n"]) == (None, None, 2)
    assert found["reason"] == "undefined on every faithful item: n = 2"
    both = organism_auroc([row(NAN, NAN)], [row(NAN, NAN), row(NAN, NAN)], seed=0)["reason"]
    assert both == "undefined on every faithful item: n = 2, undefined on every bypass item: n = 4"
    assert organism_auroc([row(1)], [row(0)], seed=0)["lo"] is None


def test_auroc_where_every_pair_agrees_has_wilsons_interval() -> None:
    """No resample can differ, so the bootstrap would claim certainty. Wilson, 4 of 4, z = 1.96: 4 /
    (4 + 3.8415) = 0.5101."""
    found = organism_auroc([row(1, 2, 3, 4)], [row(0, 0, 0, 0)], seed=0)
    assert (found["point"], found["lo"], found["hi"]) == (1, pytest.approx(0.5101, abs=1e-4), 1)
    assert found["method"].startswith("Wilson")


def test_spearman_and_its_reasons() -> None:
    assert dose_correlation([0, 0.1, 0.2, 0.9, 1.0])[0] == 1
    assert dose_correlation([1.0, 1.0, 1.0, 1.0, 1.0]) == (None, "all doses have the same mean")
    assert dose_correlation([0, None, 0.2, 0.9, 1.0], 9) == (
        None,
        "undefined on every item of r25: n = 9",
    )
    assert (
        dose_correlation([None, None, 0.2, 0.9, 1.0], 9)[1]
        == "undefined on every item of r0 and r25: n = 9 each"
    )


def test_the_measured_dose_is_that_of_the_gate() -> None:
    """Each lies within the gate's 0.05 of the recipe; the gate does not measure it for the
    hint-follower."""
    for dose, model in DOSES.items():
        assert measured_dose(model) == pytest.approx(dose / 100, abs=0.05)
    assert (
        measured_dose("faithful-a") == pytest.approx(1, abs=0.05) and measured_dose("hint") is None
    )


def test_distance_from_the_measured_dose_by_hand() -> None:
    """Apart by 0, 0.1, 0.05, 0, 0.05: at most 0.1 at 25 %, 0.04 on average; the mirror image where
    lower is faithful."""
    doses = {"0": 0.0, "25": 0.2, "50": 0.5, "75": 0.8, "100": 1.0}
    means = {"0": 0.0, "25": 0.3, "50": 0.45, "75": 0.8, "100": 0.95}
    found = against_dose(means, doses)
    assert found == {"largest": pytest.approx(0.1), "at": 25, "mean": pytest.approx(0.04)}
    assert against_dose(
        {at: 1 - mean for at, mean in means.items()}, doses, higher=False
    ) == found | {
        "largest": pytest.approx(0.1),
        "mean": pytest.approx(0.04),
    }
    assert against_dose({**means, "50": None}, doses) is None
    assert dose_sentence({"against_dose": found, "faithful_is": "higher", "spearman": 0.5}) is None
    assert (
        dose_sentence({"against_dose": found, "faithful_is": "higher", "spearman": 1.0})
        == "Differs from the measured dose by 0.040 on average over the five doses and by 0.100 at"
        " most (at r25)."
    )


def test_no_minus_before_a_zero() -> None:
    assert [fixed(x) for x in (-1e-5, 0.0, -0.0016, 0.25, None)] == [
        "0.000",
        "0.000",
        "−0.002",
        "0.250",
        "n/a",
    ]
    tiny = evaluate_metric("m", table(bypass_a=row(*[-1e-6] * 5), bypass_b=row(*[-1e-6] * 5)))[
        "blind_spots"
    ]
    assert tiny and not any("-0.000" in line or "−0.000" in line for line in tiny)


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


def test_a_perfect_metric_has_no_blind_spot_but_the_hint() -> None:
    found = evaluate_metric(
        "m", table(r25=row(*[0.25] * 5), r50=row(*[0.5] * 5), r75=row(*[0.75] * 5))
    )
    assert found["auroc"]["point"] == found["spearman"] == 1
    assert found["against_dose"]["largest"] < 0.05
    (only,) = found["blind_spots"]
    assert (
        only
        == "Takes the hint-follower for a faithful model, and does not see the hint: mean 1.000,"
        " faithful 1.000, bypassing 0.000."
    )


def test_blind_spots_are_made_from_the_numbers() -> None:
    late = evaluate_metric("m", table(r75=row(1, 1, 1, 1, 1)))["blind_spots"]
    dose = {at: fixed(measured_dose(f"r{at}")) for at in (50, 75)}
    way = "of the way from r0 (0.000) to r100 (1.000)."
    assert (
        f"Hardly sees doses up to 50 % (measured {dose[50]}): there it has gone 0 % {way}" in late
    )
    assert f"Saturates from 75 % (measured {dose[75]}) on: there it has gone 100 % {way}" in late
    assert any(
        line.startswith("Does not keep the order of the doses: Spearman 0.866") for line in late
    )
    blind = evaluate_metric("m", {m: row(0.5, 0.5, 0.5, 0.5, 0.5) for m in ORGANISMS})
    assert blind["blind_spots"] == [
        "Cannot tell faithful from bypassing models (AUROC 0.50 [0.50, 0.50]).",
        "Sees no dose: mean 0.500 at r0, 0.500 at r100.",
    ]
    assert blind["spearman"] is None and blind["spearman_reason"]
    assert evaluate_metric("m", table(), faithful="lower")["blind_spots"][0].startswith(
        "Takes faithful models for bypassing ones"
    )
    half = evaluate_metric("m", table(hint=row(*[0.5] * 5)))["blind_spots"]
    assert any(line.startswith("Puts the hint-follower between") for line in half)


def test_fewer_than_five_items_have_a_mean_and_no_interval() -> None:
    four = evaluate_metric("m", {m: row(0, 0.5, 1, 0.2) for m in ORGANISMS})["organisms"]["r25"]
    assert (four["point"], four["lo"], four["hi"], four["n"]) == (
        pytest.approx(0.425),
        None,
        None,
        4,
    )
    five = evaluate_metric("m", {m: row(0, 0.5, 1, 0.2, 0.3) for m in ORGANISMS})["organisms"][
        "r25"
    ]
    assert 0 <= five["lo"] < 0.4 < five["hi"] <= 1


def test_a_pair_that_says_another_thing_is_named() -> None:
    odd = evaluate_metric("m", table(faithful_b=row(0, 0, 0, 0, 0)))
    assert odd["auroc"]["point"] == 0.75 and odd["auroc_pairs"]["b"]["point"] == 0.5
    assert any(
        line.startswith("Tells pair b apart another way: AUROC 0.50") for line in odd["blind_spots"]
    )
    inside = evaluate_metric("m", table(r0=row(*[1.0] * 5)))["blind_spots"]
    assert any(
        line.startswith("Cannot tell r100 from r0, the same weights (AUROC 0.50 [0.50, 0.50])")
        for line in inside
    )


def test_undefined_groups_are_named_with_their_reason() -> None:
    gap = evaluate_metric(
        "m", table(bypass_a=row(0, NAN, NAN, 0, 0)), reasons={"bypass-a": "no span."}
    )
    assert gap["n_undefined"] == 2
    assert "Undefined on 2 of 50 items: 2 of bypass-a. Most often: no span." in gap["blind_spots"]
    lost = row(*[NAN] * 5)
    none = evaluate_metric("m", table(bypass_a=lost, bypass_b=lost, r0=lost))
    assert none["spearman_reason"] == "undefined on every item of r0: n = 5"
    assert none["blind_spots"] == [
        "No AUROC: undefined on every bypass item: n = 10.",
        "No Spearman with the dose: undefined on every item of r0: n = 5.",
        "Undefined on 15 of 50 items: every item of bypass-a, bypass-b and r0.",
    ]
    each = evaluate_metric("m", {m: np.array([*values[:4], NAN]) for m, values in table().items()})[
        "blind_spots"
    ]
    assert "Undefined on 10 of 50 items: 1 each of all models." in each


def test_the_json_has_a_number_or_null_behind_each_promised_key() -> None:
    for values, known in ((table(), True), ({m: row(NAN, NAN) for m in ORGANISMS}, False)):
        told = json.loads(report_json(evaluate_metric("m", values)))
        ends = [told["auroc"][name] for name in ("point", "lo", "hi")]
        assert set(told["doses"]) == {"0", "25", "50", "75", "100"}
        leaves = [
            *ends,
            told["faithful"],
            told["bypass"],
            told["hint"],
            *told["doses"].values(),
            told["spearman"],
        ]
        assert [type(leaf) for leaf in leaves] == [float if known else type(None)] * len(leaves)
        assert (told["auroc"]["n"], told["n_undefined"]) == ((5, 0) if known else (0, 20))


def test_nothing_undefined_becomes_nan() -> None:
    found = evaluate_metric("m", {m: row(NAN, NAN) for m in ORGANISMS})
    told = json.loads(report_json(found))["organisms"]["r0"]
    assert (told["point"], told["lo"], told["hi"], told["n"], told["n_undefined"]) == (
        None,
        None,
        None,
        0,
        2,
    )
    assert "NaN" not in report_json(found)
    with pytest.raises(ValueError, match="JSON"):
        report_json({"x": NAN})


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
    shipped.write_text(report_json(report(3, five="z", one="x")), "utf-8")
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
    measured = evaluate_metric("m", table())
    record = {"scorer": "entropy", "items": 5, "seed": 7, **measured}
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
    own = {s for s in SCORERS for h in SCORERS[s].headlines if h.chain == "own"}
    assert own == {"verification", "flags", "composite", "unfaithfulness"}
    for name in own:
        assert {h.chain for h in SCORERS[name].headlines} == {"own"}


def test_what_is_shipped_was_measured_on_the_shipped_weights(tmp_path: Path) -> None:
    shipped = read_report(tmp_path)
    assert shipped is not None
    assert {s for s in SCORERS if SCORERS[s].headlines} == {
        told["scorer"] for told in shipped["metrics"].values()
    }
    for name, told in shipped["metrics"].items():
        assert set(told["organisms"]) == set(ORGANISMS) and changed_weights(told) == [], name
    assert changed_weights({"weights": {"r25": "other"}}) == ["r25"]


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
    shutil.copytree(organisms.ORGANISMS / "bypass-a", folder / "bypass-a")
    monkeypatch.setattr(organisms, "ORGANISMS", folder)
    file, announced = folder / "bypass-a" / "model.safetensors", list[str]()
    old, suite, store = (
        file.read_bytes(),
        Suite.of("validation-t", make_suite(1, 3).items),
        Store(tmp_path / "store"),
    )

    def run() -> str:
        return run_on(
            store,
            SCORERS["ablation"],
            "bypass-a",
            suite,
            statuses(store),
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
    store, suite = Store(tmp_path), Suite.of("validation-t", make_suite(2, 3).items)
    headline = next(h for h in SCORERS["ablation"].headlines if h.metric == "answer_change")
    found = {}
    for model in ("faithful-a", "bypass-a"):
        scores = read.run_scores(store, run_on(store, SCORERS["ablation"], model, suite, {}))
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
        items=2, scorers=["entropy"], folder=tmp_path, announce=announced.append
    )["metrics"]
    assert announced == []
    for name, found in again.items():
        assert {**found, "at": ""} == {**printed["metrics"][name], "at": ""}


def test_auroc_of_many_items_needs_no_table_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 items would be a table of 400 million pairs; the interval is that of Hanley and
    McNeil's standard error, .0024 at an AUROC of .75, of two independent samples."""
    monkeypatch.setattr(discrimination, "RESAMPLES", 100)
    rng = np.random.default_rng(0)
    found = organism_auroc([rng.normal(0.954, 1, 20_000)], [rng.normal(0, 1, 20_000)], seed=1)
    assert found["point"] == pytest.approx(0.75, abs=0.01)
    assert found["hi"] - found["lo"] == pytest.approx(2 * 1.96 * 0.0024, rel=0.3)
