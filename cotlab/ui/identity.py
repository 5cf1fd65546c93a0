"""The identity and role of a client, from its connection, login and settings. No widgets."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.core.text_safety import printable_line

Role = Literal["viewer", "labeller", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "labeller", "admin")
LOCAL_NAME, GUEST_NAME = "local", "guest"
"""Names of users without a login: on this machine, and from elsewhere."""
SECRET_HEADER = "X-Cotlab-Proxy-Secret"
"""Header with which the proxy proves that a request came through it."""
FORWARDING_HEADERS = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-User",
    "X-Real-Ip",
    "Via",
)
"""A request with one of these headers came through a proxy, whatever its address."""
MIN_SECRET_CHARS, MAX_NAME_CHARS = 16, 200


class Forbidden(CotlabError):
    """The user does not have the role that this needs."""


class LoginRequired(Forbidden):
    """A login is set up, and this client has not logged in."""


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the dashboard."""

    name: str
    """Name that the login or the proxy gives, or that the user typed."""
    role: Role
    """What they may do; a role includes those before it."""
    source: Literal["local", "login", "header", "open"] = "local"
    """Where the name comes from; "open" means that no login is asked for."""


@dataclass(frozen=True, slots=True)
class Client:
    """A connection to the dashboard."""

    address: str | None
    """Address that the client connects from; None is this machine."""
    headers: Mapping[str, Sequence[str]]
    """Every value of each header of the request."""
    allowed_origins: Sequence[str] = ()
    """Further origins whose pages may connect, as ``server.corsAllowedOrigins`` lists them."""

    def header_values(self, name: str) -> list[str]:
        """Return all values of a header; its case does not matter."""
        return [
            value
            for header, values in self.headers.items()
            if header.lower() == name.lower()
            for value in values
        ]


def identify(
    client: Client | None,
    claims: Mapping[str, Any],
    settings: Mapping[str, str],
    typed_name: str = "",
) -> Person:
    """Return who a client is, and their role.

    Parameters
    ----------
    client : Client or None
        None where the connection has ended.
    claims : mapping
        Claims of Streamlit's login; it has ``is_logged_in`` only where a login is set up.
    settings : mapping
        ``COTLAB_…`` by name; an empty or absent one is not set.
    typed_name : str
        The name that a user without a login typed.

    Raises
    ------
    LoginRequired
        If a login is set up and this client has not logged in.
    Forbidden
        If the client does not come through the trusted proxy, is on another machine while no
        login is set up, or is a page of another address.
    ConfigError
        If the settings contradict each other or cannot be trusted: then nobody is let in.
    """
    header = settings.get("COTLAB_TRUSTED_HEADER", "").strip()
    secret = settings.get("COTLAB_PROXY_SECRET", "").strip()
    has_login = "is_logged_in" in claims
    _validate_login(header, secret, has_login)
    if client is None or not client.headers:
        raise Forbidden("This connection has ended. Load the page again.")
    if has_login:
        return _person_from_login(claims, settings)
    _validate_origin(client)
    if header:
        return _person_from_proxy(client, header, secret, settings)
    if _is_local_client(client):
        return Person(typed_name or LOCAL_NAME, "admin")
    return _person_without_login(settings, typed_name)


def role_without_login(settings: Mapping[str, str]) -> Role | None:
    """Return the role of everybody on another machine without a login; None lets nobody in.

    None is the default.

    Raises
    ------
    ConfigError
        If COTLAB_OPEN names no role.
    """
    value = settings.get("COTLAB_OPEN", "").strip().lower()
    if value in ("", "0"):
        return None
    role = "admin" if value == "1" else value
    for candidate in ROLES:
        if role == candidate:
            return candidate
    raise ConfigError(
        f"COTLAB_OPEN={value!r} is no role. It is empty, or one of {', '.join(ROLES)} (1 means"
        " admin)."
    )


def listed_role(name: str, settings: Mapping[str, str]) -> Role:
    """Return the highest role whose list has this name; ``*`` lists everybody who is logged in."""
    for role, variable in (("admin", "COTLAB_ADMINS"), ("labeller", "COTLAB_LABELLERS")):
        listed_names = {
            normalise_name(part) for part in settings.get(variable, "").split(",") if part.strip()
        }
        if listed_names & {"*", normalise_name(name)}:
            return "admin" if role == "admin" else "labeller"
    return "viewer"


