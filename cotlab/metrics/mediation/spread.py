"""How far an item's estimators vary with donors and draws: a bootstrap over the raw drops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cotlab.core.rng import derive_seed
from cotlab.metrics.mediation import scores as indices
from cotlab.metrics.mediation.interventions import KEEPS
from cotlab.stats.intervals import Interval, no_interval

MIN_DROPS = 5
"""With fewer drops to resample there is a point and no interval."""
RESAMPLES = 2000
MAX_UNDEFINED = 0.05
"""Share of resamples without a signal above which the others are no sample of what could have been
drawn."""
ROW_KINDS = {"": ("cot", "control"), **{str(keep): ("kept", "kept_control") for keep in KEEPS}}
Floats = NDArray[np.float64]


class Drop(NamedTuple):
    """One patched forward pass."""

    donor: str
    """Id of the item whose states were used; "" where there is none."""
    value: float | None
    """What it cost the answer in nats; None where the row was not answered."""


@dataclass(frozen=True, slots=True)
class Spread:
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
    donors: int
    """Number of donors among them."""


def _of_both(
    estimator: Callable[[float, float], float | None],
) -> Callable[[float | None, float | None], float | None]:
    return lambda cot, control: None if cot is None or control is None else estimator(cot, control)


ESTIMATORS: Mapping[
    str, tuple[tuple[bool, bool], Callable[[float | None, float | None], float | None]]
] = {
    "cmi": ((True, True), _of_both(indices.cmi)),
    "share": ((True, True), _of_both(indices.share)),
    "mass_lost": ((True, False), lambda cot, _: None if cot is None else indices.mass_lost(cot)),
    "drop_cot": ((True, False), lambda cot, _: cot),
    "drop_control": ((False, True), lambda _, control: control),
}
"""What each makes of the pooled drops of chain and control, and which of the two it reads."""


def item_spreads(
    rows: Sequence[Mapping[str, Any]], *, seed: int, item_id: str, level: float = 0.95
) -> Iterator[Spread]:
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
    level : float in (0, 1)

    Yields
    ------
    Spread
        The point is the score that the scorer gives: None where a drop is missing or there is no
        signal.
    """
    by_span: dict[tuple[str, str, str, str], dict[str, list[Drop]]] = {}
    for row in rows:
        keep, part = str(row["keep"]), str(row["part"])
        if row["source"] and part in ROW_KINDS.get(keep, ()):
            key = (str(row["source"]), str(row["control"]), str(row["span"]), keep)
            value = (
                None
                if row["value"] is None or row["value"] != row["value"]
                else float(row["value"])
            )
            by_span.setdefault(key, {}).setdefault(part, []).append(Drop(str(row["donor"]), value))
    for (source, control, span, keep), by_kind in by_span.items():
        cots, controls = (
            tuple(sorted(by_kind.get(part, ()), key=_order)) for part in ROW_KINDS[keep]
        )
        at = derive_seed("mediation spread", seed, item_id, source, control, span, keep)
        for metric in ("cmi",) if keep else ESTIMATORS:
            reads, _ = ESTIMATORS[metric]
            used = [
                drop
                for drops, read in zip((cots, controls), reads, strict=True)
                if read
                for drop in drops
            ]
            donors = len({drop.donor for drop in used if drop.donor})
            interval = spread_interval(metric, cots, controls, seed=at, level=level)
            yield Spread(
                source, control, span, keep, "cmi_kept" if keep else metric, interval, donors
            )


def single_draws(rows: Sequence[Mapping[str, Any]], keep: str = "") -> list[float]:
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
    part, control = ROW_KINDS[keep]
    here = [row for row in rows if row["span"] == "all" and row["keep"] == keep and row["source"]]
    answered = [row for row in here if row["value"] is not None and row["value"] == row["value"]]
    values = []
    for row in answered:
        same = [
            other["value"]
            for other in answered
            if other["part"] == part
            and (other["sample"] == row["sample"] if keep else other["donor"] in ("", row["donor"]))
        ]
        if (
            row["part"] == control
            and same
            and (value := indices.cmi(fmean(same), row["value"])) is not None
        ):
            values.append(value)
    return values


