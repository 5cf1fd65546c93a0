"""The shipped models, known by their files and loaded at their first request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from cotlab.core.errors import ConfigError, MissingExtra, ProviderError, UnknownName
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Complete, Locate, LogProb, Patched, Request, Response
from cotlab.core.resources import shipped_organisms
from cotlab.core.types import ModelRef
from cotlab.providers.local.model_files import folder_revision


class Organism:
    """A shipped model on the CPU. Nothing of torch is imported before a request is sent."""

    answers = frozenset({Complete.kind, LogProb.kind, Locate.kind, Patched.kind})

    def __init__(self, ref: ModelRef, folder: Path) -> None:
        self.ref = replace(ref, revision=folder_revision(folder, "float32"), form="continuation")
        self._asked_ref = ref
        self._model: InProcessProvider | None = None

    def send_batch(self, requests: Sequence[Request]) -> Sequence[Response | ProviderError]:
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
) -> InProcessProvider:
    """Open a shipped organism by name; UnknownName where there is none."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtra("provider 'organism'", package)
    organisms = shipped_organisms()
    if ref.name not in organisms:
        raise UnknownName("organism", ref.name, tuple(organisms))
    if (device, dtype, backend) == ("cpu", "float32", "auto"):
        return Organism(ref, organisms[ref.name][0])
    from cotlab.providers.local.provider import open_organism

    return open_organism(ref, device, dtype, backend)
