"""Rates and agreement of classifiers over a run, by hand, and the classifiers on models of known
faithfulness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.api import run_suite
from cotlab.core.types import Estimate
from cotlab.metrics.unfaithfulness import (
    classifier_kappa,
    classifier_mcnemar,
    compare_classifiers,
    item_scores,
    unfaithful_rate,
    unfaithfulness,
)
from cotlab.suites.wordproblems import make_suite

OPTIONS = unfaithfulness.options

COLUMNS = ["metric", "item_id", "step", "sample", "facet", "value", "status", "category"]
AT = {"threshold": 0.5, "thresholds": ("0.25", "0.75")}


def table(
    values: Mapping[str, Sequence[float | None]],
    categories: Sequence[str] = (),
    metric: str = "unfaithfulness",
    **more: str,
) -> pd.DataFrame:
    """One item a value, in order, for each classifier."""
    rows = [
        (
            metric,
            f"i{k}",
            None,
            0,
            json.dumps({"classifier": name, **more}),
            value,
            "error" if value is None else "ok",
            categories[k] if categories else "",
        )
        for name, listed in values.items()
        for k, value in enumerate(listed)
    ]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"value": "float64"})


def found(estimates: list[Estimate], **place: str) -> Estimate:
    (one,) = (
        e
        for e in estimates
        if all(dict(e.group).get(k) == v for k, v in place.items())
        and ("category" in dict(e.group)) == ("category" in place)
    )
    return one


def test_rates_by_hand_at_each_threshold() -> None:
    """Scores 0, .3, .5, .8 and one undefined: at .25 three of four, at .5 two, at .75 one. Wilson
    of one half: .5 ± z / (2 √(n + z²)) = .5 ± 1.959964 / (2 √(4 + 3.841459)) = .5 ± .349961."""
    rates = unfaithful_rate.compute(table({"judge": [0, 0.3, 0.5, 0.8, None]}), AT, 0)
    points = {dict(e.group)["threshold"]: e.point for e in rates}
    assert points == {"0.25": 0.75, "0.5": 0.5, "0.75": 0.25}
    half = found(rates, threshold="0.5")
    assert (half.lo, half.hi) == (
        pytest.approx(0.150039, abs=1e-6),
        pytest.approx(0.849961, abs=1e-6),
    )
    assert (half.n, half.n_undefined, half.method, half.over) == (4, 1, "Wilson", "items")


@pytest.mark.parametrize(("value", "point"), [(0.0, 0.0), (1.0, 1.0)])
def test_all_faithful_and_all_unfaithful_have_an_interval(value: float, point: float) -> None:
    """Wilson, 3 of 3, z = 1.95996: lo = 3 / (3 + 3.841459) = 0.438503; 0 of 3 mirrors it."""
    one = found(unfaithful_rate.compute(table({"regex": [value] * 3}), AT, 0), threshold="0.5")
    bounds = (0.438503, 1.0) if point else (0.0, 0.561497)
    assert one.point == point and (one.lo, one.hi) == pytest.approx(bounds, abs=1e-6)


def test_a_classifier_without_a_score_has_no_rate() -> None:
    one = found(unfaithful_rate.compute(table({"hint": [None, None]}), AT, 0), threshold="0.5")
    assert (one.point, one.lo, one.n, one.n_undefined) == (None, None, 0, 2)
    assert one.reason == "no item has a score by this classifier"
    assert unfaithful_rate.compute(table({}), AT, 0) == []


def test_rates_by_category_and_their_sum() -> None:
    rates = unfaithful_rate.compute(table({"hint": [1, 0, 1, None]}, ["a", "a", "b", "b"]), AT, 0)
    a, b = (found(rates, category=name) for name in "ab")
    assert (a.point, a.n, b.point, b.n, b.n_undefined) == (0.5, 2, 1.0, 1, 1)
    whole = found(rates, threshold="0.5")
    assert whole.n == a.n + b.n and whole.point == pytest.approx(2 / 3)
    assert {dict(e.group)["threshold"] for e in rates if "category" in dict(e.group)} == {"0.5"}


def test_scores_without_categories_have_no_rate_by_category() -> None:
    rates = unfaithful_rate.compute(table({"hint": [1, 0]}).drop(columns="category"), AT, 0)
    assert len(rates) == 3 and not any("category" in dict(e.group) for e in rates)


def test_an_items_score_is_the_mean_of_its_draws_and_of_its_classifier_alone() -> None:
    """Draws 1 and 0 of one item: .5, so unfaithful at .5; the other metric's rows are left out."""
    both = pd.concat(
        [
            table({"early_answer": [1.0]}),
            table({"early_answer": [0.0]}),
            table({"x": [1.0]}, metric="other"),
        ]
    )
    scores = item_scores(both)
    assert scores[["classifier", "item_id", "value"]].values.tolist() == [
        ["early_answer", "i0", 0.5]
    ]
    assert found(unfaithful_rate.compute(both, AT, 0), threshold="0.5").point == 1.0


def test_the_facet_of_a_rate_is_what_all_its_scores_share() -> None:
    both = pd.concat(
        [
            table({"hint": [1.0]}, chain="own", template="friend"),
            table({"hint": [0.0]}, chain="own"),
        ]
    )
    assert dict(unfaithful_rate.compute(both, {"threshold": 0.5}, 0)[0].group) == {
        "classifier": "hint",
        "chain": "own",
        "threshold": "0.5",
    }


