"""How this copy of cotlab was installed: its distribution, and the command that adds an extra."""

from __future__ import annotations

import importlib.metadata as metadata
import json
from shlex import quote
from urllib.parse import unquote, urlsplit

from cotlab.core.resources import checkout_root

DISTRIBUTION = "cotlab-trust"
"""The project's name for pip. A package index has another project under the name cotlab."""


def install_command(extra: str = "") -> str:
    """Return the command that installs this copy again, with an extra.

    The command names the checkout or the wheel by its path, never a project of a package index.
    """
    checkout = checkout_root()
    origin = f"-e {quote(_with_extra(str(checkout), extra))}" if checkout else None
    return f"pip install {origin or quote(_with_extra(_wheel_path(), extra))}"


def other_owners() -> list[str]:
    """Return the other distributions, like "cotlab 0.12.0", that hold a package named cotlab."""
    names = metadata.packages_distributions().get("cotlab", [])
    return [f"{name} {metadata.version(name)}" for name in set(names) if name != DISTRIBUTION]


def _with_extra(origin: str, extra: str) -> str:
    return f"{origin}[{extra}]" if extra else origin


def _wheel_path() -> str:
    """Return the file that pip installed, or the usual name of the wheel if pip kept no record."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "./cotlab_trust-0.1.0-py3-none-any.whl"
    url = json.loads(distribution.read_text("direct_url.json") or "{}").get("url", "")
    if url.startswith("file:"):
        return unquote(urlsplit(url).path)
    return f"./cotlab_trust-{distribution.version}-py3-none-any.whl"
