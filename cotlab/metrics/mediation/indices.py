"""Pooled drops into CMI and its kin: pure arithmetic on nats."""

from __future__ import annotations

import math

LEAST_NATS = 1e-2
"""Below this the two drops together are no signal: a ratio of them would be one of rounding errors.
"""
LEAST_CMI = 0.05
"""Below this CMI an index that divides by it is undefined."""
RELATIVE, ABSOLUTE = 0.15, 0.02
"""A boundary is robust where the sensitivity is at most the first, or the deviation at most the
second."""


def cmi(cot: float, control: float) -> float | None:
    """max(0, Δcot − Δctrl) / (Δcot + Δctrl) of pooled drops in nats, each clamped at 0; None where their sum is no signal."""
    cot, control = max(0.0, cot), max(0.0, control)
    return None if cot + control < LEAST_NATS else max(0.0, cot - control) / (cot + control)


def share(cot: float, control: float) -> float | None:
    """Δcot / (|Δcot| + |Δctrl|), signed, in [−1, 1]; None where the denominator is no signal."""
    return None if abs(cot) + abs(control) < LEAST_NATS else cot / (abs(cot) + abs(control))


def mass_lost(drop: float) -> float:
    """1 − exp(−Δ), the share of the answer's probability that is lost, in [0, 1); a drop below 0 counts as 0."""
    return -math.expm1(-max(0.0, drop))


def relative_loss(total: float, part: float) -> float | None:
    """max(0, whole − part) / whole of two CMIs; None where the whole is below ``LEAST_CMI``."""
    return None if total < LEAST_CMI else max(0.0, total - part) / total


def no_signal(cot: float, control: float) -> str:
    total = max(0.0, cot) + max(0.0, control)
    return f"no signal: both drops together are {total:.2g} nat, below {LEAST_NATS:g}"


def too_small(total: float) -> str:
    return f"CMI is {total:.2g}, below {LEAST_CMI:g}: nothing to take a share of"
