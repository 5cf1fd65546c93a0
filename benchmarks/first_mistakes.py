"""Where is the first mistake? The step model on ProcessBench, beside position and length alone.

python benchmarks/first_mistakes.py [FOLDER [TEST_FOLDER]]

FOLDER has ProcessBench's files as published (default ../shared/data/processbench). Five random
splits by question: five folds each, and halves, of which either is predicted by a fit on the other.
Then models of other sets only and, where TEST_FOLDER is given, a fit on FOLDER that predicts
TEST_FOLDER; all without the answer known and with it. In percent; intervals by bootstrap over
questions, 95 %.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cotlab.reliability.hazard import (
    Integers,
    fit_hazard,
    fit_hazard_with_predictions,
    locate_in_other_domains,
)
from cotlab.review.release.step_table import ANSWER_FEATURE, ChainContent, step_frame
from cotlab.stats.intervals import Interval
from cotlab.stats.ranking import NO_MISTAKE, location_difference, location_measures
from cotlab.text.chain_features.steps import BASELINE_FEATURES, STEP_FEATURES

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "processbench"
N_SPLITS = 5
FEATURES = {
    "": (STEP_FEATURES, BASELINE_FEATURES),
    "answer known": ((*STEP_FEATURES, ANSWER_FEATURE), (*BASELINE_FEATURES, ANSWER_FEATURE)),
}


class Chains(NamedTuple):
    steps: pd.DataFrame
    first_wrong: Integers
    questions: list[str]
    sets: list[str]

    def select(self, mask: np.ndarray) -> Chains:
        chosen = np.flatnonzero(mask)
        return Chains(
            self.steps[self.steps["chain"].isin(chosen)],
            self.first_wrong[chosen],
            [self.questions[k] for k in chosen],
            [self.sets[k] for k in chosen],
        )


def load(folder: Path) -> Chains:
    records = [r for path in sorted(folder.glob("*.json")) for r in json.loads(path.read_text())]
    sets = [record["id"].rpartition("-")[0] for record in records]
    contents = [
        ChainContent(record["problem"], record["steps"], name, record["final_answer_correct"])
        for record, name in zip(records, sets, strict=True)
    ]
    first_wrong = np.array([record["label"] for record in records])
    return Chains(step_frame(contents), first_wrong, [r["problem"] for r in records], sets)


def in_folds(chains: Chains, names: Sequence[str], seed: int) -> Integers:
    return fit_hazard_with_predictions(
        chains.steps, chains.first_wrong, chains.questions, names=names, seed=seed
    ).located


def in_halves(chains: Chains, names: Sequence[str], seed: int) -> Integers:
    order = np.random.default_rng(seed).permutation(sorted(set(chains.questions)))
    first_half = set(order[: len(order) // 2])
    is_first = np.array([question in first_half for question in chains.questions])
    located = np.full(len(is_first), NO_MISTAKE)
    for is_test in (is_first, ~is_first):
        located[is_test] = on_others(chains.select(~is_test), chains.select(is_test), names, seed)
    return located


def on_others(train: Chains, test: Chains, names: Sequence[str], seed: int) -> Integers:
    model = fit_hazard(train.steps, train.first_wrong, train.questions, names=names, seed=seed)
    return model.predict(test.steps).located


def print_line(
    label: str, chains: Chains, located: Sequence[Integers], baseline: Sequence[Integers]
) -> tuple[float, float, float]:
    """Print PB-F1 of several splits and of the baseline; return both means and the lowest bound."""
    shared = (chains.first_wrong, chains.questions, chains.sets)
    ours, theirs = (
        [location_measures(one, *shared, seed=0) for one in columns]
        for columns in (located, baseline)
    )
    differences = [
        location_difference(b, a, *shared, seed=0) for a, b in zip(located, baseline, strict=True)
    ]
    points, base_points = (
        [100 * (one.pb_f1.point or 0.0) for one in column] for column in (ours, theirs)
    )
    by_set = {
        name: np.mean([100 * (one.pb_f1_by_set[name] or 0.0) for one in ours])
        for name in dict.fromkeys(chains.sets)
    }
    print(
        f"{label:<34} {np.mean(points):5.1f}  position and length {np.mean(base_points):5.1f} "
        f" difference {np.mean(points) - np.mean(base_points):+.1f} "
        f" {' '.join(bounds(d) for d in differences)}  "
        + ", ".join(f"{name} {value:.1f}" for name, value in by_set.items()),
        flush=True,
    )
    lows = [100 * d.lo for d in differences if d.lo is not None]
    return float(np.mean(points)), float(np.mean(base_points)), min(lows)


def bounds(difference: Interval) -> str:
    if difference.lo is None or difference.hi is None:
        return "[no bounds]"
    return f"[{100 * difference.lo:+.1f}, {100 * difference.hi:+.1f}]"


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else FOLDER
    if not folder.is_dir():
        print(f"skipped: {folder} is not there")
        return
    start = time.perf_counter()
    chains = load(folder)
    print(
        f"{len(chains.first_wrong)} chains, {len(set(chains.questions))} questions,"
        f" {(chains.first_wrong == NO_MISTAKE).sum()} without a mistake; features of"
        f" {len(chains.steps)} steps in {time.perf_counter() - start:.1f} s"
    )
    for note, (names, baseline_names) in FEATURES.items():
        for label, predict in (("five folds", in_folds), ("halves", in_halves)):
            start = time.perf_counter()
            columns = [
                [predict(chains, features, seed) for seed in range(N_SPLITS)]
                for features in (names, baseline_names)
            ]
            print_line(f"{label}, {N_SPLITS} splits {note}", chains, *columns)
        other_sets = [
            [
                locate_in_other_domains(
                    chains.steps, chains.first_wrong, chains.questions, names=features
                )
            ]
            for features in (names, baseline_names)
        ]
        print_line(f"other sets only {note}", chains, *other_sets)
        if len(arguments) > 1:
            test = load(Path(arguments[1]))
            held = [[on_others(chains, test, features, 0)] for features in (names, baseline_names)]
            print_line(f"fitted here, on {Path(arguments[1]).name} {note}", test, *held)
    start = time.perf_counter()
    in_folds(chains, STEP_FEATURES, 0)
    print(f"one fit with its folds: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
