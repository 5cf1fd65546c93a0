"""Scorers of Inspect AI and a scanner of Inspect Scout that read the chain a model has written.

They ask no model and open no store. In a task: ``scorer=[match(), cotlab.inspect.chain_flags()]``;
on a log: ``inspect score LOG --scorer cotlab/chain_flags``; in Scout: ``cotlab.inspect.scanners``.
"""

from __future__ import annotations

from cotlab.core.errors import MissingExtra

try:
    import inspect_ai  # noqa: F401
except ModuleNotFoundError as import_error:
    raise MissingExtra("cotlab.inspect", "inspect-ai") from import_error

from cotlab.inspect.scorers import chain_arithmetic, chain_flags, chain_tools, chain_verification

__all__ = ["chain_arithmetic", "chain_flags", "chain_tools", "chain_verification"]
