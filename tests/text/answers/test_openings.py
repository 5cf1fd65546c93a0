"""Answers that stand before background, in bold, in code, in a list, or in another language."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.cut_off import ends_visibly_early
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to


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
            "How old is Nadia?",
            "Nadia is 19 years old. Her sister is 11, since 19 + 11 = 30.",
            "19 years old",
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
        (
            "Which three colors are on the flag?",
            "It has three stripes:\n\n1. **Green** (hoist side)\n2. **White**\n3. **Red**",
            "Green, White, Red",
        ),
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
