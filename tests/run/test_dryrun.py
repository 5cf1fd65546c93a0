"""What a plan would ask and cost: each request once, the likely cost below the most, and what its
model cannot give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.keys import canonical_json
from cotlab.core.placeholders import placeholder_rounds
from cotlab.core.program import Params, Peers, Program, Scorer
from cotlab.core.requests import Complete, Message, Reply, Request
from cotlab.core.types import Item, ModelRef, Plan, ScorerSpec, Step, Suite
from cotlab.run import dryrun
from cotlab.run.dryrun import RequestCount, count_plan, plan_cautions
from cotlab.run.transport.budget import FREE_PRICE, Price

MODEL = ModelRef("openai", "gpt-4o-mini")
STEPS = tuple(Step(i, f"Part {i} is {i + 1}.") for i in range(3))
SUITE = Suite.from_items(
    "own", [Item(f"i{k}", f"What is number {k}?", "7", STEPS) for k in range(4)]
)
OPTIONS = {"metric": "accuracy_delta", "ccs_threshold": 0.1, "chain": "reference"}
RATES = st.decimals(0, 100, places=4)


def plan(
    *modes: Sequence[str], metric: str = "accuracy_delta", model: ModelRef = MODEL, **more: int
) -> Plan:
    """A plan with one ablation for each list of modes."""
    specs = tuple(
        ScorerSpec("ablation", 1, {**OPTIONS, "modes": list(one), "metric": metric})
        for one in modes
    )
    return Plan("own", SUITE.digest, {"subject": model}, specs, **more)


def ask(text: str, max_tokens: int = 64) -> Complete:
    return Complete(MODEL, (Message("user", text),), max_tokens=max_tokens)


def asking(*rounds: Sequence[Request]) -> Scorer:
    """A scorer that asks these rounds of every item."""

    def program(item: Item, params: Params, peers: Peers) -> Program:
        for requests in rounds:
            replies: Sequence[Reply] = yield requests
            assert len(replies) == len(requests)
        return ()

    return Scorer("asking", 1, (), program)


def count(*scorers: Scorer, price: Price = FREE_PRICE) -> RequestCount:
    total, params, peers = RequestCount(), Params({"subject": MODEL}), Peers.from_suite(SUITE, 42)
    for one in scorers:
        for item in SUITE.items:
            for number, requests in enumerate(placeholder_rounds(one(item, params, peers), item)):
                for request in requests:
                    total.add(request, {MODEL: price}, is_first_round=number == 0)
    return total


def size(request: Request) -> int:
    return len(canonical_json(request.to_json()).encode())


def test_a_request_that_two_scorers_ask_counts_once() -> None:
    shared, mine, yours = ask("shared"), ask("mine"), ask("yours")
    first, second = asking([shared, mine]), asking([shared, yours], [mine, ask("later"), shared])
    price = Price(Decimal(1), Decimal(1))
    alone, both = count(first, price=price), count(first, second, price=price)
    assert (alone.n_exact_requests, alone.n_estimated_requests, alone.n_requests) == (
        2,
        0,
        2,
    )  # every item of the suite asks the same
    assert (both.n_exact_requests, both.n_estimated_requests, both.n_requests) == (3, 1, 4)
    assert both.max_cost_micro == sum(
        price.max_cost(request) for request in (shared, mine, yours, ask("later"))
    )


def test_a_plan_s_scorers_share_the_whole_chain() -> None:
    # of each of four items the whole chain, and one request for each of its three steps and each
    # mode
    assert count_plan(plan(["remove"]), SUITE).n_requests == 4 * (1 + 3)
    assert count_plan(plan(["remove"], ["remove"]), SUITE).n_requests == 4 * (1 + 3)
    assert count_plan(plan(["remove"], ["filler"]), SUITE).n_requests == 4 * (1 + 3 + 3)
    assert count_plan(plan(["remove"], limit=2), SUITE).n_requests == 2 * (1 + 3)
    assert count_plan(plan(["remove"], repeats=3), SUITE).n_requests == 3 * 4 * (1 + 3)


def test_a_large_plan_is_counted_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of 1 to 8 steps: the numbers are near the exact ones, and add up."""
    items = [
        Item(f"i{k}", f"Q {k}?", "7", tuple(Step(i, f"{k} + {i}.") for i in range(1 + k * k % 8)))
        for k in range(5_000)
    ]
    suite = Suite.from_items("many", items)
    prices = {MODEL: Price(Decimal(4), Decimal(100))}
    sampled = count_plan(plan(["remove"]), suite, prices)
    with monkeypatch.context() as patch:
        patch.setattr(dryrun, "MAX_COUNTED_ITEMS", 5_000)
        exact = count_plan(plan(["remove"]), suite, prices)
    assert exact.n_requests == sum(1 + len(item.steps) for item in items)
    assert (sampled.n_sampled_items, sampled.n_items, exact.n_sampled_items) == (200, 5_000, None)
    assert "200 of 5,000 items" in sampled.sample_text and exact.sample_text == ""
    for name in ("n_requests", "cost_micro", "max_cost_micro"):
        assert getattr(sampled, name) == pytest.approx(getattr(exact, name), rel=0.15)
    assert sampled.requests_by_model.total() == sampled.n_requests
    assert sampled.n_estimated_requests == 0 == exact.n_estimated_requests
    assert sampled.as_estimate(prices[MODEL])["sampled_items"] == 200
    again = count_plan(plan(["remove"]), suite, prices)
    assert again.n_requests == sampled.n_requests  # the plan's seed draws the sample


