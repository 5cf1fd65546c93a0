"""Find out whether a model's chain of thought can be trusted.

``run_suite`` runs scorers on a suite and keeps everything in the store; ``consistency``,
``robustness``, ``backward_verification``, ``diversity``, ``flags``, ``composite``, ``ablate`` and
``mediate`` measure one item; ``calibrate`` and ``decide`` turn scores into decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotlab.api.decisions import Calibration, Decision, calibrate, decide
    from cotlab.api.measure import Measurement
    from cotlab.api.metrics import (
        ablate,
        backward_verification,
        composite,
        consistency,
        diversity,
        flags,
        mediate,
        robustness,
    )
    from cotlab.api.runs import Result, load_suite, run_suite

__version__ = "0.1.0"
__all__ = [
    "Calibration",
    "Decision",
    "Measurement",
    "Result",
    "__version__",
    "ablate",
    "backward_verification",
    "calibrate",
    "composite",
    "consistency",
    "decide",
    "diversity",
    "flags",
    "load_suite",
    "mediate",
    "robustness",
    "run_suite",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing cotlab loads nothing heavy."""
    if name not in __all__:
        raise AttributeError(f"module 'cotlab' has no attribute {name!r}")
    from cotlab import api

    return getattr(api, name)
