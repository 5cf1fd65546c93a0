"""Tool-trace alignment by hand: shares of a chain, one score a claim with its place, and what it
does without a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Failed, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.tool_trace import CARDS, tool_trace
from cotlab.suites.jsonl import load_suite
from tests.support.replies import finish

LOG = [
    {"name": "calculator", "input": "7 + 5", "output": "12"},
    {"name": "search", "input": "birds", "output": "3 birds"},
]
STEPS = (
    "Step 1: the calculator returns 12.",
    "Step 2: 7 + 5 = 13.",
    "Step 3: the search found 3 birds and 80 cats.",
)
ECHO = ModelRef("echo", "echo")


def item(meta: dict[str, Any], steps: tuple[str, ...] = STEPS) -> Item:
    return Item(
        "i1",
        "What are 7 and 5?",
        "12",
        tuple(Step(i, text) for i, text in enumerate(steps)),
        meta=meta,
    )


def given(one: Item) -> tuple[Score, ...]:
    """The scores of a chain that is given: nothing is asked."""
    end = finish(
        tool_trace(one, Params({"subject": ECHO}, options={"chain": "reference"}), Peers((one,)))
    )
    found: tuple[Score, ...] = end
    return found


def test_shares_by_hand() -> None:
    """12 and 3 birds are matched, 13 is contradicted by call 0, 80 cats by the search: 2, 2 and 0
    of 4 claims."""
    found = {s.metric: s.value for s in given(item({"tools": LOG})) if s.metric != "claim"}
    assert found == {
        "claim_matched": 0.5,
        "claim_contradicted": 0.5,
        "claim_unsupported": 0.0,
        "claims": 4.0,
    }


def test_each_claim_says_where_it_stands_and_which_call_decides() -> None:
    told = []
    for score in given(item({"tools": LOG})):
        if score.metric == "claim" and score.where is not None and score.step is not None:
            facet = dict(score.facet)
            told.append(
                (
                    score.step,
                    STEPS[score.step][slice(*score.where)],
                    score.value,
                    facet["verdict"],
                    facet.get("call"),
                )
            )
    assert told == [
        (0, "12", 1.0, "matched", "0"),
        (1, "13", 0.0, "contradicted", "0"),
        (2, "3", 1.0, "matched", "1"),
        (2, "80", 0.0, "contradicted", "1"),
    ]


def reasons(scores: tuple[Score, ...]) -> set[tuple[str, str | None]]:
    assert [score.metric for score in scores] == [card.name for card in CARDS]
    return {(score.status, score.reason) for score in scores}


def test_without_a_log_a_chain_or_a_claim_there_is_no_share() -> None:
    assert reasons(given(item({}))) == {("undefined", "the item has no tool log")}
    assert reasons(given(item({"tools": "12"}))) == {
        ("undefined", "the tool log is not a list of calls")
    }
    assert reasons(given(item({"tools": LOG}, ()))) == {("undefined", "the item has no chain")}
    found = {s.metric: (s.value, s.reason) for s in given(item({"tools": LOG}, ("We think.",)))}
    assert found["claims"] == (0.0, None) and found["claim_matched"] == (
        None,
        "the chain makes no claim",
    )


def test_the_models_own_chain_is_asked_for_once() -> None:
    one = item({"tools": LOG}, ())
    params = Params({"subject": ECHO}, options={"chain": "own"})
    program = tool_trace(one, params, Peers((one,)))
    (request,) = next(program)
    assert isinstance(request, Complete)
    end = finish(
        program,
        [
            Response(
                request.key,
                "1. The calculator returns 12.\n2. So 99 are left.\nSo the answer is 99.",
            )
        ],
    )
    found = {s.metric: s for s in end if s.metric != "claim"}
    assert found["claim_matched"].value == found["claim_unsupported"].value == 0.5
    assert found["claims"].evidence == (request.key,)
    program = tool_trace(one, params, Peers((one,)))
    (request,) = next(program)
    end = finish(program, [Failed(request.key, "away", 3)])
    assert reasons(end) == {("error", "away")}


def test_a_suites_line_carries_the_log(tmp_path: Path) -> None:
    line = {
        "item_id": "a",
        "prompt": "What are 7 and 5?",
        "ground_truth": "12",
        "tools": LOG,
        "reference_cot": [{"index": 0, "text": STEPS[0]}],
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    (one,) = load_suite(tmp_path / "s.jsonl").items
    assert {s.metric: s.value for s in given(one)}["claim_matched"] == 1.0


def test_an_unknown_chain() -> None:
    tool_trace.validate_options({"chain": "own"}, ECHO)
    with pytest.raises(UnknownName):
        tool_trace.validate_options({"chain": "mine"}, ECHO)
