"""How well a metric discriminates faithful from bypassing models and follows the dose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cotlab.core.keys import derive_seed
from cotlab.stats.calibration import weighted_auroc
from cotlab.stats.intervals import FEWEST, wilson
from cotlab.stats.resample import GroupResamples, bootstrap_mean, percentile_interval
from cotlab.validation.findings import metric_blind_spots
from cotlab.validation.models import (
    BYPASS_MODELS,
    DOSE_MODELS,
    FAITHFUL_MODELS,
    MODEL_PAIRS,
    ORGANISMS,
    measured_dose,
)
from cotlab.validation.runs import Floats

MetricRecord = dict[str, Any]


def organism_auroc(
    faithful_arrays: Sequence[Floats],
    bypass_arrays: Sequence[Floats],
    *,
    seed: int,
    higher_is_faithful: bool = True,
) -> MetricRecord:
    """Return the probability that a faithful model's value beats a bypassing model's.

    Parameters
    ----------
    faithful, bypass_arrays : sequence of ndarray (n_items,)
        One array a model, all over the same items in the same order; NaN where undefined.
    seed : int
    higher_is_faithful : bool
        Whether the metric puts faithful models at the upper end.

    Returns
    -------
    dict of point, lo, hi, n, reason, method
        In [0, 1], ties counting half; the Mann-Whitney U over the number of pairs. The interval is
        the percentile bootstrap over items: a resample takes an item with the values of all models.
        Where every pair agrees (0 or 1) no resample can differ, and the interval is Wilson's for n
        items. ``n_defined`` counts items with a defined value. The reason says why there is no
        point or no bounds: which side has no defined value and over how many values, or that there
        are too few items to resample.

    References
    ----------
    Mann and Whitney (1947), Ann. Math. Stat. 18:50. Checked against scipy.stats.mannwhitneyu.
    """
    n_items, sign = len(faithful_arrays[0]), 1 if higher_is_faithful else -1
    scores = sign * np.concatenate([*faithful_arrays, *bypass_arrays])
    is_defined = np.isfinite(scores)
    is_faithful = np.repeat(
        [True, False], [n_items * len(faithful_arrays), n_items * len(bypass_arrays)]
    )
    items = np.arange(len(scores))[is_defined] % n_items
    empty_record: MetricRecord = {
        "point": None,
        "lo": None,
        "hi": None,
        "n": len(set(items.tolist())),
        "reason": None,
        "method": None,
    }
    missing_reasons = [
        f"undefined on every {name} item: n = {n_items * len(group)}"
        for name, group in (("faithful", faithful_arrays), ("bypass", bypass_arrays))
        if not np.isfinite(np.array(group)).any()
    ]
    if missing_reasons:
        return {**empty_record, "reason": ", ".join(missing_reasons)}
    resamples = GroupResamples.of(items.tolist(), seed=seed)
    aurocs = resamples.values(weighted_auroc(scores[is_defined], is_faithful[is_defined]))
    point = float(aurocs[0])
    if resamples.n < 2:
        return {**empty_record, "point": point, "reason": "one item has no spread"}
    interval = percentile_interval(aurocs, resamples.n, over="items")
    if point in (0.0, 1.0):
        interval = replace(
            wilson(round(point) * resamples.n, resamples.n),
            method="Wilson (every pair agrees)",
        )
    return {
        "point": point,
        "lo": interval.lo,
        "hi": interval.hi,
        "n": interval.n,
        "reason": interval.reason,
        "method": None if interval.lo is None else interval.method,
    }


def dose_correlation(
    means: Sequence[float | None], n_items: int = 0
) -> tuple[float | None, str | None]:
    """Return the rank correlation of the dose means with the dose, or None with the reason.

    Parameters
    ----------
    means : sequence of float or None, one a dose, ascending
    n_items : int
        Items of each dose, for the reason.

    Returns
    -------
    tuple of float in [-1, 1] or None, and str or None
    """
    undefined_models = [
        model for model, mean in zip(DOSE_MODELS.values(), means, strict=True) if mean is None
    ]
    if undefined_models:
        each_text = " each" if len(undefined_models) > 1 else ""
        return (
            None,
            (
                f"undefined on every item of {' and '.join(undefined_models)}: n ="
                f" {n_items}{each_text}"
            ),
        )
    defined_means = [mean for mean in means if mean is not None]
    if np.ptp(defined_means) < 1e-12:
        return None, "all doses have the same mean"
    from scipy import stats

    return round(float(stats.spearmanr(list(DOSE_MODELS), defined_means).statistic), 12), None


def compare_with_dose(
    mean_by_dose: Mapping[str, float | None],
    measured_doses: Mapping[str, float | None],
    *,
    higher_is_faithful: bool = True,
) -> MetricRecord | None:
    """Return how far a metric in [0, 1] lies from the measured dose.

    Parameters
    ----------
    means, measured_doses : mapping of nominal dose to float or None
    higher_is_faithful : bool
        Where lower is faithful, the comparison is with 1 − dose.

    Returns
    -------
    dict of largest, at, mean
        Absolute differences over all doses, and the nominal dose of the largest. None where a mean
        or a dose is missing.
    """
    difference_by_dose = {}
    for dose_name, mean in mean_by_dose.items():
        dose = measured_doses[dose_name]
        if mean is None or dose is None:
            return None
        difference_by_dose[dose_name] = abs(mean - (dose if higher_is_faithful else 1 - dose))
    dose_name = max(difference_by_dose, key=lambda dose: difference_by_dose[dose])
    return {
        "largest": difference_by_dose[dose_name],
        "at": int(dose_name),
        "mean": sum(difference_by_dose.values()) / len(difference_by_dose),
    }


def evaluate_metric(
    name: str,
    values_by_model: Mapping[str, Floats],
    *,
    faithful_end: Literal["higher", "lower"] = "higher",
    seed: int = 0,
    metric_range: tuple[float, float] = (0.0, 1.0),
    is_flag: bool = False,
    reason_by_model: Mapping[str, str | None] | None = None,
) -> MetricRecord:
    """Return the record of one metric, as the report stores it.

    Parameters
    ----------
    name : str
    values_by_model : mapping of each of ``ORGANISMS_FOLDER`` to ndarray (n_items,)
        NaN where undefined.
    faithful_end : "higher" or "lower"
        The end of its range at which the metric puts faithful models.
    seed : int
    metric_range : (lo, hi)
        The metric's range. A metric in [0, 1] is compared with the measured dose itself.
    is_flag : bool
        Each value is a rate of yes and no.
    reason_by_model : mapping of str, optional
        For each organism the most common reason why the metric is undefined there.

    Returns
    -------
    dict
        JSON values; what is undefined is None.
    """
    record_by_model: dict[str, MetricRecord] = {}
    for model in ORGANISMS:
        record_by_model[model] = {
            **estimate_model_mean(name, model, values_by_model[model], seed=seed, is_flag=is_flag),
            "why_undefined": (reason_by_model or {}).get(model),
            "measured_dose": measured_dose(model),
        }
    auroc_seed = derive_seed("validation", seed, name, "auroc")
    higher_is_faithful = faithful_end == "higher"

    def compute_auroc(faithful_names: Sequence[str], bypass_names: Sequence[str]) -> MetricRecord:
        return organism_auroc(
            [values_by_model[model_name] for model_name in faithful_names],
            [values_by_model[model_name] for model_name in bypass_names],
            seed=auroc_seed,
            higher_is_faithful=higher_is_faithful,
        )

    mean_by_dose = {
        str(dose): record_by_model[model]["point"] for dose, model in DOSE_MODELS.items()
    }
    measured_doses = {
        str(dose): record_by_model[model]["measured_dose"] for dose, model in DOSE_MODELS.items()
    }
    rank_correlation, reason = dose_correlation(
        list(mean_by_dose.values()), len(values_by_model[DOSE_MODELS[0]])
    )
    record = {
        "faithful_is": faithful_end,
        "range": list(metric_range),
        "auroc": compute_auroc(FAITHFUL_MODELS, BYPASS_MODELS),
        "auroc_pairs": {
            pair: compute_auroc((faithful_model,), (bypass_model,))
            for pair, (faithful_model, bypass_model) in MODEL_PAIRS.items()
        },
        "faithful": _defined_mean([values_by_model[model_name] for model_name in FAITHFUL_MODELS]),
        "bypass": _defined_mean([values_by_model[model_name] for model_name in BYPASS_MODELS]),
        "hint": record_by_model["hint"]["point"],
        "doses": mean_by_dose,
        "measured_dose": measured_doses,
        "against_dose": (
            compare_with_dose(mean_by_dose, measured_doses, higher_is_faithful=higher_is_faithful)
            if metric_range == (0, 1)
            else None
        ),
        "spearman": rank_correlation,
        "spearman_reason": reason,
        "n_undefined": sum(
            model_record["n_undefined"] for model_record in record_by_model.values()
        ),
        "organisms": record_by_model,
    }
    differences = values_by_model[DOSE_MODELS[100]] - values_by_model[DOSE_MODELS[0]]
    difference_estimate = bootstrap_mean(
        differences[np.isfinite(differences)].tolist(),
        seed=derive_seed("validation", seed, name, "span"),
    )
    record["r100_minus_r0"] = {
        name: getattr(difference_estimate, name) for name in ("point", "lo", "hi", "n")
    }
    return {**record, "blind_spots": metric_blind_spots(record)}


def estimate_model_mean(
    name: str, model: str, values: Floats, *, seed: int, is_flag: bool = False
) -> MetricRecord:
    """Return the mean of a metric on one model over the items with a value, and its interval.

    Parameters
    ----------
    name, model : str
        They and the seed decide what is resampled.
    values : ndarray (n_items,)
        NaN where undefined.
    """
    defined_values = values[np.isfinite(values)]
    estimate = bootstrap_mean(
        defined_values.tolist(), seed=derive_seed("validation", seed, name, model), share=is_flag
    )
    return {
        "point": estimate.point,
        "lo": estimate.lo if estimate.n >= FEWEST else None,
        "hi": estimate.hi if estimate.n >= FEWEST else None,
        "n": estimate.n,
        "n_undefined": int(len(values) - len(defined_values)),
    }


def estimate_model_means(
    name: str,
    values_by_model: Mapping[str, Floats],
    *,
    seed: int,
    is_flag: bool = False,
    reason_by_model: Mapping[str, str | None] | None = None,
) -> dict[str, MetricRecord]:
    """Return what `estimate_model_mean` gives for each model, with ``why_undefined`` beside it.

    Parameters
    ----------
    reason_by_model : mapping of str, optional
        For each model the most common reason why the metric is undefined there.
    """
    return {
        model: {
            **estimate_model_mean(name, model, values, seed=seed, is_flag=is_flag),
            "why_undefined": (reason_by_model or {}).get(model),
        }
        for model, values in values_by_model.items()
    }


def _defined_mean(arrays: Sequence[Floats]) -> float | None:
    defined_values = np.concatenate(arrays)
    defined_values = defined_values[np.isfinite(defined_values)]
    return float(defined_values.mean()) if len(defined_values) else None
