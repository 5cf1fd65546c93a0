"""Load a Hugging Face model from a folder or by its hub id, and identify its exact weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as library_logging

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.resources import organism_names

_HASHED = (
    "*.safetensors",
    "*.bin",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "chat_template.*",
)
"""Files of a model folder that the revision is a digest of."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to run."""

    model: Any
    """The transformers model, in inference mode."""
    tokenizer: Any
    """Its tokenizer."""
    revision: str
    """Digest of weights, configuration, tokenizer and dtype."""
    device: str
    """Device of torch, like cpu or cuda."""
    start: str = ""
    """Text before every prompt: the control prefix of an organism."""

    @property
    def has_chat_template(self) -> bool:
        """Return whether the tokenizer has a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))


def load_organism(name: str, device: str = "cpu", dtype: str = "float32") -> Loaded:
    """Load a shipped organism by name; UnknownName where there is none."""
    known = organism_names()
    if name not in known:
        raise UnknownName("organism", name, tuple(known))
    folder, start = known[name]
    return load_model(str(folder), device=device, dtype=dtype, start=start)


def load_model(
    name: str, *, device: str = "cpu", dtype: str = "float32", start: str = ""
) -> Loaded:
    """Load ``name`` in inference mode.

    Raises
    ------
    ConfigError
        If it is neither a model folder nor a hub id that can be loaded from here.
    """
    folder = Path(name).expanduser()
    if (folder.exists() or name.startswith((".", "/", "~"))) and not (
        folder / "config.json"
    ).is_file():
        raise ConfigError(f"{name}: not a Hugging Face model folder (no config.json in it).")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"--device {device}: this machine has no such device, or torch was installed"
            " without it."
        )
    library_logging.disable_progress_bar()
    source = str(folder) if folder.is_dir() else name
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype))
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(f"The model {name!r} cannot be loaded: {first}") from error
    model.eval().to(device)
    return Loaded(model, tokenizer, _revision(folder, model, dtype), device, start)


def _revision(folder: Path, model: Any, dtype: str) -> str:
    """Return the SHA-256 of a folder's files and the dtype; of a hub model its commit."""
    if not folder.is_dir():
        return f"{getattr(model.config, '_commit_hash', None) or 'unknown'}:{dtype}"
    sha = hashlib.sha256(dtype.encode())
    for path in sorted({p for pattern in _HASHED for p in folder.glob(pattern)}):
        sha.update(path.name.encode())
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                sha.update(block)
    return sha.hexdigest()


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """Limit torch to one thread within the context.

    On shared cores the threads of a small model wait longer than they work.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