def normalise_name(name: str) -> str:
    """Return a name as it is compared: ASCII letters in lower case, all others unchanged.

    Some other letters become ASCII in lower case (the Kelvin sign becomes k), so that one user
    would become another.
    """
    stripped_name = name.strip()
    return stripped_name.lower() if stripped_name.isascii() else stripped_name


def _validate_login(header: str, secret: str, has_login: bool) -> None:
    if header and has_login:
        raise ConfigError(
            "Two logins are set up: COTLAB_TRUSTED_HEADER and [auth] of secrets.toml. Keep one of"
            " them."
        )
    if header and len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(
            "COTLAB_TRUSTED_HEADER is set, but COTLAB_PROXY_SECRET has fewer than"
            f" {MIN_SECRET_CHARS} characters. Without it, whoever reaches this address could claim"
            f" any name. Set it, and let the proxy send it as {SECRET_HEADER}."
        )
    if secret and not header:
        raise ConfigError(
            "COTLAB_PROXY_SECRET is set, but COTLAB_TRUSTED_HEADER does not say which header names"
            " the user."
        )


def _person_from_login(claims: Mapping[str, Any], settings: Mapping[str, str]) -> Person:
    if claims.get("is_logged_in") is not True:
        raise LoginRequired("Log in to use this dashboard.")
    is_unverified = claims.get("email_verified") is False or claims.get("email_verified") == "false"
    name_claim = claims.get("sub") if is_unverified else claims.get("email") or claims.get("sub")
    name = _validate_name(str(name_claim or ""), "The login")
    return Person(name, listed_role(name, settings), "login")


def _person_from_proxy(
    client: Client, header: str, secret: str, settings: Mapping[str, str]
) -> Person:
    sent_secrets = client.header_values(SECRET_HEADER)
    if len(sent_secrets) != 1 or not hmac.compare_digest(sent_secrets[0].encode(), secret.encode()):
        raise Forbidden(
            "This dashboard is reached through its proxy only: this request does not come from"
            " there."
        )
    names = client.header_values(header)
    if len(names) != 1:
        raise Forbidden(f"The proxy names {len(names)} users in {header}; it must name one.")
    name = _validate_name(names[0], "The proxy")
    return Person(name, listed_role(name, settings), "header")


def _validate_name(value: str, source: str) -> str:
    name = normalise_name(value)
    if (
        not name
        or name == "*"
        or len(name) > MAX_NAME_CHARS
        or "," in name
        or not name.isprintable()
    ):
        raise Forbidden(
            f"{source} gives no name that can be used (1 to {MAX_NAME_CHARS} printable characters"
            " without commas)."
        )
    return name


def _validate_origin(client: Client) -> None:
    """Refuse pages of other addresses; a cookie of Streamlit's login names its own.

    Raises
    ------
    Forbidden
        If a browser's page of another host or port opened the connection.
    """
    request_hosts = client.header_values("Host") + client.header_values("X-Forwarded-Host")
    for origin in client.header_values("Origin"):
        if origin not in client.allowed_origins and origin.partition("://")[2] not in request_hosts:
            raise Forbidden(
                f"A page of {printable_line(origin[:200])} may not use this dashboard: open the"
                " dashboard's own address, or list that page's in server.corsAllowedOrigins of"
                " .streamlit/config.toml."
            )


def _is_local_client(client: Client) -> bool:
    """Return whether a client is on this machine, by address, host name and absence of a proxy."""
    hosts = client.header_values("Host")
    return (
        (client.address is None or _is_loopback(client.address))
        and len(hosts) == 1
        and _is_loopback(_host_name(hosts[0]))
        and not any(client.header_values(name) for name in FORWARDING_HEADERS)
    )


def _host_name(value: str) -> str:
    try:
        return urlsplit(f"//{value}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped_ipv4 = getattr(address, "ipv4_mapped", None)
    return bool((mapped_ipv4 or address).is_loopback)


def _person_without_login(settings: Mapping[str, str], typed_name: str) -> Person:
    role = role_without_login(settings)
    if role is None:
        raise Forbidden(
            "This dashboard has no login, so only the machine it runs on may use it. Set up a login"
            " (README, Sharing), or set COTLAB_OPEN to the role that everybody who reaches this"
            " address shall have."
        )
    return Person(typed_name or GUEST_NAME, role, "open")
