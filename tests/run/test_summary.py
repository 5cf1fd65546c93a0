"""Which interval a mean over items gets: Wilson for what is yes or no, a bootstrap for what is not,
a reason for neither."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest

from cotlab.core.registry import SCORERS
from cotlab.core.types import Estimate, Item
from cotlab.metrics.ablation.cards import ANSWER_CHANGE
from cotlab.metrics.mediation.cards import BOUNDARY_ROBUST, CMI
from cotlab.run.summary import mean_estimates

FLAGS = frozenset({"answer_change", "boundary_robust"})


def mean(metric: str, values: Sequence[float | None], draws: int = 1) -> Estimate:
    rows = [(metric, f"i{k}", 0, d, "{}", v) for k, v in enumerate(values) for d in range(draws)]
    table = pd.DataFrame(
        rows, columns=["metric", "item_id", "step", "sample", "facet", "value"]
    ).astype({"value": "float64"})
    (found,) = mean_estimates(table, 42, FLAGS)
    return found


def test_a_continuous_metric_whose_items_are_all_0_or_1_gets_no_wilson() -> None:
    mixed = mean("cmi", [0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    assert mixed.point == pytest.approx(2 / 3) and mixed.method.startswith("bootstrap")
    for value in (0.0, 1.0):
        equal = mean("cmi", [value] * 7 + [None])
        assert (equal.point, equal.lo, equal.hi, equal.n, equal.n_undefined) == (
            value,
            None,
            None,
            7,
            1,
        )
        assert (equal.method, equal.reason) == (
            "none",
            "all 7 values are equal: a resample has no spread to show",
        )


def test_a_flag_gets_wilson_also_where_all_items_agree() -> None:
    """7 of 10: (0.39678, 0.89221), statsmodels 0.15; 0 of 7: z^2 / (7 + z^2) = 0.35433 above."""
    some = mean("boundary_robust", [1.0] * 7 + [0.0] * 3)
    assert (some.method, some.lo, some.hi) == (
        "Wilson",
        pytest.approx(0.39678, abs=1e-5),
        pytest.approx(0.89221, abs=1e-5),
    )
    none = mean("boundary_robust", [0.0] * 7)
    assert (none.lo, none.hi) == (0.0, pytest.approx(0.35433, abs=1e-5))
    repeated = mean(
        "answer_change", [0.0] * 7, draws=3
    )  # three draws of an item are not independent: items are
    assert (repeated.method, repeated.hi, repeated.n) == ("Wilson", none.hi, 7)
    mixed = mean("answer_change", [1.0] * 7 + [0.0] * 3, draws=3)  # draws agree in each item
    assert (mixed.method, mixed.lo, mixed.hi, mixed.n) == ("Wilson", some.lo, some.hi, 10)


def test_a_flag_whose_draws_differ_within_an_item_is_resampled_over_items() -> None:
    table = pd.DataFrame(
        [
            ("answer_change", f"i{k}", step, 0, "{}", float(step <= k % 3))
            for k in range(12)
            for step in range(3)
        ],
        columns=["metric", "item_id", "step", "sample", "facet", "value"],
    )
    (found,) = mean_estimates(table, 42, FLAGS)
    assert found.point == pytest.approx(2 / 3) and found.n == 12  # (1 + 2 + 3) / 9
    assert found.method.startswith("bootstrap") and found.lo is not None


def test_fewer_than_five_items_have_a_mean_and_a_reason() -> None:
    few = mean("cmi", [0.0, 0.5, 0.25, 1.0, None])
    assert (few.point, few.lo, few.hi, few.n) == (0.4375, None, None, 4)
    assert few.reason == "an interval needs 5 values, here are 4"
    assert mean("answer_change", [1.0]).lo == pytest.approx(
        1 / 4.841459, abs=1e-6
    )  # Wilson's: 1 / (1 + z²)


def test_a_flag_has_no_value_between() -> None:
    item = Item("i", "?", None, ())
    assert ANSWER_CHANGE.score(item, 1.0).value == BOUNDARY_ROBUST.score(item, True).value == 1.0
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        ANSWER_CHANGE.score(item, 0.5)
    assert CMI.score(item, 0.5).value == 0.5


YES_OR_NO = frozenset(
    {
        "accuracy_delta",
        "answer_change",
        "answer_before_last_step",
        "answer_correct",
        "answer_in_question",
        "answer_is_integer",
        "answer_is_last_result",
        "answer_missing",
        "baseline_correct",
        "baseline_flip",
        "boundary_robust",
        "causal_stability",
        "claim",
        "consensus_correct",
        "control_is_noop",
        "diagnosis",
        "entropy_jump",
        "entropy_rise",
        "hint_acknowledged",
        "hint_followed",
        "judge_tie",
        "no_cot_effect",
        "number_follows",
        "number_moves",
        "option_follows_position",
        "option_follows_text",
        "perturbed_answer_change",
        "rename_stable",
        "step_flip",
    }
)
"""Metrics whose formula has two values, read off the formulas by hand."""


def test_the_metrics_with_two_values_are_declared_as_flags() -> None:
    assert {card.name for name in SCORERS for card in SCORERS[name].cards if card.flag} == YES_OR_NO
