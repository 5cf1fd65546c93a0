"""What an evaluation of signals against labels says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cotlab.stats.intervals import Interval
from cotlab.stats.ranking import LocationMeasures

SHORT_NAMES: Mapping[str, str] = {"chain_sound": "T1", "chain_sound_given_correct": "T2"}
"""Targets that have a short name, which JSON output uses."""
ChainKey = tuple[str, str]
"""Run and item."""
INFORMATIVE, UNINFORMATIVE, REVERSED, CONSTANT, UNKNOWN, UNDEFINED = (
    "tells",
    "does not tell",
    "points the wrong way",
    "the same for every chain",
    "too few chains to say",
    "defined on no labelled chain",
)
"""Verdicts on a signal; of one that tells, the verdict also names the baselines that it beats."""


@dataclass(frozen=True, slots=True)
class SignalResult:
    """One signal against one target."""

    name: str
    """Name of the signal."""
    what: str
    """What it is, for people."""
    is_baseline: bool
    """Whether it is a baseline."""
    measures: Mapping[str, Interval]
    """Each of ``RANK_MEASURES``, for finding the chains of which the target is false; the AUROC
    alone where no details were wanted, and then no domains, mistakes and calibration either."""
    n: int
    """Chains on which the signal is defined."""
    n_undefined: int
    """Labelled chains on which it is not."""
    differences: Mapping[str, Interval]
    """Baseline → AUROC minus that of the baseline on the same chains. Without itself, and without a
    baseline that is the same for all of these chains."""
    verdict: str
    """What the numbers say: one of the verdicts of this module."""
    beaten: tuple[str, ...] = ()
    """Baselines than which it tells more: the interval of the difference is above 0."""
    is_flipped: bool = False
    """Whether lower was taken as sounder because these labels say so: no direction is claimed for
    the metric, and its interval excludes a half."""
    by_domain: Mapping[str, Interval] | None = None
    """AUROC in each domain, by name; None where there is one domain."""
    missed: tuple[ChainKey, ...] = ()
    """The chains that the signal ranks as soundest though the target is false."""
    false_alarms: tuple[ChainKey, ...] = ()
    """Those that it ranks as least sound though the target is true."""
    calibration: Mapping[str, Interval] | None = None
    """``brier`` and ``ece`` of a probability, lower is better; None of other signals."""

    @property
    def auroc(self) -> Interval:
        """The AUROC."""
        return self.measures["auroc"]

    @property
    def unbeaten(self) -> tuple[str, ...]:
        """The other baselines that it was compared with."""
        return tuple(name for name in self.differences if name not in self.beaten)

    @property
    def is_above_chance(self) -> bool:
        """Whether the interval of the AUROC is above a half."""
        return self.auroc.lo is not None and self.auroc.lo > 0.5


@dataclass(frozen=True, slots=True)
class LocationResult:
    """One method that names the first wrong step, on the judged chains of a target."""

    name: str
    """Name of the signal."""
    what: str
    """What it is, for people."""
    measures: LocationMeasures
    """How often it is right, with intervals."""
    n: int
    """Chains for which it names a step or none."""
    n_undefined: int
    """Judged chains for which it has no result."""
    is_baseline: bool = False
    """Whether it is a baseline."""
    differences: Mapping[str, Interval] = field(default_factory=dict)
    """Baseline → PB-F1 minus that of the baseline on the same chains."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """One signal as two runs measured it."""

    signal: str
    """Name of the signal within each run."""
    first: str
    """Id of the run that is subtracted."""
    second: str
    """Id of the other run."""
    is_same_chains: bool
    """Whether both measured the same chains; else chains of the same questions."""
    first_auroc: Interval
    """AUROC of the signal of ``first``."""
    second_auroc: Interval
    """AUROC of that of ``second``."""
    difference: Interval
    """AUROC of ``second`` minus that of ``first``, over the shared questions."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """All signals against one target."""

    target: str
    """Name, of ``cotlab.review.labelling.truth.TARGETS``."""
    what: str
    """What the target says."""
    n: int
    """Chains with a label of the target."""
    n_false: int
    """Chains of which it is false: those to be found."""
    n_questions: int
    """Questions of the chains: the units that are resampled."""
    signals: tuple[SignalResult, ...]
    """Baselines first, then the others by falling AUROC."""
    locations: tuple[LocationResult, ...]
    """Methods that name a step, by name."""
    run_differences: tuple[RunDifference, ...]
    """Each signal of each later run against the first run that shares chains or questions."""

    @property
    def candidates(self) -> tuple[SignalResult, ...]:
        """The signals that are no baselines and have an AUROC."""
        return tuple(
            result
            for result in self.signals
            if not result.is_baseline and result.auroc.point is not None
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the labels of runs say of their metrics."""

    runs: tuple[str, ...]
    """Ids of the runs."""
    n_chains: int
    """Chains of the runs, labelled or not."""
    targets: tuple[TargetResult, ...]
    """Targets with labels of both kinds."""
    left_out: Mapping[str, str]
    """Target → why it is not evaluated."""
    notes: tuple[str, ...]
    """What a reader must know of the numbers."""


