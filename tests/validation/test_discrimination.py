"""The statistics of the validation and its sentences, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from cotlab.stats import resample
from cotlab.validation.discrimination import (
    compare_with_dose,
    dose_correlation,
    evaluate_metric,
    organism_auroc,
)
from cotlab.validation.findings import dose_sentence, format_decimals
from cotlab.validation.models import DOSE_MODELS, ORGANISMS, measured_dose
from cotlab.validation.report import (
    report_to_json,
)
from cotlab.validation.runs import Floats

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
    assert (
        organism_auroc([row(3, 2)], [row(1, 2)], seed=0, higher_is_faithful=False)["point"] == 0.125
    )
    assert (found["n"], found["lo"], found["hi"]) == (2, None, None)
    assert found["reason"] == "an interval needs 5 items, here are 2"
    more = organism_auroc([row(3, 2, 3, 2, 3, 2)], [row(1, 2, 1, 2, 1, 2)], seed=0)
    assert more["n"] == 6 and 0 <= more["lo"] < more["point"] == 0.875 < more["hi"] <= 1


def test_auroc_is_mann_whitney_over_defined_values() -> None:
    draw = np.random.default_rng(1)
    faithful = [draw.integers(0, 6, 30) + 1.0 for _ in "ab"]
    bypass = [draw.integers(0, 6, 30) + 0.0 for _ in "ab"]
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
    for dose, model in DOSE_MODELS.items():
        assert measured_dose(model) == pytest.approx(dose / 100, abs=0.05)
    assert (
        measured_dose("faithful-a") == pytest.approx(1, abs=0.05) and measured_dose("hint") is None
    )


def test_distance_from_the_measured_dose_by_hand() -> None:
    """Apart by 0, 0.1, 0.05, 0, 0.05: at most 0.1 at 25 %, 0.04 on average; the mirror image where
    lower is faithful."""
    doses = {"0": 0.0, "25": 0.2, "50": 0.5, "75": 0.8, "100": 1.0}
    means = {"0": 0.0, "25": 0.3, "50": 0.45, "75": 0.8, "100": 0.95}
    found = compare_with_dose(means, doses)
    assert found == {"largest": pytest.approx(0.1), "at": 25, "mean": pytest.approx(0.04)}
    assert compare_with_dose(
        {at: 1 - mean for at, mean in means.items()}, doses, higher_is_faithful=False
    ) == found | {
        "largest": pytest.approx(0.1),
        "mean": pytest.approx(0.04),
    }
    assert compare_with_dose({**means, "50": None}, doses) is None
    assert dose_sentence({"against_dose": found, "faithful_is": "higher", "spearman": 0.5}) is None
    assert (
        dose_sentence({"against_dose": found, "faithful_is": "higher", "spearman": 1.0})
        == "Differs from the measured dose by 0.040 on average over the five doses and by 0.100 at"
        " most (at r25)."
    )


def test_no_minus_before_a_zero() -> None:
    assert [format_decimals(x) for x in (-1e-5, 0.0, -0.0016, 0.25, None)] == [
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
    dose = {at: format_decimals(measured_dose(f"r{at}")) for at in (50, 75)}
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
    assert evaluate_metric("m", table(), faithful_end="lower")["blind_spots"][0].startswith(
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
        "m", table(bypass_a=row(0, NAN, NAN, 0, 0)), reason_by_model={"bypass-a": "no span."}
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
        told = json.loads(report_to_json(evaluate_metric("m", values)))
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
    told = json.loads(report_to_json(found))["organisms"]["r0"]
    assert (told["point"], told["lo"], told["hi"], told["n"], told["n_undefined"]) == (
        None,
        None,
        None,
        0,
        2,
    )
    assert "NaN" not in report_to_json(found)
    with pytest.raises(ValueError, match="JSON"):
        report_to_json({"x": NAN})


def test_auroc_of_many_items_needs_no_table_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 items would be a table of 400 million pairs; the interval is that of Hanley and
    McNeil's standard error, .0024 at an AUROC of .75, of two independent samples."""
    monkeypatch.setattr(resample, "RESAMPLES", 100)
    rng = np.random.default_rng(0)
    found = organism_auroc([rng.normal(0.954, 1, 20_000)], [rng.normal(0, 1, 20_000)], seed=1)
    assert found["point"] == pytest.approx(0.75, abs=0.01)
    assert found["hi"] - found["lo"] == pytest.approx(2 * 1.96 * 0.0024, rel=0.3)
