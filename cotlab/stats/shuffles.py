"""Permutations of questions between two samples, drawn in blocks of rows and held as bits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from cotlab.stats.large_samples import row_blocks

Floats = NDArray[np.float64]
_CACHED_CELLS = 50_000
"""Array cells of a block that several passes read: they stay in a processor's cache."""
_BITS = 64
"""Memberships that one number of ``Shuffles`` holds."""


class Shuffles:
    """Membership in the current sample, as observed and after each permutation.

    The rows of a question that both samples asked are dealt out anew between the two, as many to
    each as it had of them. Of the other questions each sample gets as many as it had, and their
    rows move together. Memberships are held as bits.

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
        index_by_question = {
            name: i for i, name in enumerate(dict.fromkeys((*reference, *current)))
        }
        question_index = np.array(
            [index_by_question[name] for name in (*reference, *current)], dtype=np.int64
        )
        observed_is_current = np.arange(len(question_index)) >= len(reference)
        current_counts = np.bincount(
            question_index[observed_is_current], minlength=len(index_by_question)
        )
        n_rows_by_question = np.bincount(question_index, minlength=len(index_by_question))
        is_shared = (current_counts > 0) & (current_counts < n_rows_by_question)
        self.n_rows = len(question_index)
        """Rows of both samples."""
        n_columns = -(-self.n_rows // _BITS)
        self._packed = np.zeros((permutations + 1, n_columns), dtype=np.uint64)
        self._packed[0] = _pack_bits(observed_is_current)
        self._move_unshared_questions(
            np.flatnonzero(~is_shared), current_counts > 0, question_index, rng
        )
        shared_rows = np.flatnonzero(is_shared[question_index])
        if len(shared_rows):
            self._deal_shared_rows(shared_rows, question_index[shared_rows], current_counts, rng)

    def _move_unshared_questions(
        self,
        questions: NDArray[np.int64],
        question_is_current: NDArray[np.bool_],
        question_index: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        """Permute which of the questions that one sample alone asked are current."""
        observed = question_is_current[questions].astype(np.int64)  # numpy moves 64 bits fastest
        is_moving = bool(observed.any() and not observed.all())
        self._packed[1:] = _pack_bits(question_is_current[question_index])
        for k in range(1, self.permutations + 1):
            shuffled = observed.copy()
            rng.shuffle(shuffled)  # also where nothing moves: later draws follow from this stream
            if is_moving:
                question_is_current[questions] = shuffled
                self._packed[k] = _pack_bits(question_is_current.take(question_index))

    def _deal_shared_rows(
        self,
        shared_rows: NDArray[np.int64],
        questions: NDArray[np.int64],
        current_counts: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        """Deal the rows of questions that both samples asked, in the order of random keys."""
        by_question = np.argsort(questions, kind="stable")
        starts = np.flatnonzero(np.diff(questions[by_question], prepend=-1))
        sizes = np.diff(starts, append=len(questions))
        n_current = current_counts[questions[by_question[starts]]]
        members_by_count = []
        for size, n in sorted(set(zip(sizes.tolist(), n_current.tolist(), strict=True))):
            of_question = starts[(sizes == size) & (n_current == n)][:, None] + np.arange(size)
            # one key is looked for in all questions at once, several in one after the other
            axis = -2 if n in (1, size - 1) else -1
            members_by_count.append(
                (n, axis, by_question[of_question.T if axis == -2 else of_question])
            )
        # where in the dealt order, one group of counts after the other, each shared row stands
        question_offsets = questions.astype(float)
        place_of_row = np.argsort(
            np.concatenate([members.ravel() for _, _, members in members_by_count])
        )
        for block in row_blocks(self.permutations, self.n_rows, _CACHED_CELLS):
            keys = rng.random((block.stop - block.start, len(questions)))
            keys += question_offsets
            dealt = [
                _smallest(keys.take(members, axis=1), n, axis).reshape(len(keys), -1)
                for n, axis, members in members_by_count
            ]
            is_current = np.concatenate(dealt, axis=1).take(place_of_row, axis=1)
            rows = slice(block.start + 1, block.stop + 1)
            if len(questions) < self.n_rows:
                memberships = self.memberships(rows)
                memberships[:, shared_rows] = is_current
                is_current = memberships
            self._packed[rows] = _pack_bits(is_current)

    def memberships(self, rows: slice) -> NDArray[np.bool_]:
        """Return the membership of each row (n_memberships, n) in a slice of memberships."""
        bits = np.unpackbits(self._packed[rows].view(np.uint8), axis=1, count=self.n_rows)
        return bits.view(np.bool_)

    def count_current(self, is_member: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return how many rows of a subset (n,) are in the current sample, by membership."""
        mask = _pack_bits(is_member)
        counts = [
            np.bitwise_count(self._packed[rows] & mask).sum(axis=1, dtype=np.int64)
            for rows in row_blocks(len(self._packed), self._packed.shape[1])
        ]
        return np.concatenate(counts)

    @property
    def is_current(self) -> NDArray[np.bool_]:
        """Return all memberships (1 + permutations, n), the observed one in row 0."""
        return self.memberships(slice(None))

    @property
    def permutations(self) -> int:
        """Return the number of permutations."""
        return len(self._packed) - 1


def _smallest(keys: Floats, n: int, axis: int = -1) -> NDArray[np.bool_]:
    """Return which ``n`` keys are the smallest along an axis; of ties, as a sort has them."""
    size = keys.shape[axis]
    is_chosen: NDArray[np.bool_]
    if n == 1:
        is_chosen = keys == keys.min(axis=axis, keepdims=True)
    elif n == size - 1:
        is_chosen = keys < keys.max(axis=axis, keepdims=True)
    else:
        is_chosen = keys <= np.partition(keys, n - 1, axis=axis).take([n - 1], axis=axis)
    if np.count_nonzero(is_chosen) != n * (keys.size // size):
        is_chosen[...] = False
        first = np.argsort(keys, axis=axis).take(range(n), axis=axis)
        np.put_along_axis(is_chosen, first, True, axis=axis)
    return is_chosen


def _pack_bits(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return flags (…, n) as bits of 64-bit numbers, those beyond n 0."""
    n_bytes = -(-flags.shape[-1] // _BITS) * _BITS // 8
    packed = np.zeros((*flags.shape[:-1], n_bytes), dtype=np.uint8)
    bits = np.packbits(flags, axis=-1)
    packed[..., : bits.shape[-1]] = bits
    return packed.view(np.uint64)
