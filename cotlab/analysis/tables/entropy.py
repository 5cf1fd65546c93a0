"""Entropy of one chain as a table, from its scores."""

from __future__ import annotations

import pandas as pd

COLUMNS = ["step", "mean", "peak", "flag", "reason"]
FLAGS = {"entropy_jump": "A jump", "entropy_rise": "A jump after rising entropy"}


def steps_of(own: pd.DataFrame) -> pd.DataFrame:
    """One row a step: mean and peak in nats (None: undefined), flag ("", "jump", "rise"), and why the mean is missing."""
    rows = []
    for step, group in own[own["step"].notna()].groupby("step"):
        told = {str(r["metric"]): r for r in group.to_dict("records")}
        mean, peak = (told[name]["value"] if name in told else None for name in ("step_entropy", "step_entropy_peak"))
        raised = [name for name in FLAGS if name in told and told[name]["value"] == 1]
        reason = told["step_entropy"]["reason"] if "step_entropy" in told and pd.isna(mean) else None
        rows.append((int(step), mean, peak, raised[-1].removeprefix("entropy_") if raised else "", reason))
    return pd.DataFrame(rows, columns=COLUMNS)
