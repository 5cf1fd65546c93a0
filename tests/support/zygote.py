"""A process that has imported everything and forks a child for each command line: runs that start
in milliseconds and can be killed. One JSON object a line comes in: ``{"words": […], "env": {…},
"output": FILE, "errors": FILE}`` starts a run and answers with its process number, ``{"wait":
PID}`` waits for its end and answers with its exit code (a signal's number below zero).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

import scipy.stats  # noqa: F401 - imported once, for all children
import statsmodels.stats.proportion  # noqa: F401

from cotlab.cli import screen  # noqa: F401
from cotlab.cli.main import build_command, main
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.run import launch  # noqa: F401
from cotlab.run.resolved import ResolvedRun
from cotlab.run.transport.limits import Limits

LIMITS = ResolvedRun.__dict__["limits"].func
SDK_BY_PROVIDER = {
    "openai": "openai",
    "openai_compat": "openai",
    "anthropic": "anthropic",
    "google": "google.genai",
}


def soon(run: ResolvedRun) -> Limits:
    """The limits of a run, with a first wait that a test can wait for."""
    return replace(LIMITS(run), first_wait_s=0.02, poll_interval_s=0.05)


def child(job: dict[str, Any]) -> None:
    for stream, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.update(job["env"])
    sys.argv = ["cotlab", *job["words"]]
    code = 3
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    ResolvedRun.limits = property(soon)  # type: ignore[assignment]
    for name in SCORERS:
        SCORERS[name]
    build_command()
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            _, status = os.waitpid(job["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        for name in {"openai", "anthropic", "google", "openai_compat", "echo", "scripted"} & set(
            job["words"]
        ):
            PROVIDERS[name]  # once, for all children; what needs torch stays for who asks
            if name in SDK_BY_PROVIDER:
                import_module(SDK_BY_PROVIDER[name])
        if (pid := os.fork()) == 0:
            child(job)
        print(pid, flush=True)
