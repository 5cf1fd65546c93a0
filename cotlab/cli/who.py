"""Who types: the name that is kept with a decision, a policy, a calibrator, a check or a queue."""

from __future__ import annotations

import getpass


def acting_user(by: str | None) -> str:
    """The name that was given, else that of whoever is logged in here; never an empty one."""
    if by is not None and by.strip():
        return by.strip()
    try:
        return getpass.getuser().strip() or "command line"
    except (OSError, KeyError):  # a container's user may have no name
        return "command line"
