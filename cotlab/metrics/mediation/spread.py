"""How far an item's estimators vary with donors and draws: a bootstrap over the raw drops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from cotlab.core.keys import derive_seed
from cotlab.metrics.mediation import indices
from cotlab.metrics.mediation.interventions import KEEP_SHARES
from cotlab.stats.intervals import Interval, no_interval
from cotlab.stats.resample import RESAMPLES, Floats, GroupResamples, percentile_interval

MIN_DROPS = 5
"""With fewer drops to resample there is a point and no interval."""
ROW_KINDS_BY_KEEP = {
    "": ("cot", "control"),
    **{str(keep): ("kept", "kept_control") for keep in KEEP_SHARES},
}


class PatchDrop(NamedTuple):
    """One patched forward pass."""

    donor: str
    """Id of the item whose states were used; "" where there is none."""
    value: float | None
    """What it cost the answer in nats; None where the row was not answered."""


@dataclass(frozen=True, slots=True)
class EstimateSpread:
    """An estimator of one item with its interval."""

    source: str
    """Where the patched states come from."""
    control: str
    """Whose runs the control's states come from."""
    span: str
    """The layers, by name."""
    keep: str
    """Share of positions that is patched; empty for all."""
    metric: str
    """Name of the metric."""
    interval: Interval
    """Point and bounds; ``n`` counts the raw drops that the point rests on."""
    n_donors: int
    """Number of donors among them."""


ESTIMATORS: Mapping[
    str,
    tuple[tuple[bool, bool], Callable[[str, float | None, float | None], float | None]],
] = {
    "cmi": ((True, True), partial(indices.apply_if_defined, indices.cmi_against)),
    "share": ((True, True), partial(indices.apply_if_defined, indices.share_against)),
    "mass_lost": (
        (True, False),
        lambda _, cot, __: indices.apply_if_defined(indices.mass_lost, cot),
    ),
    "drop_cot": ((True, False), lambda _, cot, __: cot),
    "drop_control": ((False, True), lambda _, __, control_drop: control_drop),
}
"""What each makes of the control's name and the pooled drops of chain and control, and which of the
two drops it reads."""


def item_spreads(
    rows: Sequence[Mapping[str, Any]], *, seed: int, item_id: str
) -> Iterator[EstimateSpread]:
    """Yield each estimator of one item for every source, control and span.

    CMI also for every share of positions kept.

    Parameters
    ----------
    rows : sequence of mapping
        The item's scores ``patch_drop``: part, source, control, span, keep, donor (each "" where
        the facet has none), and value in nats (None or NaN where a row was not answered).
    seed : int
        Of the run. The same seed, item and place give the same interval.
    item_id : str

    Yields
    ------
    Spread
        The point is the score that the scorer gives: None where a drop is missing or there is no
        signal.
    """
    drops_by_span: dict[tuple[str, str, str, str], dict[str, list[PatchDrop]]] = {}
    for row in rows:
        keep, part = str(row["keep"]), str(row["part"])
        if row["source"] and part in ROW_KINDS_BY_KEEP.get(keep, ()):
            span_key = (str(row["source"]), str(row["control"]), str(row["span"]), keep)
            drop = PatchDrop(str(row["donor"]), float(row["value"]) if _is_answered(row) else None)
            drops_by_span.setdefault(span_key, {}).setdefault(part, []).append(drop)
    for (source, control, span, keep), drops_by_kind in drops_by_span.items():
        cot_drops, control_drops = (
            tuple(sorted(drops_by_kind.get(part, ()), key=_drop_sort_key))
            for part in ROW_KINDS_BY_KEEP[keep]
        )
        if control == "total":  # one size, measured at all layers
            total_drops = drops_by_span.get((source, control, "all", ""), {}).get("control", ())
            control_drops = tuple(sorted(total_drops, key=_drop_sort_key))
        interval_seed = derive_seed("mediation spread", seed, item_id, source, control, span, keep)
        for metric in ("cmi",) if keep else ESTIMATORS:
            used_flags, _ = ESTIMATORS[metric]
            used_drops = [
                drop
                for drops, is_used in zip((cot_drops, control_drops), used_flags, strict=True)
                if is_used
                for drop in drops
            ]
            n_donors = len({drop.donor for drop in used_drops if drop.donor})
            interval = spread_interval(
                metric,
                cot_drops,
                control_drops,
                control=control,
                seed=interval_seed,
            )
            yield EstimateSpread(
                source, control, span, keep, "cmi_kept" if keep else metric, interval, n_donors
            )


