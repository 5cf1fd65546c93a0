"""Phases of an installation, from two metrics to monitored decisions, and the next step."""

from __future__ import annotations

from typing import NamedTuple

from cotlab.store.database import Store
from cotlab.store.decisions import review_counts, runs_with_metrics

COMPONENT_BY_METRIC = {
    "consistency": "C",
    "verification": "V",
    "flags": "F",
    "robustness": "R",
    "diversity": "D",
}
"""Metric → letter of the composite's component."""
MIN_TRUSTED_LABELS = 200
"""Labels before a calibrator is trusted with decisions."""
PHASE_TITLES = (
    "C and V as a baseline",
    "F as a cheap guard",
    "R and D, one composite",
    "calibrated, with thresholds",
    "active learning, drift watched",
)
"""Titles of the phases."""


class RolloutPhase(NamedTuple):
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


class RolloutProgress(NamedTuple):
    """All phases of an installation."""

    n_reached: int
    """The last phase before the first that is not reached; 0 for none."""
    phases: tuple[RolloutPhase, ...]
    """The phases."""

    @property
    def next_phase(self) -> RolloutPhase | None:
        """Return the first phase that is not reached, None at the end."""
        return self.phases[self.n_reached] if self.n_reached < len(self.phases) else None


def rollout_progress(store: Store, counts: dict[str, int] | None = None) -> RolloutProgress:
    """Return the phases that the store's contents amount to.

    The first three need one run with defined scores of the phase's components; the fourth a
    calibrator in use, a policy, and decisions by both; the fifth labels and a drift check that are
    newer than the calibrator.

    Parameters
    ----------
    store : Store
    counts : dict, optional
        Those of ``review_counts`` where they are known.
    """
    components_by_run = _measured_components(store)
    counts = counts or review_counts(store)
    phases = [
        _measuring_phase(n, required_letters, components_by_run)
        for n, required_letters in ((1, "CV"), (2, "CVF"), (3, "CVFRD"))
    ]
    phases += [_calibrated_phase(counts), _monitoring_phase(counts)]
    n_reached = next(
        (index for index, phase in enumerate(phases) if not phase.reached), len(phases)
    )
    return RolloutProgress(n_reached, tuple(phases))


def _measuring_phase(
    number: int, required_letters: str, components_by_run: dict[str, set[str]]
) -> RolloutPhase:
    best_run, run_components = max(
        components_by_run.items(),
        key=lambda entry: len(entry[1] & set(required_letters)),
        default=("", set()),
    )
    present_components = [part for part in required_letters if part in run_components]
    state_text = (
        f"run {best_run} has {', '.join(present_components)}"
        if present_components
        else "no run has any of it"
    )
    missing_text = f"a run with defined scores of {', '.join(required_letters)}"
    command = f"cotlab run --task-suite SUITE --profile phase{number}"
    return _make_phase(
        number,
        state_text,
        ((len(present_components) == len(required_letters), missing_text, command),),
    )


def _calibrated_phase(counts: dict[str, int]) -> RolloutPhase:
    state_text = (
        f"{counts['labels']} labels, {'a' if counts['calibrated'] else 'no'} calibrator in use,"
        f" {'a' if counts['policies'] else 'no'} policy"
    )
    if counts["calibrated"]:
        state_text += f", {counts['decided_now']} items decided with that calibrator"
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
    return _make_phase(4, state_text, steps)


def _monitoring_phase(counts: dict[str, int]) -> RolloutPhase:
    labels_text = _count_text(counts["labels_after"], "label")
    checks_text = _count_text(counts["checks_after"], "check")
    state_text = f"{labels_text} and {checks_text} of drift since the calibrator in use"
    if not counts["calibrated"]:
        checks_text = _count_text(counts["checks"], "check")
        state_text = (
            f"no calibrator yet that labels or checks could be newer than; {checks_text} of drift"
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
    return _make_phase(5, state_text, steps)


def _make_phase(
    number: int, state_text: str, steps: tuple[tuple[bool, str, str], ...]
) -> RolloutPhase:
    missing_steps = [
        (missing_text, command) for is_done, missing_text, command in steps if not is_done
    ]
    missing_text = "; ".join(missing_text for missing_text, _ in missing_steps)
    command = missing_steps[0][1] if missing_steps else ""
    return RolloutPhase(
        number, PHASE_TITLES[number - 1], not missing_steps, state_text, missing_text, command
    )


def _labels_needed_text(n_labels: int) -> str:
    if n_labels >= MIN_TRUSTED_LABELS:
        return "a calibrator"
    return (
        f"a calibrator, fitted on labels: about {MIN_TRUSTED_LABELS - n_labels} more make"
        f" {MIN_TRUSTED_LABELS}, which isotonic needs"
    )


def _count_text(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _measured_components(store: Store) -> dict[str, set[str]]:
    components_by_run: dict[str, set[str]] = {}
    for row in runs_with_metrics(store, [*COMPONENT_BY_METRIC, "feature"], "feature").to_dict(
        "records"
    ):
        part = row["facet"] if row["metric"] == "feature" else COMPONENT_BY_METRIC[row["metric"]]
        if part in COMPONENT_BY_METRIC.values():
            components_by_run.setdefault(str(row["run"]), set()).add(part)
    return components_by_run
