"""Prompts: the chain as it stands, whole, in the place that the model's form gives it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.core.requests import Message
from cotlab.core.types import Form
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import (
    CHAIN_PLACEMENT_BY_FORM,
    FINAL_ANSWER_CUE,
    answer_prompt,
    chain_text,
    continuation_prompt,
    text_after_cue,
)

STEPS = ("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 9.")
LINES = st.lists(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]), min_size=1, max_size=15
    ),
    max_size=4,
)


def test_continuation() -> None:
    question = (Message("user", "How many?"),)
    assert answer_prompt("How many?", STEPS, "continuation") == (
        question,
        "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is",
    )
    assert answer_prompt("How many?", (), "continuation") == (question, "So the answer is")
    assert continuation_prompt("How many?", STEPS[:1], "continuation") == (
        question,
        "Step 1: 7 + 5 = 12.\n",
    )
    assert continuation_prompt("How many?", (), "continuation") == (question, "")


def test_chat() -> None:
    asked = answer_prompt("How many?", STEPS, "chat")
    assert asked.prefix == ""
    assert (
        asked.messages[0].content
        == "How many?\n\nReasoning:\nStep 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\n\n"
        "Give the answer that this reasoning leads to. Add no reasoning. "
        "Finish with one line of the form: So the answer is <answer>."
    )
    assert "without any reasoning" in answer_prompt("How many?", (), "chat").messages[0].content
    assert (
        "without repeating it"
        in continuation_prompt("How many?", STEPS, "chat").messages[0].content
    )
    assert "Reason step by step" in continuation_prompt("How many?", (), "chat").messages[0].content


@pytest.mark.parametrize("form", ["chat", "continuation"])
@pytest.mark.parametrize("ask", [answer_prompt, continuation_prompt])
@given(question=st.text(min_size=1, max_size=20).filter(str.strip), steps=LINES)
def test_question_and_steps_are_shown_as_they_are(
    ask: object, form: Form, question: str, steps: list[str]
) -> None:
    prompt = ask(question, steps, form)  # type: ignore[operator]
    assert len(prompt.messages) == 1 and prompt.messages[0].role == "user"
    whole = prompt.messages[0].content + "\n" + prompt.prefix
    assert question.rstrip("\n") in whole
    assert chain_text(steps).rstrip("\n") in whole
    assert form == "chat" or prompt.messages[0].content == question


def test_prompts_with_different_chains_differ() -> None:
    for form in CHAIN_PLACEMENT_BY_FORM:
        asked = {
            answer_prompt("q", steps, form)
            for steps in ((), STEPS, STEPS[:1], STEPS[1:], STEPS[::-1])
        }  # type: ignore[arg-type]
        assert len(asked) == 5


def test_what_a_reply_says_begins_with_the_cue_it_continues() -> None:
    assert text_after_cue(f"Step 1: 5.\n{FINAL_ANSWER_CUE}", " 9.") == "So the answer is 9."
    assert text_after_cue("Step 1: 5.\n", "Step 2: 9.") == "Step 2: 9."
    assert text_after_cue("", "9") == "9"
    assert same_answer(final_answer(text_after_cue(f"x\n{FINAL_ANSWER_CUE}", " 9 eggs.")), "9")
