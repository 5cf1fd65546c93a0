"""Phases of an installation, from two metrics to monitored decisions, and the next step."""

from __future__ import annotations

from typing import NamedTuple

from cotlab.store.database import Store
from cotlab.store.decisions import loop_counts, runs_with_metrics

COMPONENT_OF = {
    "consistency": "C",
    "verification": "V",
    "flags": "F",
    "robustness": "R",
    "diversity": "D",
}
"""Metric → letter of the composite's component."""
MIN_LABELS = 200
"""Labels before a calibrator is trusted with decisions."""
TITLES = (
    "C and V as a baseline",
    "F as a cheap guard",
    "R and D, one composite",
    "calibrated, with thresholds",
    "active learning, drift watched",
)
"""Titles of the phases."""


class Phase(NamedTuple):
    """One phase."""

    number: int
    """Its number, from 1."""
    title: str
    """Its title."""
    reached: bool
    """Whether it is reached."""
    has: str
    """What the store has of it."""
    needs: str
    """What is missing; "" for nothing."""
    command: str
    """The command that comes next; "" for none."""


class Rollout(NamedTuple):
    """All phases of an installation."""

    reached: int
    """The last phase before the first that is not reached; 0 for none."""
    phases: tuple[Phase, ...]
    """The phases."""

    @property
    def next(self) -> Phase | None:
        """Return the first phase that is not reached, None at the end."""
        return self.phases[self.reached] if self.reached < len(self.phases) else None


def rollout(store: Store, counts: dict[str, int] | None = None) -> Rollout:
    """Return the phases that the store's contents amount to.

    The first three need one run with defined scores of the phase's components; the fourth a
    calibrator in use, a policy, and decisions by both; the fifth labels and a drift check that are
    newer than the calibrator.

    Parameters
    ----------
    store : Store
    counts : dict, optional
        Those of ``loop_counts`` where they are known.
    """
    components = _measured_components(store)
    counts = counts or loop_counts(store)
    phases = [
        _measuring(n, required, components) for n, required in ((1, "CV"), (2, "CVF"), (3, "CVFRD"))
    ]
    phases += [_calibrated(counts), _watched(counts)]
    done = next((k for k, phase in enumerate(phases) if not phase.reached), len(phases))
    return Rollout(done, tuple(phases))


def _measuring(number: int, required: str, components: dict[str, set[str]]) -> Phase:
    best, have = max(
        components.items(), key=lambda entry: len(entry[1] & set(required)), default=("", set())
    )
    missing = [part for part in required if part not in have]
    present = [part for part in required if part in have]
    has = f"run {best} has {', '.join(present)}" if present else "no run has any of it"
    needs = f"a run with defined scores of {', '.join(required)}" if missing else ""
    command = f"cotlab run --task-suite SUITE --profile phase{number}" if missing else ""
    return Phase(number, TITLES[number - 1], not missing, has, needs, command)


def _calibrated(counts: dict[str, int]) -> Phase:
    has = (
        f"{counts['labels']} labels, {'a' if counts['calibrated'] else 'no'} calibrator in use,"
        f" {'a' if counts['policies'] else 'no'} policy, {counts['decided_now']} items decided with"
        " that calibrator"
        if counts["calibrated"]
        else (
            f"{counts['labels']} labels, no calibrator in use,"
            f" {'a' if counts['policies'] else 'no'} policy"
        )
    )
    steps = (
        (
            counts["calibrated"] > 0,
            _labels_needed_text(counts["labels"]),
            "cotlab labels queue RUN, then cotlab calibrate RUN",
        ),
        (
            counts["policies"] > 0,
            "thresholds",
            "cotlab policy set --low LOW --high HIGH --reason WHY",
        ),
        (
            counts["decided_now"] > 0,
            "decisions on a run with the calibrator in use",
            "cotlab decide RUN",
        ),
    )
    return _phase(4, has, steps)


def _watched(counts: dict[str, int]) -> Phase:
    labels, checks = _of(counts["labels_after"], "label"), _of(counts["checks_after"], "check")
    has = (
        f"{labels} and {checks} of drift since the calibrator in use"
        if counts["calibrated"]
        else (
            "no calibrator yet that labels or checks could be newer than;"
            f" {_of(counts['checks'], 'check')} of drift"
        )
    )
    steps = (
        (
            counts["labels_after"] > 0,
            "labels of items near a threshold, given after the calibrator was fitted",
            "cotlab next-labels RUN -k 20",
        ),
        (
            counts["checks_after"] > 0,
            "a check of drift after the calibrator was fitted",
            "cotlab drift REFERENCE CURRENT",
        ),
    )
    return _phase(5, has, steps)


def _phase(number: int, has: str, steps: tuple[tuple[bool, str, str], ...]) -> Phase:
    open_ = [(needs, command) for done, needs, command in steps if not done]
    command = open_[0][1] if open_ else ""
    return Phase(
        number, TITLES[number - 1], not open_, has, "; ".join(needs for needs, _ in open_), command
    )


def _labels_needed_text(labels: int) -> str:
    if labels >= MIN_LABELS:
        return "a calibrator"
    return (
        f"a calibrator, fitted on labels: about {MIN_LABELS - labels} more make {MIN_LABELS}, which"
        " isotonic needs"
    )


def _of(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _measured_components(store: Store) -> dict[str, set[str]]:
    components: dict[str, set[str]] = {}
    for row in runs_with_metrics(store, [*COMPONENT_OF, "feature"], "feature").to_dict("records"):
        part = row["facet"] if row["metric"] == "feature" else COMPONENT_OF[row["metric"]]
        if part in COMPONENT_OF.values():
            components.setdefault(str(row["run"]), set()).add(part)
    return components
