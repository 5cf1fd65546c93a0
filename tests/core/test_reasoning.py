"""Reasoning in the text of a reply: each published form gives the same chain and the same reply."""

from __future__ import annotations

import pytest

from cotlab.core.reasoning import (
    Reasoning,
    ends_in_reasoning,
    own_text,
    read_reasoning,
    unread_markup,
)

CHAIN = "The start was 8. Perhaps the answer is 8."
HEADERS = ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>")
TURN = "<|end|><|start|>assistant"
FORMS = {
    # reasoning parsers of vLLM and SGLang, and the data sets OpenThoughts and OpenR1
    "DeepSeek, Qwen": f"<think>\n{CHAIN}\n</think>\n\n3",
    "opened by the template": f"{CHAIN}\n</think>\n\n3",
    "opened twice": f"<think>\n<think>{CHAIN}</think>3",
    "capitals": f"<THINK>{CHAIN}</THINK>3",
    "tag: thinking": f"<thinking>{CHAIN}</thinking>\n3",
    "tag: thought": f"<thought>{CHAIN}</thought>\n3",
    "tag: reasoning": f"<reasoning>{CHAIN}</reasoning>\n3",
    "tag: scratchpad": f"<scratchpad>{CHAIN}</scratchpad>\n3",
    "Seed-OSS": f"<seed:think>{CHAIN}</seed:think>3",
    "MiniMax": f"<mm:think>{CHAIN}</mm:think>3",
    "Magistral": f"[THINK]{CHAIN}[/THINK]3",
    "Kimi": f"◁think▷{CHAIN}◁/think▷3",
    "OpenThoughts": (
        f"<|begin_of_thought|>\n{CHAIN}\n<|end_of_thought|>\n\n<|begin_of_solution|>\n3"
        "<|end_of_solution|>"
    ),
    "Command A": (f"<|START_THINKING|>{CHAIN}<|END_THINKING|><|START_RESPONSE|>3<|END_RESPONSE|>"),
    "Apertus": f"<|inner_prefix|>{CHAIN}<|inner_suffix|>3",
    "Gemma": f"<|channel>thought\n{CHAIN}<channel|>3",
    "Granite": f"Here is my thought process:\n{CHAIN}\n\nHere is my response:\n3",
    "gpt-oss": f"{HEADERS[0]}{CHAIN}{TURN}{HEADERS[1]}3<|return|>",
    "gpt-oss, from the start of the turn": (
        f"<|start|>assistant{HEADERS[0]}{CHAIN}{TURN}{HEADERS[1]}3"
    ),
    "gpt-oss, without special tokens": f"analysis{CHAIN}assistantfinal3",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_divided_into_chain_and_reply(form: str) -> None:
    text = FORMS[form]
    reasoning = read_reasoning(text)
    assert (reasoning.chain(text), own_text(text).strip()) == (CHAIN, "3")
    assert (reasoning.is_open, unread_markup(text)) == (False, "")


def test_a_chain_of_several_messages_or_forms_is_read_in_order() -> None:
    for text in (
        f"{HEADERS[0]}One.{TURN}{HEADERS[0]}Two.{TURN}{HEADERS[1]}3",
        f"{HEADERS[0]}One.<|end|><|start|>assistant<|channel|>commentary<|message|>Two."
        f"{TURN}{HEADERS[1]}3",
        "analysisOne.assistantanalysisTwo.assistantfinal3",
        "<think>One.</think>Hm.<think>Two.</think>3",
        "<think>One.</think>[THINK]Two.[/THINK]3",
    ):
        assert read_reasoning(text).chain(text) == "One.\n\nTwo."
        assert (own_text(text), unread_markup(text)) == ("3", "")


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "The tag `<think>` opens a chain, `</think>` ends it. 3",
        "```\n<|custom|>\n```\n3",
        "|CD|<|ABC|>|EF|, so 3",
        "<answer>3</answer>",
        "3 and 4 give <|begin_of_box|>7<|end_of_box|>",
        "It is 3.<|im_end|>\n<|im_start|>user\n<|custom|>",
        "analysis of the sum: 3",
        "f <|> g, x <| y, and <b>3</b>",
    ],
)
def test_a_reply_without_reasoning_is_its_own_text(text: str) -> None:
    assert read_reasoning(text) == Reasoning()
    assert text.startswith(own_text(text))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("<think>8, so 3", "<think>"),
        (f"{HEADERS[0]}8<|end|>", HEADERS[0]),
        ("analysisWe add 8.", "analysis"),
        ("8</think>no, 9</think>3", "</think>"),
        ("<think>8<think>9</think>3", "<think>"),
        ("<|ponder|>8<|reply|>3", "<|ponder|>"),
        ("<|turn>8<turn|>3", "<|turn>"),
        ("<my_think>8</my_think>3", "</my_think>"),
        ("[REFLECTION]8[/REFLECTION]3", "[/REFLECTION]"),
        ("{{think}}8{{/think}}3", "{/think}"),
    ],
)
def test_what_cannot_be_divided_is_named(text: str, markup: str) -> None:
    assert unread_markup(text) == markup


def test_a_reply_that_was_cut_within_its_chain_has_no_fault() -> None:
    assert unread_markup("<think>8, so", was_cut=True) == ""
    assert unread_markup("<|ponder|>8, so", was_cut=True) == "<|ponder|>"
    assert (read_reasoning("<think>8, so").is_open, own_text("<think>8, so")) == (True, "")


def test_a_prompt_may_end_within_the_chain() -> None:
    assert all(map(ends_in_reasoning, ("Q<think>\n", "Q[THINK]", f"Q{HEADERS[0]}")))
    assert not any(map(ends_in_reasoning, ("Q", "an analysis", "<think>8</think>")))
