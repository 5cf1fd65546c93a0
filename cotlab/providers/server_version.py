"""What servers of open models say of themselves: software, version, context and chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cotlab.core.keys import digest
from cotlab.core.text_safety import printable_line
from cotlab.providers.wire import optional_object, optional_text

TIMEOUT_S = 3.0
"""Seconds to wait for each address."""
_MAX_CHARS = 120
"""Characters of a version that are shown."""


def _read_llama_cpp(body: Mapping[str, Any]) -> str:
    """Return build and context of llama.cpp's /props, and a digest of what else decides replies."""
    build = optional_text(body.get("build_info"))
    settings = optional_object(body.get("default_generation_settings"))
    decisive = [build, body.get("model_path"), body.get("chat_template"), settings.get("n_ctx")]
    context_text = f", context {settings['n_ctx']}" if "n_ctx" in settings else ""
    return f"llama.cpp {build[:60]}{context_text}, {digest(decisive)[:8]}" if build else ""


def _read_version(software: str) -> Callable[[Mapping[str, Any]], str]:
    def read_version(body: Mapping[str, Any]) -> str:
        version = printable_line(optional_text(body.get("version")))
        return f"{software} {version}"[:_MAX_CHARS] if version else ""

    return read_version


READERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "/props": _read_llama_cpp,
    "/api/version": _read_version("Ollama"),
    "/version": _read_version("version"),
}
"""Address below the server's root → reader of its JSON; the first that names a version decides."""
