"""The hazard of the first mistake: what it learns, its rule, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cotlab.reliability.hazard import (
    HazardModel,
    fit_hazard,
    fit_hazard_with_predictions,
    locate_in_other_domains,
)
from cotlab.reliability.maps import NotCalibrated
from cotlab.stats.ranking import NO_MISTAKE, location_difference, location_measures

NAMES = ("doubt", "noise")


def simulate(
    n: int = 400, seed: int = 0, strength: float = 2.0
) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Chains whose steps are wrong with a hazard that follows one of their features."""
    rng = np.random.default_rng(seed)
    rows, first = [], []
    for chain in range(n):
        n_steps, mistake = int(rng.integers(2, 9)), NO_MISTAKE
        domain = "ab"[chain % 2]
        for step in range(n_steps):
            doubt, noise = rng.normal(size=2)
            logit = -2.5 + strength * doubt + (0.8 if domain == "b" else 0)
            if mistake == NO_MISTAKE and rng.random() < 1 / (1 + np.exp(-logit)):
                mistake = step
            rows.append((chain, domain, doubt, noise if step else np.nan))
        first.append(mistake)
    steps = pd.DataFrame(rows, columns=["chain", "domain", *NAMES])
    return steps, np.array(first), [f"q{k // 2}" for k in range(n)]


def test_it_finds_the_feature_that_makes_mistakes_and_names_steps_out_of_fold() -> None:
    steps, first, questions = simulate()
    fit = fit_hazard_with_predictions(steps, first, questions, names=NAMES)
    weights = {
        (column["feature"], column.get("domain") or column["kind"]): column["weight"]
        for column in fit.model.params["columns"]
    }
    assert weights["doubt", "as_is"] == pytest.approx(2.0, abs=0.35)
    assert abs(weights["noise", "as_is"]) < 0.3 and ("noise", "gap") in weights
    assert 0.3 < 2 * (weights["domain", "b"] - weights["domain", "a"]) < 1.3  # sd: 0.5
    blind = fit_hazard_with_predictions(steps, first, questions, names=("noise",))
    domains = ["ab"[k % 2] for k in range(len(first))]
    difference = location_difference(blind.located, fit.located, first, questions, domains, seed=0)
    assert difference.lo is not None and difference.lo > 0.1
    sound = fit.sound[first == NO_MISTAKE].mean(), fit.sound[first != NO_MISTAKE].mean()
    assert sound[0] > sound[1] + 0.2


def test_probabilities_of_a_chain_sum_to_one_and_survive_json() -> None:
    steps, first, questions = simulate(400)
    model = fit_hazard(steps, first, questions, names=NAMES)
    stored = HazardModel.from_params(json.loads(json.dumps(model.params)))
    assert stored.features == ("doubt", "noise")
    predicted = stored.predict(steps)
    totals = predicted.steps.groupby("chain", sort=False)["first"].sum().to_numpy()
    assert totals + predicted.sound == pytest.approx(np.ones(400))
    assert predicted.steps["hazard"].between(0, 1).all()
    named = predicted.located != NO_MISTAKE
    assert (predicted.located[named] == predicted.likeliest_steps[named]).all()
    assert set(stored.params["domain_thresholds"]) == {"a", "b"}
    elsewhere = stored.predict(steps.assign(domain=None))
    shift = np.array([1 if k % 2 else -1 for k in range(400)])
    assert (np.sign(elsewhere.sound - predicted.sound) == shift).all()
    with pytest.raises(ValueError, match="lacks noise"):
        stored.predict(steps.drop(columns="noise"))
    with pytest.raises(ValueError, match="no parameters of a hazard"):
        HazardModel.from_params({"method": "platt"})


def test_the_rule_balances_exact_steps_and_none() -> None:
    steps, first, questions = simulate(600, seed=1)
    fit = fit_hazard_with_predictions(steps, first, questions, names=NAMES)
    measures = location_measures(fit.located, first, questions, seed=0)
    assert measures.exact.point is not None and measures.none_right.point is not None
    assert measures.exact.point > 0.3 and measures.none_right.point > 0.5


def test_other_domains_only() -> None:
    steps, first, questions = simulate(300, seed=2)
    located = locate_in_other_domains(steps, first, questions, names=NAMES)
    on_b = fit_hazard(
        steps[steps["domain"] == "b"],
        first[1::2],
        questions[1::2],
        names=NAMES,
    )
    expected = on_b.predict(steps[steps["domain"] == "a"]).located
    assert (located[::2] == expected).all()
    alone = steps[steps["domain"] == "a"]
    with pytest.raises(NotCalibrated, match="without the domain a"):
        locate_in_other_domains(alone, first[::2], questions[::2], names=NAMES)


def test_what_cannot_be_fitted_is_refused() -> None:
    steps, first, questions = simulate(60, seed=3)
    few = steps["chain"] < 10
    with pytest.raises(NotCalibrated, match="10 labels of at least 20"):
        fit_hazard(steps[few], first[:10], questions[:10], names=NAMES)
    with pytest.raises(NotCalibrated, match="all 60 labels are acceptable"):
        fit_hazard(steps, np.full(60, NO_MISTAKE), questions, names=NAMES)
    with pytest.raises(NotCalibrated, match="none of the features absent, domain varies"):
        fit_hazard(steps, first, questions, names=("absent",))
    with pytest.raises(ValueError, match="a step of its chain"):
        fit_hazard(steps, np.where(first == NO_MISTAKE, NO_MISTAKE, 9), questions, names=NAMES)
    with pytest.raises(ValueError, match="chains for"):
        fit_hazard(steps, first[1:], questions, names=NAMES)
