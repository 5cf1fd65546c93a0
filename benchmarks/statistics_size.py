"""Time of each statistic at 100,000 units over its time at 10,000: 10 where it is linear in n.

``python benchmarks/statistics_size.py [--name PART …] [--sizes N N]`` prints the processor seconds
and the peak of memory at both sizes, and their ratio; the target is 15 at most. What takes fewer
than a hundredth of a second is repeated. Permutations and resamples are those of pages and reports.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cotlab import stats
from cotlab.stats import ranking
from cotlab.stats.shuffles import Shuffles

TARGET, SEED, SHORT_S = 15.0, 1, 0.01
Call = Callable[[], object]


def calls(n: int) -> dict[str, Call]:
    """Return every statistic whose time depends on n, ready to be called on n units."""
    rng = np.random.default_rng(n)
    floats, noise = rng.random(n), rng.normal(0.02, 0.3, n)
    distinct, eighths = floats.tolist(), (rng.integers(0, 9, n) / 8).tolist()
    moved, flags = (floats + noise).tolist(), (rng.random(n) < 0.6).astype(float).tolist()
    other_flags = (rng.random(n) < 0.5).astype(float).tolist()
    fives, units = (np.arange(n) // 5).tolist(), list(range(n))
    labels, other_labels = (rng.integers(0, 4, n).tolist() for _ in range(2))
    target = rng.random(n) < floats
    ratings = [(a, b, c) for a, b, c in zip(labels, other_labels, labels[::-1], strict=True)]
    half = n // 2
    sides = floats[:half], floats[half:]
    flag_sides = flags[:half], flags[half:]
    questions = units[:half], units[half:]

    def shuffles() -> Shuffles:
        return Shuffles(*questions, permutations=1999, seed=SEED)

    probabilities = {
        f"{name} of {measure}": (
            lambda measure=measure, function=function, given=given: function(
                measure, *given, target, units, seed=SEED
            )
        )
        for name, function, given in (
            ("measure_interval", stats.measure_interval, (floats,)),
            ("measure_difference", stats.measure_difference, (floats, floats[::-1])),
        )
        for measure in ("brier", "log_loss", "ece", "auroc")
    }
    return {
        "bootstrap_mean, distinct": lambda: stats.bootstrap_mean(distinct, seed=SEED),
        "bootstrap_mean, eighths": lambda: stats.bootstrap_mean(eighths, seed=SEED),
        "bootstrap_ratio": lambda: stats.bootstrap_ratio(distinct, [1.0, 2.0] * half, seed=SEED),
        "cluster_bootstrap": lambda: stats.cluster_bootstrap(distinct, fives, seed=SEED),
        "paired_bootstrap": lambda: stats.paired_bootstrap(distinct, moved, seed=SEED),
        "paired_permutation": lambda: stats.paired_permutation(distinct, moved, seed=SEED),
        "wilcoxon": lambda: stats.wilcoxon(distinct, moved),
        "cohen_dz": lambda: stats.cohen_dz(distinct, moved),
        "mcnemar": lambda: stats.mcnemar(flags, other_flags),
        "pearson": lambda: stats.pearson(distinct, moved),
        "spearman": lambda: stats.spearman(distinct, moved),
        "spearman_p": lambda: stats.spearman_p(distinct, moved),
        "at_equal": lambda: stats.at_equal(distinct, moved, fives),
        "t_interval": lambda: stats.t_interval(distinct),
        "log_ratio_interval": lambda: stats.log_ratio_interval(distinct),
        "benjamini_hochberg": lambda: stats.benjamini_hochberg(distinct),
        "percent_agreement": lambda: stats.percent_agreement(labels, other_labels),
        "cohen_kappa": lambda: stats.cohen_kappa(labels, other_labels),
        "nominal_alpha": lambda: stats.nominal_alpha(ratings, seed=SEED),
        "auroc": lambda: stats.auroc(floats, target),
        "brier": lambda: stats.brier(floats, target),
        "log_loss": lambda: stats.log_loss(floats, target),
        "ece": lambda: stats.ece(floats, target),
        "perfect_band": lambda: stats.perfect_band(floats, seed=SEED),
        "reliability_bins": lambda: stats.reliability_bins(floats, target),
        **probabilities,
        "rank_intervals": lambda: ranking.rank_intervals(
            floats, target, units, seed=SEED, names=("auroc",)
        ),
        "Shuffles": shuffles,
        "feature_drift, flags": lambda: stats.feature_drift(*flag_sides, shuffles()),
        "feature_drift, distinct": lambda: stats.feature_drift(*sides, shuffles()),
        "joint_drift": lambda: stats.joint_drift(
            *(side[:, None] for side in sides), *questions, permutations=1999, seed=SEED
        ),
    }


def measure(call: Call) -> tuple[float, float]:
    """Return processor seconds of one call, and by how many megabytes the process grew at most."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    before, began, n_calls = resident_mb("VmRSS"), time.process_time(), 0
    while n_calls == 0 or time.process_time() - began < SHORT_S:
        call()
        n_calls += 1
    return (time.process_time() - began) / n_calls, resident_mb("VmHWM") - before


def resident_mb(name: str) -> float:
    """Return VmRSS or VmHWM of this process in megabytes."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(name))


def main() -> None:
    """Print a row a statistic, then those over the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", action="append", help="only names with this part")
    parser.add_argument("--sizes", type=int, nargs=2, default=[10_000, 100_000])
    options = parser.parse_args()
    small, large = options.sizes
    small_calls, large_calls = calls(small), calls(large)
    stats.wilcoxon([1.0, 2.0, 3.0], [2.0, 3.0, 5.0])  # loads scipy
    over = []
    print(f"| statistic | {small:,} | {large:,} | ratio | memory |\n|---|---|---|---|---|")
    for name, call in small_calls.items():
        if options.name and not any(part in name for part in options.name):
            continue
        small_s, _ = measure(call)
        large_s, megabytes = measure(large_calls[name])
        ratio = large_s / small_s
        print(
            f"| {name} | {1e3 * small_s:.2f} ms | {1e3 * large_s:.2f} ms | {ratio:.1f} |"
            f" {megabytes:.0f} MB |",
            flush=True,
        )
        if ratio > TARGET * large / small / 10:
            over.append(name)
    print(f"over {TARGET:g}: {', '.join(over) or 'none'}")


if __name__ == "__main__":
    main()
