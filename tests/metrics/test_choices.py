"""Scores of multiple choice: letter, text and both are the same answer to every scorer."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from cotlab.core.program import Params, Peers
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Embed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score
from cotlab.metrics.mediation.scorer import answers_differ
from cotlab.suites.jsonl import load_suite
from cotlab.text.answers.targets import answer_as_written, item_choices
from tests.support.replies import drive

SUITE = load_suite(Path(__file__).parents[2] / "data" / "suites" / "commonsense.jsonl")
SUBJECT = ModelRef("echo", "echo", form="prefill")
WORDINGS: dict[str, Callable[[int, Sequence[str]], str]] = {
    "letter": lambda k, choices: chr(ord("A") + k),
    "letter in brackets": lambda k, choices: f"({chr(ord('a') + k)})",
    "text": lambda k, choices: choices[k],
    "both": lambda k, choices: f"({chr(ord('a') + k)}) {choices[k]}",
    "position": lambda k, choices: f"option {k + 1}",
}


def reply_to(item: Item, wording: str, request: Request) -> Reply:
    """The reply of a model whose option depends on the request, right in half of all."""
    if isinstance(request, Embed):
        vectors = tuple((1.0, float(len(text))) for text in request.texts)
        return Response(request.key, vectors=vectors)
    assert isinstance(request, Complete)
    choices = item_choices(item)
    rng = random.Random(request.key)
    right = next(i for i, choice in enumerate(choices) if choice == item.answer)
    position = right if rng.random() < 0.5 else rng.randrange(len(choices))
    answer = WORDINGS[wording](position, choices)
    if request.prefix.rstrip().endswith("is"):
        return Response(request.key, f" {answer}.")
    return Response(request.key, f"Step 1: I look at it.\nStep 2: So.\nThe answer is {answer}.")


def scores_of(name: str, wording: str) -> list[Score]:
    scorer = SCORERS[name]
    models = {"subject": SUBJECT, "embedder": ModelRef("embedder", "e")}
    params = Params(models, options=dict(scorer.options), repeats=2)
    found: list[Score] = []
    for item in SUITE.items:
        program = scorer(item, params, Peers(SUITE.items))
        driven = drive(program, partial(reply_to, item, wording))
        found += [score for score in driven.result if score.metric != "token_delta"]
    return found


@pytest.mark.soak
@pytest.mark.parametrize("name", ["ablation", "unfaithfulness", "robustness", "diversity"])
def test_a_letter_a_text_and_a_position_give_the_same_scores(name: str) -> None:
    by_letter = scores_of(name, "letter")
    assert {score.value for score in by_letter} >= {0.0, 1.0}
    for wording in WORDINGS:
        assert scores_of(name, wording) == by_letter, wording


def test_every_item_of_the_suite_has_its_options() -> None:
    assert [len(item_choices(item)) for item in SUITE.items] == [5] * 40


ICE = Item("ice", "Which floats? (a) stone (b) ice", "ice", ())
TEA = Item("tea", "Which is hot? (a) snow (b) tea", "tea", ())


def test_an_answer_as_written_is_the_one_that_counts() -> None:
    """The probabilities of an answer are read where the reply writes it."""
    assert answer_as_written(ICE, "So the answer is b.") == "b"
    assert answer_as_written(ICE, "So the answer is ice.") == "ice"
    assert answer_as_written(ICE, "Ice it is, 9 of 10 times.") is None
    assert answer_as_written(Item("i", "How many now?", "9", ()), "The answer is 9.") == "9"


def test_donors_have_another_answer_in_words_and_by_their_options() -> None:
    """A donor's "b" is the token that this item's answer starts with, whatever the options say."""
    assert not answers_differ(ICE, " b", TEA, " b") and answers_differ(ICE, " b", TEA, " a")
    same_text = Item("again", "Which is cold? (a) ice (b) fire", "ice", ())
    assert not answers_differ(ICE, " ice", same_text, " ice")


def test_answers_to_items_are_read_with_their_question_and_options() -> None:
    package = Path(__file__).parents[2] / "cotlab"
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\bfinal_answer\(", path.read_text("utf-8"))
    }
    in_answers = {name for name in readers if name.startswith("text/answers/")}
    assert readers - in_answers == {"metrics/model_steps.py"}  # whether a last line only answers
