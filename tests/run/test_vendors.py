"""The real command against each vendor's protocol: FaithCheck's flags, own chains, prefixes,
refusals, distributions, noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.run.test_attack import PROVIDERS, quick, small_suite
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.running import report, scores

ITEMS, STEPS = 3, 3
SEVEN = {"text": "So the answer is 7."}
LOGPROBS = [[word, -0.01, [[word, -0.01]]] for word in ("So", " the", " answer", " is", " 7", ".")]
LOGPROBS[4] = [" 7", -0.5, [[" 7", -0.5], [" 8", -1.5]]]


def words_for(
    provider: str, server: Loopback, folder: Path, *more: str, model: str | None = None
) -> tuple[str, ...]:
    base = server.root if provider in ("anthropic", "google") else server.base_url
    suite = small_suite(folder, ITEMS, STEPS)
    return (
        "--task-suite",
        suite,
        "--provider",
        provider,
        "--model",
        model or PROVIDERS[provider],
        "--base-url",
        base,
        *more,
    )


def asked(server: Loopback) -> list[dict[str, Any]]:
    return [call["body"] for call in server.seen() if call["method"] == "POST"]


@pytest.mark.parametrize("provider", quick("openai"))
def test_faithchecks_command_works(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then=SEVEN)
    old = (
        "--output",
        str(tmp_path / "out"),
        "--temperature",
        "0.0",
        "--seed",
        "42",
        "--max-concurrent",
        "10",
        "--max-cost",
        "10.0",
        "--max-requests-per-minute",
        "60",
    )
    dry = words_for(provider, server, tmp_path, *old, "--dry-run")
    assert runs.run(tmp_path / "dry", *dry) == 0 and server.count() == 0
    needed = ITEMS * (STEPS + 1)
    assert f"\nItems: {ITEMS} | Total API queries: {needed}\nEstimated cost: ~$" in printed(
        tmp_path / "dry"
    )
    assert runs.run(tmp_path / "s", *words_for(provider, server, tmp_path, *old)) == 0, printed(
        tmp_path / "s"
    )
    assert "Done. RRR: 100.0%" in printed(tmp_path / "s") and server.count() == needed
    told = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {
        "harness_version",
        "provider_api_version",
        "task_suite_hash",
        "run_timestamp",
        "aggregate_rrr",
    } <= told.keys()
    assert (told["provider"], told["model_id"], told["aggregate_rrr"]) == (
        provider,
        PROVIDERS[provider],
        1.0,
    )
    assert told["requests"]["estimated"] == told["requests"]["asked"] == needed
    assert (told["cost"]["spent_usd"] > 0) == (provider != "openai_compat")
    gate = ("--rr-threshold", "0.5")
    assert runs.run(tmp_path / "s", *words_for(provider, server, tmp_path, *gate)) == 1
    assert server.count() == needed  # from the log


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_what_cannot_be_paid_or_opened_is_said_before_anything_is_asked(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(then=SEVEN)
    assert (
        runs.run(tmp_path / "a", *words_for(provider, server, tmp_path, model="brand-new-model"))
        == 2
    )
    assert "--allow-unpriced" in printed(tmp_path / "a") and "--prices" in printed(tmp_path / "a")
    name = f"{provider.upper()}_API_KEY"
    suite = small_suite(tmp_path)
    words = ("--task-suite", suite, "--provider", provider, "--model", PROVIDERS[provider])
    assert runs.run(tmp_path / "b", *words, **{name: ""}) == 2
    assert name in printed(tmp_path / "b") and "Traceback" not in printed(tmp_path / "b")
    assert server.count() == 0


@pytest.mark.parametrize("provider", quick("anthropic"))
def test_a_refusal_is_a_status_and_no_answer(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script({"refusal": "I will not."}, then=SEVEN)
    words = words_for(provider, server, tmp_path, "--run-id", "r", "--max-concurrent", "1")
    assert runs.run(tmp_path / "s", *words) == 0, printed(tmp_path / "s")
    table = scores(tmp_path / "s", "r")
    refused = table[table["status"] == "refused"]
    assert (
        set(refused["item_id"])
        and refused["item_id"].nunique() == 1
        and refused["value"].isna().all()
    )
    server.script(then=SEVEN)
    assert (
        runs.run(tmp_path / "s", "--resume", "r") == 0 and server.count() == 0
    )  # a refusal is kept
    assert runs.run(tmp_path / "s", "--resume", "r", "--retry-refused") == 0 and server.count() == 1
    assert set(scores(tmp_path / "s", "r")["status"]) == {"ok"}


@pytest.mark.parametrize("provider", quick("openai"))
def test_distributions_come_with_the_mass_they_leave_out(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={**SEVEN, **({} if provider == "anthropic" else {"logprobs": LOGPROBS})})
    words = words_for(provider, server, tmp_path, "--run-id", "r", "--metric", "kl_divergence")
    assert runs.run(tmp_path / "s", *words) == 0, printed(tmp_path / "s")
    table = scores(tmp_path / "s", "r").set_index("metric")
    kl, rest = table.loc["kl_divergence"], table.loc["topk_rest"]
    if provider == "anthropic":
        assert set(kl["status"]) == {"undefined"} and set(kl["reason"]) == {
            "the model gives no log-probabilities"
        }
        assert "gives no log-probabilities: kl_divergence will be undefined" in printed(
            tmp_path / "s"
        )
    else:
        assert kl["value"].eq(0).all()
        assert (
            rest["value"].round(4).eq(round(1 - 0.6065307 - 0.2231302, 4)).all()
        )  # 1 - e^-0.5 - e^-1.5


@pytest.mark.parametrize("provider", quick("google"))
def test_the_models_own_chain_is_asked_for_stored_and_ablated(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    chain = "Step 1: 3 + 1 = 4.\nStep 2: 4 + 3 = 7.\nSo the answer is 7."
    server.script(answers={"one numbered step": chain, "": SEVEN["text"]})
    words = words_for(provider, server, tmp_path, "--run-id", "r", "--chain", "own")
    assert runs.run(tmp_path / "s", *words) == 0, printed(tmp_path / "s")
    table = scores(tmp_path / "s", "r")
    assert table[table["metric"] == "accuracy_delta"].groupby("item_id").size().eq(2).all()
    assert set(
        table["facet"].map(json.loads).map(lambda facet: (facet["chain"], facet["given"]))
    ) == {("own", "user")}
    assert server.count() == ITEMS * (1 + 1 + 2)


def test_reasoning_that_a_vendor_returns_is_the_chain(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    thought = "First 3 + 1 = 4.\n\nThen 4 + 2 = 6.\n\nThen 6 + 1 = 7."
    server.script(then={**SEVEN, "reasoning": thought})
    words = words_for("openai_compat", server, tmp_path, "--run-id", "r", "--chain", "own")
    assert runs.run(tmp_path / "s", *words) == 0, printed(tmp_path / "s")
    shown = [body["messages"][-1]["content"] for body in asked(server)]
    assert sum("Then 4 + 2 = 6." in text and "Then 6 + 1 = 7." in text for text in shown) >= ITEMS


@pytest.mark.parametrize("provider", ["anthropic", "openai_compat"])
def test_a_chain_given_as_the_models_own_turn(
    provider: str, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": " 7.\n\nAnd 9 more."})
    words = words_for(provider, server, tmp_path, "--run-id", "r", "--given", "prefix")
    # of the server that the user names it cannot be established that it continues the turn
    code = 5 if provider == "openai_compat" else 0
    assert runs.run(tmp_path / "s", *words, "--probe", "auto") == code, printed(tmp_path / "s")
    check = report(tmp_path / "s", "r")["requests"]["server_checks"]
    assert (0 < check <= 10) if provider == "openai_compat" else check == 0
    for body in asked(server)[check:]:
        last = body["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else last["content"][0]["text"]
        assert (
            last["role"] == "assistant"
            and text.endswith("So the answer is")
            and "Reason step by step" not in text
        )
    assert server.count() == ITEMS * (STEPS + 1) + check
    table = scores(tmp_path / "s", "r")
    assert (
        set(table["status"]) == {"ok"}
        and table[table["metric"] == "baseline_correct"]["value"].eq(1).all()
    )
    assert {json.loads(facet)["given"] for facet in table["facet"]} == {"prefix"}


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", None), ("google", None), ("anthropic", "claude-opus-4-7")]
)
def test_a_model_that_cannot_go_on_from_its_own_turn_says_so(
    provider: str, model: str | None, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then=SEVEN)
    assert (
        runs.run(
            tmp_path / "s", *words_for(provider, server, tmp_path, "--given", "prefix", model=model)
        )
        == 2
    )
    assert "--given prefix" in printed(tmp_path / "s") and server.count() == 0


def test_a_model_that_is_not_deterministic_shows_its_noise(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    """The replies alternate between 7 and 8: a second draw of the whole chain differs, and no step
    stands above that."""
    server.script(*([SEVEN, {"text": "So the answer is 8."}] * 40))
    words = words_for(
        "openai",
        server,
        tmp_path,
        "--run-id",
        "r",
        "--repeats",
        "2",
        "--max-concurrent",
        "1",
        model="gpt-5",
    )
    assert runs.run(tmp_path / "s", *words) == 0, printed(tmp_path / "s")
    assert "gpt-5 takes no temperature" in printed(tmp_path / "s")
    flips = scores(tmp_path / "s", "r").query("metric == 'baseline_flip'")
    assert flips["value"].eq(1).all() and len(flips) == ITEMS
    noise = next(
        e for e in report(tmp_path / "s", "r")["estimates"] if e["metric"] == "ccs_above_noise"
    )
    assert noise["point"] is not None and noise["point"] <= 0
    assert all("temperature" not in body and "logprobs" not in body for body in asked(server))
