"""What validation measured, as a file: written whole, one scorer's part replaced at a time, read with what is shipped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cotlab.core.resources import data_path
from cotlab.validation.models import weights_digest

FOLDER, LATEST = "validation", "latest.json"
SHIPPED = data_path("validation.json")
Report = dict[str, Any]


def report_json(report: Report) -> str:
    """The report as a file; a NaN in it is a bug and raises ValueError."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def merge_reports(old: Report | None, new: Report) -> Report:
    """``new`` with the metrics that ``old`` has of other scorers; a scorer's metrics are replaced as a whole."""
    measured = {metric.get("scorer") for metric in new["metrics"].values()}
    others = {
        name: metric
        for name, metric in (old or {"metrics": {}})["metrics"].items()
        if metric.get("scorer") not in measured
    }
    return {**new, "metrics": {**others, **new["metrics"]}}


def store_report(report: Report, folder: Path) -> None:
    """Merge a report into ``validation/latest.json`` of a store; a reader sees the old file or the new one, never a part."""
    path = folder / FOLDER / LATEST
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{LATEST}.{os.getpid()}")
    temporary.write_text(report_json(merge_reports(_read(path), report)), "utf-8")
    temporary.replace(path)


def read_report(folder: Path, shipped: Path = SHIPPED) -> Report | None:
    """The report of a store, and of scorers that it has not measured the shipped one; None where there is neither."""
    stored, shipped_report = _read(folder / FOLDER / LATEST), _read(shipped)
    return shipped_report if stored is None else merge_reports(shipped_report, stored)


def changed_weights(record: Report) -> list[str]:
    """The organisms whose weights are not those that a metric was measured on."""
    return [
        model
        for model, digest in record.get("weights", {}).items()
        if digest != weights_digest(model)
    ]


def _read(path: Path) -> Report | None:
    if not path.is_file():
        return None
    report: Report = json.loads(path.read_text("utf-8"))
    about = {
        name: report.get(name) for name in ("items", "seed", "code_version", "at")
    }  # an older file says them only once
    return {
        **report,
        "metrics": {name: {**about, **metric} for name, metric in report["metrics"].items()},
    }
