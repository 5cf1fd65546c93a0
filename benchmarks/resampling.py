"""Cost of resampling compared with scipy's, and its growth with n.

Processor seconds of one BCa interval and of one permutation test: scipy's, and ``large_samples``
for distinct values, for values that repeat (eighths) and for clusters of five; the largest
difference of the bounds, in half widths; and the growth of time per doubling of n, which is 2 where
time is linear; and the peak of memory.
``python benchmarks/resampling.py [--large]``; ``--large`` goes on to 400,000 values.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from cotlab.stats import resample
from cotlab.stats.large_samples import ratio_bounds, sign_flip_p

T = TypeVar("T")
LEVEL = 0.95


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of one call, and what it returns."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def against_scipy(n: int) -> None:
    """One line a kind of values: both times, their ratio, and how far the bounds lie apart."""
    rng = np.random.default_rng(n)
    kinds = {
        "distinct": (rng.exponential(1.0, n), np.ones(n)),
        "eighths": (rng.integers(0, 9, n) / 8, np.ones(n)),
        "clusters": (rng.random((n, 5)).sum(axis=1), rng.integers(1, 6, n).astype(float)),
    }
    for kind, (top, bottom) in kinds.items():
        point = float(top.sum() / bottom.sum())
        slow, old = timed(
            lambda t=top, b=bottom, p=point: resample._scipy_bounds(t, b, p, 1, LEVEL)
        )
        fast, new = timed(
            lambda t=top, b=bottom: ratio_bounds(
                t, b, seed=1, level=LEVEL, n_resamples=resample.RESAMPLES
            )
        )
        apart = max(abs(old[0] - new.lo), abs(old[1] - new.hi)) / ((old[1] - old[0]) / 2)
        print(
            f"{n:>7,}  BCa {kind:<9} scipy {slow:8.4f} s  linear {fast:8.4f} s"
            f"  ratio {slow / fast:7.1f}  bounds apart {apart:.1e} half widths"
        )


def flips_against_scipy(n: int) -> None:
    """The same of the permutation test of paired differences."""
    from scipy import stats

    differences = np.random.default_rng(n).normal(0.02, 1.0, n)
    slow, old = timed(
        lambda: (
            stats.permutation_test(
                (differences, np.zeros(n)),
                resample._mean_difference,
                permutation_type="samples",
                vectorized=True,
                n_resamples=resample.RESAMPLES,
                rng=np.random.default_rng(1),
                batch=max(1, resample._BLOCK_CELLS // n),
            ).pvalue
        )
    )
    fast, new = timed(lambda: sign_flip_p(differences, seed=1, n_resamples=resample.RESAMPLES))
    print(
        f"{n:>7,}  sign flips    scipy {slow:8.4f} s  linear {fast:8.4f} s"
        f"  ratio {slow / fast:7.1f}  p {old:.3f} and {new:.3f}"
    )


def growth(sizes: list[int]) -> None:
    """Time of each size over that of the size before, per doubling; and the peak of memory."""
    before: dict[str, float] = {}
    for n in sizes:
        values = np.random.default_rng(n).random(n)
        kinds = {
            "distinct": lambda v=values: resample.bootstrap_mean(v.tolist(), seed=1),
            "eighths": lambda v=values: resample.bootstrap_mean(
                (np.round(v * 8) / 8).tolist(), seed=1
            ),
            "clusters": lambda v=values: resample.cluster_bootstrap(
                v.tolist(), (np.arange(len(v)) // 5).tolist(), seed=1
            ),
            "sign flips": lambda v=values: resample.paired_permutation(
                v.tolist(), (v[::-1] * 0.999).tolist(), seed=1
            ),
        }
        for kind, run in kinds.items():
            seconds, _ = timed(run)
            tracemalloc.start()
            run()
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            ratio = f"{seconds / before[kind]:5.2f}" if kind in before else "    -"
            print(
                f"{n:>7,}  {kind:<12} {seconds:8.4f} s  per doubling {ratio}  peak {peak:6.1f} MB"
            )
            before[kind] = seconds


def main() -> None:
    """Print the comparison with scipy, then the growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="go on to 400,000 values")
    large = parser.parse_args().large
    resample.bootstrap_mean([0.0, 1.0, 2.0, 3.0, 5.0], seed=1)  # loads scipy
    for n in (2000, 5000, 10_000, *((20_000,) if large else ())):
        against_scipy(n)
    for n in (2000, 5000):
        flips_against_scipy(n)
    growth([50_000 * 2**k for k in range(5 if large else 3)])


if __name__ == "__main__":
    main()
