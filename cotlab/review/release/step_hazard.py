"""Fit the probability of the first mistake at each step on labelled chains, and keep versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cotlab.core.keys import digest
from cotlab.core.types import Item
from cotlab.figures.style import interval_text
from cotlab.reliability.hazard import (
    HAZARD_METHOD,
    HazardFit,
    HazardModel,
    Integers,
    fit_hazard_with_predictions,
    locate_in_other_domains,
)
from cotlab.reliability.maps import NotCalibrated
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.release.fit_report import interval_json
from cotlab.review.release.step_table import (
    ANSWER_FEATURE,
    ChainContent,
    JudgedChains,
    load_judged_chains,
    load_step_scores,
    step_frame,
)
from cotlab.stats.intervals import Interval
from cotlab.stats.ranking import NO_MISTAKE, location_difference, location_measures
from cotlab.store import read
from cotlab.store.calibrators import (
    STEP_KIND,
    activate_calibrator,
    add_calibrator,
    current_calibrator,
    list_calibrators,
)
from cotlab.store.database import Store
from cotlab.text.chain_features.steps import BASELINE_FEATURES, STEP_FEATURES

TEXT_MODEL, SCORES_MODEL, ANSWER_MODEL = "text", "text_and_scores", "text_and_answer"
"""Models of a version: of the texts; with what scorers measured of the steps beside; with the
correctness of the answer beside that."""


@dataclass(frozen=True, slots=True)
class StepFit:
    """Hazard models of the first mistake, fitted and measured."""

    version: int | None
    """The version that is in use now; None after a dry run and where none is kept."""
    models: Mapping[str, HazardModel]
    """Name (``TEXT_MODEL``, ``SCORES_MODEL``, ``ANSWER_MODEL``) → a model that beats its baseline;
    ``SCORES_MODEL`` only where scorers measured the steps of most chains, ``ANSWER_MODEL`` only
    where it is known of every chain whether its answer is right."""
    report: Mapping[str, Any]
    """What the store keeps, JSON: ``n, n_positive`` (chains, and those without a mistake),
    ``n_questions, n_steps, runs, left_out`` (reason → count), ``seed, folds, labels_digest``,
    ``measured_features``, ``domains`` (name → ``n, n_positive``) and ``models``: for each
    ``pb_f1, exact, none_right`` (each ``point, lo, hi, n, method, reason, note``, out of fold),
    ``by_domain`` (name → PB-F1 or None), ``baseline`` (the same of position and length alone),
    ``difference`` (PB-F1 minus that of the baseline, paired), ``other_domains`` (the same of models
    that saw no chain of the domain, or ``reason``) and ``refusal`` ("" where it is kept)."""
    refusal: str = ""
    """Why no version of this fit is kept; "" where one is, or would be."""


def fit_step_hazard(
    store: Store,
    runs: Sequence[str] | None,
    *,
    author: str,
    dry_run: bool = False,
    note: str = "",
    seed: int = 0,
) -> StepFit:
    """Fit the hazard of the first mistake on chains whose steps were judged, and use it.

    No version is kept of a fit that does not name the first wrong step, or none, better than
    position and length alone, by the whole interval of the difference, nor of a second one on the
    same labels; ``refusal`` has the reason then.

    Parameters
    ----------
    store : Store
    runs : sequence of str, or None for every run
    author : str
        Who fits it; stored with the version and in the audit.
    dry_run : bool
        Measure, and write nothing.
    note : str
        A remark, stored with the version.
    seed : int
        Of folds and resampling.

    Raises
    ------
    NotCalibrated
        If the labels do not suffice; the message says what is missing. Nothing is written then.
    UnknownName
        If there is no such run.
    """
    run_ids = read.list_runs(store)["id"].tolist() if runs is None else runs
    chains = load_judged_chains(store, run_ids)
    models, report = measure_step_hazard(chains, seed=seed)
    fit = StepFit(None, models, report, _refusal_reason(store, models, report))
    if dry_run or fit.refusal:
        return fit
    return _store_and_activate(store, fit, author, note)


def measure_step_hazard(
    chains: JudgedChains, *, seed: int = 0
) -> tuple[dict[str, HazardModel], dict[str, Any]]:
    """Return the models that beat position and length, and the report on all of them.

    Parameters
    ----------
    chains : JudgedChains
    seed : int

    Returns
    -------
    models, report
        As ``StepFit``.

    Raises
    ------
    NotCalibrated
        If the labels do not suffice.
    """
    table = chains.chains
    features = (*STEP_FEATURES, *chains.measured_features)
    names_by_model: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    names_by_model = {TEXT_MODEL: (STEP_FEATURES, BASELINE_FEATURES)}
    if chains.measured_features:
        names_by_model[SCORES_MODEL] = (features, BASELINE_FEATURES)
    if len(table) and table["answer_correct"].notna().all():
        names_by_model[ANSWER_MODEL] = (
            (*features, ANSWER_FEATURE),
            (*BASELINE_FEATURES, ANSWER_FEATURE),
        )
    models: dict[str, HazardModel] = {}
    reports: dict[str, Any] = {}
    for name, (feature_names, baseline_names) in names_by_model.items():
        model, reports[name] = _measure_model(chains, feature_names, baseline_names, seed)
        if not reports[name]["refusal"]:
            models[name] = model
    is_sound = table["first_wrong"] == NO_MISTAKE
    report = {
        "n": len(table),
        "n_positive": int(is_sound.sum()),
        "n_questions": table["cluster"].nunique(),
        "n_steps": len(chains.steps),
        "runs": sorted(set(table["run"])),
        "left_out": dict(chains.n_left_out_by_reason),
        "seed": seed,
        "folds": max(model.pop("folds") for model in reports.values()),
        "measured_features": list(chains.measured_features),
        "class_bound": dict(chains.class_bound),
        "domains": {
            name: {"n": len(rows), "n_positive": int((rows["first_wrong"] == NO_MISTAKE).sum())}
            for name, rows in table.groupby("domain", sort=True)
        },
        "models": reports,
        "labels_digest": digest(
            [
                list(chains.measured_features),
                table[["run", "item_id", "first_wrong"]].astype(str).to_dict("records"),
            ]
        ),
    }
    return models, report


def _measure_model(
    chains: JudgedChains, names: Sequence[str], baseline_names: Sequence[str], seed: int
) -> tuple[HazardModel, dict[str, Any]]:
    """Return a model fitted on all chains and its report, out of fold and beside its baseline."""
    table, steps = chains.chains, chains.steps
    marked, clusters = table["first_wrong"].to_numpy(dtype=np.int64), table["cluster"].tolist()
    shared = marked, clusters, table["domain"].tolist()

    def measure(located: Integers) -> dict[str, Any]:
        measures = location_measures(located, *shared, seed=seed)
        intervals = {name: getattr(measures, name) for name in ("pb_f1", "exact", "none_right")}
        return {
            **{name: interval_json(interval) for name, interval in intervals.items()},
            "by_domain": dict(measures.pb_f1_by_set),
        }

    def in_folds(names: Sequence[str]) -> HazardFit:
        return fit_hazard_with_predictions(steps, marked, clusters, names=names, seed=seed)

    def in_other_domains(names: Sequence[str]) -> dict[str, Any]:
        return measure(locate_in_other_domains(steps, marked, clusters, names=names, seed=seed))

    fit, baseline = in_folds(names), in_folds(baseline_names)
    difference = location_difference(baseline.located, fit.located, *shared, seed=seed)
    try:
        other_domains = in_other_domains(names) | {"baseline": in_other_domains(baseline_names)}
    except NotCalibrated as refused:
        other_domains = {"reason": str(refused)}
    report = measure(fit.located) | {
        "baseline": measure(baseline.located),
        "difference": interval_json(difference),
        "other_domains": other_domains,
        "folds": int(fit.folds.max()) + 1,
        "refusal": _baseline_refusal(difference, len(table)),
    }
    return fit.model, report


def _baseline_refusal(difference: Interval, n: int) -> str:
    """Return why a model is not kept beside position and length alone; "" where it is."""
    if difference.lo is not None and difference.lo > 0:
        return ""
    reason = f": {difference.reason}" if difference.reason else ""
    return (
        f"on {n} chains the features do not name the first wrong step, or none, better than"
        " position and length alone: PB-F1 minus theirs"
        f" {interval_text(difference.point, difference.lo, difference.hi)}{reason}. Label the steps"
        " of more chains, or measure them with a critic or a process reward model."
    )


def _refusal_reason(
    store: Store, models: Mapping[str, HazardModel], report: Mapping[str, Any]
) -> str:
    if not models:
        return str(report["models"].get(SCORES_MODEL, report["models"][TEXT_MODEL])["refusal"])
    for version in list_calibrators(store, STEP_KIND).to_dict("records"):
        if version["labels_digest"] == report["labels_digest"]:
            return (
                f"version {version['version']} was fitted on the same {report['n']} chains. Label"
                " more, or put it into use with cotlab calibrate --rollback"
                f" {version['version']}."
            )
    return ""


def _store_and_activate(store: Store, fit: StepFit, author: str, note: str) -> StepFit:
    report = dict(fit.report)
    with store.writing() as connection:
        version = add_calibrator(
            connection,
            method=HAZARD_METHOD,
            params={name: model.params for name, model in fit.models.items()},
            weights=None,
            labels_digest=report.pop("labels_digest"),
            n=report["n"],
            n_positive=report["n_positive"],
            report=report,
            author=author,
            note=note,
            kind=STEP_KIND,
        )
        reason = note or f"steps, fitted on {report['n']} chains"
        activate_calibrator(connection, version, author=author, reason=reason)
    return replace(fit, version=version)


@dataclass(frozen=True, slots=True)
class StepForecast:
    """Probabilities of the first mistake at each step of a chain."""

    version: int
    """Version of the step model."""
    model: str
    """The model of the version that was used, ``TEXT_MODEL`` or ``SCORES_MODEL``."""
    domain: str
    """Domain of the chain: the item's category, else the name of its suite."""
    steps: tuple[str, ...]
    """Texts of the steps."""
    first: tuple[float, ...]
    """Probability of each step of being the first wrong one, [0, 1]; with ``sound`` they sum to 1.
    Empty where ``reason`` says why there are none."""
    sound: float | None
    """Probability that no step is wrong, [0, 1]."""
    located: int | None
    """The step, from 0, that the model's rule names as the first wrong one; None where none."""
    report: Mapping[str, Any]
    """What was measured of the version, as ``StepFit.report``."""
    reason: str = ""
    """Why there are no probabilities; "" where there are."""


