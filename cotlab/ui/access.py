"""Who looks at the dashboard, and what they may change. Every write asks here, on the server, when it happens."""

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
    """What a widget is told that some may not use."""

    disabled: bool
    help: str | None


def person() -> Person:
    """Who asks now: by the login, by the proxy's header, or, without either, whoever works on this machine: its admin.

    Raises
    ------
    Forbidden
        If this client may not see anything (``LoggedOut`` where logging in would help).
    ConfigError
        If the settings of the login cannot be trusted.
    """
    typed = str(st.session_state.get("local_rater") or "")
    if not _served():
        return Person(typed or LOCAL, "admin")
    return identify(_client(), _claims(), login_settings(), typed)


def login_settings() -> dict[str, str]:
    """The settings that say who may do what, as they stand now; one of them is a secret."""
    return access_settings(checkout() or Path.cwd())


def may(role: Role) -> bool:
    """Whether whoever asks now has at least this role."""
    try:
        return ROLES.index(person().role) >= ROLES.index(role)
    except (Forbidden, ConfigError):
        return False


def need(role: Role) -> Person:
    """Whoever asks now, who must have at least this role.

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
    """``disabled`` and ``help`` of a control that takes at least ``role``: others see it greyed, with the reason.

    It draws; it does not guard. What the control does must call ``need`` itself.
    """
    if may(role):
        return {"disabled": disabled, "help": help}
    return {"disabled": True, "help": f"T{_reason(role)[1:]}"}


def guard() -> None:
    """Let whoever may look go on; all others see how to log in, or why they may not, and the page ends here."""
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
    """The names of the logins in ``[auth]`` of secrets.toml; "" is the one without a name."""
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
    """Whether a server runs the page for a client. A page that a program runs for itself has that program's rights."""
    return runtime.exists() and type(runtime.get_instance()) is runtime.Runtime


def _client() -> Client | None:
    """The connection that asks; None once it has ended."""
    headers, address = st.context.headers, st.context.ip_address
    header_values = {name: headers.get_all(name) for name in headers}
    return Client(address, header_values) if header_values else None


def _claims() -> Mapping[str, Any]:
    return st.user.to_dict()
