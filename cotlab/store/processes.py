"""Which process wrote a row of the log: its number, and the machine, boot and PID namespace in which that number counts."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path
from uuid import uuid4


@cache
def this_machine() -> str:
    """Return where the process numbers of this process count, as ``HOST/BOOT/NAMESPACE``.

    Where Linux does not show the boot or the namespace, the text is unlike that of any other
    process, so that nobody takes a number from there for one of their own. Other systems have no
    PID namespaces: the host is enough.
    """
    host = platform.node()
    if sys.platform != "linux":
        return f"{host}//"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{host}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{host}/{uuid4().hex}/"


def host_of(machine: str | None) -> str:
    """Return the host's name in a text of ``this_machine``; "another machine" where an older version wrote none."""
    return (machine or "").partition("/")[0] or "another machine"


def is_alive(pid: int) -> bool:
    """Return whether a process of this number runs on this machine; one that ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True


def may_run(machine: str | None, pid: int, age_s: float, silent_s: float) -> bool:
    """Return whether the process that wrote a row may still run.

    Parameters
    ----------
    machine : str or None
        What ``this_machine`` returned there; None where an older version wrote the row.
    pid : int
    age_s : float, seconds
        Time since the row was written, by the log's clock. Below zero if the clock was set back
        since.
    silent_s : float, seconds
        A process that writes counts as gone after so long without a word. Elsewhere the time alone
        decides, in both directions: a time that lies further ahead is of a clock that was set back,
        and no word of a process that runs now.
    """
    if machine == this_machine():
        return age_s < silent_s and is_alive(pid)
    return abs(age_s) < silent_s
