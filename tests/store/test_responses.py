"""The response log: what was paid for is never lost, what may have been paid for is never
forgotten."""

from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.core.errors import StoreError
from cotlab.core.requests import Response, Token, Usage
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.log import COUNT_COLUMNS, decode_response, encode_json, encode_response
from cotlab.store.responses import CallReservation, OpenBatch, ResponseLog, RunSpend
from tests.support.store_worker import reply, request

TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)  # lone surrogates too
LOGP = st.floats(-100, 0)
ZERO = dict.fromkeys(COUNT_COLUMNS, 0)
COUNT = st.none() | st.integers(0, 10**6)
RESPONSES = st.builds(
    Response,
    st.just("k"),
    text=st.none() | TEXT,
    numbers=st.none() | st.lists(LOGP, max_size=3).map(tuple),
    vectors=st.none() | st.lists(st.lists(LOGP, max_size=2).map(tuple), max_size=2).map(tuple),
    tokens=st.lists(
        st.builds(Token, TEXT, LOGP, st.lists(st.tuples(TEXT, LOGP), max_size=2).map(tuple)),
        max_size=3,
    ).map(tuple),
    usage=st.builds(Usage, COUNT, COUNT, COUNT, COUNT),
    finish=TEXT,
    refused=st.booleans(),
    reasoning=st.none() | TEXT,
    sent=st.dictionaries(TEXT, st.none() | TEXT | st.integers(-9, 9), max_size=2),
    device=st.sampled_from(["", "cpu"]),
    batch=st.none() | st.integers(0, 9),
    received_at=TEXT,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path):  # type: ignore[no-untyped-def]
    log = ResponseLog(path)
    yield log
    log.close()


def claim(log: ResponseLog, text: str, most: int = 10, cap: int = 1000, run: str = "r") -> int:
    call = log.reserve(request(text), run, most, cap).call_id
    assert call is not None
    return call


@given(RESPONSES)
@settings(max_examples=60, deadline=None)
def test_a_stored_reply_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, response: Response
) -> None:
    log = ResponseLog(tmp_path_factory.mktemp("log") / "log.sqlite")
    asked = request("q")
    response = replace(response, key=asked.key)
    log.put([(asked, response)], "r")
    back = log.get(asked.key)
    assert back == response
    assert back is not None and back.sent == response.sent
    log.close()


def test_reserve_settle_and_spend_add_up(log: ResponseLog) -> None:
    first, second, third = (
        claim(log, text, most) for text, most in (("a", 100), ("b", 200), ("c", 300))
    )
    assert log.get_spend("r") == RunSpend(0, 600)
    for _ in range(2):  # a call is settled once
        log.settle(first, 40, "ok", (request("a"), reply(request("a"))))
        assert log.get_spend("r") == RunSpend(40, 500)
    log.settle(second, 0, "RateLimited")
    assert log.get_spend("r") == RunSpend(40, 300)
    log.settle(third, None, "timed out")  # it may have been paid for
    log.lower_reserves([(first, 1), (third, 250), (third, 280)])
    assert log.get_spend("r") == RunSpend(40, 250)
    assert log.get_spend("another") == RunSpend(0, 0)


def test_a_call_that_would_pass_the_cap_is_not_reserved(log: ResponseLog) -> None:
    call = claim(log, "a", most=60, cap=100)
    assert log.reserve(request("b"), "r", 41, 100) == CallReservation()
    assert log.get_spend("r") == RunSpend(0, 60)
    claim(log, "b", most=40, cap=100)
    log.settle(call, 10, "ok")
    claim(log, "c", most=50, cap=100)
    assert log.get_spend("r") == RunSpend(10, 90)
    claim(log, "d", most=100, cap=100, run="another")


def test_what_a_dead_process_reserved_stays_reserved(path: Path, log: ResponseLog) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from"
        " store_worker import request;from cotlab.store.responses import ResponseLog; log ="
        " ResponseLog(Path(sys.argv[2]));log.reserve(request('a'), 'r', 123, 1000);"
        " os.kill(os.getpid(), 9)"
    )
    died = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parents[1] / "support"), str(path)],
        check=False,
    )
    assert died.returncode == -9
    assert log.get_spend("r") == RunSpend(0, 123)
    assert log.reserve(request("a"), "r", 1000, 1000) == CallReservation()
    assert (
        log.reserve(request("a"), "r", 800, 1000).call_id is not None
    )  # nobody waits for the dead one's reply


