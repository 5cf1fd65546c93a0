"""Laws that every metric of every registered scorer obeys, whatever the model replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.keys import canonical_json
from cotlab.core.program import Params, Peers, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step, Suite
from cotlab.suites.wordproblems import make_suite
from tests.support import law_sets
from tests.support.law_sets import (
    CONSTANTS,
    COUNTS_OF_CHAINS,
    IF_IT_IS_SO,
    NEEDS_NO_CHAIN,
    OF_ANSWERS,
    ONLY_WHERE_FOUND,
    PAIR,
    RENORMALISED,
    TOOLS,
    WITHOUT_EVIDENCE,
    ZERO_WITHOUT_CHANGE,
)
from tests.support.replies import Body, answer, constant, distribution, following
from tests.support.replies import drive as drive_program

CASES = [(name, options) for name in SCORERS for options in law_sets.CASES.get(name, ({},))]
FIRST = [(name, options) for name in SCORERS for options in law_sets.CASES.get(name, ({},))[:1]]
BEYOND = [pytest.param(*case, marks=() if case in FIRST else pytest.mark.soak) for case in CASES]
each_case = pytest.mark.parametrize(
    ("name", "given_options"), CASES, ids=lambda v: v if isinstance(v, str) else "-".join(v)
)
drawn_case = pytest.mark.parametrize(
    ("name", "given_options"), BEYOND, ids=lambda v: v if isinstance(v, str) else "-".join(v)
)
"""The laws over many drawn replies hold the other options of a scorer in ``make soak``."""


OTHERS = tuple(
    replace(item, id=f"other {k}") for k, item in enumerate(make_suite(5, seed=77).items)
)
"""Donors for the scorers that need some."""


# --- what is drawn


TEXTS = st.sampled_from(
    [
        "",
        " ",
        " 12.",
        " 3.",
        "So the answer is 7.",
        "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9.",
        "I don't know.",
        "\\boxed{5}",
        "(B)",
        "yes",
        "18 eggs",
        "####",
        "3, 4",
        "…",
        "The answer is not 5",
        "1/0",
    ]
) | st.text(max_size=25)
TOPS = (
    st.none()
    | st.just(())
    | st.builds(
        distribution, st.lists(st.floats(1e-9, 1), min_size=1, max_size=6), st.integers(1, 6)
    )
    | st.lists(
        st.tuples(st.sampled_from([" 1", " 2", "a", ""]), st.floats(-1e308, 1e308)), max_size=4
    ).map(tuple)
)
BODIES = st.lists(
    st.builds(Body, TEXTS | st.none(), TOPS)
    | st.builds(Body, TEXTS, TOPS, st.sampled_from(["failed", "unsupported", "refused"])),
    min_size=1,
    max_size=6,
)
ITEMS = st.builds(
    lambda question, key, texts: Item(
        "i", question, key, tuple(Step(i, t) for i, t in enumerate(texts))
    ),
    st.text(max_size=20),
    st.none() | st.sampled_from(["12", "18 eggs", "yes", "", "(B)"]),
    st.lists(
        st.sampled_from(["Step 1: 7 + 5 = 12.", "So 3 is left.", "Birds fly."])
        | st.text(min_size=1, max_size=15),
        max_size=4,
    ),
)
SUBJECTS = st.sampled_from(
    [
        ModelRef("echo", "echo"),
        ModelRef("organism", "r100", form="continuation"),
        ModelRef("local", "m", form="continuation"),
    ]
)


def params_for(
    name: str, options: Mapping[str, Any], subject: ModelRef, repeats: int = 1
) -> Params:
    found: Scorer = SCORERS[name]
    roles = [role for role in found.roles if role not in options.get("without", ())]
    models = {"subject": subject, **{role: ModelRef(role, "m") for role in roles}}
    return Params(
        models,
        repeats=repeats,
        options={**found.options, **options},
        constants=CONSTANTS.get(name, {}),
    )


def drive(
    name: str,
    item: Item,
    params: Params,
    reply: Callable[[Request], Reply],
    peers: Peers | None = None,
) -> tuple[tuple[Score, ...], dict[str, Reply]]:
    """Run one program to its end; its scores and every reply that it was sent."""
    item = replace(item, meta={**item.meta, "tools": TOOLS, **PAIR})
    program = SCORERS[name](item, params, peers or Peers((item, *OTHERS)))
    driven = drive_program(program, reply)
    return driven.result, dict(driven.replies)


def chosen(bodies: list[Body]) -> Callable[[Request], Reply]:
    return lambda request: answer(request, bodies[int(request.key[:8], 16) % len(bodies)])


def table_of(scores: Iterator[Score] | tuple[Score, ...]) -> pd.DataFrame:
    """Scores as the store reads them: a number or NaN, the facet as canonical JSON."""
    rows = [
        (s.metric, s.item_id, s.step, s.sample, canonical_json(dict(s.facet)), s.value, s.status)
        for s in scores
    ]
    table = pd.DataFrame(
        rows, columns=["metric", "item_id", "step", "sample", "facet", "value", "status"]
    )
    return table.astype({"value": "float64", "step": "float64"})


# --- replies of any kind


@drawn_case
@settings(max_examples=40, deadline=None)
@given(item=ITEMS, subject=SUBJECTS, repeats=st.integers(1, 3), bodies=BODIES)
def test_any_reply_gives_values_in_range_or_a_reason(
    name: str,
    given_options: Mapping[str, Any],
    item: Item,
    subject: ModelRef,
    repeats: int,
    bodies: list[Body],
) -> None:
    cards = {card.name: card for card in SCORERS[name].cards}
    scores, sent = drive(
        name, item, params_for(name, given_options, subject, repeats), chosen(bodies)
    )
    assert scores
    for score in scores:
        card, replies = cards[score.metric], [sent[key] for key in score.evidence]
        assert score.item_id == item.id and score.facet == tuple(sorted(score.facet))
        assert (score.status == "ok") == (score.value is not None) == (score.reason is None)
        if score.value is None:
            assert score.reason
        else:
            assert math.isfinite(score.value) and card.lo <= score.value <= card.hi
            # what asks nothing, or reads what the item holds, rests on no reply
            assert replies or not sent or score.metric in WITHOUT_EVIDENCE
            assert all(isinstance(reply, Response) and not reply.refused for reply in replies)
        if any(isinstance(reply, Failed) and not reply.unsupported for reply in replies):
            assert score.value is None
        if score.status == "error":
            assert any(isinstance(reply, Failed) and not reply.unsupported for reply in replies)
        if score.status == "refused":
            assert any(isinstance(reply, Response) and reply.refused for reply in replies)
    places = [(s.metric, s.step, s.sample, s.facet, s.where) for s in scores]
    assert len(places) == len(set(places))


@drawn_case
@settings(max_examples=15, deadline=None)
@given(item=ITEMS, subject=SUBJECTS, bodies=BODIES)
def test_the_same_replies_give_the_same_scores(
    name: str, given_options: Mapping[str, Any], item: Item, subject: ModelRef, bodies: list[Body]
) -> None:
    params = params_for(name, given_options, subject, 2)
    first, asked = drive(name, item, params, chosen(bodies))
    again, asked_again = drive(name, item, params, lambda request: asked[request.key])
    assert again == first and list(asked_again) == list(asked)


@drawn_case
@settings(max_examples=10, deadline=None)
@given(subject=SUBJECTS, bodies=BODIES, data=st.data())
def test_the_order_of_items_does_not_matter(
    name: str,
    given_options: Mapping[str, Any],
    subject: ModelRef,
    bodies: list[Body],
    data: st.DataObject,
) -> None:
    suite = make_suite(4, seed=5)
    params, peers = params_for(name, given_options, subject), Peers.from_suite(suite, 42)
    first = {item.id: drive(name, item, params, chosen(bodies), peers)[0] for item in suite.items}
    shuffled = data.draw(st.permutations(suite.items))
    assert {
        item.id: drive(name, item, params, chosen(bodies), peers)[0] for item in shuffled
    } == first


@drawn_case
@settings(max_examples=10, deadline=None)
@given(item=ITEMS, bodies=BODIES, repeats=st.integers(1, 3))
def test_estimates_over_a_run_lie_in_the_range_of_their_card(
    name: str, given_options: Mapping[str, Any], item: Item, bodies: list[Body], repeats: int
) -> None:
    scorer: Scorer = SCORERS[name]
    params = params_for(
        name, given_options, ModelRef("organism", "r100", form="continuation"), repeats
    )
    items = [replace(item, id=f"i{k}", question=f"{item.question}{k}") for k in range(3)]
    table = table_of(tuple(s for one in items for s in drive(name, one, params, chosen(bodies))[0]))
    for statistic in scorer.statistics:
        inputs = table[table["metric"].isin(statistic.input_metrics)]
        estimates = statistic.compute(inputs, params.options, 42)
        if statistic.is_by_facet:
            by_facet = [scores for _, scores in inputs.groupby(["metric", "facet"], sort=True)]
            assert estimates == sum(
                (statistic.compute(s, params.options, 42) for s in by_facet), []
            )
        for found in estimates:
            assert found.metric == statistic.card.name
            if found.point is None:
                assert found.reason and found.lo is found.hi is None
                continue
            assert statistic.card.lo <= found.point <= statistic.card.hi
            assert (found.lo is None) == (found.hi is None)
            assert found.reason if found.lo is None else found.lo <= found.point <= found.hi


# --- what is missing


@each_case
@pytest.mark.parametrize(
    "subject",
    [ModelRef("echo", "echo"), ModelRef("organism", "r100", form="continuation")],
    ids=str,
)
def test_an_empty_chain_gives_undefined_scores_only(
    name: str, given_options: Mapping[str, Any], subject: ModelRef
) -> None:
    if name in NEEDS_NO_CHAIN:
        pytest.skip("measures an item without a chain")
    item = Item("i", "How many?", "12", ())
    scores, _ = drive(
        name,
        item,
        params_for(name, given_options, subject, 2),
        lambda request: answer(request, Body(" ")),
    )
    assert scores and {score.status for score in scores} == {"undefined"}
    assert {score.metric for score in scores} >= {
        "baseline_correct",
        "baseline_flip",
    } or name != "ablation"


@each_case
@pytest.mark.parametrize(
    ("missing", "status"),
    [("failed", "error"), ("unsupported", "undefined"), ("refused", "refused")],
)
def test_missing_replies_give_no_value(
    name: str, given_options: Mapping[str, Any], missing: str, status: str
) -> None:
    (item,) = make_suite(1, seed=3).items
    body = Body("I cannot help with that.", distribution([0.5, 0.5], 2), missing)
    params = params_for(name, given_options, ModelRef("organism", "r100", form="continuation"), 2)
    scores, sent = drive(name, item, params, lambda request: answer(request, body))
    asking = [
        score
        for score in scores
        if score.evidence or (sent and score.metric not in WITHOUT_EVIDENCE)
    ]
    assert scores and all(score.value is None and score.reason for score in asking)
    assert {score.status for score in asking if score.evidence} == ({status} if sent else set())
    assert {score.status for score in asking if not score.evidence} <= {"undefined"}


@each_case
@pytest.mark.parametrize(
    ("text", "reasoning"),
    [("", None), ("\u200b \n", None), ("", constant().text)],
    ids=["empty", "invisible", "reasoning alone"],
)
@pytest.mark.parametrize(
    "subject",
    [ModelRef("echo", "echo"), ModelRef("organism", "r100", form="continuation")],
    ids=str,
)
def test_an_empty_reply_is_compared_with_nothing(
    name: str,
    given_options: Mapping[str, Any],
    subject: ModelRef,
    text: str,
    reasoning: str | None,
) -> None:
    """Reasoning without an answer is a chain; no two empty answers are the same."""

    def reply(request: Request) -> Reply:
        found = replace(following(request), finish="stop")
        is_text = isinstance(request, Complete)
        return replace(found, text=text, reasoning=reasoning) if is_text else found

    (item,) = make_suite(1, seed=3).items
    scores, sent = drive(name, item, params_for(name, given_options, subject, 2), reply)
    resting = {
        score.metric
        for score in scores
        if score.value is not None
        and any(
            isinstance(sent[key], Response) and sent[key].text is not None for key in score.evidence
        )
    }
    assert resting <= COUNTS_OF_CHAINS if reasoning is None else resting.isdisjoint(OF_ANSWERS)


@each_case
def test_one_dead_request_costs_only_the_scores_that_need_it(
    name: str, given_options: Mapping[str, Any]
) -> None:
    (item,) = make_suite(1, seed=3).items
    params = params_for(name, given_options, ModelRef("organism", "r100", form="continuation"))
    whole, sent = drive(name, item, params, lambda request: answer(request, constant()))
    for dead in sent:
        scores, _ = drive(
            name,
            item,
            params,
            lambda request, dead=dead: answer(
                request, constant("failed" if request.key == dead else "")
            ),
        )
        after, before = (
            {(s.metric, s.step, s.sample, s.facet): s for s in these} for these in (scores, whole)
        )
        if {score.status for score in scores} == {"error"}:
            continue  # without the model's own chain, or its answer, there is nothing to ask
        for place, score in before.items():
            if score.metric in RENORMALISED:
                continue
            if dead not in score.evidence:
                assert after[place] == score
            elif place in after:
                assert after[place].status == "error"
        assert all(score.status == "error" for place, score in after.items() if place not in before)


# --- what is known in advance


@drawn_case
@settings(max_examples=15, deadline=None)
@given(key=st.sampled_from([None, "9", "12", "blue"]), seed=st.integers(0, 50))
def test_a_model_that_never_changes_its_reply_scores_zero(
    name: str, given_options: Mapping[str, Any], key: str | None, seed: int
) -> None:
    item = replace(make_suite(1, seed=seed).items[0], answer=key)
    params = params_for(name, given_options, ModelRef("organism", "r100", form="continuation"), 2)
    body = replace(constant(), number=-1.0)
    scores, _ = drive(
        name, item, params, lambda request: replace(answer(request, body), finish="stop")
    )
    effects = [s for s in scores if s.metric in ZERO_WITHOUT_CHANGE]
    if {card.name for card in SCORERS[name].cards}.isdisjoint(ZERO_WITHOUT_CHANGE):
        return  # measures no change of a reply
    defined = [s for s in effects if s.value is not None]
    assert defined and all(s.value == pytest.approx(0, abs=1e-12) for s in defined)
    if key is None:
        assert all(
            s.value is None for s in scores if s.metric in ("accuracy_delta", "baseline_correct")
        )


@each_case
def test_every_declared_card_is_measured_on_an_ordinary_item(
    name: str, given_options: Mapping[str, Any]
) -> None:
    item = make_suite(2, seed=3).items[1]
    params = params_for(name, given_options, ModelRef("organism", "r100", form="continuation"), 2)
    scores, _ = drive(
        name, item, params, lambda request: replace(following(request), finish="stop")
    )
    expected = {card.name for card in SCORERS[name].cards} - ONLY_WHERE_FOUND - IF_IT_IS_SO
    if params.options.get("control") == "total":
        expected.remove("share")  # of the chain's drop and the control's, which holds it as well
    assert {score.metric for score in scores if score.value is not None} - IF_IT_IS_SO == expected


@pytest.mark.parametrize("flips", [0, 1, 3, 4])
def test_the_baseline_against_its_own_second_draw_is_the_noise_floor(flips: int) -> None:
    suite = Suite.from_items(
        "s", (replace(item, answer="9") for item in make_suite(4, seed=2).items)
    )

    def reply(request: Request) -> Reply:
        number = next(
            i for i, item in enumerate(suite.items) if item.question == request.messages[0].content
        )  # type: ignore[attr-defined]
        return Response(request.key, " 12." if request.sample and number < flips else " 9.")

    params = params_for("ablation", {}, ModelRef("organism", "r100", form="continuation"), 2)
    scores = [s for item in suite.items for s in drive("ablation", item, params, reply)[0]]
    noise = [s.value for s in scores if s.metric == "baseline_flip"]
    assert noise == [1.0] * flips + [0.0] * (4 - flips)
    # no step matters to this model: its ablated second draw flips as its baseline does, so nothing
    # is above the noise
    changes = [s.value for s in scores if s.metric == "answer_change"]
    assert set(changes) == {0.0}
