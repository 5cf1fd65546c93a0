"""Diversity by hand: what is asked, which paths are one strategy, and what each score makes of
their answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Embed, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score
from cotlab.metrics.diversity import CARDS, HEADLINES, diversity, find_majority
from cotlab.providers.local.provider import open_organism
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import drive, finish

OPTIONS = diversity.options

ITEM = Item("i1", "How many?", "9", ())
ORGANISM = ModelRef("organism", "r100", form="continuation")
CHAT = ModelRef("echo", "echo")
EMBEDDER = ModelRef("embedder", "m")
STEPS = {"add": 0.0, "count": 10.0, "draw": 90.0, "guess": 180.0}
"""The direction in which each step points, in degrees."""


def params(subject: ModelRef = CHAT, **options: Any) -> Params:
    return Params({"subject": subject, "embedder": EMBEDDER}, options={**OPTIONS, **options})


def path(step: str, answer: str) -> str:
    return f"We {step} the eggs in the basket = all.\nSo the answer is {answer}."


def vector(text: str) -> tuple[float, float]:
    angle = math.radians(next(angle for word, angle in STEPS.items() if word in text))
    return math.cos(angle), math.sin(angle)


def reply_to(request: Request, texts: Sequence[str]) -> Reply:
    if isinstance(request, Embed):
        assert len(request.texts) == 1 and request.model == EMBEDDER
        return Response(request.key, vectors=(vector(request.texts[0]),))
    assert isinstance(request, Complete)
    return Response(request.key, texts[request.sample])


def scored(*texts: str, item: Item = ITEM, **options: Any) -> dict[str, Score]:
    """The scores of an item; those of a sweep as name@threshold, of a path as name#sample."""
    program = diversity(item, params(paths=len(texts), **options), Peers((item,)))
    found = {}
    for score in drive(program, lambda request: reply_to(request, texts)).result:
        at = dict(score.facet).get("threshold")
        name = f"{score.metric}@{at}" if score.metric.endswith("_at") else score.metric
        found[f"{name}#{score.sample}" if score.metric == "path_cluster" else name] = score
    return found


# --- what is asked
# ----------------------------------------------------------------------------------


def test_a_chat_model_is_asked_for_approaches_by_number() -> None:
    asked = next(diversity(ITEM, params(paths=3), Peers((ITEM,))))
    texts = [request.messages[0].content for request in asked if isinstance(request, Complete)]
    assert [f"List a distinct approach #{k}" in text for k, text in enumerate(texts, 1)] == [
        True
    ] * 3
    assert all("How many?" in text and "So the answer is" in text for text in texts)
    more = next(diversity(ITEM, params(paths=5), Peers((ITEM,))))
    assert [request.key for request in more[:3]] == [
        request.key for request in asked
    ]  # more paths ask nothing twice


def test_a_model_that_continues_text_draws_at_a_temperature() -> None:
    asked = next(diversity(ITEM, params(ORGANISM, paths=3), Peers((ITEM,))))
    told = [
        (r.messages[0].content, r.prefix, r.temperature, r.sample)
        for r in asked
        if isinstance(r, Complete)
    ]
    assert told == [("How many?", "", 0.7, k) for k in range(3)]
    assert len({request.key for request in asked}) == 3


def test_each_step_is_embedded_once() -> None:
    program = diversity(ITEM, params(paths=3), Peers((ITEM,)))
    texts = [path("add", "9"), path("add", "8"), path("draw", "9")]
    asked = program.send([reply_to(request, texts) for request in next(program)])
    assert [request.texts for request in asked if isinstance(request, Embed)] == [
        ("We add the eggs in the basket = all.",),
        ("We draw the eggs in the basket = all.",),
    ]


# --- D
# ----------------------------------------------------------------------------------------------


