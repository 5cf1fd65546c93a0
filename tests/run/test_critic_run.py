"""A critic of known accuracy behind the real SDKs: its recall and false alarms come back, what it
costs is known before, and whatever fails leaves the chain undecided."""

from __future__ import annotations

import json
import random
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import cotlab
from cotlab.analysis.evaluation.measure import evaluate_runs
from cotlab.core.errors import ConfigError
from cotlab.core.types import Item, Step, Suite
from cotlab.metrics.votes import NO_STEP_REASON
from cotlab.run.config import read_config
from cotlab.run.dryrun import plan_cautions
from cotlab.run.launch import dry_run, resume_run
from cotlab.stats.intervals import wilson
from cotlab.store import read
from cotlab.store.database import Store
from tests.support.loopback import Loopback
from tests.support.params import soak
from tests.support.served_organism import serving_llama_cpp
from tests.support.vendors import MODELS, SECRET

RECALL, FALSE_ALARM, N_CHAINS, N_STEPS = 0.7, 0.2, 240, 5
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_COMPAT_API_KEY")


class Chains(NamedTuple):
    """Chains with a known first wrong step, half of them with none."""

    suite: Suite
    """The items, their first mistake in their metadata."""
    wrong_steps: dict[str, int | None]
    """First wrong step from 0 by item id."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")


def make_chains(n: int = N_CHAINS) -> Chains:
    draw = random.Random(7)
    items, wrong_steps = [], dict[str, int | None]()
    for k in range(n):
        name = f"c{k:03}"
        wrong_steps[name] = draw.randrange(N_STEPS) if k % 2 else None
        steps = tuple(Step(i, f"Ann then walks on to place {i} of {name}.") for i in range(N_STEPS))
        meta = {"first_mistake": wrong_steps[name]}
        items.append(Item(name, f"Where does Ann of tale {name} go?", "home", steps, meta=meta))
    return Chains(Suite.from_items("tales", items), wrong_steps)


def said(step: int | None) -> str:
    number = None if step is None else step + 1
    return json.dumps({"checks": "Each in turn.", "first_wrong_step": number})


def drawn_votes(chains: Chains, n_votes: int) -> dict[str, list[int | None]]:
    """What a critic with that recall and false alarm rate says of each chain."""
    draw, votes = random.Random(11), {}
    for name, true_step in chains.wrong_steps.items():
        votes[name] = [
            (true_step if draw.random() < RECALL else None)
            if true_step is not None
            else (draw.randrange(N_STEPS) if draw.random() < FALSE_ALARM else None)
            for _ in range(n_votes)
        ]
    return votes


def measure(
    folder: Path,
    server: Loopback,
    suite: Suite,
    vendor: str = "openai",
    critic: str = "",
    **options: Any,
) -> Any:
    base = server.root if vendor in ("anthropic", "google") else server.base_url
    return cotlab.run_suite(
        suite,
        store=folder / "store",
        max_requests_per_minute=100_000,
        **{
            "scorer": ["critic"],
            "verifier": f"critic:{vendor}/{critic or MODELS[vendor]}",
            "role_base_url": {"verifier": base},
            "allow_unpriced": True,
            **options,
        },
    )


def by_item(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    return scores[scores["metric"] == metric].set_index("item_id")


@pytest.mark.parametrize(
    ("provider", "n_votes"),
    [("openai", 1), ("anthropic", 5), soak("openai", 5), soak("google", 1)],
)
def test_recall_and_false_alarms_come_back(
    provider: str, n_votes: int, tmp_path: Path, server: Loopback
) -> None:
    chains = make_chains()
    votes = drawn_votes(chains, n_votes)
    answers = {f"tale {name} ": [said(step) for step in steps] for name, steps in votes.items()}
    server.script(answers=answers)
    run = measure(
        tmp_path,
        server,
        chains.suite,
        provider,
        critic_votes=n_votes,
        temperature=1.0,
    )
    assert run.status == "done" and server.count() == N_CHAINS * n_votes
    steps, sound = by_item(run.scores, "critic_step"), by_item(run.scores, "critic_sound")
    named = {name: row for name, row in steps.iterrows() if row["reason"] != NO_STEP_REASON}
    for name, row in sound.iterrows():
        assert row["value"] == votes[str(name)].count(None) / n_votes
    majority = range(n_votes // 2 + 1, n_votes + 1)

    def expected(rate: float) -> float:
        return sum(comb(n_votes, k) * rate**k * (1 - rate) ** (n_votes - k) for k in majority)

    mistaken = [name for name, step in chains.wrong_steps.items() if step is not None]
    n_found = sum(steps.loc[name, "value"] == chains.wrong_steps[name] for name in mistaken)
    n_false = len(named.keys() - set(mistaken))
    found, false = wilson(n_found, len(mistaken)), wilson(n_false, N_CHAINS - len(mistaken))
    assert found.lo is not None and found.hi is not None
    assert found.lo <= expected(RECALL) <= found.hi
    assert false.lo is not None and false.hi is not None
    assert false.lo <= expected(FALSE_ALARM) <= false.hi
    evaluation = evaluate_runs(Store(tmp_path / "store"), [run.run_id], metrics=["critic"])
    (location,) = evaluation.targets[0].locations
    n_ties = sum("tie" in str(row["reason"]) for row in named.values())
    assert (location.n, location.n_undefined) == (N_CHAINS - n_ties, n_ties)
    assert location.measures.exact.point == pytest.approx(n_found / len(mistaken))


def test_each_vendor_is_held_to_the_schema_and_a_server_that_takes_none_is_asked_without(
    tmp_path: Path, server: Loopback
) -> None:
    suite = make_chains(2).suite
    formats = {
        "openai": lambda body: body["response_format"]["json_schema"]["schema"],
        "anthropic": lambda body: body["output_config"]["format"]["schema"],
        "google": lambda body: body["generationConfig"]["responseJsonSchema"],
        "openai_compat": lambda body: body["response_format"]["json_schema"]["schema"],
    }
    for provider, schema_of in formats.items():
        server.script(then={"text": said(1)})
        run = measure(tmp_path / provider, server, suite, provider)
        assert list(by_item(run.scores, "critic_step")["value"]) == [1.0, 1.0]
        for call in server.seen():
            assert schema_of(call["body"])["required"] == ["checks", "first_wrong_step"]
            assert SECRET not in json.dumps(call["body"])
    rejected = {"status": 400, "error": {"message": "response_format is not supported"}}
    server.script(rejected, then={"text": f"Let me see {{x}}.\n```json\n{said(1)}\n```"})
    run = measure(tmp_path / "older", server, suite, "openai_compat", max_concurrent=1)
    assert list(by_item(run.scores, "critic_step")["value"]) == [1.0, 1.0]
    held = ["response_format" in call["body"] for call in server.seen()]
    assert held == [True, False, False]
    server.script(then={"text": said(None)})
    run = measure(tmp_path / "claude", server, suite, "anthropic", "claude-opus-4-1")
    assert list(by_item(run.scores, "critic_sound")["value"]) == [1.0, 1.0]
    assert all("output_config" not in call["body"] for call in server.seen())


@pytest.mark.parametrize(
    ("turn", "status", "reason"),
    [
        ({"refusal": "I will not"}, "refused", "refused"),
        ({"text": said(None), "finish": "length"}, "undefined", "verifier.tokens"),
        ({"text": "No mistake at all."}, "undefined", "does not end with a JSON object"),
        ({"text": said(N_STEPS)}, "undefined", "does not have"),
        ({"text": said(None) + " But step 2 is wrong."}, "undefined", "does not end"),
        ({"status": 400, "error": {"message": "no"}}, "undefined", "400"),
    ],
)
@pytest.mark.parametrize("scorer", ["critic", "rubric", "verification"])
def test_a_critic_that_fails_finds_nothing_sound(
    scorer: str, turn: dict[str, Any], status: str, reason: str, tmp_path: Path, server: Loopback
) -> None:
    server.script(then=turn)
    suite = make_chains(1).suite
    run = measure(tmp_path, server, suite, scorer=[scorer], max_tries=1)
    metrics = {
        "critic": ["critic_step", "critic_sound"],
        "rubric": ["legibility", "question_coverage"],
        "verification": ["verification", "verification_mean", "pass_rate", "weak_link"],
    }[scorer]
    scores = run.scores[run.scores["metric"].isin(metrics)]
    if scorer == "verification":
        scores = scores[scores["facet"].str.contains("forward")]
    assert len(scores) == len(metrics) and scores["value"].isna().all()
    assert set(scores["status"]) == {status}
    assert scorer == "rubric" or all(reason in text for text in scores["reason"])


def test_the_dry_run_tells_what_the_votes_cost_and_the_cap_holds(
    tmp_path: Path, server: Loopback
) -> None:
    chains = make_chains(10)
    server.script(then={"text": said(None)}, prices={"in": "100", "out": "400"})
    options = {"critic_votes": 3, "temperature": 1.0, "role_price": {"verifier": "100/400"}}
    options |= {"scorer": ["critic", "verification"], "critic_tokens": 50}
    config = read_config({"verifier": f"critic:openai/{MODELS['openai']}", **options})
    _, count = dry_run(config, chains.suite)
    assert count.requests_by_model[f"openai:{MODELS['openai']}"] == 30  # two scorers share them
    assert count.max_cost_micro > count.cost_micro > 0
    run = measure(tmp_path / "all", server, chains.suite, **options)
    assert run.status == "done" and server.count() == 30
    spent = read.get_run(Store(tmp_path / "all" / "store"), run.run_id)["spent_micro"]
    assert 0 < spent == server.spend() <= count.max_cost_micro
    server.script(then={"text": said(None)}, prices={"in": "100", "out": "400"})
    most = spent / 1e6 / 3
    run = measure(tmp_path / "some", server, chains.suite, max_cost=most, **options)
    assert run.status == "budget" and 0 < server.count() < 30
    assert server.spend() <= most * 1e6
    again = resume_run(run.run_id, {"max_cost": 10.0}, Store(tmp_path / "some" / "store"))
    assert again.status == "done" and server.count() == 30


def test_votes_that_repeat_one_another_are_pointed_out() -> None:
    suite = make_chains(1).suite
    options = {"scorer": ["critic"], "critic_votes": 3, "verifier": "critic:openai/gpt-4o-mini"}
    plan, _ = dry_run(read_config(options), suite)
    assert any("at temperature 0 repeat" in caution for caution in plan_cautions(plan, suite))
    for other in ({"temperature": 1.0}, {"verifier": "critic:openai/gpt-5"}, {"critic_votes": 1}):
        plan, _ = dry_run(read_config({**options, **other}), suite)
        assert not any("repeat one" in caution for caution in plan_cautions(plan, suite))


def test_the_subject_can_be_its_own_critic(tmp_path: Path, server: Loopback) -> None:
    server.script(then={"text": said(1)})
    run = measure(
        tmp_path,
        server,
        make_chains(2).suite,
        provider="openai_compat",
        verifier="critic:subject",
        role_base_url={},
        base_url=server.base_url,
        model="m",
    )
    assert list(by_item(run.scores, "critic_step")["value"]) == [1.0, 1.0]
    assert {call["body"]["model"] for call in server.seen()} == {"m"}


@pytest.mark.soak
def test_a_llama_cpp_server_whose_model_cannot_criticise_finds_nothing_sound(
    tmp_path: Path,
) -> None:
    with serving_llama_cpp("faithful-a") as address:
        run = measure(
            tmp_path,
            Loopback(0),
            make_chains(3).suite,
            scorer=["critic", "rubric"],
            verifier="critic:openai_compat/m",
            role_base_url={"verifier": f"{address}/v1"},
        )
    assert len(run.scores) == 3 * 4 and run.scores["value"].isna().all()
    assert set(run.scores["status"]) == {"undefined"}
    assert NO_STEP_REASON not in set(run.scores["reason"])


def test_scorers_of_the_critic_say_which_verifier_they_need() -> None:
    for verifier in ("none", "openai/gpt-4o-mini"):
        with pytest.raises(ConfigError, match="--verifier critic:"):
            plan_models({"scorer": ["rubric"], "verifier": verifier})
    with pytest.raises(ConfigError, match="a critic writes text"):
        plan_models({"scorer": ["critic"], "verifier": "critic:nli/folder"})
    with pytest.raises(ConfigError, match="odd"):
        plan_models({"critic_votes": 2})


def plan_models(options: dict[str, Any]) -> None:
    dry_run(read_config(options), make_chains(1).suite)
