"""Every test runs offline, in a store of its own, and sees no setting of the machine it runs on."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("any speed", deadline=None)  # how long a case takes is the machine's business
settings.load_profile("any speed")
os.environ |= {"HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
os.environ.setdefault("OMP_NUM_THREADS", "1")  # a worker a core: more threads than that only wait for each other
_OURS = ("COTLAB_", "FAITHCHECK_", "OPENAI_", "ANTHROPIC_", "GOOGLE_")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))


@pytest.fixture(autouse=True)
def packages_are_scanned_once() -> None:
    """Streamlit reads the metadata of every installed package, in search of components, each time that an AppTest begins."""
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        if not hasattr(manifest_scanner.scan_component_manifests, "cache_info"):
            manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
