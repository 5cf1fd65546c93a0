"""The validation report as a file, merged scorer by scorer, and as the table of its figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cotlab.core.errors import ConfigError
from cotlab.core.registry import SCORERS
from cotlab.core.resources import data_path, shipped_organisms
from cotlab.run.output import atomic_file
from cotlab.validation.findings import dose_sentence
from cotlab.validation.models import BYPASS_MODELS, DOSE_MODELS, FAITHFUL_MODELS, weights_digest

REPORT_FOLDER, REPORT_FILE = "validation", "latest.json"
SHIPPED_REPORT_PATH = data_path("validation.json")
Report = dict[str, Any]


def report_to_json(report: Report) -> str:
    """Return the report as JSON text; a NaN in it is a bug and raises ValueError."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def merge_reports(old_report: Report | None, new_report: Report) -> Report:
    """Return ``new_report`` with the metrics that ``old_report`` has of other scorers."""
    measured_scorers = {metric.get("scorer") for metric in new_report["metrics"].values()}
    old_metrics = old_report["metrics"] if old_report else {}
    other_metrics = {
        name: old_metrics[name]
        for name in old_metrics
        if old_metrics[name].get("scorer") not in measured_scorers
    }
    return {**new_report, "metrics": {**other_metrics, **new_report["metrics"]}}


def store_report(report: Report, folder: Path) -> None:
    """Merge a report into ``validation/latest.json`` of a store.

    It is replaced as a whole: a reader never sees a part.
    """
    path = folder / REPORT_FOLDER / REPORT_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_report(path, merge_reports(_read_file(path), report))


def ship_report(report: Report, path: Path = SHIPPED_REPORT_PATH) -> Path:
    """Merge a report into the one that ships with the package, and return its path.

    Metrics of other scorers stay; those of scorers that are gone or declare no headlines any more
    are left out.

    Raises
    ------
    ConfigError
        If the file cannot be written, as in an installed package.
    """
    rank_by_scorer = {name: k for k, name in enumerate(SCORERS) if SCORERS[name].headlines}
    merged_report = merge_reports(_read_file(path), report)
    metrics = [
        item for item in merged_report["metrics"].items() if item[1].get("scorer") in rank_by_scorer
    ]
    metrics.sort(key=lambda item: rank_by_scorer[item[1]["scorer"]])
    try:
        _write_report(path, {**merged_report, "metrics": dict(metrics)})
    except OSError as error:
        raise ConfigError(
            f"The shipped report {path} cannot be written ({error.strerror or error}): run --ship"
            " in a checkout of the repository."
        ) from error
    return path


def read_report(folder: Path, shipped_path: Path = SHIPPED_REPORT_PATH) -> Report | None:
    """Return the report of a store, completed by the shipped one for scorers not measured there.

    Parameters
    ----------
    folder : Path
        The store's folder.
    shipped_path : Path

    Returns
    -------
    dict or None
        None where there is neither.
    """
    stored_report = _read_file(folder / REPORT_FOLDER / REPORT_FILE)
    shipped_report = _read_file(shipped_path)
    return shipped_report if stored_report is None else merge_reports(shipped_report, stored_report)


def find_changed_organisms(metric_records: Iterable[Report]) -> list[str]:
    """Return the organisms whose weights differ from those that a metric was measured on.

    One that is not installed counts as another. Each organism is named once.
    """
    measured = dict.fromkeys(
        weights for record in metric_records for weights in record.get("weights", {}).items()
    )
    installed = shipped_organisms()
    digests = {
        model: weights_digest(model)
        for model in dict.fromkeys(m for m, _ in measured)
        if model in installed
    }
    return list(dict.fromkeys(model for model, digest in measured if digests.get(model) != digest))


def find_changed_scorers(report: Report) -> list[str]:
    """Return the scorers whose version differs from the one that their metrics were measured with.

    A record without a version counts as one of another; a scorer that is not installed does not.
    """
    records = report["metrics"].values()
    return [
        name
        for name in dict.fromkeys(record["scorer"] for record in records)
        if name in SCORERS
        and any(
            record["scorer"] == name and record.get("scorer_version") != SCORERS[name].version
            for record in records
        )
    ]


def _write_report(path: Path, report: Report) -> None:
    with atomic_file(path) as file:
        file.write(report_to_json(report))


def _read_file(path: Path) -> Report | None:
    if not path.is_file():
        return None
    report: Report = json.loads(path.read_text("utf-8"))
    shared_fields = {
        name: report.get(name) for name in ("items", "seed", "code_version", "at")
    }  # older files have them only once
    return {
        **report,
        "metrics": {
            name: {**shared_fields, **metric} for name, metric in report["metrics"].items()
        },
    }


GROUP_BY_MODEL = {
    **dict.fromkeys(DOSE_MODELS.values(), "dose"),
    **dict.fromkeys(FAITHFUL_MODELS, "faithful"),
    **dict.fromkeys(BYPASS_MODELS, "bypass"),
    "hint": "hint",
}
"""Group of each model, in the order of the figure."""


def doses_table(metric: str, metric_report: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of the figure of one metric: a row for each organism."""
    lowest_value, highest_value = metric_report.get("range", (None, None))
    rows = []
    for model, group in GROUP_BY_MODEL.items():
        organism = metric_report["organisms"][model]
        nominal_dose = next(
            (plotted_dose / 100 for plotted_dose, name in DOSE_MODELS.items() if name == model),
            None,
        )
        plotted_dose = organism.get("measured_dose", nominal_dose) if group == "dose" else None
        rows.append(
            {
                "metric": metric,
                "organism": model,
                "group": group,
                "dose": plotted_dose,
                **{name: organism[name] for name in ("point", "lo", "hi", "n")},
                "why": organism.get("why_undefined") or "",
                "lowest": lowest_value,
                "highest": highest_value,
                "faithful_is": metric_report["faithful_is"],
                "unit": metric_report.get("unit", ""),
                "moves": dose_sentence(metric_report) is not None,
            }
        )
    return pd.DataFrame(rows)
