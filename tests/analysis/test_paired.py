"""Paired comparison by hand: signs, missing items, clusters, discordant counts, corrected p,
directions."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from cotlab.analysis.paired import (
    NOT_SCORED_REASON,
    adjust_p_values,
    changed_values,
    mean_item_values,
    missing_items_text,
    pair_runs,
    paired_rows,
)

COLUMNS = ["metric", "facet", "item_id", "step", "sample", "value", "status", "reason"]


def scores(*rows: tuple[Any, ...], metric: str = "m", facet: str = "{}") -> pd.DataFrame:
    """Rows (item, value) or (item, None, status, reason)."""
    told = []
    for item, value, *why in rows:
        status, reason = why or ("ok", None)
        told.append(
            (
                metric,
                facet,
                item,
                None,
                0,
                math.nan if value is None else float(value),
                status,
                reason,
            )
        )
    return pd.DataFrame(told, columns=COLUMNS)


def items(*rows: tuple[str, str, str, bool | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["item_id", "prompt", "category", "same"])


def simple(*ids: str, category: str = "c") -> pd.DataFrame:
    return items(*((i, f"prompt of {i}", category, True) for i in ids))


def pairs_of(base: list[float], other: list[float], metric: str = "m") -> pd.DataFrame:
    ids = [f"i{k:02d}" for k in range(len(base))]
    sides = [
        mean_item_values(scores(*zip(ids, values, strict=True), metric=metric))
        for values in (base, other)
    ]
    return pair_runs(*sides, simple(*ids))


def test_the_difference_is_other_minus_base_over_the_same_items() -> None:
    """Means 2 and 3.5 over (1, 2, 3, 2, 2) and (2, 4, 5, 2, 4.5): differences 1, 2, 2, 0, 2.5, mean
    1.5."""
    (row,) = paired_rows(pairs_of([1, 2, 3, 2, 2], [2, 4, 5, 2, 4.5]))
    assert (row.base, row.other, row.difference, row.n, row.prompts) == (2.0, 3.5, 1.5, 5, 5)
    assert row.lo is not None and row.hi is not None and row.lo < 1.5 < row.hi and row.lo >= 0
    assert row.values == (1.0, 2.0, 2.0, 0.0, 2.5) and row.test.startswith("Wilcoxon")
    (back,) = paired_rows(pairs_of([2, 4, 5, 2, 4.5], [1, 2, 3, 2, 2]))
    assert (
        back.difference == -1.5 and back.p == row.p and back.rank_effect == -(row.rank_effect or 0)
    )


def test_wilcoxon_s_p_of_six_pairs_that_all_rise() -> None:
    """All six signs alike, no ties: p = 2 / 2**6. R: wilcox.test(1:6, mu = 0)$p.value = 0.03125."""
    (row,) = paired_rows(pairs_of([0] * 6, [1, 2, 3, 4, 5, 6]))
    assert row.p == pytest.approx(0.03125) and row.rank_effect == 1.0


def test_yes_or_no_gets_mcnemar_s_counts_and_exact_p() -> None:
    """7 yes turn to no, 1 the other way: p = 2 · (C(8,0) + C(8,1)) / 2**8 = 18/256; difference (1 −
    7)/12."""
    base = [1] * 7 + [0] + [1, 1, 0, 0]
    other = [0] * 7 + [1] + [1, 1, 0, 0]
    (row,) = paired_rows(pairs_of(base, other), binary_metrics=frozenset({"m"}))
    told = row.discordant
    assert told is not None and (told.both, told.first_only, told.second_only, told.neither) == (
        2,
        7,
        1,
        2,
    )
    assert row.p == pytest.approx(18 / 256) and row.difference == pytest.approx(-6 / 12)
    assert (
        row.test.startswith("McNemar")
        and row.lo is not None
        and row.hi is not None
        and -1 <= row.lo < -0.5 < row.hi <= 1
    )


def test_equal_differences_of_shares_have_the_interval_of_their_counts() -> None:
    """Each item's mean of two yes is a yes: 6 of 6 against 0 of 6, sides [.610, 1] and [0, .390].

    Newcombe (1998), method 10: −1 + √((1 − .610)² + (.390 − 0)²) = −.448.
    """
    ids = [f"i{k}" for k in range(6)]
    base, other = (
        mean_item_values(pd.concat([scores(*((i, value) for i in ids))] * 2)) for value in (1, 0)
    )
    table = pair_runs(base, other, simple(*ids))
    (row,) = paired_rows(table, binary_metrics=frozenset({"m"}))
    assert row.discordant is None and row.difference == row.lo == -1
    assert row.hi == pytest.approx(-0.448, abs=5e-4)
    (other_metric,) = paired_rows(table)  # of a count or of nats nothing is known
    assert (other_metric.difference, other_metric.lo, other_metric.hi) == (-1, None, None)


def test_items_without_a_value_are_counted_on_their_side_with_the_reason() -> None:
    base = scores(
        ("a", 1),
        ("b", None, "undefined", "no chain"),
        ("c", 1),
        ("d", 1),
        ("e", None, "refused", "said no"),
    )
    other = scores(("a", 0), ("b", 1), ("c", None, "error", "timed out"), ("e", 1), ("f", 1))
    table = pair_runs(
        mean_item_values(base),
        mean_item_values(other),
        items(*((i, i, "c", True) for i in "abce"), ("d", "d", "c", None), ("f", "f", "c", None)),
    )
    (row,) = paired_rows(table)
    assert row.n == 1 and row.difference == -1.0
    assert row.missing_base == {"no chain": 1, NOT_SCORED_REASON: 1, "refused: said no": 1}
    assert row.missing_other == {"error: timed out": 1, NOT_SCORED_REASON: 1}
    assert (
        missing_items_text(row, max_reasons=1)
        == "base: 1 no chain; 2 for other reasons · other: 1 error: timed out; 1 for other reasons"
    )


def test_repeated_prompts_are_one_unit_of_interval_and_test() -> None:
    """Ten items of five prompts, each prompt twice alike: the interval and the p of the five
    prompts, not of ten items."""
    ids = [f"i{k}" for k in range(10)]
    rises = [float(k // 2 + 1) for k in range(10)]
    values = (
        mean_item_values(scores(*zip(ids, [0.0] * 10, strict=True))),
        mean_item_values(scores(*zip(ids, rises, strict=True))),
    )
    twice = pair_runs(*values, items(*((i, f"p{k // 2}", "c", True) for k, i in enumerate(ids))))
    (row,), (once,) = paired_rows(twice), paired_rows(pairs_of([0.0] * 5, [1, 2, 3, 4, 5]))
    assert (row.n, row.prompts, row.difference) == (10, 5, 3.0)
    assert row.p == once.p == pytest.approx(2 / 2**5), "R: wilcox.test(1:5)$p.value = 0.0625"
    assert row.values == once.values and row.effect == once.effect
    (apart,) = paired_rows(pairs_of([0.0] * 10, rises))
    assert apart.lo is not None and row.lo is not None and row.lo < apart.lo, (
        "ten independent items would say more"
    )


def test_mcnemar_does_not_take_repeated_prompts_as_independent() -> None:
    ids = [f"i{k}" for k in range(12)]
    values = (
        mean_item_values(scores(*((i, 0) for i in ids))),
        mean_item_values(scores(*((i, 1) for i in ids))),
    )
    table = pair_runs(*values, items(*((i, f"p{k // 2}", "c", True) for k, i in enumerate(ids))))
    (row,) = paired_rows(table, binary_metrics=frozenset({"m"}))
    assert row.discordant is not None and row.discordant.second_only == 12
    assert row.discordant.p == pytest.approx(2 / 2**12) and row.p == pytest.approx(2 / 2**6)
    assert row.test.startswith("Wilcoxon")


def test_p_is_corrected_over_the_rows_that_have_one() -> None:
    """p 18/256, 2/2**6 and none. Benjamini–Hochberg of two: 0.03125 · 2 and 0.0703."""
    first = pairs_of([1] * 7 + [0] + [1, 1, 0, 0], [0] * 7 + [1] + [1, 1, 0, 0], "a")
    second, third = pairs_of([0] * 6, [1, 2, 3, 4, 5, 6], "b"), pairs_of([1.0] * 6, [1.0] * 6, "c")
    rows = paired_rows(pd.concat([first, second, third]), binary_metrics=frozenset({"a"}))
    assert [row.metric for row in rows] == ["a", "b", "c"]
    assert [row.adjusted for row in rows] == [
        pytest.approx(18 / 256),
        pytest.approx(2 * 0.03125),
        None,
    ]
    assert adjust_p_values(rows[:1])[0].adjusted == pytest.approx(18 / 256)


def test_a_score_of_unfaithfulness_becomes_a_rate_at_the_threshold_itself() -> None:
    """0.5 counts; two draws of 0.4 and 0.6 are one item at 0.5."""
    ids = ["a", "b", "c"]
    place = {"metric": "unfaithfulness", "facet": '{"classifier": "x"}'}
    one = scores(("a", 0.5), ("b", 0.49), ("c", None, "undefined", "no answer"), **place)
    two = pd.concat([scores(*((i, v) for i in ids), **place) for v in (0.4, 0.6)])
    rows = paired_rows(pair_runs(mean_item_values(one), mean_item_values(two), simple(*ids)))
    rate = next(row for row in rows if row.metric == "unfaithful_rate")
    assert rate.facet == {"classifier": "x", "threshold": "0.5"} and (
        rate.base,
        rate.other,
        rate.n,
    ) == (0.5, 1.0, 2)
    assert rate.discordant is not None and rate.missing_base == {"no answer": 1}
    higher = mean_item_values(one, 0.51)
    assert higher[higher["metric"] == "unfaithful_rate"]["value"].tolist()[:2] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("better", "words"),
    [
        ("higher", ["improved", "regressed"]),
        ("lower", ["regressed", "improved"]),
        ("neither", ["rose", "fell"]),
    ],
)
def test_changed_items_are_named_by_the_metric_s_direction(better: str, words: list[str]) -> None:
    found = changed_values(pairs_of([0, 1, 1], [2, 0, 1]), "m", "{}", better)
    assert found["item_id"].tolist() == ["i00", "i01"] and found["change"].tolist() == words
    assert found["difference"].tolist() == [2.0, -1.0]


def test_only_metrics_and_facets_of_both_runs_are_paired() -> None:
    base = pd.concat(
        [
            scores(("a", 1)),
            scores(("a", 1), metric="alone"),
            scores(("a", 1), facet='{"mode": "x"}'),
        ]
    )
    other = pd.concat([scores(("a", 1)), scores(("a", 1), facet='{"mode":"y"}')])
    table = pair_runs(mean_item_values(base), mean_item_values(other), simple("a"))
    assert table[["metric", "facet"]].values.tolist() == [["m", "{}"]]


@pytest.mark.parametrize(
    ("base", "other", "difference"),
    [([1.0] * 6, [1.0] * 6, 0.0), ([0, 0, 0], [1, 2, 3], 2.0), ([math.nan], [1.0], None)],
    ids=["nothing differs", "below five pairs", "no item with both values"],
)
def test_a_number_that_does_not_exist_is_none_with_a_reason(
    base: list[float], other: list[float], difference: float | None
) -> None:
    (row,) = paired_rows(pairs_of(base, other))
    assert row.difference == difference and (row.lo, row.hi) == (None, None) and row.reason
    assert row.p is None or len(base) == 3
