"""Keys of providers: where one is read, which hosts may get it, how text is kept free of it."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError
from cotlab.core.registry import PROVIDERS
from cotlab.providers.capabilities import provider_info


class _KeyVariables(Mapping[str, str]):
    """The variable of each provider with a key, read from what providers declare at each use."""

    def __getitem__(self, provider: str) -> str:
        if variable := provider_info(provider).key_variable:
            return variable
        raise KeyError(provider)

    def __iter__(self) -> Iterator[str]:
        return (name for name in PROVIDERS if provider_info(name).key_variable)

    def __len__(self) -> int:
        return sum(1 for _ in self)


KEY_VARIABLES: Mapping[str, str] = _KeyVariables()
"""Provider → environment variable. A key is read when a provider is opened and is never stored,
logged or shown."""
PLACEHOLDER_KEY = "none"
"""Sent where no key is needed, because the vendors' packages require one."""
SEND_KEY_TO_VARIABLE = "COTLAB_SEND_KEY_TO"
"""Variable with further hosts that may get a key, comma-separated. Only the user sets it, never a
file."""
VARIABLES_FROM_FILES: dict[str, tuple[str, str]] = {}
"""Variable → the file of the working folder that set it, and the value there."""
_MIN_KEY_CHARS = 4
"""A shorter value is no key, and may well occur in ordinary text."""
_LOCAL_HOST_PATTERN = re.compile(r"[a-z][a-z0-9_-]*")
"""A host without a dot, like gpu-box: not on the public network. Numbers are addresses."""
_KEY_PATTERN = re.compile(r"\bsk-[\w-]{8,}|\bAIza[\w-]{16,}|\bBearer\s+\S+")
"""What looks like a key: sk-proj-1a2b3c4d, AIzaSyA1b2c3d4e5f6g7h8, Bearer abc."""


_named_variable: ContextVar[str | None] = ContextVar("key_variable", default=None)
_named_variables: set[str] = set()
"""Variables besides those of ``KEY_VARIABLES`` from which a key was read."""


@contextmanager
def key_read_from(variable: str | None) -> Iterator[None]:
    """Read the key of the provider that is opened within from another variable.

    Parameters
    ----------
    variable : str or None
        None for the provider's own variable, "" for no key.
    """
    if variable:
        _named_variables.add(variable)
    token = _named_variable.set(variable)
    try:
        yield
    finally:
        _named_variable.reset(token)


def key_variable_of(provider: str) -> str:
    """Return the variable of the key of the provider that is being opened; "" without one."""
    variable = _named_variable.get()
    return KEY_VARIABLES.get(provider, "") if variable is None else variable


