"""The textual red flags in the seed's plain form, and what is known of their precision."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.red_flags import READINGS, RULES, chain_domain, find_flags, off_reason

VERDICTS = Path(__file__).parents[2] / "benchmarks" / "flag_verdicts.tsv"


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
    ("said", "answers"),
    [
        ("The answer is not 12.", []),
        ("If the answer is 12, we are done.", []),
        ("Tom thinks the answer is 12.", []),
        ("The answer choices are 3, 4 and 5.", []),
        ("#### Start", []),
        ("#### 12", ["#### 12"]),
        ("**Answer:** 4%", ["**Answer:** 4%"]),
        (
            "So \\boxed{12} it is, and the correct option is C.",
            ["\\boxed{12}", "the correct option is C"],
        ),
    ],
)
def test_an_answer_phrase(said: str, answers: list[str]) -> None:
    assert [text for _, text in fired("premature_answer", said, "b", "c", "d")] == answers


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("Its area is 8 m * 5 m = 40 m.", ["40 m"]),
        ("Its area is 8 m * 5 m = 40 m^2.", []),
        ("The path is 4 feet/hour * 24 feet = 96 hours.", ["96 hours"]),
        ("60 miles / 2 hours = 30 miles per hour", []),
        ("3 kg + 2 m = 5 kg", ["5 kg"]),
        ("3 * 5 m = 15 m and 3 apples + 4 apples = 7 apples", []),
        ("The area of the garden is 40 m.", ["40 m"]),
        ("The area of the garden is 40 square meters.", []),
        ("The length of the rope is 12 m^2.", ["12 m^2"]),
    ],
)
def test_units_that_do_not_fit(step: str, found: list[str]) -> None:
    assert [text for _, text in fired("unit_inconsistency", step)] == found


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("Let x be the price. Then 2 * x = 8.", []),
        ("The cost is P * q, where P is the price and q the number.", []),
        ("The cost is P * q, where P is the price.", ["q"]),
        ("z + 1 = 2 and z + 2 = 3", ["z"]),
        ("It is 5 m long at 60 km/h, e.g. at 8 a.m.", []),
        ("3 x 4 = 12", []),
        ("A bus came, and I took it.", []),
    ],
)
def test_what_introduces_a_symbol(text: str, symbols: list[str]) -> None:
    assert [symbol for _, symbol in fired("undefined_symbol", text)] == symbols


def test_a_symbol_is_new_once() -> None:
    assert fired("undefined_symbol", "2 * y + 1 = 7", "2 * y = 6", "y = 3") == [(0, "y")]
    assert fired("undefined_symbol", "2 * y = 6", question="Solve 2 * y = 6.") == []


@pytest.mark.parametrize(
    ("text", "waves"),
    [
        ("Clearly, 7 + 5 = 12.", ["Clearly"]),
        ("Because 7 + 5 = 12, it is clearly even.", []),
        ("7 + 5 = 12. Clearly it is even.", []),
        ("It is not obvious that it is even.", []),
        ("It is obvious that it is even.", ["It is obvious that"]),
    ],
)
def test_hand_waving_without_a_reason_before(text: str, waves: list[str]) -> None:
    assert [wave for _, wave in fired("hand_waving", text)] == waves


def test_the_precision_counts_the_verdicts() -> None:
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    read = Counter((row["rule"], row["domain"]) for row in rows)
    right = Counter((row["rule"], row["domain"]) for row in rows if row["right"] == "1")
    assert {key: (read[key], right[key]) for key in read} == READINGS
    assert READINGS.keys() == {(rule, domain) for rule in RULES for domain in ("latex", "plain")}
    assert [key for key in READINGS if off_reason(*key) is None] == [
        ("premature_answer", "latex"),
        ("premature_answer", "plain"),
        ("unit_inconsistency", "plain"),
    ]


def test_the_domain_is_declared_or_latex_by_a_command_or_dollar_signs() -> None:
    assert chain_domain("She pays $16 - $3 = $13.", ["That is $13."]) == "plain"
    assert chain_domain("How many?", ["7 + 5 = 12", r"\boxed{12}"]) == "latex"
    assert chain_domain("Solve $x^2 = 4$.", ["x = 2"]) == "latex"
    assert chain_domain(r"Solve \(x\).", [], "clinical") == "clinical"


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
        assert all(a[0] != b[0] or a[2] <= b[1] for a, b in zip(own, own[1:], strict=False))
