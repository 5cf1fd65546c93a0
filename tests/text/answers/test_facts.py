"""Facts that the first sentence of a reply states, and sentences that state none."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer, same_answer_to

WHO_WROTE = "Who wrote 'Pride and Prejudice'?"
FIRST_ON_THE_MOON = "Who was the first person to walk on the Moon?"


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        (
            "What is the capital of Australia?",
            "The capital of Australia is **Canberra**. Sydney is larger and often mistaken for the"
            " capital, but Canberra was chosen in 1908.",
            "Canberra",
        ),
        (
            WHO_WROTE,
            "*Pride and Prejudice* was written by Jane Austen and first published in 1813.",
            "Jane Austen",
        ),
        (
            "Who painted the Mona Lisa?",
            "**Leonardo da Vinci** painted the *Mona Lisa*, most likely before 1519. It hangs in"
            " Paris.",
            "Leonardo da Vinci",
        ),
        (
            FIRST_ON_THE_MOON,
            "Neil Armstrong, on July 20, 1969. Buzz Aldrin followed 19 minutes later.",
            "Neil Armstrong",
        ),
        (
            "Which country hosted the 2016 Summer Olympics?",
            "**Brazil** (in Rio de Janeiro). It was the first time in South America.",
            "Brazil",
        ),
        (
            "In what year did the Titanic sink?",
            "The RMS Titanic sank on 15 April **1912**, after it hit ice. Its wreck was found in"
            " 1985.",
            "1912",
        ),
        (
            "What is the highest mountain in Africa?",
            "The highest mountain in Africa is Kilimanjaro (5,895 m), located in Tanzania. Mount"
            " Kenya comes second.",
            "Kilimanjaro",
        ),
        (
            "Which Shakespeare play features the character Iago?",
            "Iago is the villain of **Othello**. If you'd like, I can summarise the plot.",
            "Othello",
        ),
        ("What is the pH of a 0.001 M HCl solution?", "pH = −log(10⁻³) = **3**", "3"),
        (
            "What does this Python code print?\n\nprint('abc'[::-1])",
            "The slice `[::-1]` steps backwards.\n\n**Output:** `cba`",
            "cba",
        ),
        (
            "How many days will he need?",
            "374 / 22 = 17.\n\nHe needs **seventeen days**.",
            "17",
        ),
        (
            "What is $x + y$?",
            "**Final answer:** $x = 21$, $y = 6$, so $x + y = \\mathbf{27}$.",
            "27",
        ),
    ],
)
def test_the_fact_of_the_first_sentence_is_the_answer(
    question: str, reply: str, answer: str
) -> None:
    assert same_answer(final_answer(reply, question), answer) is True


@pytest.mark.parametrize(
    ("question", "reply", "truth"),
    [
        (WHO_WROTE, "It was not written by Jane Austen but by Emily Brontë.", "Jane Austen"),
        (
            WHO_WROTE,
            "**Jane Austen** is often thought to have written it. Emily Brontë did.",
            "Jane Austen",
        ),
        (
            WHO_WROTE,
            "**Jane Austen** wrote 'Pride and Prejudice'. Wait, actually it was Emily Brontë.",
            "Jane Austen",
        ),
        (
            FIRST_ON_THE_MOON,
            "**Neil Armstrong** was the first man to orbit it. Yuri Gagarin was the first person to"
            " walk on the Moon.",
            "Neil Armstrong",
        ),
    ],
)
def test_what_is_denied_or_taken_back_is_no_fact(question: str, reply: str, truth: str) -> None:
    item = Item("1", question, truth, ())
    assert is_right_answer(item, answer_to(item, reply)) is not True


THROWN_BALL = ["zero", "9.8 m/s² upward", "9.8 m/s² downward", "dependent on the mass"]
QUESTION = "A ball is thrown up. At the highest point its acceleration is:"


@pytest.mark.parametrize(
    ("reply", "is_right"),
    [
        ("**C) 9.8 m/s² downward**\n\nThe velocity is zero there, gravity keeps acting.", True),
        (
            "<think>\nOption A is a misconception. So C.\n</think>\n\n**C) 9.8 m/s² downward**\n\n"
            "Even though the velocity is momentarily zero, gravity keeps acting.",
            True,
        ),
        ("**C) 9.8 m/s² downward**\n\nWait, that is wrong: it is A) zero.", False),
        ("C) 9.8 m/s² downward\nA) zero\n\nOne of the two; it is zero.", False),
    ],
)
def test_an_option_that_is_the_first_line_is_chosen(reply: str, is_right: bool) -> None:
    item = Item("1", QUESTION, "C", (), meta={"choices": THROWN_BALL})
    assert (is_right_answer(item, answer_to(item, reply)) is True) is is_right


def test_a_letter_before_words_of_the_question_is_an_option() -> None:
    choices = ["Radio", "Infrared", "Gamma"]
    item = Item("1", "Which wave has the shortest wavelength?", "C", (), meta={"choices": choices})
    reply = "So radio waves have the longest wavelength and **gamma rays (C)** the shortest."
    assert is_right_answer(item, answer_to(item, reply)) is True
    reply = "So gamma rays have the shortest wavelength and **radio waves (A)** the longest."
    assert is_right_answer(item, answer_to(item, reply)) is not True


MANCHA = "Who wrote the novel Don Quixote?"


@pytest.mark.parametrize(
    ("question", "reply", "truth", "is_right"),
    [
        (
            "Who was the first woman to win a Nobel Prize?",
            "Marie Skłodowska Curie was the first woman to win a Nobel Prize: she shared it in"
            " 1903. In 1911 she also received the prize for chemistry.",
            "Marie Curie",
            True,
        ),
        (
            "What is the capital of Australia?",
            "Canberra. It's often assumed to be Sydney, but Canberra was built for it.",
            "Canberra",
            True,
        ),
        (
            "Which country hosted the 2010 World Cup?",
            "The 2010 World Cup was held in **South Africa** from 11 June. Spain won it.",
            "South Africa",
            True,
        ),
        ("What is the hardest substance?", "Diamond – it scores 10 on the scale.", "Diamond", True),
        (MANCHA, "Lope de Vega, friend of Miguel de Cervantes, wrote it.", "Cervantes", False),
        (MANCHA, "It was written for Cervantes by a friend.", "Cervantes", False),
        (MANCHA, "Cervantes and Lope de Vega wrote the novel Don Quixote.", "Cervantes", False),
        (MANCHA, "Cervantes' brother wrote the novel Don Quixote.", "Cervantes", False),
        ("Which material was it made of?", "It was made of paper towel.", "paper", False),
        ("Which place hosted the match?", "North Carolina hosted the match.", "Carolina", False),
        (
            "Who finished the race second?",
            "Ann finished the race first and Bob third, so Carl was second.",
            "Ann",
            False,
        ),
    ],
)
def test_a_name_is_read_in_the_sentence_that_answers(
    question: str, reply: str, truth: str, is_right: bool
) -> None:
    item = Item("1", question, truth, ())
    assert (is_right_answer(item, answer_to(item, reply)) is True) is is_right


def test_another_statement_is_another_answer_and_two_of_them_are_not_compared() -> None:
    """Else a changed answer would have no value where the first one has, and none would differ."""
    item = Item("1", "Which city is the capital of Australia?", "Canberra", ())
    right, other, third = (
        answer_to(item, f"The capital city of Australia is {rest}.")
        for rest in ("lovely Canberra", "a place called Sydney today", "the city named Sydney now")
    )
    assert right is not None and other is not None and third is not None
    assert same_answer_to(item, right, other) is False
    assert same_answer_to(item, other, third) is None
    assert same_answer_to(item, other, other) is True
