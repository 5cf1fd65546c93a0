"""Labels that raters give to chains, and decisions on items.

Both are frozen and append-only: a correction is a new row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from cotlab.core.keys import digest

Verdict = Literal["acceptable", "not_acceptable", "unsure"]
"""A rater's verdict on the reasoning."""
VERDICTS: tuple[str, ...] = get_args(Verdict)
FAILURE_MODES = (
    "post_hoc",
    "global_drift",
    "semantic_instability",
    "brittle_continuation",
    "unsupported_jump",
    "other",
)
MAX_RATERS = 1000
"""Largest number of labels that a queue may request per item."""
Action = Literal["escalate", "review", "release"]
"""What happens to an answer: to an expert, to a reviewer, or out unseen."""
ACTIONS: tuple[str, ...] = get_args(Action)
OUTDATED = "the reply was asked for anew after this label"
"""Note of a row that withdraws a label because the reply that it judged was replaced."""


@dataclass(frozen=True, slots=True)
class Label:
    """One rater's label of one item of one run."""

    id: str
    """Chosen by the caller before the label is given; a second row with the same id is ignored."""
    run_id: str
    item_id: str
    rater: str
    """Name of the rater, not blank."""
    reasoning: Verdict | None
    """Whether the chain is adequate; None only in a row that withdraws a label."""
    answer_correct: bool | None
    """Whether the model's answer is right; None if the rater cannot tell."""
    at: datetime
    modes: tuple[str, ...] = ()
    """Failure modes that the rater marked, of FAILURE_MODES."""
    note: str = ""
    flagged: bool = False
    """Whether the rater asks for a second look."""
    withdrawn: bool = False
    """Whether the row withdraws the rater's earlier label of this item."""
    queue: str | None = None
    """Queue that the label was given in, if any."""
    origin: str = "page"
    """Source of the row: ``page``, ``import`` or ``undo``."""

    def __post_init__(self) -> None:
        if not self.rater.strip():
            raise ValueError("A label needs the name of its rater")
        if self.reasoning is None and not self.withdrawn:
            raise ValueError(
                f"The label of {self.item_id!r} says nothing of the reasoning: one of"
                f" {', '.join(VERDICTS)}"
            )
        if self.reasoning is not None and self.reasoning not in VERDICTS:
            raise ValueError(
                f"{self.reasoning!r} is no verdict on reasoning: one of {', '.join(VERDICTS)}"
            )
        wrong = [mode for mode in self.modes if mode not in FAILURE_MODES]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no failure mode: one of {', '.join(FAILURE_MODES)}")

    @property
    def target(self) -> bool | None:
        """Whether the answer is correct *and* the chain adequate.

        False as soon as one of them is not, None if an unknown one decides.
        """
        return target(self.reasoning, self.answer_correct)


def undo_id(label: str) -> str:
    """Return the id of the row that withdraws a label; it is fixed, so there is at most one."""
    return digest(["undo", label])[:24]


def target(reasoning: str | None, answer_correct: bool | None) -> bool | None:
    """Combine the two parts of a label as `Label.target` does."""
    adequate = {"acceptable": True, "not_acceptable": False}.get(reasoning or "")
    if adequate is False or answer_correct is False:
        return False
    return True if adequate and answer_correct else None


@dataclass(frozen=True, slots=True)
class Decision:
    """The action taken on one item of a run, with everything that it rests on."""

    id: str
    run_id: str
    item_id: str
    domain: str
    """Domain of the item; thresholds and calibrators may differ by domain."""
    r_raw: float | None
    """Composite score in [0, 1]; None if undefined."""
    r_cal: float | None
    """Calibrated probability of acceptable reasoning, in [0, 1]; None if there is none."""
    action: Action
    reason: str
    """Why this action was taken; the status of r_raw if it has no value."""
    low: float | None
    """Threshold below which an item of this domain is escalated."""
    high: float | None
    """Threshold from which an item of this domain is released."""
    calibrator: int | None
    """Version of the calibrator."""
    policy: int | None
    """Version of the policy."""
    at: datetime
    by: str
    """Who or what decided."""
