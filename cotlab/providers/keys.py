"""Which variable holds the key of which vendor, when one is needed, and how a text is kept free of keys."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from cotlab.core.errors import ConfigError

KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openai_compat": "OPENAI_COMPAT_API_KEY",
}
"""Provider → environment variable. A key is read when a provider is opened and is never stored,
logged or shown."""
PLACEHOLDER = "none"
"""Stands in for a key where none is needed: the vendors' packages insist on one."""
SEND_TO = "COTLAB_SEND_KEY_TO"
"""Hosts, with commas between them, that a vendor's key may go to besides the vendor's own: the
user's word, never a file's."""
HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "google": "generativelanguage.googleapis.com",
}
"""Provider → the vendor's own host; hosts below it, like eu.api.openai.com, are its own too."""
FROM_FILES: dict[str, tuple[str, str]] = {}
"""Variable → the file of the folder that it was read from, and its value there."""
_MIN_KEY_CHARS = 4
"""What is shorter is no key, and may well be a word of the text."""
_LOCAL_NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""A host without a dot, like gpu-box: no name of the public network. Numbers are addresses."""
_KEY_PATTERN = re.compile(r"\bsk-[\w-]{8,}|\bAIza[\w-]{16,}|\bBearer\s+\S+")


def key_for(provider: str, base_url: str | None) -> str:
    """The key that opens ``provider``; the placeholder for a server at home, and for one that only may want a key.

    Raises
    ------
    ConfigError
        If there is none, if it cannot be sent, or if ``base_url`` is no place for it.
    """
    name = KEY_VARIABLES[provider]
    key = os.environ.get(name, "").strip()
    if not key and (provider == "openai_compat" or is_private(base_url)):
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

    A vendor's key goes to the vendor's hosts, the key of ``openai_compat`` to the server that the
    user names, both to the hosts of ``SEND_TO``, and none over http to a public address.

    Parameters
    ----------
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
    shown = "".join(filter(str.isprintable, host))
    sent_to = {part.strip().lower() for part in os.environ.get(SEND_TO, "").split(",")} - {""}
    type_it = f"--send-key-to {shown}, or set {SEND_TO}={shown} in the environment"
    if (own := HOSTS.get(provider)) is not None:
        if host != own and not host.endswith(f".{own}") and host not in sent_to:
            raise ConfigError(
                f"{name} is not sent to {shown}: the host of {provider} is {own}. If that server is"
                f" to have this key, type {type_it}; a server with a key of its own, or none, goes"
                " with --provider openai_compat."
            )
    elif file and host not in sent_to and not _is_loopback(host):
        with_key = file == named_by_file(base_url) and FROM_FILES.get(name) == (
            file,
            os.environ[name],
        )
        if not with_key:
            url = "".join(filter(str.isprintable, base_url))
            raise ConfigError(
                f"{name} is not sent to {shown}: {file} names that server. If it is to have this"
                f" key, type --base-url {url} or {type_it}."
            )
    if (
        urlsplit(base_url).scheme == "http"
        and not is_private(base_url)
        and not _LOCAL_NAME.fullmatch(host)
    ):
        raise ConfigError(
            f"{name} is not sent to {shown} over http, where others can read it on its way: write"
            " https://."
        )


def named_by_file(base_url: str | None) -> str:
    """The file of the folder whose COTLAB_BASE_URL is this address; empty where none says so."""
    file, value = FROM_FILES.get("COTLAB_BASE_URL", ("", ""))
    return file if value and value == base_url == os.environ.get("COTLAB_BASE_URL") else ""


def is_private(url: str | None) -> bool:
    """Whether an address is this machine or a private network."""
    host = _host(url or "")
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def _host(url: str) -> str:
    """The host of an address in lower case; empty where it has none."""
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
    """``text`` with every key of the environment replaced: for what a model says."""
    for name in KEY_VARIABLES.values():
        key = os.environ.get(name, "").strip()
        if len(key) >= _MIN_KEY_CHARS and key != PLACEHOLDER:
            text = text.replace(key, "***")
    return text


def without_keys(text: str) -> str:
    """``text`` with every known key, and whatever looks like one, replaced: for words that come from a server."""
    text = without_known_keys(text)
    return _KEY_PATTERN.sub("***", text)