def test_items_that_are_alike_are_counted_exactly_by_a_sample_too() -> None:
    items = [Item(f"i{k}", f"Q {k}?", "7", STEPS) for k in range(1_237)]
    suite = Suite.from_items("alike", items)
    assert count_plan(plan(["remove"]), suite).n_requests == 1_237 * (1 + 3)
    one = Suite.from_items("same", [Item(f"i{k}", "The same?", "7", STEPS) for k in range(1_000)])
    assert count_plan(plan(["remove"]), one).n_requests == 1 + 3  # what they share counts once


def test_a_plan_of_few_items_is_counted_in_full() -> None:
    items = [Item(f"i{k}", f"Q {k}?", "7", STEPS) for k in range(1_000)]
    count = count_plan(plan(["remove"], limit=400), Suite.from_items("many", items))
    assert (count.n_requests, count.n_sampled_items) == (400 * (1 + 3), None)
    assert "sampled_items" not in count.as_estimate(FREE_PRICE)


def test_a_sample_is_drawn_with_the_seed_and_keeps_the_order() -> None:
    """Ten of sixty: the same again, others with another seed, and --limit cuts the sample."""
    items = [Item(f"i{k:02d}", f"Q {k}?", None, STEPS) for k in range(60)]
    suite = Suite.from_items("own", items)
    drawn = [item.id for item in plan(["remove"], sample=10).items_of(suite)]
    assert (
        len(set(drawn)) == 10
        and drawn == sorted(drawn)
        and drawn != [f"i{k:02d}" for k in range(10)]
    )
    assert [item.id for item in plan(["remove"], sample=10).items_of(suite)] == drawn
    assert [item.id for item in plan(["remove"], sample=10, seed=1).items_of(suite)] != drawn
    assert [i.id for i in plan(["remove"], sample=10, limit=3).items_of(suite)] == drawn[:3]
    assert plan(["remove"], sample=99).items_of(suite) == suite.items
    assert plan(["remove"], sample=None).digest == plan(["remove"]).digest  # type: ignore[arg-type]


def test_the_cost_by_hand() -> None:
    price = Price(Decimal(4), Decimal(100), headroom=8192)
    short, long = ask("q" * 80, 64), ask("q" * 80, 512)
    # 80 characters are about 21 tokens: 84; an answer of 20 or a chain of 150, after 600 tokens of
    # reasoning
    assert count(asking([short]), price=price).cost_micro == 84 + 100 * (20 + 600)
    assert count(asking([long]), price=price).cost_micro == 84 + 100 * (150 + 600)
    assert count(asking([short]), price=replace(price, headroom=0)).cost_micro == 84 + 100 * 20
    assert count(asking([short]), price=price).max_cost_micro == 4 * size(short) + 100 * (64 + 8192)
    assert count(asking([short])).cost_micro == count(asking([short])).max_cost_micro == 0


