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
    suffix = f"[{extra}]" if extra else ""
    if (checkout := checkout_root()) is not None:
        return f"pip install -e {quote(f'{checkout}{suffix}')}"
    return f"pip install {quote(f'{_wheel_path()}{suffix}')}"


def other_owners() -> list[str]:
    """Return the other distributions, like "cotlab 0.12.0", that hold a package named cotlab."""
    names = metadata.packages_distributions().get("cotlab", [])
    return [f"{name} {metadata.version(name)}" for name in set(names) if name != DISTRIBUTION]


def _wheel_path() -> str:
    """Return the file that pip installed, or a name for it if pip kept no record."""
    try:
        record = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        record = None
    url = json.loads(record or "{}").get("url", "")
    return unquote(urlsplit(url).path) if url.startswith("file:") else "./COTLAB_TRUST.whl"
