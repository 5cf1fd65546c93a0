"""The regular expressions of a module that are searched for, not only matched at a start."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from tests.support.ambiguity import patterns_of

_AT_A_START = {"match", "fullmatch"}
_NO_SEARCH = {*_AT_A_START, "pattern", "flags", "groups", "groupindex"}


def searched_patterns(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield name and expression of each that a module searches or splits for, or hands on.

    Left out are those of which it uses only the match at a start, and parts of others.
    """
    tree = ast.parse(inspect.getsource(module))
    uses = _uses(tree)
    for name, value in vars(module).items():
        is_searched = not isinstance(value, re.Pattern) or not uses.get(name, {""}) <= _NO_SEARCH
        for pattern in patterns_of(value) if is_searched else ():
            yield name, pattern
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _is_inline_search(call.func) and call.args:
            source = _text_of(call.args[0], vars(module))
            if source is not None:  # not built from a local name
                yield f"line {call.lineno}", re.compile(source)


def _text_of(node: ast.expr, names: Mapping[str, Any]) -> str | None:
    """Return the text of an expression of constants and a module's names; None for any other."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return names.get(node.id)
    pieces: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr):
        pieces = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pieces = [node.left, node.right]
    texts = [_text_of(piece, names) for piece in pieces]
    return "".join(map(str, texts)) if texts and None not in texts else None


def _uses(tree: ast.AST) -> dict[str, set[str]]:
    """Return the attributes of each name, "" where it is used in another way."""
    uses: dict[str, set[str]] = {}
    attributed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(node.value.id, set()).add(node.attr)
            attributed.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in attributed:
            uses.setdefault(node.id, set()).add("")
    return uses


def _is_inline_search(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in ("search", "findall", "finditer", "sub", "subn", "split")
    )
