"""The command line in the process of the tests."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from cotlab.cli.main import main


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


def cotlab(*words: str | Path, store: Path, code: int = 0, **env: str) -> Done:
    """The command line in this process, where its imports are paid for once; the exit code must be
    ``code``."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"COTLAB_STORE": str(store), **env}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["cotlab", *map(str, words)])
        patch.setattr(sys, "excepthook", sys.excepthook)
        try:
            main()
            ended: object = 0
        except SystemExit as end:
            ended = end.code or 0
    assert ended == code, (ended, out.getvalue(), err.getvalue())
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def override(words: Sequence[str], *more: str) -> tuple[str, ...]:
    """Return ``FLAG VALUE`` words with others in place of those of the same flag."""
    preserved = [
        word
        for flag, value in zip(words[::2], words[1::2], strict=True)
        if flag not in more
        for word in (flag, value)
    ]
    return (*preserved, *more)
