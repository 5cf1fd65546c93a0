"""Process that divides symbolic checks among forked workers, each with a limit of CPU time.

`cotlab.providers.symbolic` starts this module once a run. It loads the libraries once and forks a
worker per core, so that a worker that is killed is replaced in milliseconds. A line of the input is
a JSON list of an id, premise and hypothesis; a line of the output is a JSON list of that id and
``{"verdict": true, false or a reason}`` or ``{"failure": message}``, in the order in which the
checks end.

The limit of a check is counted in CPU seconds of its worker: a busy machine delays a verdict and
does not change it. The limit of elapsed time is far greater and ends as a failure, not as a
verdict.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cotlab.providers.symbolic_worker import COMPUTATION_ERRORS, check_statements

MAX_MEMORY_BYTES = 4 << 30
"""Limit of the memory of one worker, in bytes."""
READY_LINE = b"ready\n"
_PARENT_CHECK_S = 1.0
"""Seconds between two looks whether the parent still lives."""
_PR_SET_PDEATHSIG = 1
_WARM_UP_STATEMENTS = (
    ("x + 1 = 2", "x = 1; 1 km = 1000 m"),
    ("x^2 - 5x + 6 = 0; y = \\frac{x}{2}", "y = \\sqrt{4}"),
    ("", "\\frac{1}{2} + \\left(\\frac{1}{3}\\right) = \\frac{5}{6}; (x + y)^2 = x^2 + 2xy + y^2"),
)
"""Checks that load the libraries and fill the tables of the parser before the first fork."""


@dataclass(slots=True)
class Worker:
    """A forked process that decides one check at a time."""

    pid: int
    """Its process id."""
    connection: socket.socket
    """Carries a check to it, and its verdict back."""
    check_id: int | None = None
    """The check that it decides; None where it waits for one."""
    started_at: float = 0.0
    """When it began that check, in seconds of the monotonic clock."""
    reply: bytearray = field(default_factory=bytearray)
    """What has arrived of its verdict."""


class Pool:
    """The workers, the checks that wait for one, and the limits of a check in seconds."""

    def __init__(self, n_workers: int, max_cpu_s: float, max_elapsed_s: float) -> None:
        self._max_cpu_s, self._max_elapsed_s = max_cpu_s, max_elapsed_s
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._input = bytearray()
        self._workers: list[Worker] = []
        for _ in range(n_workers):
            self._start_worker()

    def run(self) -> None:
        """Answer checks until the input ends or the parent does; then end every worker."""
        parent_id = os.getppid()
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        try:
            while os.getppid() == parent_id:
                for key, _ in self._selector.select(_PARENT_CHECK_S):
                    if isinstance(key.data, Worker):
                        self._read_reply(key.data)
                    elif not self._read_checks():
                        return
                self._stop_late_workers()
                self._hand_out_checks()
        finally:
            for worker in self._workers:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    def _read_checks(self) -> bool:
        """Queue the checks that have arrived; return False where the input has ended."""
        data = os.read(sys.stdin.fileno(), 1 << 16)
        *lines, rest = (self._input + data).split(b"\n")
        self._input = bytearray(rest)
        for line in lines:
            check_id, premise, hypothesis = json.loads(line)
            text = json.dumps([premise, hypothesis]).encode() + b"\n"
            self._waiting.append((check_id, text))
        return bool(data)

    def _hand_out_checks(self) -> None:
        for worker in [worker for worker in self._workers if worker.check_id is None]:
            if not self._waiting:
                return
            check_id, text = self._waiting.popleft()
            worker.check_id, worker.started_at = check_id, time.monotonic()
            try:
                worker.connection.sendall(text)
            except OSError:
                continue  # it has ended: its closed connection is read next

    def _read_reply(self, worker: Worker) -> None:
        """Pass a worker's verdict on; a worker that has ended is replaced."""
        try:
            data = worker.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._replace_worker(worker)
            return
        worker.reply += data
        if worker.reply.endswith(b"\n"):
            self._write(worker, {"verdict": json.loads(worker.reply)})
            worker.reply.clear()
            worker.check_id = None

    def _replace_worker(self, worker: Worker) -> None:
        """Say how a worker ended, and start another one."""
        _, status = os.waitpid(worker.pid, 0)
        self._selector.unregister(worker.connection)
        worker.connection.close()
        self._workers.remove(worker)
        if worker.check_id is not None:
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
                verdict = f"it takes longer than {self._max_cpu_s:g} s of CPU time"
                self._write(worker, {"verdict": verdict})
            else:
                self._write(worker, {"failure": "the worker that computes ended without a reply"})
        self._start_worker()

    def _stop_late_workers(self) -> None:
        """Kill the workers whose check takes too long by the clock; their ends are read next."""
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.check_id is not None and now - worker.started_at > self._max_elapsed_s:
                os.kill(worker.pid, signal.SIGKILL)
                message = (
                    f"the computation got less than {self._max_cpu_s:g} s of CPU time in"
                    f" {self._max_elapsed_s:g} s: the machine is overloaded"
                )
                self._write(worker, {"failure": message})
                worker.check_id = None
                self._replace_worker(worker)

    @staticmethod
    def _write(worker: Worker, reply: dict[str, Any]) -> None:
        print(json.dumps([worker.check_id, reply]), flush=True)

    def _start_worker(self) -> None:
        ours, theirs = socket.socketpair()
        pool_id = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                for connection in (ours, *(other.connection for other in self._workers)):
                    connection.close()
                null_file = os.open(os.devnull, os.O_RDWR)
                os.dup2(null_file, sys.stdin.fileno())
                os.dup2(null_file, sys.stdout.fileno())
                answer_checks(theirs, self._max_cpu_s, pool_id)
            finally:
                os._exit(1)  # whatever happens: this process is not the pool
        theirs.close()
        worker = Worker(pid, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)


def answer_checks(connection: socket.socket, max_cpu_s: float, pool_id: int) -> None:
    """Decide the checks that arrive until the connection ends; the work of a forked worker.

    A check that takes more CPU time than its limit ends the process by SIGPROF, whatever the
    libraries are doing then.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    if sys.platform == "linux":  # elsewhere a worker ends with its check
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with connection.makefile("rb") as lines:
        while os.getppid() == pool_id and (line := lines.readline()):
            signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
            try:
                verdict = check_statements(*json.loads(line))
            except COMPUTATION_ERRORS as error:
                verdict = f"the computation fails with {type(error).__name__}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.sendall(json.dumps(verdict).encode() + b"\n")


def serve_checks(arguments: Sequence[str]) -> None:
    """Load the libraries, fork the workers and answer checks.

    Parameters
    ----------
    arguments : sequence of str
        Number of workers; seconds of CPU time, and of elapsed time, that a check may take.
    """
    for premise, hypothesis in _WARM_UP_STATEMENTS:
        check_statements(premise, hypothesis)
    gc.collect()
    gc.freeze()  # what is loaded stays shared between the workers
    pool = Pool(int(arguments[0]), float(arguments[1]), float(arguments[2]))
    sys.stdout.buffer.write(READY_LINE)
    sys.stdout.flush()
    pool.run()


if __name__ == "__main__":
    serve_checks(sys.argv[1:])
