"""Fit a calibrator on people's labels, store it as a version and put it into use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cotlab.core.errors import ConfigError
from cotlab.figures.style import interval_text
from cotlab.reliability.calibrator import CalibratorChoice, select_calibrator
from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.composite import OBJECTIVES, Floats, TunedWeights, tune_weights
from cotlab.reliability.maps import (
    COMBINED_METHOD,
    METHODS,
    Calibrator,
    Folds,
    NotCalibrated,
)
from cotlab.review.labelling.targets import load_labelled_features
from cotlab.review.labelling.truth import DEFAULT_TARGET, FROM_IMPORT
from cotlab.review.release.apply import (
    labels_digest,
    read_text_column,
    select_usable_labels,
)
from cotlab.review.release.combined_fit import fit_measured_features, require_labels, trivial_reason
from cotlab.review.release.features import count_component_sets, defined_components
from cotlab.review.release.fit_report import choice_report, fit_domain_maps, tuned_report
from cotlab.stats.composite import COMPONENT_NAMES, EXAMPLE_WEIGHTS, weighted_means
from cotlab.store.calibrators import activate_calibrator, add_calibrator, list_calibrators
from cotlab.store.database import Store

NO_R_RAW_ADVICE = (
    "Combine what is measured instead: cotlab calibrate --weights combined RUN, or measure the"
    " composite: --scorer composite."
)
"""What to do about labels without an r_raw."""
WEIGHTINGS = ("example", "tuned", COMBINED_METHOD)
"""What is calibrated: r_raw by the example weights, by weights tuned on the labels, or all measured
features combined."""


@dataclass(frozen=True, slots=True)
class FitResult:
    """A fitted calibrator and its report."""

    version: int | None
    """The version that is in use now; None after a dry run and where none is kept."""
    calibrator: Calibrator
    """The map for all items without one of their own domain."""
    calibrator_by_domain: Mapping[str, Calibrator]
    """Domain → its own map."""
    weights: Mapping[str, float] | None
    """Tuned weights, where requested; None where each run's own r_raw is used."""
    report: Mapping[str, Any]
    """What the store keeps, JSON: ``n, n_positive, n_questions, runs, parts`` (components of r_raw:
    "CVFRD"), ``chains`` (its chains: "reference", "own"), ``defined_parts`` (``parts`` and ``n`` of
    each set of components that labelled items have), ``left_out`` (reason → count), ``folds``
    (count), ``target`` (one of ``TARGETS``), ``joined_runs`` (runs that measured the same chains,
    none where no two did), ``n_imported`` (labels that came with a suite),
    ``seed, base_rate, base_brier, auroc_r_raw, chosen, why, methods, diagram`` and
    ``points`` (``r_raw, predicted, target``, out of fold) of the chosen method,
    ``held_out`` (run, item and out-of-fold probability of each label),
    ``calibrator_by_domain`` (name → what ``fit_domain_maps`` reports) and ``weights``
    (``tuned_report`` or None). Each of ``methods`` has ``method, refused, note`` and, where not
    refused, ``brier, log_loss, ece, auroc, gained`` (each ``point, lo, hi, n, method, reason,
    note``), ``band`` ([lo, hi] of the ECE of perfectly calibrated predictions), ``bins`` and
    ``skill``. A bin of ``diagram`` has ``lo, hi, predicted, observed, observed_lo, observed_hi,
    n``."""
    refusal: str = ""
    """Why no version of this fit is kept; "" where one is, or would be."""


