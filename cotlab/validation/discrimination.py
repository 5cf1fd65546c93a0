"""How well a metric discriminates faithful from bypassing models and follows the dose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from cotlab.core.rng import derive_seed
from cotlab.stats.intervals import FEWEST, too_few, wilson
from cotlab.stats.large_samples import row_blocks
from cotlab.stats.resample import RESAMPLES, bootstrap_mean
from cotlab.validation.findings import metric_blind_spots
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL, ORGANISMS, PAIRS, measured_dose
from cotlab.validation.runs import Floats

Record = dict[str, Any]


def organism_auroc(
    faithful: Sequence[Floats],
    bypass: Sequence[Floats],
    *,
    seed: int,
    higher: bool = True,
    level: float = 0.95,
) -> Record:
    """Return the probability that a faithful model's value beats a bypassing model's.

    Parameters
    ----------
    faithful, bypass : sequence of ndarray (n_items,)
        One array a model, all over the same items in the same order; NaN where undefined.
    seed : int
    higher : bool
        Whether the metric puts faithful models at the upper end.
    level : float in (0, 1)

    Returns
    -------
    dict of point, lo, hi, n, reason, method
        In [0, 1], ties counting half; the Mann-Whitney U over the number of pairs. The interval is
        the percentile bootstrap over items: a resample takes an item with the values of all models.
        Where every pair agrees (0 or 1) no resample can differ, and the interval is Wilson's for n
        items. ``n`` counts items with a defined value. The reason says why there is no point or no
        bounds: which side has no defined value and over how many values, or that there are too few
        items to resample.

    References
    ----------
    Mann and Whitney (1947), Ann. Math. Stat. 18:50. Checked against scipy.stats.mannwhitneyu.
    """
    n_items, sign = len(faithful[0]), 1 if higher else -1
    count = _pair_counter(
        [sign * values for values in faithful], [sign * values for values in bypass]
    )
    n = int(np.isfinite(np.array([*faithful, *bypass])).any(axis=0).sum())
    none = {"point": None, "lo": None, "hi": None, "n": n, "method": None}
    missing = [
        f"undefined on every {name} item: n = {n_items * len(side)}"
        for name, side in (("faithful", faithful), ("bypass", bypass))
        if not np.isfinite(np.array(side)).any()
    ]
    if missing:
        return {**none, "reason": ", ".join(missing)}
    (above,), (pairs,) = count(np.ones((1, n_items)))
    point = float(above / pairs)
    if n < 2:
        return {**none, "point": point, "reason": "one item has no spread"}
    if point not in (0.0, 1.0) and n < FEWEST:
        return {**none, "point": point, "reason": too_few(n, "items")}
    if point in (0.0, 1.0):
        same = wilson(round(point) * n, n, level=level)
        return {
            "point": point,
            "lo": same.lo,
            "hi": same.hi,
            "n": n,
            "reason": None,
            "method": "Wilson (every pair agrees)",
        }
    rng, even = np.random.default_rng(seed), np.full(n_items, 1 / n_items)
    counts = [
        count(rng.multinomial(n_items, even, size=block.stop - block.start).astype(float))
        for block in row_blocks(RESAMPLES, n_items)
    ]
    above, pairs = (np.concatenate(part) for part in zip(*counts, strict=True))
    resampled = above[pairs > 0] / pairs[pairs > 0]
    lo, hi = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return {
        "point": point,
        "lo": min(float(lo), point),
        "hi": max(float(hi), point),
        "n": n,
        "reason": None,
        "method": f"bootstrap over items (percentile, {RESAMPLES} resamples)",
    }


def _pair_counter(
    faithful: Sequence[Floats], bypass: Sequence[Floats]
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return a function of item weights (n_draws, n_items): faithful wins, and all pairs.

    A pair is an item of a faithful model and one of a bypassing model, both defined; it weighs the
    product of both items' weights, and a tie is half a win.
    """
    ranked = []
    for values in bypass:
        known = np.flatnonzero(np.isfinite(values))
        ranked.append(known[np.argsort(values[known], kind="stable")])

    def count(weights: Floats) -> tuple[Floats, Floats]:
        above, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for values, order in zip(bypass, ranked, strict=True):
            below = np.concatenate(
                [np.zeros((len(weights), 1)), np.cumsum(weights[:, order], axis=1)], axis=1
            )
            for faithful_values in faithful:
                known = np.isfinite(faithful_values)
                fewer, at_most = (
                    np.searchsorted(values[order], faithful_values[known], side=side)
                    for side in ("left", "right")
                )
                own = weights[:, known]
                above += (own * (below[:, fewer] + below[:, at_most])).sum(axis=1) / 2
                pairs += own.sum(axis=1) * below[:, -1]
        return above, pairs

    return count


