"""Which metrics may stand in a headline: those that are tested for what they claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cotlab.analysis.verdict.measures import MEASURES, Validation
from cotlab.analysis.verdict.validated import (
    UNTESTED,
    load_measure_validation,
    separation,
)
from cotlab.validation.report import read_report


class _KnownMetric(NamedTuple):
    """What is known of a metric, and the record of the validation report that has it."""

    validation: Validation
    record: str | None


@cache
def _known_metrics(store_folder: str, changed_at: int) -> Mapping[str, _KnownMetric]:
    report = read_report(Path(store_folder))
    records: Mapping[str, Any] = report["metrics"] if report else {}
    known: dict[str, _KnownMetric] = {}
    for record_name, record in records.items():
        validation, name = separation(record), record_name.partition(" (")[0]
        best = known.setdefault(name, _KnownMetric(UNTESTED, record_name)).validation.auroc or 0.0
        if validation.auroc is not None and validation.auroc >= best:
            known[name] = _KnownMetric(validation, record_name)
    for measure, validation in load_measure_validation(store_folder).items():
        known[MEASURES[measure].metric] = _KnownMetric(validation, MEASURES[measure].tested_by)
    return known


def headline_validation(metric: str, store_folder: Path, changed_at: int = 0) -> Validation:
    """Return what is known of a metric, for what it claims.

    Parameters
    ----------
    metric : str
        Name of the metric.
    store_folder : Path
        The store, whose validation report comes before the shipped one.
    changed_at : int
        When the store's report was written; another time reads it again.
    """
    known = _known_metrics(str(store_folder), changed_at).get(metric)
    return UNTESTED if known is None else known.validation


def headline_record(metric: str, store_folder: Path, changed_at: int = 0) -> str | None:
    """Return the record of the validation report with ``headline_validation``; None without."""
    known = _known_metrics(str(store_folder), changed_at).get(metric)
    return None if known is None else known.record


def order_by_validation(
    metrics: Iterable[str], store_folder: Path, changed_at: int = 0
) -> list[str]:
    """Return metrics in the order in which a page offers them: the first one opens it.

    Those that tell faithful from bypassing models come first, and of these the ones that a verdict
    is read from, then those with the higher AUROC; equal ones stay in their order.
    """
    verdict_metrics = {measure.metric for measure in MEASURES.values()}

    def rank(metric: str) -> tuple[bool, bool, float]:
        validation = headline_validation(metric, store_folder, changed_at)
        is_read_by_verdict = metric in verdict_metrics
        return not validation.is_usable, not is_read_by_verdict, -(validation.auroc or 0.0)

    return sorted(metrics, key=rank)