def headline(result: TargetResult) -> str:
    """Return one sentence: what tells on these chains, or that nothing does, with the interval."""
    where = f"{result.n} labelled chains"
    if not result.candidates:
        return f"No stored metric is defined on the {where}."
    best = max(result.candidates, key=lambda signal: (len(signal.beaten), signal.auroc.point or 0))
    auroc = f"AUROC {auroc_text(best.auroc)}"
    if best.n < result.n:
        auroc += f" on the {best.n} chains that have it"
    if not best.is_above_chance:
        return f"On {where}, nothing tells: the highest, {best.name}, has {auroc}."
    nearest = [
        name for name in (strongest(best, best.beaten), strongest(best, best.unbeaten)) if name
    ]
    comparisons = ", ".join(
        f"{auroc_text(best.differences[name], signed=True)} against {name}" for name in nearest
    )
    compared = f"; on the same chains {comparisons}" if comparisons else ""
    if best.beaten or not best.differences:
        return f"On {where}, {best.name} {best.verdict}: {auroc}{compared}."
    return (
        f"On {where}, nothing tells more than {' or '.join(nearest)}: the best,"
        f" {best.name}, has {auroc}{compared}."
    )


def strongest(result: SignalResult, baselines: Sequence[str]) -> str:
    """Return the baseline that leaves the smallest difference; "" where there is none."""
    return min(baselines, key=lambda name: result.differences[name].point or 0.0, default="")


def auroc_text(interval: Interval, *, signed: bool = False) -> str:
    """Return a point with its bounds: "0.672 [0.632, 0.709]"; "n/a" where there is none."""
    if interval.point is None:
        return "n/a"
    form = "+.3f" if signed else ".3f"
    point = format(interval.point, form)
    if interval.lo is None or interval.hi is None:
        return f"{point} [no interval]"
    return f"{point} [{interval.lo:{form}}, {interval.hi:{form}}]"


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as JSON values; targets by their short name where they have one."""
    return {
        "runs": list(evaluation.runs),
        "n_chains": evaluation.n_chains,
        "notes": list(evaluation.notes),
        "left_out": dict(evaluation.left_out),
        "targets": {
            SHORT_NAMES.get(result.target, result.target): _target_json(result)
            for result in evaluation.targets
        },
    }


def _target_json(result: TargetResult) -> dict[str, Any]:
    return {
        "target": result.target,
        "what": result.what,
        "headline": headline(result),
        "n": result.n,
        "n_false": result.n_false,
        "n_questions": result.n_questions,
        "metrics": {signal.name: _signal_json(signal) for signal in result.signals},
        "location": {location.name: _location_json(location) for location in result.locations},
        "run_differences": [_run_difference_json(row) for row in result.run_differences],
    }


def _signal_json(result: SignalResult) -> dict[str, Any]:
    measures = {name: _interval_json(m, result.n) for name, m in result.measures.items()}
    return {
        "auroc": measures["auroc"],
        "average_precision": measures["average_precision"],
        **{name: measures[name]["point"] for name in ("tpr_at_1", "tpr_at_5")},
        **{f"{name}_interval": measures[name] for name in ("tpr_at_1", "tpr_at_5")},
        "n_undefined": result.n_undefined,
        "is_baseline": result.is_baseline,
        "verdict": result.verdict,
        "sounder": "lower" if result.is_flipped else "higher",
        "over": {name: _interval_json(value) for name, value in result.differences.items()},
        "by_domain": {
            name: _interval_json(auroc) for name, auroc in (result.by_domain or {}).items()
        },
        **{name: _interval_json(value) for name, value in (result.calibration or {}).items()},
        "missed": [list(key) for key in result.missed],
        "false_alarms": [list(key) for key in result.false_alarms],
    }


def _location_json(result: LocationResult) -> dict[str, Any]:
    measures = result.measures
    return {
        "exact": measures.exact.point,
        "none_right": measures.none_right.point,
        "pb_f1": measures.pb_f1.point,
        "exact_interval": _interval_json(measures.exact),
        "pb_f1_interval": _interval_json(measures.pb_f1),
        "pb_f1_by_set": dict(measures.pb_f1_by_set),
        "n": result.n,
        "n_undefined": result.n_undefined,
        "is_baseline": result.is_baseline,
        "over": {name: _interval_json(value) for name, value in result.differences.items()},
    }


def _run_difference_json(row: RunDifference) -> dict[str, Any]:
    return {
        "metric": row.signal,
        "first": row.first,
        "second": row.second,
        "same_chains": row.is_same_chains,
        "first_auroc": _interval_json(row.first_auroc),
        "second_auroc": _interval_json(row.second_auroc),
        "difference": _interval_json(row.difference),
    }


def _interval_json(interval: Interval, n_chains: int | None = None) -> dict[str, Any]:
    """Return an interval; ``n`` counts chains where given, else questions."""
    counts = {"n": interval.n} if n_chains is None else {"n": n_chains, "n_questions": interval.n}
    bounds = {name: getattr(interval, name) for name in ("point", "lo", "hi")}
    return {**bounds, **counts, "reason": interval.reason}
