"""Whether a drift check found drift, found none, or cannot say."""

from __future__ import annotations

from typing import Literal

from cotlab.review.release.drift_check import DriftCheck, FeatureCheck

DriftState = Literal["drift", "none", "unclear"]
"""``drift``: an alert. ``none``: every feature was tested, nothing moved, and a shift of the limits
would have been seen. ``unclear``: anything else."""
HEADLINES: dict[DriftState, str] = {
    "drift": "Drift.",
    "none": "No drift.",
    "unclear": "Cannot say.",
}
"""First words of a check's result."""
BEHAVIOURS = {
    ("ccs_corrupt", "numeric_change"): (
        "whether the answer follows a step that states something else"
    ),
    ("mass_lost", "bypass"): "what the answer loses without the chain's states",
    ("hint_followed",): "whether a suggestion moves the answer",
}
"""Features of what a model does, any of them for each behaviour; the others are about the chain as
a text."""


def drift_state(check: DriftCheck) -> DriftState:
    """Return what a check found."""
    if check.alert:
        return "drift"
    return "unclear" if drift_doubts(check) else "none"


def drift_doubts(check: DriftCheck) -> list[str]:
    """Return why a check without an alert does not show that nothing drifted; [] where it does.

    A test that is passed without its limit, a limit that is passed without its test, a sample in
    which chance alone reaches the limit, and a feature that could not be compared each leave it
    open.
    """
    tested = [feature for feature in check.features if not feature.drift.reason]
    doubts = []
    energy = check.joint.energy
    if energy.p is not None and energy.p <= check.alpha:
        doubts.append(f"all features together moved (p = {energy.p:.3f})")
    if certain := [feature.name for feature in tested if _is_certain(feature, check.alpha)]:
        doubts.append(
            f"{', '.join(certain)} moved by more than chance, though by less than the limit"
        )
    if far := [feature.name for feature in tested if _is_past_limit(feature, check)]:
        doubts.append(f"{', '.join(far)} differ by more than the limit, which may be chance")
    if blurred := [feature for feature in tested if _is_blurred(feature, check)]:
        sizes = sorted({(f.drift.n_reference, f.drift.n_current) for f in blurred})
        size_text = " or ".join(f"{first} and {second}" for first, second in sizes[:1])
        names = ", ".join(feature.name for feature in blurred)
        doubts.append(
            f"with {size_text} items chance alone may reach the limit, so that a shift of this size"
            f" could not be told in {names}"
        )
    missing = [feature for feature in check.features if feature.drift.reason]
    one_sided = [f for f in missing if f.drift.n_reference * f.drift.n_current == 0]
    doubts += [
        f"{feature.name}: {feature.drift.reason}"
        for feature in missing
        if feature not in one_sided and not feature.drift.is_constant
    ]
    if one_sided:
        doubts.append(f"measured on one side only: {', '.join(f.name for f in one_sided)}")
    return doubts


def uncompared_text(check: DriftCheck) -> str:
    """Return a sentence on behaviours that a check did not compare; "" where it did all."""
    compared = {feature.name for feature in check.features if feature.drift.reason == ""}
    compared |= {feature.name for feature in check.features if feature.drift.is_constant}
    missing = [text for names, text in BEHAVIOURS.items() if not compared & {*names}]
    return f"Not compared: {'; '.join(missing)}." if missing else ""


def _is_certain(feature: FeatureCheck, alpha: float) -> bool:
    return min(feature.psi_adjusted or 1, feature.ks_adjusted or 1) <= alpha


def _is_past_limit(feature: FeatureCheck, check: DriftCheck) -> bool:
    return (feature.drift.ks.value or 0) >= check.ks or (feature.drift.psi.value or 0) >= check.psi


def _is_blurred(feature: FeatureCheck, check: DriftCheck) -> bool:
    """Whether shuffled items reach both limits, so that no test could tell a shift of that size."""
    return (feature.drift.ks.null_hi or 0) >= check.ks and (
        feature.drift.psi.null_hi or 0
    ) >= check.psi
