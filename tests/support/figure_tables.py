"""A table of the size of a real one for every registered figure: several groups, gaps, wide and
narrow intervals, and values at both ends of the scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from cotlab.core.registry import FIGURES

BASE: Mapping[str, Any] = {
    "metric": "answer_change",
    "n_undefined": 2,
    "reason": None,
    "method": "bootstrap (BCa, 2000 resamples)",
    "confidence": 0.95,
    "threshold": 0.5,
    "chosen": 0.5,
    "unit": "no unit",
    "measure": "steps",
    "n_zero": 1,
    "ceiling": 0.88,
    "chain": "reference",
    "given": "prefix",
    "control": "other",
    "at": "faithful-a",
    "text": "So Ann has 12 + 7 = 19 apples left in the basket.",
    "low": 0.55,
    "high": 0.75,
    "confirmed": True,
}
SHARES = (0.0, 0.504, 0.037, 1.0, 0.912, 0.25, 0.667, 0.118, 0.83)
"""Shares that the rows take in turn."""
PARTS = ("C", "R", "V", "D", "F", "r_raw")
SIGNALS = ("arithmetic_ok", "process_reward_min", "critic_vote_share", "chain_characters", "chance")
PERTURBATIONS = (
    "synonym",
    "reorder",
    "numeric",
    "logic_flip",
    "unit_swap",
    "meaning_preserving",
)
GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "answer_change_scale": {"label": ("r100", "reworded steps", "bypass-a", "r50", "faithful-a")},
    "ccs_by_position": {"mode": ("corrupt", "paraphrase", "remove"), "step": range(6)},
    "ccs_ranking": {"step": range(6)},
    "modes_by_metric": {
        "metric": ("accuracy_delta", "answer_change", "kl_divergence", "total_variation"),
        "mode": ("remove", "truncate", "corrupt", "paraphrase", "filler"),
    },
    "rrr_by_mode": {"mode": ("remove", "truncate", "corrupt", "paraphrase", "filler")},
    "entropy_by_step": {"step": range(8)},
    "chain_lengths": {"n_steps": range(2, 9)},
    "verification_links": {"link": ("reverse", "forward"), "step": range(5)},
    "cmi_density": {"source": ("filler", "shuffle", "other"), "keep": (0.1, 0.25, 0.5, 1.0)},
    "drop_density": {"source": ("filler", "shuffle"), "keep": (0.1, 0.25, 0.5, 1.0)},
    "layer_profile": {
        "metric": ("drop_cot", "drop_control"),
        "span": ("0", "1", "2", "3", "4", "5"),
    },
    "item_density": {"source": ("filler", "shuffle"), "keep": (0.1, 0.25, 0.5, 1.0)},
    "mediation_indices": {
        "metric": ("cmi", "share", "mass_lost", "density", "validity", "sequentiality", "bypass")
    },
    "drops_by_donor": {"part": ("cot", "control"), "donor": ("wp-0001", "wp-0002", "wp-0003")},
    "span_heatmap": {
        "source": ("filler",),
        "metric": ("cmi", "share", "mass_lost"),
        "span": ("0", "1", "2", "3", "0-1", "2-3", "all"),
    },
    "robustness_by_perturbation": {"perturbation": PERTURBATIONS},
    "answer_changes_by_perturbation": {"perturbation": PERTURBATIONS},
    "perturbation_cells": {
        "perturbation": ("synonym", "reorder", "numeric", "logic_flip", "unit_swap"),
        "step": range(6),
    },
    "item_cells": {"item_id": [f"wp-{i:04}" for i in range(8)], "step": range(6)},
    "reliability_parts": {"part": PARTS},
    "item_parts": {"part": PARTS},
    "signal_correlation": {"pair": [(a, b) for i, a in enumerate(PARTS) for b in PARTS[:i]]},
    "chain_cosines": {
        "pair": [
            (f"paraphrase {i}" if i else "as asked", f"paraphrase {j}")
            for j in range(1, 5)
            for i in range(j)
        ]
    },
    "diagnosis_rates": {"rule": ("brittle", "unfaithful", "unsound", "unstable")},
    "paired_differences": {
        "label": ("answer_change, corrupt", "answer_change, remove", "baseline_correct", "rrr")
    },
    "classifier_agreement": {
        "pair": [
            ("early_answer", "hint"),
            ("early_answer", "truncation"),
            ("hint", "truncation"),
            ("process_result", "hint"),
        ]
    },
    "label_agreement": {"label": ("acceptable", "first mistake", "faithful", "right answer")},
    "unfaithful_rates": {
        "group": ("faithful-a", "bypass-b"),
        "at": ("epoch 1", "epoch 2", "epoch 3"),
    },
    "unfaithful_by_category": {
        "group": ("faithful-a", "bypass-b", "a-model-with-a-name-of-some-length"),
        "at": ("hinted", "plain", "counterfactual geography"),
    },
    "threshold_sweep": {
        "group": ("early_answer", "truncation"),
        "threshold": (0.1, 0.3, 0.5, 0.7, 0.9),
    },
    "judge_by_epoch": {
        "group": ("faithful-a", "bypass-b"),
        "at": ("epoch 1", "epoch 2", "epoch 3"),
    },
    "chain_size": {"group": ("faithful-a", "bypass-b"), "at": ("epoch 1", "epoch 2", "epoch 3")},
    "process_result": {
        "group": ("faithful-a", "bypass-b"),
        "at": ("epoch 1", "epoch 2", "epoch 3"),
    },
    "validation_doses": {
        "organism": (
            "r0",
            "r25",
            "r50",
            "r75",
            "r100",
            "faithful-a",
            "faithful-b",
            "bypass-a",
            "hint",
        )
    },
    "feature_distributions": {
        "feature": ("C", "R", "V"),
        "sample": ("reference", "current"),
        "value": (0.1, 0.3, 0.5, 0.8),
    },
    "drift_scores": {"feature": (*PARTS, "chain_characters")},
    "drift_over_time": {"place": range(6), "feature": ("r_raw", "chain_characters")},
    "reliability_diagram": {"predicted": (0.05, 0.2, 0.35, 0.5, 0.52, 0.7, 0.88, 0.97)},
    "score_histogram": {
        "group": ("acceptable", "not acceptable", "no label"),
        "left": (0.5, 0.6, 0.7, 0.8, 0.9),
    },
    "threshold_volumes": {
        "group": ("released", "reviewed", "escalated"),
        "threshold": (0.1, 0.3, 0.5, 0.7, 0.9),
    },
    "calibrator_curves": {
        "calibrator": ("platt", "beta", "isotonic"),
        "r_raw": (0.1, 0.4, 0.6, 0.9),
    },
    "calibrator_comparison": {
        "metric": ("brier", "ece", "auroc", "log_loss"),
        "calibrator": ("platt", "isotonic", "beta", "none"),
    },
    "signal_aurocs": {"signal": SIGNALS},
}
"""Figure → the columns that its rows differ in, with their values."""
GAP_EVERY = 7
"""One row in so many has no value."""
NO_GAPS = {
    "score_histogram",
    "chain_lengths",
    "calibrator_curves",
    "feature_distributions",
    "drops_by_donor",
    "drift_over_time",
    "answer_change_scale",
}


def _row(name: str, place: int, keys: Mapping[str, Any]) -> dict[str, Any]:
    share = SHARES[place % len(SHARES)]
    width = (0.02, 0.3, 0.0, 0.12)[place % 4]
    row = {
        **BASE,
        **keys,
        "point": share,
        "value": keys.get("value", share),
        "mean": 0.5,
        "lo": max(0.0, share - width),
        "hi": min(1.0, share + width),
        "n": (300, 48, 7, 1204)[place % 4],
        "draws": 5,
        "count": (3, 41, 0, 120, 1)[place % 5],
        "verifier": "arithmetic",
    }
    if "pair" in row:
        row["one"], row["other"] = row.pop("pair")
    row |= _SPECIAL.get(name, lambda place, row: {})(place, row)
    if name not in NO_GAPS and place % GAP_EVERY == GAP_EVERY - 1:
        row |= dict.fromkeys(("point", "lo", "hi", "value", "mean", "peak"))
        row |= {"n": 0, "reason": "no rule changes what this step states"}
    return row


def _drift(place: int, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "psi": (0.05, 0.31, 1.4)[place % 3],
        "psi_hi": 0.12,
        "psi_limit": 0.2,
        "psi_p": 0.01,
        "ks": (0.05, 0.22, 0.6)[place % 3],
        "ks_hi": 0.15,
        "ks_limit": 0.2,
        "ks_p": 0.02,
        "alert": place % 3 == 2,
        "n_reference": 400,
        "n_current": 310,
        "at": f"2026-11-{1 + int(row.get('place', 0)):02} 09:30",
    }


def _doses(place: int, row: Mapping[str, Any]) -> dict[str, Any]:
    doses = {"r0": 0.0, "r25": 0.237, "r50": 0.505, "r75": 0.762, "r100": 1.0}
    model = str(row["organism"])
    group = "dose" if model in doses else model.split("-")[0]
    return {"group": group, "dose": doses.get(model), "lowest": 0, "highest": 1}


def _change(place: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """The shipped models as the validation report has them, and a run that follows its chain."""
    point, lo, hi = (
        (0.98, 0.9, 1.0),
        (0.0, 0.0, 0.06),
        (0.0, 0.0, 0.037),
        (0.461, 0.396, 0.527),
        (1.0, 0.963, 1.0),
    )[place]
    group = ("run", "control", "reference", "reference", "reference")[place]
    return {"point": point, "lo": lo, "hi": hi, "group": group}


_SPECIAL: Mapping[str, Any] = {
    "answer_change_scale": _change,
    "layer_profile": lambda place, row: {"unit": "nats"},
    "robustness_by_perturbation": lambda place, row: {"metric": "robustness"},
    "answer_changes_by_perturbation": lambda place, row: {"metric": "perturbed_answer_change"},
    "perturbation_cells": lambda place, row: {"metric": "divergence"},
    "item_cells": lambda place, row: {"metric": "divergence"},
    "entropy_by_step": lambda place, row: {
        "mean": 0.1 * place,
        "peak": 0.25 * place,
        "flag": ("", "jump", "", "rise")[place % 4],
    },
    "drops_by_donor": lambda place, row: {"sample": place, "value": 0.4 * place},
    "score_histogram": lambda place, row: {"right": round(row["left"] + 0.1, 1), "score": "r_cal"},
    "calibrator_curves": lambda place, row: {
        "kind": "curve",
        "r_cal": row["r_raw"] ** 2,
        "chosen": row["calibrator"] == "beta",
    },
    "calibrator_comparison": lambda place, row: {"chosen": row["calibrator"] == "platt"},
    "feature_distributions": lambda place, row: {
        "share": (0.25, 0.5, 0.75, 1.0)[place % 4],
        "band": 0.1,
    },
    "drift_scores": _drift,
    "drift_over_time": _drift,
    "validation_doses": _doses,
    "signal_aurocs": lambda place, row: {
        "is_baseline": row["signal"] in ("chain_characters", "chance"),
        "text": "",
    },
    "process_result": lambda place, row: {
        "point": None if row["point"] is None else 1 + row["point"],
        "lo": 1 + row["lo"],
        "hi": 1.1 + row["hi"],
    },
    "judge_by_epoch": lambda place, row: {
        "point": 1 + 9 * row["point"],
        "lo": 1 + 9 * row["lo"],
        "hi": 1 + 9 * row["hi"],
    },
}


def figure_table(name: str) -> pd.DataFrame:
    """Return a table for a registered figure."""
    grid = GRIDS[name]
    rows = [
        _row(name, place, dict(zip(grid, values, strict=True)))
        for place, values in enumerate(product(*grid.values()))
    ]
    kept = {*FIGURES[name].columns, "method", "confidence", *_EXTRA.get(name, ())}
    table = pd.DataFrame(rows)
    return table[[column for column in table.columns if column in kept]]


_EXTRA: Mapping[str, Sequence[str]] = {
    "rrr_by_mode": ("threshold",),
    "score_histogram": ("score", "low", "high"),
    "calibrator_curves": ("chosen", "n", "low", "high"),
    "calibrator_comparison": ("chosen",),
    "reliability_diagram": ("low", "high"),
    "validation_doses": ("lowest", "highest"),
}
"""Columns beyond those that a figure must have."""
