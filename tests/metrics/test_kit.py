"""What scorers share: one request for a chain, and scores whose status a missing reply decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cotlab.core.program import Params
from cotlab.core.reasoning import UNREAD_MARKUP
from cotlab.core.requests import Failed, Response
from cotlab.core.types import Item, MetricCard, ModelRef, Step
from cotlab.metrics.kit import (
    Chain,
    ItemScores,
    Measurement,
    answer_request,
    ask,
    ask_chain,
    chain_from_reply,
    chain_of,
    parse_answer_reply,
    parse_chain_reply,
)
from cotlab.metrics.model_steps import model_steps
from tests.support.replies import drive, finish

CHAT = ModelRef("echo", "echo")
ITEM = Item("i1", "How many?", "9", (Step(0, "7 + 2 = 9."), Step(1, " ")))
CARD = MetricCard(name="m", symbol="m", formula="f", undefined="u", source="s", not_shown="n")
GOOD, OTHER = Response("a", "9"), Response("b", "8")
DEAD, UNABLE = Failed("c", "away", 3), Failed("d", "no images", 1, unsupported=True)
REFUSED = Response("e", "I cannot.", refused=True)


def params(chain: str = "reference", **more: object) -> Params:
    return replace(Params({"subject": CHAT}, options={"chain": chain}), **more)


# --- reasoning in the text of a reply

THOUGHT = "<think>3 + 4 = 7.\n\n7 + 2 = 9.</think>"


@pytest.mark.parametrize(
    ("text", "finish", "steps", "is_cut_off"),
    [
        (f"{THOUGHT}It is 9.", "stop", ("3 + 4 = 7.", "7 + 2 = 9."), False),
        # a chain that came to its end is whole, wherever the reply was cut
        (f"{THOUGHT}It is", "length", ("3 + 4 = 7.", "7 + 2 = 9."), False),
        (THOUGHT, "length", ("3 + 4 = 7.", "7 + 2 = 9."), False),
        ("<think>3 + 4 = 7.\n\nSo", "length", ("3 + 4 = 7.",), True),
        ("<think>\n</think>3 + 4 = 7.\n\nSo it is 7 or", "length", ("3 + 4 = 7.",), True),
    ],
)
def test_a_chain_between_delimiters_is_the_models_chain(
    text: str, finish: str, steps: tuple[str, ...], is_cut_off: bool
) -> None:
    chain = chain_from_reply(Response("a", text, finish=finish))
    assert (chain.steps, chain.is_cut_off) == (steps, is_cut_off)


@pytest.mark.parametrize("text", ["<think>8, so 3", "<|ponder|>8<|reply|>3"])
def test_a_reply_that_cannot_be_divided_has_no_chain_and_no_answer(text: str) -> None:
    reply = Response("a", text, finish="stop")
    parsed, chain = parse_chain_reply(reply, ITEM), chain_from_reply(reply)
    markup = text.partition(">")[0] + ">"
    assert parsed.answer is None
    assert parsed.missing_reason == ("undefined", f"{UNREAD_MARKUP}: '{markup}'")
    assert (chain.steps, chain.missing_reason) == ((), parsed.missing_reason)


def test_an_answer_after_the_cue_is_read_after_the_chain() -> None:
    request = answer_request(params(), "How many?", ["7 + 2 = 9."])
    request = replace(request, prefix="So the answer is")
    for text in ("<think>\nThe answer is 8?\n</think>\n 9.", " 9."):
        assert parse_answer_reply(request, Response("a", text), ITEM).answer == "9"
    cut = Response("a", "<think>\nThe answer is 8. So", finish="length")
    assert parse_answer_reply(request, cut, ITEM).answer is None
    assert parse_answer_reply(request, cut, ITEM).is_truncated


# --- chains


def test_a_reference_chain_is_the_items_and_nothing_is_asked() -> None:
    chain = finish(chain_of(ITEM, params()))
    assert chain == Chain(("7 + 2 = 9.", " "), (), ("undefined", "the item has no chain"))
    assert finish(chain_of(replace(ITEM, steps=()), params())).steps == ()


def test_the_models_own_chain_is_asked_once_and_keeps_its_reply() -> None:
    text = "Step 1: 4 + 5 = 9.\nSo the answer is 9."
    driven = drive(chain_of(ITEM, params("own")), lambda request: Response(request.key, text))
    (request,) = driven.requests
    assert request == ask_chain(params(), ITEM.question)
    assert driven.result.steps == ("Step 1: 4 + 5 = 9.",)
    assert driven.result.keys == (request.key,) and driven.result.reply.text == text


@pytest.mark.parametrize(
    ("text", "reasoning", "steps", "is_cut_off"),
    [
        ("Step 1: 4 + 5 = 9.\nStep 2: 9 - 3 = 6.\nStep 3: 6 *", "", (0, 1), True),
        ("Step 1: 4 + 5 = 9.\nStep 2: 9 -", "", (0,), True),
        ("Step 1: 4 +", "", (), True),
        ("Step 1: 4 + 5 = 9.\nStep 2: 9 - 3 = 6.\nSo the answer is 6", "", (0, 1), True),
        ("Step 1: 4 + 5 = 9.\nStep 2: 9 - 3 = 6.\nSo the answer is 6.\nNow", "", (0, 1), False),
        ("", "Step 1: 4 + 5 = 9.\nStep 2: 9 -", (0,), True),
        (
            "So the",
            "Step 1: 4 + 5 = 9.\nStep 2: 9 - 3 = 6.\nStep 3: Done.",
            (0, 1, 2),
            False,
        ),
    ],
)
def test_the_fragment_in_which_a_cut_chain_ends_is_no_step(
    text: str, reasoning: str, steps: tuple[int, ...], is_cut_off: bool
) -> None:
    written = ("Step 1: 4 + 5 = 9.", "Step 2: 9 - 3 = 6.", "Step 3: Done.")
    chain = chain_from_reply(Response("k", text, reasoning=reasoning, finish="length"))
    assert chain.steps == tuple(written[index] for index in steps)
    assert chain.is_cut_off is is_cut_off
    assert chain.whole().steps == (() if is_cut_off else chain.steps)
    if is_cut_off:
        reason = "the model's own chain was cut off: --chain-tokens"
        assert chain.whole().missing_reason == ("undefined", reason)


@pytest.mark.parametrize(
    ("reply", "missing_reason"),
    [
        (DEAD, ("error", "away")),
        (UNABLE, ("undefined", "no images")),
        (REFUSED, ("refused", "the model refused")),
        (Response("f", " "), ("undefined", "the model wrote no chain")),
    ],
)
def test_a_chain_that_is_missing_says_why(
    reply: Response | Failed, missing_reason: tuple[str, str]
) -> None:
    driven = drive(chain_of(ITEM, params("own")), lambda request: replace(reply, key=request.key))
    assert driven.result.steps == () and driven.result.missing_reason == missing_reason


def test_the_token_limit_of_a_chain_is_that_of_the_run_and_no_other_request_changes() -> None:
    short = params(chain_tokens=100)
    assert ask_chain(params(), "q").max_tokens == 512 and ask_chain(short, "q").max_tokens == 100
    assert answer_request(short, "q", ("s",)) == answer_request(params(), "q", ("s",))


def test_equal_requests_are_asked_once() -> None:
    requests = [ask_chain(params(), text) for text in "aba"]
    driven = drive(ask(requests), lambda request: Response(request.key, "9"))
    assert driven.rounds == ((requests[0], requests[1]),)
    assert set(driven.result) == {request.key for request in requests}
    assert finish(ask([])) == {}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Step 1: 2 + 2 = 4.\nSo the answer is 4.", ("Step 1: 2 + 2 = 4.",)),
        ("5+3=8\n9*2=18\nA: 18", ("5+3=8", "9*2=18")),
        (
            "Step 1: 5 + 3 = 8.\nStep 2: 9 * 2 = 18.",
            ("Step 1: 5 + 3 = 8.", "Step 2: 9 * 2 = 18."),
        ),  # no answer line
        (
            "5 + 3 = 8, so the answer is 8.",
            ("5 + 3 = 8, so the answer is 8.",),
        ),  # a step that gives the answer too
        ("Two and two.\n**Final answer:** 4", ("Two and two.",)),
        ("Two and two.\n\\boxed{4}", ("Two and two.",)),
        ("Two and two.\n#### 4", ("Two and two.",)),
        ("So the answer is 4.", ()),
        ("", ()),
    ],
)
def test_the_line_that_only_answers_is_no_step(text: str, steps: tuple[str, ...]) -> None:
    assert model_steps(text) == steps


# --- scores


@pytest.mark.parametrize(
    ("on", "status", "reason"),
    [
        ((GOOD, OTHER), "ok", None),
        ((GOOD, DEAD, REFUSED), "error", "away"),
        ((REFUSED, DEAD), "refused", "the model refused"),
        ((UNABLE,), "undefined", "no images"),
    ],
)
def test_a_missing_reply_decides_status_and_reason(
    on: tuple[Response | Failed, ...], status: str, reason: str | None
) -> None:
    """The first one does, and the value that was computed without it is not kept."""
    scores = ItemScores(ITEM, {"chain": "own"}, {reply.key: reply for reply in on})
    scores.add(CARD, 0.5, rests_on=on, step=1, sample=2, facet={"mode": "cut"}, where=(0, 3))
    scores.add(
        CARD,
        0.5,
        rests_on=[reply.key for reply in on],
        step=1,
        sample=2,
        facet={"mode": "cut"},
        where=(0, 3),
    )
    first, by_key = scores.scores
    assert first == by_key
    assert (first.value, first.status, first.reason) == (
        0.5 if status == "ok" else None,
        status,
        reason,
    )
    assert first.evidence == tuple(reply.key for reply in on)
    assert first.facet == (("chain", "own"), ("mode", "cut"))
    assert (first.step, first.sample, first.where) == (1, 2, (0, 3))


def test_without_a_value_the_reason_applies_after_a_missing_reply_and_a_status_before_it() -> None:
    scores = ItemScores(ITEM)
    scores.add(CARD, None, rests_on=[GOOD], reason="no number")
    scores.add(CARD, None, rests_on=[DEAD], reason="no number")
    scores.add(CARD, None, rests_on=[DEAD], reason=("stopped", "below the floor"))
    scores.add_missing([CARD], "no chain", rests_on=[GOOD, GOOD])
    assert [(s.status, s.reason, s.evidence) for s in scores.scores] == [
        ("undefined", "no number", ("a",)),
        ("error", "away", ("c",)),
        ("stopped", "below the floor", ("c",)),
        ("undefined", "no chain", ("a",)),
    ]
    with pytest.raises(ValueError, match="needs a reason"):
        scores.add(CARD, None, rests_on=[GOOD])


def test_a_measurement_brings_its_evidence_and_reason() -> None:
    scores = ItemScores(ITEM)
    scores.add(CARD, Measurement(0.25, ("x",)), rests_on=["y", "x"])
    scores.add(CARD, Measurement(None, ("x",), "refused", "the model refused"))
    assert [(s.value, s.status, s.evidence) for s in scores.scores] == [
        (0.25, "ok", ("x", "y")),
        (None, "refused", ("x",)),
    ]


def test_a_value_outside_the_range_of_its_card_is_refused() -> None:
    with pytest.raises(ValueError, match="lies outside"):
        ItemScores(ITEM).add(CARD, 1.5, rests_on=[GOOD])
