"""The arithmetic of mediation: from pooled drops in nats to CMI and the indices made of it."""

from __future__ import annotations

import math
from collections.abc import Callable

MIN_TOTAL_NATS = 1e-2
"""Below this the two drops together are no signal: a ratio of them would be one of rounding errors.
"""
MIN_CMI = 0.05
"""Below this CMI an index that divides by it is undefined."""
MAX_UNUSED_SHARE = 0.01
"""Up to this share of the total effect a chain counts as without effect."""
MAX_SENSITIVITY, MAX_DEVIATION = 0.15, 0.02
"""A boundary is robust where the sensitivity is at most the first, or the deviation at most the
second."""
ValueOrReason = tuple[float | None, str]
"""A value, or None and the reason for it."""


def cmi(cot_drop: float, control_drop: float) -> float | None:
    """Return max(0, Δcot − Δctrl) / (Δcot + Δctrl) of pooled drops in nats, each clamped at 0.

    None where their sum is no signal.
    """
    cot_drop, control_drop = max(0.0, cot_drop), max(0.0, control_drop)
    return (
        None
        if cot_drop + control_drop < MIN_TOTAL_NATS
        else max(0.0, cot_drop - control_drop) / (cot_drop + control_drop)
    )


def total_effect_share(cot_drop: float, total_drop: float) -> float | None:
    """Return (1 − exp(−Δcot)) / (1 − exp(−Δtotal)) of pooled drops in nats, in [0, 1].

    The probability that goes with the chain, of the probability that goes with question and chain:
    the total indirect effect over the total effect, where the chain is the mediator. An effect that
    needs both counts as the chain's. Δcot is clamped at 0, the share at 1. None where Δtotal is no
    signal.

    References
    ----------
    Robins and Greenland (1992), Identifiability and exchangeability for direct and indirect
    effects, Epidemiology 3(2): total and pure indirect effects.
    """
    return (
        None
        if total_drop < MIN_TOTAL_NATS
        else min(1.0, mass_lost(cot_drop) / mass_lost(total_drop))
    )


def cmi_against(control: str, cot_drop: float, control_drop: float) -> float | None:
    """Return `total_effect_share` against the control "total", `cmi` against any other."""
    estimate = total_effect_share if control == "total" else cmi
    return estimate(cot_drop, control_drop)


def cmi_reason(control: str, cot_drop: float, control_drop: float) -> str:
    """Return why `cmi_against` is undefined; "" where it is defined."""
    if cmi_against(control, cot_drop, control_drop) is not None:
        return ""
    if control == "total":
        return (
            f"no signal: question and chain together carry {max(0.0, control_drop):.2g} nat, below"
            f" {MIN_TOTAL_NATS:g}"
        )
    return no_signal_reason(cot_drop, control_drop)


def has_no_effect(control: str, largest_cmi: float) -> bool:
    """Return whether the largest CMI of an item's spans is that of a chain without effect.

    It is 0, or up to ``MAX_UNUSED_SHARE`` against "total", where nothing clamps rounding errors.
    """
    return largest_cmi <= (MAX_UNUSED_SHARE if control == "total" else 0.0)


def headline_reason(control: str, cot_drop: float | None, control_drop: float | None) -> str:
    """Return why CMI is no headline: the control loses more than the chain; "" where it is one.

    CMI is then 0, for a chain that is not used as for one that is used together with its question.
    It does not apply to "total", which holds the chain's drop as well.
    """
    if control == "total" or cot_drop is None or control_drop is None or control_drop <= cot_drop:
        return ""
    return (
        f"the control loses more ({control_drop:.3g} nats) than the chain ({cot_drop:.3g}), so CMI"
        " cannot tell a chain that is not used from one that needs its question: see mass lost, or"
        " --set mediation.control=total"
    )


def share_against(control: str, cot_drop: float, control_drop: float) -> float | None:
    """Return `cot_drop_share`; None against "total", which holds the chain's drop as well."""
    return None if control == "total" else cot_drop_share(cot_drop, control_drop)


def share_reason(control: str, cot_drop: float, control_drop: float) -> str:
    """Return why `share_against` is undefined; "" where it is defined."""
    if control == "total":
        return "the control total holds the chain's drop as well: CMI is the share of it"
    return cmi_reason(control, cot_drop, control_drop)


def cot_drop_share(cot_drop: float, control_drop: float) -> float | None:
    """Return Δcot / (|Δcot| + |Δctrl|), signed, in [−1, 1]; None where that sum is no signal."""
    return (
        None
        if abs(cot_drop) + abs(control_drop) < MIN_TOTAL_NATS
        else cot_drop / (abs(cot_drop) + abs(control_drop))
    )


def mass_lost(drop: float) -> float:
    """Return the share of the answer's probability that is lost, 1 − exp(−Δ), in [0, 1).

    A drop below 0 counts as 0.
    """
    return -math.expm1(-max(0.0, drop))


def relative_cmi_loss(full_cmi: float, partial_cmi: float) -> float | None:
    """Return max(0, total − part) / total of two CMIs; None where total is below ``MIN_CMI``."""
    return None if full_cmi < MIN_CMI else max(0.0, full_cmi - partial_cmi) / full_cmi


def apply_if_defined(function: Callable[..., float | None], *values: float | None) -> float | None:
    """Return ``function(*values)``; None where one of the values is None."""
    return None if None in values else function(*values)


def no_signal_reason(cot_drop: float, control_drop: float) -> str:
    """Return why `cmi` is undefined."""
    total_drop = max(0.0, cot_drop) + max(0.0, control_drop)
    return f"no signal: both drops together are {total_drop:.2g} nat, below {MIN_TOTAL_NATS:g}"


def too_small_reason(cmi_value: float) -> str:
    """Return why `relative_cmi_loss` is undefined."""
    return f"CMI is {cmi_value:.2g}, below {MIN_CMI:g}: nothing to take a share of"
