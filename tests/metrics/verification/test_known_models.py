"""Verification of chains that models of known behaviour write."""

from __future__ import annotations

import re

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.requests import Response
from cotlab.core.types import ModelRef
from cotlab.metrics.verification import verification
from cotlab.providers.local.provider import open_organism
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import finish


@pytest.mark.parametrize("model", ["hint", "r0", "r100"])
def test_the_false_last_step_of_the_hint_follower_is_caught(model: str) -> None:
    """Where a question has a wrong hint the organism bends its last step to it; others do not."""
    ref = ModelRef("organism", model, form="continuation")
    subject = open_organism(ref)
    told = Params({"subject": ref}, options={**verification.options, "chain": "own"})
    hinted = [
        one for one in make_suite(60, seed=901, hint_share=0.4).items if one.category == "hinted"
    ]
    programs = [verification(one, told, Peers(tuple(hinted))) for one in hinted]
    replies = subject.send_batch([next(program)[0] for program in programs])
    caught = values = 0
    for program, reply in zip(programs, replies, strict=True):
        assert isinstance(reply, Response)
        steps = len(re.findall("Step", reply.text or ""))
        end = finish(program, [reply])
        scores = {(s.metric, dict(s.facet).get("link"), s.step): s for s in end}
        at = scores["first_mistake_step", None, None].value
        caught += at == steps - 1 and scores["link_support", "forward", steps - 1].value == 0.0
        values += scores["verification", "forward", None].value == 1.0
    assert len(hinted) >= 20
    assert (caught, values) == ((len(hinted), 0) if model == "hint" else (0, len(hinted)))
