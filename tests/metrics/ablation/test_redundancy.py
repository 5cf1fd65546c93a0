"""Run-level statistics of step scores, each against its arithmetic by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from cotlab.core.types import Estimate
from cotlab.metrics.ablation import (
    above_noise,
    mean_by_item,
    position_table,
    rrr,
    rrr_ceiling,
    rrr_estimates,
    rrr_micro,
    step_means,
)
from cotlab.run.summary import mean_estimates

REMOVE = '{"chain":"reference","given":"user","mode":"remove"}'
OTHER = '{"chain":"reference","given":"user","mode":"corrupt"}'
PLAIN = '{"chain":"reference","given":"user"}'
OPTIONS = {"ccs_threshold": 0.1}
NONE = float("nan")
COLUMNS = ["metric", "item_id", "step", "sample", "facet", "value", "status", "reason"]


def table(*rows: tuple[str, str, int | None, int, str, float]) -> pd.DataFrame:
    states = {True: ("ok", None), False: ("undefined", "no rule")}
    made = pd.DataFrame([(*row, *states[row[5] == row[5]]) for row in rows], columns=COLUMNS)
    return made.astype({"value": "float64", "step": "float64"})


def chains(
    scores: Mapping[str, Sequence[float]], metric: str = "accuracy_delta", facet: str = REMOVE
) -> pd.DataFrame:
    return table(
        *(
            (metric, item, i, 0, facet, value)
            for item, values in scores.items()
            for i, value in enumerate(values)
        )
    )


def only(found: list[Estimate]) -> Estimate:
    (estimate,) = found
    return estimate


# Two chains of unequal length: a has 3 of 4 steps below the threshold, b has 0 of 1.
UNEQUAL = {"a": [0, 0, 0, 1], "b": [1]}


def test_macro_is_the_mean_of_chains_and_micro_pools_their_steps() -> None:
    """Macro: (3/4 + 0/1) / 2 = .375. Micro: (3 + 0) / (4 + 1) = .6."""
    macro, micro = (only(f.compute(chains(UNEQUAL), OPTIONS, 42)) for f in (rrr, rrr_micro))
    assert (macro.point, macro.n, macro.over) == (0.375, 2, "items")
    assert (micro.point, micro.n) == (0.6, 2)
    assert {(found.lo, found.reason) for found in (macro, micro)} == {
        (None, "an interval needs 5 values, here are 2")
    }
    small = only(rrr_estimates(chains(UNEQUAL), OPTIONS, 42, min_items=2))
    several = chains({f"{item}{k}": values for k in range(3) for item, values in UNEQUAL.items()})
    for found in (small, *(only(f.compute(several, OPTIONS, 42)) for f in (rrr, rrr_micro))):
        assert (
            found.lo is not None
            and found.hi is not None
            and 0 <= found.lo <= found.point <= found.hi <= 1
        )  # type: ignore[operator]
    assert dict(macro.group) == {
        "chain": "reference",
        "given": "user",
        "mode": "remove",
        "metric": "accuracy_delta",
    }


def test_the_threshold_is_strict() -> None:
    """A step at the threshold is not below it: of .1, .09999, 0, 1 two are."""
    assert only(rrr.compute(chains({"a": [0.1, 0.09999, 0.0, 1.0]}), OPTIONS, 42)).point == 0.5
    assert only(rrr.compute(chains({"a": [0.0, 0.0]}), {"ccs_threshold": 0.0}, 42)).point == 0.0


def test_undefined_steps_leave_the_denominator_and_are_counted() -> None:
    """a: 1 of 2 defined steps; b: no step is defined, so it is no chain; c: 1 of 1. Macro (1/2 + 1)
    / 2, micro 2/3."""
    scores = chains({"a": [0, 1, NONE], "b": [NONE, NONE], "c": [0]})
    macro, micro = (only(f.compute(scores, OPTIONS, 42)) for f in (rrr, rrr_micro))
    assert (macro.point, macro.n, macro.n_undefined) == (0.75, 2, 3)
    assert (micro.point, micro.n, micro.n_undefined) == (pytest.approx(2 / 3), 2, 3)


def test_nothing_defined() -> None:
    found = only(rrr.compute(chains({"a": [NONE], "b": [NONE]}), OPTIONS, 42))
    assert (found.point, found.lo, found.hi, found.n, found.n_undefined) == (None, None, None, 0, 2)
    assert found.reason == "no defined value"


def test_one_item_has_a_point_and_no_interval() -> None:
    found = only(rrr.compute(chains({"a": [0, 1]}), OPTIONS, 42))
    assert (found.point, found.lo, found.hi, found.n, found.reason) == (
        0.5,
        None,
        None,
        1,
        "one unit has no spread",
    )


def test_a_steps_ccs_is_its_mean_over_draws() -> None:
    """Draws 1 and 0 make .5, which is not below .1; 0 and undefined make 0, which is: RRR 1/2."""
    scores = table(
        ("accuracy_delta", "a", 0, 0, REMOVE, 1.0),
        ("accuracy_delta", "a", 0, 1, REMOVE, 0.0),
        ("accuracy_delta", "a", 1, 0, REMOVE, 0.0),
        ("accuracy_delta", "a", 1, 1, REMOVE, NONE),
    )
    means = step_means(scores)
    assert means["value"].tolist() == [0.5, 0.0] and means["draws"].tolist() == [2, 1]
    assert only(rrr.compute(scores, OPTIONS, 42)).point == 0.5


def test_the_ceiling_of_removal() -> None:
    """(n - 1)/n over defined steps: a has 4 -> 3/4, b has 1 -> 0; mean .375. Other modes have no
    ceiling."""
    both = pd.concat([chains(UNEQUAL), chains(UNEQUAL, facet=OTHER)])
    assert only(rrr_ceiling.compute(both, OPTIONS, 42)).point == 0.375
    assert len(rrr.compute(both, OPTIONS, 42)) == 2


def test_every_ccs_metric_has_its_own_rrr_and_others_have_none() -> None:
    scores = pd.concat(
        [
            chains({"a": [0, 1]}),
            chains({"a": [1, 1]}, "answer_change"),
            chains({"a": [0, 0]}, "kl_nats"),
        ]
    )
    assert {dict(e.group)["metric"]: e.point for e in rrr.compute(scores, OPTIONS, 42)} == {
        "accuracy_delta": 0.5,
        "answer_change": 0.0,
    }


@pytest.mark.parametrize(
    "statistic", [rrr, rrr_micro, rrr_ceiling, above_noise], ids=lambda s: s.card.name
)
def test_an_empty_table_gives_no_estimate(statistic: object) -> None:
    assert statistic.compute(table(), OPTIONS, 42) == []  # type: ignore[attr-defined]


# --- noise
# --------------------------------------------------------------------------------------------


def noisy(effects: Sequence[float], noise: Sequence[float]) -> pd.DataFrame:
    steps = chains({f"i{k}": [value] for k, value in enumerate(effects)}, "answer_change")
    flips = table(
        *(("baseline_flip", f"i{k}", None, 1, PLAIN, value) for k, value in enumerate(noise))
    )
    return pd.concat([steps, flips])


def test_effects_beside_the_noise_of_the_baseline() -> None:
    """Differences 1, 1, 1, 0, 0: mean .6.

    Of the 2^3 = 8 ways to sign the three ones, one gives a mean as large and one a mean as small: p
    = 2/8 = .25.
    """
    found = only(above_noise.compute(noisy([1, 1, 1, 1, 0], [0, 0, 0, 1, 0]), OPTIONS, 42))
    assert (found.point, found.n, found.n_undefined) == (pytest.approx(0.6), 5, 0)
    assert found.method.endswith("sign-flip permutation p = 0.25")


def test_the_p_value_agrees_with_all_sign_flips() -> None:
    """Enumerated here: share of the 2^6 signings whose mean is at least as far from 0, on either
    side."""
    effects, noise = [1, 0.5, 0.75, 0.25, 1, 0], [0, 0.25, 0, 0.5, 0.5, 0]
    gaps = [a - b for a, b in zip(effects, noise, strict=True)]
    sums = [
        sum(s * g for s, g in zip(signs, gaps, strict=True))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    expected = 2 * sum(one >= sum(gaps) - 1e-12 for one in sums) / len(sums)
    found = only(above_noise.compute(noisy(effects, noise), OPTIONS, 42))
    assert found.method.endswith(f"p = {expected:.4g}")


def test_no_noise_without_a_second_draw() -> None:
    found = only(above_noise.compute(noisy([1, 0], []), OPTIONS, 42))
    assert (
        found.point is None
        and found.reason == "no second baseline draw: --repeats 2 or more measures it"
    )
    assert found.n_undefined == 2


def test_items_without_noise_or_effect_are_left_out_and_counted() -> None:
    found = only(above_noise.compute(noisy([1, NONE, 1], [0, 0, NONE]), OPTIONS, 42))
    assert (found.point, found.n, found.n_undefined) == (1.0, 1, 2)


# --- positions
# ----------------------------------------------------------------------------------------


def test_means_and_variances_by_position() -> None:
    """Step 0 over items: 0, 1, 1 -> mean 2/3, variance (4/9 + 1/9 + 1/9) / 3 = 2/9. Step 1: 1 of
    two defined.

    One yes of one item: Wilson, 1 / (1 + 1.959964²) = 0.206549.
    """
    found = position_table(chains({"a": [0, 1], "b": [1, NONE], "c": [1]}), seed=42)
    first, second = found.to_dict("records")
    assert (first["step"], first["n"], first["n_undefined"]) == (0, 3, 0)
    assert first["point"] == pytest.approx(2 / 3) and first["variance"] == pytest.approx(2 / 9)
    assert first["lo"] <= first["point"] <= first["hi"]
    assert (second["step"], second["point"], second["n"], second["n_undefined"]) == (1, 1.0, 1, 1)
    assert second["variance"] == 0.0
    assert (second["method"], second["lo"], second["hi"]) == (
        "Wilson",
        pytest.approx(0.206549, abs=1e-6),
        1.0,
    )
    assert list(position_table(table())) == list(found)


def test_a_position_that_nobody_defines_says_why_and_yes_or_no_gets_wilson() -> None:
    """2 of 3: Wilson (0.20766, 0.93851), statsmodels proportion_confint(2, 3, method="wilson")."""
    found = position_table(chains({"a": [0, NONE], "b": [1, NONE], "c": [1]})).to_dict("records")
    assert (found[0]["method"], round(found[0]["lo"], 4), round(found[0]["hi"], 4)) == (
        "Wilson",
        0.2077,
        0.9385,
    )
    assert (found[1]["n"], found[1]["reason"]) == (0, "no rule") and pd.isna(found[0]["reason"])


def test_means_over_items() -> None:
    found = mean_by_item(chains({"a": [0, 1, NONE], "b": [NONE]})).set_index("item_id")
    assert found.loc["a", ["value", "n", "undefined"]].tolist() == [0.5, 2, 1]
    assert pd.isna(found.loc["b", "value"]) and found.loc["b", "undefined"] == 1


MIXED = {f"i{k:02}": [float((k * 7 + j * j) % 5 < 3) for j in range(3 + k % 4)] for k in range(24)}


def bounds(estimate: Estimate) -> tuple[float, float]:
    assert estimate.lo is not None and estimate.hi is not None
    return estimate.lo, estimate.hi


@pytest.mark.parametrize("statistic", [rrr, rrr_micro, rrr_ceiling])
def test_equal_data_have_equal_intervals_whatever_the_metric_is_called(statistic: Any) -> None:
    both = pd.concat([chains(MIXED), chains(MIXED, "answer_change")], ignore_index=True)
    first, second = statistic.compute(both, OPTIONS, 42)
    assert bounds(first) == bounds(second)
    by_seed = {bounds(statistic.compute(both, OPTIONS, seed)[0]) for seed in range(42, 52)}
    assert len(by_seed) > 1  # the seed of the plan still decides


@pytest.mark.parametrize("whole_items", [False, True])
def test_the_share_of_steps_without_effect_mirrors_that_of_steps_with_one(
    whole_items: bool,
) -> None:
    """Also where each item is one yes or no: both are counts of items then (Wilson)."""
    scores = {item: [v[0]] * len(v) if whole_items else v for item, v in MIXED.items()}
    steps = chains(scores, "answer_change")
    (changed,) = mean_estimates(steps, 42, frozenset({"answer_change"}))
    without_effect = only(rrr.compute(steps, OPTIONS, 42))
    assert changed.point is not None
    assert without_effect.point == pytest.approx(1 - changed.point)
    lo, hi = bounds(changed)
    assert bounds(without_effect) == pytest.approx((1 - hi, 1 - lo), abs=1e-9)
    assert without_effect.method == changed.method


def test_pooled_over_chains_of_one_length_rrr_is_the_mean_over_items() -> None:
    scores = chains({f"i{k}": [float(k % 3 > 0)] * 4 for k in range(30)})
    pooled, mean = (only(f.compute(scores, OPTIONS, 42)) for f in (rrr_micro, rrr))
    assert bounds(pooled) == bounds(mean) and pooled.method == mean.method == "Wilson"
