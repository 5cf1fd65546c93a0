"""Importing does nothing: no heavy package before it is needed, no file, no network, no seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = (
    "torch",
    "transformers",
    "tokenizers",
    "streamlit",
    "duckdb",
    "openai",
    "anthropic",
    "google.genai",
    "pandas",
    "scipy",
    "numpy",
    "plotly",
    "statsmodels",
    "sklearn",
    "pyarrow",
    "sympy",
)
LOADS_A_LOT = ("cotlab.providers.local", "cotlab.organisms", "cotlab.ui", "cotlab.inspect")
"""May load models' packages, the app or Inspect; all others are imported one by one below."""

LOADED = """
import sys
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""
GUARDED = """
import importlib, random, socket, sys
from pathlib import Path

def refuse(what):
    def refused(*args, **more):
        raise AssertionError(f"a module {what} on import")
    return refused

opened = refuse("opened a socket")
socket.socket.connect = socket.socket.connect_ex = socket.socket.bind = opened
socket.getaddrinfo = opened
random.seed = random.setstate = refuse("seeded the global generator")
written = []

def audit(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        written.extend(args[:1] if not str(args[0]).endswith("null") else ())

sys.addaudithook(audit)
sys.dont_write_bytecode = True
for name in sys.argv[1:]:
    importlib.import_module(name)
assert not written, written
assert not list(Path.cwd().iterdir()), list(Path.cwd().iterdir())
"""


def python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(cwd),
    }
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        "import cotlab",
        "import cotlab.core.registry as r; assert 'ablation' in r.SCORERS and list(r.PROVIDERS)",
        "from cotlab.cli.main import app; app(['--help'])",
        "from cotlab.cli.main import app; app(['run', '--help'])",
        "from cotlab.cli.main import app; app(['--version'])",
    ],
)
def test_nothing_heavy_is_loaded_before_a_command_runs(code: str, tmp_path: Path) -> None:
    done = python(LOADED.format(code=code, heavy=HEAVY), cwd=tmp_path)
    assert (done.returncode, done.stderr.split()) == (0, []), done.stderr
    assert done.stdout.startswith(("Usage:", "cotlab 0.")) or code.startswith("import")


def test_the_check_sees_what_is_loaded(tmp_path: Path) -> None:
    assert python(LOADED.format(code="import numpy", heavy=HEAVY), cwd=tmp_path).stderr.split() == [
        "numpy"
    ]


def light_modules() -> list[str]:
    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in sorted((ROOT / "cotlab").rglob("*.py"))
    ]
    names = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    return [name for name in names if not name.startswith(LOADS_A_LOT)]


@pytest.mark.soak
def test_importing_any_module_makes_no_file_opens_no_socket_and_seeds_nothing(
    tmp_path: Path,
) -> None:
    names = light_modules()
    assert len(names) > 50 and "cotlab.run.runner" in names
    done = python(GUARDED, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("open('made.txt', 'w').close()", "made.txt"),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "opened a socket"),
        ("import random; random.seed(3)", "seeded the global generator"),
    ],
)
def test_the_guard_can_fail(source: str, fault: str, tmp_path: Path) -> None:
    modules, empty = tmp_path / "modules", tmp_path / "empty"
    modules.mkdir()
    empty.mkdir()
    (modules / "bad.py").write_text(source)
    done = python(f"import sys; sys.path.insert(0, {str(modules)!r})\n{GUARDED}", "bad", cwd=empty)
    assert done.returncode != 0 and fault in done.stderr


def test_public_names() -> None:
    import cotlab

    assert {"Result", "__version__", "load_suite"} < set(cotlab.__all__)
    for name in cotlab.__all__:
        assert getattr(cotlab, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cotlab.nothing  # noqa: B018
