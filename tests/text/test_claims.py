"""Claims of a chain against a log of tool calls: what is a claim, where it stands, and what the log
says of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.claims import CLAIM_VERDICTS, ToolCall, find_claims, read_tool_log

LOG = (
    ToolCall("calculator", "7 + 5", "12"),
    ToolCall("web_search", '{"q": "weather Oslo"}', "Rain expected, 11.37 mm on Friday"),
    ToolCall("calculator", "12*3", "36"),
    ToolCall("get_price", "apples", '{"currency": "USD", "price": 1200.5}'),
)
QUESTION = "There are 7 birds and 5 cats. How many?"


def told(step: str, calls: tuple[ToolCall, ...] = LOG) -> list[tuple[str, str, int | None]]:
    (found,) = find_claims([step], calls, QUESTION)
    assert all(step[claim.start : claim.end] == claim.text for claim in found)
    return [(claim.text, claim.verdict, claim.call_index) for claim in found]


@pytest.mark.parametrize(
    ("step", "claims"),
    [
        # a result put down to a tool
        ("The calculator returns 12.", [("12", "matched", 0)]),
        (
            "The calculator gave 14.",
            [("14", "contradicted", None)],
        ),  # two calls, and the step says of neither
        ("The calculator says 7 + 5 is 15.", [("15", "contradicted", 0)]),
        ("The calculator's result is 36.", [("36", "matched", 2)]),
        ("calculator(12*3) = 36", [("36", "matched", 2)]),
        ("Step 2: calculator: 36", [("36", "matched", 2)]),
        ("36 was returned by the calculator.", [("36", "matched", 2)]),
        (
            "According to the web search, 11.4 mm of rain will fall.",
            [("11.4", "matched", 1)],
        ),  # 11.37, rounded
        (
            "According to the web search, 11.3 mm of rain will fall.",
            [("11.3", "contradicted", 1)],
        ),
        (
            "From get_price we have 1.2 thousand.",
            [("1.2 thousand", "matched", 3)],
        ),  # 1,200.5, rounded
        ("From get_price we have 1.3 thousand.", [("1.3 thousand", "contradicted", 3)]),
        ("From get_price we have $1,200.50 a tonne.", [("1,200.50", "matched", 3)]),
        ("The tool returned 36.", [("36", "matched", 2)]),
        ("The tool returned 99.", [("99", "contradicted", None)]),
        ("The web search gave 12.", [("12", "contradicted", 1)]),  # the calculator did
        ("The oracle returned 44.", [("44", "unsupported", None)]),  # no such tool was called
        # words put down to a tool
        ('Web search said "rain  Expected".', [("rain  Expected", "matched", 1)]),
        ("The web_search tool returned “sunny”.", [("sunny", "contradicted", 1)]),
        ('The sign said "sunny".', []),
        # numbers of the chain itself
        ("Step 1: 7 + 5 = 12.", [("12", "matched", 0)]),
        ("Step 1: 7 + 5 = 13.", [("13", "contradicted", 0)]),
        ("Using the calculator, 12 × 3 = 37.", [("37", "contradicted", 2)]),
        ("So 40 apples are left.", [("40", "unsupported", None)]),
        ("There are 7 birds and 5 cats.", []),  # as the question says
        ("We think about it.", []),
        ("", []),
    ],
)
def test_each_kind_of_claim(step: str, claims: list[tuple[str, str, int | None]]) -> None:
    assert told(step) == claims


def test_a_number_is_judged_where_it_first_stands() -> None:
    found = find_claims(
        ["So 40 are left.", "Take 40 and 36.", "The tool returned 40."], LOG, QUESTION
    )
    assert [[(c.text, c.verdict) for c in claims] for claims in found] == [
        [("40", "unsupported")],
        [("36", "matched")],
        [("40", "contradicted")],  # put down to a tool it is judged anew
    ]


def test_an_empty_log_supports_nothing() -> None:
    assert told("The calculator returns 12.", ()) == [("12", "unsupported", None)]


def test_a_log_is_read_or_told_why_not() -> None:
    calls = read_tool_log(
        [
            {"name": " f ", "arguments": {"b": 1, "a": 2}, "result": [1, 2.5]},
            {"name": "g", "output": False},
        ]
    )
    assert calls == (ToolCall("f", '{"a": 2, "b": 1}', "[1, 2.5]"), ToolCall("g", "", "false"))
    assert read_tool_log([]) == ()
    assert (
        read_tool_log("text")
        == read_tool_log({"name": "f"})
        == "the tool log is not a list of calls"
    )
    assert (
        read_tool_log([3]) == "call 1 of the tool log is not an object with name, input and output"
    )
    assert read_tool_log([{"output": "x"}]) == "call 1 of the tool log has no name"
    assert (
        read_tool_log([{"name": "f", "output": 1}, {"name": "g", "input": 1}])
        == "call 2 of the tool log has no output"
    )


TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "the",
            "calculator",
            "tool",
            "returned",
            "12",
            "=",
            "7 + 5",
            "(",
            ")",
            '"',
            "36",
            ".",
            "\n",
            "x" * 40,
            "-",
        ]
    ),
    max_size=25,
).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TEXTS, max_size=3),
    st.lists(st.builds(ToolCall, st.text(min_size=1, max_size=8), TEXTS, TEXTS), max_size=3),
    TEXTS,
)
def test_any_text_gives_claims_that_stand_in_it(
    steps: list[str], calls: list[ToolCall], question: str
) -> None:
    found = find_claims(steps, calls, question)
    assert len(found) == len(steps)
    for step, claims in zip(steps, found, strict=True):
        assert [c.start for c in claims] == sorted({c.start for c in claims})
        for claim in claims:
            assert step[claim.start : claim.end] == claim.text and claim.verdict in CLAIM_VERDICTS
            assert claim.call_index is None or 0 <= claim.call_index < len(calls)
            assert claim.verdict != "matched" or claim.call_index is not None


def test_the_work_grows_with_the_number_of_claims_and_not_with_its_square() -> None:
    """Each step states another number, so that none of them is known before."""

    def seconds(n_steps: int) -> float:
        steps = [f"Step {i}: the next value is {1000 + 3 * i}." for i in range(n_steps)]
        before = time.process_time()
        find_claims(steps, LOG)
        return time.process_time() - before

    small, large = (min(seconds(n) for _ in range(3)) for n in (500, 4000))
    assert large < 24 * small  # 8 if linear, 64 if quadratic
