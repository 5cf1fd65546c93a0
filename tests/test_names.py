"""Names are the field's words: the bounds here may only be tightened."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRIVATE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "told said found one own place why gap wanted kept asked words held whole shown sheet due"
        " desk parts asks drawn tell",
    )
)
MAX_SHARE = 0.002
"""Share of private words among all parts of names; in pydantic, openai and scikit-learn .0009 to
.0035."""
MAX_SHARED_NAMES = 10
"""Public functions whose name another module has too; the Python API's are those of its metrics."""


@cache
def trees() -> list[tuple[str, ast.Module]]:
    """Return path and syntax tree of each module of the package."""
    paths = sorted((ROOT / "cotlab").rglob("*.py"))
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))) for path in paths
    ]


def parts_of(name: str) -> list[str]:
    """Return the parts of a name in snake_case or CamelCase, in lower case."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def names(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each assignment, parameter, function and class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_few_parts_of_names_are_private_words() -> None:
    counts = Counter(part for _, tree in trees() for name in names(tree) for part in parts_of(name))
    private = {word: counts[word] for word in PRIVATE_WORDS if counts[word]}
    assert sum(private.values()) / counts.total() <= MAX_SHARE, private


def test_public_functions_have_names_of_their_own() -> None:
    modules = defaultdict(set)
    for path, tree in trees():
        for node in tree.body if not path.startswith("cotlab/api/") else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                modules[node.name].add(path)
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert sum(map(len, shared.values())) <= MAX_SHARED_NAMES, shared


def test_no_private_name_that_modules_share_is_a_private_word() -> None:
    modules = defaultdict(set)
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                re.match(r"_[^_]", node.name)
            ):
                modules[node.name].add(path)
    shared = {name for name, paths in modules.items() if len(paths) > 1}
    assert not [name for name in shared if PRIVATE_WORDS & set(parts_of(name))]


def test_a_private_word_would_be_counted() -> None:
    tree = ast.parse("def told(found, rows): kept_rows = rows")
    assert [part for name in names(tree) for part in parts_of(name) if part in PRIVATE_WORDS] == [
        "told",
        "found",
        "kept",
    ]
