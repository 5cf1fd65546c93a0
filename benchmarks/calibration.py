"""Does a calibrated probability hold on thousands of fresh items, fitted on 200 labels?

Organisms of every reliance on their chain answer after chains that are clean, follow a planted hint
or are corrupted (`cotlab.suites.mixed`, which says how often each). The label of an item is the
generator's: the answer is right and the chain is the true one. The features come through the
ordinary runner, the labels through the store, the calibrator from
`cotlab.review.release.calibrate`. Labelled and fresh items differ in seed and share no question.

Three probabilities are held against the fresh items: r_raw with the example weights and a map,
r_raw with weights tuned on the same labels and a map, and the features combined
(`cotlab.reliability.combine`). For each: ECE over 10 bins of equal mass with the band of a
perfectly calibrated forecaster, Brier score, log loss, AUROC, and AUROC minus that of the best
single part, paired. ``--splits`` draws the 200 labels anew from all items and says how often the
bounds hold. About twelve minutes of one core; a second call resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.labels import Label
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.reliability.calibrator import measure_probabilities
from cotlab.reliability.combine import Combination, fit_combination, fit_with_predictions
from cotlab.reliability.maps import NotCalibrated, fit
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.release.apply import calibrated_scores
from cotlab.review.release.calibrate import calibrate_runs
from cotlab.review.release.features import feature_table
from cotlab.run.config import RunConfig, resumed_config
from cotlab.run.launch import resume_run, start_run
from cotlab.stats.calibration import auroc, ece
from cotlab.stats.calibration_intervals import measure_difference
from cotlab.stats.intervals import Interval
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.labels import add_labels
from cotlab.suites.mixed import mixed_suite
from cotlab.validation.models import weights_digest
from cotlab.validation.runs import status_by_run_id

MODELS = ("r100", "r75", "r50", "r25", "r0", "hint", "faithful-a", "bypass-a")
LABELS = 200
WORST_ECE, WORST_LOSS = 0.05, 0.02
"""What is claimed: ECE at most, and AUROC at most this much below the best single part's."""
PARTS = ("C", "R", "V", "D", "F", "ccs_corrupt", "mass_lost")
Floats = NDArray[np.float64]
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
"""What every run is told: all features, at the fewest requests."""


def suites(n_labels: int, n_fresh: int, seed: int) -> Iterator[tuple[str, str, Suite]]:
    """(part, model, suite) of every run: each model has items of its own, and no question is asked
    twice."""
    taken: set[str] = set()
    for k, model in enumerate(MODELS):
        for part, n, own in (("fit", n_labels, 0), ("fresh", n_fresh, 1)):
            share = n // len(MODELS) + (k < n % len(MODELS))
            suite = mixed_suite(
                share, 1000 * seed + 2 * k + own, excluded_questions=taken, name=f"mixed-{part}"
            )
            taken |= {item.question for item in suite.items}
            yield part, model, suite


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


def runs_of(
    store: Store, n_labels: int, n_fresh: int, seed: int, models: Sequence[str] = MODELS
) -> dict[str, list[str]]:
    """The runs of both parts, ``fit`` and ``fresh``."""
    found: dict[str, list[str]] = {"fit": [], "fresh": []}
    for part, model, suite in suites(n_labels, n_fresh, seed):
        if model in models:
            found[part].append(measure(store, model, suite))
            print(f"{part}: {found[part][-1]}, {len(suite.items)} items", flush=True)
    return found


@dataclass(frozen=True, slots=True)
class Held:
    """One probability against fresh items.

    Attributes
    ----------
    n, undefined : int
        Items with a probability, and without one.
    best : str
        The single part with the highest AUROC on the fresh items, in its better direction.
    against : mapping of part to Interval
        AUROC of the probability minus the part's, on the items that have both, paired by question.
    """

    name: str
    told: str
    n: int
    undefined: int
    measured: Any
    best: str
    against: Mapping[str, Interval]

    @property
    def holds(self) -> bool:
        """Whether the points keep both bounds."""
        gap = self.against[self.best].point
        error = self.measured.ece.point
        return (
            gap is not None
            and error is not None
            and bool(error <= WORST_ECE and gap >= -WORST_LOSS)
        )


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


