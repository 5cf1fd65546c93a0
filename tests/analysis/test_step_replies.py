"""What the model was given at a changed step, its answers, and the later steps that change."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cotlab.analysis.tables.score_groups import item_score_groups, missing_score_reasons
from cotlab.analysis.tables.step_effects import (
    given_chain,
    measured_modes,
    mode_scores,
    step_effects,
    strongest_step,
)
from cotlab.analysis.tables.step_replies import model_answers, reply_pairs, step_replies
from cotlab.core.requests import Response
from cotlab.core.types import Form, Item, ModelRef, Step
from cotlab.metrics.ablation import make_variant
from cotlab.text.prompts.chain import answer_prompt, continuation_prompt

STEPS = ("Step 1: 4 + 6 = 10.", "Step 2: 10 - 5 = 5.", "Step 3: 5 - 3 = 2.")
ITEM = Item("i", "How many cups?", "2", tuple(Step(i, text) for i, text in enumerate(STEPS)))
MODEL = ModelRef("echo", "m", form="continuation")


def scores(*rows: tuple[str, int | None, int, float | None, list[str]]) -> pd.DataFrame:
    """Scores of changed answers: mode, step, draw, value, evidence."""
    columns = ["mode", "step", "sample", "value", "evidence"]
    table = pd.DataFrame(list(rows), columns=columns)
    reasons = [None if pd.notna(value) else "the model refused" for value in table["value"]]
    facets = [f'{{"mode": "{mode}"}}' for mode in table["mode"]]
    return table.assign(metric="answer_change", reason=reasons, facet=facets)


def test_effects_count_replies_and_say_why_others_have_no_value() -> None:
    table = scores(
        ("remove", 0, 0, 0.0, []),
        ("corrupt", 0, 0, 1.0, []),
        ("corrupt", 0, 1, 0.0, []),
        ("corrupt", 0, 2, None, []),
        ("corrupt", 1, 0, None, []),
    )
    assert measured_modes(table) == ["corrupt", "remove"]
    first, second, third = effects = step_effects(mode_scores(table, "corrupt"), 3)
    assert (first.n_changed, first.n, first.n_missing, first.share) == (1, 2, 1, 0.5)
    assert first.reason == "the model refused" and first.interval.lo == pytest.approx(0.0945, 1e-3)
    assert (second.share, second.interval.point, second.reason) == (None, None, "the model refused")
    assert third.reason == "no request was made for this step" and strongest_step(effects) == 0
    without_steps = step_effects(scores(("corrupt", None, 0, None, [])), 1)
    assert without_steps[0].reason == "the model refused" and strongest_step(without_steps) == 0


@pytest.mark.parametrize("form", ["continuation", "prefill", "chat"])
@pytest.mark.parametrize("mode", ["corrupt", "paraphrase", "remove", "truncate", "filler"])
def test_what_was_given_is_read_from_the_logged_request(mode: str, form: Form) -> None:
    variant = make_variant(STEPS, 1, mode, 7)
    assert not isinstance(variant, str)
    make_prompt = continuation_prompt if variant.continues_chain else answer_prompt
    prompt = make_prompt(ITEM.question, variant.steps, form)
    request = {
        "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
        "prefix": prompt.prefix,
    }
    given = given_chain(request, ITEM.question, STEPS, 1, mode, form)
    assert given.reason is None and given.continues is (mode == "corrupt")
    texts = [s.changed_text or s.text for s in given.steps if s.kind != "left out"]
    assert texts == list(variant.steps)
    assert [s.kind for s in given.steps if s.step == 1] == [
        {"remove": "left out", "truncate": "same"}.get(mode, "changed")
    ]
    other = given_chain(request, "Another question?", STEPS, 1, mode, form)
    assert other.steps == () and "not this chain" in str(other.reason)
    assert given_chain(None, ITEM.question, STEPS, 1, mode, form).reason is not None


def replies_of(
    texts: list[tuple[str, str, float | None]], step: int = 0, finish: str = "stop"
) -> Any:
    """The replies behind a step, from the texts of each pair of replies and its score."""
    exchanges, responses, pairs = {}, {}, []
    for draw, (whole, changed, value) in enumerate(texts):
        for name, text, prefix in (("w", whole, "So the answer is"), ("c", changed, "")):
            key = f"{name}{draw}"
            exchanges[key] = ({"messages": [], "prefix": prefix, "stop": ["\n"]}, None)
            responses[key] = Response(key, text=text, finish=finish if name == "c" else "stop")
        pairs.append((f"w{draw}", f"c{draw}", value))
    return step_replies(ITEM, MODEL, STEPS, step, pairs, exchanges, responses, rewrites_chain=True)


def chain(second: str, third: str, answer: str) -> str:
    return f"Step 2: {second}.\nStep 3: {third}.\nSo the answer is {answer}."


def test_answers_are_counted_and_the_rewritten_chain_is_compared() -> None:
    followed = (" 2.", chain("9 - 5 = 4", "4 - 3 = 1", "1"), 1.0)
    kept = (" 2.", chain("9 - 5 = 4", "4 - 3 = 1", "2"), 0.0)
    found = replies_of([followed, followed, kept])
    assert [(a.answer, a.is_right, a.n_changed_step, a.n_baseline) for a in found.answers] == [
        ("2", True, 1, 3),
        ("1", False, 2, 0),
    ]
    assert [(s.step, s.written_text, s.n_changed, s.n) for s in found.later_steps] == [
        (1, "Step 2: 9 - 5 = 4.", 3, 3),
        (2, "Step 3: 4 - 3 = 1.", 3, 3),
    ]
    ending = found.ending
    assert (ending.number, ending.n_follow, ending.n_keep, ending.n) == ("1", 2, 1, 3)


def test_no_ending_is_named_where_it_would_not_be_true() -> None:
    one = (" 2.", chain("9 - 5 = 4", "4 - 3 = 1", "1"), 1.0)
    other = (" 2.", chain("9 - 5 = 4", "4 - 3 = 7", "7"), 1.0)
    assert replies_of([one, other]).ending is None  # the chains end on different numbers
    same = (" 2.", chain("9 - 5 = 4", "4 - 2 = 2", "2"), 0.0)
    assert replies_of([same]).ending is None  # they end on the answer that was given anyway
    wavering = (" 3.", chain("9 - 5 = 4", "4 - 3 = 1", "1"), 1.0)
    assert replies_of([one, wavering]).ending is None  # no single answer to keep to
    silent = (" 2.", "I cannot say.", None)
    found = replies_of([one, silent])
    assert found.ending is None
    assert found.missing == {"unparsed answer: the reply declines to answer": 1}
    assert replies_of([one], step=2).ending is None  # nothing follows the last step
    cut = replies_of([(" 2.", "Step 2: 9 - 5 = 4.\nStep 3: 4", None)], finish="length")
    assert cut.missing == {"the reply was cut off before an answer": 1} and cut.ending is None


def test_a_score_of_no_change_decides_over_the_rules() -> None:
    found = replies_of([(" 2.", chain("1 = 1", "2 = 2", "two cups or so"), 0.0)])
    assert [(a.answer, a.n_changed_step, a.n_baseline) for a in found.answers] == [("2", 1, 1)]


def test_the_answers_to_the_whole_chain_and_why_there_are_none() -> None:
    table = pd.DataFrame(
        {
            "metric": ["baseline_correct"] * 2,
            "sample": [0, 1],
            "value": [1.0, 0.0],
            "reason": [None, None],
            "evidence": [["w0"], ["w1"]],
        }
    )
    request = {"messages": [], "prefix": "So the answer is", "stop": ["\n"]}
    exchanges = {"w0": (request, None), "w1": (request, None)}
    responses = {key: Response(key, text=f" {n}.") for key, n in (("w0", 2), ("w1", 3))}
    found = model_answers(ITEM, MODEL, table, exchanges, responses)
    assert [(a.answer, a.is_right) for a in found.answers] == [("2", True), ("3", False)]
    assert (found.n, found.n_right, found.reason) == (2, 1, None)
    lost = model_answers(ITEM, MODEL, table, {}, {})
    assert lost.answers == () and lost.reason == "the log does not hold this reply in full"
    assert model_answers(ITEM, MODEL, table.iloc[:0], {}, {}).reason is not None


def test_keys_of_a_step_come_in_pairs_by_draw() -> None:
    table = scores(
        ("corrupt", 1, 1, 0.0, ["w1", "c1", "settled"]),
        ("corrupt", 1, 0, None, ["w0", "c0"]),
        ("corrupt", 2, 0, None, []),
    )
    assert reply_pairs(table, 1) == [("w0", "c0", None), ("w1", "c1", 0.0)]
    assert reply_pairs(table, 2) == []


def test_scores_are_grouped_and_missing_ones_have_their_reason() -> None:
    table = scores(("corrupt", 0, 0, 1.0, ["a"]), ("corrupt", 1, 0, None, ["a", "b"]))
    (group,) = item_score_groups(table)
    assert (group.n, group.mean, group.n_missing, group.n_requests) == (1, 1.0, 1, 2)
    assert group.reasons == ("the model refused",)
    assert missing_score_reasons(table) == [("the model refused", 1, ["answer_change"])]
