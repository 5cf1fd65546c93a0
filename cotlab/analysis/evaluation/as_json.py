"""An evaluation as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.analysis.evaluation.results import (
    Evaluation,
    LocationResult,
    RunDifference,
    SignalResult,
    TargetResult,
    headline,
)
from cotlab.stats.intervals import Interval

SHORT_NAMES: Mapping[str, str] = {"chain_sound": "T1", "chain_sound_given_correct": "T2"}
"""Targets that have a short name, which JSON output uses."""


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON values; targets by their short name where they have one."""
    return {
        "runs": list(evaluation.runs),
        "n_chains": evaluation.n_chains,
        "notes": list(evaluation.notes),
        "left_out": dict(evaluation.left_out),
        "targets": {
            SHORT_NAMES.get(result.target, result.target): _target_json(result)
            for result in evaluation.targets
        },
    }


def _target_json(result: TargetResult) -> dict[str, Any]:
    return {
        "target": result.target,
        "what": result.what,
        "headline": headline(result),
        "n": result.n,
        "n_false": result.n_false,
        "n_questions": result.n_questions,
        "metrics": {signal.name: _signal_json(signal) for signal in result.signals},
        "location": {location.name: _location_json(location) for location in result.locations},
        "run_differences": [_run_difference_json(row) for row in result.run_differences],
    }


def _signal_json(result: SignalResult) -> dict[str, Any]:
    measures = result.measures
    return {
        "auroc": _interval_json(measures["auroc"], result.n),
        "average_precision": _interval_json(measures["average_precision"], result.n),
        "tpr_at_1": measures["tpr_at_1"].point,
        "tpr_at_5": measures["tpr_at_5"].point,
        "tpr_at_1_interval": _interval_json(measures["tpr_at_1"], result.n),
        "tpr_at_5_interval": _interval_json(measures["tpr_at_5"], result.n),
        "n_undefined": result.n_undefined,
        "is_baseline": result.is_baseline,
        "verdict": result.verdict,
        "sounder": "lower" if result.is_flipped else "higher",
        "over": {name: _interval_json(value) for name, value in result.differences.items()},
        "by_domain": {
            name: _interval_json(auroc) for name, auroc in (result.by_domain or {}).items()
        },
        **{name: _interval_json(value) for name, value in (result.calibration or {}).items()},
        "missed": [list(key) for key in result.missed],
        "false_alarms": [list(key) for key in result.false_alarms],
    }


def _location_json(result: LocationResult) -> dict[str, Any]:
    measures = result.measures
    return {
        "exact": measures.exact.point,
        "none_right": measures.none_right.point,
        "pb_f1": measures.pb_f1.point,
        "exact_interval": _interval_json(measures.exact),
        "pb_f1_interval": _interval_json(measures.pb_f1),
        "pb_f1_by_set": dict(measures.pb_f1_by_set),
        "n": result.n,
        "n_undefined": result.n_undefined,
        "is_baseline": result.is_baseline,
        "over": {name: _interval_json(value) for name, value in result.differences.items()},
    }


def _run_difference_json(row: RunDifference) -> dict[str, Any]:
    return {
        "metric": row.signal,
        "first": row.first,
        "second": row.second,
        "same_chains": row.is_same_chains,
        "first_auroc": _interval_json(row.first_auroc),
        "second_auroc": _interval_json(row.second_auroc),
        "difference": _interval_json(row.difference),
    }


def _interval_json(interval: Interval, n_chains: int | None = None) -> dict[str, Any]:
    """Return an interval; ``n`` counts chains where given, else questions."""
    counts = {"n": interval.n} if n_chains is None else {"n": n_chains, "n_questions": interval.n}
    return {
        "point": interval.point,
        "lo": interval.lo,
        "hi": interval.hi,
        **counts,
        "reason": interval.reason,
    }