@given(
    RATES,
    RATES,
    st.integers(0, 1000),
    st.text(max_size=200),
    st.integers(1, 1000),
    st.none() | RATES,
    st.none() | RATES,
)
@settings(deadline=None)
def test_the_likely_cost_is_never_above_the_most(
    rate_in: Decimal,
    rate_out: Decimal,
    headroom: int,
    text: str,
    max_tokens: int,
    cached: Decimal | None,
    reasoning: Decimal | None,
) -> None:
    price = Price(
        rate_in, rate_out, cached_price=cached, reasoning_price=reasoning, headroom=headroom
    )
    found = count(asking([ask(text, max_tokens)], [ask(text + "?", max_tokens)]), price=price)
    assert found.n_requests == 2 and 0 <= found.cost_micro <= found.max_cost_micro


def test_an_estimate_keeps_its_prices_and_says_nothing_of_money_it_does_not_know() -> None:
    price = Price(Decimal("0.15"), Decimal("0.6"), source="a file")
    told = count_plan(plan(["remove"]), SUITE, {MODEL: price}).as_estimate(price)
    assert (
        told["requests"],
        told["price_in_usd_per_million"],
        told["price_out_usd_per_million"],
    ) == (16, 0.15, 0.6)
    assert told["price_source"] == "a file" and 0 < told["cost_usd"] < told["most_usd"]
    unknown = Price(Decimal(0), Decimal(0), is_known=False, source="unknown")
    told = count_plan(plan(["remove"]), SUITE, {MODEL: unknown}).as_estimate(unknown)
    assert told["cost_usd"] is None and told["most_usd"] is None


@pytest.mark.parametrize(
    ("model", "metric", "said"),
    [
        (ModelRef("openai", "gpt-4o-mini"), "kl_divergence", []),
        (ModelRef("openai", "gpt-5"), "accuracy_delta", ["gpt-5 takes no temperature"]),
        (
            ModelRef("openai", "gpt-5"),
            "kl_divergence",
            ["gpt-5 takes no temperature", "gpt-5 gives no log-probabilities"],
        ),
        (ModelRef("anthropic", "claude-sonnet-4-5"), "accuracy_delta", []),
        (
            ModelRef("anthropic", "claude-sonnet-4-5"),
            "total_variation",
            ["claude-sonnet-4-5 gives no log-probabilities"],
        ),
        (
            ModelRef("organism", "r100", form="continuation"),
            "kl_divergence",
            ["r100 cannot read 4 of 4 items"],
        ),
    ],
)
def test_what_a_model_cannot_give_is_said_before_it_is_paid(
    model: ModelRef, metric: str, said: list[str]
) -> None:
    told = plan_cautions(plan(["remove"], metric=metric, model=model), SUITE)
    assert len(told) == len(said) and all(
        one.startswith(start) for one, start in zip(told, said, strict=True)
    )
    assert all(metric in one for one in told if "log-probabilities" in one)


@pytest.mark.parametrize(
    ("model", "chain", "said"),
    [
        (ModelRef("openai", "gpt-4o-mini"), "own", []),
        (
            ModelRef("openai", "gpt-4o-mini"),
            "reference",
            ["gpt-4o-mini tells the entropy of its own chain only"],
        ),
        (
            ModelRef("anthropic", "claude-sonnet-4-5"),
            "own",
            ["claude-sonnet-4-5 gives no log-probabilities: its entropy"],
        ),
        (
            ModelRef("organism", "r100", form="continuation"),
            "reference",
            ["r100 cannot read 4 of 4 items"],
        ),
    ],
)
def test_what_an_entropy_cannot_be_of_is_said_before_it_is_paid(
    model: ModelRef, chain: str, said: list[str]
) -> None:
    entropy = ScorerSpec("entropy", 1, {"chain": chain, "jump_nats": 0.5})
    told = plan_cautions(Plan(SUITE.name, SUITE.digest, {"subject": model}, (entropy,)), SUITE)
    assert len(told) == len(said) and all(
        one.startswith(start) for one, start in zip(told, said, strict=True)
    )