def calibrate_runs(
    store: Store,
    runs: Sequence[str] | None,
    *,
    author: str,
    method: str = "auto",
    weights: str = "example",
    objective: str = "brier",
    domain: bool = False,
    target: str = DEFAULT_TARGET,
    without: Sequence[str] = (),
    domain_intercepts: bool = False,
    dry_run: bool = False,
    note: str = "",
    seed: int = 0,
) -> FitResult:
    """Fit all methods on the labels of runs and put the chosen one into use as a new version.

    No version is kept of a fit that does not predict better than the base rate of the labels, by
    the whole interval of the difference, nor of a combined one that does not predict better than
    the best of length, answer correctness, and both (``trivial_reason``), nor of a second one of
    the same kind on the same labels; ``refusal`` has the reason then.

    Parameters
    ----------
    store : Store
    runs : sequence of str, or None for every run with labels
    author : str
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
        over all does (``fit_domain_maps``).
    target : str
        What the probability is of, one of ``TARGETS``.
    without : sequence of str
        Features, or families of them, that a combined fit leaves out.
    domain_intercepts : bool
        Give each domain an intercept of its own in a combined fit.
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
    _require_objective(objective)
    if weights not in WEIGHTINGS:
        raise ConfigError(f"{weights!r} are no weights to calibrate with: {', '.join(WEIGHTINGS)}")
    if weights == COMBINED_METHOD and (method != "auto" or domain):
        raise ConfigError(
            "combined features are a probability already: they take no method and no map for each"
            " domain"
        )
    if (without or domain_intercepts) and weights != COMBINED_METHOD:
        raise ConfigError(
            "--without and --domain-intercepts change a combined fit: add --weights combined"
        )
    labels = load_labelled_features(store, runs, target=target)
    if weights == COMBINED_METHOD:
        fit_result = _fit_combined_features(labels, without, domain_intercepts, seed)
    else:
        tuning_objective = objective if weights == "tuned" else None
        fit_result = _fit_scores(labels, method, tuning_objective, domain, seed)
    joined_runs = labels.attrs["joined_runs"]
    report = {**fit_result.report, "target": target, "joined_runs": joined_runs}
    report["runs"] = sorted({*report["runs"], *joined_runs})
    fit_result = replace(fit_result, report=report)
    fit_result = replace(fit_result, refusal=_refusal_reason(store, fit_result))
    if dry_run or fit_result.refusal:
        return fit_result
    return _store_and_activate(store, fit_result, author, note)


def _fit_scores(
    labels: pd.DataFrame, method: str, objective: str | None, with_domain_maps: bool, seed: int
) -> FitResult:
    """Fit a map of r_raw; ``objective`` is what weights are tuned for, None for r_raw as it is."""
    rows, left_out = _usable_labels(labels)
    scores = rows["r_raw"].to_numpy(dtype=float)
    tuned: TunedWeights | None = None
    folds: Folds | None = None
    scores_by_fold: list[Floats] | None = None
    if objective is not None:
        components = rows[list(COMPONENT_NAMES)].to_numpy(dtype=float)
        tuned = _tune(rows, objective, seed)
        scores = weighted_means(components, tuned.weights)
        scores_by_fold = [weighted_means(components, weights) for weights in tuned.fold_weights]
        has_mean = np.isfinite(weighted_means(components, EXAMPLE_WEIGHTS))
        is_complete = np.isfinite([scores, *scores_by_fold]).all(axis=0) & has_mean
        if not is_complete.all():
            reason = "the tuned weights leave too little of the weight defined"
            left_out[reason] = int((~is_complete).sum())
        folds = tuned.folds[is_complete[has_mean]]
        rows, scores = rows[is_complete], scores[is_complete]
        scores_by_fold = [fold_scores[is_complete] for fold_scores in scores_by_fold]
    y, questions = rows["target"].to_numpy(dtype=bool), rows["question"].tolist()
    choice = select_calibrator(
        scores, y, questions, method=method, seed=seed, folds=folds, fold_scores=scores_by_fold
    )
    calibrator, predictions = choice.chosen_trial.calibrator, choice.chosen_trial.predictions
    assert calibrator is not None and predictions is not None
    maps: dict[str, Calibrator] = {}
    report_by_domain: dict[str, Any] = {}
    if with_domain_maps:
        maps, report_by_domain, predictions = fit_domain_maps(
            rows,
            scores,
            y,
            predictions,
            method=method,
            seed=seed,
            folds=folds,
            scores_by_fold=scores_by_fold,
        )
    weights = None if tuned is None else tuned.weights
    report = _common_report(rows, choice, scores, left_out, predictions, seed) | {
        "defined_parts": count_component_sets(defined_components(rows, weights)),
        "domains": report_by_domain,
        "weights": None if tuned is None else tuned_report(tuned),
    }
    return FitResult(None, calibrator, maps, weights, report)


def _fit_combined_features(
    labels: pd.DataFrame, without: Sequence[str], by_domain: bool, seed: int
) -> FitResult:
    """Fit all measured features combined."""
    fit = fit_measured_features(labels, without=without, by_domain=by_domain, seed=seed)
    chosen = fit.choice.chosen_trial
    assert chosen.calibrator is not None and chosen.predictions is not None
    raw_scores = fit.labels["r_raw"].where(fit.labels["status"] == "ok").to_numpy(dtype=float)
    report = _common_report(
        fit.labels, fit.choice, raw_scores, fit.left_out, chosen.predictions, seed
    )
    return FitResult(
        None, chosen.calibrator, {}, None, {**report, **fit.report, "domains": {}, "weights": None}
    )


def _usable_labels(labels: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return labels with an r_raw, and why others are left out; NotCalibrated on too few."""
    rows, left_out = select_usable_labels(labels)
    require_labels(
        len(labels), rows["target"].to_numpy(dtype=bool), left_out, "an r_raw", NO_R_RAW_ADVICE
    )
    return rows, left_out


