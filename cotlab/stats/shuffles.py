"""Permutations of questions between two samples."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np


class Shuffles:
    """Membership in the current sample, as observed and after each permutation.

    The rows of a question that both samples asked are dealt out anew between the two, as many to
    each as it had of them. Of the other questions each sample gets as many as it had, and their
    rows move together.

    Parameters
    ----------
    reference, current : sequence of str or int
        The question of each row of each sample.
    permutations : int, at least 1
    seed : int

    Raises
    ------
    ValueError
        If ``permutations`` is below 1.
    """

    def __init__(
        self,
        reference: Sequence[Hashable],
        current: Sequence[Hashable],
        *,
        permutations: int,
        seed: int,
    ) -> None:
        if permutations < 1:
            raise ValueError(f"a null needs at least one permutation, got {permutations}")
        rng = np.random.default_rng(seed)
        index_by_name = {name: i for i, name in enumerate(dict.fromkeys((*reference, *current)))}
        question = np.array([index_by_name[name] for name in (*reference, *current)], np.int64)
        observed = np.arange(len(question)) >= len(reference)
        n_current = np.bincount(question[observed], minlength=len(index_by_name))
        is_shared = (n_current > 0) & (n_current < np.bincount(question))
        self.is_current = np.tile(observed, (permutations + 1, 1))
        """Memberships (1 + permutations, n), the observed one in row 0."""
        moving = np.flatnonzero(~is_shared)
        question_is_current = n_current > 0
        for row in self.is_current[1:]:
            question_is_current[moving] = rng.permutation(n_current[moving] > 0)
            row[:] = question_is_current[question]
        shared_rows = np.flatnonzero(is_shared[question])
        # by question, and within one the rows that are current first
        ordered = question[shared_rows][np.argsort(question[shared_rows], kind="stable")]
        place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
        for row in self.is_current[1:] if len(shared_rows) else ():
            keys = question[shared_rows] + rng.random(len(shared_rows))
            row[shared_rows[np.argsort(keys)]] = place < n_current[ordered]
