"""Load a Hugging Face model from a folder or hub, and identify its weights."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import PickleError
from typing import Any
from zipfile import BadZipFile

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as library_logging

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.resources import shipped_organisms
from cotlab.providers.local.batching import use_reproducible_products
from cotlab.providers.local.model_files import TOKENIZER_ERRORS, folder_revision

_OTHER_HEADS = ("MaskedLM", "Classification", "QuestionAnswering")
"""Ends of the names of architectures whose head does not predict the next token."""
LOAD_ERRORS = (
    *TOKENIZER_ERRORS,
    EOFError,
    AssertionError,
    struct.error,
    BadZipFile,
    PickleError,
    SafetensorError,
)
"""What the libraries raise for files that are missing, damaged or of another kind."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run."""

    model: Any
    """The transformers model, in inference mode."""
    tokenizer: Any
    """Its tokenizer."""
    revision: str
    """Digest of weights, configuration, tokenizer and dtype."""
    device: str
    """Device of torch, like cpu or cuda."""
    prompt_prefix: str = ""
    """Text before every prompt: the control prefix of an organism."""
    reads_whole: bool = False
    """Whether every text is read whole and alone, because padding or the cache would change it."""
    fast: Any = None
    """The ``FastBackend`` that reads its prompts and replies; None where transformers does."""

    @property
    def has_chat_template(self) -> bool:
        """Return whether the tokenizer has a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))


def load_organism(name: str, device: str = "cpu", dtype: str = "float32") -> LoadedModel:
    """Load a shipped organism by name; UnknownName where there is none."""
    organisms = shipped_organisms()
    if name not in organisms:
        raise UnknownName("organism", name, tuple(organisms))
    folder, prompt_prefix = organisms[name]
    return load_model(str(folder), device=device, dtype=dtype, prompt_prefix=prompt_prefix)


def load_model(
    name: str, *, device: str = "cpu", dtype: str = "float32", prompt_prefix: str = ""
) -> LoadedModel:
    """Load ``name`` in inference mode.

    Raises
    ------
    ConfigError
        If it is neither a model folder nor a hub id that can be loaded from here, or not a causal
        language model.
    """
    source = model_source(name, name)
    require_device(device)
    label = f"The model {name!r}"
    config = load_config(source, label)
    architecture = (config.architectures or [""])[0]
    if config.is_encoder_decoder or architecture.endswith(_OTHER_HEADS):
        raise ConfigError(
            f"{label} cannot be used: {architecture or config.model_type} is not a causal language"
            " model, which continues a text. Choose a model whose architecture ends in ForCausalLM."
        )
    model, tokenizer = load_pretrained(AutoModelForCausalLM, source, label, config, dtype)
    model.to(device)
    return LoadedModel(
        model, tokenizer, weights_revision(source, model, dtype), device, prompt_prefix
    )


def require_device(device: str) -> None:
    """Raise ConfigError where this machine lacks a device."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"--role subject.device={device}: this machine has no such device, or torch was"
            " installed without it."
        )


def model_source(
    name: str, label: str, kind: str = "Hugging Face model", required_file: str = "config.json"
) -> str:
    """Return the folder that ``name`` is the path of, else ``name``, a hub id.

    Raises
    ------
    ConfigError
        If it is a path, but not of a folder with ``required_file``.
    """
    folder = Path(name).expanduser()
    if (folder / required_file).is_file():
        return str(folder)
    if folder.exists() or name.startswith((".", "/", "~")):
        raise ConfigError(f"{label}: not a {kind} folder (no {required_file} in it).")
    return name


def load_config(source: str, label: str) -> Any:
    """Return the configuration of a folder or hub id; ConfigError where there is none."""
    with mapped_load_errors(f"{label} cannot be loaded"):
        return AutoConfig.from_pretrained(source, trust_remote_code=False)


def load_pretrained(
    model_class: Any, source: str, label: str, config: Any, dtype: str = "float32"
) -> tuple[Any, Any]:
    """Return a model in inference mode, and its tokenizer. Code of its folder is never run.

    Raises
    ------
    ConfigError
        If one cannot be loaded, or weights are missing, of another shape or not finite.
    """
    with mapped_load_errors(f"{label} cannot be loaded"):
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        model, loading_info = model_class.from_pretrained(
            source,
            config=config,
            dtype=getattr(torch, dtype),
            trust_remote_code=False,  # left out, the library would offer to run a folder's code
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
        )
    names = [*loading_info["missing_keys"], *(key for key, *_ in loading_info["mismatched_keys"])]
    _refuse_weights(
        label,
        names,
        "missing or of another shape, so they would be random",
        "Choose a folder with all its weights.",
    )
    require_finite_weights(label, model)
    return model.eval(), tokenizer


def require_finite_weights(label: str, model: Any) -> None:
    """Raise ConfigError where a weight is NaN or infinite in the model's dtype."""
    dtype_by_name = {
        name: str(weights.dtype).removeprefix("torch.")
        for name, weights in model.state_dict().items()
        if weights.is_floating_point() and weights.element_size() > 1 and weights.numel()
        # 30 times as fast as isfinite, and NaN if one of them is
        if not all(math.isfinite(extreme) for extreme in torch.aminmax(weights))
    }
    dtypes = " and ".join(sorted(set(dtype_by_name.values())))
    _refuse_weights(
        label,
        [*dtype_by_name],
        f"NaN or infinite in {dtypes}",
        "Choose another dtype (--role subject.dtype), or another folder.",
    )


def _refuse_weights(label: str, names: Sequence[str], problem: str, advice: str) -> None:
    if names:
        listed_names = ", ".join(sorted(names)[:3]) + (" …" if len(names) > 3 else "")
        raise ConfigError(
            f"{label} cannot be used: weights are {problem} ({len(names)}: {listed_names})."
            f" {advice}"
        )


def max_positions(model: Any) -> int:
    """Return the longest text that a model takes in tokens, prompt and reply together.

    Some models without a limit say -1.
    """
    n_positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return n_positions if isinstance(n_positions, int) and n_positions > 0 else 1 << 20


def token_limit(model: Any, tokenizer: Any) -> int:
    """Return the longest text in tokens that both a model and its tokenizer take."""
    limits = (max_positions(model), tokenizer.model_max_length)
    return min((int(n) for n in limits if n is not None and n > 0), default=1 << 20)


@contextmanager
def mapped_load_errors(problem: str) -> Iterator[None]:
    """Raise what fails while a model is loaded as a ConfigError; show no progress bar."""
    use_reproducible_products()
    library_logging.disable_progress_bar()
    try:
        yield
    except PickleError as error:
        raise ConfigError(
            f"{problem}: its pickled weights are damaged, or would run code when they are loaded."
            " Convert them to safetensors."
        ) from error
    except LOAD_ERRORS as error:
        reason = first_line(error)
        if "trust_remote_code" in str(error):
            reason = "it needs code of its own, which is never run. Choose a model without code."
        raise ConfigError(f"{problem}: {reason}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type where it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def weights_revision(source: str, model: Any, dtype: str, device: str = "cpu") -> str:
    """Return the SHA-256 of a folder's files, or a hub model's commit; and dtype and device."""
    folder, suffix = Path(source), "" if device == "cpu" else f":{device}"
    if not folder.is_dir():
        return f"{getattr(model.config, '_commit_hash', None) or 'unknown'}:{dtype}{suffix}"
    return folder_revision(folder, dtype) + suffix
