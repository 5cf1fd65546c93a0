"""Text that somebody made to be slow takes time in proportion to its length, and raises nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from cotlab.core.reasoning import ends_in_reasoning, own_text, unread_markup
from cotlab.core.text_safety import break_links, escape_formula, escape_table
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.answers.options import chosen_options, listed_options
from cotlab.text.arithmetic.readings import read_steps
from cotlab.text.arithmetic.recompute import change_number
from cotlab.text.chain_features.chain import chain_features
from cotlab.text.chain_features.steps import step_features
from cotlab.text.claims import ToolCall, find_claims
from cotlab.text.differences import stated_number, states_otherwise
from cotlab.text.edits.ablations import corrupt_step, paraphrase_step
from cotlab.text.edits.names import choose_new_names, find_names
from cotlab.text.edits.perturbations import PERTURBATIONS, perturb
from cotlab.text.keywords import count_keywords
from cotlab.text.prompts.comparison import read_confidence, read_verdict
from cotlab.text.prompts.hints import extract_hint, mentions_hint, plant_hint, wrong_answers
from cotlab.text.prompts.json_reply import read_json_reply
from cotlab.text.prompts.paraphrase import read_paraphrase, reword_question
from cotlab.text.red_flags import chain_domain, find_flags
from cotlab.text.restatement import is_restated
from cotlab.text.steps import label_spans, sentence_spans, split_steps

CALLS = (ToolCall("calculator", "7 + 5", "12"),)


def rng() -> random.Random:
    return random.Random(1)


READERS: dict[str, Callable[[str], object]] = {
    "reasoning": lambda text: (own_text(text), unread_markup(text), ends_in_reasoning(text)),
    "escapes": lambda text: (break_links(text), escape_formula(text), escape_table(text)),
    "answer": lambda text: (final_answer(text), same_answer(text, f"{text} 7")),
    "options": lambda text: (listed_options(text), chosen_options(text[:2000], ("ice", text[:99]))),
    "equations": lambda text: read_steps([text]),
    "recomputation": lambda text: change_number(text, [f"{text} 3 + 4 = 7"], "7", rng()),
    "chain features": lambda text: chain_features(text, [text], text[:500]),
    "step features": lambda text: step_features(text, [text]),
    "claims": lambda text: find_claims([f"the calculator returned {text}"], CALLS, text[:2000]),
    "differences": lambda text: (stated_number(text), states_otherwise(text, f"{text}.")),
    "ablations": lambda text: (corrupt_step(text, rng()), paraphrase_step(text, rng())),
    "names": lambda text: (find_names(text), choose_new_names(text, rng())),
    "perturbations": lambda text: [perturb(p, text, ("Ann", "Bob"), rng()) for p in PERTURBATIONS],
    "keywords": count_keywords,
    "replies": lambda text: (read_confidence(text), read_paraphrase("Q?", text)),
    "verdict": read_verdict,
    "JSON": lambda text: read_json_reply(text[:5000], ("score",)),  # its attempts are bounded
    "hints": lambda text: (
        extract_hint(text),
        mentions_hint(text, plant_hint("Q?", "5", "friend")),
    ),
    "wrong answers": lambda text: list(wrong_answers(text, text[:500], rng())),
    "rewording": lambda text: reword_question(text, 2, rng()),
    "flags": lambda text: (find_flags("", [text, "b", "c"]), chain_domain(text, [text])),
    "restatement": lambda text: is_restated(text[:2000], text),
    "steps": lambda text: (split_steps(text), sentence_spans(text), list(label_spans(text))),
}
PIECES = (
    *(" ", "\n", "\t", "\u2028", "a", "A", "9", ".", ",", "=", "-", "(", ")", "[", "{", "}", "\\"),
    *("$", "$$", "`", "**", "#", '"', "<", ">", "|", ":", "a\n\n", "a.", "a.b ", "A. ", "Ann "),
    *("1,", "1,000", "1 ", "7 + ", "=1", "9^", "x = ", "5 m + ", "9 m, ", "1/", "1. a\n", "(a) "),
    *("Step 1: a\n", "- a\n", "so ", "is ", "the answer is ", "Answer: ", "\\boxed{", "\\frac{"),
    *("\\(", "\\[", "\\begin{a}", "\\end{a}", "```\n", "<think>", "</think>", "<|a|>", "#### "),
    *("clearly ", "area of ", "per h/", "let ", "calculator ", "step by ", "not ", '{"a":', "and "),
    *("said ", "how ", "If a, ", "http:", "@", "=+", "³", "½", "é", "。"),
)
SHORT, LONG = 1_000, 10_000


def seconds(read: Callable[[str], object], piece: str, length: int) -> float:
    text = f"{piece * (length // len(piece))}x!"
    start = time.process_time()
    with suppress(ValueError):  # what is no verdict, and no JSON
        read(text)
    return time.process_time() - start


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_the_work_grows_with_the_length_of_a_text_and_not_with_its_square(name: str) -> None:
    """Ten times the text takes ten times as long, a hundred times with the square."""
    read = READERS[name]
    for piece in PIECES:
        for _ in range(3):  # other work of the machine may disturb one
            short, long = seconds(read, piece, SHORT), seconds(read, piece, LONG)
            if long < 40 * max(short, 0.002):
                break
        else:
            pytest.fail(f"{piece!r}: {short:.3f} s for {SHORT} characters, {long:.3f} s for {LONG}")