def label(store: Store, table: pd.DataFrame) -> int:
    """Give each row of ``truths`` the generator's label; how many were new."""
    now = datetime.now(UTC)
    rows = [
        Label(
            digest([row.run, row.item_id, "generator"])[:32],
            row.run,
            row.item_id,
            "generator",
            "acceptable" if row.valid else "not_acceptable",
            row.right,
            now,
            origin="import",
        )
        for row in table.itertuples()
    ]
    with store.writing() as connection:
        return add_labels(connection, rows)


def single(values: Floats, y: Floats) -> Floats:
    """A part as a score, turned round where it ranks the wrong way."""
    return values if (auroc(values, y) or 0.0) >= 0.5 else -values


def hold(name: str, told: str, p: Floats, fresh: pd.DataFrame, seed: int) -> Held:
    """Hold probabilities against the targets of fresh items."""
    y, questions = fresh["target"].astype(float).to_numpy(), fresh["question"].to_numpy()
    known = ~np.isnan(p)
    found = measure_probabilities(p[known], y[known], questions[known].tolist(), seed=seed)
    against, alone = {}, {}
    for part in PARTS:
        values = fresh[part].to_numpy(dtype=float)
        both = known & ~np.isnan(values)
        if both.sum() < 2 or np.ptp(y[both]) == 0:
            continue
        score = single(values[both], y[both])
        alone[part] = auroc(score, y[both]) or 0.0
        against[part] = measure_difference(
            "auroc", score, p[both], y[both], questions[both].tolist(), seed=seed
        )
    return Held(
        name,
        told,
        int(known.sum()),
        int((~known).sum()),
        found,
        max(alone, key=lambda part: alone[part]),
        against,
    )


def judge(
    store: Store, runs: Mapping[str, Sequence[str]], seed: int
) -> tuple[list[Held], pd.DataFrame, pd.DataFrame]:
    """Label, fit and hold every probability against the fresh items; with the tables of the
    labelled and the fresh ones."""
    label(store, truths(store, runs["fit"]))
    learnt = load_labelled_features(store, runs["fit"])
    fresh = truths(store, runs["fresh"])
    fresh = fresh[fresh["target"].notna()].reset_index(drop=True)
    clash = set(learnt["question"]) & set(fresh["question"])
    if clash:
        raise CotlabError(
            f"{len(clash)} questions are both labelled and fresh: the proof would see what it is"
            " asked"
        )
    out = []
    for weights in ("example", "tuned"):
        found = calibrate_runs(store, runs["fit"], author="benchmark", weights=weights, seed=seed)
        told = f"{found.calibrator.method}" + (
            "" if found.weights is None else f", weights {dict(found.weights)}"
        )
        p = calibrated_scores(store, fresh, version=found.version)["r_cal"].to_numpy(dtype=float)
        out.append(hold(f"r_raw, {weights} weights", told, p, fresh, seed))
    y = learnt["target"].astype(bool).to_numpy()
    whole = fit_with_predictions(learnt, y, learnt["question"].tolist(), seed=seed).combination
    out.append(hold("combined features", shown(whole), whole.predict(fresh), fresh, seed))
    return out, learnt, fresh


def shown(combination: Combination) -> str:
    """A combination in words."""
    weights = ", ".join(
        f"{c['feature']} {c['kind']} {c['weight']:+.2f}" for c in combination.params["columns"]
    )
    return f"{combination.params['form']}, penalty {combination.params['penalty']:g}: {weights}"


def splits(table: pd.DataFrame, n_labels: int, times: int, seed: int) -> pd.DataFrame:
    """Draw the labels anew from all items, fit on them, and measure on the rest: one row a draw and
    method."""
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(seed)
    y, r_raw = table["target"].astype(float).to_numpy(), table["r_raw"].to_numpy(dtype=float)
    for draw in range(times):
        held = np.ones(len(table), dtype=bool)
        held[rng.permutation(len(table))[:n_labels]] = False
        probabilities: dict[str, Floats] = {}
        usable = ~held & ~np.isnan(r_raw)
        for method in ("platt", "beta", "isotonic"):
            try:
                probabilities[f"r_raw, {method}"] = fit(method, r_raw[usable], y[usable]).predict(
                    r_raw[held]
                )
            except NotCalibrated:
                continue
        own = fit_combination(table[~held], y[~held], table["question"][~held].tolist(), seed=seed)
        probabilities["combined"] = own.predict(table[held])
        for name, p in probabilities.items():
            at = ~np.isnan(p)
            best = max(
                auroc(single(v[k], y[held][k]), y[held][k]) or 0.0
                for part in PARTS
                for v in [table[part].to_numpy(dtype=float)[held]]
                for k in [~np.isnan(v)]
            )
            rank = auroc(p[at], y[held][at]) or 0.0
            error = ece(p[at], y[held][at], bins=10)
            rows.append(
                {"draw": draw, "name": name, "ece": error, "auroc": rank, "gap": rank - best}
            )
    return pd.DataFrame(rows)


