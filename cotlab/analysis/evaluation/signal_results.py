"""One signal of labelled chains against one target: its numbers, its verdict, its mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.analysis.evaluation.results import (
    CONSTANT,
    INFORMATIVE,
    REVERSED,
    UNDEFINED,
    UNINFORMATIVE,
    UNKNOWN,
    ChainKey,
    SignalResult,
    strongest,
)
from cotlab.analysis.evaluation.signals import RANDOM, LabelledChains, Signal, Values
from cotlab.review.labelling.truth import target_values
from cotlab.stats.calibration_intervals import measure_interval
from cotlab.stats.intervals import Interval, no_interval
from cotlab.stats.ranking import RANK_MEASURES, ResampledChains

MAX_EXAMPLES = 10
"""Most chains listed as the worst mistakes of a signal."""
_NOWHERE_REASON = "the signal is defined on no labelled chain"
_VERDICT_COLUMNS = ("sound", "answer_correct", "answer_and_chain", "faithful")
"""Columns that targets are made of."""
_AUROC_ONLY = ("auroc",)


@dataclass(frozen=True)
class TargetChains:
    """The chains with a label of one target."""

    table: pd.DataFrame
    """Their rows of the chains' table."""
    is_false: NDArray[np.bool_]
    """Whether the target is false (n,)."""
    groups: NDArray[Any]
    """The question of each (n,)."""
    domains: NDArray[Any]
    """The domain of each (n,)."""
    baselines: Mapping[str, Values]
    """Values (n,) of each baseline."""
    seed: int
    """Of the bootstrap."""
    _resampled: dict[bytes, ResampledChains] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _baseline_aurocs: dict[tuple[str, bytes], Values] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def select(
        cls, labelled: LabelledChains, values: pd.Series, signals: Sequence[Signal], *, seed: int
    ) -> TargetChains:
        """Return the chains with a value of ``load_target``; baselines are those of ``signals``."""
        table = labelled.chains.loc[values.index[values.notna()]]
        baselines = {
            signal.name: signal.values[table.index].to_numpy(dtype=float)
            for signal in signals
            if signal.is_baseline and not signal.is_location
        }
        return cls(
            table,
            ~values[table.index].astype(bool).to_numpy(),
            table["cluster"].to_numpy(),
            domain_of(table).to_numpy(),
            baselines,
            seed,
        )

    def resampled(self, rows: NDArray[np.bool_]) -> ResampledChains:
        """Return the chosen chains with their resamples, the same for the same rows."""
        key = rows.tobytes()
        if key not in self._resampled:
            self._resampled[key] = ResampledChains(
                self.is_false[rows], self.groups[rows].tolist(), self.seed
            )
        return self._resampled[key]

    def baseline_aurocs(self, name: str, rows: NDArray[np.bool_]) -> Values:
        """Return the AUROC of a baseline on the chosen chains and on their resamples."""
        key = (name, rows.tobytes())
        if key not in self._baseline_aurocs:
            chains = self.resampled(rows)
            self._baseline_aurocs[key] = chains.aurocs(-self.baselines[name][rows])
        return self._baseline_aurocs[key]


def load_target(chains: pd.DataFrame, target: str) -> pd.Series:
    """Return the target's value of each chain: True, False, or None where it has no label of it."""
    return target_values(chains[list(_VERDICT_COLUMNS)], target)


def domain_of(chains: pd.DataFrame) -> pd.Series:
    """Return the domain of each chain: its category, or the suite where it has none."""
    return chains["domain"].where(chains["domain"].notna(), chains["source"]).astype(str)


