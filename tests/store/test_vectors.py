"""Vectors in the response log: a quarter of their size as numbers, exact, and the older form is
still read."""

from __future__ import annotations

import json
import struct

from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.requests import Response
from cotlab.store.log import decode_response, encode_json, encode_response

NARROW = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = st.none() | st.lists(st.lists(NARROW, max_size=5).map(tuple), max_size=3).map(tuple)
WIDE = st.lists(st.lists(st.floats(allow_nan=False), max_size=4).map(tuple), max_size=3).map(tuple)


def stored(vectors: tuple[tuple[float, ...], ...] | None) -> str:
    return encode_json(encode_response(Response("k", vectors=vectors)))


@given(ROWS | WIDE)
def test_every_number_comes_back_exactly(vectors: tuple[tuple[float, ...], ...] | None) -> None:
    assert decode_response(stored(vectors)).vectors == vectors


def test_a_vector_of_single_precision_takes_a_quarter_of_its_digits() -> None:
    vector = tuple(struct.unpack("<384f", struct.pack("<384f", *(1 / (k + 3) for k in range(384)))))
    assert 2048 <= len(stored((vector,))) < 2300 < 8192 < len(json.dumps(vector))


def test_what_single_precision_cannot_hold_stays_a_list_of_numbers() -> None:
    for vector in ((0.1,), (1e300,), (float("inf"), 0.1), (2**31 + 1,)):
        assert json.loads(stored((vector,)))["vectors"] == [list(vector)]


def test_a_log_of_the_older_form_is_read() -> None:
    old = json.dumps({"key": "k", "vectors": [[0.1, 0.2], [1, -1.5]], "usage": {}})
    assert decode_response(old).vectors == ((0.1, 0.2), (1, -1.5))
