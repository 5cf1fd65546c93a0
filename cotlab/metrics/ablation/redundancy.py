"""Run-level statistics of step ablation: RRR, its ceiling, noise, and effects by position.

A table of scores has the columns metric, item_id, step, sample, facet (canonical JSON), value (NaN
where undefined), status and reason, as ``cotlab.store`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import derive_seed, resampling_seed
from cotlab.core.program import run_statistic
from cotlab.core.types import CCS_METRICS, Estimate, Facet
from cotlab.metrics.ablation import cards
from cotlab.metrics.cards import interval_estimate, mean_by_item, mean_interval, parse_facet
from cotlab.stats.intervals import FEWEST, no_interval
from cotlab.stats.resample import bootstrap_mean, bootstrap_ratio, paired_permutation

FLAG_METRICS = frozenset(card.name for card in cards.STEP_CARDS if card.flag)
POSITION_COLUMNS = [
    "metric",
    "facet",
    "step",
    "point",
    "lo",
    "hi",
    "variance",
    "n",
    "n_undefined",
    "method",
    "reason",
]


# Masked arrays are summed with compensation whatever else the table holds; plain ones only where
# some value of the table is missing, so that a mean would depend on scores of other groups.
def step_means(table: pd.DataFrame) -> pd.DataFrame:
    """Average a step's CCS over draws.

    Columns metric, facet, item_id, step, value (NaN if no draw is defined), draws.
    """
    keys = ["metric", "facet", "item_id", "step"]
    steps = table.loc[table["step"].notna(), [*keys, "value"]]  # of millions, copy no more
    values = steps.astype({"value": "Float64"}).groupby(keys, sort=True)["value"]
    means = values.mean().astype(float)
    return pd.DataFrame({"value": means, "draws": values.count().astype(int)}).reset_index()


def position_table(
    table: pd.DataFrame, seed: int = 0, flag_metrics: frozenset[str] = FLAG_METRICS
) -> pd.DataFrame:
    """Average a step metric at each step position over items, with its variance and interval.

    Columns metric, facet, step, point, lo, hi, variance (over n; None without an item), n,
    n_undefined, method, reason (of the first undefined score where none is defined, else why there
    is no interval). ``mean_interval`` gives the interval; ``flag_metrics`` names the metrics that
    are yes or no.
    """
    reasons = (
        table[table["step"].notna() & table["value"].isna()]
        .groupby(["metric", "facet", "step"])["reason"]
        .first()
    )
    rows = []
    for (metric, facet, step), group in step_means(table).groupby(
        ["metric", "facet", "step"], sort=True
    ):
        values = group["value"].dropna()
        interval = mean_interval(values.tolist(), seed=seed, is_binary=metric in flag_metrics)
        rows.append(
            {
                "metric": metric,
                "facet": facet,
                "step": int(step),
                **asdict(interval),
                "variance": values.var(ddof=0) if len(values) else None,
                "n_undefined": len(group) - len(values),
                "reason": interval.reason if len(values) else reasons.get((metric, facet, step)),
            }
        )
    return pd.DataFrame(rows, columns=POSITION_COLUMNS)


class _StepCounts(NamedTuple):
    """The defined steps of one CCS metric and facet."""

    group_facet: Facet
    """Facet with the metric's name."""
    n_defined_by_item: pd.Series
    """Number of defined steps by item."""
    n_low_by_item: pd.Series
    """How many of them score under the threshold."""
    n_undefined: int
    """Number of steps without a value."""


def _step_counts(table: pd.DataFrame, options: Mapping[str, Any]) -> Iterator[_StepCounts]:
    columns = ["metric", "facet", "item_id", "step", "value"]
    steps = step_means(table.loc[table["metric"].isin(CCS_METRICS), columns])
    for (metric, facet), group in steps.groupby(["metric", "facet"], sort=True):
        defined_steps = group.dropna(subset=["value"])
        is_below_threshold = defined_steps["value"] < options["ccs_threshold"]
        low_steps_by_item = is_below_threshold.groupby(defined_steps["item_id"], sort=True)
        n_undefined = len(group) - len(defined_steps)
        group_facet = parse_facet(facet, metric=metric)
        yield _StepCounts(
            group_facet, low_steps_by_item.size(), low_steps_by_item.sum(), n_undefined
        )


