"""cotlab from Python: the public functions and their results, each loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULE_BY_NAME = {
    **dict.fromkeys(("Result", "load_suite", "run_suite"), "cotlab.api.runs"),
    **dict.fromkeys(("Calibration", "Decision", "calibrate", "decide"), "cotlab.api.decisions"),
    "Measurement": "cotlab.api.measure",
    **dict.fromkeys(
        (
            *("ablate", "backward_verification", "composite", "consistency", "diversity"),
            *("flags", "mediate", "robustness"),
        ),
        "cotlab.api.metrics",
    ),
}
"""The module of each public name."""
__all__ = list(MODULE_BY_NAME)


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing cotlab loads nothing heavy."""
    if name not in MODULE_BY_NAME:
        raise AttributeError(f"module 'cotlab' has no attribute {name!r}")
    return getattr(import_module(MODULE_BY_NAME[name]), name)
