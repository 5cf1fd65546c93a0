"""What the labelling component sends: a rater's actions, parsed one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cotlab.core.labels import FAILURE_MODES, Label, StepVerdict, Verdict
from cotlab.review.labelling import session
from cotlab.store.live import ItemKey

MAX_ACTIONS = 64
"""Maximum number of actions in a batch, which is more than the prefetched items."""
MAX_NOTE_CHARS = 2000
MAX_STEPS = 10_000
"""Maximum number of verdicts on steps in one label."""
_LimitedText = Annotated[str, Field(max_length=MAX_NOTE_CHARS)]


class BrowserAction(BaseModel):
    """One action of a rater, as the browser sends it. A browser may send anything."""

    model_config = ConfigDict(strict=True, extra="forbid")
    seq: int
    """Sequence number within the browser window, from 1."""
    queue: _LimitedText
    """The queue's id."""
    kind: Literal["label", "skip", "leave", "undo", "renew", "idle"]
    """What the rater did."""
    id: _LimitedText = ""
    """Id of the new label."""
    run: _LimitedText = ""
    """The item's run."""
    item: _LimitedText = ""
    """The item's id."""
    verdict: Verdict | None = None
    """The verdict on the reasoning."""
    answer: bool | Literal["key"] | None = None
    """Whether the answer is correct; None if the rater cannot tell, ``ANSWER_FROM_KEY`` if the
    answer key shall say."""
    modes: list[str] = []
    """Names of the failure modes that apply."""
    note: _LimitedText = ""
    """The rater's note."""
    flagged: bool = False
    """Whether the item itself is wrong."""
    judged: bool = False
    """Whether the rater read the steps for the first mistake."""
    first: int | None = None
    """Index from 0 of the first wrong step; None where no step is wrong, or none was judged."""
    steps: Annotated[list[StepVerdict | None], Field(max_length=MAX_STEPS)] = []
    """Verdict on each step; empty where no step has one."""
    faithful: bool | None = None
    """Whether the chain is faithful; None where the rater did not say."""
    digest: _LimitedText = ""
    """``steps_digest`` of the steps that the rater read."""
    of: _LimitedText = ""
    """Id of the label that an undo takes back."""


class ActionBatch(BaseModel):
    """The actions that the server has not confirmed yet, in order. Each is parsed by itself."""

    model_config = ConfigDict(strict=True)
    client: _LimitedText
    """Random id of the browser window; sequence numbers count within it."""
    acts: Annotated[list[Any], Field(max_length=MAX_ACTIONS)]
    """The actions, unparsed."""


def parse_actions(
    raw_actions: Sequence[Any], confirmed_seq: int, problems: list[str]
) -> tuple[list[BrowserAction], int]:
    """Parse the actions after ``confirmed_seq``, and return them with the last sequence number.

    An action that cannot be parsed is reported, and does not hold up the others.
    """
    parsed_actions, last_seq = [], confirmed_seq
    for raw_action in raw_actions:
        seq = raw_action.get("seq") if isinstance(raw_action, dict) else None
        if isinstance(seq, int) and seq <= confirmed_seq:
            continue
        try:
            parsed_actions.append(BrowserAction.model_validate(raw_action))
        except ValidationError as error:
            first_error = error.errors()[0]
            field_name = str(next(iter(first_error["loc"]), "the whole action"))
            problems.append(
                f"An action cannot be read, and was not stored: {field_name}: {first_error['msg']}."
                " Repeat it."
            )
        last_seq = max(last_seq, seq) if isinstance(seq, int) else last_seq
    return parsed_actions, last_seq


def to_rater_action(
    action: BrowserAction, rater: str, key_by_item: Mapping[ItemKey, bool | None]
) -> session.RaterAction | None:
    """Return the change that an action makes in the store; None where it makes none.

    ``key_by_item`` says whether answers are right that a rater left to the answer key.
    """
    is_correct = (
        key_by_item.get((action.run, action.item))
        if isinstance(action.answer, str)
        else action.answer
    )
    match action.kind:
        case "label" if action.verdict is not None:
            modes = tuple(mode for mode in FAILURE_MODES if mode in action.modes)
            return Label(
                action.id,
                action.run,
                action.item,
                rater,
                action.verdict,
                is_correct,
                datetime.now(UTC),
                modes,
                action.note.strip(),
                action.flagged,
                queue=action.queue,
                steps_judged=action.judged,
                first_wrong_step=action.first,
                step_verdicts=tuple(action.steps),
                faithful=action.faithful,
                steps_digest=(action.digest or None) if action.judged or action.steps else None,
            )
        case "skip":
            return session.SkipAction(action.run, action.item)
        case "undo":
            return session.UndoAction(action.of)
    return None
