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
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from cotlab.core.errors import BadReply, ProviderError, Unsupported
from cotlab.core.requests import Entail, Request, Response
from cotlab.core.types import ModelRef

MAX_CPU_S, MAX_ELAPSED_S = 3.0, 180.0
"""Seconds of CPU time for one check; seconds that pass at most."""


class Symbolic:
    """Answers ``Entail`` with 1.0 (follows) or 0.0 (contradicts).

    Its worker processes are started with the first request.

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
        self._server: subprocess.Popen[str] | None = None

    async def close(self) -> None:
        """Stop the workers."""
        self.stop()

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Answer requests, as many at a time as there are workers."""
        checks = [request for request in requests if isinstance(request, Entail)]
        replies = self._decide({check.key: check for check in checks})
        return [
            replies[request.key]
            if isinstance(request, Entail)
            else Unsupported(f"symbolic does not answer {request.kind!r} requests")
            for request in requests
        ]

    def _decide(self, checks: dict[str, Entail]) -> dict[str, Response | ProviderError]:
        """Return the reply to each check, by its key."""
        replies: dict[str, Response | ProviderError] = {}
        lines = [[key, check.premise, check.hypothesis] for key, check in checks.items()]
        try:
            server = self._start()
            assert server.stdin is not None and server.stdout is not None
            server.stdin.writelines(json.dumps(line) + "\n" for line in lines)
            server.stdin.flush()
            while len(replies) < len(checks):  # each ends by its own limits
                key, verdict, failure = json.loads(server.stdout.readline())
                if failure is not None:
                    replies[key] = BadReply(failure)
                elif isinstance(verdict, bool):
                    now = datetime.now(UTC).isoformat()
                    replies[key] = Response(key, numbers=(float(verdict),), received_at=now)
                else:
                    replies[key] = Unsupported(f"not decidable by computation: {verdict}")
        except (ValueError, OSError):
            self.stop()
        ended = BadReply("the process that computes ended without a reply")
        return {key: replies.get(key, ended) for key in checks}

    def _start(self) -> subprocess.Popen[str]:
        """Return the server: a new interpreter, which imports the workers' code alone."""
        if self._server is None or self._server.poll() is not None:
            self.stop()
            paths = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))
            arguments = [str(self.n_workers), *(f"{limit:g}" for limit in self._limits)]
            self._server = subprocess.Popen(
                [sys.executable, "-m", "cotlab.providers.symbolic_worker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
                # Equal hashes, so that sympy orders its terms alike in every process.
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                    "PYTHONHASHSEED": "0",
                },
            )
        return self._server

    def stop(self) -> None:
        """End the server by the end of its input, upon which it ends its workers."""
        server, self._server = self._server, None
        if server is None:
            return
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
