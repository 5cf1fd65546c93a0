"""Answers in tags are read; the empty place of a form is no answer."""

from __future__ import annotations

import pytest

from cotlab.core.types import Item
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.targets import answer_to, is_right_answer, same_answer_to
from cotlab.text.prompts.chain import answer_prompt

PROBLEM = Item("1", "Kim has 3 coins and gets 4 coins. How many coins?", "7", ("3 + 4 = 7",))


@pytest.mark.parametrize(
    "reply",
    [
        "The final answer is <answer>.",
        "7 + 3 = 10. So 10.\nThe final answer is [your answer].",
        r"\boxed{answer}",
        r"\boxed{\text{your answer}}",
        "#### <number>",
        '{"answer": "<answer>"}',
        "<answer>your answer</answer>",
        "<answer></answer>",
        "Answer: ____",
        "Answer:",
        "**Final answer**:",
        "The final answer is",
        "So the answer is <answer>.\n\nQ: Bob has 5 coins and loses 2. How many are left?",
        "So the answer is 7.\nSo the answer is <answer>.",
        "<answer>[number]</answer>",
        "The answer is <the number of coins>.",
        "So the answer is <answer> coins.",
        "Tom thinks the answer is 14. How many?\nFinish with: So the answer is <answer>.",
    ],
)
def test_the_place_of_an_answer_is_none(reply: str) -> None:
    assert final_answer(reply) is None


def test_a_model_that_repeats_the_instruction_has_not_answered() -> None:
    for steps in (PROBLEM.steps, ()):
        (message,) = answer_prompt(PROBLEM.question, steps, "chat").messages
        assert "<answer>" in message.content
        assert answer_to(PROBLEM, message.content) is None


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>3 + 4</think>\n<answer>7</answer>", "7"),
        ("The final answer is <answer>7</answer>.", "7"),
        ("The final answer is <answer> 7.", "7"),
        ("The final answer is <7>.", "7"),
        ("So <answer> 7 coins </answer>, found in 2 steps.", "7 coins"),
        ("<answer>\nB\n</answer>", "B"),
        (r"<Final_Answer>\boxed{7}</Final_Answer>", "7"),
        ("Draft <answer>4</answer>, no: <answer>7</answer>", "7"),
        ("The answer is <b>7</b>.", "7"),
        ("The answer is <strong>7 coins</strong>.", "7 coins"),
        ("The answer is <3, 4>.", "<3, 4>"),
        ("<answer>4</answer>\n\nWait, I made a mistake. The correct answer is 7.", "7"),
        ("<answer>4</answer>\nLet me check. \\boxed{7}", "7"),
        ("<answer>see below</answer>\n\\boxed{7}", "7"),
        ("It says <answer>8</answer>, which is wrong. So the answer is 7.", "7"),
        ("Reply in the form <answer>number</answer>. The answer is 7.", "7"),
        ("I must reply with <answer>your answer</answer>.\nSo the answer is 7.", "7"),
        ("<answer>3</answer>, <answer>4</answer>", "3, 4"),
        ('<answer type="number">7</answer>', "7"),
        ("So the answer is <answer>$7$</answer>", "7"),
        ("[ANSWER]7[/ANSWER]", "7"),
        ("3 and 4 give <|begin_of_box|>7<|end_of_box|>", "7"),
        ("Reasoning: 3 coins and 4 coins. <final>7</final>", "7"),
        ('The answer is <b class="x"><i>7</i></b>.', "7"),
        ("The answer is <li>.", "<li>"),
        ("The answer is <x>.", "<x>"),
        ("The answer is <stdio.h>.", "<stdio.h>"),
        ("The answer is <3 4>.", "<3 4>"),
        ("The answer is {letter}.", "{letter}"),
        ("The answer is [value].", "[value]"),
        ("So the answer is answer.", "answer"),
        ("answer", "answer"),
        ("The answer is the number 7.", "the number 7"),
        ("The answer is a result of rounding.", "a result of rounding"),
    ],
)
def test_what_is_in_a_tag_or_beside_a_place_is_read(reply: str, answer: str) -> None:
    assert final_answer(reply) == answer


@pytest.mark.parametrize(
    "reply",
    [
        "<answer>I don't know</answer>",
        "<answer>?</answer>",
        "The answer is not <answer>5</answer>, it is 7.",
    ],
)
def test_a_tag_without_an_answer_has_none(reply: str) -> None:
    assert final_answer(reply) is None


def test_a_suite_may_state_its_answers_in_tags() -> None:
    item = Item("1", "How many?", "<answer>7</answer>", ())
    assert is_right_answer(item, answer_to(item, "So she has 7 coins.")) is True
    assert same_answer("<answer>7</answer>", "8") is False


@pytest.mark.parametrize("answer", ["", " ", "**", "\u200b", "…"])
def test_what_has_no_content_is_not_the_same_as_itself(answer: str) -> None:
    assert same_answer_to(PROBLEM, answer, answer) is None


@pytest.mark.parametrize(
    "text", ["a<b and b>c", "x <i> y", "if n <u> then", "<answer", "</answer>"]
)
def test_signs_that_are_no_tags_change_nothing(text: str) -> None:
    assert final_answer(f"{text}\nThe answer is 7.") == "7"
