"""Process rewards: what is asked, the scores of a chain, and the place of its first mistake."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Failed, Reply, Request, Response, StepRewards
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.process_reward import process_reward
from cotlab.metrics.verification import verification
from cotlab.run.config import RunConfig
from cotlab.run.resolved import ResolvedRun
from tests.support.replies import drive_rounds

PRM = ModelRef("prm", "folder")
ITEM = Item("i", "How many?", "9", (Step(0, "7 + 5 = 12"), Step(1, "so 9"), Step(2, "done")))


def run(scorer: Any, numbers: Any, model: ModelRef | None = PRM, **options: Any) -> Any:
    def reply(request: Request) -> Reply:
        if isinstance(numbers, str):
            return Failed(request.key, numbers, 0, unsupported=True)
        return Response(request.key, numbers=numbers)

    models = {"subject": ModelRef("echo", "echo")} | ({"verifier": model} if model else {})
    params = Params(models, options={**scorer.options, **options})
    scores, rounds, _ = drive_rounds(
        scorer(ITEM, params, Peers((ITEM,))), lambda asked: [reply(request) for request in asked]
    )
    return scores, [request for asked in rounds for request in asked]


def values(scores: tuple[Score, ...]) -> dict[Any, float | None]:
    return {(s.metric if s.step is None else s.step): s.value for s in scores}


def test_a_chain_is_scored_by_its_least_its_product_and_its_last_step() -> None:
    scores, (request,) = run(process_reward, (0.9, 0.4, 0.8))
    assert request == StepRewards(PRM, ITEM.question, tuple(step.text for step in ITEM.steps))
    assert values(scores) == {
        0: 0.9,
        1: 0.4,
        2: 0.8,
        "process_reward_min": 0.4,
        "process_reward_product": pytest.approx(0.288),
        "process_reward_last": 0.8,
        "process_reward_mistake_step": 1.0,
    }


def test_no_step_below_the_threshold_is_no_mistake_and_says_so() -> None:
    place = run(process_reward, (0.9, 0.4, 0.8), threshold=0.3)[0][-1]
    card = process_reward.cards[-1]
    assert place.metric == card.name == "process_reward_mistake_step"
    assert (place.value, place.status, place.reason) == (None, "undefined", card.none_reason)


@pytest.mark.parametrize("numbers", ["question and chain have 900 tokens", (), (0.5, 0.5)])
def test_a_model_that_fails_makes_no_chain_sound(numbers: Any) -> None:
    scores, _ = run(process_reward, numbers)
    assert len(scores) == 3 + 4 and {score.value for score in scores} == {None}
    none_reason = process_reward.cards[-1].none_reason
    assert all(score.reason and score.reason != none_reason for score in scores)
    if isinstance(numbers, str):
        assert {score.reason for score in scores} == {numbers}


def test_without_a_process_reward_model_nothing_is_asked() -> None:
    scores, asked = run(process_reward, (), None)
    assert not asked and "--verifier prm:FOLDER" in str(scores[0].reason)


def test_verification_asks_once_for_the_forward_links_that_are_open() -> None:
    scores, asked = run(verification, (0.1, 0.2, 0.3))
    assert [type(request) for request in asked] == [StepRewards]
    links = {
        (dict(s.facet)["link"], s.step): (s.value, dict(s.facet)["verifier"])
        for s in scores
        if s.metric == "link_support"
    }
    assert links["forward", 1] == (0.2, "prm/folder") and links["forward", 2][0] == 0.3
    assert links["reverse", 2][0] is None


def test_the_verifier_may_follow_a_colon() -> None:
    def verifier(text: str) -> ModelRef:
        return ResolvedRun(RunConfig(scorer=["process_reward"], verifier=text)).models["verifier"]

    assert verifier("prm:/a/b:c") == ModelRef("prm", "/a/b:c") == verifier("prm//a/b:c")
    assert verifier("prm:Qwen/Qwen2.5-Math-PRM-7B").name == "Qwen/Qwen2.5-Math-PRM-7B"
    models = ResolvedRun(
        RunConfig(scorer=["verification"], verifier="nli:cross-encoder/nli")
    ).models
    assert models["verifier"] == ModelRef("nli", "cross-encoder/nli")
    for text in ("none", "nli:folder", "subject"):
        with pytest.raises(ConfigError, match="--verifier prm:prm-a"):
            verifier(text)