def single_draw_cmis(rows: Sequence[Mapping[str, Any]], keep: str = "") -> list[float]:
    """Return the CMI of all layers as each draw of the control alone would give it.

    A draw of a kept share goes with the chain's draw of the same number; at every position it goes
    with the chain's drops of its own donor, or with those that have none. The pooled CMI is not
    their mean: drops are pooled before the ratio.

    Parameters
    ----------
    rows : sequence of mapping
        As ``item_spreads`` takes them, of one source and control, and ``sample``, the number of the
        draw.
    keep : "" for every position, or a share as the facet writes it

    Returns
    -------
    list of float in [0, 1]
        Without draws that have no signal, or whose row was not answered.
    """
    part, control_part = ROW_KINDS_BY_KEEP[keep]
    all_layer_rows = [
        row for row in rows if row["span"] == "all" and row["keep"] == keep and row["source"]
    ]
    answered_rows = [row for row in all_layer_rows if _is_answered(row)]
    if keep and any(row["control"] == "total" for row in answered_rows):
        return _kept_draws_of_total(rows, answered_rows)
    values = []
    for row in answered_rows:
        chain_drops = [
            other_row["value"]
            for other_row in answered_rows
            if other_row["part"] == part
            and (
                other_row["sample"] == row["sample"]
                if keep
                else other_row["donor"] in ("", row["donor"])
            )
        ]
        if (
            row["part"] == control_part
            and chain_drops
            and (value := indices.cmi_against(row["control"], fmean(chain_drops), row["value"]))
            is not None
        ):
            values.append(value)
    return values


def _kept_draws_of_total(
    rows: Sequence[Mapping[str, Any]], kept_rows: Sequence[Mapping[str, Any]]
) -> list[float]:
    """Return the CMI of each draw of a kept share against the total, which has one size.

    A draw goes with the total's drops of its own donor, or with those that have none.
    """
    total_rows = [
        row
        for row in rows
        if row["part"] == "control" and row["span"] == "all" and _is_answered(row)
    ]
    values = []
    for row in kept_rows:
        totals = [
            total_row["value"] for total_row in total_rows if total_row["donor"] == row["donor"]
        ]
        value = indices.cmi_against("total", row["value"], fmean(totals)) if totals else None
        if value is not None:
            values.append(value)
    return values


