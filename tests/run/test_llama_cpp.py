"""An organism behind a real llama.cpp server, whose replies repeat the prefix, reads as it does in
this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotlab.core.resources import ORGANISMS
from tests.support.forked import Forking, printed
from tests.support.running import scores

pytestmark = pytest.mark.soak
SERVER = Path(__file__).parents[1] / "support" / "loopback" / "llama_cpp.py"
ITEMS = 25
SAME = ("baseline_correct", "accuracy_delta", "answer_change", "token_delta")
MODES = ("--mode", "remove", "--mode", "corrupt", "--mode", "truncate", "--metric", "kl_divergence")


@pytest.fixture(params=["faithful-a", "bypass-a"])
def organism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(organism: str) -> Iterator[str]:
    """The address of the organism behind llama.cpp."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"needs llama.cpp's own server: pip install {package}")
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(ORGANISMS / organism)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield next(line.strip() for line in process.stdout if line.startswith("http"))
    finally:
        process.kill()
        process.communicate()


def test_a_served_organism_reads_as_it_does_in_process(
    organism: str, address: str, tmp_path: Path, runs: Forking
) -> None:
    common = ("--task-suite", "wordproblems", "--limit", str(ITEMS), "--run-id", "r", *MODES)
    served = (
        "--provider",
        "openai_compat",
        "--base-url",
        f"{address}/v1",
        "--model",
        "m",
        "--given",
        "prefix",
        "--max-requests-per-minute",
        "100000",
        "--max-concurrent",
        "1",
    )
    assert (
        runs.run(tmp_path / "here", *common, "--provider", "organism", "--model", organism) == 0
    ), printed(tmp_path / "here")
    assert runs.run(tmp_path / "there", *common, *served) == 0, printed(tmp_path / "there")
    keys = ["metric", "item_id", "facet", "step", "sample"]
    one, other = (scores(tmp_path / name, "r").set_index(keys) for name in ("here", "there"))
    assert one.index.equals(other.index)
    exact = one.index.get_level_values("metric").isin(SAME)
    assert exact.sum() > ITEMS and one["value"][exact].equals(other["value"][exact])
    kl = one.index.get_level_values("metric") == "kl_divergence"
    assert kl.any() and (one["value"][kl] - other["value"][kl]).abs().max() < 1e-3
    assert one["status"][kl].equals(other["status"][kl])
