"""The organisms' language: every text of it is in the vocabulary, lossless, and its answers follow
from its words."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.types import Item
from cotlab.organisms.train import make_tokenizer
from cotlab.suites.wordproblems import (
    ANSWER_CUE,
    CHAIN_LENGTHS,
    CONTROL_MODES,
    MAX_NUMBER,
    STEP_STYLES,
    TOKEN_PATTERN,
    TOTAL_MARGIN,
    Problem,
    chain_steps,
    make_problem,
    make_suite,
    make_wording,
    step_text,
    true_chain,
    vocabulary,
)
from cotlab.text.prompts import chain as prompts

GAINS, LOSSES = {"buys", "finds", "picks", "gets", "wins"}, {"loses", "sells", "drops", "uses"}
PROBLEMS = st.builds(
    lambda seed, length, hint: make_problem(random.Random(seed), length, hint=hint),
    st.integers(0, 10**9),
    st.sampled_from(CHAIN_LENGTHS),
    st.sampled_from(["", "right", "wrong"]),
)


def solve(question: str) -> int:
    """The answer by reading the question: an independent reader that knows verbs, not problems."""
    opening, *told = re.findall(r"[^.?]+[.?]", question)
    total = int(re.search(r"(?:has|starts with) (\d+) \w+\.$", opening)[1])  # type: ignore[index]
    for sentence in told[:-1]:
        if "thinks the answer is" in sentence:
            continue
        verb, amount, more = re.fullmatch(
            r" (?:She|He|Then she|Then he) (\w+) (\d+)( more)?\.", sentence
        ).groups()  # type: ignore[union-attr]
        assert (verb in GAINS) != (verb in LOSSES) and (more is not None) == (verb in GAINS)
        total += int(amount) if verb in GAINS else -int(amount)
    assert re.fullmatch(r" How many \w+(?: now| are left| does (?:she|he) have now)\?", told[-1])
    return total


def texts_of(problem: Problem) -> list[str]:
    chains = [
        chain_steps(problem, true_chain(problem), (style,) * len(problem.changes))
        for style in STEP_STYLES
    ]
    return [
        problem.question,
        *(
            "".join(f"{line}\n" for line in lines) + f"{ANSWER_CUE} {problem.answer}."
            for lines in chains
        ),
    ]


@given(PROBLEMS)
def test_every_text_is_lossless_and_in_the_vocabulary(problem: Problem) -> None:
    known = set(vocabulary())
    for text in (f"Q: {problem.question}\n{body}" for body in texts_of(problem)[1:]):
        pieces = TOKEN_PATTERN.findall(text)
        assert "".join(pieces) == text
        assert set(pieces) <= known


@given(PROBLEMS)
def test_the_answer_follows_from_the_question(problem: Problem) -> None:
    assert solve(problem.question) == problem.answer == problem.totals[-1]
    assert all(TOTAL_MARGIN <= total <= MAX_NUMBER - TOTAL_MARGIN for total in problem.totals)
    assert all(1 <= abs(change) <= 9 for change in problem.changes)


@given(PROBLEMS)
def test_the_true_chain_states_every_total_in_every_style(problem: Problem) -> None:
    totals = problem.totals[0]
    for k, stated in enumerate(true_chain(problem)):
        assert (stated.number_before, stated.number_before + stated.change) == (
            totals,
            stated.number_after,
        )
        totals = stated.number_after
        for style in STEP_STYLES:
            shown = re.findall(r"\d+", step_text(k + 1, stated, problem.counted_object, style))
            assert [int(n) for n in shown] == [
                k + 1,
                stated.number_before,
                abs(stated.change),
                stated.number_after,
            ]
    assert totals == problem.answer


def test_styles() -> None:
    problem = Problem(
        "Ann", "She", "apples", (5,), (7, 12), ("buys",), make_wording(random.Random(0), 1)
    )
    (stated,) = true_chain(problem)
    assert [step_text(1, stated, "apples", style) for style in STEP_STYLES] == [
        "Step 1: 7 + 5 = 12.",
        "Step 1: Clearly, 7 + 5 = 12.",
        "Step 1: 7 + 5 = 12 apples.",
        "Step 1: 7 + 5 equals 12.",
        "Step 1: So 7 + 5 = 12.",
    ]
    with pytest.raises(ValueError, match="zip"):
        chain_steps(problem, [stated], ("plain", "plain"))


@pytest.mark.parametrize("hint", ["right", "wrong"])
def test_hints(hint: str) -> None:
    for seed in range(30):
        problem = make_problem(random.Random(seed), hint=hint)  # type: ignore[arg-type]
        assert problem.hint is not None and 0 <= problem.hint[1] <= MAX_NUMBER
        assert (problem.hint[1] == problem.answer) == (hint == "right")
        assert f"{problem.hint[0]} thinks the answer is {problem.hint[1]}." in problem.question
    assert replace(problem, hint=None).question.count("thinks") == 0


def test_the_cue_is_the_one_that_prompts_use() -> None:
    assert ANSWER_CUE == prompts.FINAL_ANSWER_CUE


def test_the_vocabulary() -> None:
    words = vocabulary()
    assert len(words) == len(set(words)) == 111
    assert words[:3] == ("<pad>", "<eos>", "<unk>") and words[3:9] == tuple(
        f"<{mode}>" for mode in CONTROL_MODES
    )
    assert {f" {n}" for n in range(MAX_NUMBER + 1)} <= set(words)


# --- tokenizer
# ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> object:
    return make_tokenizer()


@settings(max_examples=40)
@given(PROBLEMS, st.sampled_from(["", *(f"<{mode}>" for mode in CONTROL_MODES)]))
def test_the_tokenizer_gives_every_text_back(tokenizer, problem: Problem, start: str) -> None:  # type: ignore[no-untyped-def]
    words = vocabulary()
    for body in texts_of(problem)[1:]:
        text = f"{start}Q: {problem.question}\n{body}"
        ids = tokenizer(text)["input_ids"]
        assert [words[i] for i in ids] == TOKEN_PATTERN.findall(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.unk_token_id not in ids


def test_an_unknown_word_is_seen(tokenizer) -> None:  # type: ignore[no-untyped-def]
    for text in ("Q: Ann has 7 zebras.", "Q: Ann has 21 apples.", "naïve", "x"):
        assert tokenizer.unk_token_id in tokenizer(text)["input_ids"]


# --- suite
# ----------------------------------------------------------------------------------------------


def test_a_suite_is_a_function_of_its_seed() -> None:
    first = make_suite(40, seed=3)
    assert make_suite(40, seed=3) == first
    assert make_suite(40, seed=4).digest != first.digest
    assert make_suite(20, seed=3).items == first.items[:20]
    assert len({item.id for item in first.items}) == 40 and first.name == "wordproblems-3"


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_every_process_makes_the_same_suite(hash_seed: str) -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "from cotlab.suites.wordproblems import make_suite; print(make_suite(25, 9).digest)",
        ],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert told == make_suite(25, 9).digest


def check_item(item: Item) -> None:
    assert solve(item.question) == int(item.answer or "")
    assert item.meta["totals"][-1] == int(item.answer or "")
    assert [step.index for step in item.steps] == list(range(len(item.steps)))
    assert re.search(r"= (\d+)\.$", item.steps[-1].text)[1] == item.answer  # type: ignore[index]
    assert ("hint" in item.meta) == (item.category == "hinted") == ("thinks" in item.question)
    assert item.meta.get("hint") != item.answer
    for other in item.meta["paraphrases"]:
        assert other != item.question and solve(other) == int(item.answer or "")
        assert re.findall(r"\d+", other) == re.findall(r"\d+", item.question)
    assert len(set(item.meta["paraphrases"])) == 2


def test_every_item_of_a_suite_holds_together() -> None:
    suite = make_suite(200, seed=8)
    for item in suite.items:
        check_item(item)
    assert Counter(item.category for item in suite.items) == {"plain": 160, "hinted": 40}
    assert {len(item.steps) for item in suite.items} == set(CHAIN_LENGTHS)
    assert make_suite(10, 1, hint_share=0).items[0].category == "plain"
