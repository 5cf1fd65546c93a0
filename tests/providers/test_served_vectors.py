"""Vectors of texts from a server's /v1/embeddings."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cotlab.core.errors import BadReply, Unsupported
from cotlab.core.requests import Embed
from cotlab.core.types import ModelRef
from cotlab.providers.openai_compat import OpenAICompat, read_vectors
from tests.support.served_organism import serving_llama_cpp

REF = ModelRef("openai_compat", "m", base_url="http://127.0.0.1:9/v1")
TEXTS = ("7 + 5 = 12.", "So the answer is 12.", "7 + 5 = 12.")


@pytest.fixture(scope="module")
def address() -> Any:
    with serving_llama_cpp("faithful-a", "--vectors") as served_at:
        yield f"{served_at}/v1"


@pytest.fixture
async def model(address: str) -> AsyncIterator[OpenAICompat]:
    opened = OpenAICompat(ModelRef("openai_compat", "m", base_url=address))
    yield opened
    await opened.close()


async def test_llama_cpp_gives_each_text_its_vector(model: OpenAICompat) -> None:
    reply = await model.send(Embed(model.ref, TEXTS))
    assert reply.vectors is not None
    one, other, again = reply.vectors
    assert all(math.isclose(math.hypot(*vector), 1.0) for vector in reply.vectors)
    assert sum(a * b for a, b in zip(one, other, strict=True)) < 0.999
    assert one == pytest.approx(again, abs=1e-6)
    assert reply.usage.tokens_in and reply.usage.tokens_out == 0


async def test_a_text_without_a_word_is_not_sent(model: OpenAICompat) -> None:
    with pytest.raises(Unsupported, match="without a word"):
        await model.send(Embed(model.ref, ("a", " ")))


def test_vectors_stand_in_the_order_of_the_texts() -> None:
    rows = [{"index": 1, "embedding": [0, 2.0]}, {"index": 0, "embedding": [3.0, 4.0]}]
    reply = read_vectors(Embed(REF, ("a", "b")), {"data": rows})
    assert reply.vectors == ((0.6, 0.8), (0.0, 1.0))


@pytest.mark.parametrize(
    "rows",
    [
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [0.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [float("nan")]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "AAAA"}],
        [{"index": 0, "embedding": [1.0]}, {"index": [1], "embedding": [1.0]}],
    ],
    ids=json.dumps,
)
def test_what_is_no_vector_of_each_text_is_a_bad_reply(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(BadReply):
        read_vectors(Embed(REF, ("a", "b")), {"data": rows})
