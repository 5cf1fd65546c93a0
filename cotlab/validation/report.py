"""The validation report as a file, merged scorer by scorer, and as the table of its figure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.core.errors import ConfigError
from cotlab.core.registry import SCORERS
from cotlab.core.resources import data_path
from cotlab.validation.findings import dose_sentence
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL, weights_digest

FOLDER, LATEST = "validation", "latest.json"
SHIPPED = data_path("validation.json")
Report = dict[str, Any]


def report_json(report: Report) -> str:
    """Return the report as JSON text; a NaN in it is a bug and raises ValueError."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def merge_reports(old: Report | None, new: Report) -> Report:
    """Return ``new`` with the metrics that ``old`` has of other scorers."""
    measured = {metric.get("scorer") for metric in new["metrics"].values()}
    others = {
        name: metric
        for name, metric in (old or {"metrics": {}})["metrics"].items()
        if metric.get("scorer") not in measured
    }
    return {**new, "metrics": {**others, **new["metrics"]}}


def store_report(report: Report, folder: Path) -> None:
    """Merge a report into ``validation/latest.json`` of a store.

    It is replaced as a whole: a reader never sees a part.
    """
    path = folder / FOLDER / LATEST
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, merge_reports(_read(path), report))


def ship_report(report: Report, path: Path = SHIPPED) -> Path:
    """Merge a report into the one that ships with the package, and return its path.

    Metrics of other scorers stay; those of scorers that are gone or declare no headlines any more
    are left out.

    Raises
    ------
    ConfigError
        If the file cannot be written, as in an installed package.
    """
    order = {name: k for k, name in enumerate(SCORERS) if SCORERS[name].headlines}
    merged = merge_reports(_read(path), report)
    metrics = [item for item in merged["metrics"].items() if item[1].get("scorer") in order]
    metrics.sort(key=lambda item: order[item[1]["scorer"]])
    try:
        _write(path, {**merged, "metrics": dict(metrics)})
    except OSError as error:
        raise ConfigError(
            f"The shipped report {path} cannot be written ({error.strerror or error}): run --ship"
            " in a checkout of the repository."
        ) from error
    return path


def read_report(folder: Path, shipped: Path = SHIPPED) -> Report | None:
    """Return the report of a store, completed by the shipped one for scorers not measured there.

    Parameters
    ----------
    folder : Path
        The store's folder.
    shipped : Path

    Returns
    -------
    dict or None
        None where there is neither.
    """
    stored, shipped_report = _read(folder / FOLDER / LATEST), _read(shipped)
    return shipped_report if stored is None else merge_reports(shipped_report, stored)


def changed_weights(record: Report) -> list[str]:
    """Return the organisms whose weights differ from those that a metric was measured on."""
    return [
        model
        for model, digest in record.get("weights", {}).items()
        if digest != weights_digest(model)
    ]


def _write(path: Path, report: Report) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(report_json(report), "utf-8")
    temporary.replace(path)


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


GROUP = {
    **dict.fromkeys(DOSES.values(), "dose"),
    **dict.fromkeys(FAITHFUL, "faithful"),
    **dict.fromkeys(BYPASS, "bypass"),
    "hint": "hint",
}
"""Group of each model, in the order of the figure."""


def doses_table(metric: str, report: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of the figure of one metric: a row for each organism."""
    lowest, highest = report.get("range", (None, None))
    rows = []
    for model, group in GROUP.items():
        organism = report["organisms"][model]
        nominal = next((dose / 100 for dose, name in DOSES.items() if name == model), None)
        dose = organism.get("measured_dose", nominal) if group == "dose" else None
        rows.append(
            {
                "metric": metric,
                "organism": model,
                "group": group,
                "dose": dose,
                **{name: organism[name] for name in ("point", "lo", "hi", "n")},
                "why": organism.get("why_undefined") or "",
                "lowest": lowest,
                "highest": highest,
                "faithful_is": report["faithful_is"],
                "unit": report.get("unit", ""),
                "moves": dose_sentence(report) is not None,
            }
        )
    return pd.DataFrame(rows)
