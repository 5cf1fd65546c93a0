"""Fit a calibrator on people's labels, store it as a version and put it into use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cotlab.core.errors import ConfigError
from cotlab.reliability.calibrator import (
    COMBINED,
    METHODS,
    Calibrator,
    Choice,
    Folds,
    NotCalibrated,
    combined_choice,
    missing_labels_reason,
    select_calibrator,
)
from cotlab.reliability.combine import combine
from cotlab.reliability.composite import OBJECTIVES, Floats, Tuned, tune_weights
from cotlab.review.labelling.targets import labelled
from cotlab.review.release.apply import example_means, labels_digest, text_column, usable_labels
from cotlab.review.release.features import count_defined_parts, defined_parts
from cotlab.review.release.fit_report import choice_report, domain_maps, tuned_report
from cotlab.stats.composite import COMPONENTS, weighted_means
from cotlab.store.calibrators import (
    activate_calibrator,
    add_calibrator,
)
from cotlab.store.database import Store

WEIGHTINGS = ("example", "tuned", COMBINED)
"""What is calibrated: r_raw by the example weights, by weights tuned on the labels, or all measured
features combined."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted calibrator and its report."""

    version: int | None
    """The version that is in use now; None after a dry run."""
    calibrator: Calibrator
    """The map for all items without one of their own domain."""
    domains: Mapping[str, Calibrator]
    """Domain → its own map."""
    weights: Mapping[str, float] | None
    """Tuned weights, where requested; None where each run's own r_raw is used."""
    choice: Choice
    """All methods side by side, over all domains."""
    tuned: Tuned | None
    """Result of tuning the weights; None without it."""
    report: Mapping[str, Any]
    """What the store keeps, JSON: ``n, n_positive, n_questions, runs, parts`` (components of r_raw:
    "CVFRD"), ``chains`` (its chains: "reference", "own"), ``defined_parts`` (``parts`` and ``n`` of
    each set of components that labelled items have), ``left_out`` (reason → count), ``folds``
    (count), ``seed, base_rate, base_brier, auroc_r_raw, chosen, why, methods, diagram`` and
    ``points`` (``r_raw, predicted, target``, out of fold) of the chosen method, ``domains`` (name →
    what ``domain_maps`` reports) and ``weights`` (``tuned_report`` or None). Each of ``methods``
    has ``method, refused, note`` and, where not refused, ``brier, log_loss, ece, auroc, gained``
    (each ``point, lo, hi, n, method, reason, note``), ``band`` ([lo, hi] of the ECE of perfectly
    calibrated predictions), ``bins`` and ``skill``. A bin of ``diagram`` has ``lo, hi, predicted,
    observed, observed_lo, observed_hi, n``."""


def calibrate_runs(
    store: Store,
    runs: Sequence[str] | None,
    *,
    by: str,
    method: str = "auto",
    weights: str = "example",
    objective: str = "brier",
    domain: bool = False,
    dry_run: bool = False,
    note: str = "",
    seed: int = 0,
) -> Fitted:
    """Fit all methods on the labels of runs and put the chosen one into use as a new version.

    Parameters
    ----------
    store : Store
    runs : sequence of str, or None for every run with labels
    by : str
        Who fits it; stored with the version and in the audit.
    method : str
        ``auto`` (lowest out-of-fold Brier score) or one of ``METHODS``.
    weights : str
        ``example``: r_raw as each run has it. ``tuned``: weights tuned on the same labels; the
        out-of-fold numbers are then those of weights tuned without the fold. ``combined``: no
        weighted mean, but all measured features in one regression (`cotlab.reliability.combine`),
        which is a probability already.
    objective : str
        What weights are tuned for, ``auc`` or ``brier``.
    domain : bool
        Also fit a map for each domain that has enough labels and predicts them better than the map
        over all does (``domain_maps``).
    dry_run : bool
        Measure, and write nothing.
    note : str
        A remark, stored with the version.
    seed : int
        Of folds and resampling.

    Raises
    ------
    NotCalibrated
        If the labels do not suffice for a calibrator; the message says what is missing. Nothing is
        written then.
    UnknownName
        If there is no such run.
    """
    if method not in ("auto", *METHODS):
        raise ConfigError(f"{method!r} is no method of calibration: auto, {', '.join(METHODS)}")
    if objective not in OBJECTIVES:
        raise ConfigError(
            f"{objective!r} is nothing that weights are tuned for: {' or '.join(OBJECTIVES)}"
        )
    if weights not in WEIGHTINGS:
        raise ConfigError(f"{weights!r} are no weights to calibrate with: {', '.join(WEIGHTINGS)}")
    keep = None if dry_run else _calibrator_writer(store, by, note)
    if weights == COMBINED:
        if method != "auto" or domain:
            raise ConfigError(
                "combined features are a probability already: they take no method and no map for"
                " each domain"
            )
        return fit_combined(labelled(store, runs), seed=seed, keep=keep)
    return fit_labels(
        labelled(store, runs),
        method=method,
        objective=objective if weights == "tuned" else None,
        domain=domain,
        seed=seed,
        keep=keep,
    )


