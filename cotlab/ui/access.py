"""Who uses the dashboard, and what their role allows. Every write asks ``need`` first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import streamlit as st
from streamlit import runtime

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.core.resources import checkout
from cotlab.run.secrets import access_settings
from cotlab.ui.identity import LOCAL, ROLES, Client, Forbidden, LoggedOut, Person, Role, identify
from cotlab.ui.text import as_code, shorten

__all__ = [
    "LOCAL",
    "ROLES",
    "Forbidden",
    "LoggedOut",
    "Person",
    "Role",
    "guard",
    "may",
    "need",
    "only",
    "person",
    "login_providers",
    "login_settings",
]


class Control(TypedDict):
    """Arguments of a widget that some users may not use."""

    disabled: bool
    """Whether the control is greyed out."""
    help: str | None
    """Tooltip; the reason where it is disabled."""


def person() -> Person:
    """Return the person who uses the page now.

    Their name comes from the login or from the proxy's header. Without either, they work on
    this machine and are its admin.

    Raises
    ------
    Forbidden
        If this client may not see anything (``LoggedOut`` where logging in would help).
    ConfigError
        If the settings of the login contradict each other or cannot be trusted.
    """
    typed = str(st.session_state.get("local_rater") or "")
    if not _served():
        return Person(typed or LOCAL, "admin")
    return identify(_client(), _claims(), login_settings(), typed)


def login_settings() -> dict[str, str]:
    """Return the current settings of login and roles. One of them is a secret."""
    return access_settings(checkout() or Path.cwd())


def may(role: Role) -> bool:
    """Return whether the current user has at least this role."""
    try:
        return ROLES.index(person().role) >= ROLES.index(role)
    except (Forbidden, ConfigError):
        return False


def need(role: Role) -> Person:
    """Return the current user, who must have at least this role.

    Raises
    ------
    Forbidden
        If they do not.
    """
    who = person()
    if ROLES.index(who.role) < ROLES.index(role):
        raise Forbidden(f"{shorten(who.name)} is {who.role} here; {_reason(role)}")
    return who


def only(role: Role, *, disabled: bool = False, help: str | None = None) -> Control:  # noqa: A002
    """Return ``disabled`` and ``help`` for a control that needs at least ``role``.

    Others see it greyed out, with the reason. This does not protect anything: the control's
    action must call ``need`` itself.
    """
    if may(role):
        return {"disabled": disabled, "help": help}
    return {"disabled": True, "help": f"T{_reason(role)[1:]}"}


def guard() -> None:
    """Let permitted users go on; show all others how to log in or why they may not, and stop."""
    try:
        who = person()
    except LoggedOut as error:
        st.title("cotlab")
        _offer_login(str(error))
        st.stop()
    except CotlabError as error:
        st.title("cotlab")
        st.error(as_code(str(error)))
        st.stop()
    if who.source == "open":
        st.warning(f"No login is set up: everybody who reaches this address is {who.role} here.")
    if who.source != "local":
        st.sidebar.text(f"{shorten(who.name, 40)}, {who.role}")
    if who.source == "login":
        st.sidebar.button("Log out", icon=":material/logout:", on_click=st.logout)


def login_providers() -> list[str]:
    """Return the logins in ``[auth]`` of secrets.toml by name; "" is the one without a name."""
    auth: Any = st.secrets.get("auth", {})
    named = [
        str(name)
        for name, section in auth.items()
        if isinstance(section, Mapping) and "client_id" in section
    ]
    return ([""] if "client_id" in auth else []) + named


def _offer_login(message: str) -> None:
    st.info(message)
    for name in login_providers():
        label = f"Log in with {as_code(shorten(name, 40))}" if name else "Log in"
        if st.button(label, type="primary", icon=":material/login:", key=f"login-{name}"):
            st.login(name or None)


def _reason(role: Role) -> str:
    return f"this needs the role {role}. Ask an admin of this dashboard."


def _served() -> bool:
    """Return whether a server runs the page for a client.

    A page that a program runs for itself (a test) has that program's rights.
    """
    return runtime.exists() and type(runtime.get_instance()) is runtime.Runtime


def _client() -> Client | None:
    """Return the connection of the current request; None once it has ended."""
    headers, address = st.context.headers, st.context.ip_address
    header_values = {name: headers.get_all(name) for name in headers}
    return Client(address, header_values) if header_values else None


def _claims() -> Mapping[str, Any]:
    return st.user.to_dict()
