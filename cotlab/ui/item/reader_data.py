"""What the component that reads a chain shows: its rows, the given chain, answers, later steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from cotlab.analysis.tables.step_effects import MAIN_MODES, GivenChain, StepEffect
from cotlab.analysis.tables.step_replies import StepReplies
from cotlab.analysis.verdict.wording import noun_count
from cotlab.metrics.ablation import ANSWER_CHANGE
from cotlab.text.differences import TextChange, text_changes, without_label
from cotlab.ui.item.chain import TextRow, label_length

SINGLE_REPLY_TEXT = "one reply (temperature 0)"
"""In place of an interval, where nothing can vary."""
_MAX_PIPS = 10
"""More replies than this are a number only."""


class ModeLabels(NamedTuple):
    """How a page names a mode of ablation."""

    tab: str
    """What happens to the step, as a tab."""
    verb: str
    """The same after "Step 2"."""
    column: str
    """Head of the column of its answers."""


MODE_LABELS: Mapping[str, ModeLabels] = {
    "corrupt": ModeLabels("States something else", "states something else", "step changed"),
    "paraphrase": ModeLabels(
        "Says the same in other words", "says the same in other words", "step reworded"
    ),
    "remove": ModeLabels("Is left out", "is left out", "step left out"),
    "truncate": ModeLabels("Ends the chain", "ends the chain", "chain cut after it"),
    "filler": ModeLabels("Becomes dots", "becomes dots", "step of dots"),
}


@dataclass(frozen=True, slots=True)
class ChainReading:
    """An item's chain under one mode, and the step that is read."""

    mode: str
    """The mode."""
    modes: tuple[str, ...]
    """Every mode that was measured."""
    steps: tuple[str, ...]
    """The original chain."""
    step: int
    """The chosen step, from 0."""
    effects: tuple[StepEffect, ...]
    """The effect of each step."""
    keys: tuple[str, ...]
    """Keys of the requests behind the chosen step."""
    n_changed_requests: int
    """How many of them have the changed step."""
    note: str
    """What of the address could not be shown."""
    temperature: float
    """Sampling temperature of the replies."""

    @property
    def labels(self) -> ModeLabels:
        """How the mode is named."""
        return mode_labels(self.mode)

    @property
    def effect(self) -> StepEffect:
        """The effect of the chosen step."""
        return self.effects[self.step]

    @property
    def has_single_greedy_reply(self) -> bool:
        """Whether the chosen step has one reply at temperature 0: no other draw could vary."""
        return self.effect.n == 1 and self.temperature == 0


def mode_labels(mode: str) -> ModeLabels:
    """Return how a page names a mode."""
    return MODE_LABELS.get(mode, ModeLabels(mode, f"is changed by {mode}", mode))


