"""How often the answer changes when one step of a chain does, and what the model was given.

All of it is stored: the scores ``answer_change`` of the ablation scorer, and the requests and
replies in the log that they name as evidence. Nothing is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pandas as pd

from cotlab.core.types import MODE_ORDER, Form
from cotlab.stats.intervals import Interval, no_interval, wilson
from cotlab.text.prompts.chain import Prompt, answer_prompt, continuation_prompt

MAIN_MODES = MODE_ORDER[:3]
"""Modes of ablation that a page shows at once; others are folded."""
CHANGE_METRIC = "answer_change"
_STEP_MARKER = "\x00"
StoredRequest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepEffect:
    """How often the answer changes when one step does."""

    step: int
    """Index of the step, from 0."""
    n_changed: int
    """Replies whose answer differs from the one to the chain as it is."""
    n: int
    """Replies that could be compared."""
    n_missing: int
    """Replies that could not."""
    reason: str | None
    """Why those could not, or why there is no reply; None where all could."""

    @property
    def share(self) -> float | None:
        """Share of the replies whose answer changes; None without a reply."""
        return self.n_changed / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        """The share with its Wilson interval over the replies."""
        if not self.n:
            return no_interval(None, 0, self.reason or "no reply could be compared")
        return wilson(self.n_changed, self.n)


def measured_modes(scores: pd.DataFrame) -> list[str]:
    """Return the modes under which an item's answers were compared, in the order of a page."""
    modes = scores[scores["metric"] == CHANGE_METRIC]["mode"].unique().tolist()
    main_modes = [mode for mode in MAIN_MODES if mode in modes]
    return [*main_modes, *(mode for mode in modes if mode not in MAIN_MODES)]


def mode_scores(scores: pd.DataFrame, mode: str) -> pd.DataFrame:
    """Return an item's scores of changed answers under one mode."""
    return scores[(scores["metric"] == CHANGE_METRIC) & (scores["mode"] == mode)]


def step_effects(scores: pd.DataFrame, n_steps: int) -> list[StepEffect]:
    """Return the effect of each step of a chain, from the scores of one mode."""
    chain_reason = "no request was made for this step"
    draws_by_step: dict[int, list[tuple[Any, Any]]] = {}
    columns = (scores[name].tolist() for name in ("step", "value", "reason"))
    for step, value, reason in zip(*columns, strict=True):
        if pd.isna(step):
            chain_reason = str(reason)
        else:
            draws_by_step.setdefault(int(step), []).append((value, reason))
    effects = []
    for step in range(n_steps):
        draws = draws_by_step.get(step)
        if draws is None:
            effects.append(StepEffect(step, 0, 0, 0, chain_reason))
            continue
        values = [value for value, _ in draws if not pd.isna(value)]
        reasons = {
            "no reason is stored" if pd.isna(reason) else str(reason)
            for value, reason in draws
            if pd.isna(value)
        }
        reason_text = "; ".join(sorted(reasons)) or None
        n_missing = len(draws) - len(values)
        effects.append(StepEffect(step, int(sum(values)), len(values), n_missing, reason_text))
    return effects


def strongest_step(effects: Sequence[StepEffect]) -> int:
    """Return the first step with the largest share of changed answers; 0 where none is known."""
    known_effects = [effect for effect in effects if effect.share is not None]
    return (
        max(known_effects, key=lambda effect: (effect.share, -effect.step)).step
        if (known_effects)
        else 0
    )


class GivenStep(NamedTuple):
    """One step of the chain that the model was given."""

    step: int
    """Index of the step, from 0."""
    kind: Literal["same", "changed", "left out"]
    """What happened to it."""
    text: str
    """The step as it is in the original chain."""
    changed_text: str | None = None
    """What the model was given in its place, where it is changed."""


@dataclass(frozen=True, slots=True)
class GivenChain:
    """The chain that the model was given, as far as the logged request shows it."""

    steps: tuple[GivenStep, ...]
    """The steps up to where the model writes; none where there is a reason."""
    continues: bool
    """Whether the model continues the chain; else it gives its answer at once."""
    reason: str | None = None
    """Why the steps are not known."""


def given_chain(
    request: StoredRequest | None,
    question: str,
    steps: Sequence[str],
    step: int,
    mode: str,
    prompt_form: Form,
) -> GivenChain:
    """Return what a logged request gave the model in place of ``steps``.

    The changed text is read from the request itself, so that it is what was sent even where the
    rules that change a step have changed since.
    """
    continues = mode == "corrupt"
    if request is None:
        return GivenChain((), continues, "the log holds no text of this request")
    earlier, later = list(steps[:step]), list(steps[step + 1 :])
    known_steps = [GivenStep(i, "same", text) for i, text in enumerate(steps)]
    if mode in ("remove", "truncate"):
        given = [*earlier, *later] if mode == "remove" else [*earlier, steps[step]]
        if _request_text(request) != _prompt_text(answer_prompt(question, given, prompt_form)):
            return GivenChain((), continues, _OTHER_FORM_REASON)
        left_out = range(step, step + 1) if mode == "remove" else range(step + 1, len(steps))
        return GivenChain(
            tuple(
                GivenStep(i, "left out", text) if i in left_out else known_steps[i]
                for i, text in enumerate(steps)
            ),
            continues,
        )
    following = [] if continues else later
    make_prompt = continuation_prompt if continues else answer_prompt
    prompt = make_prompt(question, (*earlier, _STEP_MARKER, *following), prompt_form)
    changed_text = marked_text(request, prompt, _STEP_MARKER)
    if changed_text is None:
        return GivenChain((), continues, _OTHER_FORM_REASON)
    changed_step = GivenStep(step, "changed", steps[step], changed_text.rstrip("\n"))
    following_steps = () if continues else tuple(known_steps[step + 1 :])
    return GivenChain((*known_steps[:step], changed_step, *following_steps), continues)


_OTHER_FORM_REASON = "the logged request is not this chain with one step changed"


def marked_text(request: StoredRequest, prompt: Prompt, marker: str) -> str | None:
    """Return the text of a logged request that stands where ``prompt`` has the marker, or None."""
    head, _, tail = _prompt_text(prompt).partition(marker)
    full_text = _request_text(request)
    if not (full_text.startswith(head) and full_text[len(head) :].endswith(tail)):
        return None
    return full_text[len(head) : len(full_text) - len(tail)]


def _prompt_text(prompt: Prompt) -> str:
    return "\n".join([*(message.content for message in prompt.messages), prompt.prefix])


def _request_text(request: StoredRequest) -> str:
    contents = [str(message["content"]) for message in request.get("messages", ())]
    return "\n".join([*contents, request.get("prefix") or ""])
