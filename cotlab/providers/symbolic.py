"""Verification by computation, in a worker process with a time limit.

Algebra is solved by sympy and math-verify, units by pint. Premise and hypothesis are statements
with "=" between semicolons or newlines ("2*x + 3 = 7; 5 km = 5000 m"). The reply is 1 where every
statement of the hypothesis holds by itself or follows, 0 where one is false or contradicts the
premise; where that cannot be decided the request is Unsupported, so that its score is undefined
and never 0.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
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

LIMIT_S, START_S = 3.0, 60.0
"""Seconds for one request, and for the worker to load its libraries."""


class Symbolic:
    """Answers ``Entail`` with 1.0 (follows) or 0.0 (contradicts).

    One worker process, started with the first request.
    """

    answers = frozenset({Entail.kind})

    def __init__(self, ref: ModelRef, limit_s: float = LIMIT_S) -> None:
        versions = [f"{name} {version(name)}" for name in ("sympy", "math-verify", "pint")]
        self.ref = replace(ref, revision="2: " + ", ".join(versions))
        self._limit_s = limit_s
        self._worker: subprocess.Popen[bytes] | None = None

    async def send(self, request: Request) -> Response:
        """Answer one request in a thread."""
        (reply,) = await asyncio.to_thread(self.send_batch, [request])
        if isinstance(reply, ProviderError):
            raise reply
        return reply

    async def close(self) -> None:
        """Stop the worker."""
        self._stop()

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Answer requests one after the other."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Response | ProviderError:
        if not isinstance(request, Entail):
            return Unsupported(f"symbolic does not answer {request.kind!r} requests")
        try:
            verdict = self._compute(request.premise, request.hypothesis)
        except (ValueError, OSError):
            self._stop()
            return BadReply("the worker that computes ended without a reply")
        if not isinstance(verdict, bool):
            return Unsupported(f"not decidable by computation: {verdict}")
        return Response(
            request.key, numbers=(float(verdict),), received_at=datetime.now(UTC).isoformat()
        )

    def _compute(self, premise: str, hypothesis: str) -> bool | str:
        """Return True, False or the reason for neither; a late worker is killed."""
        worker = self._started()
        assert worker.stdin is not None
        worker.stdin.write(json.dumps([premise, hypothesis]).encode() + b"\n")
        line = self._line(worker, self._limit_s)
        if line is None:
            self._stop()
            return f"it takes longer than {self._limit_s:g} s"
        verdict: bool | str = json.loads(line)
        return verdict

    @staticmethod
    def _line(worker: subprocess.Popen[bytes], limit_s: float) -> bytes | None:
        """Return the worker's next line, empty where it ended; None where it is late."""
        assert worker.stdout is not None
        ready, _, _ = select.select([worker.stdout], [], [], limit_s)
        return worker.stdout.readline() if ready else None

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the running worker, a new interpreter that imports nothing of this program."""
        if self._worker is not None and self._worker.poll() is None:
            return self._worker
        self._stop()
        path = os.pathsep.join(
            filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))
        )
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "cotlab.providers.symbolic_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        if self._line(self._worker, START_S) != b"ready\n":
            raise OSError("the worker does not start")
        return self._worker

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()
