"""Symbolic checks in worker processes: limits, deaths, and that order changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cotlab.core.errors import BadReply, ProviderError, Unsupported
from cotlab.core.requests import Entail, Failed, Request, Response
from cotlab.core.types import ModelRef
from cotlab.providers.symbolic import Symbolic
from cotlab.providers.symbolic_worker import MAX_MEMORY_BYTES
from cotlab.run.transport.budget import FREE_PRICE
from cotlab.run.transport.dispatcher import Dispatcher
from cotlab.run.transport.limits import Limits
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog

REF = ModelRef("symbolic", "arithmetic-and-units")


def endless(n: int = 60) -> Entail:
    """Return a check whose sides have over 8 million terms each once they are multiplied out."""
    return Entail(REF, "", f"(a+b+c+d+f+g)^{n} = (a-b+c+d+f+g)^{n}")


EASY = [Entail(REF, f"x + {k} = {2 * k}", f"x = {k + k % 2}") for k in range(1, 13)]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def pool() -> Iterator[Symbolic]:
    opened = Symbolic(REF, max_cpu_s=1.0, n_workers=2)
    opened.send_batch(EASY[:1])
    yield opened
    opened.stop()


def worker_ids(pool_id: int) -> list[int]:
    """Return the processes that any thread of the pool has forked."""
    lists = Path(f"/proc/{pool_id}/task").glob("*/children")
    return sorted(int(n) for path in lists for n in path.read_text().split())


def is_running(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_background(pool: Symbolic, requests: list[Request]) -> Callable[[], list[object]]:
    """Start a batch in a thread; the result waits for its replies."""
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.extend(pool.send_batch(requests)))
    thread.start()

    def joined() -> list[object]:
        thread.join(60)
        assert not thread.is_alive()
        return replies

    return joined


def values(replies: list[Response | ProviderError]) -> list[tuple[float, ...] | str | None]:
    return [reply.numbers if isinstance(reply, Response) else str(reply) for reply in replies]


def test_an_expression_that_does_not_end_costs_its_own_limit_and_nothing_else(
    pool: Symbolic,
) -> None:
    assert pool._server is not None
    pool_id = pool._server.pid
    late, *others = pool.send_batch([endless(), *EASY])
    assert isinstance(late, Unsupported) and "longer than 1 s of CPU time" in str(late)
    assert all(isinstance(reply, Response) for reply in others)
    assert pool._server.pid == pool_id and wait_for(lambda: len(worker_ids(pool_id)) == 2)


async def test_an_undecided_check_is_logged_and_not_computed_again(
    pool: Symbolic, tmp_path: Path
) -> None:
    replies, n_sent = [], []
    for _ in range(2):
        with closing(ResponseLog(tmp_path / "log")) as log:
            asker = Dispatcher("r", {REF: pool}, {REF: FREE_PRICE}, log, Limits(), RunProgress())
            replies.append(await asker.ask(endless(63)))
            n_sent.append(asker.job.n_sent)
    first, again = replies
    assert isinstance(first, Failed) and first.unsupported and "longer than 1 s" in first.error
    assert again == first and n_sent == [1, 0]


def test_a_worker_has_a_limit_of_memory_and_holds_no_library_of_models(pool: Symbolic) -> None:
    assert pool._server is not None
    for worker in worker_ids(pool._server.pid):
        limits = Path(f"/proc/{worker}/limits")
        assert wait_for(lambda path=limits: f" {MAX_MEMORY_BYTES} " in path.read_text())
        assert "torch" not in Path(f"/proc/{worker}/maps").read_text()


@pytest.mark.soak
def test_the_limit_is_of_cpu_time_not_of_elapsed_time() -> None:
    slow = Symbolic(REF, max_cpu_s=1.0, n_workers=1)
    slow.send_batch(EASY[:1])
    assert slow._server is not None
    (worker,) = worker_ids(slow._server.pid)
    os.kill(worker, signal.SIGSTOP)
    joined = in_background(slow, [*EASY[1:2]])
    time.sleep(2.5)  # longer than the limit, in which the worker computes nothing
    os.kill(worker, signal.SIGCONT)
    (reply,) = joined()
    assert isinstance(reply, Response)
    slow.stop()


@pytest.mark.soak
def test_a_worker_that_never_gets_its_time_is_an_error_not_a_verdict() -> None:
    starved = Symbolic(REF, max_cpu_s=9.0, max_elapsed_s=2.0, n_workers=1)
    starved.send_batch(EASY[:1])
    assert starved._server is not None
    (worker,) = worker_ids(starved._server.pid)
    joined = in_background(starved, [endless(), EASY[2]])
    assert wait_for(lambda: cpu_seconds(worker) > 0.3)
    os.kill(worker, signal.SIGSTOP)
    lost, after = joined()
    assert isinstance(lost, BadReply) and "overloaded" in str(lost)
    assert isinstance(after, Response)
    starved.stop()


@pytest.mark.soak
def test_a_worker_killed_in_the_middle_loses_its_own_check_alone(pool: Symbolic) -> None:
    assert pool._server is not None
    pool_id = pool._server.pid
    before = {worker: cpu_seconds(worker) for worker in worker_ids(pool_id)}
    joined = in_background(pool, [endless(61), *EASY])
    busy: list[int] = []

    def find_busy() -> bool:
        busy[:] = [w for w in before if is_running(w) and cpu_seconds(w) > before[w] + 0.3]
        return bool(busy)

    assert wait_for(find_busy)
    os.kill(busy[0], signal.SIGKILL)
    lost, *others = joined()
    assert isinstance(lost, BadReply) and "ended without a reply" in str(lost)
    assert all(isinstance(reply, Response) for reply in others)
    assert wait_for(lambda: len({*worker_ids(pool_id)} - {busy[0]}) == 2)


@pytest.mark.soak
def test_a_pool_that_dies_is_an_error_and_is_started_again(pool: Symbolic) -> None:
    assert pool._server is not None
    first, workers = pool._server, worker_ids(pool._server.pid)
    before = {worker: cpu_seconds(worker) for worker in workers}
    joined = in_background(pool, [endless(62)])
    assert wait_for(lambda: any(cpu_seconds(w) > before[w] + 0.2 for w in workers))
    os.kill(first.pid, signal.SIGKILL)
    (lost,) = joined()
    assert isinstance(lost, BadReply) and "ended without a reply" in str(lost)
    (again,) = pool.send_batch([Entail(REF, "", "3 + 3 = 6")])
    assert isinstance(again, Response) and pool._server is not first
    assert wait_for(lambda: not any(map(is_running, workers)))


def test_several_workers_and_another_order_give_what_one_gives(pool: Symbolic) -> None:
    requests = [
        *EASY,
        *(Entail(REF, f"{k}x + y = {k}; x - y = 2", f"x = {k}; y = 1") for k in range(2, 6)),
        Entail(REF, "x^2 + y^2 = 25; y = x + 1", "x = 3"),
        Entail(REF, "a + b = c", "d = 4"),
        Entail(REF, "", "1/0 = 1"),
        Entail(REF, "", "2/3 = 0.667"),
    ]
    alone = Symbolic(REF, n_workers=1)
    expected = values(alone.send_batch(requests))
    assert values(pool.send_batch(requests[::-1]))[::-1] == expected
    assert {type(value) for value in expected} == {tuple, str}
    alone.stop()


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
def test_no_worker_outlives_its_run(number: int) -> None:
    script = (
        "import sys; from cotlab.core.requests import Entail; from cotlab.core.types import"
        " ModelRef; from cotlab.providers.symbolic import Symbolic\n"
        "ref = ModelRef('symbolic', 's'); opened = Symbolic(ref, max_cpu_s=60.0, n_workers=2)\n"
        "opened.send_batch([Entail(ref, '', '1 + 1 = 2')])\n"
        "print(opened._server.pid, flush=True)\n"
        f"opened.send_batch([Entail(ref, '', {endless().hypothesis!r})])\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pool_id = int(parent.stdout.readline())
    workers = worker_ids(pool_id)
    assert len(workers) == 2
    assert wait_for(lambda: any(cpu_seconds(worker) > 0.2 for worker in workers))
    os.kill(parent.pid, number)
    parent.wait()
    parent.stdout.close()
    assert wait_for(lambda: not any(map(is_running, [pool_id, *workers])))