def dose_correlation(means: Sequence[float | None], n: int = 0) -> tuple[float | None, str | None]:
    """Return the rank correlation of the dose means with the dose, or None with the reason.

    Parameters
    ----------
    means : sequence of float or None, one a dose, ascending
    n : int
        Items of each dose, for the reason.

    Returns
    -------
    tuple of float in [-1, 1] or None, and str or None
    """
    missing = [model for model, mean in zip(DOSES.values(), means, strict=True) if mean is None]
    if missing:
        return (
            None,
            (
                f"undefined on every item of {' and '.join(missing)}: n ="
                f" {n}{' each' if len(missing) > 1 else ''}"
            ),
        )
    known = [mean for mean in means if mean is not None]
    if np.ptp(known) < 1e-12:
        return None, "all doses have the same mean"
    from scipy import stats

    return round(float(stats.spearmanr(list(DOSES), known).statistic), 12), None


def against_dose(
    means: Mapping[str, float | None], doses: Mapping[str, float | None], *, higher: bool = True
) -> Record | None:
    """Return how far a metric in [0, 1] lies from the measured dose.

    Parameters
    ----------
    means, doses : mapping of nominal dose to float or None
    higher : bool
        Where lower is faithful, the comparison is with 1 − dose.

    Returns
    -------
    dict of largest, at, mean
        Absolute differences over all doses, and the nominal dose of the largest. None where a mean
        or a dose is missing.
    """
    differences = {}
    for at, mean in means.items():
        dose = doses[at]
        if mean is None or dose is None:
            return None
        differences[at] = abs(mean - (dose if higher else 1 - dose))
    at = max(differences, key=lambda dose: differences[dose])
    return {
        "largest": differences[at],
        "at": int(at),
        "mean": sum(differences.values()) / len(differences),
    }


def evaluate_metric(
    name: str,
    values: Mapping[str, Floats],
    *,
    faithful: Literal["higher", "lower"] = "higher",
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    flag: bool = False,
    reasons: Mapping[str, str | None] | None = None,
) -> Record:
    """Return the record of one metric, as the report stores it.

    Parameters
    ----------
    name : str
    values : mapping of each of ``ORGANISMS`` to ndarray (n_items,)
        NaN where undefined.
    faithful : "higher" or "lower"
        The end of its range at which the metric puts faithful models.
    seed : int
    bounds : (lo, hi)
        The metric's range. A metric in [0, 1] is compared with the measured dose itself.
    flag : bool
        Each value is a rate of yes and no.
    reasons : mapping of str, optional
        For each organism the most common reason why the metric is undefined there.

    Returns
    -------
    dict
        JSON values; what is undefined is None.
    """
    organisms: dict[str, Record] = {}
    for model in ORGANISMS:
        defined = values[model][np.isfinite(values[model])]
        estimate = bootstrap_mean(
            defined.tolist(), seed=derive_seed("validation", seed, name, model), share=flag
        )
        organisms[model] = {
            "point": estimate.point,
            "lo": estimate.lo if estimate.n >= FEWEST else None,
            "hi": estimate.hi if estimate.n >= FEWEST else None,
            "n": estimate.n,
            "n_undefined": int(len(values[model]) - len(defined)),
            "why_undefined": (reasons or {}).get(model),
            "measured_dose": measured_dose(model),
        }
    draw, higher = derive_seed("validation", seed, name, "auroc"), faithful == "higher"

    def of(faithful_names: Sequence[str], bypass_names: Sequence[str]) -> Record:
        return organism_auroc(
            [values[m] for m in faithful_names],
            [values[m] for m in bypass_names],
            seed=draw,
            higher=higher,
        )

    doses = {str(dose): organisms[model]["point"] for dose, model in DOSES.items()}
    measured = {str(dose): organisms[model]["measured_dose"] for dose, model in DOSES.items()}
    rank, reason = dose_correlation(list(doses.values()), len(values[DOSES[0]]))
    record = {
        "faithful_is": faithful,
        "range": list(bounds),
        "auroc": of(FAITHFUL, BYPASS),
        "auroc_pairs": {pair: of((first,), (second,)) for pair, (first, second) in PAIRS.items()},
        "faithful": _mean([values[m] for m in FAITHFUL]),
        "bypass": _mean([values[m] for m in BYPASS]),
        "hint": organisms["hint"]["point"],
        "doses": doses,
        "measured_dose": measured,
        "against_dose": against_dose(doses, measured, higher=higher) if bounds == (0, 1) else None,
        "spearman": rank,
        "spearman_reason": reason,
        "n_undefined": sum(estimate["n_undefined"] for estimate in organisms.values()),
        "organisms": organisms,
    }
    span = values[DOSES[100]] - values[DOSES[0]]
    range_ = bootstrap_mean(
        span[np.isfinite(span)].tolist(), seed=derive_seed("validation", seed, name, "span")
    )
    record["r100_minus_r0"] = {
        "point": range_.point,
        "lo": range_.lo,
        "hi": range_.hi,
        "n": range_.n,
    }
    return {**record, "blind_spots": metric_blind_spots(record)}


def _mean(arrays: Sequence[Floats]) -> float | None:
    together = np.concatenate(arrays)
    together = together[np.isfinite(together)]
    return float(together.mean()) if len(together) else None
