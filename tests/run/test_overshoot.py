"""Servers whose count of tokens is not what was allowed: what the bill may come to then, and what
the report says of it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cotlab.metrics.kit import MAX_ANSWER_TOKENS
from tests.run.test_attack import PROVIDERS, quick, small_suite
from tests.support.forked import Forking, printed
from tests.support.loopback import Loopback
from tests.support.params import soak
from tests.support.running import report

PRICES = {"in": "0.15", "out": "0.6"}
OUTPUT, INPUT, ALL = {"in": 150, "out": 3000}, {"in": 8150, "out": 10}, {"in": 150, "out": 200_000}
"""3,000 output tokens whatever was allowed; 8,000 input tokens that nobody sent; all that a model
can make."""
ITEMS, REQUESTS = 10, 40


def dear(used: dict[str, int]) -> Fraction:
    """What a reply that reports this costs, in micro-dollars."""
    return used["in"] * Fraction(PRICES["in"]) + used["out"] * Fraction(PRICES["out"])


def options(
    provider: str, server: Loopback, folder: Path, cap: Fraction | float, concurrent: int
) -> tuple[str, ...]:
    prices = folder / "prices.yaml"
    prices.write_text(
        f"{PROVIDERS[provider]}: {{input: {PRICES['in']}, output: {PRICES['out']}}}\n"
    )
    base = server.root if provider in ("anthropic", "google") else server.base_url
    return (
        "--task-suite",
        small_suite(folder, ITEMS),
        "--provider",
        provider,
        "--model",
        PROVIDERS[provider],
        "--base-url",
        base,
        "--prices",
        str(prices),
        "--max-cost",
        f"{float(cap) / 1e6:.9f}",
        "--max-concurrent",
        str(concurrent),
        "--max-requests-per-minute",
        "100000",
        "--run-id",
        "r",
    )


def costs_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = report(folder, "r")["cost"]
    return found


@pytest.mark.parametrize("concurrent", [soak(1), soak(4), 20])
@pytest.mark.parametrize("used", [OUTPUT, INPUT], ids=["output", "input"])
@pytest.mark.parametrize("provider", quick("openai_compat"))
def test_a_server_that_always_reports_more_passes_the_cap_by_one_call_at_most(
    provider: str,
    used: dict[str, int],
    concurrent: int,
    tmp_path: Path,
    runs: Forking,
    server: Loopback,
) -> None:
    for cap in (Fraction(300), 3 * dear(used) + 7):  # below one reply's cost, and room for three
        folder = tmp_path / str(int(cap))
        folder.mkdir()
        server.script(
            then={"text": "So the answer is 7.", "usage": used}, prices=PRICES, latency_s=0.02
        )
        assert runs.run(folder, *options(provider, server, folder, cap, concurrent)) == 4, printed(
            folder
        )
        first = cap < dear(used)
        assert server.spend() <= (cap + dear(used) if first else cap), float(server.spend() / cap)
        assert server.count() == (
            1 if first else 2
        )  # the reserve of a third has no room beside its allowance
        cost = costs_of(folder)
        assert cost["spent_usd"] == pytest.approx(float(server.spend()) / 1e6, abs=2e-6)
        (over,) = cost["over_reserve"]
        name = f"{provider}/{PROVIDERS[provider]}"
        assert (over["model"], over["replies"]) == (name, 1)
        kind = "tokens_out" if used is OUTPUT else "tokens_in"
        assert over[kind] == (
            3000 - MAX_ANSWER_TOKENS if used is OUTPUT else pytest.approx(7600, abs=300)
        )
        lines = (folder / "reports" / "r" / "report.md").read_text("utf-8")
        assert (
            f"**Cost warning:** {name.replace('_', chr(92) + '_')} reported more tokens than were"
            " allowed" in lines
        )


def test_a_count_thousands_of_times_too_high_is_counted_too(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "So the answer is 7.", "usage": ALL}, prices=PRICES)
    cap = 3 * dear(ALL)
    assert runs.run(tmp_path, *options("openai_compat", server, tmp_path, cap, 20)) == 4, printed(
        tmp_path
    )
    assert 0 < server.spend() <= cap and costs_of(tmp_path)["spent_usd"] == pytest.approx(
        float(server.spend()) / 1e6, abs=2e-6
    )


@pytest.mark.parametrize("concurrent", [soak(1), 4, soak(20)])
@pytest.mark.parametrize("provider", quick("openai_compat"))
def test_a_server_that_turns_to_reporting_more_passes_the_cap_by_the_calls_in_flight_at_most(
    provider: str, concurrent: int, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    honest = [{"text": "So the answer is 7."}] * 8
    for beyond in (0, 25):
        cap, folder = 1000 + beyond * dear(OUTPUT), tmp_path / str(beyond)
        folder.mkdir()
        server.script(
            *honest,
            then={"text": "So the answer is 7.", "usage": OUTPUT},
            prices=PRICES,
            latency_s=0.02,
        )
        assert runs.run(folder, *options(provider, server, folder, cap, concurrent)) == 4, printed(
            folder
        )
        once = concurrent * dear(OUTPUT)
        assert server.spend() <= (cap if beyond else cap + once), float(server.spend() / cap)
        assert 1 <= costs_of(folder)["over_reserve"][0]["replies"] <= concurrent


def test_a_resumed_run_reserves_what_the_first_process_learnt(
    tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "So the answer is 7.", "usage": OUTPUT}, prices=PRICES)
    assert (
        runs.run(tmp_path, *options("openai_compat", server, tmp_path, 5 * dear(OUTPUT), 10)) == 4
    ), printed(tmp_path)
    asked, spent = server.count(), server.spend()
    for more in (
        Fraction("0.9"),
        Fraction("1.9"),
    ):  # of a reply's cost: room for the old reserve, not for the learnt one
        cap = f"{float(spent + more * dear(OUTPUT)) / 1e6:.9f}"
        assert runs.run(tmp_path, "--resume", "r", "--max-cost", cap) == 4, printed(tmp_path)
        assert server.spend() <= spent + more * dear(OUTPUT)
        assert server.count() == asked + (more > 1)


@pytest.mark.parametrize(
    "reported", [{"in": 0, "out": 0}, {"in": 0, "out": 5}, {"in": 90, "out": 0}], ids=str
)
@pytest.mark.parametrize("provider", quick("openai_compat"))
def test_a_reply_that_reports_no_tokens_counts_at_its_full_reserve(
    provider: str, reported: dict[str, int], tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    billed = {"in": 90, "out": 10}
    server.script(
        then={"text": "So the answer is 7.", "usage": billed, "reported": reported}, prices=PRICES
    )
    cap = Fraction(400)  # a twentieth of what the run costs
    assert runs.run(tmp_path, *options(provider, server, tmp_path, cap, 20)) == 4, printed(tmp_path)
    cost = costs_of(tmp_path)
    assert 0 < server.spend() <= Fraction(str(cost["held_usd"])) * 10**6 <= cap
    assert cost["replies_without_count"] == server.count() > 0
    lines = (tmp_path / "reports" / "r" / "report.md").read_text("utf-8")
    assert (
        f"**Cost warning:** {server.count()} replies came without a usable count of tokens" in lines
    )


@pytest.mark.parametrize("cap", [250, 10**6])
def test_an_honest_server_is_never_paid_more_than_the_cap_and_warned_of_nowhere(
    cap: int, tmp_path: Path, runs: Forking, server: Loopback
) -> None:
    server.script(then={"text": "So the answer is 7."}, prices=PRICES, latency_s=0.01)
    code = runs.run(tmp_path, *options("openai_compat", server, tmp_path, cap, 20))
    assert (code, server.count() == REQUESTS) == ((0, True) if cap == 10**6 else (4, False)), (
        printed(tmp_path)
    )
    assert 0 < server.spend() <= cap and costs_of(tmp_path)["over_reserve"] == []
    assert "Cost warning" not in (tmp_path / "reports" / "r" / "report.md").read_text("utf-8")
