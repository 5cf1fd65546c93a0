"""Icons stand beside a text, never in it: in Markdown a screen reader reads out their names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "cotlab" / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]


def icon_texts(tree: ast.AST) -> list[str]:
    """Return the texts with a Material symbol that are no icon of a widget."""
    allowed: set[int] = set()
    for node in ast.walk(tree):
        is_icon = isinstance(node, ast.keyword) and node.arg == "icon"
        if isinstance(node, ast.Assign):
            is_icon = all(isinstance(t, ast.Name) and t.id.endswith("_ICON") for t in node.targets)
        if is_icon:
            allowed |= {id(inner) for inner in ast.walk(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and ":material/" in node.value
        and id(node) not in allowed
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_text_has_an_icon(path: Path) -> None:
    assert icon_texts(ast.parse(path.read_text("utf-8"))) == []


def test_an_icon_in_a_text_would_be_noticed() -> None:
    code = 'st.caption(":material/gavel: Settled")\nst.button("Go", icon=":material/check:")'
    assert icon_texts(ast.parse(code)) == [":material/gavel: Settled"]
