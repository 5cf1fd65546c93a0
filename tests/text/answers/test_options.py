"""Options are an index: a marked letter names its option whatever the options say."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item, Suite
from cotlab.text.answers.options import chosen_options, listed_options, option_text, written_options
from cotlab.text.answers.targets import answer_to, is_right_answer, same_answer_to
from cotlab.text.prompts.options import with_listed_options, with_word_matching

OPTION_TEXTS = [
    ("\\frac{1}{2}", "-\\frac{1}{2}", "x", "2"),
    ("3", "2", "1", "0"),
    ("yes", "no", "not given", "unknown"),
    ("(1, 2)", "[1, 2]", "{1, 2}", "1 or 2"),
    ("I only", "II only", "I and II", "neither I nor II"),
    ("all of the above", "none of the above", "it depends", "cannot be determined"),
    ("5 km", "5000 m", "5 miles", "0.5 km"),
    ("Is it A?", "(b) and (c)", "a = b", "the answer is D"),
]
WORDINGS = ["The answer is ({}).", "So the answer is ({}).\n", "Answer: {}", "**{}**", "({})"]
SENTENCES = [
    "The answer is {}. Note that A is a common distractor.",
    "The answer is {}. A is a common mistake.",
    "The answer is ({}). Note that (A) is what they give off.",
    "Answer: {}. Option A is what they give off.",
    "The answer is {}. Oxygen is what they give off.",
    "**{}**. Note that A is a common distractor.",
    "The correct option is {}, while A is a common distractor.",
    "The answer is {}\n\nNote that A is a common distractor.",
    "The answer is {} because A is given off.",
    "The answer is {}, not A.",
    "There are 5 penguins. So the answer is ({}).",
    "Answer: I think it is {}",
    "It is not A. So the correct option is {}.",
]


@pytest.mark.parametrize("texts", OPTION_TEXTS)
@pytest.mark.parametrize("wording", WORDINGS)
def test_a_marked_letter_is_right_for_any_option_text(texts: tuple[str, ...], wording: str) -> None:
    for key in "ABCD":
        item = Item("1", "Which?", key, (), meta={"choices": list(texts)})
        for said in "ABCD":
            answer = answer_to(item, wording.format(said))
            assert is_right_answer(item, answer) is (said == key), (said, answer)


@pytest.mark.parametrize("wording", SENTENCES)
def test_a_letter_counts_before_what_is_said_of_the_others(wording: str) -> None:
    question = "What do plants take in?\nA) oxygen\nB) carbon dioxide\nC) nitrogen\nD) helium"
    for said in "BCD":
        item = Item("1", question, "B", ())
        assert is_right_answer(item, answer_to(item, wording.format(said))) is (said == "B")


@pytest.mark.parametrize(
    ("answer", "index"),
    [
        ("carbon dioxide", 1),
        ("(b) carbon dioxide", 1),
        ("B. carbon dioxide", 1),
        ("Carbon Dioxide.", 1),
        ("d", 3),
        ("it must be the nitrogen", 2),
        ("B and C", None),
        ("A large amount", None),
        ("oxygen or nitrogen", None),
        ("neither oxygen", None),
        ("water", None),
        ("E", None),
    ],
)
def test_the_option_of_an_answer(answer: str, index: int | None) -> None:
    options = ("oxygen", "carbon dioxide", "nitrogen", "helium")
    chosen = chosen_options(answer, options)
    assert (None if chosen is None or len(chosen) > 1 else [*chosen][0]) == index


def test_options_are_written_and_read_back() -> None:
    options = ("(b) x", "y, (c) z", "(a) y")
    for indices in ({0}, {1}, {0, 1}, {0, 2}, {0, 1, 2}):
        text = option_text(frozenset(indices), options)
        assert written_options(text, options) == indices


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("Which? (a) shirt (b) paper towel", ("shirt", "paper towel")),
        ("Which?\nA. ice\nB. snow", ("ice", "snow")),
        ("Is 2 (a) even?", ()),
        ("$\\textbf{(A)}\\ 30 \\qquad\\textbf{(B)}\\ 42$", ("30", "42")),
        ("Pick: A) 3/2 B) 2/3 C) 1", ("3/2", "2/3", "1")),
    ],
)
def test_options_of_a_question(question: str, options: tuple[str, ...]) -> None:
    assert listed_options(question) == options


def test_other_words_are_another_answer_only_where_all_answers_are_words() -> None:
    names = Suite.from_items("s", [Item("1", "Who?", "Ann", ()), Item("2", "Who?", "Bob Lee", ())])
    item = with_word_matching(names).items[0]
    assert same_answer_to(item, "Ann", "Bob") is False and same_answer_to(item, "ann.", "Ann")
    for other in ("5", "because it rains a lot", "\\sqrt{2}"):
        mixed = Suite.from_items("s", [*names.items, Item("3", "Why?", other, ())])
        assert with_word_matching(mixed) is mixed


def test_several_targets_are_any_of_them_or_all() -> None:
    item = Item("1", "Name one.", "2", (), meta={"targets": ["2", "3"]})
    assert [is_right_answer(item, answer) for answer in ("3", "4")] == [True, False]
    both = Item("1", "Name both.", "2", (), meta={"targets": ["2", "3"], "match": "all"})
    assert [is_right_answer(both, answer) for answer in ("3 and 2", "2", "2, 4")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("answer", "options", "index"),
    [
        ("10 or 100", ("10", "100"), None),
        ("between 1 and 10", ("1", "10"), None),
        ("<5", (">5", "≥6"), None),
        ("¬p", ("p", "q"), None),
        ("C#", ("C", "Java"), None),
        ("Alpha (B)", ("Alpha", "Beta"), None),
        ("Beta (B)", ("Alpha", "Beta"), 1),
        (r"\boxed{B \text{ and } C}", ("w", "x", "y"), None),
        ("x^{2}", ("x^2", "x"), 0),
    ],
)
def test_an_option_is_chosen_for_certain_or_not_at_all(
    answer: str, options: tuple[str, ...], index: int | None
) -> None:
    chosen = chosen_options(answer, options)
    assert (None if chosen is None or len(chosen) > 1 else [*chosen][0]) == index


def test_a_sentence_is_not_another_answer_than_the_word_it_holds() -> None:
    item = Item("1", "Which?", "Paris", (), meta={"match": "words"})
    assert is_right_answer(item, "Paris is the capital of France") is None
    assert is_right_answer(item, "Lyon") is False


def test_a_question_that_repeats_its_options_is_read_in_time() -> None:
    item = Item("1", "a" * 5_000, "b", (), meta={"choices": ["a"] * 24 + ["b"]})
    suite = Suite.from_items("s", [item])
    assert with_listed_options(suite).items[0].question.endswith("Y) b")