def test_a_request_under_way_in_a_living_process_is_not_sent_again(
    path: Path, log: ResponseLog
) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from store_worker"
        " import request, reply;from cotlab.store.responses import ResponseLog; log ="
        " ResponseLog(Path(sys.argv[2]));call = log.reserve(request('a'), 'other', 1, 9).call_id;"
        " print('sent', flush=True); sys.stdin.readline();log.settle(call, 1, 'ok', (request('a'),"
        " reply(request('a')))); print('settled', flush=True)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[1] / "support"), str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "sent\n"
        assert log.reserve(request("a"), "r", 1, 9) == CallReservation(is_in_flight=True)
        assert log.get_spend("r") == RunSpend(0, 0)
        assert log.reserve(request("b"), "r", 1, 9).call_id is not None
        live = LiveRunStore(path)
        live.begin_run(
            "other", RunProgress()
        )  # the run has moved on to another process (this one) …
        assert (
            log.reserve(request("a"), "r", 1, 9).call_id is not None
        )  # … so nobody waits for the old one's reply
        live.close()
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "settled\n"
        assert log.reserve(request("a"), "r", 1, 9) == CallReservation(reply=reply(request("a")))


def test_the_first_reply_stays(log: ResponseLog) -> None:
    asked = request("a")
    first, second = (Response(asked.key, text) for text in ("first", "second"))
    log.put([(asked, first)], "r")
    log.put([(asked, second)], "r")
    log.settle(claim(log, "other"), 1, "ok", (asked, second))
    assert log.get(asked.key) == first


def test_refusals_are_kept_until_they_are_retried(path: Path, log: ResponseLog) -> None:
    asked = request("a")
    refused, given_ = Response(asked.key, None, refused=True), Response(asked.key, "yes")
    log.put([(asked, refused)], "r")
    assert log.get(asked.key) == refused
    retrying = ResponseLog(path, retry_refused=True)
    assert retrying.get(asked.key) is None
    retrying.put([(asked, refused)], "r")
    assert retrying.get(asked.key) == refused  # a refusal of this very run is asked for once
    log.put([(asked, given_)], "r")
    assert retrying.get(asked.key) == log.get(asked.key) == given_
    retrying.close()


def test_a_redacted_row_has_no_text_and_is_no_reply(path: Path) -> None:
    log = ResponseLog(path, redact=True)
    asked = request("secret question")
    said = Response(
        asked.key, "secret reply", tokens=(Token("secret", -1.0),), reasoning="secret thought"
    )
    log.settle(claim(log, "secret question"), 3, "ok", (asked, said))
    assert log.get(asked.key) is None
    assert log.get_spend("r") == RunSpend(3, 0)
    known = log.load_exchanges([asked.key])[asked.key]
    assert known[0] is None and known[1] is not None and len(known[1]["text_sha256"]) == 64
    log.close()
    assert all(b"secret" not in file.read_bytes() for file in path.parent.iterdir())
    full = ResponseLog(path)
    full.put([(asked, said)], "r")
    assert full.get(asked.key) == said
    full.close()


def test_a_write_that_fails_leaves_a_log_that_works(log: ResponseLog) -> None:
    asked = request("a")
    unstorable = Response(asked.key, "x", sent={"n": 1})
    object.__setattr__(unstorable, "device", object())  # no JSON value
    with pytest.raises(TypeError):
        log.put([(asked, unstorable)], "r")
    log.put([(asked, reply(asked))], "r")
    with pytest.raises(StoreError, match="no_such_table"), log._transaction() as connection:
        connection.execute("DELETE FROM replies")
        connection.execute("INSERT INTO no_such_table VALUES (1)")
    assert log.get(asked.key) == reply(asked)
    claim(log, "b")


CALLS = st.tuples(COUNT, COUNT, COUNT, COUNT, st.sampled_from(["free", "paid", "lost", "open"]))


@given(st.lists(CALLS, max_size=8))
@settings(max_examples=30, deadline=None)
def test_the_running_sums_are_those_of_the_calls(
    tmp_path_factory: pytest.TempPathFactory,
    told: list[tuple[int | None, int | None, int | None, int | None, str]],
) -> None:
    log = ResponseLog(tmp_path_factory.mktemp("log") / "log.sqlite")
    assert log.get_call_counts("r") == ZERO
    for i, (*usage, kind) in enumerate(told):
        asked = request(str(i))
        said = replace(reply(asked), usage=Usage(*usage))
        if kind == "free":
            log.put([(asked, said)], "r")
        else:
            call = claim(log, str(i))
            if kind != "open":
                paid = kind == "paid"
                log.settle(call, 3 if paid else None, "x", (asked, said) if paid else None)
    replied = [row for row in told if row[-1] in ("free", "paid")]
    sums = [sum(row[k] or 0 for row in replied) for k in range(4)]
    uncounted = sum(row[0] is None or row[1] is None for row in replied)
    counts = (len(told), len(replied), uncounted, *sums)
    assert tuple(log.get_call_counts("r").values()) == counts
    kinds = [row[-1] for row in told]
    n_unpaid = kinds.count("lost") + kinds.count("open")
    assert log.get_spend("r") == RunSpend(3 * kinds.count("paid"), 10 * n_unpaid)
    assert log.get_call_counts("another") == ZERO
    log.close()


