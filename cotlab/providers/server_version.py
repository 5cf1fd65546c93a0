"""What servers of open models say of themselves: software, version, context and chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cotlab.core.keys import digest
from cotlab.core.text_safety import printable_line
from cotlab.providers.wire import Body, Lenient, field_at, read_body

TIMEOUT_S = 3.0
"""Seconds to wait for each address."""
_MAX_CHARS = 120
"""Characters of a version that are shown."""


class _Properties(Body):
    build_info: Lenient[str] = None
    path: Any = field_at("model_path")
    chat_template: Any = None
    n_ctx: Any = field_at("default_generation_settings.n_ctx")


class _Version(Body):
    version: Lenient[str] = None


def _read_llama_cpp(body: Any) -> str:
    """Return build and context of llama.cpp's /props, and a digest of what else decides replies."""
    properties = read_body(_Properties, body)
    build, n_ctx = properties.build_info, properties.n_ctx
    decisive = [build, properties.path, properties.chat_template, n_ctx]
    context_text = "" if n_ctx is None else f", context {n_ctx}"
    return f"llama.cpp {build[:60]}{context_text}, {digest(decisive)[:8]}" if build else ""


def _read_version(software: str) -> Callable[[Any], str]:
    def read_version(body: Any) -> str:
        version = printable_line(read_body(_Version, body).version or "")
        return f"{software} {version}"[:_MAX_CHARS] if version else ""

    return read_version


READERS: Mapping[str, Callable[[Any], str]] = {
    "/props": _read_llama_cpp,
    "/api/version": _read_version("Ollama"),
    "/version": _read_version("version"),
}
"""Address below the server's root → reader of its JSON; the first that names a version decides."""