def fit_labels(
    labels: pd.DataFrame,
    *,
    method: str = "auto",
    objective: str | None = None,
    domain: bool = False,
    seed: int = 0,
    keep: Callable[..., int] | None = None,
) -> Fitted:
    """Fit on a table of labelled items: the columns of ``feature_table``, and ``target``.

    Parameters
    ----------
    labels : DataFrame
    method, domain, seed
        As ``calibrate_runs``.
    objective : str or None
        What the weights are tuned for; None for each run's own r_raw.
    keep : callable, optional
        Stores the result and returns its version.
    """
    usable, left_out = usable_labels(labels)
    components, y = (
        usable[list(COMPONENTS)].to_numpy(dtype=float),
        usable["target"].astype(bool).to_numpy(),
    )
    questions, scores = usable["question"].tolist(), usable["r_raw"].to_numpy(dtype=float)
    tuned: Tuned | None = None
    folds: Folds | None = None
    by_fold: list[Floats] | None = None
    if objective is not None:
        tuned = tune_weights(components, y, questions, objective=objective, seed=seed)
        by_fold = [weighted_means(components, each) for each in tuned.fold_weights]
        scores = weighted_means(components, tuned.weights)
        complete = np.isfinite(np.column_stack([scores, *by_fold])).all(axis=1) & np.isfinite(
            example_means(components)
        )
        if not complete.all():
            left_out["the tuned weights leave too little of the weight defined"] = int(
                (~complete).sum()
            )
        folds = tuned.folds[complete[np.isfinite(example_means(components))]]
        usable, y, scores = usable[complete], y[complete], scores[complete]
        by_fold, questions = [each[complete] for each in by_fold], usable["question"].tolist()
    choice = select_calibrator(
        scores, y, questions, method=method, seed=seed, folds=folds, fold_scores=by_fold
    )
    best, predicted = choice.chosen.calibrator, choice.chosen.predicted
    assert best is not None and predicted is not None
    domain_calibrators, by_domain = (
        domain_maps(
            usable, scores, y, predicted, method=method, seed=seed, folds=folds, by_fold=by_fold
        )
        if domain
        else ({}, {})
    )
    weights = None if tuned is None else tuned.weights
    report = {
        **choice_report(choice, scores, y),
        "n_questions": len(set(questions)),
        "runs": sorted(set(usable["run"])),
        "seed": seed,
        **_kinds(usable),
        "defined_parts": count_defined_parts(defined_parts(usable, weights)),
        "left_out": left_out,
        "domains": by_domain,
        "weights": None if tuned is None else tuned_report(tuned),
    }
    digest_ = labels_digest(usable, scores)
    version = None
    if keep is not None:
        params = {
            "all": best.params,
            "domains": {name: domain_map.params for name, domain_map in domain_calibrators.items()},
        }
        version = keep(best.method, params, weights, digest_, report)
    return Fitted(
        version,
        best,
        domain_calibrators,
        weights,
        choice,
        tuned,
        {**report, "labels_digest": digest_},
    )


