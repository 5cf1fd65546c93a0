"""A set of quantities that is searched by value, in constant time a quantity."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from cotlab.text.answers.quantities import Quantity, same_quantity

_BUCKETS_PER_UNIT = 10**9
"""Values of one bucket differ by no more than two equal quantities may."""


class QuantitySet:
    """Quantities in the order in which they were added; ``in`` means `same_quantity`."""

    def __init__(self, quantities: Iterable[Quantity] = ()) -> None:
        self._quantities: list[Quantity] = []
        self._by_bucket: defaultdict[int, list[Quantity]] = defaultdict(list)
        for quantity in quantities:
            self.add(quantity)

    def add(self, quantity: Quantity) -> None:
        """Add a quantity."""
        self._quantities.append(quantity)
        for bucket in {_bucket(value) for value in _values(quantity)}:
            self._by_bucket[bucket].append(quantity)

    def __contains__(self, quantity: Quantity) -> bool:
        buckets = {_bucket(value) + i for value in _values(quantity) for i in (-1, 0, 1)}
        return any(
            same_quantity(candidate, quantity)
            for bucket in buckets
            for candidate in self._by_bucket.get(bucket, ())
        )

    def __iter__(self) -> Iterator[Quantity]:
        return iter(self._quantities)


def _values(quantity: Quantity) -> Iterator[Fraction]:
    """Yield the values by which a quantity may equal another: with, and without its unit."""
    yield quantity.value
    yield from quantity.unitless_values
    yield from (quantity.value * size for _, size in quantity.units)


def _bucket(value: Fraction) -> int:
    return math.floor(value * _BUCKETS_PER_UNIT)
