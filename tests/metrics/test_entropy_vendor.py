"""Entropy of a chain that a vendor's server wrote, through the vendor's own SDK."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from cotlab.core.requests import Response
from cotlab.core.types import ModelRef, Score
from cotlab.providers.openai import OpenAI
from tests.metrics.test_entropy import begin, params, told, values
from tests.support.loopback import Loopback, serving
from tests.support.replies import finish


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


async def asked(
    server: Loopback, turn: dict[str, Any], name: str = "gpt-4o-mini"
) -> tuple[Response, tuple[Score, ...]]:
    """One reply of the real SDK to what the scorer asks, and what it makes of it."""
    server.script(turn)
    model = OpenAI(ModelRef("openai", name, base_url=server.base_url))
    program, request = begin(params(model.ref, chain="own"))
    reply = await model.send(request)
    await model.close()
    return reply, finish(program, [reply])


async def test_a_vendors_own_chain(server: Loopback) -> None:
    """Step 1 is sure, step 2 a coin, step 3 uniform over eight: 0, ln 2, ln 8. The last line only
    gives the answer."""
    lists = {
        1: [["a", 0.0]],
        2: [[t, -math.log(2)] for t in "ab"],
        8: [[t, -math.log(8)] for t in "abcdefgh"],
    }
    told = [
        ("1.", 1),
        (" Go", 1),
        (" left", 1),
        (".\n", 1),
        ("2.", 2),
        (" Go up", 2),
        (".\n", 2),
        ("3.", 8),
        (" Go down.", 8),
        ("\n", 8),
        ("So the answer is", 1),
        (" down.", 1),
    ]
    turn = {
        "text": "".join(text for text, _ in told),
        "logprobs": [[text, -0.1, lists[n]] for text, n in told],
    }
    reply, scores = await asked(server, turn)
    assert reply.sent["top_logprobs"] == 20
    assert values(scores, "step_entropy") == pytest.approx([0, math.log(2), math.log(8)], abs=1e-9)
    assert values(scores, "entropy_rise") == [None, None, 1.0]
    assert values(scores, "entropy_trend") == [pytest.approx(1)]


async def test_a_vendor_without_log_probabilities(server: Loopback) -> None:
    reply, scores = await asked(server, {"text": "1. Go left.\n2. Go up."}, "gpt-5-mini")
    assert "top_logprobs" in reply.sent["not_sent"]
    assert told(scores) == {("undefined", "the model gives no log-probabilities")}
