"""What validation measured, as a file: written whole, one scorer's part replaced at a time, read with what is shipped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cotlab.validation.models import weights_digest

FOLDER, LATEST = "validation", "latest.json"
SHIPPED = Path(__file__).parents[2] / "data" / "validation.json"
Report = dict[str, Any]


def as_json(report: Report) -> str:
    """The report as a file; a NaN in it is a bug and raises ValueError."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def merged(old: Report | None, new: Report) -> Report:
    """``new`` with the metrics that ``old`` has of other scorers; a scorer's metrics are replaced as a whole."""
    again = {told.get("scorer") for told in new["metrics"].values()}
    kept = {name: told for name, told in (old or {"metrics": {}})["metrics"].items() if told.get("scorer") not in again}
    return {**new, "metrics": {**kept, **new["metrics"]}}


def keep(report: Report, folder: Path) -> None:
    """Merge a report into ``validation/latest.json`` of a store; a reader sees the old file or the new one, never a part."""
    path = folder / FOLDER / LATEST
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{LATEST}.{os.getpid()}")
    fresh.write_text(as_json(merged(_read(path), report)), "utf-8")
    fresh.replace(path)


def read_report(folder: Path, shipped: Path = SHIPPED) -> Report | None:
    """The report of a store, and of scorers that it has not measured the shipped one; None where there is neither."""
    own, given = _read(folder / FOLDER / LATEST), _read(shipped)
    return given if own is None else merged(given, own)


def changed_weights(told: Report) -> list[str]:
    """The organisms whose weights are not those that a metric was measured on."""
    return [model for model, digest in told.get("weights", {}).items() if digest != weights_digest(model)]


def _read(path: Path) -> Report | None:
    if not path.is_file():
        return None
    found: Report = json.loads(path.read_text("utf-8"))
    about = {name: found.get(name) for name in ("items", "seed", "code_version", "at")}  # an older file says them only once
    return {**found, "metrics": {name: {**about, **told} for name, told in found["metrics"].items()}}