def reader_data(
    reading: ChainReading,
    given: GivenChain | None,
    replies: StepReplies,
    marks: Mapping[int, str],
    targets: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the component shows, as JSON values."""
    n_most = max(effect.n + effect.n_missing for effect in reading.effects)
    arrows = [later.step for later in replies.later_steps]
    rows = effect_rows(reading, marks)
    keys = [(("↑", "↓"), "step"), (_tab_keys(reading), "change")]
    keys.append((("K", "J"), "item"))
    keys += [((key.upper(),), title) for key, title in _TARGET_TITLES if key in targets]
    return {
        "question": "What happens to the answer when one step …",
        "tabs": _tabs(reading),
        "mode": reading.mode,
        "step": reading.step,
        "note": reading.note,
        "finding": chain_finding(reading.effects, reading.labels.verb),
        "chain": f"Chain, {len(reading.steps)} steps",
        "rows": [asdict(text_row) for text_row in rows],
        "levels": n_most if 1 <= n_most <= _MAX_PIPS else 0,
        "legend": _legend_text(reading, n_most) + boxes_text(rows),
        "arrows": arrows if reading.mode == "corrupt" else None,
        "arrows_label": _arrows_text(reading, arrows),
        "panel": _panel(reading, given, replies),
        "later": _later(reading, replies),
        "keys": [*keys, (("?",), "all keys")],
        "help": (
            "Keys act while no text field has the focus. ↑ and ↓ choose a step, digits what"
            " happens to it; K and J go to the item before and after."
        ),
        "targets": dict(targets),
    }


_TARGET_TITLES = (("e", "requests"), ("l", "label"))


def _tab_keys(reading: ChainReading) -> tuple[str, ...]:
    return tuple(tab["key"] for tab in _tabs(reading) if tab["enabled"] and not tab["folded"])


def _tabs(reading: ChainReading) -> list[dict[str, Any]]:
    modes = [*MAIN_MODES, *(mode for mode in reading.modes if mode not in MAIN_MODES)]
    return [
        {
            "mode": mode,
            "label": mode_labels(mode).tab,
            "key": str(number) if number < 10 else "",
            "enabled": mode in reading.modes,
            "folded": mode not in MAIN_MODES,
            "reason": "" if mode in reading.modes else "not measured in this run",
        }
        for number, mode in enumerate(modes, start=1)
    ]


def effect_rows(reading: ChainReading, marks: Mapping[int, str]) -> list[TextRow]:
    """Return one row a step, tinted by the share of replies whose answer changes."""
    rows = []
    for effect, text in zip(reading.effects, reading.steps, strict=True):
        score, hint = effect_texts(effect)
        has_pips = 0 < effect.n <= _MAX_PIPS
        rows.append(
            TextRow(
                effect.step,
                f"{effect.step + 1}",
                text,
                score="\n".join(filter(None, (score, marks.get(effect.step)))),
                hint=hint,
                tint=effect.share or 0.0,
                pips=(effect.n_changed, effect.n) if has_pips else None,
                skipped=label_length(text),
            )
        )
    return rows


def effect_texts(effect: StepEffect) -> tuple[str, str]:
    """Return an effect as a score ("4 of 5") and as a sentence."""
    if not effect.n:
        return "n/a", f"n/a: {effect.reason}"
    if effect.n == 1 and not effect.n_missing:
        score = "changes" if effect.n_changed else "stays"
        return score, f"The answer {score}; one reply"
    sentence = f"{effect.n_changed} of {effect.n} answers change"
    if effect.n_missing:
        sentence += f"; {effect.n_missing} without a value: {effect.reason}"
    return f"{effect.n_changed} of {effect.n}", sentence


def boxes_text(rows: Sequence[TextRow]) -> str:
    """Return what the boxes of steps are, to follow a sentence; "" where no row has any."""
    has_boxes = any(row.pips is not None for row in rows)
    return " A box is a reply, filled where its answer changes." if has_boxes else ""


def _legend_text(reading: ChainReading, n_most: int) -> str:
    range_text = f"0 to {n_most} of {n_most} answers change; no tint: none."
    if n_most <= 1:
        range_text = "Tint: the answer changes; no tint: it stays."
    if all(effect.share is None for effect in reading.effects):
        range_text = "No step has a value."
    steps_by_reason: dict[str, list[str]] = {}
    for effect in reading.effects:
        if not effect.n:
            steps_by_reason.setdefault(str(effect.reason), []).append(str(effect.step + 1))
    missing_texts = [
        f"n/a at step{'s' * (len(steps) > 1)} {', '.join(steps)}: {reason}."
        for reason, steps in steps_by_reason.items()
    ]
    arrows_texts = ["Arrows: later steps that change."] if reading.mode == "corrupt" else []
    return " ".join([range_text, *arrows_texts, *missing_texts])


def _arrows_text(reading: ChainReading, arrows: Sequence[int]) -> str:
    if not arrows:
        return f"No later step changes when step {reading.step + 1} is changed"
    numbers = ", ".join(str(step + 1) for step in arrows)
    return f"When step {reading.step + 1} is changed, these later steps change: {numbers}"


def _panel(reading: ChainReading, given: GivenChain | None, replies: StepReplies) -> dict[str, Any]:
    effect, labels = reading.effect, reading.labels
    claim, interval = "n/a", effect.reason or "no reply could be compared"
    if effect.n:
        estimate = effect.interval
        bounds = [f"{100 * (bound or 0):.0f}" for bound in (estimate.lo, estimate.hi)]
        noun = "reply" if effect.n == 1 else "replies"
        claim = f"{effect.n_changed} of {effect.n} answer{'s' * (effect.n > 1)} change"
        claim += "s" * (effect.n == 1)
        interval = (
            f"{100 * (estimate.point or 0):.0f} % [{', '.join(bounds)}], n = {effect.n} {noun}"
        )
        if reading.has_single_greedy_reply:
            interval = SINGLE_REPLY_TEXT
    notes = []
    if effect.n and effect.n_missing:
        noun = "reply has" if effect.n_missing == 1 else "replies have"
        notes.append(f"{effect.n_missing} more {noun} no value: {effect.reason}.")
    notes += [
        f"{n} {'reply states' if n == 1 else 'replies state'} no answer here: {reason}."
        for reason, n in replies.missing.items()
    ]
    totals = (replies.n_changed_step, replies.n_baseline)
    return {
        "step": f"Step {reading.step + 1}",
        "verb": labels.verb,
        "given": _given_lines(given, effect),
        "goes_on": _next_text(given),
        "claim": claim,
        "interval": interval,
        "columns": [
            (title, f"{n} {'reply' if n == 1 else 'replies'}")
            for title, n in zip((labels.column, "chain as it is"), totals, strict=True)
        ],
        "totals": totals,
        "answers": [
            {
                "text": count.answer,
                "mark": {True: "right", None: "", False: ""}[count.is_right],
                "kind": {True: "right", None: "unknown", False: "wrong"}[count.is_right],
                "counts": (count.n_changed_step, count.n_baseline),
            }
            for count in replies.answers
        ],
        "notes": notes,
    }


def _given_lines(given: GivenChain | None, effect: StepEffect) -> list[dict[str, Any]]:
    if given is None or given.reason is not None:
        reason = effect.reason if given is None else given.reason
        return [{"kind": "same", "label": "", "pieces": [("same", f"n/a: {reason}")], "note": ""}]
    lines = []
    for step in given.steps:
        text, pieces = without_label(step.text), [TextChange("same", without_label(step.text))]
        if step.kind == "left out":
            pieces = [TextChange("removed", text)]
        elif step.changed_text is not None:
            pieces = list(text_changes(text, without_label(step.changed_text)))
        lines.append(
            {
                "kind": step.kind,
                "label": f"{step.step + 1}",
                "pieces": [tuple(piece) for piece in pieces],
                "note": "left out" if step.kind == "left out" else "",
            }
        )
    return lines


def _next_text(given: GivenChain | None) -> str:
    if given is None:
        return "no request was made"
    return "the model writes on from here" if given.continues else "the model gives its answer"


def _later(reading: ChainReading, replies: StepReplies) -> dict[str, Any] | None:
    """Return what the component shows of the later steps; None where no chain was rewritten."""
    if reading.mode != "corrupt" or reading.step + 1 == len(reading.steps) or not reading.effect.n:
        return None
    rows = []
    for later in replies.later_steps:
        text = without_label(later.text)
        pieces: Sequence[TextChange] = [TextChange("removed", text)]
        if later.written_text is not None:
            pieces = text_changes(text, without_label(later.written_text))
        rows.append(
            {
                "label": f"{later.step + 1}",
                "pieces": [tuple(piece) for piece in pieces],
                "note": "" if later.written_text is not None else "not written",
                "count": f"{later.n_changed} of {later.n}",
            }
        )
    notes = [] if rows else ["No later step states anything else."]
    if replies.n_other_length:
        noun = "chain has" if replies.n_other_length == 1 else "chains have"
        notes.append(
            f"{replies.n_other_length} rewritten {noun} another number of steps than the original:"
            " their steps are matched by what they say."
        )
    if replies.ending is not None:
        notes.append(ending_text(replies))
    return {"title": "Later steps that change with it", "rows": rows, "notes": notes}


def ending_text(replies: StepReplies) -> str:
    """Return on what the rewritten chain ends, and how many replies follow it."""
    ending = replies.ending
    assert ending is not None
    verb = "answers" if ending.n == 1 else "answer"
    noun = "reply" if ending.n == 1 else "replies"
    text = f"The rewritten chain ends on {ending.number}; {ending.n_follow} of {ending.n} {noun}"
    text += f" {verb} {ending.number}"
    if ending.n_keep:
        text += f", {ending.n_keep} keep{'s' * (ending.n_keep == 1)} to {ending.baseline_answer}"
    return f"{text}."


def few_replies_text(reading: ChainReading) -> str:
    """Return how far the number of replies behind the chosen step carries."""
    effect = reading.effect
    if not effect.n:
        return f"n/a: {effect.reason}"
    if reading.has_single_greedy_reply:
        return SINGLE_REPLY_TEXT
    estimate = effect.interval
    lo, hi = (f"{100 * (bound or 0):.0f}" for bound in (estimate.lo, estimate.hi))
    point = f"{100 * (estimate.point or 0):.0f} %"
    count = f"{effect.n_changed} of {effect.n} is {point}, and may be {lo} to {hi} %"
    return count if effect.n > 10 else f"few replies: {count}"


def limit_lines(reading: ChainReading) -> list[str]:
    """Return what the reading of a chain under its mode does not show."""
    lines = []
    if reading.mode == "remove":
        lines.append(ANSWER_CHANGE.not_shown)
    if reading.mode == "paraphrase":
        lines.append(
            "What a step states: its words are others and its content the same, so an answer that"
            " changes here changes for another reason."
        )
        lines.append(
            "Only this step is reworded, often by one word; the steps after it stay, and the model"
            " is asked for its answer. After a step that states something else the model writes the"
            " rest of the chain anew: what that changes alone, this control does not show."
        )
    if reading.mode == "corrupt":
        lines.append(
            "A later step counts as changed where its numbers differ, or its words where it has no"
            " number. Where the model did not write the original chain, it may word the rest"
            " otherwise even without a change."
        )
    lines.append(
        "One reply at temperature 0 has no interval: a second would be the same, if the model is"
        " deterministic. Over items, the run's page has one."
        if reading.has_single_greedy_reply
        else "Interval: Wilson, 95 %, over the replies to this one step."
    )
    if reading.mode != "paraphrase":
        lines.append(
            "A step whose change keeps the answer may still be used: the model may mend it, or not"
            " need it."
        )
    return lines


MAX_NAMED_STEPS = 6
"""Steps that the sentence names by number; of more it says how many."""


def chain_finding(effects: Sequence[StepEffect], verb: str) -> str:
    """Return at which steps the answer changes most often, and how often at the others.

    Parameters
    ----------
    effects : sequence of StepEffect
        The effect of each step of the chain.
    verb : str
        What happens to a step, after "step 2": "states something else".

    Returns
    -------
    str
        Empty where no step has a value.
    """
    measured = [effect for effect in effects if effect.n]
    if not measured:
        return ""
    n_missing = len(effects) - len(measured)
    suffix = f" {noun_count(n_missing, 'step')} without a value." if n_missing else ""
    any_step = _named_steps(measured, len(effects)) if n_missing else "any step"
    highest = max(effect.share or 0.0 for effect in measured)
    top = [effect for effect in measured if effect.share == highest]
    others = [effect for effect in measured if effect.share != highest]
    replies = "" if highest in (0, 1) else f" ({top[0].n_changed} of {top[0].n} replies)"
    if highest == 0:
        return f"The answer stays when {any_step} {verb}.{suffix}"
    if not others and len(top) > 1:
        often = f" equally often{replies}" if replies else ""
        return f"The answer changes{often} when {any_step} {verb}: none stands out.{suffix}"
    is_sometimes_elsewhere = any(effect.share for effect in others)
    often = " most often" if is_sometimes_elsewhere else " sometimes" if replies else ""
    rest = _rest_text(others, "changes less often" if is_sometimes_elsewhere else "stays")
    steps = _named_steps(top, len(effects))
    return f"The answer changes{often} when {steps} {verb}{replies}{rest}.{suffix}"


def _rest_text(others: Sequence[StepEffect], verb: str) -> str:
    if not others:
        return ""
    where = f"step {others[0].step + 1}" if len(others) == 1 else f"the other {len(others)}"
    return f"; it {verb} at {where}"


def _named_steps(effects: Sequence[StepEffect], n_steps: int) -> str:
    numbers = [str(effect.step + 1) for effect in effects]
    if len(numbers) > MAX_NAMED_STEPS:
        return f"one of {len(numbers)} of the {n_steps} steps"
    return f"step {' or '.join(filter(None, (', '.join(numbers[:-1]), numbers[-1])))}"
