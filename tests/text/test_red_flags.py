"""The textual red flags, one habit of writing at a time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.red_flags import RULES, find_flags


def fired(rule: str, *steps: str, question: str = "") -> list[tuple[int, str]]:
    return [
        (f.step_index, steps[f.step_index][f.start : f.end])
        for f in find_flags(question, steps)
        if f.rule == rule
    ]


@pytest.mark.parametrize(
    ("n", "at", "early"),
    [(2, 0, False), (3, 0, True), (3, 1, False), (5, 0, True), (5, 1, False), (6, 1, True)],
)
def test_an_answer_is_premature_in_a_step_that_ends_before_two_fifths(
    n: int, at: int, early: bool
) -> None:
    steps = [f"Fact {i} holds." for i in range(n)]
    steps[at] = "The answer is 12."
    assert fired("premature_answer", *steps) == ([(at, "The answer is 12")] if early else [])


@pytest.mark.parametrize(
    "said",
    [
        "The answer is not 12.",
        "If the answer is 12, we are done.",
        "To find the answer is our aim.",
        "Tom thinks the answer is 12.",
        "The answer is a whole number.",
        "What is the right answer?",
        "We do not know whether the answer is 12.",
        "The answer choices are 3, 4 and 5.",
    ],
)
def test_speaking_of_an_answer_is_not_giving_one(said: str) -> None:
    assert fired("premature_answer", said, "b", "c", "d") == []


@pytest.mark.parametrize(
    "said",
    [
        "There are 3 + 4 = 7 hens. So the answer is 7.",
        "The ship rises with the tide because it floats, so the answer is 0 feet.",
        "Also, why is the answer not 7?",
        "The student's answer is 7.",
        "Write it in the format: \\boxed{...}",
        "The answer is actually surprising.",
        "Answer: All cats are animals, and since some are pets, some pets are cats.",
    ],
)
def test_an_answer_after_its_reasoning_is_not_premature(said: str) -> None:
    assert fired("premature_answer", said, "b", "c", "d", "e") == []


@pytest.mark.parametrize(
    ("question", "step"),
    [
        ("", "Expand: 16m^2 - 8m + 1 < 16m^2 + 8m."),
        ("She buys g hens and h ducks.", "The cost is 19g + 17h = 201."),
        ("", "It was 9 inches after 1 week + 9 inches after 2 weeks = 18 inches."),
        ("", "Time = Distance / Relative Speed = 120 miles / 20 mph = 6 hours."),
    ],
)
def test_letters_of_algebra_and_phrases_are_no_units(question: str, step: str) -> None:
    assert fired("unit_inconsistency", step, question=question) == []


def test_units_that_do_not_fit_are_found() -> None:
    assert fired("unit_inconsistency", "The path is 4 feet/hour * 24 feet = 96 feet.") == [
        (0, "96 feet")
    ]
    assert fired("unit_inconsistency", "Its area is 8 m * 5 m = 40 m.") == [(0, "40 m")]


@pytest.mark.parametrize(
    "said",
    [
        "This clearly demonstrates the idea.",
        "Clearly label each course.",
        "Show all steps clearly. Then stop.",
        "The sum is clearly even because both terms are even.",
        "Clearly, there is a mistake here.",
    ],
)
def test_how_something_is_shown_is_no_hand_waving(said: str) -> None:
    assert fired("hand_waving", said) == []


def test_abbreviations_articles_and_pronouns_are_no_symbols() -> None:
    for text in (
        "Dr. A. Smith, e.g. at 8 a.m., i.e. early.",
        "A bus came, and I took it.",
        "See section B and Appendix C.",
        "It is 5 m long.",
        "Roe v. Wade is on p. 12.",
        "The p-value and the X-ray.",
        "R&D and Q&A cost $5/h.",
        "3 x 4 = 12",
        "It's 60 km/h.",
        "(a) first, (b) second",
        "1st, 2nd and 3/8ths",
        "type A blood and vitamin B12",
        "log(3) = 1.1",
        "It is N/A w/o an A/C unit, c/o an A/B test.",
    ):
        assert fired("undefined_symbol", text) == [], text


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("Let x be the price. Then 2x = 8.", []),
        ("The cost is P * q, where P is the price and q the number.", []),
        ("The cost is P * q, where P is the price.", ["q"]),
        ("A * B, where A = (1 + 2) and B = 3.", []),
        ("The price p times 3 is 12.", []),
        ("z + 1 = 2 and z + 2 = 3", ["z"]),
        ("the angle is θ + 3", ["θ"]),
        ("b^2 - 4ac", ["b", "a", "c"]),
    ],
)
def test_what_introduces_a_symbol(text: str, symbols: list[str]) -> None:
    assert [symbol for _, symbol in fired("undefined_symbol", text)] == symbols


def test_a_symbol_is_new_once() -> None:
    assert fired("undefined_symbol", "2y + 1 = 7", "2y = 6", "y = 3") == [(0, "y")]
    assert fired("undefined_symbol", "2y + 1 = 7", question="Solve 2y + 1 = 7.") == []


@pytest.mark.parametrize(
    ("text", "waves"),
    [
        ("Clearly, 7 + 5 = 12.", ["Clearly"]),
        ("Step 2: Clearly, 7 + 5 = 12.", ["Clearly"]),
        ("Because 7 + 5 = 12, it is clearly even.", []),
        ("7 + 5 = 12, so clearly it is even.", []),
        ("7 + 5 = 12. Clearly it is even.", []),
        ("It is not obvious that it is even.", []),
        ("The word is clearly legible.", []),
        ("Naturally occurring sugars count.", []),
        ("It is obvious that it is even.", ["It is obvious that"]),
    ],
)
def test_hand_waving_without_a_reason_before(text: str, waves: list[str]) -> None:
    assert [wave for _, wave in fired("hand_waving", text)] == waves


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.text(max_size=60)
        | st.sampled_from(
            ["x + 1 = 3 m", "Clearly 5 m = 4 kg", "\\boxed{3}", "a) 3/8ths", "$5 per m^2"]
        ),
        max_size=6,
    ),
    st.text(max_size=30),
)
def test_any_text_gives_disjoint_spans_inside_its_step(steps: list[str], question: str) -> None:
    found = find_flags(question, steps)
    for flag in found:
        assert (
            0 <= flag.start < flag.end <= len(steps[flag.step_index])
            and flag.rule in RULES
            and flag.reason
        )
    for rule in RULES:
        own = [(f.step_index, f.start, f.end) for f in found if f.rule == rule]
        assert own == sorted(own)
        assert all(a[0] != b[0] or a[2] <= b[1] for a, b in zip(own, own[1:], strict=False))


@pytest.mark.soak
@pytest.mark.parametrize(
    "piece",
    [
        "clearly ",
        "5 m + ",
        "x ",
        "the answer is ",
        "(((((",
        "let ",
        "X = ",
        "a-",
        "area of ",
        "1,000",
        "per h/",
        "9 m, ",
    ],
)
def test_long_texts_take_no_longer_than_in_proportion(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        began = time.process_time()
        find_flags("", [text, "b", "c"])
        return time.process_time() - began

    small, large = (min(seconds(n) for _ in range(3)) for n in (2000, 20_000))
    assert large < 40 * max(small, 0.002)  # 10 if in proportion, 100 if with the square