@run_statistic(cards.RRR_MACRO, input_metrics=CCS_METRICS, by_facet=True)
def rrr(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate RRR, the mean over items of the share of steps below the threshold."""
    return rrr_estimates(table, options, seed)


def rrr_estimates(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int, *, min_items: int = FEWEST
) -> list[Estimate]:
    """Estimate RRR for each mode and metric, with bounds from ``min_items`` items on."""
    out = []
    for group_facet, n_defined_by_item, n_low_by_item, n_undefined in _step_counts(table, options):
        interval = mean_interval(
            (n_low_by_item / n_defined_by_item).tolist(),
            seed=seed,
            is_binary=True,
            min_items=min_items,
        )
        out.append(interval_estimate(cards.RRR_MACRO.name, group_facet, interval, n_undefined))
    return out


@run_statistic(cards.RRR_MICRO, input_metrics=CCS_METRICS, by_facet=True)
def rrr_micro(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate RRR pooled over steps, its interval by resampling items."""
    out = []
    for group_facet, n_defined_by_item, n_low_by_item, n_undefined in _step_counts(table, options):
        if n_defined_by_item.nunique() == 1:  # pooled over chains of one length it is the mean
            shares = (n_low_by_item / n_defined_by_item).tolist()
            interval = mean_interval(shares, seed=seed, is_binary=True)
        else:
            interval = bootstrap_ratio(
                n_low_by_item.tolist(),
                n_defined_by_item.tolist(),
                seed=resampling_seed(seed),
                share=True,
            )
        out.append(interval_estimate(cards.RRR_MICRO.name, group_facet, interval, n_undefined))
    return out


@run_statistic(cards.RRR_CEILING, input_metrics=CCS_METRICS, by_facet=True)
def rrr_ceiling(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate what RRR under removal would be if only each chain's last step mattered."""
    out = []
    for group_facet, n_defined_by_item, _, n_undefined in _step_counts(table, options):
        if dict(group_facet).get("mode") == "remove":
            interval = bootstrap_mean(
                ((n_defined_by_item - 1) / n_defined_by_item).tolist(), seed=resampling_seed(seed)
            )
            out.append(
                interval_estimate(cards.RRR_CEILING.name, group_facet, interval, n_undefined)
            )
    return out


@run_statistic(cards.ABOVE_NOISE, input_metrics=("answer_change", "baseline_flip"))
def above_noise(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate answer changes above the model's own, with a sign-flip permutation test."""
    means = mean_by_item(table)
    noise_by_item = means[means["metric"] == "baseline_flip"].set_index("item_id")["value"].dropna()
    out = []
    for facet, group in means[means["metric"] == "answer_change"].groupby("facet", sort=True):
        change_by_item = group.set_index("item_id")["value"].dropna()
        shared_items = change_by_item.index.intersection(noise_by_item.index)
        differences = (change_by_item[shared_items] - noise_by_item[shared_items]).tolist()
        interval = bootstrap_mean(differences, seed=resampling_seed(seed))
        p_value = paired_permutation(
            change_by_item[shared_items].tolist(),
            noise_by_item[shared_items].tolist(),
            seed=derive_seed("noise p", seed),
        )
        if noise_by_item.empty:
            no_draw_reason = "no second baseline draw: --repeats 2 or more measures it"
            interval = no_interval(None, 0, no_draw_reason)
        if p_value is not None:
            method = f"{interval.method}; sign-flip permutation p = {p_value:.4g}"
            interval = replace(interval, method=method)
        group_facet = parse_facet(facet, metric="answer_change")
        n_undefined = len(group) - len(shared_items)
        out.append(interval_estimate(cards.ABOVE_NOISE.name, group_facet, interval, n_undefined))
    return out


STATISTICS = (rrr, rrr_micro, rrr_ceiling, above_noise)
