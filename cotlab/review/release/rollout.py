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
    best_run, measured = max(
        components_by_run.items(),
        key=lambda entry: len(entry[1] & set(required_letters)),
        default=("", set()),
    )
    present = [part for part in required_letters if part in measured]
    state_text = f"run {best_run} has {', '.join(present)}" if present else "no run has any of it"
    step = (
        len(present) == len(required_letters),
        f"a run with defined scores of {', '.join(required_letters)}",
        f"cotlab run --task-suite SUITE --profile phase{number}",
    )
    return _make_phase(number, state_text, step)


def _calibrated_phase(counts: dict[str, int]) -> RolloutPhase:
    n_labels, n_decided = counts["labels"], counts["decided_now"]
    state_text = (
        f"{n_labels} labels, {'a' if counts['calibrated'] else 'no'} calibrator in use,"
        f" {'a' if counts['policies'] else 'no'} policy"
    )
    if counts["calibrated"]:
        state_text += f", {n_decided} items decided with that calibrator"
    needed_text = "a calibrator"
    if n_labels < MIN_TRUSTED_LABELS:
        needed_text += (
            f", fitted on labels: about {MIN_TRUSTED_LABELS - n_labels} more make"
            f" {MIN_TRUSTED_LABELS}, which isotonic needs"
        )
    return _make_phase(
        4,
        state_text,
        (
            counts["calibrated"] > 0,
            needed_text,
            "cotlab labels queue RUN, then cotlab calibrate RUN",
        ),
        (
            counts["policies"] > 0,
            "thresholds",
            "cotlab policy set --low LOW --high HIGH --reason WHY",
        ),
        (n_decided > 0, "decisions on a run with the calibrator in use", "cotlab decide RUN"),
    )


def _monitoring_phase(counts: dict[str, int]) -> RolloutPhase:
    def count_text(name: str, noun: str) -> str:
        return f"{counts[name]} {noun}{'' if counts[name] == 1 else 's'}"

    if counts["calibrated"]:
        state_text = (
            f"{count_text('labels_after', 'label')} and {count_text('checks_after', 'check')} of"
            " drift since the calibrator in use"
        )
    else:
        state_text = (
            "no calibrator yet that labels or checks could be newer than;"
            f" {count_text('checks', 'check')} of drift"
        )
    return _make_phase(
        5,
        state_text,
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


def _make_phase(number: int, state_text: str, *steps: tuple[bool, str, str]) -> RolloutPhase:
    missing = [(text, command) for is_done, text, command in steps if not is_done]
    return RolloutPhase(
        number,
        PHASE_TITLES[number - 1],
        not missing,
        state_text,
        "; ".join(text for text, _ in missing),
        missing[0][1] if missing else "",
    )


def _measured_components(store: Store) -> dict[str, set[str]]:
    components_by_run: dict[str, set[str]] = {}
    rows = runs_with_metrics(store, [*COMPONENT_BY_METRIC, "feature"], "feature")
    for row in rows.to_dict("records"):
        part = row["facet"] if row["metric"] == "feature" else COMPONENT_BY_METRIC[row["metric"]]
        if part in COMPONENT_BY_METRIC.values():
            components_by_run.setdefault(str(row["run"]), set()).add(part)
    return components_by_run