def test_the_sends_of_the_last_minute_are_those_of_one_run(path: Path, log: ResponseLog) -> None:
    for text, run in (("old", "r"), ("a", "r"), ("b", "r"), ("c", "another")):
        claim(log, text, run=run)
    rows = sqlite3.connect(path, isolation_level=None)
    rows.execute(
        "UPDATE calls SET at = ? WHERE id = 1",
        ((datetime.now(UTC) - timedelta(seconds=40)).isoformat(),),
    )
    rows.close()
    n_calls = [len(log.list_recent_tokens("r", window_s)) for window_s in (60, 50, 30)]
    assert n_calls == [3, 3, 2] and log.list_recent_tokens("nobody", 60) == []


def test_a_batch_is_open_until_it_ended(path: Path, log: ResponseLog) -> None:
    calls = {request(text).key: claim(log, text) for text in "abc"}
    log.add_batch("first", "r", "p/m", calls.values())
    (begun,) = log.list_open_batches("r", "p/m")
    assert begun == OpenBatch("first", None, begun.recorded_at, calls)
    log.update_batch("first", "id-1")
    log.add_batch("second", "r", "p/m", [claim(log, "d")])
    log.add_batch("third", "r", "p/other", [claim(log, "e")])
    log.add_batch("fourth", "s", "p/m", [claim(log, "f", run="s")])
    log.settle(calls[request("b").key], 3, "ok", (request("b"), reply(request("b"))))
    later = ResponseLog(path)  # another process finds what is not settled, the oldest batch first
    first, second = later.list_open_batches("r", "p/m")
    assert first == OpenBatch(
        "first",
        "id-1",
        begun.recorded_at,
        {key: call for key, call in calls.items() if key != request("b").key},
    )
    assert (second.name, second.vendor_id, len(second.calls_by_key)) == ("second", None, 1)
    later.update_batch("first", is_ended=True)
    later.close()
    assert [batch.name for batch in log.list_open_batches("r", "p/m")] == ["second"]
    assert [batch.name for batch in log.list_open_batches("s", "p/m")] == ["fourth"]
    log.update_batch("second")  # nothing new is known: it stays as it was
    assert log.list_open_batches("r", "p/m") == [second]


def test_live_runs_are_told_and_asked_to_stop(path: Path) -> None:
    live = LiveRunStore(path)
    live.begin_run("r", RunProgress(items_total=7))
    assert live.write_heartbeat("r", RunProgress(items_done=3, items_total=7)) is False
    told = live.get("r")
    assert told is not None and told.is_running and told.progress.items_done == 3
    assert live.request_stop("r") is True
    assert live.write_heartbeat("r", RunProgress()) is True
    live.begin_run("r", RunProgress())
    assert live.write_heartbeat("r", RunProgress()) is False
    live.write_heartbeat("r", RunProgress(status="done"))
    assert live.request_stop("r") is False
    assert live.get("nobody") is None
    live.close()


NARROW = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = st.none() | st.lists(st.lists(NARROW, max_size=5).map(tuple), max_size=3).map(tuple)
WIDE = st.lists(st.lists(st.floats(allow_nan=False), max_size=4).map(tuple), max_size=3).map(tuple)


def stored(vectors: tuple[tuple[float, ...], ...] | None) -> str:
    return encode_json(encode_response(Response("k", vectors=vectors)))


@given(ROWS | WIDE)
def test_every_number_comes_back_exactly(vectors: tuple[tuple[float, ...], ...] | None) -> None:
    assert decode_response(stored(vectors)).vectors == vectors


def test_a_vector_of_single_precision_takes_a_quarter_of_its_digits() -> None:
    vector = tuple(struct.unpack("<384f", struct.pack("<384f", *(1 / (k + 3) for k in range(384)))))
    assert 2048 <= len(stored((vector,))) < 2300 < 8192 < len(json.dumps(vector))


def test_a_log_of_the_older_form_is_read() -> None:
    old = json.dumps({"key": "k", "vectors": [[0.1, 0.2], [1, -1.5]], "usage": {}})
    assert decode_response(old).vectors == ((0.1, 0.2), (1, -1.5))
