"""Tables of the figures of calibration and decisions, from reports, scores and labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.analysis.tables.declare import FigureChoice, FigureData, NoTable, figure_table
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.figures.calibration import CALIBRATION_METRICS
from cotlab.reliability.maps import Calibrator, NotCalibrated, fit_without_minimum
from cotlab.reliability.policy import DEFAULT_DOMAIN, PolicyError, Thresholds, parse_thresholds
from cotlab.reliability.volumes import threshold_points
from cotlab.review.labelling.targets import load_targets
from cotlab.review.labelling.truth import DEFAULT_TARGET
from cotlab.review.release.apply import (
    apply_calibrator,
    calibrator_target,
    load_calibrator_row,
)
from cotlab.review.release.decide import load_policy, load_scored_items
from cotlab.review.release.features import feature_table
from cotlab.review.release.joined_runs import join_runs
from cotlab.stats.calibration import Bin, reliability_bins
from cotlab.stats.intervals import Interval, interval_columns
from cotlab.store.calibrators import current_calibrator
from cotlab.store.database import Store
from cotlab.store.decisions import current_policy

NO_CALIBRATOR_REASON = "no calibrator is in use: label chains and fit one"
BIN_WIDTHS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Widths of a histogram's bars; the first that gives enough bars is used."""
ACCEPTABLE_GROUP, NOT_ACCEPTABLE_GROUP, NO_LABEL_GROUP = "acceptable", "not acceptable", "no label"
BASE_RATE_LABEL = "base rate"
"""Name of the reference calibrator: the share of acceptable chains as the probability of each."""
N_CURVE_POINTS = 101
_CONFIDENCE_LEVEL = 0.95


