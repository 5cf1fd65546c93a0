"""Verification by computation, in worker processes with a limit of CPU time.

Algebra is solved by sympy and math-verify, units by pint. Premise and hypothesis are statements
with "=" between semicolons or newlines ("2*x + 3 = 7; 5 km = 5000 m"). The reply is 1 where every
statement of the hypothesis holds by itself or follows, 0 where one is false or contradicts the
premise; where that cannot be decided the request is Unsupported, so that its score is undefined and
never 0.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from cotlab.core.errors import BadReply, ProviderError, Unsupported
from cotlab.core.requests import Entail, Request, Response
from cotlab.core.types import ModelRef

MAX_CPU_S, MAX_ELAPSED_S, START_TIMEOUT_S = 3.0, 180.0, 120.0
"""Seconds of CPU time for one check; seconds that pass at most, and to load the libraries."""
_ENDED_MESSAGE = "the worker that computes ended without a reply"
Verdict = bool | str
"""Whether a hypothesis follows, or why that cannot be decided."""


class Symbolic:
    """Answers ``Entail`` with 1.0 (follows) or 0.0 (contradicts).

    Its worker processes are started with the first request. A request that was decided before is
    answered from memory.

    Parameters
    ----------
    ref : ModelRef
    max_cpu_s : float
        CPU seconds that one check may take; a check that takes longer is undecided.
    max_elapsed_s : float
        Seconds after which a check that has not had its CPU time is an error, not a verdict.
    n_workers : int, optional
        Number of worker processes; by default the cores that this process may use.
    """

    answers = frozenset({Entail.kind})

    def __init__(
        self,
        ref: ModelRef,
        max_cpu_s: float = MAX_CPU_S,
        max_elapsed_s: float = MAX_ELAPSED_S,
        n_workers: int | None = None,
    ) -> None:
        versions = [f"{name} {version(name)}" for name in ("sympy", "math-verify", "pint")]
        self.ref = replace(ref, revision="5: " + ", ".join(versions))
        self.n_workers = n_workers or _count_cores()
        self._limits = (max_cpu_s, max_elapsed_s)
        self._pool: subprocess.Popen[bytes] | None = None
        self._unsent = self._unread = b""
        self._verdict_by_key: dict[str, Verdict] = {}

    async def close(self) -> None:
        """Stop the workers."""
        self._stop_pool()

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Answer requests, as many at a time as there are workers."""
        checks = {
            request.key: request
            for request in requests
            if isinstance(request, Entail) and request.key not in self._verdict_by_key
        }
        failure_by_key = self._decide(list(checks.values())) if checks else {}
        return [self._reply_to(request, failure_by_key) for request in requests]

    def _reply_to(
        self, request: Request, failure_by_key: dict[str, str]
    ) -> Response | ProviderError:
        if not isinstance(request, Entail):
            return Unsupported(f"symbolic does not answer {request.kind!r} requests")
        if request.key in failure_by_key:
            return BadReply(failure_by_key[request.key])
        verdict = self._verdict_by_key[request.key]
        if not isinstance(verdict, bool):
            return Unsupported(f"not decidable by computation: {verdict}")
        return Response(
            request.key, numbers=(float(verdict),), received_at=datetime.now(UTC).isoformat()
        )

    def _decide(self, requests: Sequence[Entail]) -> dict[str, str]:
        """Keep a verdict on each request; return why there is none, by key of the request."""
        failure_by_key = {request.key: _ENDED_MESSAGE for request in requests}
        checks = [[i, request.premise, request.hypothesis] for i, request in enumerate(requests)]
        try:
            self._start_pool()
            self._unsent = b"".join(json.dumps(check).encode() + b"\n" for check in checks)
            for _ in requests:
                # Each check ends by its own limit, the workers' replacement included.
                index, reply = json.loads(self._read_line(2 * self._limits[1]))
                key = requests[index].key
                if "failure" in reply:
                    failure_by_key[key] = reply["failure"]
                else:
                    self._verdict_by_key[key] = reply["verdict"]
                    del failure_by_key[key]
        except (ValueError, OSError):
            self._stop_pool()
        return failure_by_key

    def _read_line(self, timeout_s: float) -> bytes:
        """Return the pool's next line and send it what it reads meanwhile.

        Raises
        ------
        OSError
            If the pool ended or is late.
        """
        assert self._pool is not None and self._pool.stdin is not None
        assert self._pool.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            readable_pipes, writable_pipes, _ = select.select(
                [self._pool.stdout],
                [self._pool.stdin] if self._unsent else [],
                [],
                max(0.0, deadline - time.monotonic()),
            )
            if writable_pipes:
                n_sent = os.write(self._pool.stdin.fileno(), self._unsent[: 1 << 16])
                self._unsent = self._unsent[n_sent:]
            data = os.read(self._pool.stdout.fileno(), 1 << 16) if readable_pipes else b""
            if not data and not writable_pipes:
                raise OSError(_ENDED_MESSAGE)
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _start_pool(self) -> None:
        """Start the pool where none runs: an interpreter that imports the workers' code alone."""
        if self._pool is not None and self._pool.poll() is None:
            return
        self._stop_pool()
        python_path = os.pathsep.join(
            filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))
        )
        limits = [f"{limit:g}" for limit in self._limits]
        self._pool = subprocess.Popen(
            [
                *(sys.executable, "-m", "cotlab.providers.symbolic_pool"),
                *(str(self.n_workers), *limits),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            # Equal hashes, so that sympy orders its terms alike in every process.
            env={**os.environ, "PYTHONPATH": python_path, "PYTHONHASHSEED": "0"},
        )
        assert self._pool.stdin is not None
        os.set_blocking(self._pool.stdin.fileno(), False)
        if self._read_line(START_TIMEOUT_S) != b"ready":
            raise OSError("the workers do not start")

    def _stop_pool(self) -> None:
        """End the pool by the end of its input, upon which it ends its workers."""
        pool, self._pool = self._pool, None
        self._unsent = self._unread = b""
        if pool is None:
            return
        for pipe in (pool.stdin, pool.stdout):
            if pipe is not None:
                pipe.close()
        try:
            pool.wait(5)
        except subprocess.TimeoutExpired:
            pool.kill()
            pool.wait()


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
