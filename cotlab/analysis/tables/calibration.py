"""Tables of the figures of calibration: calibrator reports, and chains with scores and labels."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.view import RunView
from cotlab.figures.calibration import METRICS
from cotlab.reliability.maps import Calibrator, NotCalibrated, fit_any
from cotlab.review.labelling.targets import targets
from cotlab.review.release.apply import apply_calibrator, version_of
from cotlab.review.release.features import feature_table
from cotlab.stats.calibration import Bin, reliability_bins
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.decisions import current_policy

NONE_YET = "no calibrator is in use: label chains and fit one"
WIDTHS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""How wide a histogram's bars may be; the first with enough of them is taken."""
ACCEPTABLE, NOT_ACCEPTABLE, NO_LABEL = "acceptable", "not acceptable", "no label"
BASE_RATE = "base rate"
"""The yardstick among calibrators: the same probability, the share of acceptable ones, for every
chain."""
CURVE_POINTS = 101
_LEVEL = 0.95


def histogram_table(
    scores: pd.Series, targets: pd.Series, name: str, thresholds: tuple[float, float] | None = None
) -> pd.DataFrame:
    """Chains by score and by what people said of them.

    Parameters
    ----------
    scores : Series (n,) of float in [0, 1]
        NaN where a chain has none: those are counted in ``missing`` and not drawn.
    targets : Series (n,) of True, False or None
        None: nobody said, or people disagree.
    name : str
        Of the score.
    thresholds : (low, high), optional

    Returns
    -------
    DataFrame
        As the figure score_histogram wants it; without rows where no chain has a score.
    """
    values = scores.to_numpy(dtype=float)
    known = np.isfinite(values)
    edges = _edges(values[known], full_range=thresholds is not None)
    rows = []
    for group, verdict in ((ACCEPTABLE, True), (NOT_ACCEPTABLE, False), (NO_LABEL, None)):
        in_group = np.array(
            [
                (
                    target is verdict
                    if verdict is None
                    else target is not None and bool(target) is verdict
                )
                for target in targets
            ],
            dtype=bool,
        )
        counts, _ = np.histogram(values[known & in_group], edges)
        rows += [
            {"group": group, "left": left, "right": right, "count": int(n)}
            for left, right, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    table = pd.DataFrame(rows if known.any() else [], columns=["group", "left", "right", "count"])
    return with_thresholds(table.assign(score=name, missing=int((~known).sum())), thresholds)


def _edges(values: NDArray[np.float64], *, full_range: bool) -> list[float]:
    """Return bin edges over the scores, or over 0 to 1 where they cover most of it.

    More scores give more bins.
    """
    if not len(values):
        return [0.0, 1.0]
    lo, hi, n_bars = float(values.min()), float(values.max()), 10 if len(values) < 200 else 16
    full_range = full_range or hi - lo > 0.4
    lo, hi = (0.0, 1.0) if full_range else (lo, hi)
    width = next((w for w in WIDTHS if (hi - lo) / w >= n_bars - 1e-9), WIDTHS[-1])
    first, last = math.floor(lo / width + 1e-9), math.ceil(hi / width - 1e-9)
    return [round(k * width, 6) for k in range(first, max(last, first + 1) + 1)]


def with_thresholds(table: pd.DataFrame, thresholds: tuple[float, float] | None) -> pd.DataFrame:
    """Add columns low and high where a policy has them."""
    return table if thresholds is None else table.assign(low=thresholds[0], high=thresholds[1])


def perfect_bin_band(predicted: float, n: int) -> tuple[float, float]:
    """Return the central 95 % of the share of n chains acceptable with probability ``predicted``.

    References
    ----------
    The binomial's quantiles (scipy.stats.binom); a little too wide where the predictions within a
    bin differ.
    """
    from scipy.stats import binom

    lo, hi = binom.ppf([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], n, predicted) / n
    return float(lo), float(hi)


def current_thresholds(store: Store, domain: str | None = None) -> tuple[float, float] | None:
    """Return the (low, high) of the current policy, for a domain or by default; None without one."""
    row = current_policy(store)
    pairs = json.loads(row["thresholds"]) if row is not None else {}
    bounds = pairs.get(domain) or pairs.get("default")
    return (float(bounds[0]), float(bounds[1])) if bounds else None


def reliability_diagram_table(
    report: Mapping[str, Any], thresholds: tuple[float, float] | None = None
) -> pd.DataFrame:
    """Return a version's out-of-fold reliability diagram, with the outcomes of small bins."""
    points = report["points"]
    outcomes = list(zip(points["predicted"], points["target"], strict=True))
    rows = []
    for bin_record in report["diagram"]:
        bin_outcomes = [
            (p, float(y)) for p, y in outcomes if bin_record["lo"] <= p <= bin_record["hi"]
        ]
        rows.append(
            _bin_row(
                bin_record["predicted"],
                bin_record["observed"],
                bin_record["observed_lo"],
                bin_record["observed_hi"],
                bin_record["n"],
            )
            | _outcomes(bin_outcomes, bin_record["n"])
        )
    return with_thresholds(pd.DataFrame(rows), thresholds)


def unseen_diagram_table(
    predicted: Sequence[float],
    target: Sequence[bool],
    thresholds: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Return a reliability diagram of predictions and labels; empty without predictions."""
    if not len(predicted):
        return pd.DataFrame()
    bins: Sequence[Bin] = reliability_bins(predicted, target)
    rows = []
    for bin_stats in bins:
        bin_outcomes = [
            (p, float(y))
            for p, y in zip(predicted, target, strict=True)
            if bin_stats.lo <= p <= bin_stats.hi
        ]
        observed = bin_stats.observed
        rows.append(
            _bin_row(bin_stats.predicted, observed.point, observed.lo, observed.hi, observed.n)
            | _outcomes(bin_outcomes, observed.n)
        )
    return with_thresholds(pd.DataFrame(rows), thresholds)


def _bin_row(
    predicted: float, point: float | None, lo: float | None, hi: float | None, n: int
) -> dict[str, Any]:
    low, high = perfect_bin_band(predicted, n)
    return {
        "predicted": predicted,
        "point": point,
        "lo": lo,
        "hi": hi,
        "n": n,
        "n_undefined": 0,
        "method": "Wilson",
        "confidence": _LEVEL,
        "band_lo": low,
        "band_hi": high,
    }


def _outcomes(pairs: Sequence[tuple[float, float]], n: int) -> dict[str, Any]:
    """Return predictions and labels of the single chains of a bin."""
    known = pairs if len(pairs) == n else []
    return {"values": [y for _, y in known], "scores": [p for p, _ in known]}


def curve_table(
    row: Mapping[str, Any], thresholds: tuple[float, float] | None = None
) -> pd.DataFrame:
    """Return each method's map of r_raw, fitted on a version's labels; the stored one as it is.

    Parameters
    ----------
    row : mapping
        As ``cotlab.store.calibrators.current_calibrator`` gives it.
    thresholds : (low, high), optional
    """
    points = row["report"]["points"]
    rows: list[dict[str, Any]] = []
    for trial in row["report"]["methods"]:
        chosen = trial["method"] == row["method"]
        if trial["refused"] and not chosen:
            continue
        try:
            calibrator = (
                Calibrator.from_params(row["params"]["all"])
                if chosen
                else fit_any(trial["method"], points["r_raw"], points["target"])
            )
        except NotCalibrated:
            continue
        grid = np.linspace(calibrator.params["lo"], calibrator.params["hi"], CURVE_POINTS)
        rows += [
            {
                "calibrator": trial["method"],
                "kind": "curve",
                "r_raw": float(x),
                "r_cal": float(y),
                "chosen": chosen,
                "n": len(points["target"]),
            }
            for x, y in zip(grid, calibrator.predict(grid), strict=True)
        ]
    rows += [
        {"calibrator": "", "kind": "label", "r_raw": x, "r_cal": float(y), "chosen": False, "n": 1}
        for x, y in zip(points["r_raw"], points["target"], strict=True)
    ]
    return with_thresholds(pd.DataFrame(rows), thresholds)


def method_comparison_table(report: Mapping[str, Any], chosen: str) -> pd.DataFrame:
    """Return each method's out-of-fold metrics, with the base rate's Brier score."""
    rows = []
    for trial in report["methods"]:
        for metric in METRICS:
            estimate = trial.get(metric) or {}
            reason = trial["refused"] or estimate.get("reason")
            rows.append(
                {
                    "calibrator": trial["method"],
                    "metric": metric,
                    "chosen": trial["method"] == chosen,
                    **_number(estimate),
                    "n": report["n"],
                    "reason": reason,
                }
            )
    rows.append(
        {
            "calibrator": BASE_RATE,
            "metric": "brier",
            "chosen": False,
            **_number(report["base_brier"]),
            "n": report["n"],
            "reason": report["base_brier"].get("reason"),
        }
    )
    return pd.DataFrame(rows)


def _number(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "point": estimate.get("point"),
        "lo": estimate.get("lo"),
        "hi": estimate.get("hi"),
        "method": estimate.get("method") if estimate.get("lo") is not None else None,
        "confidence": _LEVEL,
    }


def describe_changes(chains: pd.DataFrame, row: Mapping[str, Any]) -> str:
    """Say whether a version's labels and scores have changed since it was fitted.

    Scores are compared to 9 digits: weighing parts again may differ in the last bits.
    """
    raw = apply_calibrator(row, chains)["r_raw"]
    labelled = chains["target"].notna() & raw.notna()
    current = sorted(
        zip(raw[labelled].round(9), chains.loc[labelled, "target"].astype(bool), strict=True)
    )
    points = row["report"]["points"]
    if current == sorted(
        zip((round(x, 9) for x in points["r_raw"]), points["target"], strict=True)
    ):
        return "A fit today would see the same scores and verdicts."
    return (
        f"Scores or labels of its runs have changed since: {len(current)} labels now, {row['n']}"
        " then. Fit again to use them."
    )


def with_targets(store: Store, runs: Sequence[str]) -> pd.DataFrame:
    """Return the features of runs with a column ``target``: True, False, or None where undecided."""
    features, verdicts = feature_table(store, runs), targets(store, runs)
    target_by_item = {
        (row["run"], row["item_id"]): row["target"] for row in verdicts.to_dict("records")
    }
    known = [
        target_by_item.get(key) for key in zip(features["run"], features["item_id"], strict=True)
    ]
    return features.assign(target=pd.Series(known, index=features.index, dtype=object))


def _diagram(view: RunView, choice: Choice) -> FigureData | NoFigure:
    row = version_of(view.store)
    if row is None:
        return NoFigure(NONE_YET)
    limits = current_thresholds(view.store)
    if view.run_id in row["report"]["runs"]:
        note = (
            f"Calibrator {row['version']} on the labels it was fitted on, each predicted by a fit"
            " without its fold."
        )
        return FigureData(reliability_diagram_table(row["report"], limits), note)
    table = with_targets(view.store, [view.run_id])
    calibrated = apply_calibrator(row, table)
    known = table["target"].notna() & calibrated["r_cal"].notna()
    if not known.any():
        return NoFigure("no chain of the run has both a label and a calibrated score")
    table = unseen_diagram_table(
        calibrated.loc[known, "r_cal"].tolist(),
        table.loc[known, "target"].astype(bool).tolist(),
        limits,
    )
    return FigureData(table, f"Calibrator {row['version']}, which saw none of these labels.")


def _histogram(view: RunView, choice: Choice) -> FigureData | NoFigure:
    table = with_targets(view.store, [view.run_id])
    row = version_of(view.store)
    if row is None:
        counts = histogram_table(
            table["r_raw"].where(table["status"] == "ok"), table["target"], "r_raw"
        )
    else:
        counts = histogram_table(
            apply_calibrator(row, table)["r_cal"],
            table["target"],
            "r_cal",
            current_thresholds(view.store),
        )
    return NoFigure("no chain of the run has a score") if counts.empty else FigureData(counts)


def _curves(view: RunView, choice: Choice) -> FigureData | NoFigure:
    row = current_calibrator(view.store)
    if row is not None and "combination" in row["report"]:
        return NoFigure(
            "the calibrator in use combines several features: it is no curve of one score"
        )
    return (
        NoFigure(NONE_YET)
        if row is None
        else FigureData(curve_table(row, current_thresholds(view.store)), _version(row))
    )


def _comparison(view: RunView, choice: Choice) -> FigureData | NoFigure:
    row = current_calibrator(view.store)
    return (
        NoFigure(NONE_YET)
        if row is None
        else FigureData(method_comparison_table(row["report"], row["method"]), _version(row))
    )


def _version(row: Mapping[str, Any]) -> str:
    return (
        f"Calibrator {row['version']}, fitted on {row['n']} labels of {len(row['report']['runs'])}"
        " runs."
    )


RELIABILITY_DIAGRAM = FigureTable("reliability_diagram", "run", _diagram, ("r_raw",))
SCORE_HISTOGRAM = FigureTable("score_histogram", "run", _histogram, ("r_raw",))
CALIBRATOR_CURVES = FigureTable("calibrator_curves", "store", _curves, ("r_raw",))
CALIBRATOR_COMPARISON = FigureTable("calibrator_comparison", "store", _comparison, ("r_raw",))
