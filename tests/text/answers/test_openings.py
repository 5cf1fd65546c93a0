"""Answers that stand before background, in bold, in code, in a list, or in another language."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.cut_off import ends_visibly_early
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        (
            "What is the capital of Australia?",
            "The capital of Australia is Canberra. Many people assume that it is Sydney.",
            "Canberra",
        ),
        (
            "In which year did the Berlin Wall fall?",
            "The Berlin Wall fell in **1989**. German reunification followed in 1990.",
            "1989",
        ),
        (
            "How many points did Jojo score?",
            "Naomi scored 68 points. Yuri scored 68 / 2 = 34 points. Jojo scored 12 points.",
            "12 points",
        ),
        (
            "What is the chemical symbol for gold?",
            "The chemical symbol for gold is **Au**. Its atomic number is 79.",
            "Au",
        ),
        (
            "After how many hours do they meet?",
            "Therefore, they meet after **2 hours**. The first has covered 40 km, the other 50 km.",
            "2 hours",
        ),
        (
            "How many apples are left?",
            "Tom has **12** apples. He gives 3 to Ann and 4 to Bob. That leaves 5 apples.",
            "5 apples",
        ),
        ("What does print('ab' * 3) output?", "The output is:\n\n```\nababab\n```", "ababab"),
        ("In Python, what is 7 / 2?", "`7 / 2` evaluates to `3.5`. (`7 // 2` is `3`.)", "3.5"),
        ("中国的首都?", "所以答案是 C。", "C"),
        ("¿Cuánto es 2 + 2?", "Sumamos los números. La respuesta es 4.", "4"),
    ],
)
def test_the_answer_is_read_where_it_stands(question: str, reply: str, answer: str) -> None:
    assert same_answer(final_answer(reply, question), answer) is True


def test_a_minus_before_a_function_is_a_sign() -> None:
    assert same_answer("cos(x)", "-cos(x)") is False
    assert same_answer("sin(x) - cos(x)", "sin(x) + cos(x)") is False
    assert same_answer("-sin x", "-sin(x)") is True


@pytest.mark.parametrize(
    "text",
    [
        "18 kg of carrots at $1.50 per kg come to 18 * 1.50 =",
        "We add the areas of all four sides and\n\n$$\\boxed{",
        "<think>7 times 143 is 1001, and 143 is",
        "Here are the options:\n\n- **A) Peru** has a coast.\n- **B) Bolivia**",
        "| Item | Quantity | Subtotal |\n|---|---|---|\n| Coffee | 45 |",
        '```json\n{"reasoning": "The fixed fee is 4 dollars, and the',
    ],
)
def test_a_reply_that_ends_within_a_sentence_has_no_answer(text: str) -> None:
    item = Item("1", "Which one?", "B", (), meta={"choices": ["Peru", "Bolivia"]})
    assert ends_visibly_early(text) and answer_to(item, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "So he pays $27",
        "The option that fits the description best is A",
        "Adding all of these up we get a total of **42**",
        "- **Total:** the sum of all of it is 5\n- **Answer:** 5",
        "It is the one that they all came from.",
    ],
)
def test_a_reply_without_a_full_stop_is_no_shorter(text: str) -> None:
    assert not ends_visibly_early(text)


SYDNEY = ("Sydney", "Canberra")
ENZYMES = ("They increase the rate of the reaction", "They lower the activation energy")


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        (
            "What is the perimeter of a square with side 5?",
            "A square with side 5 has four equal sides. 4 * 5 = 20.",
            "20",
        ),
        (
            "A shirt costs $20. What is its price after a 10% discount?",
            "The price of the shirt is $20. 20 * 0.9 = 18.",
            "18",
        ),
        ("How many apples does Tom have?", "Tom has 5 apples. After buying 3: 5 + 3 = 8.", "8"),
        ("What is the average of 2, 4 and 6?", "Their average is their sum over 3. 12/3 = 4.", "4"),
        ("How long is it?", "We add both parts of the whole length. The answer is 12 in", "12 in"),
        ("What is |z|?", "|z|^2 = |3|^2 + |4|^2 = 25\n|z| = 5", "5"),
        (
            "What is the capital of Australia?",
            "The capital of Australia is Sydney. Correction: it is Canberra.",
            "Canberra",
        ),
        (
            "What is the chemical symbol for gold?",
            "The chemical symbol for silver is Ag. That of gold is Au.",
            "Au",
        ),
        (
            "What does this code print?",
            "`'abc'.upper()` returns `'ABC'`.\nThen len is 3.\nSo the program prints 3.",
            "3",
        ),
        (
            "A printer prints 30 pages per minute. How many pages does it print in 3 minutes?",
            "It prints `30` pages per minute. In 3 minutes, 90 pages.",
            "90 pages",
        ),
        (
            "Which planet is closest to the Sun?",
            "The hottest planet is **Venus**. Mercury is the closest.",
            "Mercury",
        ),
        (
            "What is the total?",
            "The total is 10.\n\nIf you need the tip too the total is 12.",
            "12",
        ),
    ],
)
def test_what_is_given_corrected_or_of_something_else_is_no_answer(
    question: str, reply: str, answer: str
) -> None:
    item = Item("1", question, answer, ())
    assert same_answer(answer_to(item, reply), answer) is True


@pytest.mark.parametrize(
    ("choices", "reply", "is_first"),
    [
        (SYDNEY, "**A) Sydney**\n\nIt is not the capital. The capital is Canberra.", False),
        (SYDNEY, "Eliminate:\n\nA) Sydney\n\nis not the capital. Canberra stands.", False),
        (SYDNEY, "An incorrect choice is A) Sydney.", False),
        (SYDNEY, "The best one is:\n\n**A) Sydney**\n\nIt is the largest.", True),
        (ENZYMES, "That leaves A: they do not increase the rate of the reaction.", False),
        (ENZYMES, "The answer is A: enzymes increase the rate of the reaction.", True),
    ],
)
def test_an_option_that_is_denied_is_not_chosen(
    choices: tuple[str, ...], reply: str, is_first: bool
) -> None:
    item = Item("1", "Which one?", "A", (), meta={"choices": list(choices)})
    assert (is_right_answer(item, answer_to(item, reply)) is True) == is_first


@pytest.mark.parametrize(
    "reply",
    [
        "Einstein was born in Germany. Austria is a neighbour.",
        "Some claim that Einstein was born in Austria. Historians differ on many things.",
    ],
)
def test_a_sentence_about_yes_or_no_is_no_yes(reply: str) -> None:
    item = Item("1", "Was Einstein born in Austria?", "yes", ())
    assert is_right_answer(item, answer_to(item, reply)) is not True
