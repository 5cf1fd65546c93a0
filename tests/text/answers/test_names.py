"""Names of a list and primes are a part of an answer; articles are none."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.articles import mark_primes, without_articles
from cotlab.text.answers.extract import same_answer
from cotlab.text.answers.reading import answer_key
from cotlab.text.answers.targets import answer_to, is_right_answer

CHOICES = ["shirt", "printer", "paper towel", "blotter"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A, C", "C"),  # an element of a list
        ("C, A", "C"),
        ("A; C", "C"),
        ("A\nC", "C"),
        ("{a, b}", "{b}"),
        ("(a, b)", "(b)"),
        ("a, b, c", "b, c"),
        ("points A, B", "points B"),
        ("Ann, A", "Ann"),
        ("Group A", "Group"),  # a label
        ("Vitamin A", "Vitamin"),
        ("Type A positive", "Type positive"),
        ("hepatitis A virus", "hepatitis virus"),
        ("A positive", "positive"),
        ("A to B", "to B"),
        ("A beats B", "beats B"),
        ("A 12", "12"),
        ("a 5", "5"),
        ("3 a", "3"),
        ("y = a sin x", "y = sin x"),  # a factor
        ("y = a x", "y = x"),
    ],
)
def test_a_name_is_no_article(first: str, second: str) -> None:
    assert same_answer(first, second) is not True
    assert same_answer(second, first) is not True


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a dog", "dog"),
        ("A dog", "the dog"),
        ("an owl", "owl"),
        ("a dog, a cat", "dog, cat"),
        ("It is a dog", "it is dog"),
        ("Once Upon A Time", "once upon a time"),
        ("a 50% chance", "50% chance"),
        ("a T-shirt", "T-shirt"),
        ("the 1st", "1st"),
        ("A", "a"),
    ],
)
def test_an_article_before_a_noun_is_no_difference(first: str, second: str) -> None:
    assert same_answer(first, second) is True
    assert same_answer(second, first) is True


@pytest.mark.parametrize(
    "reply", ["A, C", "C, A", "A,C", r"\boxed{A, C}", r"\boxed{A,C}", "A; C", "A\nC", "So A, C"]
)
def test_two_options_are_not_the_last_of_them(reply: str) -> None:
    item = Item("1", "Which?", "C", (), meta={"choices": CHOICES})
    assert is_right_answer(item, answer_to(item, reply)) is False
    both = Item(
        "1", "Which?", "A", (), meta={"choices": CHOICES, "targets": ["A", "C"], "match": "all"}
    )
    assert is_right_answer(both, answer_to(both, reply)) is True


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("f'(x)", "f(x)"),
        ("f'", "f"),
        ("f''(x)", "f'(x)"),
        ('f"(x)', "f(x)"),
        ("f′(x)", "f(x)"),
        ("y'", "y"),
        ("x' = 5", "x = 5"),
        ("point P'", "point P"),
        ("triangle A'B'C'", "triangle ABC"),
        ("A'B", "AB"),
    ],
)
def test_a_prime_is_a_difference(first: str, second: str) -> None:
    assert same_answer(first, second) is False
    assert same_answer(second, first) is False


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("f'(x)", "f′(x)"),
        ("f'(x)", r"f^{\prime}(x)"),
        ("f''(x)", 'f"(x)'),
        ("Bob's", "Bobs"),
        ("don't", "dont"),
        ("I'm", "Im"),
        ("O'Brien", "O’Brien"),
        ("'plan B'", "plan B"),
        ("5 o'clock", "5 oclock"),
    ],
)
def test_an_apostrophe_within_a_word_is_no_prime(first: str, second: str) -> None:
    assert same_answer(first, second) is True


@pytest.mark.parametrize("part", ["a ", "a'", "'a ", "a, ", "the ", "f' ", "'", 'f" ', "a" * 9])
def test_articles_and_primes_of_long_texts_come_to_an_end(part: str) -> None:
    # in seconds; with a pattern that goes back over the text, in hours
    text = part * (100_000 // len(part))
    without_articles(text)
    mark_primes(text)
    answer_key(text)
