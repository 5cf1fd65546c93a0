"""What people said of a chain, and what was decided on it. All frozen, and never changed: a correction is a new one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from cotlab.core.keys import digest

Verdict = Literal["acceptable", "not_acceptable", "unsure"]
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
"""So many labels an item of a queue may want."""
Action = Literal["escalate", "review", "release"]
ACTIONS: tuple[str, ...] = get_args(Action)
OUTDATED = "the reply was asked for anew after this label"
"""The note of a row that takes a label back because what it was given of is no longer there."""


@dataclass(frozen=True, slots=True)
class Label:
    """What one rater said of one item of one run.

    Attributes
    ----------
    id : str
        Made by whoever asks for the label, before it is given: a second row with the same id is not
        written.
    reasoning : Verdict or None
        Whether the chain is adequate; None only in a row that withdraws.
    answer_correct : bool or None
        Whether the model's answer is right; None where the rater cannot tell.
    withdrawn : bool
        The rater takes back what was said before of this item.
    origin : str
        ``page``, ``import`` or ``undo``.
    """

    id: str
    run_id: str
    item_id: str
    rater: str
    reasoning: Verdict | None
    answer_correct: bool | None
    at: datetime
    modes: tuple[str, ...] = ()
    note: str = ""
    flagged: bool = False
    withdrawn: bool = False
    queue: str | None = None
    origin: str = "page"

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
        """Answer correct *and* chain adequate: False as soon as one is not, None while one that is not known decides."""
        return target(self.reasoning, self.answer_correct)


def undo_id(label: str) -> str:
    """The id of the row that takes a label back: the same whoever writes it, so it is written once."""
    return digest(["undo", label])[:24]


def target(reasoning: str | None, answer_correct: bool | None) -> bool | None:
    """``Label.target`` of its two parts."""
    adequate = {"acceptable": True, "not_acceptable": False}.get(reasoning or "")
    if adequate is False or answer_correct is False:
        return False
    return True if adequate and answer_correct else None


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with one item of a run, and all that it rests on.

    Attributes
    ----------
    r_raw, r_cal : float in [0, 1] or None
        The composite and the calibrated probability of acceptable reasoning; None where there is
        none.
    reason : str
        Why this action, in words; the status of r_raw where it has no value.
    low, high : float or None
        The thresholds that held for the item's domain.
    calibrator, policy : int or None
        Their versions.
    """

    id: str
    run_id: str
    item_id: str
    domain: str
    r_raw: float | None
    r_cal: float | None
    action: Action
    reason: str
    low: float | None
    high: float | None
    calibrator: int | None
    policy: int | None
    at: datetime
    by: str
