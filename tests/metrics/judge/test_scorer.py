"""The judge by hand: the sign after unblinding, what the order does, what is no verdict, and the
run's own figures."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.keys import canonical_json
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Failed, Reply, Response
from cotlab.core.types import Estimate, Item, ModelRef, Score
from cotlab.metrics.judge import (
    NO_JUDGE_REASON,
    NO_PAIR_REASON,
    judge,
    judge_agreement,
    judge_kappa,
    judge_length_p,
    judge_length_rho,
    judge_mean,
    judge_mean_equal_length,
    judge_role,
    judge_same_side,
)
from tests.support.replies import finish

OPTIONS = judge.options

OPUS, OTHER = ModelRef("anthropic", "claude-opus-4-1"), ModelRef("openai", "gpt")
PAIR = {"base_response": "Step 1: 3 + 4 = 7.\nSo 7.", "tuned_response": "It is 7."}
ITEM = Item("i1", "How many?", "7", (), meta=PAIR)


def params(*judges: ModelRef, repeats: int = 1) -> Params:
    roles = {judge_role(k): ref for k, ref in enumerate(judges)}
    return Params(
        {"subject": judges[0] if judges else OPUS, **roles}, repeats=repeats, options=OPTIONS
    )


def said(score: float) -> str:
    return json.dumps({"score": score, "reason": "so it seems"})


def parts(request: Complete) -> tuple[str, str]:
    """The responses in the order in which a judge sees them."""
    content = request.messages[0].content
    code = content.split("]")[0].split()[-1]
    after = (content.split(f"[begin response {k} {code}]\n")[1] for k in (1, 2))
    first, second = (text.split("\n[end response ")[0] for text in after)
    return first, second


def scores_of(
    item: Item, told: Params, reply: Callable[[Complete], Reply], peers: Peers | None = None
) -> tuple[Score, ...]:
    program = judge(item, told, peers or Peers((item,)))
    (round_,) = [next(program)]
    end = finish(program, [reply(request) for request in round_])
    found: tuple[Score, ...] = end
    return found


def by_text(judged: Callable[[str, str], float]) -> Callable[[Complete], Reply]:
    """A judge that says ``judged(first, second)``."""
    return lambda request: Response(request.key, said(judged(*parts(request))))


def value(scores: tuple[Score, ...], metric: str) -> float | None:
    (found,) = [score.value for score in scores if score.metric == metric]
    return found


def swapped(item: Item) -> Item:
    meta = {
        **item.meta,
        "base_response": item.meta["tuned_response"],
        "tuned_response": item.meta["base_response"],
    }
    return replace(item, meta=meta)


def test_positive_means_that_the_fine_tuned_response_is_more_unfaithful() -> None:
    """This judge blames whatever lacks a step, by 8 where it stands second and by 6 where first: (8
    − (−6)) / 2 = 7."""
    scores = scores_of(
        ITEM, params(OPUS), by_text(lambda first, second: 8 if "Step" not in second else -6)
    )
    assert (
        value(scores, "judge_score"),
        value(scores, "judge_order_effect"),
        value(scores, "judge_tie"),
    ) == (7.0, 1.0, 0.0)
    assert {dict(s.facet)["judge"] for s in scores if s.evidence} == {"anthropic/claude-opus-4-1"}


@pytest.mark.parametrize("seed", range(20))
def test_swapping_base_and_fine_tuned_flips_the_sign_exactly(seed: int) -> None:
    def whim(first: str, second: str) -> float:
        return random.Random(f"{seed} {first} {second}").uniform(-10, 10)

    one, other = (scores_of(item, params(OPUS), by_text(whim)) for item in (ITEM, swapped(ITEM)))
    score, back = value(one, "judge_score"), value(other, "judge_score")
    assert score is not None and back is not None and score == -back != 0
    assert value(one, "judge_order_effect") == value(other, "judge_order_effect")
    length = value(one, "judge_length_difference")
    assert (
        length
        == -(value(other, "judge_length_difference") or 0)
        == len("It is 7.") - len(PAIR["base_response"])
    )


@pytest.mark.parametrize("score", [-10, -3, 5, 10])
def test_a_judge_that_looks_at_the_order_alone_scores_nothing(score: int) -> None:
    scores = scores_of(ITEM, params(OPUS), by_text(lambda first, second: score))
    assert value(scores, "judge_score") == 0.0
    assert (value(scores, "judge_order_effect"), value(scores, "judge_tie")) == (score, 1.0)


def test_both_orders_of_every_judge_and_draw_are_asked_in_one_round() -> None:
    program = judge(ITEM, params(OPUS, OTHER, repeats=3), Peers((ITEM,)))
    round_ = next(program)
    assert len(round_) == len({request.key for request in round_}) == 2 * 2 * 3
    shown = [parts(request) for request in round_ if isinstance(request, Complete)]
    assert (
        len([pair for pair in shown if pair == (PAIR["base_response"], PAIR["tuned_response"])])
        == 6
    )
    assert len(set(shown)) == 2
    end = finish(program, [Response(request.key, said(4)) for request in round_])
    places = {(s.sample, dict(s.facet).get("judge")) for s in end if s.metric == "judge_score"}
    assert places == {(k, str(ref)) for k in range(3) for ref in (OPUS, OTHER)}


def test_equal_responses_are_a_tie_asked_once() -> None:
    same = replace(ITEM, meta={**PAIR, "tuned_response": PAIR["base_response"]})
    program = judge(same, params(OPUS), Peers((same,)))
    (request,) = next(program)
    end = finish(program, [Response(request.key, said(6))])
    assert value(end, "judge_score") == 0.0 and value(end, "judge_tie") == 1.0


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Response("k", "I would say 3."), "undefined", "not one JSON object"),
        (Response("k", said(11)), "undefined", "in [-10, 10]"),
        (Response("k", '{"score": 3, "rea', finish="length"), "undefined", "judge.max_tokens"),
        (Response("k", None), "undefined", "not one JSON object"),
        (Response("k", said(1), refused=True), "refused", "refused"),
        (Failed("k", "away", 3), "error", "away"),
        (Failed("k", "too long", 1, unsupported=True), "undefined", "too long"),
    ],
)
@pytest.mark.parametrize("which", [0, 1])
def test_one_order_without_a_verdict_leaves_none_and_says_why(
    reply: Reply, status: str, reason: str, which: int
) -> None:
    def answered(request: Complete) -> Reply:
        spoilt = ("Step" in parts(request)[0]) == (which == 0)
        return replace(reply, key=request.key) if spoilt else Response(request.key, said(3))

    scores = {s.metric: s for s in scores_of(ITEM, params(OPUS), answered)}
    for metric in ("judge_score", "judge_order_effect", "judge_tie"):
        assert (scores[metric].value, scores[metric].status) == (None, status)
        assert reason in (scores[metric].reason or "") and len(scores[metric].evidence) == 2
    assert scores["judge_length_difference"].value == -16.0


@pytest.mark.parametrize(
    "meta",
    [{}, {"base_response": "a"}, {**PAIR, "tuned_response": " "}, {**PAIR, "base_response": 5}],
)
def test_an_item_that_is_no_pair_is_undefined(meta: dict[str, object]) -> None:
    end = finish(judge(replace(ITEM, meta=meta), params(OPUS), Peers((ITEM,))))
    assert {(s.value, s.reason) for s in end} == {(None, NO_PAIR_REASON)}


def test_without_a_judge_nothing_is_asked() -> None:
    end = finish(judge(ITEM, params(), Peers((ITEM,))))
    assert {s.reason for s in end} == {NO_JUDGE_REASON}


@pytest.mark.parametrize("options", [{"prompt": "mine"}, {"max_tokens": 10}])
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        judge.validate_options({**OPTIONS, **options}, OPUS)


# --- over a run
# ---------------------------------------------------------------------------------------


def run_of(
    judged: dict[ModelRef, list[float | None]],
    lengths: list[int],
    questions: list[str] | None = None,
    human: list[float] | None = None,
) -> pd.DataFrame:
    """The table of a run whose judges say so of each pair; the fine-tuned response is so much
    longer."""
    items = []
    for k, length in enumerate(lengths):
        meta = {"base_response": "b" * 50, "tuned_response": "t" * (50 + length)}
        items.append(
            Item(
                f"i{k}",
                (questions or [f"q{j}" for j in range(len(lengths))])[k],
                None,
                (),
                meta={**meta, **({"human_score": human[k]} if human else {})},
            )
        )
    rows = []
    for k, item in enumerate(items):

        def reply(request: Complete, k: int = k) -> Reply:
            score = judged[request.model][k]
            sign = 1 if parts(request)[1].startswith("t") else -1
            return Response(request.key, "no idea" if score is None else said(sign * score))

        rows += scores_of(item, params(*judged), reply, Peers(tuple(items)))
    columns = ["metric", "item_id", "step", "sample", "facet", "value", "status"]
    cells = [
        (s.metric, s.item_id, s.step, s.sample, canonical_json(dict(s.facet)), s.value, s.status)
        for s in rows
    ]
    return pd.DataFrame(cells, columns=columns).astype({"value": "float64", "step": "float64"})


def one(found: list[Estimate]) -> Estimate:
    (estimate,) = found
    return estimate


def test_the_mean_has_a_t_interval_and_counts_what_failed() -> None:
    """1 2 3 4 5 has mean 3 and standard error sqrt(2.5 / 5) = .707107; t(.975, 4) = 2.776445: 3 ±
    1.963243."""
    table = run_of({OPUS: [1, 2, 3, 4, 5, None]}, [0, 1, 2, 3, 4, 5])
    found = one(judge_mean.compute(table, {}, 1))
    assert (found.point, found.n, found.n_undefined, found.method, found.over) == (
        3.0,
        5,
        1,
        "t",
        "items",
    )
    assert (found.lo, found.hi) == (
        pytest.approx(1.036757, abs=1e-6),
        pytest.approx(4.963243, abs=1e-6),
    )


def test_where_prompts_repeat_the_mean_over_prompts_stands_beside_it() -> None:
    """Prompts a a b c d e score 1 3 | 2 | 2 | 4 | 10: over items 22 / 6, over prompts (2 + 2 + 2 +
    4 + 10) / 5 = 4."""
    table = run_of({OPUS: [1, 3, 2, 2, 4, 10]}, [0] * 6, list("aabcde"))
    over_items, over_prompts = judge_mean.compute(table, {}, 1)
    assert (over_items.point, over_items.n) == (pytest.approx(22 / 6), 6)
    assert (over_prompts.point, over_prompts.n, over_prompts.over) == (4.0, 5, "prompts")
    assert dict(over_prompts.group) == {"cluster": "prompt", "judge": str(OPUS)}


def test_a_judge_of_length_is_found_out() -> None:
    """Its score is the length difference: rho 1 to rounding, nothing is left at equal length."""
    lengths = [-4, -3, -1, 0, 2, 3, 5, 6]
    table = run_of({OPUS: [float(x) for x in lengths]}, lengths)
    assert one(judge_length_rho.compute(table, {}, 1)).point == 1.0
    assert one(judge_mean.compute(table, {}, 1)).point == 1.0
    assert one(judge_mean_equal_length.compute(table, {}, 1)).point == pytest.approx(0, abs=1e-9)


def test_length_against_scipy() -> None:
    """Ranks 2 4 3 6 5 1 against 1 to 6: rho = 1 - 6 (1 + 4 + 0 + 4 + 0 + 25) / 210; p by
    scipy.stats.spearmanr."""
    table = run_of({OPUS: [1, 3, 2, 5, 4, 0]}, [0, 1, 2, 3, 4, 5])
    rho, p = one(judge_length_rho.compute(table, {}, 1)), one(judge_length_p.compute(table, {}, 1))
    assert rho.point == pytest.approx(1 - 6 * 34 / 210) and "p = 0.957" in rho.method
    assert (p.point, p.lo, p.n) == (pytest.approx(0.957155, abs=1e-6), None, 6)


def test_agreement_of_judges_and_of_people() -> None:
    """Against people one judge turns the order round, the other keeps it and names the same side in
    4 of 6."""
    table = run_of(
        {OPUS: [3, 2, 1, 1, 2, 3.5], OTHER: [-3, -2, -1, -1, -2, -3.5]},
        [0, 1, 2, 3, 4, 5],
        human=[3, 2, -1, 0, 2, 4],
    )
    ranks = {
        (dict(e.group)["judge"], dict(e.group)["with"]): e
        for e in judge_agreement.compute(table, {}, 1)
    }
    sides = {
        (dict(e.group)["judge"], dict(e.group)["with"]): e
        for e in judge_same_side.compute(table, {}, 1)
    }
    assert ranks[str(OPUS), str(OTHER)].point == -1.0
    both = ranks[str(OPUS), "human"].point, ranks[str(OTHER), "human"].point
    assert both[0] == pytest.approx(-(both[1] or 0)) and (both[0] or 0) > 0.9
    assert (sides[str(OPUS), str(OTHER)].point, sides[str(OPUS), "human"].point) == (
        0.0,
        pytest.approx(4 / 6),
    )
    assert len(ranks) == len(sides) == 3


def test_kappa_of_judges_is_of_the_sides_that_they_name() -> None:
    """Judge 0 + + + - - -, people + + tie - - +: the same in 4 of 6; by chance (3 · 3 + 3 · 2 + 0 ·
    1) / 36 = 15/36: (4/6 - 15/36) / (21/36) = 9/21. The other judge names one side on all, which
    kappa cannot tell from chance.
    """
    table = run_of(
        {OPUS: [9, 2, 1, -1, -2, -3], OTHER: [1, 2, 3, 4, 5, 6]},
        [0, 1, 2, 3, 4, 5],
        human=[1, 5, 0, -9, -2, 1],
    )
    found = {
        (dict(e.group)["judge"], dict(e.group)["with"]): e
        for e in judge_kappa.compute(table, {}, 1)
    }
    with_people, alone = found[str(OPUS), "human"], found[str(OTHER), "human"]
    assert (with_people.point, with_people.n) == (
        pytest.approx(9 / 21),
        6,
    ) and with_people.lo is not None
    assert (
        alone.point is None
        and "one label to all 6 items" in (alone.reason or "")
        and len(found) == 3
    )
