"""Which backend patches a model: the fast one where the model is of its kind, else hooks; TransformerLens by name."""

from __future__ import annotations

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.providers.local.backend import Backend
from cotlab.providers.local.fast import KINDS, Fast
from cotlab.providers.local.load import Loaded

BACKENDS = ("auto", "fast", "hooks", "transformer_lens")


def open_backend(name: str, loaded: Loaded) -> Backend:
    """The backend ``name`` of ``BACKENDS`` for a model; ConfigError where it does not take it."""
    if name not in BACKENDS:
        raise UnknownName("backend", name, BACKENDS)
    if name == "fast" and not Fast.takes(loaded.model):
        raise ConfigError(
            f"--backend fast takes plain models of the kinds {', '.join(KINDS)}; --backend hooks"
            " takes any."
        )
    if name == "fast" or (name == "auto" and Fast.takes(loaded.model)):
        return Fast(loaded.model)
    if name == "transformer_lens":
        from cotlab.providers.local.bridge import Bridge

        return Bridge(loaded)
    from cotlab.providers.local.hooks import Hooks

    return Hooks(loaded.model)
