"""Which functions of a package write to the store, found by parsing their calls and imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

WRITING = ("writing", "Popen", "write_text", "write_bytes", "unlink", "mkdir", "touch")
"""Calls by which a function writes or starts something itself, whatever they are called on."""
_SQL = re.compile(r"\s*(INSERT|UPDATE|DELETE|DROP|ALTER|CREATE|COPY|ATTACH)\s", re.IGNORECASE)


@dataclass
class Function:
    """A function, a method, or a module's top level (``<module>``), without nested functions."""

    name: str
    calls: list[tuple[int, str]] = field(default_factory=list)
    """Line and full name; of what cannot be resolved ``.name``, and ``Class.name`` where a class of
    ours made the object."""
    writes: bool = False


def functions(path: Path, module: str) -> Iterator[Function]:
    """Return every function of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    names = _imports(tree, module)
    names |= {
        node.name: f"{module}.{node.name}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    yield from _within(tree, module, "<module>", names)


def _within(node: ast.AST, module: str, name: str, names: Mapping[str, str]) -> Iterator[Function]:
    found = Function(f"{module}.{name}")
    inner: list[tuple[ast.AST, str]] = []
    todo = list(ast.iter_child_nodes(node))
    made: dict[str, str] = {}
    calls: list[ast.Call] = []
    while todo:
        at = todo.pop(0)
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner.append((at, at.name if name == "<module>" else f"{name}.{at.name}"))
            continue
        if isinstance(at, ast.Lambda):
            inner.append((at, f"{name}.<lambda>"))
            continue
        if isinstance(at, ast.Call):
            calls.append(at)
        if isinstance(at, ast.Assign | ast.withitem):
            value, target = (
                (at.value, at.targets[0])
                if isinstance(at, ast.Assign)
                else (at.context_expr, at.optional_vars)
            )
            if isinstance(value, ast.Call) and isinstance(target, ast.Name):
                made[target.id] = _full(value.func, names)
        if isinstance(at, ast.Constant) and isinstance(at.value, str) and _SQL.match(at.value):
            found.writes = True
        todo += ast.iter_child_nodes(at)
    for call in calls:
        full = _full(call.func, names)
        if isinstance(call.func, ast.Attribute):
            base = call.func.value
            if isinstance(base, ast.Name) and base.id in made:
                full = f"{made[base.id]}.{call.func.attr}"
            elif isinstance(base, ast.Call):
                full = f"{_full(base.func, names)}.{call.func.attr}"
            elif isinstance(base, ast.Name) and base.id == "self" and "." in name:
                full = f"{module}.{name.rsplit('.', 1)[0]}.{call.func.attr}"
        found.writes |= full.rsplit(".", 1)[-1] in WRITING
        found.calls.append((call.lineno, full))
    found.calls.sort()
    yield found
    for each, its_name in inner:
        yield from _within(each, module, its_name, names)


def _full(node: ast.AST, names: Mapping[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, f".{node.id}")
    if isinstance(node, ast.Attribute):
        base = _full(node.value, names) if isinstance(node.value, ast.Name | ast.Attribute) else ""
        return f"{base}.{node.attr}"
    return "."


def _imports(tree: ast.AST, module: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            tops = {one.name.split(".")[0] for one in node.names if one.asname is None}
            found |= {top: top for top in tops} | {
                one.asname: one.name for one in node.names if one.asname is not None
            }
    return found


def writers(every: Mapping[str, Function], stops: frozenset[str] = frozenset()) -> set[str]:
    """Return the full names of all functions that write, directly or through their calls.

    Nothing is reached through ``stops``.
    """
    found = {name for name, function in every.items() if function.writes and name not in stops}
    while True:
        more = {
            name
            for name, function in every.items()
            if name not in found
            and name not in stops
            and any(full in found for _, full in function.calls)
        }
        if not more:
            return found
        found |= more
