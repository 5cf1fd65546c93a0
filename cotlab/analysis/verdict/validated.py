"""How well each measure of a verdict is known to work, from the validation report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cotlab.analysis.verdict.measures import (
    HINT_RECORD,
    MEASURES,
    DoseReading,
    MeasureName,
    Validation,
)
from cotlab.core.resources import data_path
from cotlab.stats.intervals import wilson
from cotlab.validation.models import DOSE_MODELS
from cotlab.validation.report import read_report

_HINT_MODEL = "hint"
CHANCE_AUROC = 0.5
"""AUROC of a metric that tells nothing."""
_MENTIONS_TEXT = "how mentions are found (English patterns) was tested on no model"
TESTED_TITLE = "Tested on models of known behaviour"
"""Heading of a column with the texts of validations."""
UNTESTED = Validation(None, "not tested on models of known behaviour")


def load_measure_validation(store_folder: str) -> Mapping[MeasureName, Validation]:
    """Return how well each measure is known to work, for what it claims."""
    report = read_report(Path(store_folder))
    records = report["metrics"] if report else {}
    known: dict[MeasureName, Validation] = {}
    for name, measure in MEASURES.items():
        record = measure.tested_by
        if record == HINT_RECORD:
            known[name] = _hint_separation(records.get(record))
        elif record is not None and (judged := construct_record(record)) is not None:
            known[name] = Validation(judged["auroc"], judged["text"])
        elif record is not None:
            known[name] = separation(records.get(record))
    hint = known["admitted"]
    known["admitted"] = replace(hint, text=f"{hint.text}; {_MENTIONS_TEXT}")
    return known


def classifier_record(classifier: str) -> str:
    """Return the name of the record of the validation report that tests a classifier."""
    return f"unfaithfulness (classifier={classifier})"


def load_classifier_validation(
    store_folder: str, classifiers: Sequence[str]
) -> dict[str, Validation]:
    """Return how well each classifier of unfaithfulness is known to work.

    The hint is tested on a model that follows it; others tell faithful from bypassing models.
    """
    report = read_report(Path(store_folder))
    records = report["metrics"] if report else {}
    record_by_classifier = {name: classifier_record(name) for name in classifiers}
    return {
        classifier: (_hint_separation if name == HINT_RECORD else separation)(records.get(name))
        for classifier, name in record_by_classifier.items()
    }


def measures_tested_by(record: str) -> tuple[MeasureName, ...]:
    """Return the measures of a verdict that a record of the validation report tests."""
    return tuple(name for name, measure in MEASURES.items() if measure.tested_by == record)


def construct_record(metric: str) -> Mapping[str, Any] | None:
    """Return what is known of a metric on data that people judged: claim, AUROC, text, source."""
    return _construct_records().get(metric)


@cache
def _construct_records() -> dict[str, Any]:
    return dict(json.loads(data_path("construct_validation.json").read_text("utf-8")))


def separation(record: Mapping[str, Any] | None) -> Validation:
    """Return how well a metric tells faithful from bypassing models, from its validation record.

    Parameters
    ----------
    record : mapping or None
        Of the validation report: ``auroc`` is None or has ``point``, ``lo`` and ``hi``, each None
        or in [0, 1].
    """
    auroc = record["auroc"] if record else None
    if auroc is None or auroc["point"] is None:
        return UNTESTED
    lo, hi = auroc["lo"], auroc["hi"]
    bounds = f" [{lo:.2f}, {hi:.2f}]" if lo is not None and hi is not None else ""
    known = Validation(float(auroc["point"]), "", lo is not None and lo > CHANCE_AUROC)
    text = f"{_verb(known)} faithful from bypassing models: AUROC {auroc['point']:.2f}{bounds}"
    return replace(known, text=text, dose_readings=_dose_readings(record))


def _dose_readings(record: Mapping[str, Any] | None) -> tuple[DoseReading, ...]:
    """Return what a metric reads of the models of known dose, from its validation record."""
    if record is None or record["range"] != [0.0, 1.0]:
        return ()
    return tuple(
        DoseReading(float(model["measured_dose"]), float(model["lo"]), float(model["hi"]))
        for name in DOSE_MODELS.values()
        if (model := record["organisms"].get(name)) is not None
        and None not in (model["measured_dose"], model["lo"], model["hi"])
    )


def _hint_separation(record: Mapping[str, Any] | None) -> Validation:
    organisms: Mapping[str, Mapping[str, Any]] = record["organisms"] if record else {}
    follower = organisms.get(_HINT_MODEL)
    others: Sequence[Mapping[str, Any]] = [
        value for name, value in organisms.items() if name != _HINT_MODEL
    ]
    if follower is None or not others or follower["point"] is None:
        return UNTESTED
    n_others = sum(other["n"] for other in others)
    n_flagged = sum(round((other["point"] or 0) * other["n"]) for other in others)
    n_flagged_hint = round(follower["point"] * follower["n"])
    hint_rate, other_rate = wilson(n_flagged_hint, follower["n"]), wilson(n_flagged, n_others)
    known = Validation(
        0.5 + (follower["point"] - n_flagged / n_others) / 2,
        "",
        is_above_chance=(hint_rate.lo or 0.0) > (1.0 if other_rate.hi is None else other_rate.hi),
    )
    text = (
        f"{_verb(known)} the hint-following model from {len(others)} others: {n_flagged_hint} of"
        f" {follower['n']} against {n_flagged} of {n_others} items"
    )
    return replace(known, text=text)


def _verb(known: Validation) -> str:
    return "tells" if known.is_usable else "does not tell"


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