def key_for(provider: str, base_url: str | None) -> str:
    """Return the key of ``provider``; the placeholder where none is set and none is needed.

    Raises
    ------
    ConfigError
        If there is none, if it cannot be sent, or if ``base_url`` may not get it.
    """
    variable = key_variable_of(provider)
    if not variable:
        return PLACEHOLDER_KEY
    key = os.environ.get(variable, "").strip()
    if not key and _named_variable.get():
        raise ConfigError(
            f"{variable} is not set: set it in the environment, in .env or in"
            " .streamlit/secrets.toml of this folder."
        )
    if not key and (not provider_info(provider).key_required or is_private(base_url)):
        return PLACEHOLDER_KEY
    if not key:
        raise ConfigError(
            f"{provider} needs a key: set {variable} in the environment, in .env or in"
            " .streamlit/secrets.toml of this folder."
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{variable} holds a character that no key has: copy the key anew.")
    check_server(provider, base_url)
    return key


def check_server(
    provider: str,
    base_url: str | None,
    server_file: str = "",
    variable_file: str = "",
    role: str = "",
) -> None:
    """Check that the key that is set for ``provider`` may be sent to ``base_url``.

    A vendor's key goes to the vendor's hosts, the key of a provider without hosts to the server
    that the user names, both to the hosts of ``SEND_KEY_TO_VARIABLE``, and none over http to a
    public address.

    Parameters
    ----------
    provider : str
    base_url : str or None
        None for the vendor's own address.
    server_file : str
        The file that names the server; empty where the user does.
    variable_file : str
        The file that names the variable of the key; empty where the user or the provider does.
    role : str
        The role whose server it is, for messages; empty for the subject.

    Raises
    ------
    ConfigError
        If the key may not be sent there.
    """
    variable = key_variable_of(provider)
    key = os.environ.get(variable, "").strip()
    if not key or key == PLACEHOLDER_KEY:
        return
    if variable_file and file_of_variable(variable) != variable_file:
        raise ConfigError(
            f"{variable} is not sent to a server: {variable_file} names that variable. If that key"
            f" is meant, type --role {role or 'subject'}.key_variable={variable}."
        )
    if not base_url:
        return
    host = _host_name(base_url)
    if not host:
        raise ConfigError("--base-url takes http://HOST/PATH or https://HOST/PATH.")
    printable_host = "".join(filter(str.isprintable, host))
    allowed_hosts = {
        part.strip().lower() for part in os.environ.get(SEND_KEY_TO_VARIABLE, "").split(",")
    } - {""}
    permission_hint = (
        f"--send-key-to {printable_host}, or set {SEND_KEY_TO_VARIABLE}={printable_host} in the"
        " environment"
    )
    if hosts := _vendor_hosts(provider, variable):
        if host not in allowed_hosts and not any(_is_vendor_host(host, vendor) for vendor in hosts):
            raise ConfigError(
                f"{variable} is not sent to {printable_host}: the host of {provider} is"
                f" {' or '.join(hosts)}. If that server is to have this key, type"
                f" {permission_hint}; a server with a key of its own, or none, goes with --provider"
                " openai_compat."
            )
    elif (
        server_file
        and host not in allowed_hosts
        and not _is_loopback(host)
        and file_of_variable(variable) != server_file
    ):
        url = "".join(filter(str.isprintable, base_url))
        address_flag = f"--role {role}.base_url={url}" if role else f"--base-url {url}"
        raise ConfigError(
            f"{variable} is not sent to {printable_host}: {server_file} names that server. If it is"
            f" to have this key, type {address_flag} or {permission_hint}."
        )
    if (
        urlsplit(base_url).scheme == "http"
        and not is_private(base_url)
        and not _LOCAL_HOST_PATTERN.fullmatch(host)
    ):
        raise ConfigError(
            f"{variable} is not sent to {printable_host} over http, where others can read it on its"
            " way: write https://."
        )


def _vendor_hosts(provider: str, variable: str) -> tuple[str, ...]:
    """Return the hosts of the vendor whose key a variable holds; () where no vendor declares it."""
    if variable == KEY_VARIABLES.get(provider):
        return provider_info(provider).hosts
    return tuple(
        host
        for vendor, vendor_variable in KEY_VARIABLES.items()
        if vendor_variable == variable
        for host in provider_info(vendor).hosts
    )


def file_of_variable(variable: str) -> str:
    """Return the file of the folder that set a variable to the value that it has; "" for none."""
    file, value = VARIABLES_FROM_FILES.get(variable, ("", None))
    return file if value == os.environ.get(variable) else ""


def file_naming_server(base_url: str | None) -> str:
    """Return the file of the folder that set COTLAB_BASE_URL to this address; "" without one."""
    is_named = bool(base_url) and base_url == os.environ.get("COTLAB_BASE_URL")
    return file_of_variable("COTLAB_BASE_URL") if is_named else ""


def is_private(url: str | None) -> bool:
    """Return whether an address is this machine or in a private network."""
    host = _host_name(url or "")
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def _is_vendor_host(host: str, vendor_host: str) -> bool:
    """Return whether a host is the vendor's or below it, like eu.api.openai.com."""
    return host == vendor_host or host.endswith(f".{vendor_host}")


def _host_name(url: str) -> str:
    """Return the host of an address in lower case; "" where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def mask_known_keys(text: str) -> str:
    """Replace every key of the environment in ``text``, which a model wrote."""
    for variable in {*KEY_VARIABLES.values(), *_named_variables}:
        key = os.environ.get(variable, "").strip()
        if len(key) >= _MIN_KEY_CHARS and key != PLACEHOLDER_KEY:
            text = text.replace(key, "***")
    return text


def mask_keys(text: str) -> str:
    """Replace every known key, and whatever looks like one, in ``text``, which a server wrote."""
    text = mask_known_keys(text)
    return _KEY_PATTERN.sub("***", text)
