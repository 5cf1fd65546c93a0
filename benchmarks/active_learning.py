"""How many labels a calibrator needs: items chosen near the threshold and diverse, against items
drawn at random.

Labelled data of two kinds: synthetic vectors with a known chance of acceptance, and feature vectors
of runs of organisms on suites of sound and unsound chains (the label is the generator's: the answer
is right and the chain is the true one). In each repetition the questions are split into a pool and
held-out items; both ways begin with the same random labels, and label a batch at a time. After each
batch the calibrator is fitted on what is labelled. Printed, for each data set and learner: the
labels that each way needs until its mean held-out Brier score is within ``--within`` of that of a
fit on the whole pool, their ratio with a bootstrap interval over repetitions, and the same for the
share of held-out items on whose side of the threshold the fit disagrees with that of the whole
pool. A ratio above 1 means that choosing saves labels.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from mixed import mixed_suite
from numpy.typing import NDArray

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.metrics.composite import FEATURE_SOURCES
from cotlab.reliability.acquisition import choose_next_labels
from cotlab.reliability.maps import fit
from cotlab.review.release.features import EXTRA_FEATURES, feature_table
from cotlab.run.config import RunConfig, resumed_config
from cotlab.run.launch import resume_run, start_run
from cotlab.stats.composite import EXAMPLE_WEIGHTS
from cotlab.stats.drift import standardise_columns
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.validation.models import weights_digest
from cotlab.validation.runs import status_by_run_id

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]
START, BATCH = 20, 20

SETTINGS = {
    "scorer": ["composite", "ablation", "mediation"],
    "mode": ["corrupt"],
    "chain": "reference",
    "layers": ["0-3"],
    "donors": 2,
    "draws": 1,
    "subsets": 1,
    "max_concurrent": 100,
    "set": {
        "consistency.paraphrases": "2",
        "consistency.holdout": "0",
        "consistency.floor_chains": "20",
        "diversity.paths": "2",
        "robustness.perturbations": "numeric",
    },
}
"""What every run of organisms is told: all features, at the fewest requests."""


class Data(NamedTuple):
    """Items: r_raw (n,), features (n, d) without gaps, labels (n,) of 0 and 1, and the question of
    each."""

    name: str
    r_raw: Floats
    features: Floats
    labels: Floats
    questions: list[str]


def synthetic(n: int, seed: int) -> Data:
    """Five parts in [0, 1] that share a cause, weighed as the example weights say; the chance of
    acceptance is logistic."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(n, 1))
    parts = 1 / (1 + np.exp(-(0.8 * cause + rng.normal(size=(n, len(EXAMPLE_WEIGHTS))) + 0.6)))
    r_raw = parts @ np.array(list(EXAMPLE_WEIGHTS.values()))
    chance = 1 / (1 + np.exp(-14 * (r_raw - 0.62)))
    return Data(
        "synthetic",
        r_raw,
        parts,
        (rng.random(n) < chance).astype(float),
        [str(i) for i in range(n)],
    )


def organisms(store: Store, items: int) -> Data:
    """Runs of organisms on mixed suites: those that the store holds and that ended, else of three
    organisms, made now."""
    rows = read.list_runs(store).to_dict("records")
    runs = [
        str(r["id"])
        for r in rows
        if r["status"] == "done" and str(r["suite_name"]).startswith("mixed")
    ]
    if not runs:
        runs = [
            measure(store, model, mixed_suite(items, 23 + k))
            for k, model in enumerate(("r50", "hint", "r100"))
        ]
    table = truths(store, runs)
    table = table[table["r_raw"].notna() & table["target"].notna()]
    features = standardise_columns(table[[*FEATURE_SOURCES, *EXTRA_FEATURES]].to_numpy(float))
    label = table["target"].astype(bool).to_numpy(float)
    return Data("organisms", table["r_raw"].to_numpy(), features, label, list(table["question"]))


