"""Does a calibrated probability hold? Fitted on 200 labels of a mixed organism suite, asked on thousands of fresh items.

Organisms of every reliance on their chain answer after chains that are clean, follow a planted hint or are corrupted
(`cotlab.suites.mixed`, which says how often each). The label of an item is the generator's: the answer is right and the chain
is the true one. The features come through the ordinary runner, the labels through the store, the calibrator from
`cotlab.review.calibrate`. The labelled and the fresh items have seeds of their own and share no question.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.run.config import RunConfig, config_again
from cotlab.run.launch import resume, start
from cotlab.store.gate import Store
from cotlab.suites.mixed import mixed_suite
from cotlab.validation.models import weights_digest
from cotlab.validation.runs import statuses

MODELS = ("r100", "r75", "r50", "r25", "r0", "hint", "faithful-a", "bypass-a")
LABELS = 200
SETTINGS = {
    "scorer": ["composite", "ablation", "mediation"], "mode": ["corrupt"], "chain": "reference", "layers": ["0-3"],
    "donors": 2, "draws": 1, "subsets": 1, "max_concurrent": 200,
    "set": {
        "consistency.paraphrases": "1", "consistency.holdout": "0", "consistency.floor_chains": "20", "diversity.paths": "2",
        "robustness.perturbations": "numeric",
    },
}  # fmt: skip
"""What every run is told: all features, at the fewest requests."""


def suites(n_labels: int, n_fresh: int, seed: int) -> Iterator[tuple[str, str, Suite]]:
    """(part, model, suite) of every run: each model has items of its own, and no question is asked twice."""
    taken: set[str] = set()
    for k, model in enumerate(MODELS):
        for part, n, own in (("fit", n_labels, 0), ("fresh", n_fresh, 1)):
            share = n // len(MODELS) + (k < n % len(MODELS))
            suite = mixed_suite(share, 1000 * seed + 2 * k + own, without=taken, name=f"mixed-{part}")
            taken |= {item.question for item in suite.items}
            yield part, model, suite


def measure(store: Store, model: str, suite: Suite) -> str:
    """The id of the finished run of a model on a suite; one that was broken off is gone on with."""
    versions = [SCORERS[name].version for name in SETTINGS["scorer"]]  # type: ignore[attr-defined]
    run_id = f"{suite.name}-{model}-{digest([suite.digest, versions, SETTINGS, weights_digest(model)])[:10]}"
    known = statuses(store)
    if known.get(run_id) == "done":
        return run_id
    if run_id in known:
        done = resume(run_id, {}, store)
    else:
        plain = {name: field.get_default(call_default_factory=True) for name, field in RunConfig.model_fields.items()}
        done = start(config_again(plain, {**SETTINGS, "model": model}), store, suite=suite, run_id=run_id)
    if done.status != "done":
        raise CotlabError(f"The run {run_id} ended as {done.status}: {done.message} The same command goes on from there.")
    return run_id


def runs_of(store: Store, n_labels: int, n_fresh: int, seed: int, models: Sequence[str] = MODELS) -> dict[str, list[str]]:
    """The runs of both parts, ``fit`` and ``fresh``."""
    found: dict[str, list[str]] = {"fit": [], "fresh": []}
    for part, model, suite in suites(n_labels, n_fresh, seed):
        if model in models:
            found[part].append(measure(store, model, suite))
            print(f"{part}: {found[part][-1]}, {len(suite.items)} items", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2040, help="fresh items")
    parser.add_argument("--labels", type=int, default=LABELS, help="labelled items")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, default=Path("data/store/calibration"), help="a folder; gone on with")
    parser.add_argument("--only", nargs="*", default=list(MODELS), help="measure these models and stop there")
    told = parser.parse_args()
    runs_of(Store(told.store), told.labels, told.items, told.seed, told.only)


if __name__ == "__main__":
    main()