def test_agreement_by_hand() -> None:
    """Both 20, only the first 5, only the second 10, neither 15, of 50: observed 35/50 = .7, by
    chance .5 · .6 + .5 · .4 = .5, kappa = (.7 − .5)/(1 − .5) = .4. McNemar exact: 2 · P(X ≤ 5 | 15,
    ½) = 2 · 4944 / 32768.
    """
    told = compare_classifiers(
        [True] * 25 + [False] * 25, [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    )
    assert told.kappa.point == pytest.approx(0.4) and told.kappa.lo < 0.4 < told.kappa.hi  # type: ignore[operator]
    assert told.p == pytest.approx(2 * 4944 / 32768) and (
        told.n_only_first,
        told.n_only_second,
    ) == (
        5,
        10,
    )
    assert told.kappa.n == 50


def test_a_constant_classifier_has_no_kappa_and_perfect_or_few_agreement_no_bounds() -> None:
    told = compare_classifiers([True, True], [True, True])
    assert told.kappa.point is None and "both raters" in str(told.kappa.reason) and told.p == 1.0
    one = compare_classifiers([True, False, True], [False, False, False])
    assert one.kappa.point is None and "the second rater" in str(one.kappa.reason)
    perfect = compare_classifiers([True, False] * 5, [True, False] * 5).kappa
    few = compare_classifiers([True, False, True], [True, False, False]).kappa
    assert (perfect.point, perfect.lo, few.point, few.lo) == (1.0, None, pytest.approx(0.4), None)
    with pytest.raises(ValueError, match="at least one"):
        compare_classifiers([], [])


def test_each_two_classifiers_are_compared_on_the_items_that_both_score() -> None:
    scores = table({"hint": [1, 0, 1, None], "judge": [1, 0, 0, 1], "regex": [None] * 4})
    kappas = classifier_kappa.compute(scores, AT, 0)
    assert len(kappas) == 3
    pair = found(kappas, classifier="hint", other="judge")
    assert (pair.n, pair.n_undefined, pair.point) == (
        3,
        1,
        pytest.approx(0.4),
    )  # observed 2/3, chance 4/9
    none = found(kappas, classifier="hint", other="regex")
    assert (none.point, none.reason) == (None, "no item has a score by both classifiers")
    p = found(classifier_mcnemar.compute(scores, AT, 0), classifier="hint", other="judge")
    assert (p.point, p.method) == (1.0, "McNemar exact: 1 only by hint, 0 only by judge")


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_agreement_of_anything_lies_in_range(pairs: list[tuple[bool, bool]]) -> None:
    told = compare_classifiers(*zip(*pairs, strict=True))
    back = compare_classifiers(*zip(*[(b, a) for a, b in pairs], strict=True))
    assert 0 <= told.p <= 1 and told.p == pytest.approx(back.p)
    if told.kappa.point is None:
        assert any(len({pair[k] for pair in pairs}) == 1 for k in (0, 1))
    else:
        assert -1 <= told.kappa.point <= 1 and told.kappa.point == pytest.approx(back.kappa.point)
        assert (
            told.kappa.lo is None or -1 <= told.kappa.lo <= told.kappa.point <= told.kappa.hi <= 1
        )  # type: ignore[operator]


def rates_of(model: str, store: Path, n: int) -> tuple[dict[str, float], pd.DataFrame]:
    suite = make_suite(n, seed=21)
    done = run_suite(
        suite, store=store, provider="organism", model=model, scorer=["unfaithfulness"], chain="own"
    )
    rates = done.estimates[done.estimates["metric"] == "unfaithful_rate"]
    facets = rates["facet"].map(json.loads)
    whole = facets.map(lambda f: f["threshold"] == "0.5" and "category" not in f)
    return {
        f["classifier"]: p for f, p in zip(facets[whole], rates["point"][whole], strict=True)
    }, done.estimates


@pytest.mark.soak
def test_organisms_are_told_apart_by_what_they_do(tmp_path: Path) -> None:
    """Early answer and truncation tell bypass from faithful, a hint the one that follows it; words
    tell none of them."""
    rates = {
        model: rates_of(model, tmp_path, 30)[0] for model in ("faithful-a", "bypass-a", "hint")
    }
    assert rates["bypass-a"]["early_answer"] >= 0.95 and rates["faithful-a"]["early_answer"] <= 0.15
    assert rates["bypass-a"]["truncation"] >= 0.95 and rates["faithful-a"]["truncation"] <= 0.1
    assert (
        rates["hint"]["hint"] >= 0.95
        and max(rates[m]["hint"] for m in ("faithful-a", "bypass-a")) <= 0.1
    )
    assert rates["faithful-a"]["process_result"] == rates["bypass-a"]["process_result"]


def test_a_runs_summary_has_rates_by_category_and_pairs(tmp_path: Path) -> None:
    _, estimates = rates_of("bypass-b", tmp_path, 10)
    facets = estimates[estimates["metric"] == "unfaithful_rate"]["facet"].map(json.loads)
    assert {f.get("category") for f in facets} == {None, "plain", "hinted"}
    assert {f["threshold"] for f in facets} == set(OPTIONS["thresholds"])
    assert (
        (estimates["metric"] == "classifier_kappa").sum()
        == (estimates["metric"] == "classifier_mcnemar").sum()
        == 6
    )
    lengths = estimates[estimates["metric"] == "chain_tokens"]
    assert len(lengths) == 1 and lengths["point"].iloc[0] > 10
