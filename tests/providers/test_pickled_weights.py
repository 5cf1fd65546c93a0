"""Model folders with pickled weights: one message, and nothing in them runs."""

from __future__ import annotations

import io
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from cotlab.core.errors import ConfigError
from cotlab.core.resources import shipped_organisms
from cotlab.providers.local.load import load_model


class Program:
    """A pickle of this runs a program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("kind", ["program", "cut", "none"])
def test_pickled_weights_are_one_message_and_run_nothing(kind: str, tmp_path: Path) -> None:
    folder, ran = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(shipped_organisms()["r100"][0], folder)
    for weights in folder.glob("*.safetensors*"):
        weights.unlink()
    old_form = io.BytesIO()
    torch.save({"x": torch.zeros(3)}, old_form, _use_new_zipfile_serialization=False)
    content = {
        "program": pickle.dumps(Program(ran), protocol=2),
        "cut": old_form.getvalue()[:120],
        "none": b"",
    }
    (folder / "pytorch_model.bin").write_bytes(content[kind])
    with pytest.raises(ConfigError, match="cannot be loaded: "):
        load_model(str(folder))
    assert not ran.exists()
