"""Keys of providers: where one is read, which hosts may get it, how text is kept free of it."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError
from cotlab.core.registry import PROVIDERS
from cotlab.providers.capabilities import provider_info


class _KeyVariables(Mapping[str, str]):
    """The variable of each provider with a key, read from what providers declare at each use."""

    def __getitem__(self, provider: str) -> str:
        if name := provider_info(provider).key_variable:
            return name
        raise KeyError(provider)

    def __iter__(self) -> Iterator[str]:
        return (name for name in PROVIDERS if provider_info(name).key_variable)

    def __len__(self) -> int:
        return sum(1 for _ in self)


KEY_VARIABLES: Mapping[str, str] = _KeyVariables()
"""Provider → environment variable. A key is read when a provider is opened and is never stored,
logged or shown."""
PLACEHOLDER = "none"
"""Sent where no key is needed, because the vendors' packages require one."""
SEND_TO = "COTLAB_SEND_KEY_TO"
"""Variable with further hosts that may get a key, comma-separated. Only the user sets it, never a
file."""
FROM_FILES: dict[str, tuple[str, str]] = {}
"""Variable → the file of the working folder that set it, and the value there."""
_MIN_KEY_CHARS = 4
"""A shorter value is no key, and may well occur in ordinary text."""
_LOCAL_NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""A host without a dot, like gpu-box: not on the public network. Numbers are addresses."""
_KEY_PATTERN = re.compile(r"\bsk-[\w-]{8,}|\bAIza[\w-]{16,}|\bBearer\s+\S+")
"""What looks like a key: sk-proj-1a2b3c4d, AIzaSyA1b2c3d4e5f6g7h8, Bearer abc."""


def key_for(provider: str, base_url: str | None) -> str:
    """Return the key of ``provider``; the placeholder where none is set and none is needed.

    Raises
    ------
    ConfigError
        If there is none, if it cannot be sent, or if ``base_url`` may not get it.
    """
    name = KEY_VARIABLES[provider]
    key = os.environ.get(name, "").strip()
    if not key and (not provider_info(provider).key_required or is_private(base_url)):
        return PLACEHOLDER
    if not key:
        raise ConfigError(
            f"{provider} needs a key: set {name} in the environment, in .env or in"
            " .streamlit/secrets.toml of this folder."
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{name} holds a character that no key has: copy the key anew.")
    check_server(provider, base_url)
    return key


def check_server(provider: str, base_url: str | None, file: str = "") -> None:
    """Check that the key that is set for ``provider`` may be sent to ``base_url``.

    A vendor's key goes to the vendor's hosts, the key of a provider without hosts to the server
    that the user names, both to the hosts of ``SEND_TO``, and none over http to a public address.

    Parameters
    ----------
    provider : str
    base_url : str or None
        None for the vendor's own address.
    file : str
        The file that names the server; empty where the user does.

    Raises
    ------
    ConfigError
        If the key may not be sent there.
    """
    name = KEY_VARIABLES.get(provider, "")
    key = os.environ.get(name, "").strip()
    if not base_url or not key or key == PLACEHOLDER:
        return
    host = _host(base_url)
    if not host:
        raise ConfigError("--base-url takes http://HOST/PATH or https://HOST/PATH.")
    target = "".join(filter(str.isprintable, host))
    allowed = {part.strip().lower() for part in os.environ.get(SEND_TO, "").split(",")} - {""}
    type_it = f"--send-key-to {target}, or set {SEND_TO}={target} in the environment"
    if hosts := provider_info(provider).hosts:
        if host not in allowed and not any(_is_below(host, vendor) for vendor in hosts):
            raise ConfigError(
                f"{name} is not sent to {target}: the host of {provider} is {' or '.join(hosts)}. If"
                f" that server is to have this key, type {type_it}; a server with a key of its own,"
                " or none, goes with --provider openai_compat."
            )
    elif file and host not in allowed and not _is_loopback(host):
        with_key = file == named_by_file(base_url) and FROM_FILES.get(name) == (
            file,
            os.environ[name],
        )
        if not with_key:
            url = "".join(filter(str.isprintable, base_url))
            raise ConfigError(
                f"{name} is not sent to {target}: {file} names that server. If it is to have this"
                f" key, type --base-url {url} or {type_it}."
            )
    if (
        urlsplit(base_url).scheme == "http"
        and not is_private(base_url)
        and not _LOCAL_NAME.fullmatch(host)
    ):
        raise ConfigError(
            f"{name} is not sent to {target} over http, where others can read it on its way: write"
            " https://."
        )


def named_by_file(base_url: str | None) -> str:
    """Return the file of the folder that set COTLAB_BASE_URL to this address; "" without one."""
    file, value = FROM_FILES.get("COTLAB_BASE_URL", ("", ""))
    return file if value and value == base_url == os.environ.get("COTLAB_BASE_URL") else ""


def is_private(url: str | None) -> bool:
    """Return whether an address is this machine or in a private network."""
    host = _host(url or "")
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def _is_below(host: str, vendor: str) -> bool:
    """Return whether a host is the vendor's or below it, like eu.api.openai.com."""
    return host == vendor or host.endswith(f".{vendor}")


def _host(url: str) -> str:
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


def without_known_keys(text: str) -> str:
    """Replace every key of the environment in ``text``, which a model wrote."""
    for name in KEY_VARIABLES.values():
        key = os.environ.get(name, "").strip()
        if len(key) >= _MIN_KEY_CHARS and key != PLACEHOLDER:
            text = text.replace(key, "***")
    return text


def without_keys(text: str) -> str:
    """Replace every known key, and whatever looks like one, in ``text``, which a server wrote."""
    text = without_known_keys(text)
    return _KEY_PATTERN.sub("***", text)