def test_d_by_hand() -> None:
    """0°, 10°, 90°, 180°, 180° at .9: {add, count}, {draw}, {guess, guess}. Right is 9: two
    clusters of three, five paths."""
    found = scored(
        path("add", "9"),
        path("count", "9"),
        path("draw", "9"),
        path("guess", "4"),
        path("guess", "4"),
    )
    assert [found[f"path_cluster#{k}"].value for k in range(5)] == [0, 0, 1, 2, 2]
    assert found["strategy_clusters"].value == 3 and found["clusters_undecided"].value == 0
    assert found["diversity"].value == pytest.approx(2 / 5)
    assert found["cluster_agreement"].value == pytest.approx(2 / 3)
    assert (
        found["path_agreement"].value == pytest.approx(3 / 5)
        and found["consensus_correct"].value == 1
    )
    # cos 10° is .9848: apart at .99, together at .95
    assert found["strategy_clusters_at@0.99"].value == 4 and found[
        "diversity_at@0.99"
    ].value == pytest.approx(3 / 5)
    assert found["strategy_clusters_at@0.95"].value == 3 and found[
        "diversity_at@0.95"
    ].value == pytest.approx(2 / 5)
    # pairs: 1 of 0°, 2 of 80°, 2 of 90°, 1 of 10°, 2 of 170°, 2 of 180°
    cosines = [
        (1, 1.0),
        (1, math.cos(math.radians(10))),
        (1, math.cos(math.radians(80))),
        (3, 0.0),
        (2, -1.0),
    ]
    mean = (sum(n * c for n, c in cosines) + 2 * math.cos(math.radians(170))) / 10
    assert found["path_distance"].value == pytest.approx(1 - mean)
    assert dict(found["diversity"].facet) == {
        "chain": "own",
        "n": "5",
        "threshold": "0.9",
        "target": "truth",
    }


def test_one_right_cluster_of_five_paths_scores_a_fifth() -> None:
    assert scored(*[path("add", "9")] * 5)["diversity"].value == pytest.approx(0.2)


def test_without_ground_truth_the_consensus_is_the_target() -> None:
    item = Item("i2", "How many?", None, ())
    found = scored(path("add", "4"), path("draw", "4"), path("guess", "9"), item=item)
    assert (
        found["diversity"].value == pytest.approx(2 / 3)
        and dict(found["diversity"].facet)["target"] == "consensus"
    )
    assert found["consensus_correct"].reason == "the item has no ground truth"
    tied = scored(path("add", "4"), path("draw", "9"), item=item)
    assert (
        tied["diversity"].value is None
        and tied["diversity"].reason == "a tie: 2 answers with 1 of the paths each (4, 9)"
    )
    assert tied["path_agreement"].value is None and tied["strategy_clusters"].value == 2


def test_a_tie_within_a_cluster_converges_to_nothing() -> None:
    found = scored(path("add", "9"), path("add", "4"), path("draw", "9"))
    assert found["clusters_undecided"].value == 1 and found["diversity"].value == pytest.approx(
        1 / 3
    )


def test_paths_without_any_answer_converge_to_nothing_that_is_known() -> None:
    program = diversity(ITEM, params(paths=2), Peers((ITEM,)))
    replies = [
        Response(r.key, "", finish="stop", reasoning=path("add", "9")) for r in next(program)
    ]
    asked = program.send(replies)
    end = finish(program, [Response(r.key, vectors=((1.0, 0.0),)) for r in asked])
    found = {s.metric: (s.value, s.status) for s in end}
    assert found["strategy_clusters"] == (1, "ok")
    for metric in ("diversity", "cluster_agreement", "diversity_at"):
        assert found[metric] == (None, "undefined")


def test_a_wrong_consensus_is_told_apart_from_a_tie() -> None:
    assert (
        scored(path("add", "4"), path("draw", "4"), path("draw", "9"))["consensus_correct"].value
        == 0
    )
    tie = scored(path("add", "4"), path("draw", "9"))["consensus_correct"]
    assert tie.value is None and (tie.reason or "").startswith("a tie")


def test_answers_are_compared_by_what_they_say() -> None:
    assert find_majority(ITEM, ["9", "9 eggs", "4", None])[:2] == ("9", 2)
    assert find_majority(ITEM, ["1/2", "0.5", "4"]).n_votes == 2
    assert find_majority(ITEM, [None, ""]) == (None, 0, "no path has an answer")
    assert find_majority(ITEM, []).answer is None


