"""PSI, KL, KS and the energy distance: values by hand, nulls that hold, shifts that are found, and
what is undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cotlab.stats import resample
from cotlab.stats.drift import (
    MIN_VALUES,
    Measured,
    feature_drift,
    joint_drift,
    standardise_columns,
)
from cotlab.stats.shuffles import Shuffles


def shuffles(n: int, m: int, *, permutations: int = 199, seed: int = 1) -> Shuffles:
    return Shuffles(range(n), range(n, n + m), permutations=permutations, seed=seed)


def value(measured: Measured) -> float:
    assert measured.value is not None
    return measured.value


def test_psi_of_two_values_by_hand() -> None:
    """Reference 30 zeros and 10 ones, current 10 and 30; half a count is added to each of the two
    bins.

    Shares (30.5, 10.5) / 41 and back; each KL is (20/41) ln(30.5/10.5), PSI is their sum.
    """
    found = feature_drift([0.0] * 30 + [1.0] * 10, [0.0] * 10 + [1.0] * 30, shuffles(40, 40))
    one = 20 / 41 * math.log(30.5 / 10.5)
    assert value(found.kl) == pytest.approx(one) and value(found.kl_back) == pytest.approx(one)
    assert (
        value(found.psi) == pytest.approx(2 * one)
        and found.bins == 2
        and value(found.ks) == pytest.approx(0.5)
    )


def test_psi_of_quantile_bins_by_hand() -> None:
    """Reference 0..39, bins for each 5 of 20 values: 4 of the reference's quarters; current lies in
    the top one.

    Reference shares 10.5/42 each; current 0.5/22 three times and 20.5/22.
    """
    found = feature_drift(
        list(map(float, range(40))), [30.5 + i / 100 for i in range(20)], shuffles(40, 20)
    )
    old, new = [10.5 / 42] * 4, [0.5 / 22] * 3 + [20.5 / 22]
    forth = sum(b * math.log(b / a) for a, b in zip(old, new, strict=True))
    back = sum(a * math.log(a / b) for a, b in zip(old, new, strict=True))
    assert found.bins == 4
    assert value(found.kl) == pytest.approx(forth) and value(found.kl_back) == pytest.approx(back)
    assert value(found.psi) == pytest.approx(forth + back)


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_ks_is_scipys_with_and_without_ties(digits: int) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=70).round(digits), rng.normal(0.3, 1, size=50).round(digits)
    found, told = feature_drift(a, b, shuffles(70, 50)), stats.ks_2samp(a, b)
    assert value(found.ks) == pytest.approx(told.statistic) and found.ks_p == pytest.approx(
        told.pvalue
    )


def test_the_p_value_is_uniform_where_nothing_moved() -> None:
    """80 pairs of samples of one distribution: the mean p is 1/2 (standard error 0.032), few lie
    below 0.1."""
    rng, ps = np.random.default_rng(5), []
    for k in range(80):
        found = feature_drift(
            rng.gamma(2, size=60), rng.gamma(2, size=45), shuffles(60, 45, permutations=99, seed=k)
        )
        ps.append((found.psi.p, found.ks.p))
    assert np.abs(np.mean(ps, axis=0) - 0.5).max() < 0.11
    assert (np.array(ps) <= 0.1).mean(axis=0).max() < 0.2


@pytest.mark.parametrize("moved", ["by a little", "wider"])
def test_a_shift_is_found(moved: str) -> None:
    rng = np.random.default_rng(11)
    a = rng.normal(size=150)
    b = rng.normal(0.8, 1, size=150) if moved == "by a little" else rng.normal(0, 2.5, size=150)
    found = feature_drift(a, b, shuffles(150, 150))
    assert found.psi.p == found.kl.p == 1 / 200 and (found.ks.p or 1) <= 0.02
    assert value(found.psi) > 0.2 and value(found.psi) > (found.psi.null_hi or 9)


def test_a_constant_reference_that_spreads_is_found() -> None:
    """Quantiles of a constant are all one value: it is a bin of its own, and what lies below is
    another."""
    rng = np.random.default_rng(13)
    found = feature_drift([1.0] * 50, rng.random(50), shuffles(50, 50))
    assert (
        found.bins == 2 and value(found.psi) > 5 and value(found.ks) == 1 and found.psi.p == 1 / 200
    )


def test_batch_noise_is_no_difference() -> None:
    assert feature_drift([1.0] * 30, [1.0 + 1e-12] * 30, shuffles(30, 30)).reason.startswith(
        "all values are 1"
    )


@pytest.mark.parametrize("n", [MIN_VALUES - 1, MIN_VALUES])
def test_below_the_least_number_of_values_there_is_none(n: int) -> None:
    values = [*map(float, range(n)), *[math.nan] * 5]
    found = feature_drift(values, list(map(float, range(30))), shuffles(n + 5, 30))
    assert (found.psi == found.ks == found.kl == Measured() and "it takes 20" in found.reason) is (
        n < MIN_VALUES
    )
    assert found.n_reference == n and (found.psi.value is None) is (n < MIN_VALUES)


def test_rows_of_one_question_move_together_and_shared_questions_swap() -> None:
    made = Shuffles(["a", "a", "b", "c"], ["b", "d", "e"], permutations=300, seed=2).is_current
    assert made[0].tolist() == [False] * 4 + [True] * 3
    assert (made[:, 0] == made[:, 1]).all() and (made[:, 2] != made[:, 4]).all()
    alone = made[:, [0, 3, 5, 6]]
    assert (
        (alone.sum(axis=1) == 2).all()
        and 0.4 < made[1:, 4].mean() < 0.6
        and 0.4 < made[1:, 0].mean() < 0.6
    )


def test_a_shared_question_keeps_its_rows_on_each_side() -> None:
    made = Shuffles(["a", "a", "b", "b"], ["a", "b"], permutations=600, seed=3).is_current
    assert (made[:, [0, 1, 4]].sum(axis=1) == 1).all() and (
        made[:, [2, 3, 5]].sum(axis=1) == 1
    ).all()
    assert np.abs(made[1:].mean(axis=0) - 1 / 3).max() < 0.07


def test_repeats_of_questions_do_not_make_drift() -> None:
    """Ten questions a side, each asked six times with the same value: sixty items are not sixty
    units."""
    rng, few, many = np.random.default_rng(17), 0, 0
    for k in range(20):
        a, b = np.repeat(rng.normal(size=10), 6), np.repeat(rng.normal(size=10), 6)
        by_question = Shuffles(
            np.repeat(range(10), 6).tolist(),
            np.repeat(range(10, 20), 6).tolist(),
            permutations=99,
            seed=k,
        )
        few += (feature_drift(a, b, by_question).ks.p or 0) <= 0.05
        many += (feature_drift(a, b, shuffles(60, 60, permutations=99, seed=k)).ks.p or 0) <= 0.05
    assert few <= 4 and many >= 10


def test_the_energy_distance_is_that_of_its_definition_and_sees_what_no_feature_shows() -> None:
    rng = np.random.default_rng(19)
    a = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=90)
    b = rng.multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]], size=80)
    found = joint_drift(a, b, range(90), range(90, 170), permutations=199, seed=1)
    made = Shuffles(range(90), range(90, 170), permutations=199, seed=1)
    assert found == joint_drift(
        a, b, range(90), range(90, 170), permutations=199, seed=1, shuffles=made
    )
    z = standardise_columns(np.vstack([a, b]))
    apart = np.linalg.norm(z[:, None] - z[None], axis=2)
    across = 2 * apart[:90, 90:].mean()
    assert found.energy.value == pytest.approx(
        (across - apart[:90, :90].mean() - apart[90:, 90:].mean()) / across, rel=1e-4
    )
    assert found.energy.p == 1 / 200
    assert min(feature_drift(a[:, j], b[:, j], shuffles(90, 80)).ks.p or 0 for j in (0, 1)) > 0.05


def test_the_joint_test_takes_what_is_missing_as_missing() -> None:
    rng = np.random.default_rng(23)
    a, b = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    assert (
        joint_drift(a, b, range(60), range(60, 120), permutations=99, seed=1).energy.p or 0
    ) > 0.05
    b[:30, 1] = np.nan
    assert joint_drift(a, b, range(60), range(60, 120), permutations=99, seed=1).energy.p == 1 / 100
    few = joint_drift(a[:10], b, range(10), range(60, 120), permutations=99, seed=1)
    assert few.energy == Measured() and few.reason
    assert (
        joint_drift(a * 0, b * 0 + 0, range(60), range(60, 120), permutations=9, seed=1).n_reference
        == 60
    )


def test_a_seed_gives_the_same_numbers_and_wrong_lengths_are_told() -> None:
    rng = np.random.default_rng(29)
    a, b = rng.normal(size=40), rng.normal(size=40)
    assert feature_drift(a, b, shuffles(40, 40)) == feature_drift(a, b, shuffles(40, 40))
    with pytest.raises(ValueError, match="80 values, but shuffles of 81"):
        feature_drift(a, b, shuffles(41, 40))
    with pytest.raises(ValueError, match="at least one permutation"):
        shuffles(1, 1, permutations=0)


def test_blocks_of_shuffles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=60), rng.normal(0.3, 1.0, 80)
    a[:7] = np.nan
    names = [[f"q{k // 2}" for k in range(60)], [f"q{k}" for k in range(20, 100)]]
    dealt = Shuffles(*names, permutations=150, seed=5)
    at_once = feature_drift(a, b, dealt)
    monkeypatch.setattr(resample, "_BLOCK_CELLS", 100)
    assert feature_drift(a, b, dealt) == at_once
