"""``cotlab.stats`` exports its public names, and loads nothing heavy until one is used."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import cotlab.stats

HEAVY = ("numpy", "scipy", "statsmodels", "sklearn", "pandas")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, cotlab.stats; "
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], cotlab.stats.wilson(7, 10).n)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["10"]


def test_every_name_loads_and_type_checkers_see_the_same_names() -> None:
    for name in cotlab.stats.__all__:
        assert callable(getattr(cotlab.stats, name)), name
    tree = ast.parse(Path(cotlab.stats.__file__).read_text("utf-8"))
    typed = {
        (node.module, alias.asname)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    loaded = {
        (f"cotlab.stats.{module}", name) for name, module in cotlab.stats._MODULE_BY_NAME.items()
    }
    assert typed == loaded
    with pytest.raises(AttributeError, match="no attribute 'bootstrap_median'"):
        cotlab.stats.bootstrap_median  # noqa: B018


def test_every_public_function_has_a_numpydoc_docstring() -> None:
    """Parameters, Returns and where it comes from, for every function that the package exports."""
    for name in cotlab.stats.__all__:
        value = getattr(cotlab.stats, name)
        if not inspect.isfunction(value):
            continue
        doc = inspect.getdoc(value) or ""
        parameters = inspect.signature(value).parameters
        assert "\n\nParameters\n----------\n" in doc, name
        assert "\n\nReturns\n-------\n" in doc, name
        section = doc.split("Parameters\n----------\n")[1].split("\n\nReturns")[0]
        listed = [
            part.strip()
            for line in section.splitlines()
            if line and not line.startswith(" ")
            for part in line.split(" : ")[0].split(",")
        ]
        assert listed == list(parameters), name
