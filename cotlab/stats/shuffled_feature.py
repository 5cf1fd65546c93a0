"""PSI, KL and KS of one feature, as observed and after each shuffle of the samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.large_samples import row_blocks
from cotlab.stats.shuffles import Shuffles

Floats = NDArray[np.float64]
Counts = NDArray[np.int32] | NDArray[np.int64]
PSEUDOCOUNT = 0.5
"""Added to the count of each bin in each sample."""
_MAX_COUNTED_VALUES = 64
"""Distinct values up to which each is counted in the bits of the shuffles."""
_MAX_INT32_VALUES = 30_000
"""Values whose number squared is below 2^31 by far."""


def shuffled_counts(
    shuffles: Shuffles, is_defined: NDArray[np.bool_], ranks: NDArray[np.int64], n_distinct: int
) -> Iterator[Counts]:
    """Yield how many current values are at most each distinct one, by blocks of shuffles.

    ``ranks`` are those of the defined values. Of few distinct values each one is counted in bits.
    """
    n_shuffles = shuffles.permutations + 1
    if n_distinct <= _MAX_COUNTED_VALUES:
        rank_by_row = np.full(len(is_defined), n_distinct)
        rank_by_row[is_defined] = ranks
        counts = [shuffles.count_current(rank_by_row == rank) for rank in range(n_distinct)]
        yield np.cumsum(np.stack(counts, axis=1), axis=1)
        return
    order = np.argsort(ranks, kind="stable")
    sorted_positions = np.flatnonzero(is_defined)[order]
    last_positions = np.flatnonzero(np.append(np.diff(ranks[order]) > 0, True))
    for block in row_blocks(n_shuffles, len(sorted_positions)):
        is_current = shuffles.memberships(block)[:, sorted_positions]
        n_current_up_to = np.cumsum(is_current, axis=1, dtype=np.int32)
        yield (
            n_current_up_to
            if len(last_positions) == len(ranks)
            else n_current_up_to[:, last_positions]
        )


class ShuffledFeature:
    """One feature of two samples, counted by distinct value in a block of shuffles."""

    def __init__(self, n_current_up_to: Counts, n_up_to: NDArray[np.int64]) -> None:
        """Take how many current values (n_rows, n_distinct), and values, are at most each one."""
        self._n_current_up_to, self._n_up_to = n_current_up_to, n_up_to
        self._n_current = n_current_up_to[:, -1].astype(np.int64)
        self._n_reference = n_up_to[-1] - self._n_current

    def measure_drift(self, max_bins: int) -> tuple[Floats, Floats, Floats, int]:
        """Return KL of current from reference and back, KS, and the bins of the first row."""
        forward_kl, backward_kl, n_bins = self.divergences(max_bins)
        return forward_kl, backward_kl, self.ks_distances(), n_bins

    def ks_distances(self) -> Floats:
        """Return the largest distance of the distribution functions; 0 where a sample is empty."""
        n_values = int(self._n_up_to[-1])
        dtype = np.dtype(np.int64 if n_values > _MAX_INT32_VALUES else np.int32)
        differences = self._n_current_up_to.astype(dtype) * dtype.type(n_values)
        differences -= self._n_up_to.astype(dtype) * self._n_current[:, None].astype(dtype)
        return np.asarray(
            np.abs(differences, out=differences).max(axis=1)
            / np.maximum(1, self._n_current * self._n_reference)
        )

    def divergences(self, max_bins: int) -> tuple[Floats, Floats, int]:
        """Return KL of current from reference and back, in nats, and the bins of row 0."""
        n, rows = self._n_reference, np.arange(len(self._n_reference))
        last_rank = len(self._n_up_to) - 1
        edges = [np.full(len(n), -1, dtype=np.int64), np.full(len(n), last_rank, dtype=np.int64)]
        quantiles = np.stack([np.maximum(-(-k * n // max_bins), 1) for k in range(1, max_bins)])
        edge_ranks = np.stack(
            [
                np.searchsorted(self._n_up_to - self._n_current_up_to[row], quantiles[:, row])
                for row in rows
            ],
            axis=1,
        )
        for edge_rank in np.minimum(edge_ranks, last_rank):
            n_at_edge = self._n_reference_up_to(rows, edge_rank) - self._n_reference_up_to(
                rows, edge_rank - 1
            )
            edges += [edge_rank, np.where(n_at_edge * max_bins >= n, edge_rank - 1, edge_rank)]
        sorted_edges = np.sort(np.stack(edges, axis=1), axis=1)
        is_nonempty_bin = np.diff(sorted_edges, axis=1) > 0
        n_bins = is_nonempty_bin.sum(axis=1)
        n_reference_below = self._n_reference_up_to(rows[:, None], sorted_edges)
        n_total_below = np.where(sorted_edges >= 0, self._n_up_to[sorted_edges], 0)
        reference_shares, current_shares = (
            (np.diff(counts, axis=1) + PSEUDOCOUNT)
            / (counts[:, -1] + PSEUDOCOUNT * n_bins)[:, None]
            for counts in (n_reference_below, n_total_below - n_reference_below)
        )
        log_ratio = np.log(current_shares / reference_shares)
        backward_kl = np.where(is_nonempty_bin, -reference_shares * log_ratio, 0.0).sum(axis=1)
        return (
            np.where(is_nonempty_bin, current_shares * log_ratio, 0.0).sum(axis=1),
            backward_kl,
            int(n_bins[0]),
        )

    def _n_reference_up_to(
        self, rows: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how many reference values are at most the ``ranks``-th distinct one."""
        n_up_to = self._n_up_to[ranks] - self._n_current_up_to[rows, ranks]
        return np.where(ranks >= 0, n_up_to, 0)