def forecast_steps(store: Store, run: str, item: Item, suite_name: str) -> StepForecast | None:
    """Return what the step model in use says of the chain that a run measured of an item.

    Parameters
    ----------
    store : Store
    run : str
    item : Item
    suite_name : str
        The domain of an item without a category.

    Returns
    -------
    StepForecast or None
        None where no step model is in use, or the item has no chain of two steps or more. Without
        probabilities, and with the reason, where no chain of the domain was labelled for it.
    """
    version = current_calibrator(store, STEP_KIND)
    if version is None or not {TEXT_MODEL, SCORES_MODEL} & set(version["params"]):
        return None
    steps = load_judged_steps(store, [(run, item.id)]).get((run, item.id), ())
    if len(steps) < 2:
        return None
    domain, report = item.category or suite_name, version["report"]
    number = int(version["version"])
    scores = load_step_scores(store, run, [item.id]).get(item.id, {})
    table = step_frame([ChainContent(item.question, steps, domain, None, scores)], sorted(scores))
    models = {
        name: HazardModel.from_params(version["params"][name])
        for name in (SCORES_MODEL, TEXT_MODEL)
        if name in version["params"]
    }
    usable = [name for name, model in models.items() if set(model.features) <= set(table)]
    reason = ""
    if domain not in report["domains"]:
        reason = (
            f"version {number} was fitted on chains of {', '.join(report['domains'])}, none of"
            f" {domain}: label steps of such chains and fit it anew with cotlab calibrate --steps"
        )
    elif not usable:
        missing = sorted({f for model in models.values() for f in model.features} - set(table))
        reason = f"the version reads {', '.join(missing)}, which the run did not measure"
    if reason:
        return StepForecast(number, TEXT_MODEL, domain, steps, (), None, None, report, reason)
    predicted = models[usable[0]].predict(table)
    located = int(predicted.located[0])
    return StepForecast(
        number,
        usable[0],
        domain,
        steps,
        first=tuple(map(float, predicted.steps["first"])),
        sound=float(predicted.sound[0]),
        located=None if located == NO_MISTAKE else located,
        report=report,
    )
