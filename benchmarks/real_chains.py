"""Combined fits of text features on real chains with human-located mistakes (ProcessBench).

``python benchmarks/real_chains.py [--data FOLDER] [--splits 5] [--json]`` fits on one half of the
questions and measures on the other, over random splits by question, the four sets pooled:

- T1, is the chain free of mistakes; T2, the same among chains whose answer is right;
- without the answer, against the number of characters alone, and the length family (characters,
  words, steps) alone, each fitted in the same way;
- with whether the answer is right, against characters and answer, with Brier score and ECE;
- each set predicted by a fit on the other three.

Every interval is a paired bootstrap over the questions of a split's test half.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.combine import fit_combination, predict_unseen_domains
from cotlab.stats.calibration import auroc, brier, ece
from cotlab.stats.calibration_intervals import measure_difference
from cotlab.text.answers.extract import final_answer
from cotlab.text.arithmetic.readings import read_steps
from cotlab.text.chain_features.chain import FEATURES, chain_features

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "processbench"
SETS = ("gsm8k", "math", "olympiadbench", "omnimath")
ANSWER = "answer_correct"
CHARACTERS = ("text_characters",)
LENGTH_FAMILY = ("text_characters", "text_words", "text_steps")
FITS: dict[str, tuple[str, ...]] = {
    "features": FEATURES,
    "characters": CHARACTERS,
    "length family": LENGTH_FAMILY,
    "features and domain": (*FEATURES, DOMAIN_FEATURE),
    "characters and domain": (*CHARACTERS, DOMAIN_FEATURE),
    "features and answer": (*FEATURES, ANSWER),
    "characters and answer": (*CHARACTERS, ANSWER),
    "length family and answer": (*LENGTH_FAMILY, ANSWER),
}
COMPARISONS = (
    ("features", "characters"),
    ("features", "length family"),
    ("features and domain", "characters and domain"),
    ("features and answer", "characters and answer"),
    ("features and answer", "length family and answer"),
)
Values = NDArray[np.float64]


def load_chains(folder: Path) -> pd.DataFrame:
    """Return one row a chain: its features, set, question, answer_correct and ``sound``."""
    rows: list[dict[str, Any]] = []
    for name in SETS:
        for record in json.loads((folder / f"{name}.json").read_text("utf-8")):
            question, steps = record["problem"], record["steps"]
            answer = final_answer("\n".join(steps), question)
            features = chain_features(question, steps, answer, read_steps(steps))
            rows.append(
                {
                    **{k: np.nan if v is None else v for k, v in features.items()},
                    DOMAIN_FEATURE: name,
                    "question": question,
                    ANSWER: float(record["final_answer_correct"]),
                    "sound": record["label"] == -1,
                }
            )
    return pd.DataFrame(rows)


def split_questions(questions: Sequence[str], seed: int) -> NDArray[np.bool_]:
    """Return which chains are of the first half of the questions in a random order."""
    distinct = sorted(set(questions))
    order = np.random.default_rng(seed).permutation(len(distinct))
    first_half = {distinct[int(k)] for k in order[: len(distinct) // 2]}
    return np.array([question in first_half for question in questions])


def measure_split(chains: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Fit on one half of the questions and measure on the other."""
    is_train = split_questions(chains["question"].tolist(), seed)
    train, test = chains[is_train], chains[~is_train]
    y, questions = test["sound"].to_numpy(dtype=bool), test["question"].to_numpy(dtype=object)
    is_right = test[ANSWER].to_numpy() == 1
    predictions = {}
    for name, columns in FITS.items():
        fit = fit_combination(
            train, train["sound"], train["question"].tolist(), names=columns, seed=seed
        )
        predictions[name] = fit.predict(test)
    record: dict[str, Any] = {"n_train": int(is_train.sum()), "n_test": len(test)}
    for name, p in predictions.items():
        record[name] = {
            "T1": auroc(p, y),
            "T2": auroc(p[is_right], y[is_right]),
            "brier": brier(p, y),
            "ece": ece(p, y),
        }
    for name, baseline in COMPARISONS:
        for target, mask in (("T1", np.ones(len(y), dtype=bool)), ("T2", is_right)):
            difference = measure_difference(
                "auroc",
                predictions[baseline][mask],
                predictions[name][mask],
                y[mask],
                questions[mask].tolist(),
                seed=seed,
            )
            record[f"{name} minus {baseline}, {target}"] = [
                difference.point,
                difference.lo,
                difference.hi,
            ]
    return record


def measure_unseen_sets(chains: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Predict each set by a fit on the other three."""
    y, is_right = chains["sound"].to_numpy(dtype=bool), chains[ANSWER].to_numpy() == 1
    questions = chains["question"].tolist()
    table: dict[str, dict[str, float | None]] = {}
    for label, names in (("features", FEATURES), ("characters", CHARACTERS)):
        p, _ = predict_unseen_domains(chains, y, questions, names=names)
        for name in SETS:
            mask = (chains[DOMAIN_FEATURE] == name).to_numpy()
            entry = table.setdefault(name, {})
            entry[f"T1 {label}"] = auroc(p[mask], y[mask])
            entry[f"T2 {label}"] = auroc(p[mask & is_right], y[mask & is_right])
        entry = table.setdefault("mean of the four", {})
        for target in ("T1", "T2"):
            values = [table[name][f"{target} {label}"] for name in SETS]
            entry[f"{target} {label}"] = float(np.mean([v for v in values if v is not None]))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every figure; 0 also where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.data.exists():
        print(f"skipped: {options.data} is missing")
        return 0
    start = time.perf_counter()
    chains = load_chains(options.data)
    feature_seconds = time.perf_counter() - start
    splits = [measure_split(chains, seed) for seed in range(options.splits)]
    means = {
        name: {
            key: float(np.mean([split[name][key] for split in splits]))
            for key in ("T1", "T2", "brier", "ece")
        }
        for name in FITS
    }
    differences = {key: [split[key] for split in splits] for key in splits[0] if " minus " in key}
    unseen = measure_unseen_sets(chains)
    result = {
        "n": len(chains),
        "feature_seconds": feature_seconds,
        "seconds": time.perf_counter() - start,
        "splits": splits,
        "means": means,
        "unseen_sets": unseen,
    }
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    print(
        f"{len(chains)} chains, {len(FEATURES)} features in {feature_seconds:.1f} s; mean of"
        f" {options.splits} splits by question, half and half"
    )
    print(f"{'fit':28}{'T1':>8}{'T2':>8}{'Brier':>8}{'ECE':>8}")
    for name, entry in means.items():
        print(f"{name:28}" + "".join(f"{entry[k]:8.4f}" for k in ("T1", "T2", "brier", "ece")))
    for key, triples in differences.items():
        mean = np.mean([point for point, _, _ in triples])
        texts = ", ".join(f"{point:+.3f} [{lo:+.3f}, {hi:+.3f}]" for point, lo, hi in triples)
        print(f"{key}: mean {mean:+.4f}; a split: {texts}")
    print("each set predicted by a fit on the other three:")
    for name, values in unseen.items():
        print(f"  {name}: " + ", ".join(f"{k} {v:.3f}" for k, v in values.items() if v is not None))
    print(f"{result['seconds']:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