def _common_report(
    labels: pd.DataFrame,
    choice: CalibratorChoice,
    scores: Floats,
    n_left_out_by_reason: Mapping[str, int],
    predictions: Floats,
    seed: int,
) -> dict[str, Any]:
    """Return what the report of every fit has; ``predictions`` are out of fold."""
    return {
        **choice_report(choice, scores, labels["target"].to_numpy(dtype=bool)),
        "n_questions": labels["question"].nunique(),
        "runs": sorted(set(labels["run"])),
        "seed": seed,
        "parts": sorted(set(read_text_column(labels, "parts")) - {""}),
        "chains": sorted(set(read_text_column(labels, "chain")) - {""}),
        "left_out": n_left_out_by_reason,
        "n_imported": int((labels["origin"] == FROM_IMPORT).sum()),
        "labels_digest": labels_digest(labels, scores),
        "held_out": list(zip(labels["run"], labels["item_id"], predictions.tolist(), strict=True)),
    }


def roll_back_calibrator(store: Store, version: int, *, author: str, reason: str) -> None:
    """Put an older version back into use; it predicts what it did. UnknownName without one."""
    if not reason.strip():
        raise ConfigError("A rollback needs its reason: --reason TEXT; it is kept with the change.")
    with store.writing() as connection:
        activate_calibrator(connection, version, author=author, reason=reason)


def tune_weights_on_runs(
    store: Store,
    runs: Sequence[str] | None,
    *,
    objective: str = "auc",
    target: str = DEFAULT_TARGET,
    seed: int = 0,
) -> TunedWeights:
    """Tune weights on the labels of runs, or of every run with labels."""
    _require_objective(objective)
    rows, _ = _usable_labels(load_labelled_features(store, runs, target=target))
    return _tune(rows, objective, seed)


def tune_weights_by_domain(
    store: Store,
    runs: Sequence[str] | None,
    *,
    objective: str = "auc",
    target: str = DEFAULT_TARGET,
    seed: int = 0,
) -> dict[str, TunedWeights | str]:
    """Return weights tuned on the labels of each domain, or why it has none.

    A domain is an item's category, or the suite's name for items without one.
    """
    _require_objective(objective)
    labels = load_labelled_features(store, runs, target=target)
    result: dict[str, TunedWeights | str] = {}
    for name, domain_labels in labels.groupby(DOMAIN_FEATURE, sort=True):
        domain_labels.attrs = {}
        try:
            result[str(name)] = _tune(_usable_labels(domain_labels)[0], objective, seed)
        except NotCalibrated as error:
            result[str(name)] = str(error)
    return result


