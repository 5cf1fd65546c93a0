"""The combination of features: a known logistic curve is found again, gaps and edges are held,
nothing unseen is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from cotlab.reliability.combination import Combination
from cotlab.reliability.combine import fit_columns, fit_combination, fit_with_predictions
from cotlab.reliability.hazard import HazardModel
from cotlab.reliability.maps import NotCalibrated
from cotlab.stats.calibration import auroc, brier, ece

NAMES = ("V", "C", "mass_lost")


def drawn(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, targets and the probability they were drawn with: V helps, mass_lost hurts, C says
    nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.random(n) for name in NAMES})
    truth = expit(5 * table["V"] - 4 * table["mass_lost"] - 0.5).to_numpy()
    return table, rng.random(n) < truth, truth


def test_a_known_curve_is_found_again() -> None:
    """1,000 labels of a logistic curve: the fitted probabilities lie close to those that the
    targets were drawn with."""
    table, y, _ = drawn(1000, 1)
    fresh, fresh_y, truth = drawn(3000, 2)
    found = fit_combination(table, y, names=NAMES)
    p = found.predict(fresh)
    assert np.abs(p - truth).mean() < 0.04
    assert ece(p, fresh_y) < 0.05
    assert brier(p, fresh_y) - brier(truth, fresh_y) < 0.005
    alone = max(auroc(fresh["V"], fresh_y) or 0, 1 - (auroc(fresh["mass_lost"], fresh_y) or 1))
    assert (auroc(p, fresh_y) or 0) > alone + 0.05


def test_without_a_penalty_it_is_the_logistic_regression_of_statsmodels() -> None:
    """Golden: sm.Logit(y, standardised columns).fit() of the same columns."""
    import statsmodels.api as sm

    table, y, _ = drawn(400, 3)
    table = table.rename(columns={"V": "hedging", "mass_lost": "length"})
    names = ["hedging", "length"]
    own = fit_columns(table, y.astype(float), names, [1e-9])
    x = (table[names] - table[names].mean()) / table[names].std(ddof=0)
    theirs = sm.Logit(y.astype(float), sm.add_constant(x.to_numpy())).fit(disp=0)
    weights = [own["intercept"], *(column["weight"] for column in own["columns"])]
    np.testing.assert_allclose(weights, theirs.params, atol=1e-5)


def test_more_of_a_part_whose_direction_is_known_never_lowers_the_probability() -> None:
    """V is drawn to hurt: its weight is held at 0 and not turned round; the direction of mass_lost
    is free."""
    table, y, _ = drawn(300, 4)
    turned = pd.DataFrame({"V": 1 - table["V"], "mass_lost": table["mass_lost"]})
    found = fit_combination(turned, y, names=("V", "mass_lost"))
    weights = {(c["feature"], c["kind"]): c["weight"] for c in found.params["columns"]}
    assert all(weight == 0 for (name, _), weight in weights.items() if name == "V")
    at = pd.DataFrame({"V": [0.5, 0.5], "mass_lost": [0.1, 0.9]})
    low, high = found.predict(at)
    assert low > high


def test_gaps_have_a_column_of_their_own_and_a_row_of_gaps_has_no_probability() -> None:
    """Where a gap goes with unacceptable chains, the gap lowers the probability; nothing known
    gives NaN, not a number."""
    table, y, _ = drawn(400, 5)
    gone = ~y & (np.arange(400) % 2 == 0)
    table.loc[gone, "C"] = np.nan
    found = fit_combination(table, y, names=NAMES)
    one = pd.DataFrame(
        {"V": [0.6, 0.6, np.nan], "C": [0.5, np.nan, np.nan], "mass_lost": [0.4, 0.4, np.nan]}
    )
    there, without, nothing = found.predict(one)
    assert without < there - 0.2
    assert np.isnan(nothing)


def test_beyond_the_labels_a_value_counts_as_their_edge() -> None:
    table, y, _ = drawn(200, 6)
    table["V"] = 0.3 + 0.4 * table["V"]
    found = fit_combination(table, y, names=("V",))
    edge = found.params["features"]["V"]
    p = found.predict(pd.DataFrame({"V": [0.0, edge["lo"], edge["hi"], 1.0]}))
    assert p[0] == p[1] < p[2] == p[3]


def test_parameters_survive_json() -> None:
    table, y, _ = drawn(100, 7)
    found = fit_combination(table, y, names=NAMES)
    again = Combination.from_params(json.loads(json.dumps(found.params, allow_nan=False)))
    np.testing.assert_array_equal(again.predict(table), found.predict(table))
    with pytest.raises(ValueError, match="no parameters of a combination"):
        Combination.from_params({"method": "platt"})
    with pytest.raises(ValueError, match="lacks V"):
        found.predict(table[["C", "mass_lost"]])


def test_out_of_fold_predictions_do_not_see_their_question() -> None:
    """Noise with two labels a question, equal within it: seen questions would rank far above
    chance."""
    rng = np.random.default_rng(8)
    values, y = rng.random(60), rng.random(60) < 0.5
    table = pd.DataFrame({"V": np.repeat(values, 2), "C": np.repeat(rng.random(60), 2)})
    found = fit_with_predictions(
        table, np.repeat(y, 2), [str(k // 2) for k in range(120)], names=("V", "C")
    )
    assert all(found.folds[2 * k] == found.folds[2 * k + 1] for k in range(60))
    assert (auroc(found.predictions, np.repeat(y, 2)) or 0) < 0.65


def test_too_few_labels_one_class_and_dead_features_are_refused() -> None:
    table, y, _ = drawn(100, 9)
    with pytest.raises(NotCalibrated, match="all 100 labels are acceptable"):
        fit_combination(table, np.ones(100), names=NAMES)
    with pytest.raises(NotCalibrated, match="10 labels"):
        fit_combination(table[:10], y[:10], names=NAMES)
    dead = table.assign(C=1.0)
    assert fit_combination(dead, y, names=NAMES).params["left_out"] == {"C": "does not vary"}
    with pytest.raises(NotCalibrated, match="none of the features"):
        fit_combination(dead, y, names=("C", "D"))


def test_a_stored_version_predicts_what_it_did() -> None:
    """Golden: parameters, rows and probabilities of the two stored fits of the version before
    scikit-learn fitted them."""
    stored = json.loads((Path(__file__).parent / "stored_models.json").read_text("utf-8"))
    for name, model in (("combination", Combination), ("hazard", HazardModel)):
        entry = stored[name]
        rows = pd.DataFrame(entry["rows"])
        numeric = [c for c in rows if c not in ("domain", "domain_or_suite", "chain")]
        predicted = model.from_params(entry["params"]).predict(
            rows.astype(dict.fromkeys(numeric, float))
        )
        if name == "combination":
            expected = np.array([np.nan if p is None else p for p in entry["probabilities"]])
            np.testing.assert_allclose(predicted, expected, rtol=1e-13)
        else:
            np.testing.assert_allclose(predicted.steps["first"], entry["first"], rtol=1e-13)
            np.testing.assert_allclose(predicted.sound, entry["sound"], rtol=1e-13)
            assert predicted.located.tolist() == entry["located"]
