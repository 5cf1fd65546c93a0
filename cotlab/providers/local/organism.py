"""The shipped models, known by their files and loaded at their first request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cotlab.core.errors import ConfigError, ProviderError, UnknownName
from cotlab.core.requests import Complete, Locate, LogProb, Patched, Request, Response
from cotlab.core.resources import shipped_organisms
from cotlab.core.types import ModelRef
from cotlab.providers.local.model_files import folder_revision

if TYPE_CHECKING:
    from cotlab.providers.local.provider import LocalModel


class Organism:
    """A shipped model on the CPU. Nothing of torch is imported before a request is sent."""

    answers = frozenset({Complete.kind, LogProb.kind, Locate.kind, Patched.kind})

    def __init__(self, ref: ModelRef) -> None:
        folder, _ = shipped_organisms()[ref.name]
        self.ref = replace(ref, revision=folder_revision(folder, "float32"), form="continuation")
        self._asked_ref = ref
        self._model: LocalModel | None = None

    def send_batch(self, requests: Sequence[Request]) -> list[Response | ProviderError]:
        """Return a reply for each request, in order."""
        if self._model is None:
            from cotlab.providers.local.provider import open_organism

            self._model = open_organism(self._asked_ref)
            if self._model.ref != self.ref:
                raise ConfigError(f"The files of {self.ref} have changed: start again.")
        return self._model.send_batch(requests)

    async def close(self) -> None:
        """Do nothing: the model is freed with the object."""


def open_on_demand(
    ref: ModelRef, device: str = "cpu", dtype: str = "float32", backend: str = "auto"
) -> Organism | LocalModel:
    """Open a shipped organism by name; UnknownName where there is none."""
    organisms = shipped_organisms()
    if ref.name not in organisms:
        raise UnknownName("organism", ref.name, tuple(organisms))
    if (device, dtype, backend) == ("cpu", "float32", "auto"):
        return Organism(ref)
    from cotlab.providers.local.provider import open_organism

    return open_organism(ref, device, dtype, backend)
