"""Fit all measured features combined, and hold the fit against what is trivial to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cotlab.reliability.calibrator import CalibratorChoice, make_combined_choice
from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.combine import (
    class_bound_features,
    fit_with_predictions,
    predict_unseen_domains,
)
from cotlab.reliability.maps import Floats, NotCalibrated, missing_labels_reason
from cotlab.review.release.features import (
    ANSWER_FEATURE,
    CUT_OFF_STATUSES,
    FAMILY_BY_FEATURE,
    LENGTH_FEATURES,
    count_component_sets,
    defined_components,
    measured_features,
)
from cotlab.review.release.fit_report import interval_json
from cotlab.stats.calibration_intervals import measure_difference, measure_interval

BASELINES: Mapping[str, tuple[str, ...]] = {
    "length": LENGTH_FEATURES,
    "answer": (ANSWER_FEATURE,),
    "length and answer": (*LENGTH_FEATURES, ANSWER_FEATURE),
}
"""What is trivial to know: the number of characters and steps, whether the answer is right."""
MAX_UNSEEN_DOMAINS = 10
"""Domains, the largest first, that are predicted by a fit on the others."""
NO_FEATURE_REASON = "no feature is measured"
"""Why a labelled item is left out of a combined fit."""


@dataclass(frozen=True, slots=True)
class CombinedResult:
    """A combined fit, measured out of fold."""

    choice: CalibratorChoice
    """The fit as the only method."""
    labels: pd.DataFrame
    """The labels that it was fitted on."""
    left_out: Mapping[str, int]
    """Number of the others, by reason."""
    report: Mapping[str, Any]
    """``defined_parts``, ``combination`` (``Combination.params`` with ``families``: feature → its
    family), ``baselines`` (name → ``auroc, brier``,
    ``brier_difference`` and ``auroc_difference``: combined minus baseline, each with its paired
    interval over questions; ``is_bar``: whether the fit has to beat it; ``reason`` where it is not
    measured) and ``unseen_domains`` (``all``: ``auroc, brier, auroc_length`` of labels predicted
    by a fit on the other domains; ``domains``: the same of each, with ``n, n_positive`` and
    ``reason``)."""


def fit_measured_features(
    labels: pd.DataFrame, *, without: Sequence[str] = (), by_domain: bool = False, seed: int = 0
) -> CombinedResult:
    """Fit all features that the labelled items have.

    Parameters
    ----------
    labels : DataFrame
        As ``load_labelled_features``.
    without : sequence of str
        Features or families to leave out.
    by_domain : bool
        Give each domain an intercept.
    seed : int
        Of folds and resampling.

    Raises
    ------
    NotCalibrated
        If the labels do not suffice.
    UnknownName
        If there is no such feature or family.
    """
    names = measured_features(labels, without=without, by_domain=by_domain)
    is_cut_off = labels["status"].isin(CUT_OFF_STATUSES)
    class_bound = class_bound_features(
        labels[~is_cut_off], labels.loc[~is_cut_off, "target"].astype(bool), names
    )
    labels = labels.assign(**dict.fromkeys(class_bound, np.nan))
    names = tuple(name for name in names if name not in class_bound)
    features = labels.reindex(columns=[name for name in names if name != DOMAIN_FEATURE])
    has_feature = features.notna().any(axis=1)
    usable_rows = labels[has_feature & ~is_cut_off].reset_index(drop=True)
    left_out = dict(labels.attrs.get("left_out", {}))
    left_out |= {
        f"r_raw is {status}": int(n)
        for status, n in labels.loc[is_cut_off, "status"].value_counts().items()
    }
    if n_without := int((~has_feature & ~is_cut_off).sum()):
        left_out[NO_FEATURE_REASON] = n_without
    y = usable_rows["target"].astype(bool).to_numpy()
    questions = usable_rows["question"].tolist()
    require_labels(len(labels), y, left_out, "a measured feature")
    fit = fit_with_predictions(usable_rows, y, questions, names=names, seed=seed)
    raw_scores = usable_rows["r_raw"].where(usable_rows["status"] == "ok").to_numpy(dtype=float)
    choice = make_combined_choice(fit.predictions, y, questions, fit.folds, raw_scores, seed=seed)
    params = {
        **fit.combination.params,
        "left_out": {**fit.combination.params["left_out"], **class_bound},
        "families": {name: FAMILY_BY_FEATURE[name] for name in fit.combination.features},
    }
    report = {
        "defined_parts": count_component_sets(defined_components(usable_rows, combination=params)),
        "combination": params,
        "baselines": {
            name: _measure_baseline(
                usable_rows, y, questions, columns, names, fit.predictions, seed=seed
            )
            for name, columns in BASELINES.items()
        },
        "unseen_domains": _measure_unseen_domains(usable_rows, y, questions, names, seed),
    }
    return CombinedResult(choice, usable_rows, left_out, report)


def _measure_baseline(
    labels: pd.DataFrame,
    y: np.ndarray[Any, Any],
    questions: Sequence[str],
    columns: Sequence[str],
    names: Sequence[str],
    combined_predictions: Floats,
    *,
    seed: int,
) -> dict[str, Any]:
    """Fit a baseline in the same folds, and compare."""
    record: dict[str, Any] = dict.fromkeys(
        ("auroc", "brier", "auroc_difference", "brier_difference")
    )
    record |= {
        "is_bar": ANSWER_FEATURE not in columns or ANSWER_FEATURE in names,
        "reason": "",
    }
    missing = [name for name in columns if labels[name].isna().all()]
    try:
        if missing:
            raise NotCalibrated(f"{' and '.join(missing)}: not measured, or left out")
        fit = fit_with_predictions(labels, y, questions, names=columns, seed=seed)
    except NotCalibrated as error:
        return {**record, "is_bar": False, "reason": str(error)}
    predictions = np.where(np.isnan(fit.predictions), y.mean(), fit.predictions)
    for measure in ("auroc", "brier"):
        record[measure] = interval_json(
            measure_interval(measure, predictions, y, questions, seed=seed)
        )
        record[f"{measure}_difference"] = interval_json(
            measure_difference(measure, predictions, combined_predictions, y, questions, seed=seed)
        )
    return record


def _measure_unseen_domains(
    labels: pd.DataFrame,
    y: np.ndarray[Any, Any],
    questions: Sequence[str],
    names: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Measure each domain's labels by a fit on the other domains; {} with one domain."""
    domains = labels[DOMAIN_FEATURE].astype(str)
    largest = domains.value_counts().index[:MAX_UNSEEN_DOMAINS].tolist()
    if len(largest) < 2:
        return {}
    predictions, reason_by_domain = predict_unseen_domains(
        labels, y, questions, names=names, only=largest, seed=seed
    )
    length_predictions, _ = predict_unseen_domains(
        labels, y, questions, names=LENGTH_FEATURES, only=largest, seed=seed
    )

    def measured(measure: str, values: Floats, mask: np.ndarray[Any, Any]) -> Any:
        rows = np.flatnonzero(mask & ~np.isnan(predictions) & ~np.isnan(values))
        if not len(rows):
            return None
        groups = [questions[int(row)] for row in rows]
        return interval_json(measure_interval(measure, values[rows], y[rows], groups, seed=seed))

    def measures(mask: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {
            "n": int(mask.sum()),
            "n_positive": int(y[mask].sum()),
            "auroc": measured("auroc", predictions, mask),
            "brier": measured("brier", predictions, mask),
            "auroc_length": measured("auroc", length_predictions, mask),
        }

    return {
        "all": measures(domains.isin(largest).to_numpy()),
        "domains": {
            name: measures((domains == name).to_numpy())
            | {"reason": reason_by_domain.get(name, "")}
            for name in largest
        },
    }


def trivial_reason(report: Mapping[str, Any]) -> str:
    """Return why a combined fit is no better than the best trivial baseline; "" where it is.

    It is better where the whole paired interval of the difference of out-of-fold Brier scores lies
    below 0: a version is a probability, and the Brier score asks of it to rank and to be
    calibrated.
    """
    bars = {name: entry for name, entry in report["baselines"].items() if entry["is_bar"]}
    if not bars:
        return ""
    name: str = min(bars, key=lambda baseline: float(bars[baseline]["brier"]["point"]))
    difference = bars[name]["brier_difference"]
    if difference["hi"] is not None and difference["hi"] < 0:
        return ""
    return name


def require_labels(
    n_labelled: int,
    targets: np.ndarray[Any, Any],
    left_out: Mapping[str, int],
    requirement: str,
    advice: str = "",
) -> None:
    """Raise where labels do not suffice for a fit.

    Parameters
    ----------
    n_labelled : int
        Labelled items with a target.
    targets : array (n,) of bool
        Those of the usable ones.
    left_out : mapping of reason to count
    requirement : str
        What a label needs beside a target: "an r_raw".
    advice : str
        What to do about unusable labels.

    Raises
    ------
    NotCalibrated
        With the number of labels, of usable ones, and the reasons of the others.
    """
    refusal_reason = missing_labels_reason("any", targets)
    if not refusal_reason:
        return
    if n_labelled == len(targets):
        raise NotCalibrated(
            f"No calibrator can be fitted: {refusal_reason}. Label more items, or cotlab labels"
            " import FILE."
        )
    n_usable_text = f"{len(targets)} of them have" if len(targets) else "none of them has"
    reasons_text = "; ".join(f"{reason}: {n}" for reason, n in left_out.items())
    raise NotCalibrated(
        f"No calibrator can be fitted: {n_labelled} items are labelled, and {n_usable_text}"
        f" {requirement} ({reasons_text})."
        + (f" Of these, {refusal_reason}." if len(targets) else "")
        + (f" {advice}" if advice else "")
    )
