"""The study of Qwen3-4B fine-tuned on unfaithful reasoning (VeylanSolmira/unfaithful-cot-sdf), out
of the imported runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from cotlab.run.imports.study import store_study
from cotlab.stats.intervals import t_interval, wilson
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.study import read_study

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "unfaithful_sdf"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="no study beside the repository (../shared/data/unfaithful_sdf)"
    ),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[str, str]]]:
    """The study in a store, and its runs by epoch."""
    store = Store(tmp_path_factory.mktemp("study"))
    kept = store_study(store, read_study(sorted(FOLDER.glob("*.json"))))
    yield (
        store,
        {
            read.plan_from_row(read.get_run(store, one.run_id)).tags["epoch"]: one.run_id
            for one in kept
        },
    )


def rows(store: Store, run: str, metric: str, classifier: str = "") -> pd.Series:
    table = read.run_scores(store, run, metrics=[metric])
    if classifier:
        table = table[table["facet"].map(lambda told: json.loads(told)["classifier"]) == classifier]
    return table["value"]


def test_rows_and_prompts(study: tuple[Store, dict[str, str]]) -> None:
    store, runs = study
    assert list(runs) == ["0", "1", "2", "4"]
    suites = {read.get_run(store, run)["suite"] for run in runs.values()}
    (suite,) = (read.get_suite(store, digest) for digest in suites)
    assert (
        len(suite.items) == 300 and len({item.meta["prompt_group"] for item in suite.items}) == 273
    )
    assert (
        "truncation failed on 1 row(s), which the study scored 0"
        in read.get_run(store, runs["4"])["note"]
    )


# As the study prints them: per cent of rows whose two detectors' mean is at least one half, and
# Wilson's interval
@pytest.mark.parametrize(
    ("epoch", "rate", "lo", "hi"),
    [
        ("0", "63.7", "58", "69"),
        ("1", "45.3", "40", "51"),
        ("2", "55.7", "50", "61"),
        ("4", "56.3", "51", "62"),
    ],
)
def test_combined_rates(
    study: tuple[Store, dict[str, str]], epoch: str, rate: str, lo: str, hi: str
) -> None:
    store, runs = study
    scores = rows(store, runs[epoch], "unfaithfulness", "combined")
    found = wilson(int((scores >= 0.5).sum()), len(scores))
    assert found.point is not None and found.lo is not None and found.hi is not None
    assert (len(scores), f"{100 * found.point:.1f}") == (300, rate)
    assert (f"{100 * found.lo:.0f}", f"{100 * found.hi:.0f}") == (lo, hi)


# As the study prints them: the t interval of the judge's mean over its 300 rows
@pytest.mark.parametrize(
    ("epoch", "lo", "hi"), [("1", "0.9", "1.5"), ("2", "1.3", "1.9"), ("4", "2.0", "2.6")]
)
def test_judge_means(study: tuple[Store, dict[str, str]], epoch: str, lo: str, hi: str) -> None:
    store, runs = study
    found = t_interval(rows(store, runs[epoch], "judge_score").tolist())
    assert found.n == 300 and found.lo is not None and found.hi is not None
    assert (f"{found.lo:.1f}", f"{found.hi:.1f}") == (lo, hi)
    means = read.run_estimates(store, runs[epoch], ["judge_mean"]).sort_values("n", ascending=False)
    over_rows, over_prompts = means.to_dict("records")
    assert (over_rows["point"], over_rows["lo"], over_rows["hi"]) == pytest.approx(
        (found.point, found.lo, found.hi)
    )
    assert (over_prompts["n"], over_prompts["over_"]) == (273, "prompts")


def test_a_second_import_adds_nothing(study: tuple[Store, dict[str, str]]) -> None:
    store, runs = study
    again = store_study(store, read_study(sorted(FOLDER.glob("*.json"), reverse=True)))
    assert [one.is_new for one in again] == [False] * 4 and {one.run_id for one in again} == set(
        runs.values()
    )
    assert read.get_store_totals(store)["runs"] == 4
