"""Find out whether a model's chain of thought can be trusted: suites, runs, metrics and their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotlab.api import Result, run_suite
    from cotlab.suites.jsonl import load_suite

__version__ = "0.1.0"
__all__ = ["Result", "__version__", "load_suite", "run_suite"]
_HOMES = {"Result": "cotlab.api", "run_suite": "cotlab.api", "load_suite": "cotlab.suites.jsonl"}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing cotlab loads nothing heavy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cotlab' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
