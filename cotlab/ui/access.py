"""Who looks at the dashboard, and what they may change. Every write asks here, on the server, when it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from cotlab.core.errors import CotlabError

Role = Literal["viewer", "labeller", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "labeller", "admin")
LOCAL = "local"
"""Who works on this machine without a login."""


class Forbidden(CotlabError):
    """Somebody without the role for it tried to change something."""


@dataclass(frozen=True, slots=True)
class Person:
    """``name`` as the login gives it, ``source`` where it comes from: local, login or header."""

    name: str
    role: Role
    source: Literal["local", "login", "header"] = "local"


def person() -> Person:
    """Who asks now. Without a login, whoever reaches this machine's own address is its admin."""
    return Person(str(st.session_state.get("local_rater") or LOCAL), "admin")


def may(role: Role) -> bool:
    """Whether whoever asks now has at least this role."""
    return ROLES.index(person().role) >= ROLES.index(role)


def need(role: Role) -> Person:
    """Whoever asks now, who must have at least this role.

    Raises
    ------
    Forbidden
        If they do not.
    """
    who = person()
    if ROLES.index(who.role) < ROLES.index(role):
        raise Forbidden(f"{who.name} is {who.role} here; this needs the role {role}. Ask an admin of this dashboard.")
    return who