def told(held: Held) -> str:
    """What was found, in lines."""
    m = held.measured

    def interval(one: Interval) -> str:
        bounds = "" if one.lo is None else f" [{one.lo:.4f}, {one.hi:.4f}]"
        return "n/a" if one.point is None else f"{one.point:.4f}{bounds}"

    lines = [
        f"## {held.name}: {'holds' if held.holds else 'DOES NOT HOLD'}",
        f"{held.told}",
        (
            f"n {held.n} (without a probability {held.undefined}); ECE {interval(m.ece)} over"
            f" {m.bins} bins, a perfect forecaster's [{m.band[0]:.4f}, {m.band[1]:.4f}]"
        ),
        f"Brier {interval(m.brier)}, log loss {interval(m.log_loss)}, AUROC {interval(m.auroc)}",
        f"AUROC minus the best single part's ({held.best}): {interval(held.against[held.best])}",
        "minus each: "
        + "; ".join(f"{part} {interval(one)} (n {one.n})" for part, one in held.against.items()),
        "bins: "
        + " ".join(
            f"{b.predicted:.3f}->{b.observed.point:.3f} (n {b.observed.n})" for b in m.diagram
        ),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2040, help="fresh items")
    parser.add_argument("--labels", type=int, default=LABELS, help="labelled items")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--store", type=Path, default=Path("data/store/calibration"), help="a folder; gone on with"
    )
    parser.add_argument(
        "--only", nargs="*", help="measure these models and stop there: others may run beside it"
    )
    parser.add_argument("--splits", type=int, default=20, help="draws of other labels")
    given = parser.parse_args()
    store = Store(given.store)
    runs = runs_of(store, given.labels, given.items, given.seed, given.only or MODELS)
    if given.only:
        return
    found, learnt, fresh = judge(store, runs, given.seed)
    whole = pd.concat(
        [one.assign(target=one["target"].astype(float)) for one in (learnt, fresh)],
        ignore_index=True,
    )
    print(
        f"\n{len(learnt)} labels ({int(learnt['target'].sum())} acceptable), {len(fresh)} fresh"
        f" items ({int(fresh['target'].sum())} acceptable)\n"
    )
    print(
        fresh.assign(right=fresh["correct"], target=fresh["target"].astype(float))
        .groupby("kind")[["right", "target", "r_raw", *PARTS]]
        .mean()
        .round(3)
        .to_string()
    )
    print(
        "\nShare without a value: "
        + ", ".join(f"{p} {fresh[p].isna().mean():.3f}" for p in ("r_raw", *PARTS))
        + "\n"
    )
    print("\n\n".join(map(told, found)))
    if given.splits:
        drawn = splits(whole, given.labels, given.splits, given.seed)
        print(f"\n## {given.splits} other draws of {given.labels} labels, measured on the rest")
        for name, own in drawn.groupby("name", sort=False):
            fine = ((own["ece"] <= WORST_ECE) & (own["gap"] >= -WORST_LOSS)).mean()
            print(
                f"{name}: ECE median {own['ece'].median():.4f}, 90 % below"
                f" {own['ece'].quantile(0.9):.4f}; AUROC {own['auroc'].median():.4f}, minus the"
                f" best part {own['gap'].median():+.4f} (least {own['gap'].min():+.4f}); both"
                f" bounds hold in {fine:.0%}"
            )


if __name__ == "__main__":
    try:
        main()
    except CotlabError as stopped:
        raise SystemExit(str(stopped)) from None
