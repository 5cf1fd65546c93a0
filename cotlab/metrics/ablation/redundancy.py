"""Run-level statistics of step ablation: RRR, its ceiling, noise, and effects by position.

A table of scores has the columns metric, item_id, step, sample, facet (canonical JSON), value (NaN
where undefined), status and reason, as ``cotlab.store`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from cotlab.core.program import over_run
from cotlab.core.rng import derive_seed
from cotlab.core.types import Estimate, Facet, MetricCard
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.metrics.ablation import cards
from cotlab.metrics.kit import facet_of, mean_by_item
from cotlab.stats.intervals import FEWEST, Interval, wilson
from cotlab.stats.resample import bootstrap_mean, bootstrap_ratio, paired_permutation

FLAGS = frozenset(card.name for card in cards.STEP_CARDS if card.flag)
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
    steps = table[table["step"].notna()]
    keys = ["metric", "facet", "item_id", "step"]
    values = steps.astype({"value": "Float64"}).groupby(keys, sort=True)["value"]
    means = values.mean().astype(float)
    return pd.DataFrame({"value": means, "draws": values.count().astype(int)}).reset_index()


def position_table(
    table: pd.DataFrame, seed: int = 0, flags: frozenset[str] = FLAGS
) -> pd.DataFrame:
    """Average a step metric at each step position over items, with its variance and interval.

    Columns metric, facet, step, point, lo, hi, variance (n − 1; None below two items), n,
    n_undefined, method, reason (of the first undefined score where none is defined, else why there
    is no interval). One yes or no an item gets a Wilson interval, anything else a bootstrap over
    items (from five on); ``flags`` names the metrics that are yes or no.
    """
    gaps = (
        table[table["step"].notna() & table["value"].isna()]
        .groupby(["metric", "facet", "step"])["reason"]
        .first()
    )
    rows = []
    for (metric, facet, step), group in step_means(table).groupby(
        ["metric", "facet", "step"], sort=True
    ):
        values = group["value"].dropna()
        yes_or_no = metric in flags and len(values) > 0 and group["draws"].max() == 1
        interval = (
            wilson(int(values.sum()), len(values))
            if yes_or_no
            else bootstrap_mean(
                values.tolist(),
                seed=derive_seed("position", seed, metric, facet, int(step)),
                share=metric in flags,
            )
        )
        rows.append(
            {
                "metric": metric,
                "facet": facet,
                "step": int(step),
                "point": interval.point,
                "lo": interval.lo,
                "hi": interval.hi,
                "variance": values.var(ddof=1) if len(values) > 1 else None,
                "n": len(values),
                "n_undefined": len(group) - len(values),
                "method": interval.method,
                "reason": interval.reason if len(values) else gaps.get((metric, facet, step)),
            }
        )
    return pd.DataFrame(rows, columns=POSITION_COLUMNS)


def _ccs_groups(table: pd.DataFrame) -> Iterator[tuple[str, Facet, pd.DataFrame]]:
    steps = step_means(table[table["metric"].isin(CCS_METRICS)])
    for (metric, facet), group in steps.groupby(["metric", "facet"], sort=True):
        yield metric, facet_of(facet, metric=metric), group


def _redundant(group: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Count for each item how many steps are defined, and how many score under the threshold."""
    defined = group.dropna(subset=["value"])
    low = (defined["value"] < threshold).groupby(defined["item_id"], sort=True)
    return pd.DataFrame({"low": low.sum(), "n": low.size()})


def _estimate(
    card: MetricCard, group: Facet, interval: Interval, undefined: int, over: str = "items"
) -> Estimate:
    return Estimate(
        card.name,
        group,
        interval.point,
        interval.lo,
        interval.hi,
        interval.level,
        interval.n,
        undefined,
        interval.method,
        over,
        interval.reason,
    )


@over_run(cards.RRR_MACRO, reads=CCS_METRICS)
def rrr(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate RRR, the mean over items of the share of steps below the threshold."""
    return rrr_estimates(table, options, seed)


def rrr_estimates(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int, *, min_items: int = FEWEST
) -> list[Estimate]:
    """Estimate RRR for each mode and metric, with bounds from ``min_items`` items on."""
    out = []
    for metric, group, steps in _ccs_groups(table):
        counts = _redundant(steps, options["ccs_threshold"])
        shares, draw = (counts["low"] / counts["n"]).tolist(), derive_seed("rrr", seed, metric)
        interval = bootstrap_mean(shares, seed=draw, share=True, min_units=min_items)
        out.append(_estimate(cards.RRR_MACRO, group, interval, int(steps["value"].isna().sum())))
    return out


@over_run(cards.RRR_MICRO, reads=CCS_METRICS)
def rrr_micro(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate RRR pooled over steps, its interval by resampling items."""
    out = []
    for metric, group, steps in _ccs_groups(table):
        counts = _redundant(steps, options["ccs_threshold"])
        low, n = counts["low"].tolist(), counts["n"].tolist()
        interval = bootstrap_ratio(low, n, seed=derive_seed("rrr_micro", seed, metric), share=True)
        out.append(_estimate(cards.RRR_MICRO, group, interval, int(steps["value"].isna().sum())))
    return out


@over_run(cards.RRR_CEILING, reads=CCS_METRICS)
def rrr_ceiling(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate what RRR under removal would be if only each chain's last step mattered."""
    out = []
    for metric, group, steps in _ccs_groups(table):
        if dict(group).get("mode") != "remove":
            continue
        counts = _redundant(steps, options["ccs_threshold"])
        interval = bootstrap_mean(
            ((counts["n"] - 1) / counts["n"]).tolist(), seed=derive_seed("ceiling", seed, metric)
        )
        out.append(_estimate(cards.RRR_CEILING, group, interval, int(steps["value"].isna().sum())))
    return out


@over_run(cards.ABOVE_NOISE, reads=(*CCS_METRICS, "baseline_flip"))
def above_noise(table: pd.DataFrame, options: Mapping[str, Any], seed: int) -> list[Estimate]:
    """Estimate answer changes above the model's own, with a sign-flip permutation test."""
    means = mean_by_item(table)
    noise = means[means["metric"] == "baseline_flip"].set_index("item_id")["value"].dropna()
    out = []
    for facet, group in means[means["metric"] == "answer_change"].groupby("facet", sort=True):
        effect = group.set_index("item_id")["value"].dropna()
        both = effect.index.intersection(noise.index)
        interval = bootstrap_mean(
            (effect[both] - noise[both]).tolist(), seed=derive_seed("noise", seed)
        )
        p = paired_permutation(
            effect[both].tolist(), noise[both].tolist(), seed=derive_seed("noise p", seed)
        )
        if noise.empty:
            interval = Interval(
                None,
                None,
                None,
                0,
                "none",
                reason="no second baseline draw: --repeats 2 or more measures it",
            )
        method = interval.method + (f"; sign-flip permutation p = {p:.4g}" if p is not None else "")
        out.append(
            Estimate(
                cards.ABOVE_NOISE.name,
                facet_of(facet, metric="answer_change"),
                interval.point,
                interval.lo,
                interval.hi,
                interval.level,
                interval.n,
                len(group) - len(both),
                method,
                "items",
                interval.reason,
            )
        )
    return out


STATISTICS = (rrr, rrr_micro, rrr_ceiling, above_noise)