def _tune(rows: pd.DataFrame, objective: str, seed: int) -> TunedWeights:
    return tune_weights(
        rows[list(COMPONENT_NAMES)].to_numpy(dtype=float),
        rows["target"].to_numpy(dtype=bool),
        rows["question"].tolist(),
        objective=objective,
        seed=seed,
    )


def _require_objective(objective: str) -> None:
    """Raise ConfigError where weights cannot be tuned for this."""
    if objective not in OBJECTIVES:
        raise ConfigError(
            f"{objective!r} is nothing that weights are tuned for: {' or '.join(OBJECTIVES)}"
        )


def _refusal_reason(store: Store, fit_result: FitResult) -> str:
    """Return why no version of a fit is kept; "" where one may be."""
    report, method = fit_result.report, fit_result.calibrator.method
    quality = next(entry for entry in report["methods"] if entry["method"] == method)
    if quality["gained"]["hi"] is None or quality["gained"]["hi"] >= 0:
        return (
            f"{method} does not predict {report['n']} labels better than their base rate"
            f" {report['base_rate']:.3g} does: Brier score {_text(quality['brier'])}, minus"
            f" that of the base rate {_text(quality['gained'])}. Label more items, or use"
            " another score."
        )
    baseline = trivial_reason(report) if "baselines" in report else ""
    if baseline:
        entry = report["baselines"][baseline]
        return (
            f"{method} does not predict {report['n']} labels better than {baseline} alone:"
            f" Brier score {_text(quality['brier'])}, of {baseline} {_text(entry['brier'])},"
            f" difference {_text(entry['brier_difference'])}. Measure more"
            " (--scorer text_features, a critic, a process reward model), or label more items."
        )
    own_kind = (report["labels_digest"], method, _map_names(_stored_params(fit_result)))
    for version in list_calibrators(store).to_dict("records"):
        target = json.loads(version["report"]).get("target", DEFAULT_TARGET)
        maps = _map_names(json.loads(version["params"]))
        kind = (version["labels_digest"], version["method"], maps)
        if target == report["target"] and kind == own_kind:
            return (
                f"version {version['version']} is {method} too, fitted on the same {report['n']}"
                " labels. Label more items, or put it into use with cotlab calibrate --rollback"
                f" {version['version']}."
            )
    return ""


def _text(interval: Mapping[str, Any]) -> str:
    return interval_text(interval["point"], interval["lo"], interval["hi"])


def _map_names(params: Mapping[str, Any]) -> tuple[list[str], ...]:
    combination = params.get(COMBINED_METHOD) or {}
    columns = {f"{c['feature']} {c.get('domain', '')}" for c in combination.get("columns", ())}
    return sorted(params), sorted(params["domains"]), sorted(columns)


def _stored_params(fit_result: FitResult) -> dict[str, Any]:
    params = {
        "all": fit_result.calibrator.params,
        "domains": {
            name: domain_calibrator.params
            for name, domain_calibrator in fit_result.calibrator_by_domain.items()
        },
    }
    if "combination" in fit_result.report:
        params[COMBINED_METHOD] = fit_result.report["combination"]
    return params


def _store_and_activate(store: Store, fit_result: FitResult, author: str, note: str) -> FitResult:
    """Store a fitted calibrator as a new version, and use it."""
    report = dict(fit_result.report)
    label_digest = report.pop("labels_digest")
    reason = note or f"fitted on {report['n']} labels: {report['why']}"
    with store.writing() as connection:
        version = add_calibrator(
            connection,
            method=fit_result.calibrator.method,
            params=_stored_params(fit_result),
            weights=fit_result.weights,
            labels_digest=label_digest,
            n=report["n"],
            n_positive=report["n_positive"],
            report=report,
            author=author,
            note=note,
        )
        activate_calibrator(connection, version, author=author, reason=reason)
    return replace(fit_result, version=version)
