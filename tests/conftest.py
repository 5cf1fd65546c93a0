"""Every test runs offline, in a store of its own, and sees no setting of the machine it runs on."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# how long a case takes is the machine's business; the cases are the same in each run of make test,
# and new ones in make proofs
settings.register_profile("fixed", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("free", deadline=None, print_blob=True)
settings.load_profile("fixed")
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # a worker a core: more threads than that only wait for each other
threadpool_limits(int(os.environ["OMP_NUM_THREADS"]))  # of what a plugin has loaded before
gc.disable()  # until everything is imported: what is made until then stays
_OURS = ("COTLAB_", "FAITHCHECK_", "OPENAI_", "ANTHROPIC_", "GOOGLE_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--file-order", type=int, help="seed of an order in which the files run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--file-order")) is not None:
        files = sorted({item.path for item in items})
        Random(seed).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.enable()
    gc.unfreeze()  # so that modules end as they do elsewhere


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a test that asks for no folder has its store, should it open one: most do not, and a
    folder each takes its time."""
    folder = tmp_path_factory.mktemp("stores")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_environment(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, places: Iterator[Path]
) -> None:
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    folder = (
        request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else next(places)
    )
    monkeypatch.setenv("COTLAB_STORE", str(folder / "store"))
    # scripts of servers count requests; tests of the check ask for it
    monkeypatch.setenv("COTLAB_PROBE", "never")


@pytest.fixture(autouse=True)
def what_is_the_same_each_time_is_done_once() -> None:
    """Streamlit reads the metadata of every installed package, in search of components, each time
    that an AppTest begins; typer's runner reads the options of all commands at each call."""
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        _once(manifest_scanner, "scan_component_manifests")
    if "typer.testing" in sys.modules:
        _once(sys.modules["typer.testing"], "_get_command")


def _once(module: ModuleType, name: str) -> None:
    if not hasattr(function := getattr(module, name), "cache_info"):
        setattr(module, name, cache(function))
