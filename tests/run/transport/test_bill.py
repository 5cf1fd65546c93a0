"""What a run says that it paid is the bill of the server, through each vendor's own package."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from cotlab.core.errors import BudgetReached, Unavailable
from cotlab.core.requests import Complete, Failed, Message, Response, Usage
from cotlab.core.types import ModelRef
from cotlab.providers.keys import KEY_VARIABLES
from cotlab.run.transport.budget import Price
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.limits import Limits
from cotlab.run.transport.reserve import (
    MAX_FACTOR,
    MEAN_FACTOR,
    MIN_OBSERVED_REPLIES,
    LostCall,
    Reserve,
)
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from tests.support.loopback import Loopback
from tests.support.vendors import MODELS, SECRET, opened_at

PRICE = Price(Decimal("0.137"), Decimal("0.611"), cached_price=Decimal("0.0713"))
PRICES = {"in": "0.137", "out": "0.611", "cached": "0.0713"}
PASSING_ERRORS = ["429", "409", "500", "501", "503", "529"]
REJECTIONS = ["400", "413", "422"]
LOSSES = ["408", "502", "504", "520", "524", "reset", "cut", "malformed", "shape", "slow"]
MANY = 60
FORMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    **{provider: (provider, {}, {}) for provider in MODELS},
    "openai, log-probabilities": ("openai", {}, {"top_logprobs": 5}),
    "google, log-probabilities": ("google", {}, {"top_logprobs": 5}),
    "google, a schema": ("google", {}, {"reply_schema": {"type": "object"}}),
    "anthropic, a prefix": ("anthropic", {"form": "prefill"}, {"prefix": "So"}),
    "openai_compat, a prefix": ("openai_compat", {"form": "prefill"}, {"prefix": "So"}),
    "openai_compat, raw text": (
        "openai_compat",
        {"form": "continuation", "endpoint": "completions"},
        {"prefix": "So", "top_logprobs": 5},
    ),
}
"""Each way to ask: provider, fields of the model, and of the request."""


class Case(NamedTuple):
    model: Any
    more: dict[str, Any]
    """Fields of each request."""

    def question(self, n: int) -> Complete:
        words = f"How many are {n} and {n}? " * 5
        return Complete(self.model.ref, (Message("user", words),), max_tokens=64, **self.more)


@pytest_asyncio.fixture(params=list(FORMS))
async def case(
    request: pytest.FixtureRequest, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Case]:
    provider, fields, more = FORMS[request.param]
    monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
    monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
    opened = opened_at(provider, server.root, **fields)
    yield Case(opened, more)
    await opened.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ResponseLog]:
    opened = ResponseLog(tmp_path / "log.sqlite")
    yield opened
    opened.close()


async def asked(case: Case, log: ResponseLog, cap: float, timeout_s: float = 60.0) -> list[Any]:
    """Ask all questions at once; the replies, and what was raised in place of one."""
    limits = Limits(
        8, None, cap_micro=int(cap), max_tries=40, timeout_s=timeout_s, first_wait_s=0.001
    )
    model, ref = case.model, case.model.ref
    dispatcher = Dispatcher("r", {ref: model}, {ref: PRICE}, log, limits, RunProgress())
    questions = map(case.question, range(MANY))
    replies = await asyncio.gather(*map(dispatcher.ask, questions), return_exceptions=True)
    await dispatcher.drain()
    assert all(isinstance(reply, Response | Failed | BudgetReached) for reply in replies), replies
    return replies


def storm(*kinds: str, share: float = 0.35) -> dict[str, Any]:
    return {"seed": 3, "share": share, "kinds": kinds, "slow_s": 60, "retry_after_s": 0.001}


@pytest.mark.parametrize("share", [0.05, 0.3])
async def test_a_storm_of_error_answers_costs_what_the_server_bills(
    case: Case, log: ResponseLog, server: Loopback, share: float
) -> None:
    server.script(
        then={"text": "So the answer is 7."},
        usage="random",
        prices=PRICES,
        storm=storm(*PASSING_ERRORS, *REJECTIONS, share=share),
    )
    replies = await asked(case, log, 10**7)
    n_replies = sum(isinstance(reply, Response) for reply in replies)
    assert 0.8 * MANY * (1 - share) < n_replies <= MANY < server.count()
    spend = log.get_spend("r")
    assert spend.reserved_micro == 0
    assert 0 <= spend.paid_micro - server.spend() < 1


@pytest.mark.parametrize("cap", [10**7, 300])
async def test_lost_replies_count_between_the_bill_and_the_cap(
    case: Case, log: ResponseLog, server: Loopback, cap: int
) -> None:
    server.script(
        then={"text": "So the answer is 7."},
        prices=PRICES,
        bill_errors=True,
        storm=storm(*PASSING_ERRORS, *LOSSES),
    )
    replies = await asked(case, log, cap, timeout_s=1.5)
    spend, bill = log.get_spend("r"), server.spend()
    assert bill <= sum(spend) <= cap
    if cap == 300:  # less than the run costs
        assert any(isinstance(reply, BudgetReached) for reply in replies)
        return
    n_lost = server.count() - sum(isinstance(reply, Response) for reply in replies)
    full_reserve = PRICE.max_cost(case.question(0))
    assert 0 < spend.reserved_micro < n_lost * full_reserve / 2


async def test_prompts_refused_by_an_error_hold_no_more_than_lost_calls(
    case: Case, log: ResponseLog, server: Loopback
) -> None:
    message = "Output blocked by content filtering policy"
    refusal = {"status": 400, "error": {"code": "content_filter", "message": message}}
    answer = {"text": "So the answer is 7."}
    server.script(*[answer, refusal] * (MANY // 2), then=answer, prices=PRICES)
    replies = await asked(case, log, 10**7)
    spend = log.get_spend("r")
    assert spend.paid_micro - server.spend() < 1
    n_refused = sum(isinstance(reply, Response) and reply.refused for reply in replies)
    if case.model.ref.provider == "google":  # its refusals are replies, with a count of tokens
        assert n_refused == spend.reserved_micro == 0
        return
    assert n_refused == MANY // 2
    assert 0 < spend.reserved_micro < n_refused * PRICE.max_cost(case.question(0)) / 2


async def test_a_request_that_never_left_costs_nothing(
    log: ResponseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in MODELS:
        monkeypatch.setenv(KEY_VARIABLES[provider], SECRET)
        monkeypatch.setenv("COTLAB_SEND_KEY_TO", "127.0.0.1")
        unreachable = opened_at(provider, "http://127.0.0.1:9")
        limits = Limits(8, None, max_tries=3, first_wait_s=0.001)
        dispatcher = Dispatcher(
            "r",
            {unreachable.ref: unreachable},
            {unreachable.ref: PRICE},
            log,
            limits,
            RunProgress(),
        )
        with pytest.raises(Unavailable):
            await dispatcher.ask(Complete(unreachable.ref, (Message("user", "Why?"),)))
        await unreachable.close()
        assert log.get_spend("r") == (0, 0) and log.get_call_counts("r")["calls"] > 0


def exact_cost(usage: Usage) -> Decimal:
    cost = PRICE.exact_cost(usage)
    assert cost is not None
    return cost


def fed_reserve(n_replies: int, elapsed_s: float) -> Reserve:
    reserve = Reserve(PRICE)
    for _ in range(n_replies):
        reserve.update_from_usage(QUESTION, Usage(20, 4), elapsed_s)
    return reserve


REF = ModelRef("openai_compat", "m")
QUESTION = Complete(REF, (Message("user", "Why? " * 30),), max_tokens=64)
LIKELY = math.ceil(MEAN_FACTOR * exact_cost(Usage(20, 4)))


@pytest.mark.parametrize(
    ("n_replies", "elapsed_s", "expected"),
    [
        (MIN_OBSERVED_REPLIES, 0.9, [(1, LIKELY)]),
        (MIN_OBSERVED_REPLIES - 1, 0.9, []),  # nothing is known so far
        (MIN_OBSERVED_REPLIES, 10.0, []),  # 16 s would be enough for all 64 tokens: a long reply
        (MIN_OBSERVED_REPLIES, 20.0, [(1, LIKELY)]),  # longer than any reply takes: no long reply
    ],
)
def test_a_lost_call_holds_what_such_a_call_costs_unless_it_may_be_the_longest(
    n_replies: int, elapsed_s: float, expected: list[tuple[int, int]]
) -> None:
    reserve = fed_reserve(n_replies, elapsed_s=1.0)  # 0.25 s a token
    reserve.add_lost_call(LostCall(1, QUESTION, elapsed_s))
    assert reserve.lowered_reserves() == expected
    assert reserve.lowered_reserves() == []  # once


def test_replies_to_other_requests_say_nothing_of_a_lost_call() -> None:
    reserve = fed_reserve(100, elapsed_s=1.0)
    reserve.add_lost_call(LostCall(1, replace(QUESTION, max_tokens=65), 0.5))
    assert reserve.lowered_reserves() == []


def test_the_dearest_reply_counts_where_one_is_far_above_the_mean() -> None:
    reserve, most = fed_reserve(MIN_OBSERVED_REPLIES, elapsed_s=1.0), Usage(20, 40)
    reserve.update_from_usage(QUESTION, most, 1.0)
    reserve.add_lost_call(LostCall(1, QUESTION, 0.5))
    ((_, held),) = reserve.lowered_reserves()
    assert held == math.ceil(MAX_FACTOR * exact_cost(most))


def test_costs_are_rounded_up_once_and_not_at_every_reply() -> None:
    reserve, cost = Reserve(PRICE), exact_cost(Usage(20, 4))
    charged = [reserve.charge(Usage(20, 4)) for _ in range(1000)]
    assert sum(filter(None, charged)) == math.ceil(1000 * cost) and {*charged} <= {5, 6}
    assert reserve.charge(Usage(None, 4)) is None