def evaluate_signal(chains: TargetChains, signal: Signal, *, with_details: bool) -> SignalResult:
    """Return the result of one signal; low values are taken to point at a false target.

    Parameters
    ----------
    chains : TargetChains
    signal : Signal
    with_details : bool
        Whether the measures besides the AUROC, the domains, the mistakes and the calibration are
        wanted, which take longer than the rest.

    Returns
    -------
    SignalResult
    """
    values = signal.values[chains.table.index].to_numpy(dtype=float)
    is_defined = ~np.isnan(values)
    n = int(is_defined.sum())
    counts = (n, len(values) - n)
    names = RANK_MEASURES if with_details else _AUROC_ONLY
    if not n:
        measures = dict.fromkeys(names, no_interval(None, 0, _NOWHERE_REASON))
        return SignalResult(
            signal.name, signal.what, signal.is_baseline, measures, *counts, {}, UNDEFINED
        )
    ranked = chains.resampled(is_defined)
    aurocs = ranked.aurocs(-values[is_defined])
    auroc = ranked.interval(aurocs)
    is_flipped = not signal.has_direction and auroc.hi is not None and auroc.hi < 0.5
    if is_flipped:
        values, aurocs = -values, 1 - aurocs
        auroc = ranked.interval(aurocs)
    measures = {"auroc": auroc}
    if with_details:
        measures |= ranked.rank_intervals(-values[is_defined])
    differences = _differences(chains, signal, values, aurocs)
    beaten = [name for name, difference in differences.items() if _is_above(difference, 0.0)]
    if signal.is_baseline or not _is_above(measures["auroc"], 0.5):
        beaten = []
    result = SignalResult(
        signal.name,
        signal.what,
        signal.is_baseline,
        measures,
        *counts,
        differences,
        CONSTANT,
        tuple(beaten),
        is_flipped,
    )
    if np.ptp(values[is_defined]):
        result = replace(result, verdict=_verdict(result))
    if not with_details:
        return result
    missed, false_alarms = _worst_mistakes(chains, values)
    return replace(
        result,
        by_domain=_by_domain(chains, values, is_defined),
        missed=missed,
        false_alarms=false_alarms,
        calibration=_calibration(chains, values, is_defined) if signal.is_probability else None,
    )


def _differences(
    chains: TargetChains, signal: Signal, values: Values, aurocs: Values
) -> dict[str, Interval]:
    """Return the AUROC of a signal minus that of each baseline, on the chains that have both."""
    is_defined = ~np.isnan(values)
    differences = {}
    for baseline, others in chains.baselines.items():
        shared = is_defined & ~np.isnan(others)
        if baseline in (signal.name, RANDOM) or not shared.any() or not np.ptp(others[shared]):
            continue
        if len(set(chains.is_false[shared])) < 2:
            continue
        ranked = chains.resampled(shared)
        is_everywhere = bool((shared == is_defined).all())
        differences[baseline] = ranked.difference(
            chains.baseline_aurocs(baseline, shared),
            aurocs if is_everywhere else ranked.aurocs(-values[shared]),
        )
    return differences


def _calibration(
    chains: TargetChains, values: Values, rows: NDArray[np.bool_]
) -> dict[str, Interval]:
    groups = list(chains.groups[rows])
    return {
        name: measure_interval(name, values[rows], ~chains.is_false[rows], groups, seed=chains.seed)
        for name in ("brier", "ece")
    }


def _is_above(interval: Interval, value: float) -> bool:
    return interval.lo is not None and interval.lo > value


def _verdict(result: SignalResult) -> str:
    auroc, beaten, unbeaten = result.auroc, result.beaten, result.unbeaten
    if auroc.lo is None or auroc.hi is None:
        return UNKNOWN
    if auroc.lo <= 0.5 <= auroc.hi:
        return UNINFORMATIVE
    if auroc.hi < 0.5:
        return REVERSED
    if result.is_baseline or not result.differences:
        return INFORMATIVE
    if not beaten:
        return f"{INFORMATIVE}, but no more than {strongest(result, unbeaten)}"
    if unbeaten:
        return (
            f"{INFORMATIVE} more than {strongest(result, beaten)}, no more than"
            f" {strongest(result, unbeaten)}"
        )
    return (
        f"{INFORMATIVE} more than {'every baseline' if len(beaten) > 2 else ' and '.join(beaten)}"
    )


def _worst_mistakes(
    chains: TargetChains, values: Values
) -> tuple[tuple[ChainKey, ...], tuple[ChainKey, ...]]:
    """Return the false chains of highest value, and the true ones of lowest."""
    keys = list(zip(chains.table["run"], chains.table["item_id"], strict=True))

    def first_keys(order: Sequence[int], mask: NDArray[np.bool_]) -> tuple[ChainKey, ...]:
        rows = (row for row in order if mask[row] and not np.isnan(values[row]))
        return tuple(keys[row] for row, _ in zip(rows, range(MAX_EXAMPLES), strict=False))

    ascending = np.argsort(values, kind="stable")
    return (
        first_keys(ascending[::-1].tolist(), chains.is_false),
        first_keys(ascending.tolist(), ~chains.is_false),
    )


def _by_domain(
    chains: TargetChains, values: Values, is_defined: NDArray[np.bool_]
) -> dict[str, Interval] | None:
    names = sorted(set(chains.domains))
    if len(names) < 2:
        return None
    aurocs = {}
    for name in names:
        rows = (chains.domains == name) & is_defined
        if rows.any():
            ranked = chains.resampled(rows)
            aurocs[name] = ranked.interval(ranked.aurocs(-values[rows]))
    return aurocs
