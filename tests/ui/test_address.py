"""A page that is drawn writes nothing into its address, and one module does all the writing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cotlab
from tests.support.pages import ROOT
from tests.ui.test_pages import open_page

WRITER = ROOT / "cotlab" / "ui" / "address.py"
WRITING_METHODS = {"update", "from_dict", "pop", "popitem", "clear", "setdefault"}
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def _writes_address(node: ast.AST) -> bool:
    """Return whether a node writes ``query_params``, or binds a widget to it."""
    if isinstance(node, ast.keyword):
        return node.arg == "bind"
    if isinstance(node, ast.Subscript):
        target, is_write = node.value, isinstance(node.ctx, ast.Store | ast.Del)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target, is_write = node.func.value, node.func.attr in WRITING_METHODS
    else:
        return False
    return is_write and isinstance(target, ast.Attribute) and target.attr == "query_params"


def test_one_module_writes_the_address() -> None:
    paths = [*(ROOT / "cotlab").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    writers = {
        path
        for path in paths
        if any(_writes_address(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    }
    assert writers == {WRITER}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with most scorers."""
    folder = tmp_path_factory.mktemp("address")
    for model in ("faithful-a", "bypass-a"):
        scorers = ["ablation", "robustness", "unfaithfulness", "mediation"]
        cotlab.run_suite("wordproblems", store=folder, model=model, scorer=scorers, limit=2)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_parameters_writes_none(
    name: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(store))
    app = open_page(name)
    assert not app.exception, [error.value for error in app.exception]
    assert not dict(app.query_params)
    app.run()  # with the sidebar's links about the run that the page chose
    assert not dict(app.query_params)