def spread_interval(
    metric: str, cots: Sequence[Drop], controls: Sequence[Drop], *, seed: int, level: float = 0.95
) -> Interval:
    """One estimator of one item with a percentile bootstrap interval, clustered by donor.

    A resample draws as many donors as there are, with replacement, and then as many of each donor's
    drops, with replacement; a donor brings its drops of chain and control together. Drops without a
    donor are drawn by themselves, and a single one is one deterministic number that stays as it is.

    Parameters
    ----------
    metric : one of ``ESTIMATORS``
    cots, controls : sequences of Drop
        With the chain's positions patched, and with the control's.
    seed : int
    level : float in (0, 1)

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
    reads, estimate = ESTIMATORS[metric]
    sides = [
        tuple(drops) if read else () for drops, read in zip((cots, controls), reads, strict=True)
    ]
    used = [drop for side in sides for drop in side]
    missing = sum(drop.value is None for drop in used)
    if missing:
        return no_interval(
            None, len(used), f"{missing} of {len(used)} drops are missing", level=level
        )
    for side, read, name in zip(sides, reads, ("the chain", "the control"), strict=True):
        if read and not side:
            return no_interval(None, len(used), f"no drop with {name} patched", level=level)
    means = [
        fmean([drop.value for drop in side if drop.value is not None]) if side else None
        for side in sides
    ]
    point = estimate(*means)
    if point is None:
        return no_interval(
            None, len(used), indices.no_signal(means[0] or 0.0, means[1] or 0.0), level=level
        )
    fixed = [sum(not drop.donor for drop in side) == 1 and len(side) == 1 for side in sides]
    n_resampled = sum(len(side) for side, still in zip(sides, fixed, strict=True) if not still)
    donors = sorted({drop.donor for drop in used if drop.donor})
    if n_resampled < MIN_DROPS:
        reason = (
            f"{n_resampled or 1} drop{'s' if n_resampled > 1 else ''}: an interval needs"
            f" {MIN_DROPS}"
        )
        return no_interval(point, len(used), reason, level=level)
    if len(donors) == 1:
        return no_interval(point, len(used), "one donor has no spread", level=level)
    rng = np.random.default_rng(seed)
    picks = (
        rng.integers(0, len(donors), (RESAMPLES, len(donors)))
        if donors
        else np.zeros((RESAMPLES, 0), np.int64)
    )
    resampled = [_means(side, donors, picks, rng) if side else None for side in sides]
    values = [
        estimate(
            *(None if side is None or np.isnan(side[b]) else float(side[b]) for side in resampled)
        )
        for b in range(RESAMPLES)
    ]
    known = np.array([value for value in values if value is not None])
    if len(known) < (1 - MAX_UNDEFINED) * RESAMPLES:
        reason = f"{RESAMPLES - len(known)} of {RESAMPLES} resamples have no signal"
        return no_interval(point, len(used), reason, level=level)
    if np.ptp(known) < 1e-12:
        return no_interval(point, len(used), "all resamples give the same value", level=level)
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    what = "donors, then draws" if donors else "draws"
    method = f"bootstrap (percentile, over {what}, {RESAMPLES} resamples)"
    method += (
        "; the chain's one drop is deterministic"
        if fixed[0]
        else "; the control's one drop is deterministic"
        if fixed[1]
        else ""
    )
    method += (
        f"; {RESAMPLES - len(known)} without signal left out" if len(known) < RESAMPLES else ""
    )
    method += "; widened to its point" if not lo <= point <= hi else ""
    return Interval(point, min(float(lo), point), max(float(hi), point), len(used), method, level)


def _means(
    side: Sequence[Drop], donors: Sequence[str], picks: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Return the pooled mean of one side's drops in each resample, of shape (RESAMPLES,).

    NaN where none of its donors was drawn.
    """
    free = np.array([drop.value for drop in side if not drop.donor], dtype=float)
    total, size = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    if len(free):
        total += free[rng.integers(0, len(free), (RESAMPLES, len(free)))].sum(axis=1)
        size += len(free)
    by_donor = [
        np.array([drop.value for drop in side if drop.donor == donor], dtype=float)
        for donor in donors
    ]
    for draw in range(picks.shape[1]):
        for number, values in enumerate(by_donor):
            chosen = np.flatnonzero(picks[:, draw] == number)
            if len(values) and len(chosen):
                total[chosen] += values[
                    rng.integers(0, len(values), (len(chosen), len(values)))
                ].sum(axis=1)
                size[chosen] += len(values)
    return np.asarray(np.divide(total, size, out=np.full(RESAMPLES, np.nan), where=size > 0))


def _order(drop: Drop) -> tuple[str, float]:
    """Return the sort key of a drop, so that the order of rows does not change what is drawn."""
    return drop.donor, 0.0 if drop.value is None else drop.value
