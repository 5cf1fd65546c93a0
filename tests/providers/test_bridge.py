"""What TransformerLens does not take, or cannot take here, is told in one sentence; and it installs
nothing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, MissingExtra
from cotlab.providers.local.backend import open_backend
from cotlab.providers.local.hooks import TransformerLensBackend
from cotlab.providers.local.load import LoadedModel
from tests.providers.test_backends import KINDS, byte_tokenizer

PACKAGE = "transformer_lens"


def loaded(kind: str = "gpt2") -> LoadedModel:
    return LoadedModel(KINDS[kind]().eval(), byte_tokenizer(), "", "cpu")


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if ``name`` were not installed; whatever needs it is imported anew."""
    for known in list(sys.modules):
        if known.partition(".")[0] == PACKAGE or known.partition(".")[0] == name.partition(".")[0]:
            monkeypatch.delitem(sys.modules, known)

    class Hidden:
        def find_spec(self, asked: str, *rest: Any) -> None:
            if asked == name:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, PACKAGE)
    with pytest.raises(MissingExtra, match=r"transformer-lens.*\[lens\]"):
        open_backend("transformer_lens", loaded())


def test_another_missing_module_is_named_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PACKAGE)
    hide(monkeypatch, "jaxtyping")
    with pytest.raises(
        ConfigError,
        match="No module named 'jaxtyping'. Use --role subject.backend=hooks",
    ) as told:
        TransformerLensBackend(loaded())
    assert "pip install transformer-lens" not in str(told.value)


class Library:
    """Stands for TransformerLens; loading fails in its own way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def boot_transformers(self, *given: Any, **named: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            AttributeError("'Config' object has no attribute 'd_head'\nat line 5"),
            "no attribute 'd_head'. Use",
        ),
        (TypeError("unexpected keyword."), "unexpected keyword. Use"),
        (RuntimeError(), "RuntimeError. Use"),
        (KeyError("qkv"), "'qkv'. Use"),
        (ValueError("  \n"), "ValueError. Use"),
        (ValueError(f"Unknown kind. Known: {['Kind'] * 99}"), "'': Unknown kind. Use"),
        (ValueError("x" * 999), f"'': {'x' * 199}…. Use"),
    ],
)
def test_whatever_fails_while_it_loads_names_the_kind_of_model(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    pytest.importorskip(PACKAGE)
    import transformer_lens.model_bridge as library

    monkeypatch.setattr(library, "TransformerBridge", Library(error))
    with pytest.raises(ConfigError, match="does not take the gpt2 model") as told:
        TransformerLensBackend(loaded())
    assert (
        said in str(told.value)
        and str(told.value).endswith("Use --role subject.backend=hooks.")
        and "\n" not in str(told.value)
    )


def test_a_kind_that_it_does_not_know_is_refused() -> None:
    pytest.importorskip(PACKAGE)
    from transformers import XLNetConfig, XLNetLMHeadModel

    model = XLNetLMHeadModel(
        XLNetConfig(vocab_size=60, d_model=32, n_layer=2, n_head=4, d_inner=40)
    )
    with pytest.raises(ConfigError, match="does not take the xlnet model"):
        TransformerLensBackend(LoadedModel(model, byte_tokenizer(), "", "cpu"))


def test_it_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library runs pip for a model that takes images: such a one never reaches it, and another
    cannot make it do so."""
    pytest.importorskip(PACKAGE)
    import transformer_lens.model_bridge as library
    from transformer_lens.model_bridge.sources.transformers import helpers

    def ran(*given: Any, **named: Any) -> int:
        pytest.fail(f"a process was started: {given}")

    for name in ("check_call", "run", "Popen"):
        monkeypatch.setattr(subprocess, name, ran)
    own, installed = helpers._ensure_torchvision, list[bool]()
    with pytest.raises(
        ConfigError,
        match="it takes more than text. Use --role subject.backend=hooks",
    ):
        TransformerLensBackend(loaded("gemma3 with images"))

    def boot(*given: Any, **named: Any) -> Any:
        installed.append(helpers._ensure_torchvision())
        return SimpleNamespace()

    monkeypatch.setattr(library, "TransformerBridge", SimpleNamespace(boot_transformers=boot))
    TransformerLensBackend(loaded())
    assert installed == [False] and helpers._ensure_torchvision is own
