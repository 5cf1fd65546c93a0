"""Entropy of one chain as a table, from its scores."""

from __future__ import annotations

import pandas as pd

COLUMNS = ["step", "mean", "peak", "flag", "reason"]
FLAGS = {"entropy_jump": "A jump", "entropy_rise": "A jump after rising entropy"}


def entropy_steps(scores: pd.DataFrame) -> pd.DataFrame:
    """One row a step: mean and peak in nats (None: undefined), flag ("", "jump", "rise"), and why the mean is missing."""
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        by_metric = {str(r["metric"]): r for r in group.to_dict("records")}
        mean, peak = (
            by_metric[name]["value"] if name in by_metric else None
            for name in ("step_entropy", "step_entropy_peak")
        )
        raised = [name for name in FLAGS if name in by_metric and by_metric[name]["value"] == 1]
        reason = (
            by_metric["step_entropy"]["reason"]
            if "step_entropy" in by_metric and pd.isna(mean)
            else None
        )
        rows.append(
            (int(step), mean, peak, raised[-1].removeprefix("entropy_") if raised else "", reason)
        )
    return pd.DataFrame(rows, columns=COLUMNS)
