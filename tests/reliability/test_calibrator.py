"""The three maps from score to probability: known curves, monotone, refusals, and what is kept of
them."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from cotlab.core.keys import canonical_json
from cotlab.reliability.calibrator import select_calibrator
from cotlab.reliability.maps import (
    EPS,
    METHODS,
    Calibrator,
    NotCalibrated,
    assign_folds,
    fit,
    fit_without_minimum,
)

Curve = Callable[[np.ndarray], np.ndarray]
CURVES: dict[str, Curve] = {  # each lies in the family of its method
    "platt": lambda s: expit(7 * s - 4),
    "beta": lambda s: expit(0.6 * np.log(s) - 1.8 * np.log1p(-s) - 0.4),
    "isotonic": lambda s: np.select([s < 0.3, s < 0.6], [0.15, 0.5], 0.85),
}
AT = np.array([0.15, 0.45, 0.75])


def drawn(curve: Curve, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.02, 0.98, n)
    return scores, rng.random(n) < curve(scores)


def refitted(
    method: str, scores: np.ndarray, targets: np.ndarray, times: int, seed: int
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    picks = (rng.integers(0, len(scores), len(scores)) for _ in range(times))
    return np.array(
        [fit_without_minimum(method, scores[pick], targets[pick]).predict(AT) for pick in picks]
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_known_curve_is_recovered_within_the_bootstrap_interval(method: str) -> None:
    scores, targets = drawn(CURVES[method], 1500, seed=11)
    found = refitted(method, scores, targets, 60, seed=1)
    lo, hi = found.min(axis=0), found.max(axis=0)
    truth = CURVES[method](AT)
    assert (lo <= truth).all() and (truth <= hi).all()
    assert (hi - lo).max() < 0.25  # narrow enough that the wrong curve fails:
    other = CURVES["isotonic" if method != "isotonic" else "platt"](AT)
    assert ((other < lo) | (other > hi)).any()


@pytest.mark.soak
@pytest.mark.parametrize("method", ["platt", "beta"])
def test_bootstrap_intervals_of_a_curve_cover_it_as_often_as_they_say(method: str) -> None:
    truth, hits = CURVES[method](AT), np.zeros(3)
    for seed in range(60):
        lo, hi = np.quantile(
            refitted(method, *drawn(CURVES[method], 400, seed), 100, seed), [0.025, 0.975], axis=0
        )
        hits += (lo <= truth) & (truth <= hi)
    assert (hits >= 49).all()  # of 60 at 95 % that is 57, less more than four standard deviations


def test_platt_and_beta_are_the_maximum_likelihood_fits_of_statsmodels() -> None:
    import statsmodels.api as sm

    scores, targets = drawn(CURVES["beta"], 400, seed=3)
    platt = sm.Logit(targets.astype(float), sm.add_constant(scores)).fit(disp=0, tol=1e-12).params
    found = fit("platt", scores, targets).params
    assert (found["intercept"], found["slope"]) == pytest.approx(tuple(platt), rel=1e-5)
    columns = np.column_stack([np.ones(400), np.log(scores), -np.log1p(-scores)])
    c, a, b = sm.Logit(targets.astype(float), columns).fit(disp=0, tol=1e-12).params
    assert min(a, b) > 0
    found = fit("beta", scores, targets).params
    assert (found["a"], found["b"], found["c"]) == pytest.approx((a, b, c), rel=1e-5)


def test_isotonic_by_hand() -> None:
    # the rates at .2 .4 .6 .8 are .25, .6, .4, 1: the two in the middle violate the order and are
    # pooled to .5;
    # 1 becomes 1 − 1/402
    scores = np.repeat([0.2, 0.4, 0.6, 0.8], 100)
    good = np.concatenate([np.arange(100) < k for k in (25, 60, 40, 100)])
    found = fit("isotonic", scores, good).predict([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert found == pytest.approx([0.25, 0.25, 0.5, 0.5, 1 - 1 / 402, 1 - 1 / 402])


def test_a_negative_beta_coefficient_is_set_to_zero_and_told() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.05, 0.95, 600)
    targets = rng.random(600) < expit(-1.5 * np.log1p(-scores) - 1.2 + 0.5 * -np.log(scores))
    found = fit("beta", scores, targets)
    assert found.params["a"] == 0 < found.params["b"] and "the fit of a was negative" in found.note


@pytest.mark.parametrize("method", ["platt", "beta"])
def test_separable_labels_get_a_named_ridge(method: str) -> None:
    scores = np.linspace(0.05, 0.95, 40)
    found = fit(method, scores, scores > 0.5)
    assert "ridge" in found.note
    assert found.predict([0.05])[0] < 0.2 and found.predict([0.95])[0] > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_a_score_that_ranks_the_wrong_way_is_refused_and_never_inverted(method: str) -> None:
    scores, targets = drawn(CURVES["platt"], 400, seed=2)
    with pytest.raises(
        NotCalibrated, match="does not rank acceptable reasoning above unacceptable"
    ):
        fit(method, 1 - scores, targets)
    with pytest.raises(NotCalibrated, match="all 400 scores are equal"):
        fit(method, np.full(400, 0.5), targets)


@pytest.mark.parametrize("method", METHODS)
def test_too_few_labels_and_one_class_are_refused_with_what_is_missing(method: str) -> None:
    scores = np.linspace(0, 1, 400)
    with pytest.raises(NotCalibrated, match="all 400 labels are acceptable"):
        fit(method, scores, np.ones(400))
    with pytest.raises(NotCalibrated, match="4 not acceptable of at least"):
        fit(method, scores, np.arange(400) > 3)
    with pytest.raises(NotCalibrated, match="19 labels of at least"):
        fit(method, scores[:19], np.arange(19) > 9)


def test_isotonic_wants_two_hundred_labels_and_fifty_of_either_class() -> None:
    scores, targets = drawn(CURVES["platt"], 199, seed=1)
    with pytest.raises(NotCalibrated, match="199 labels of at least 200"):
        fit("isotonic", scores, targets)
    some = np.arange(300) >= 49
    with pytest.raises(NotCalibrated, match="49 not acceptable of at least 50"):
        fit("isotonic", np.linspace(0, 1, 300), some)
    assert fit("isotonic", np.linspace(0, 1, 300), np.arange(300) >= 50).method == "isotonic"


@given(
    st.lists(
        st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), st.booleans()),
        min_size=2,
        max_size=40,
    ),
    st.sampled_from(METHODS),
    st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=20),
)
def test_predictions_are_monotone_probabilities(
    rows: list[tuple[float, bool]], method: str, at: list[float]
) -> None:
    scores, targets = [s for s, _ in rows], [y for _, y in rows]
    try:
        found = fit_without_minimum(method, scores, targets)
    except NotCalibrated:
        return
    told = found.predict(sorted(at))
    assert np.isfinite(told).all() and (told >= 0).all() and (told <= 1).all()
    assert (np.diff(told) >= -1e-12).all()
    kept = Calibrator.from_params(json.loads(canonical_json(found.params)))
    assert (kept.predict(sorted(at)) == told).all()


def test_beyond_the_labels_the_map_stays_where_it_was_and_says_so() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.3, 0.7, 300)
    targets = rng.random(300) < expit(9 * scores - 4.5)
    for method in METHODS:
        found = fit(method, scores, targets)
        assert found.predict([0.0, 1.0]) == pytest.approx(
            found.predict([scores.min(), scores.max()])
        )
        assert found.is_outside_range([0.0, 0.5, 1.0, np.nan]).tolist() == [
            True,
            False,
            True,
            False,
        ]
        assert np.isnan(found.predict([np.nan])).all()


def test_a_score_of_exactly_one_does_not_outweigh_all_others() -> None:
    scores, targets = drawn(CURVES["beta"], 200, seed=5)
    without = fit("beta", scores, targets).predict(AT)
    with_one = fit("beta", np.append(scores, 1.0), np.append(targets, False)).predict(AT)
    assert np.abs(with_one - without).max() < 0.1 and EPS == 1e-3


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"method": "magic", "lo": 0, "hi": 1},
        {"method": "platt", "slope": 1.0, "lo": 0, "hi": 1},
    ],
)
def test_what_is_no_calibrator_is_not_read_as_one(params: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no parameters of a calibrator"):
        Calibrator.from_params(params)


@given(
    st.lists(st.tuples(st.integers(0, 14), st.booleans()), min_size=12, max_size=60),
    st.integers(0, 3),
)
def test_folds_never_split_a_question_and_leave_both_classes(
    rows: list[tuple[int, bool]], seed: int
) -> None:
    groups, targets = [q for q, _ in rows], np.array([y for _, y in rows])
    try:
        folds = assign_folds(targets, groups, seed=seed)
    except NotCalibrated:
        return
    assert len({(q, int(k)) for q, k in zip(groups, folds, strict=True)}) == len(set(groups))
    assert 2 <= len(set(folds)) <= 5 and set(folds) == set(range(folds.max() + 1))
    assert all(len(set(targets[folds != k])) == 2 for k in set(folds))


def test_labels_of_one_question_make_no_folds() -> None:
    scores, targets = drawn(CURVES["platt"], 60, seed=0)
    with pytest.raises(
        NotCalibrated, match="60 labels belong to 1 question: .*Label items of more questions"
    ):
        select_calibrator(scores, targets, ["q"] * 60)


@pytest.mark.soak
def test_all_methods_stand_side_by_side_and_the_lowest_brier_is_taken() -> None:
    scores, targets = drawn(CURVES["isotonic"], 600, seed=4)
    found = select_calibrator(scores, targets, [f"q{k // 2}" for k in range(600)])
    assert [trial.method for trial in found.trials] == list(METHODS)
    points = {t.method: t.quality.brier.point for t in found.trials if t.quality is not None}
    assert (
        len(points) == 3
        and found.chosen_trial.method == min(points, key=points.__getitem__) == "isotonic"
    )  # type: ignore[arg-type]
    best = found.chosen_trial.quality
    assert (
        best is not None
        and best.skill is not None
        and best.skill > 0.1
        and (best.gained.hi or 0) < 0
    )
    assert "lowest out-of-fold Brier score" in found.reason and found.raw_auroc.point is not None
    asked = select_calibrator(scores, targets, [f"q{k // 2}" for k in range(600)], method="platt")
    assert asked.chosen_trial.method == "platt" and asked.reason.startswith("platt was requested")


def test_below_two_hundred_labels_isotonic_is_refused_beside_the_others() -> None:
    scores, targets = drawn(CURVES["platt"], 120, seed=8)
    found = select_calibrator(scores, targets, list(range(120)))
    assert {t.method for t in found.trials if t.refusal_reason} == {"isotonic"}
    with pytest.raises(NotCalibrated, match="isotonic: isotonic needs more labels"):
        select_calibrator(scores, targets, list(range(120)), method="isotonic")


def test_a_label_does_not_shape_its_own_out_of_fold_probability() -> None:
    scores, targets = drawn(CURVES["platt"], 100, seed=9)
    folds = np.arange(100) % 5
    turned = targets ^ (folds == 0)
    one, other = (
        select_calibrator(scores, y, list(range(100)), method="platt", folds=folds)
        for y in (targets, turned)
    )
    assert one.chosen_trial.predictions is not None and other.chosen_trial.predictions is not None
    assert (
        one.chosen_trial.predictions[folds == 0] == other.chosen_trial.predictions[folds == 0]
    ).all()
    assert (
        one.chosen_trial.predictions[folds != 0] != other.chosen_trial.predictions[folds != 0]
    ).any()
