"""Facts that the first sentence of a reply states, and sentences that state none."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer

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


CAPITAL = "What is the capital of Australia?"
CITIES = ["Sydney", "Canberra", "Melbourne", "Perth"]


@pytest.mark.parametrize(
    ("reply", "truth"),
    [
        ("Option A is the largest city. The capital is B.", "A"),
        ("Option A is the best known city, but Canberra is the capital.", "A"),
        ("A) Sydney\n\nSydney is the largest city. The capital is Canberra, option B.", "A"),
        ("A) Sydney\n\nLarge and popular. But the seat of parliament is Canberra.", "A"),
        ("**A. Sydney**\nThe largest.\n\n**B. Canberra**: the seat.\n\nIt is Canberra.", "A"),
        ("(A) Sydney (not Canberra, which is incorrect)", "B"),
        ("Many students would pick Sydney (A).", "A"),
        ("Sydney (option A) is the largest city. Canberra houses the parliament.", "A"),
        ("Sydney is the largest city. The seat of parliament was a compromise.", "A"),
    ],
)
def test_an_option_that_is_named_on_the_way_is_not_chosen(reply: str, truth: str) -> None:
    item = Item("1", CAPITAL, truth, (), meta={"choices": CITIES})
    assert is_right_answer(item, answer_to(item, reply)) is not True


@pytest.mark.parametrize(
    ("question", "reply", "truth"),
    [
        (
            "Who was the second person on the Moon?",
            "Neil Armstrong, in July 1969, was the first; Buzz Aldrin was the second.",
            "Neil Armstrong",
        ),
        (
            "Who wrote the screenplay of The Shining?",
            "Stephen King, in 1977, published the novel The Shining; Diane Johnson wrote it.",
            "Stephen King",
        ),
        (
            "Which Shakespeare play features Iago?",
            "Prince Hamlet is the title figure of **Hamlet**. Iago appears in Othello.",
            "Hamlet",
        ),
        (
            "Who founded Microsoft?",
            "Microsoft was founded by Bill Gates and Paul Allen in 1975.",
            "Bill Gates",
        ),
        (
            "How many eggs does Tom have in his boxes?",
            "Tom has **3** boxes of eggs. Each box holds 12. That makes 36 eggs.",
            "3",
        ),
        ("Which of these is odd?", "Candidates:\n- 4\n- 6\n- 9\n\nOnly nine is odd.", "4, 6, 9"),
        (
            "What is the capital of Kazakhstan?",
            "**Almaty** was the capital of Kazakhstan until 1997. It is now another city.",
            "Almaty",
        ),
    ],
)
def test_another_name_of_the_first_sentence_is_no_fact(
    question: str, reply: str, truth: str
) -> None:
    item = Item("1", question, truth, ())
    assert is_right_answer(item, answer_to(item, reply)) is not True
