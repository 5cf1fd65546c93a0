"""Every test runs offline, in a store of its own, and sees no setting of the machine it runs on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("any speed", deadline=None)  # how long a case takes is the machine's business
settings.load_profile("any speed")
os.environ |= {"HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
_OURS = ("COTLAB_", "FAITHCHECK_", "OPENAI_", "ANTHROPIC_", "GOOGLE_")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
