"""Paraphrases of a question by rules: other words, the same numbers, and for the organisms'
problems the same answer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.keys import derive
from cotlab.suites.jsonl import load_suite
from cotlab.suites.shipped import find_suite
from cotlab.suites.wordproblems import TOKEN_PATTERN, make_suite, vocabulary
from cotlab.text.prompts.paraphrase import reword_question, same_numbers, split_paraphrases


def events(question: str) -> tuple[list[str], str]:
    """What a word problem says, whatever its wording: start, changes with their verbs, remark, and
    what is counted."""
    told = re.findall(
        r"(?:has|with) (\d+ \w+)|(?:[Hh]e|[Ss]he) (\w+ \d+(?: more)?)\.|(\w+ thinks the answer is"
        r" \d+)",
        question,
    )
    return ["".join(parts) for parts in told], re.findall(r"How many (\w+)", question)[0]


def test_a_word_problem_keeps_what_happens_and_its_language() -> None:
    words = set(vocabulary())
    for item in make_suite(60, seed=9).items:
        found = reword_question(item.question, 6, derive("t", item.id), item.meta["paraphrases"])
        assert (
            len(set(found)) == 6
            and item.question not in found
            and found[:2] == tuple(item.meta["paraphrases"])
        )
        for text in found:
            assert events(text) == events(item.question)
            assert all(
                piece in words or piece.strip() == "Q"
                for piece in TOKEN_PATTERN.findall(" " + text)
            ), text


def test_the_same_generator_gives_the_same_paraphrases_and_another_seed_others() -> None:
    question = make_suite(5, seed=1).items[4].question
    one, again, other = (reword_question(question, 5, derive("x", seed)) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("name", ["math", "commonsense", "evaluation"])
def test_shipped_questions_keep_numbers_and_every_rule_is_grammatical_at_its_place(
    name: str,
) -> None:
    for item in load_suite(find_suite(name)).items:
        found = reword_question(item.question, 6, derive("s", item.id))
        assert len(found) == 6, item.question
        for text in found:
            assert same_numbers(item.question, text)
            assert "  " not in text or "  " in item.question


def test_a_condition_goes_behind_what_is_asked() -> None:
    found = reword_question(
        "If 3 pens cost 1,200 cents, how much do 5.5 pens cost?", 60, derive("c")
    )
    assert "How much do 5.5 pens cost if 3 pens cost 1,200 cents?" in found


def test_a_phrase_is_replaced_but_not_in_quotation_marks_options_or_longer_words() -> None:
    found = reword_question("How many eggs has Mo altogether?", 99, derive("q"))
    assert "How many eggs has Mo in total?" in found and "How many eggs has Mo in all?" in found
    for fixed in (
        'What does "altogether" mean?',
        "Which word fits? (a) altogether (b) never",
        "What is Findlay's age?",
    ):
        assert all(fixed in text for text in reword_question(fixed, 99, derive("q")))


def test_given_paraphrases_with_other_numbers_are_left_out() -> None:
    found = reword_question(
        "What is 7 plus 5?",
        2,
        derive("g"),
        ("What is 7 plus 6?", "What is 7 plus 5?", "Add 7 to 5."),
    )
    assert found[0] == "Add 7 to 5." and len(found) == 2


def test_a_hold_out_is_drawn_at_random_and_shares_nothing_with_the_public_part() -> None:
    texts = [str(i) for i in range(6)]
    parts = [split_paraphrases(texts, 4, 2, derive("h", k)) for k in range(300)]
    assert all(
        len(p.public_paraphrases) == 4
        and len(p.hidden_paraphrases) == 2
        and set(p.public_paraphrases) | set(p.hidden_paraphrases) == set(texts)
        for p in parts
    )
    hidden = [text for p in parts for text in p.hidden_paraphrases]
    assert all(
        60 < hidden.count(text) < 140 for text in texts
    )  # 600 draws of 6: 100 expected, sd 8
    few = split_paraphrases(texts[:3], 4, 2, derive("h"))
    assert len(few.public_paraphrases) == 3 and few.hidden_paraphrases == ()


@given(st.text(max_size=60), st.integers(0, 7))
def test_any_question_gives_other_texts_with_its_numbers_or_none(question: str, k: int) -> None:
    found = reword_question(question, k, derive("a", question), (question, " "))
    assert len(set(found)) == len(found) <= k and question not in found
    assert all(same_numbers(question, text) for text in found)