def platt(data: Data, rows: Floats) -> Predict:
    """Platt's map of r_raw, as ``cotlab calibrate --method platt`` fits it."""
    calibrator = fit("platt", data.r_raw[rows], data.labels[rows].astype(bool))
    return lambda at: np.asarray(calibrator.predict(data.r_raw[at]))


def logistic(data: Data, rows: Floats) -> Predict:
    """Logistic regression on all features: what many labels could reach."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0)).fit(
        data.features[rows], data.labels[rows]
    )
    return lambda at: np.asarray(model.predict_proba(data.features[at])[:, 1])


LEARNERS = {"Platt on r_raw": platt, "logistic on features": logistic}


def once(
    data: Data, learner: Callable[..., Predict], most: int, theta: float, seed: int
) -> tuple[Floats, Floats]:
    """Excess Brier and share of other decisions than the whole pool's fit: (2 ways, batches) each,
    chosen first."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(sorted(set(data.questions)))
    inside = set(names[: len(names) // 2])
    pool = np.flatnonzero([name in inside for name in data.questions])
    held = np.flatnonzero([name not in inside for name in data.questions])
    whole = learner(data, pool)(held)
    best = np.mean((whole - data.labels[held]) ** 2)
    while True:  # both classes are needed for a first fit
        first = rng.choice(pool, START, replace=False)
        if 3 <= data.labels[first].sum() <= START - 3:
            break
    most = min(most, START + BATCH * ((int(0.8 * len(pool)) - START) // BATCH))
    excess, others = [], []
    for choosing in (True, False):
        rows = list(first)
        brier, other = [], []
        while True:  # a batch at a time
            predict = learner(data, np.array(rows))
            told = predict(held)
            brier.append(float(np.mean((told - data.labels[held]) ** 2) - best))
            other.append(float(np.mean((told >= theta) != (whole >= theta))))
            if len(rows) >= most:
                break
            taken = np.isin(pool, rows)
            if choosing:
                found = choose_next_labels(
                    predict(pool),
                    data.features[pool],
                    [theta],
                    BATCH,
                    is_labelled=taken,
                    seed=len(rows),
                )
                rows += [int(pool[one.row]) for one in found.choices]
            else:
                rows += list(rng.choice(pool[~taken], BATCH, replace=False))
        excess.append(brier)
        others.append(other)
    return np.array(excess), np.array(others)


def needed(curve: Floats, limit: float) -> float:
    """Labels from which on a mean curve (batches,) stays at or below ``limit``, between batches by
    a line; inf if never."""
    above = np.flatnonzero(curve > limit)
    if not len(above):
        return float(START)
    last = int(above[-1])
    if last == len(curve) - 1:
        return float("inf")
    part = (curve[last] - limit) / (curve[last] - curve[last + 1])
    return START + BATCH * (last + float(part))


def compared(curves: Floats, limit: float, seed: int) -> str:
    """Labels needed by both ways of (repetitions, 2, batches), and the ratio random / chosen with
    its interval.

    A way that does not get there counts as needing all labels that were given, which brings the
    ratio nearer to 1.
    """
    rng = np.random.default_rng(seed)
    most = START + BATCH * (curves.shape[2] - 1)

    def ways(some: Floats) -> list[float]:
        return [needed(some[:, way].mean(axis=0), limit) for way in (0, 1)]

    def ratio(some: Floats) -> float:
        chosen, drawn = (min(one, most) for one in ways(some))
        return drawn / chosen

    draws = [ratio(curves[rng.integers(len(curves), size=len(curves))]) for _ in range(1000)]
    lo, hi = np.quantile(draws, [0.025, 0.975])
    told = [f"{one:.0f}" if np.isfinite(one) else f"more than {most}" for one in ways(curves)]
    return f"{told[0]} | {told[1]} | {ratio(curves):.2f} [{lo:.2f}, {hi:.2f}]"


def sets(told: argparse.Namespace) -> Iterator[Data]:
    yield synthetic(told.items, told.seed)
    if told.word_problems:
        with tempfile.TemporaryDirectory() as folder:
            yield organisms(Store(told.store or Path(folder)), told.word_problems)


def measure(store: Store, model: str, suite: Suite) -> str:
    """The id of the finished run of a model on a suite; one that was broken off is gone on with."""
    versions = [SCORERS[name].version for name in SETTINGS["scorer"]]  # type: ignore[attr-defined]
    settings = digest([suite.digest, versions, SETTINGS, weights_digest(model)])
    run_id = f"{suite.name}-{model}-{settings[:10]}"
    known = status_by_run_id(store)
    if known.get(run_id) == "done":
        return run_id
    if run_id in known:
        done = resume_run(run_id, {}, store)
    else:
        plain = {
            name: field.get_default(call_default_factory=True)
            for name, field in RunConfig.model_fields.items()
        }
        done = start_run(
            resumed_config(plain, {**SETTINGS, "model": model}), store, suite=suite, run_id=run_id
        )
    if done.status != "done":
        raise CotlabError(
            f"The run {run_id} ended as {done.status}: {done.outcome.note or ''} The same"
            " command goes on from there."
        )
    return run_id


def truths(store: Store, runs: Sequence[str]) -> pd.DataFrame:
    """The features of all items of runs, with ``kind, valid, target``: the answer is right and the
    chain is the true one.

    ``target`` is None where the model's answer could not be read and the chain is valid.
    """
    table = feature_table(store, runs)
    meta: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run_id in runs:
        suite = read.get_suite(store, read.plan_from_row(read.get_run(store, run_id)).suite_digest)
        meta |= {(run_id, item.id): item.meta for item in suite.items}
    own = [meta[place] for place in zip(table["run"], table["item_id"], strict=True)]
    valid = [bool(one["valid"]) for one in own]
    right = [None if np.isnan(value) else bool(value) for value in table["correct"]]
    target = [
        False if not v or r is False else (True if r else None)
        for v, r in zip(valid, right, strict=True)
    ]
    return table.assign(
        kind=[one["kind"] for one in own],
        valid=valid,
        right=pd.Series(right, dtype=object),
        target=pd.Series(target, dtype=object),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=1600, help="synthetic items")
    parser.add_argument(
        "--store",
        type=Path,
        help="a store with runs on mixed suites (sound and unsound chains)",
    )
    parser.add_argument(
        "--word-problems",
        type=int,
        default=100,
        help="items of each organism's run; 0 leaves organisms out",
    )
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--most", type=int, default=300, help="labels at the end")
    parser.add_argument("--theta", type=float, default=0.5)
    parser.add_argument(
        "--within",
        type=float,
        nargs="+",
        default=[0.005, 0.002],
        help="excess Brier that counts as reached",
    )
    parser.add_argument(
        "--other", type=float, default=0.05, help="share of other decisions that counts as reached"
    )
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    print(
        f"{told.repetitions} repetitions, {START} random labels, {BATCH} a batch, at most"
        f" {told.most} and four fifths of the pool; theta {told.theta:g}\n"
    )
    print(
        "| data (items, acceptable) | learner | until | chosen | random | random / chosen [95 %] |"
    )
    print("|---|---|---|---|---|---|")
    for data in sets(told):
        named = f"{data.name} ({len(data.labels)}, {data.labels.mean():.0%})"
        for learner, make in LEARNERS.items():
            found = [
                once(data, make, told.most, told.theta, told.seed + k)
                for k in range(told.repetitions)
            ]
            excess, other = (np.array([one[i] for one in found]) for i in (0, 1))
            goals = [(f"Brier + {limit:g}", excess, limit) for limit in told.within]
            for goal, curves, limit in [
                *goals,
                (f"{told.other:.0%} other decisions", other, told.other),
            ]:
                print(
                    f"| {named} | {learner} | {goal} | {compared(curves, limit, told.seed)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