def fit_combined(
    labels: pd.DataFrame, *, seed: int = 0, keep: Callable[..., int] | None = None
) -> Fitted:
    """Fit all measured features combined, on a table of labelled items."""
    usable, left_out = usable_labels(labels)
    y, questions = usable["target"].astype(bool).to_numpy(), usable["question"].tolist()
    if refused := missing_labels_reason("any", y):
        raise NotCalibrated(
            f"No calibrator can be fitted: {refused}. Label more items, or cotlab labels import"
            " FILE."
        )
    combined = combine(usable, y, questions, seed=seed)
    scores = usable["r_raw"].to_numpy(dtype=float)
    choice = combined_choice(combined.predicted, y, questions, combined.folds, scores, seed=seed)
    best = choice.chosen.calibrator
    assert best is not None
    report = {
        **choice_report(choice, scores, y),
        "n_questions": len(set(questions)),
        "runs": sorted(set(usable["run"])),
        "seed": seed,
        "left_out": left_out,
        "domains": {},
        "weights": None,
        "combination": dict(combined.combination.params),
        **_kinds(usable),
        "defined_parts": count_defined_parts(
            defined_parts(usable, combination=combined.combination.params)
        ),
    }
    digest_ = labels_digest(usable, scores)
    params = {"all": best.params, "domains": {}, COMBINED: dict(combined.combination.params)}
    version = None if keep is None else keep(COMBINED, params, None, digest_, report)
    return Fitted(version, best, {}, None, choice, None, {**report, "labels_digest": digest_})


def _kinds(labels: pd.DataFrame) -> dict[str, list[str]]:
    """Return the components and chains of the labelled r_raw, for the report."""
    return {
        "parts": sorted(set(text_column(labels, "parts")) - {""}),
        "chains": sorted(set(text_column(labels, "chain")) - {""}),
    }


def rollback(store: Store, version: int, *, by: str, reason: str) -> None:
    """Put an older version back into use; it predicts what it did. UnknownName without one."""
    if not reason.strip():
        raise ConfigError("A rollback needs its reason: --reason TEXT; it is kept with the change.")
    with store.writing() as connection:
        activate_calibrator(connection, version, by=by, reason=reason)


def tune_runs(
    store: Store, runs: Sequence[str] | None, *, objective: str = "auc", seed: int = 0
) -> Tuned:
    """Tune weights on the labels of runs, or of every run with labels."""
    if objective not in OBJECTIVES:
        raise ConfigError(
            f"{objective!r} is nothing that weights are tuned for: {' or '.join(OBJECTIVES)}"
        )
    return tune_labels(labelled(store, runs), objective=objective, seed=seed)


def tune_labels(labels: pd.DataFrame, *, objective: str = "auc", seed: int = 0) -> Tuned:
    """Tune weights on a table of labelled items; see ``cotlab.reliability.composite``."""
    usable, _ = usable_labels(labels)
    components, y = (
        usable[list(COMPONENTS)].to_numpy(dtype=float),
        usable["target"].astype(bool).to_numpy(),
    )
    return tune_weights(components, y, usable["question"].tolist(), objective=objective, seed=seed)


def _calibrator_writer(store: Store, by: str, note: str) -> Callable[..., int]:
    def keep(
        method: str,
        params: Mapping[str, Any],
        weights: Mapping[str, float] | None,
        digest_: str,
        report: Mapping[str, Any],
    ) -> int:
        with store.writing() as connection:
            version = add_calibrator(
                connection,
                method=method,
                params=params,
                weights=weights,
                labels_digest=digest_,
                n=report["n"],
                n_positive=report["n_positive"],
                report=report,
                by=by,
                note=note,
            )
            activate_calibrator(
                connection,
                version,
                by=by,
                reason=note or f"fitted on {report['n']} labels: {report['why']}",
            )
        return version

    return keep
