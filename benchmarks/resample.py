"""How the time of a bootstrap and a permutation test grows with the sample: n = 10,000 and 100,000.

python benchmarks/resample.py
"""

from __future__ import annotations

import time

import numpy as np

from cotlab.stats.resample import bootstrap_mean, paired_permutation


def seconds(values: list[float]) -> float:
    """Return CPU seconds of an interval of the mean and of a paired test."""
    began = time.process_time()
    bootstrap_mean(values, seed=1)
    paired_permutation(values, values[::-1], seed=1)
    return time.process_time() - began


if __name__ == "__main__":
    values = np.random.default_rng(0).random(100_000).tolist()
    small, large = min(seconds(values[:10_000]) for _ in range(3)), seconds(values)
    print(f"100,000 values take {large / small:.1f} times as long as 10,000 ({large:.1f} s)")
