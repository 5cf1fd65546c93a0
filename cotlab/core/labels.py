"""Labels that raters give to chains, and decisions on items.

Both are frozen and append-only: a correction is a new row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

from cotlab.core.keys import digest

Verdict = Literal["acceptable", "not_acceptable", "unsure"]
"""A rater's verdict on the reasoning."""
VERDICTS: tuple[str, ...] = get_args(Verdict)
StepVerdict = Literal["correct", "wrong", "unsure"]
"""A rater's verdict on one step."""
STEP_VERDICTS: tuple[str, ...] = get_args(StepVerdict)
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
"""What is done with an answer."""
ACTIONS: tuple[str, ...] = get_args(Action)
OUTDATED_NOTE = "the reply was asked for anew after this label"
"""Note of a row that withdraws a label because the reply that it judged was replaced."""


@dataclass(frozen=True, slots=True)
class Label:
    """One rater's label of one item of one run."""

    id: str
    """Chosen by the caller before the label is given; a second row with the same id is ignored."""
    run_id: str
    """Run of the item."""
    item_id: str
    """Item that is labelled."""
    rater: str
    """Name of the rater, not blank."""
    reasoning: Verdict | None
    """Whether the chain is adequate; None only in a row that withdraws a label."""
    answer_correct: bool | None
    """Whether the model's answer is right; None if the rater cannot tell."""
    at: datetime
    """Time of the label."""
    modes: tuple[str, ...] = ()
    """Failure modes that the rater marked, of FAILURE_MODES."""
    note: str = ""
    """The rater's remark."""
    flagged: bool = False
    """Whether the rater asks for a second look."""
    withdrawn: bool = False
    """Whether the row withdraws the rater's earlier label of this item."""
    queue: str | None = None
    """Queue that the label was given in, if any."""
    origin: str = "page"
    """Source: ``page`` (Label, blind), ``open`` (Item and Compare, which name the model),
    ``import`` or ``undo``."""
    steps_judged: bool = False
    """Whether the rater read the steps for the first mistake."""
    first_wrong_step: int | None = None
    """Index from 0 of the first wrong step; None where no step is wrong, or none was judged."""
    step_verdicts: tuple[StepVerdict | None, ...] = ()
    """Verdict on each step, None where there is none; empty where no step has one."""
    faithful: bool | None = None
    """Whether the chain is faithful to how the answer came about; None if the rater did not say."""
    steps_digest: str | None = None
    """``steps_digest`` of the steps that were judged; None without step labels."""

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
        unknown_modes = [mode for mode in self.modes if mode not in FAILURE_MODES]
        if unknown_modes:
            raise ValueError(
                f"{unknown_modes[0]!r} is no failure mode: one of {', '.join(FAILURE_MODES)}"
            )
        if defect := step_defect(
            self.reasoning, self.steps_judged, self.first_wrong_step, self.step_verdicts
        ):
            raise ValueError(f"The label of {self.item_id!r}: {defect}")

    @property
    def has_steps(self) -> bool:
        """Whether the label says something of the steps."""
        return self.steps_judged or any(self.step_verdicts)

    def withdrawal(self, **changes: Any) -> Label:
        """Return a row that withdraws this label, with further fields changed."""
        blank: dict[str, Any] = {
            "reasoning": None,
            "answer_correct": None,
            "modes": (),
            "note": "",
            "flagged": False,
            "withdrawn": True,
            "steps_judged": False,
            "first_wrong_step": None,
            "step_verdicts": (),
            "faithful": None,
            "steps_digest": None,
        }
        return replace(self, **blank | changes)

    @property
    def target(self) -> bool | None:
        """Whether the answer is correct *and* the chain adequate.

        False as soon as one of them is not, None if an unknown one decides.
        """
        return label_target(self.reasoning, self.answer_correct)


def undo_id(label_id: str) -> str:
    """Return the id of the row that withdraws a label; it is fixed, so there is at most one."""
    return digest(["undo", label_id])[:24]


def label_target(reasoning: str | None, answer_correct: bool | None) -> bool | None:
    """Combine the two parts of a label as `Label.target` does."""
    is_adequate = {"acceptable": True, "not_acceptable": False}.get(reasoning or "")
    if is_adequate is False or answer_correct is False:
        return False
    return True if is_adequate and answer_correct else None


def steps_digest(steps: Sequence[str]) -> str:
    """Return a digest of the texts of a chain's steps: another text or another cut has another."""
    return digest(list(steps))[:32]


def first_mistake_of(verdicts: Sequence[str | None]) -> tuple[bool, int | None]:
    """Return whether the verdicts on the steps tell where the first mistake is, and its index.

    They do where each step before the first wrong one is correct, or every step is.
    """
    for index, verdict in enumerate(verdicts):
        if verdict == "wrong":
            return True, index
        if verdict != "correct":
            return False, None
    return bool(verdicts), None


def verdict_from_steps(is_judged: bool, first_wrong_step: int | None) -> Verdict | None:
    """Return the verdict on the chain that follows from its steps; None without a judgement."""
    if not is_judged:
        return None
    return "acceptable" if first_wrong_step is None else "not_acceptable"


def step_defect(
    reasoning: str | None,
    is_judged: bool,
    first_wrong_step: int | None,
    verdicts: Sequence[str | None],
) -> str:
    """Return why the parts of a label contradict each other; "" where they do not.

    A chain with a wrong step is not acceptable. A chain without one may be either, for it can fail
    as a whole, as by leaving the question.
    """
    if unknown := [verdict for verdict in verdicts if verdict not in (*STEP_VERDICTS, None)]:
        return f"{unknown[0]!r} is no verdict on a step: one of {', '.join(STEP_VERDICTS)}"
    wrong_steps = [index for index, verdict in enumerate(verdicts) if verdict == "wrong"]
    if first_wrong_step is None:
        if is_judged and wrong_steps:
            return f"step {wrong_steps[0] + 1} is called wrong, and no step is called a mistake"
        return ""
    name = f"step {first_wrong_step + 1}"
    if first_wrong_step < 0 or (verdicts and first_wrong_step >= len(verdicts)):
        return f"the first wrong step is {name} of a chain of {len(verdicts)} steps"
    if not is_judged:
        return f"{name} is called the first wrong one, and the steps were not judged"
    if reasoning != "not_acceptable":
        return (
            f"{name} is called wrong, and the chain {str(reasoning).replace('_', ' ')}: a chain"
            " with a wrong step is not acceptable"
        )
    if wrong_steps and wrong_steps[0] < first_wrong_step:
        return f"{name} is called the first wrong one, and step {wrong_steps[0] + 1} wrong too"
    if verdicts and verdicts[first_wrong_step] not in ("wrong", None):
        return f"{name} is called the first wrong one, and {verdicts[first_wrong_step]} as well"
    return ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The action taken on one item of a run, with everything that it rests on."""

    id: str
    """Unique id."""
    run_id: str
    """Run of the item."""
    item_id: str
    """Item that is decided on."""
    domain: str
    """Domain of the item; thresholds and calibrators may differ by domain."""
    r_raw: float | None
    """Composite score in [0, 1]; None if undefined."""
    r_cal: float | None
    """Calibrated probability of acceptable reasoning, in [0, 1]; None if there is none."""
    action: Action
    """What happens to the answer."""
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
    """Time of the decision."""
    by: str
    """Who or what decided."""