def histogram_table(
    scores: pd.Series,
    targets: pd.Series,
    score_name: str,
    thresholds: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Return the histogram of chains by score and label.

    Parameters
    ----------
    scores : Series (n,) of float in [0, 1]
        NaN where a chain has none: those are counted in ``missing`` and not plotted.
    targets : Series (n,) of True, False or None
        None: no label, or raters disagree.
    score_name : str
        Of the score.
    thresholds : (low, high), optional

    Returns
    -------
    DataFrame
        As the figure score_histogram wants it; without rows where no chain has a score.
    """
    values = scores.to_numpy(dtype=float)
    is_defined = np.isfinite(values)
    edges = _bin_edges(values[is_defined], is_full_range=thresholds is not None)
    masks_by_group = {
        ACCEPTABLE_GROUP: targets.isin([True]),
        NOT_ACCEPTABLE_GROUP: targets.isin([False]),
        NO_LABEL_GROUP: targets.isna(),
    }
    rows: list[tuple[Any, ...]] = []
    for group, in_group in masks_by_group.items():
        counts = np.histogram(values[is_defined & in_group], edges)[0].tolist()
        rows += zip([group] * len(counts), edges[:-1], edges[1:], counts, strict=True)
    table = pd.DataFrame(
        rows if is_defined.any() else [], columns=["group", "left", "right", "count"]
    )
    return with_thresholds(
        table.assign(score=score_name, missing=int((~is_defined).sum())), thresholds
    )


def _bin_edges(values: NDArray[np.float64], *, is_full_range: bool) -> list[float]:
    """Return bin edges over the scores, or over 0 to 1 where they cover most of it.

    More scores give more bins.
    """
    if not len(values):
        return [0.0, 1.0]
    lo, hi, n_bars = float(values.min()), float(values.max()), 10 if len(values) < 200 else 16
    is_full_range = is_full_range or hi - lo > 0.4
    lo, hi = (0.0, 1.0) if is_full_range else (lo, hi)
    chosen_width = next(
        (bin_width for bin_width in BIN_WIDTHS if (hi - lo) / bin_width >= n_bars - 1e-9),
        BIN_WIDTHS[-1],
    )
    first_edge = math.floor(lo / chosen_width + 1e-9)
    last_edge = math.ceil(hi / chosen_width - 1e-9)
    return [
        round(k * chosen_width, 6) for k in range(first_edge, max(last_edge, first_edge + 1) + 1)
    ]


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

    lo, hi = binom.ppf([(1 - _CONFIDENCE_LEVEL) / 2, (1 + _CONFIDENCE_LEVEL) / 2], n, predicted) / n
    return float(lo), float(hi)


def current_thresholds(store: Store, domain: str | None = None) -> tuple[float, float] | None:
    """Return the (low, high) of the current policy, of a domain or default; None without one."""
    row = current_policy(store)
    bounds_by_domain = json.loads(row["thresholds"]) if row is not None else {}
    bounds = bounds_by_domain.get(domain) or bounds_by_domain.get("default")
    return (float(bounds[0]), float(bounds[1])) if bounds else None


def reliability_diagram_table(
    report: Mapping[str, Any], thresholds: tuple[float, float] | None = None
) -> pd.DataFrame:
    """Return a version's out-of-fold reliability diagram, with the outcomes of small bins."""
    bins = [
        Bin(
            record["lo"],
            record["hi"],
            record["predicted"],
            Interval(
                record["observed"],
                record["observed_lo"],
                record["observed_hi"],
                record["n"],
                "Wilson",
            ),
        )
        for record in report["diagram"]
    ]
    points = report["points"]
    return _diagram_table(bins, points["predicted"], points["target"], thresholds)


def unseen_diagram_table(
    predicted: Sequence[float],
    target: Sequence[bool],
    thresholds: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """Return a reliability diagram of predictions and labels; empty without predictions."""
    if not len(predicted):
        return pd.DataFrame()
    return _diagram_table(reliability_bins(predicted, target), predicted, target, thresholds)


def _diagram_table(
    bins: Sequence[Bin],
    predicted: Sequence[float],
    target: Sequence[bool],
    thresholds: tuple[float, float] | None,
) -> pd.DataFrame:
    """Return a row a bin; the outcomes of its chains where they are as many as the bin counts."""
    chains = pd.DataFrame({"predicted": predicted, "target": target}, dtype=float)
    rows = []
    for one in bins:
        listed = chains[chains["predicted"].between(one.lo, one.hi)]
        if len(listed) != one.observed.n:
            listed = listed[:0]
        band_lo, band_hi = perfect_bin_band(one.predicted, one.observed.n)
        rows.append(
            {
                "predicted": one.predicted,
                **interval_columns(one.observed),
                "band_lo": band_lo,
                "band_hi": band_hi,
                "values": listed["target"].tolist(),
                "scores": listed["predicted"].tolist(),
            }
        )
    return with_thresholds(pd.DataFrame(rows).drop(columns="reason"), thresholds)


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
    labels = points["target"]

    rows: list[tuple[Any, ...]] = []
    for trial in row["report"]["methods"]:
        method, is_chosen = trial["method"], trial["method"] == row["method"]
        if trial["refused"] and not is_chosen:
            continue
        try:
            calibrator = (
                Calibrator.from_params(row["params"]["all"])
                if is_chosen
                else fit_without_minimum(method, points["r_raw"], labels)
            )
        except NotCalibrated:
            continue
        grid = np.linspace(
            calibrator.params["lo"], calibrator.params["hi"], N_CURVE_POINTS
        ).tolist()
        curve = calibrator.predict(grid).tolist()
        rows += [
            (method, "curve", x, y, is_chosen, len(labels))
            for x, y in zip(grid, curve, strict=True)
        ]
    rows += [
        ("", "label", x, float(y), False, 1) for x, y in zip(points["r_raw"], labels, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["calibrator", "kind", "r_raw", "r_cal", "chosen", "n"])
    return with_thresholds(table, thresholds)


def method_comparison_table(report: Mapping[str, Any], chosen_method: str | None) -> pd.DataFrame:
    """Return each method's out-of-fold metrics, with the base rate's Brier score.

    ``chosen_method`` is the one in use; None where the fit was refused.
    """
    estimates = [
        (trial["method"], metric, trial.get(metric) or {}, trial["refused"])
        for trial in report["methods"]
        for metric in CALIBRATION_METRICS
    ]
    return pd.DataFrame(
        [
            {
                "calibrator": name,
                "metric": metric,
                "chosen": name == chosen_method,
                **{field: estimate.get(field) for field in ("point", "lo", "hi")},
                "method": estimate.get("method") if estimate.get("lo") is not None else None,
                "confidence": _CONFIDENCE_LEVEL,
                "n": report["n"],
                "reason": refusal or estimate.get("reason"),
            }
            for name, metric, estimate, refusal in (
                *estimates,
                (BASE_RATE_LABEL, "brier", report["base_brier"], None),
            )
        ]
    )


def calibrator_changes_text(chains: pd.DataFrame, row: Mapping[str, Any]) -> str:
    """Return whether a version's labels and scores have changed since it was fitted, as text.

    Scores are compared to 9 digits: weighing parts again may differ in the last bits.
    """
    raw_scores = apply_calibrator(row, chains)["r_raw"]
    if "baselines" in row["report"]:  # a combined fit, which needs no r_raw
        raw_scores = raw_scores.fillna(-1.0)
    is_labelled = chains["target"].notna() & raw_scores.notna()
    targets = chains.loc[is_labelled, "target"].astype(bool)
    current_points = sorted(zip(raw_scores[is_labelled].round(9), targets, strict=True))
    points = row["report"]["points"]
    fitted_scores = (-1.0 if x is None else round(x, 9) for x in points["r_raw"])
    if current_points == sorted(zip(fitted_scores, points["target"], strict=True)):
        return "A fit today would see the same scores and verdicts."
    return (
        f"Scores or labels of its runs have changed since: {len(current_points)} labels now,"
        f" {row['n']} then. Fit again to use them."
    )


def with_targets(
    store: Store,
    runs: Sequence[str],
    target: str = DEFAULT_TARGET,
    *,
    is_joined: bool = False,
) -> pd.DataFrame:
    """Return the features of runs with a column ``target``: True, False, None if undecided.

    ``is_joined``: runs on the same chains complete each other, as a fit reads them.
    """
    features, verdicts = feature_table(store, runs), load_targets(store, runs, target=target)
    target_by_item = verdicts.set_index(["run", "item_id"])["target"].to_dict()
    target_values = [
        target_by_item.get(key) for key in zip(features["run"], features["item_id"], strict=True)
    ]
    table = features.assign(target=pd.Series(target_values, index=features.index, dtype=object))
    if not is_joined:
        return table
    origins = verdicts.set_index(["run", "item_id"])["origin"].to_dict()
    keys = zip(table["run"], table["item_id"], strict=True)
    return join_runs(store, table.assign(origin=[origins.get(key) for key in keys]))


@figure_table(("r_raw",))
def reliability_diagram(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the diagram of the calibrator in use, on the labels of a run."""
    row = load_calibrator_row(view.store)
    if row is None:
        raise NoTable(NO_CALIBRATOR_REASON)
    thresholds = current_thresholds(view.store)
    if view.run_id in row["report"]["runs"]:
        note = (
            f"Calibrator {row['version']} on the labels it was fitted on, each predicted by a fit"
            " without its fold."
        )
        return FigureData(reliability_diagram_table(row["report"], thresholds), note)
    table = with_targets(view.store, [view.run_id], calibrator_target(row))
    calibrated = apply_calibrator(row, table)
    has_both = table["target"].notna() & calibrated["r_cal"].notna()
    if not has_both.any():
        raise NoTable("no chain of the run has both a label and a calibrated score")
    labels = table.loc[has_both, "target"].astype(bool).tolist()
    table = unseen_diagram_table(calibrated.loc[has_both, "r_cal"].tolist(), labels, thresholds)
    return FigureData(table, f"Calibrator {row['version']}, which saw none of these labels.")


@figure_table(("r_raw",))
def score_histogram(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the chains of a run by score and label."""
    row = load_calibrator_row(view.store)
    table = with_targets(view.store, [view.run_id], calibrator_target(row))
    if row is None:
        raw_scores = table["r_raw"].where(table["status"] == "ok")
        histogram = histogram_table(raw_scores, table["target"], "r_raw")
    else:
        calibrated_scores = apply_calibrator(row, table)["r_cal"]
        thresholds = current_thresholds(view.store)
        histogram = histogram_table(calibrated_scores, table["target"], "r_cal", thresholds)
    if histogram.empty:
        raise NoTable("no chain of the run has a score")
    return FigureData(histogram)


@figure_table(("r_raw",), scope="store")
def calibrator_curves(view: RunView, choice: FigureChoice) -> FigureData:
    """Return the maps from r_raw to r_cal."""
    row = current_calibrator(view.store)
    if row is not None and "combination" in row["report"]:
        raise NoTable(
            "the calibrator in use combines several features: it is no curve of one score"
        )
    if row is None:
        raise NoTable(NO_CALIBRATOR_REASON)
    return FigureData(curve_table(row, current_thresholds(view.store)), _version_note(row))


@figure_table(("r_raw",), scope="store")
def calibrator_comparison(view: RunView, choice: FigureChoice) -> FigureData:
    """Return how well each method calibrates."""
    row = current_calibrator(view.store)
    if row is None:
        raise NoTable(NO_CALIBRATOR_REASON)
    return FigureData(method_comparison_table(row["report"], row["method"]), _version_note(row))


def _version_note(row: Mapping[str, Any]) -> str:
    return (
        f"Calibrator {row['version']}, fitted on {row['n']} labels of {len(row['report']['runs'])}"
        " runs."
    )


def threshold_domains(domains: Iterable[str]) -> list[str]:
    """Return the domains that can have thresholds: "default", for all, and those of answers.

    One that is named like the default's key is left out.
    """
    return [DEFAULT_DOMAIN, *sorted(set(domains) - {"", DEFAULT_DOMAIN})]


@figure_table(("r_raw",), scorer="composite")
def threshold_volumes(view: RunView, choice: FigureChoice) -> FigureData:
    """Return what thresholds of r_cal release, and at what error."""
    table = load_scored_items(view.store, [view.run_id])
    if table.empty:
        raise NoTable("no item has been scored")
    if table["r_cal"].isna().all():
        raise NoTable(str(table["told"].iloc[0]) or "no calibrator gives a probability")
    domain = choice.select("domain", threshold_domains(table["domain"]))
    if domain != DEFAULT_DOMAIN:
        table = table[table["domain"] == domain]
    if choice.thresholds is None:
        bounds = load_policy(view.store).domain_thresholds(domain)
    else:
        bounds = _chosen_thresholds(choice.thresholds)
    low, high = (bounds.low, bounds.high) if bounds else (None, None)
    note = "" if domain == DEFAULT_DOMAIN else f"Domain {domain}."
    chosen = FigureChoice(domain=domain, thresholds=choice.thresholds)
    return FigureData(threshold_points(table, low, high), note, chosen)


def _chosen_thresholds(text: str) -> Thresholds:
    try:
        return parse_thresholds(text)
    except PolicyError as error:
        raise ConfigError(str(error)) from error