def test_linkage_is_an_option() -> None:
    # 0° and 10° and 90° … single at .15 joins 10° and 90° (cos 80° = .17); average does not: (.17 +
    # 0) / 2
    texts = [path("add", "9"), path("count", "9"), path("draw", "9")]
    assert scored(*texts, threshold=0.15, linkage="single")["strategy_clusters"].value == 1
    assert scored(*texts, threshold=0.15)["strategy_clusters"].value == 2


# --- what is missing
# --------------------------------------------------------------------------------


def test_a_path_without_a_reply_costs_every_score() -> None:
    program = diversity(ITEM, params(paths=2), Peers((ITEM,)))
    first, second = next(program)
    end = finish(program, [Response(first.key, path("add", "9")), Failed(second.key, "away", 3)])
    assert {(s.status, s.reason) for s in end} == {("error", "away")}
    assert {s.metric for s in end} == {card.name for card in CARDS}


def test_without_vectors_the_votes_stand() -> None:
    alone = Params({"subject": CHAT}, options={**OPTIONS, "paths": 2})
    program = diversity(ITEM, alone, Peers((ITEM,)))
    end = finish(program, [Response(request.key, path("add", "9")) for request in next(program)])
    found = {s.metric: s for s in end}
    assert (
        found["path_agreement"].value == 1
        and found["diversity"].reason == "no model embeds the steps: --embedder"
    )

    program = diversity(ITEM, params(paths=2), Peers((ITEM,)))
    (one,) = program.send([Response(request.key, path("add", "9")) for request in next(program)])
    end = finish(program, [Failed(one.key, "out of memory", 1)])
    found = {s.metric: s for s in end}
    assert found["consensus_correct"].value == 1 and found["diversity"].status == "error"
    assert (
        one.key in found["diversity"].evidence
        and one.key not in found["consensus_correct"].evidence
    )


def test_a_chain_that_was_cut_off_has_no_answer() -> None:
    program = diversity(ITEM, params(paths=2), Peers((ITEM,)))
    texts = ["We add 3 and 4 = 9. Then we", path("add", "9") + "\nNext"]
    asked = program.send(
        [Response(r.key, texts[k], finish="length") for k, r in enumerate(next(program))]
    )
    end = finish(program, [Response(r.key, vectors=((1.0, 0.0),)) for r in asked])
    assert {s.metric: s.value for s in end}["path_agreement"] == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"paths": 1},
        {"paths": 65},
        {"threshold": 1.1},
        {"temperature": 0.0},
        {"sweep": ["high"]},
        {"sweep": ["2"]},
    ],
)
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        diversity.validate_options({**OPTIONS, **wrong}, CHAT)


def test_an_unknown_linkage() -> None:
    diversity.validate_options(OPTIONS, CHAT)
    with pytest.raises(UnknownName, match="single"):
        diversity.validate_options({**OPTIONS, "linkage": "sinlge"}, CHAT)


# --- an organism
# ------------------------------------------------------------------------------------


@pytest.mark.soak
def test_six_items_of_a_real_organism() -> None:
    """It has learnt one way to write a chain: one strategy, right every time, D = 1/5."""
    model = open_organism(ORGANISM)
    defined = []
    for item in make_suite(6, seed=5).items:
        given = Params({"subject": model.ref, "embedder": EMBEDDER}, options=OPTIONS)
        program = diversity(item, given, Peers((item,)))
        asked = program.send(model.send_batch(next(program)))  # type: ignore[arg-type]
        end = finish(program, [Response(request.key, vectors=((1.0, 0.0),)) for request in asked])
        found = {s.metric: s.value for s in end}
        assert found["consensus_correct"] == 1 and found["diversity"] == pytest.approx(0.2)
        defined += [found[headline.metric] for headline in HEADLINES]
    assert None not in defined and len(defined) == 24