def spread_interval(
    metric: str,
    cot_drops: Sequence[PatchDrop],
    control_drops: Sequence[PatchDrop],
    *,
    control: str,
    seed: int,
) -> Interval:
    """One estimator of one item with a percentile bootstrap interval, clustered by donor.

    A resample draws as many donors as there are, with replacement, and then as many of each donor's
    drops, with replacement; a donor brings its drops of chain and control together. Drops without a
    donor are drawn by themselves, and a single one is one deterministic number that stays as it is.

    Parameters
    ----------
    metric : one of ``ESTIMATORS``
    cot_drops, control_drops : sequences of PatchDrop
        With the chain's positions patched, and with the control's.
    control : str
        Name of the control; CMI against "total" is the share of the total effect.
    seed : int

    Returns
    -------
    Interval
        In the unit of the metric, ``lo <= point <= hi``. No bounds (with the reason) with fewer
        than 5 drops to resample, with one donor, where more than 5 % of the resamples have no
        signal, or where all of them give the same value. Donors are few, so the interval is rather
        too narrow than too wide.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8 (two-stage
    resampling).
    """
    used_flags, estimate = ESTIMATORS[metric]
    sides = [
        tuple(drops) if is_used else ()
        for drops, is_used in zip((cot_drops, control_drops), used_flags, strict=True)
    ]
    used_drops = [drop for side in sides for drop in side]
    n_missing = sum(drop.value is None for drop in used_drops)
    make_no_interval = partial(no_interval, n=len(used_drops))
    if n_missing:
        return make_no_interval(None, reason=f"{n_missing} of {len(used_drops)} drops are missing")
    for side, is_used, side_name in zip(
        sides, used_flags, ("the chain", "the control"), strict=True
    ):
        if is_used and not side:
            return make_no_interval(None, reason=f"no drop with {side_name} patched")
    means = [
        fmean([drop.value for drop in side if drop.value is not None]) if side else None
        for side in sides
    ]
    point = estimate(control, *means)
    if point is None:
        against = indices.share_reason if metric == "share" else indices.cmi_reason
        return make_no_interval(None, reason=against(control, means[0] or 0.0, means[1] or 0.0))
    fixed_flags = [len(side) == 1 and not side[0].donor for side in sides]
    n_resampled = sum(
        len(side) for side, is_fixed in zip(sides, fixed_flags, strict=True) if not is_fixed
    )
    donors = sorted({drop.donor for drop in used_drops if drop.donor})
    if n_resampled < MIN_DROPS:
        drops_noun = "drops" if n_resampled > 1 else "drop"
        reason = f"{n_resampled or 1} {drops_noun}: an interval needs {MIN_DROPS}"
        return make_no_interval(point, reason=reason)
    if len(donors) == 1:
        return make_no_interval(point, reason="one donor has no spread")
    donor_counts = np.ones((1 + RESAMPLES, 0))
    if donors:
        donor_counts = GroupResamples(len(donors), seed).values(lambda weights: weights)
    rng = np.random.default_rng([seed, 1])  # not the stream that draws donors
    resampled_means = [
        _resampled_means(side, donors, donor_counts, rng)
        if side
        else np.full(1 + RESAMPLES, np.nan)
        for side in sides
    ]
    values = [
        estimate(control, *(None if math.isnan(mean) else mean for mean in pair))
        for pair in np.transpose(resampled_means)[1:].tolist()
    ]
    resampled = np.array([point, *values], dtype=float)  # None becomes NaN
    interval = percentile_interval(
        resampled,
        len(used_drops),
        over="donors, then draws" if donors else "draws",
        undefined="have no signal",
    )
    if interval.lo is None:
        return interval
    if np.ptp(resampled[np.isfinite(resampled)]) < 1e-12:
        return make_no_interval(point, reason="all resamples give the same value")
    if not any(fixed_flags):
        return interval
    fixed = f"; the {'chain' if fixed_flags[0] else 'control'}'s one drop is deterministic"
    return replace(interval, method=interval.method + fixed)


def _resampled_means(
    side: Sequence[PatchDrop], donors: Sequence[str], donor_counts: Floats, rng: np.random.Generator
) -> Floats:
    """Return the mean of one side's drops in each resample; NaN where no donor of it is drawn."""
    sums, sizes = np.zeros(len(donor_counts)), np.zeros(len(donor_counts))
    once = np.ones(len(donor_counts))  # drops without a donor are all drawn from, each time
    for donor, counts in zip(("", *donors), (once, *donor_counts.T), strict=True):
        values = np.array([drop.value for drop in side if drop.donor == donor], dtype=float)
        if len(values):
            n_drawn = counts.astype(int) * len(values)
            sums += rng.multinomial(n_drawn, np.full(len(values), 1 / len(values))) @ values
            sizes += n_drawn
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / sizes)


def _is_answered(row: Mapping[str, Any]) -> bool:
    return row["value"] is not None and not math.isnan(row["value"])


def _drop_sort_key(drop: PatchDrop) -> tuple[str, float]:
    """Return the sort key of a drop, so that the order of rows does not change what is drawn."""
    return drop.donor, 0.0 if drop.value is None else drop.value
