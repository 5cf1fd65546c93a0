"""The rule of floors: a module imports from floors below only, and heavy packages stay in their
place."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = {
    "core": 0,
    "stats": 1,
    "text": 1,
    "suites": 1,
    "providers": 1,
    "store": 1,
    "metrics": 2,
    "reliability": 2,
    "figures": 2,
    "run": 3,
    "organisms": 4,
    "validation": 4,
    "review": 4,
    "analysis": 5,
    "export": 6,
    "cotlab": 7,
    "api": 7,
    "inspect": 7,
    "ui": 7,
    "cli": 7,
    "pages": 7,
    "app": 7,
}
"""Package to floor; ``cotlab`` stands for cotlab/__init__.py and __main__.py."""
SCIENCE = {"stats", "text", "metrics", "reliability", "figures"}
EDGE = {"suites", "providers", "store"}
ACROSS = {
    ("cotlab", "cli"),
    ("cotlab", "api"),
    ("inspect", "api"),
    *((name, "cotlab") for name in ("cli", "ui", "pages", "app")),
    ("pages", "ui"),
    ("app", "ui"),
}
"""Imports between packages of the top floor: the command, and the pages that share ui."""
HOMES = {
    ("torch", "transformers", "tokenizers", "safetensors", "sentence_transformers", "accelerate"): (
        "cotlab/providers/local/",
        "cotlab/organisms/",
    ),
    ("duckdb", "sqlite3"): ("cotlab/store/",),
    ("streamlit",): ("cotlab/ui/", "pages/", "app.py"),
    ("openai", "anthropic", "google"): ("cotlab/providers/",),
    ("plotly", "matplotlib"): ("cotlab/figures/",),
    ("kaleido", "choreographer", "PIL"): ("cotlab/export/chrome.py",),
    ("inspect_ai", "inspect_scout"): (
        "cotlab/suites/importers/",
        "cotlab/export/",
        "cotlab/inspect/",
    ),
}
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers"}


def sources() -> list[str]:
    found = [
        p
        for folder in ("cotlab", "pages", "tests", "benchmarks")
        for p in (ROOT / folder).rglob("*.py")
    ]
    return sorted(p.relative_to(ROOT).as_posix() for p in [*found, ROOT / "app.py"] if p.is_file())


def package_of(path: str) -> str | None:
    """The package that the floors know a file by; None for tests and benchmarks, which may import
    anything."""
    parts = PurePosixPath(path).parts
    if parts[0] == "cotlab":
        return parts[1] if len(parts) > 2 else "cotlab"
    return {"pages": "pages", "app.py": "app"}.get(parts[0])


def target_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "cotlab"


def imports(path: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that a file names in an import, wherever it stands, or in a literal
    ``import_module``, and its line."""
    here = list(PurePosixPath(path).with_suffix("").parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = (
                ".".join([*here[: -node.level], *([node.module] if node.module else [])])
                if node.level
                else node.module or ""
            )
            whole = module in (
                "cotlab",
                "google",
            )  # "from cotlab import store" names a module below
            yield from (
                (f"{module}.{alias.name}" if whole else module, node.lineno) for alias in node.names
            )
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value, node.lineno


def import_faults(path: str, tree: ast.AST) -> Iterator[str]:
    package = package_of(path)
    if package is None:
        return
    if package not in FLOORS:
        yield f"{path}: cotlab/{package} stands on no floor: add it to FLOORS"
        return
    for module, line in dict.fromkeys(imports(path, tree)):
        top, place = module.split(".")[0], f"{path}:{line}: imports {module}"
        if top == "cotlab":
            target = target_of(module)
            up = FLOORS[target] > FLOORS[package]
            across = (
                FLOORS[target] == FLOORS[package]
                and target != package
                and (package, target) not in ACROSS
            )
            wings = FLOORS[package] < 3 and (
                (package in SCIENCE and target in EDGE) or (package in EDGE and target in SCIENCE)
            )
            if wings:
                yield f"{place}: the science wing and the edge wing first meet in run"
            elif up or across:
                yield f"{place}: {'up' if up else 'across'}, from floor {FLOORS[package]}"
        elif top in ("tests", "pages", "app", "benchmarks"):
            yield f"{place}: which is no part of the package"
        elif package == "core" and top not in sys.stdlib_module_names:
            yield f"{place}: core is standard library only"
        for names, homes in HOMES.items():
            if top in names and not path.startswith(homes):
                yield f"{place}: only {', '.join(homes)} may"


def form_faults(path: str, tree: ast.AST) -> Iterator[str]:
    if VAGUE & {part.removesuffix(".py").lower() for part in PurePosixPath(path).parts}:
        yield f"{path}: a vague name: say what is in it"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            yield f"{path}:{node.lineno}: a star import"
        if isinstance(node, ast.ClassDef):
            methods = [
                part
                for part in node.body
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            if methods and all(
                any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in m.decorator_list)
                for m in methods
            ):
                yield (
                    f"{path}:{node.lineno}: class {node.name} holds static methods only: write"
                    " functions"
                )


def faults(path: str, source: str) -> list[str]:
    tree = ast.parse(source)
    return [*import_faults(path, tree), *form_faults(path, tree)]


@pytest.mark.parametrize("path", sources())
def test_the_house_stands(path: str) -> None:
    assert faults(path, (ROOT / path).read_text("utf-8")) == []


def test_every_package_has_a_floor_and_every_file_is_looked_at() -> None:
    packages = {p.name for p in (ROOT / "cotlab").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert packages <= set(FLOORS)
    assert {"cotlab/core/types.py", "cotlab/__init__.py", "app.py", "tests/test_floors.py"} <= set(
        sources()
    )


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("cotlab/core/x.py", "import numpy", "core is standard library only"),
        ("cotlab/core/x.py", "import cotlab.stats.intervals", "up, from floor 0"),
        ("cotlab/core/x.py", "from cotlab import api", "up, from floor 0"),
        ("cotlab/core/x.py", "def f():\n    from cotlab.run import plan", "up, from floor 0"),
        (
            "cotlab/core/x.py",
            "if TYPE_CHECKING:\n    from cotlab.text.steps import split_steps",
            "up, from floor 0",
        ),
        ("cotlab/core/x.py", "import_module('cotlab.run.plan')", "up, from floor 0"),
        ("cotlab/core/x.py", "from ..metrics import ablation", "up, from floor 0"),
        ("cotlab/stats/x.py", "from cotlab.text import steps", "across, from floor 1"),
        ("cotlab/stats/x.py", "from cotlab import text", "across, from floor 1"),
        ("cotlab/store/x.py", "from cotlab.suites.jsonl import load_suite", "across, from floor 1"),
        ("cotlab/suites/x.py", "from cotlab.text.steps import split_steps", "first meet in run"),
        ("cotlab/metrics/x.py", "import cotlab.store.read", "first meet in run"),
        ("cotlab/metrics/x.py", "import cotlab.providers.echo as e", "first meet in run"),
        (
            "cotlab/figures/x.py",
            "from cotlab.metrics.ablation import rrr",
            "across, from floor 2",
        ),
        ("cotlab/reliability/x.py", "from cotlab.metrics import ablation", "across, from floor 2"),
        ("cotlab/providers/x.py", "from cotlab.stats import intervals", "first meet in run"),
        ("cotlab/run/x.py", "from cotlab.organisms import gate", "up, from floor 3"),
        ("cotlab/run/x.py", "import cotlab", "up, from floor 3"),
        ("cotlab/organisms/x.py", "from cotlab.validation import x", "across, from floor 4"),
        ("cotlab/validation/x.py", "from cotlab.cli import main", "up, from floor 4"),
        ("cotlab/ui/x.py", "from cotlab.cli import run", "across, from floor 7"),
        ("cotlab/cli/x.py", "from cotlab.ui import main", "across, from floor 7"),
        ("cotlab/extra/x.py", "", "stands on no floor"),
        ("cotlab/run/x.py", "from tests.core import test_keys", "no part of the package"),
        (
            "cotlab/run/x.py",
            "import torch.nn",
            "only cotlab/providers/local/, cotlab/organisms/ may",
        ),
        (
            "cotlab/providers/openai.py",
            "from transformers import AutoModel",
            "only cotlab/providers/local/",
        ),
        ("cotlab/run/x.py", "import sqlite3", "only cotlab/store/ may"),
        ("cotlab/ui/x.py", "def f():\n    import duckdb", "only cotlab/store/ may"),
        ("cotlab/figures/x.py", "import streamlit as st", "only cotlab/ui/, pages/, app.py may"),
        ("cotlab/run/x.py", "from openai import OpenAI", "only cotlab/providers/ may"),
        ("cotlab/run/x.py", "from google import genai", "only cotlab/providers/ may"),
        ("cotlab/cli/x.py", "import anthropic", "only cotlab/providers/ may"),
        ("cotlab/run/x.py", "import plotly.graph_objects as go", "only cotlab/figures/ may"),
        ("cotlab/ui/x.py", "import plotly", "only cotlab/figures/ may"),
        ("pages/x.py", "import plotly.express", "only cotlab/figures/ may"),
        ("cotlab/export/x.py", "from cotlab.ui import data", "up, from floor 6"),
        ("cotlab/run/utils.py", "", "a vague name"),
        ("tests/helpers/x.py", "", "a vague name"),
        ("cotlab/store/manager.py", "", "a vague name"),
        ("cotlab/run/x.py", "from os import *", "a star import"),
        (
            "cotlab/run/x.py",
            "class A:\n    X = 1\n    @staticmethod\n    def f(): ...",
            "static methods only",
        ),
    ],
)
def test_each_rule_can_fail(path: str, source: str, fault: str) -> None:
    (found,) = faults(path, source)
    assert fault in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "cotlab/core/x.py",
            "import json\nfrom cotlab.core.keys import digest\nfrom .types import Item",
        ),
        (
            "cotlab/text/x.py",
            "from cotlab.core.types import Form\nfrom cotlab.text.steps import split_steps",
        ),
        (
            "cotlab/metrics/x.py",
            "from cotlab.stats import intervals\nfrom cotlab.text import steps\nimport pandas",
        ),
        ("cotlab/figures/x.py", "import plotly\nfrom cotlab.stats import intervals"),
        (
            "cotlab/run/x.py",
            (
                "from cotlab.store import read\nfrom cotlab.metrics import ablation\nfrom cotlab"
                " import suites"
            ),
        ),
        (
            "cotlab/organisms/x.py",
            (
                "import torch\nfrom cotlab.providers.local import load\nfrom cotlab.suites import"
                " wordproblems"
            ),
        ),
        ("cotlab/providers/local/x.py", "from transformers import AutoModel"),
        (
            "cotlab/cli/x.py",
            (
                "from cotlab import __version__\nfrom cotlab.organisms import gate\nfrom cotlab.cli"
                " import options"
            ),
        ),
        ("cotlab/__main__.py", "from cotlab.cli.main import main"),
        (
            "cotlab/ui/x.py",
            "import streamlit\nfrom cotlab.export import tables\nfrom cotlab.figures import style",
        ),
        ("pages/x.py", "import streamlit\nfrom cotlab.ui import parts"),
        ("tests/x.py", "import torch, duckdb\nfrom cotlab.run import plan"),
        ("cotlab/run/x.py", "class A:\n    @staticmethod\n    def f(): ...\n    def g(self): ..."),
        ("cotlab/run/x.py", "class A(Exception):\n    pass"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert faults(path, source) == []
