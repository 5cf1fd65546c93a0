"""Who uses the dashboard, and what their role allows. Every write asks ``require_role`` first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import unquote

import streamlit as st
from streamlit import runtime

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.core.resources import checkout_root
from cotlab.run.secrets import access_settings
from cotlab.ui.identity import (
    LOCAL_NAME,
    ROLES,
    Client,
    Forbidden,
    LoginRequired,
    Person,
    Role,
    identify,
)
from cotlab.ui.text import escape_markdown, shorten

__all__ = [
    "Forbidden",
    "Person",
    "Role",
    "require_access",
    "has_role",
    "require_role",
    "role_control",
    "current_person",
]


RATER_COOKIE = "cotlab_rater"
"""Cookie with the name that a user without a login typed, percent-encoded."""
MAX_TYPED_CHARS = 60
_TYPED_NAME_KEY = "local_rater"


class ControlState(TypedDict):
    """Arguments of a widget that some users may not use."""

    disabled: bool
    """Whether the control is greyed out."""
    help: str | None
    """Tooltip; the reason where it is disabled."""


def current_person() -> Person:
    """Return the person who uses the page now.

    Their name comes from the login or from the proxy's header. Without either, they work on
    this machine and are its admin.

    Raises
    ------
    Forbidden
        If this client may not see anything (``LoginRequired`` where logging in would help).
    ConfigError
        If the settings of the login contradict each other or cannot be trusted.
    """
    if not _is_served():
        return Person(typed_name() or LOCAL_NAME, "admin")
    return identify(_client(), st.user.to_dict(), login_settings(), typed_name())


def typed_name() -> str:
    """Return the name that a user without a login typed here or in an earlier visit; else "".

    The browser keeps it in the cookie ``RATER_COOKIE``, which proves as little as typing it does.
    """
    if _TYPED_NAME_KEY in st.session_state:
        return str(st.session_state[_TYPED_NAME_KEY])
    return clean_name(unquote(_cookie_name())) or ""


def _cookie_name() -> str:
    return st.context.cookies.get(RATER_COOKIE, "")


def set_typed_name(name: str) -> None:
    """Set the name of a user without a login; "" forgets it."""
    st.session_state[_TYPED_NAME_KEY] = name


def clean_name(text: str) -> str | None:
    """Return a typed name without needless spaces; None where it is no name."""
    name = " ".join(text.split())
    return name if name.isprintable() and 0 < len(name) <= MAX_TYPED_CHARS else None


def login_settings() -> dict[str, str]:
    """Return the current settings of login and roles. One of them is a secret."""
    return access_settings(checkout_root() or Path.cwd())


def has_role(role: Role) -> bool:
    """Return whether the current user has at least this role."""
    try:
        return ROLES.index(current_person().role) >= ROLES.index(role)
    except (Forbidden, ConfigError):
        return False


def require_role(role: Role) -> Person:
    """Return the current user, who must have at least this role.

    Raises
    ------
    Forbidden
        If they do not.
    """
    user = current_person()
    if ROLES.index(user.role) < ROLES.index(role):
        raise Forbidden(f"{shorten(user.name)} is {user.role} here; {_missing_role_text(role)}")
    return user


def role_control(role: Role, *, disabled: bool = False, help: str | None = None) -> ControlState:  # noqa: A002
    """Return ``disabled`` and ``help`` for a control that needs at least ``role``.

    Others see it greyed out, with the reason. This does not protect anything: the control's
    action must call ``require_role`` itself.
    """
    if has_role(role):
        return {"disabled": disabled, "help": help}
    return {"disabled": True, "help": f"T{_missing_role_text(role)[1:]}"}


def require_access() -> None:
    """Let permitted users go on; show all others how to log in or why they may not, and stop."""
    try:
        user = current_person()
    except LoginRequired as error:
        st.title("cotlab")
        _render_login_buttons(str(error))
        st.stop()
    except CotlabError as error:
        st.title("cotlab")
        st.error(escape_markdown(str(error)))
        st.stop()
    if user.source == "open":
        st.warning(f"No login is set up: everybody who reaches this address is {user.role} here.")
    if user.source != "local":
        st.sidebar.text(f"{shorten(user.name, 40)}, {user.role}")
    if user.source == "login":
        st.sidebar.button("Log out", icon=":material/logout:", on_click=st.logout)


def login_providers() -> list[str]:
    """Return the logins in ``[auth]`` of secrets.toml by name; "" is the one without a name."""
    auth_settings: Any = st.secrets.get("auth", {})
    named_providers = [
        str(name)
        for name, section in auth_settings.items()
        if isinstance(section, Mapping) and "client_id" in section
    ]
    return ([""] if "client_id" in auth_settings else []) + named_providers


def _render_login_buttons(message: str) -> None:
    st.info(message)
    for name in login_providers():
        label = f"Log in with {escape_markdown(shorten(name, 40))}" if name else "Log in"
        if st.button(label, type="primary", icon=":material/login:", key=f"login-{name}"):
            st.login(name or None)


def _missing_role_text(role: Role) -> str:
    return f"this needs the role {role}. Ask an admin of this dashboard."


def _is_served() -> bool:
    """Return whether a server runs the page for a client.

    A page that a program runs for itself (a test) has that program's rights.
    """
    return runtime.exists() and type(runtime.get_instance()) is runtime.Runtime


def _client() -> Client | None:
    """Return the connection of the current request; None once it has ended."""
    headers, address = st.context.headers, st.context.ip_address
    header_values = {name: headers.get_all(name) for name in headers}
    allowed_origins = st.get_option("server.corsAllowedOrigins")
    return Client(address, header_values, allowed_origins) if header_values else None
