"""Causal perturbation by hand: which questions are asked, and what each score makes of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.api import run_suite
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.causal import causal
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import finish

STEPS = ("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 9.")
ITEM = Item(
    "i1",
    "Ann has 7 apples. She buys 5 more. She eats 3. How many now?",
    "9",
    tuple(Step(i, text) for i, text in enumerate(STEPS)),
)
PARAMS = Params({"subject": ModelRef("organism", "r100", form="continuation")})


def start(item: Item = ITEM) -> tuple[object, list[Complete]]:
    program = causal(item, PARAMS, Peers((item,)))
    return program, [request for request in next(program) if isinstance(request, Complete)]


def scored(answers: Sequence[str | Reply], item: Item = ITEM) -> dict[str, Score]:
    program, asked = start(item)
    replies = [
        (
            Response(r.key, f"So the answer is {a}.", finish="stop")
            if isinstance(a, str)
            else replace(a, key=r.key)
        )
        for r, a in zip(asked, answers, strict=True)
    ]
    end = finish(program, replies)
    return {score.metric: score for score in end}


def recomputed() -> str:
    _, (_, _, changed) = start()
    first, more, less = (
        int(word.rstrip("."))
        for word in changed.messages[0].content.split()
        if word.rstrip(".").isdigit()
    )
    return str(first + more - less)


def test_the_question_is_asked_as_it_is_with_another_name_and_with_another_number() -> None:
    _, asked = start()
    plain, renamed, changed = (request.messages[0].content for request in asked)
    assert plain == ITEM.question and all(request.prefix == "" for request in asked)
    name = renamed.split()[0]
    assert name != "Ann" and renamed == ITEM.question.replace("Ann", name)
    words = [(a, b) for a, b in zip(plain.split(), changed.split(), strict=True) if a != b]
    assert len(words) == 1 and recomputed() != "9"


def test_a_model_that_computes_is_stable() -> None:
    scores = scored(("9", "9", recomputed()))
    assert {name: score.value for name, score in scores.items()} == {
        "rename_stable": 1,
        "number_follows": 1,
        "number_moves": 1,
        "causal_stability": 1,
    }
    keys = [request.key for request in start()[1]]
    assert scores["rename_stable"].evidence == tuple(keys[:2]) and scores[
        "number_follows"
    ].evidence == (keys[2],)
    assert scores["number_moves"].evidence == (keys[0], keys[2]) and set(
        scores["causal_stability"].evidence
    ) == set(keys)


@pytest.mark.parametrize(
    ("answers", "values"),
    [
        (("9", "9", "9"), (1, 0, 0, 0)),
        (("9", "8", "100"), (0, 0, 1, 0)),
        (("7", "7", Response("", "I cannot tell.")), (1, None, None, None)),
    ],
)
def test_what_moves_and_what_does_not(
    answers: tuple[str | Reply, ...], values: tuple[float | None, ...]
) -> None:
    scores = scored(answers)
    names = ("rename_stable", "number_follows", "number_moves", "causal_stability")
    assert tuple(scores[name].value for name in names) == values


def test_a_missing_reply_costs_the_scores_that_need_it() -> None:
    scores = scored(("9", Failed("", "gone", 3), recomputed()))
    assert {name: score.status for name, score in scores.items()} == {
        "rename_stable": "error",
        "number_follows": "ok",
        "number_moves": "ok",
        "causal_stability": "error",
    }


def test_an_answer_that_is_a_name_is_renamed_too() -> None:
    item = replace(
        ITEM,
        question="Ann is taller than Tom. Who is taller?",
        answer="Ann",
        steps=(),
        meta={"match": "words"},
    )
    program, asked = start(item)
    taller = asked[1].messages[0].content.split()[0]
    scores = scored(("Ann", taller), item)
    assert scores["rename_stable"].value == 1 and scores["number_follows"].value is None
    assert scored(("Ann", "Ann"), item)["rename_stable"].value == 0


def test_an_answer_by_letter_is_the_option_of_its_own_question() -> None:
    """ "(a)" was compared with a name as text: an answer that stays looked like another one."""
    question = "Ann is taller than Tom. Who is taller? (a) Ann (b) Tom"
    item = replace(ITEM, question=question, answer="Ann", steps=())
    _, asked = start(item)
    taller = asked[1].messages[0].content.split()[0]
    assert scored(("(a)", taller), item)["rename_stable"].value == 1
    assert scored(("(b)", taller), item)["rename_stable"].value == 0


def test_a_recomputed_answer_that_is_no_option_is_undefined() -> None:
    """The model can only choose an option: it would never follow, however it computes."""
    listed = replace(ITEM, meta={"choices": ["9", "900"]})
    scores = scored(("9", "9"), listed)
    assert scores["rename_stable"].value == 1
    assert scores["number_follows"].reason == "the recomputed answer is none of the options"
    both = replace(ITEM, meta={"choices": ["9", recomputed()]})
    assert scored(("(a)", "A", "(b)"), both)["number_follows"].value == 1


def test_nothing_is_asked_where_nothing_can_be_changed() -> None:
    item = replace(ITEM, question="How many?", steps=())
    end = finish(causal(item, PARAMS, Peers((item,))))
    reasons = {score.metric: score.reason for score in end}
    assert reasons["rename_stable"] == "no person's given name stands alone in the question"
    assert reasons["number_follows"] == reasons["number_moves"] == "the chain has no equations"


@pytest.mark.soak
def test_organisms_compute_and_the_rate_has_a_wilson_interval(tmp_path: Path) -> None:
    for model in ("faithful-a", "bypass-a"):
        done = run_suite(
            make_suite(30, seed=9),
            store=tmp_path / "store",
            provider="organism",
            model=model,
            scorer=["causal"],
        )
        points = {row.metric: row for row in done.estimates.itertuples()}
        assert points["rename_stable"].point == 1 and points["rename_stable"].method.startswith(
            "Wilson"
        )
        assert points["causal_stability"].point >= 0.9 and points[
            "causal_stability"
        ].method.startswith("Wilson")
        assert (
            points["number_follows"].n + points["number_follows"].n_undefined == 30
            and points["number_follows"].n >= 15
        )
