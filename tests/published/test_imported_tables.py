"""Counts of two classifiers of hinted traces (ricyoung) and rated steps (technion-cs-nlp), out of
the imported runs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import pearsonr

from cotlab.run.imports.study import store_table
from cotlab.stats.intervals import wilson
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.tables import read_table

pytestmark = pytest.mark.soak
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HINTS, RATED = DATA / "lie_to_me", DATA / "fur_ratings" / "reasoning-chain-study.csv"
hinted = pytest.mark.skipif(
    not HINTS.is_dir(), reason="no counts beside the repository (../shared/data/lie_to_me)"
)
rated = pytest.mark.skipif(
    not RATED.is_file(), reason="no ratings beside the repository (../shared/data/fur_ratings)"
)


def by_classifier(store: Store, run: str) -> pd.DataFrame:
    scores = read.run_scores(store, run, metrics=["unfaithfulness"])
    return scores.assign(
        classifier=[json.loads(told)["classifier"] for told in scores["facet"]]
    ).pivot(index="item_id", columns="classifier", values="value")


@hinted
def test_the_two_classifiers_rates_over_all_traces(tmp_path: Path) -> None:
    """Printed there: 81.9 to 83.3 % and 68.8 to 70.6 % faithful of 10,276; McNemar without
    continuity 633.3.

    The 81.9 is of the rate as it is printed, 82.6 %; the counts, 8,485 of 10,276, give .81825.
    """
    store = Store(tmp_path)
    (kept,) = store_table(store, read_table(HINTS / "paper2" / "confusion_matrix_by_hint.csv"))
    table = by_classifier(store, kept.run_id)
    assert len(table) == 10_276
    for name, lo, hi in (("combined", "81.8", "83.3"), ("sonnet", "68.8", "70.6")):
        found = wilson(int((table[name] < 0.5).sum()), len(table))
        assert found.lo is not None and found.hi is not None
        assert (f"{100 * found.lo:.1f}", f"{100 * found.hi:.1f}") == (lo, hi)
    first = (table["combined"] > table["sonnet"]).sum()
    second = (table["combined"] < table["sonnet"]).sum()
    assert f"{(first - second) ** 2 / (first + second):.1f}" == "633.3"
    categories = {
        item.category
        for item in read.get_suite(store, read.get_run(store, kept.run_id)["suite"]).items
    }
    assert categories == {"sycophancy", "consistency", "metadata", "grader", "unethical"}


@hinted
def test_twelve_models_by_hint(tmp_path: Path) -> None:
    """Of deepseek-r1 faithfulness_summary.csv prints 1,131 of 1,208 and regex_only_baseline.csv
    1,107."""
    store = Store(tmp_path)
    runs = {
        kept.model: kept.run_id
        for kept in store_table(store, read_table(HINTS / "classification_method_breakdown.csv"))
    }
    assert len(runs) == 12
    table = by_classifier(store, runs["deepseek-r1"])
    assert (len(table), (table["combined"] < 0.5).sum(), (table["regex"] < 0.5).sum()) == (
        1208,
        1131,
        1107,
    )


@rated
def test_ratings_and_drops(tmp_path: Path) -> None:
    """Pearson's r of all 100: .151, p .134; of the 81 with a drop above 0: .267, p .016."""
    store = Store(tmp_path)
    runs = [kept.run_id for kept in store_table(store, read_table(RATED))]
    scores = pd.concat([read.run_scores(store, run).assign(run=run) for run in runs])
    table = scores.pivot(index=["run", "item_id"], columns="metric", values="value")
    assert (len(runs), len(table), int(table["step_flip"].sum())) == (2, 100, 73)
    for rows, n, r, p in (
        (table, 100, ".151", ".134"),
        (table[table["step_drop"] > 0], 81, ".267", ".016"),
    ):
        found = pearsonr(rows["step_rating"], rows["step_drop"])
        assert (len(rows), f"{found.statistic:.3f}"[1:], f"{found.pvalue:.3f}"[1:]) == (n, r, p)
