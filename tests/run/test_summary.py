"""Which interval a mean over items gets: Wilson for what is yes or no, a bootstrap for what is not,
a reason for neither."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest

from cotlab.core.registry import SCORERS
from cotlab.core.types import Estimate, Item
from cotlab.metrics.ablation import ANSWER_CHANGE
from cotlab.metrics.mediation.cards import BOUNDARY_ROBUST, CMI
from cotlab.run import summary
from cotlab.run.config import RunConfig
from cotlab.run.launch import start_run
from cotlab.run.summary import mean_estimates, summarise
from cotlab.store import read
from cotlab.store.database import Store

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
        "perturbed_answer_change",
        "rename_stable",
    }
)
"""Metrics whose formula has two values, read off the formulas by hand."""


def test_the_metrics_with_two_values_are_declared_as_flags() -> None:
    assert {card.name for name in SCORERS for card in SCORERS[name].cards if card.flag} == YES_OR_NO


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run of eight items in three modes, twice each request."""
    store = Store(tmp_path_factory.mktemp("summary"))
    config = RunConfig(
        task_suite="math",
        provider="echo",
        model="echo",
        limit=8,
        mode=["remove", "corrupt", "paraphrase"],
        repeats=2,
    )
    start_run(config, store, run_id="r")
    return store


@pytest.mark.parametrize("n_scores", [1, 60])
def test_estimates_are_the_same_in_blocks_of_any_size(
    run_store: Store, n_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last digit, and in the same order: a facet is never divided."""
    before = read.run_estimates(run_store, "r")
    plan = read.plan_from_row(read.get_run(run_store, "r"))
    monkeypatch.setattr(summary, "MAX_BLOCK_SCORES", n_scores)
    summarise(run_store, "r", plan)
    assert len(before) > 20 and before["lo"].notna().any()
    pd.testing.assert_frame_equal(read.run_estimates(run_store, "r"), before, check_exact=True)


def test_scores_read_in_columns_are_those_of_the_table(run_store: Store) -> None:
    """Through Arrow: the same values, types and order as row by row."""
    scores = read.select_scores(run_store, "r", metrics=["answer_change", "baseline_correct"])
    rows = run_store.query_rows(
        "SELECT item_id, facet, step, sample, value, reason, evidence FROM scores WHERE metric IN"
        " ('answer_change', 'baseline_correct') ORDER BY item_id, scorer, metric, facet, step,"
        " sample"
    )
    assert len(rows) == len(scores) > 100
    for name, values in zip(("item_id", "facet"), zip(*rows, strict=True), strict=False):
        assert scores[name].tolist() == list(values)
    for position, name in ((2, "step"), (3, "sample"), (4, "value"), (5, "reason")):
        found = scores[name].astype(object).where(scores[name].notna(), None).tolist()
        assert found == [row[position] for row in rows]
    assert [list(keys) for keys in scores["evidence"]] == [row[6] for row in rows]
    assert {str(scores[name].dtype) for name in ("step", "sample", "where_lo")} == {"Int64"}
