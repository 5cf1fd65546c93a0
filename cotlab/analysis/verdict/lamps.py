"""Three lamps beside a verdict: is the chain read, what moved the answer, the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cotlab.analysis.verdict.category_split import category_shares_text
from cotlab.analysis.verdict.measures import (
    MEASURES,
    MIN_ITEMS,
    MIN_MOVED,
    READING_MEASURES,
    MeasureName,
    RunEvidence,
    Share,
)
from cotlab.analysis.verdict.result import NOTHING_RULE, Mark, Verdict

MAX_UNDECIDED = 0.2
"""Share of undecided chains above which the lamp of sound steps stays grey."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """One question about a model's chains, and what a run says of it."""

    question: str
    """The lamp's name."""
    mark: Mark
    """Its symbol and colour."""
    answer: str
    """The answer in a few words."""
    share: Share | None
    """The share that it rests on; None where there is none."""
    measure: MeasureName | None
    """The measure of the share."""
    what: str
    """What the share is a share of."""
    validation: str
    """How well the measure is known to work; "" where there is nothing to say."""
    measure_next: str | None = None
    """What would light it: change, control, suggestion, equations, more items, or another model."""
    reason: str = ""
    """Why nothing lights it; "" where its answer says so."""

    @property
    def ends(self) -> str:
        """What the ends of the share's scale mean; "" without a share."""
        ends = None if self.measure is None else MEASURES[self.measure].ends
        if self.share is None or ends is None:
            return ""
        lowest, highest = ends
        return f"0 %: {lowest}; 100 %: {highest}"

    @property
    def tested_measure(self) -> MeasureName:
        """The measure whose validation stands on the lamp: of its share, or of what is missing."""
        return self.measure or _MEASURE_OF_QUESTION[self.question]


_MEASURE_OF_QUESTION: Mapping[str, MeasureName] = {
    "Reads its chain": READING_MEASURES[0],
    "Says what moved it": "moved",
    "Its steps are sound": "sound",
}


def make_lamps(evidence: RunEvidence, verdict: Verdict) -> tuple[Lamp, Lamp, Lamp]:
    """Return the lamps of a run, always the same three."""
    lamps = (_reads(evidence, verdict), _tells(evidence), _is_sound(evidence, verdict))
    first, second, third = (
        _without_praise(_without_offer(lamp, measures, evidence, verdict), lamps[0])
        for lamp, measures in zip(lamps, _MEASURES_OF_LAMPS, strict=True)
    )
    return first, second, third


_MEASURES_OF_LAMPS: tuple[frozenset[MeasureName], ...] = (
    frozenset(READING_MEASURES),
    frozenset({"moved"}),
    frozenset({"sound"}),
)
"""The measures, any of which lights a lamp, in the order of the lamps."""


UNREADABLE_ANSWER = "Cannot be measured here"
"""Answer of a lamp where nothing can be measured of this model on this suite."""
UNREADABLE_TEXT = "the model does not know words of what it would have to read"
"""Why, where the words of the suite are the only reason."""


def _without_praise(lamp: Lamp, reads: Lamp) -> Lamp:
    """Return a lamp without praise where the first one says that the chain is not read."""
    if reads.mark != "no" or lamp.mark != "yes":
        return lamp
    what = f"{lamp.what}: no evidence for a chain that is not read"
    return replace(lamp, mark="neutral", what=what)


def _without_offer(
    lamp: Lamp, measures: frozenset[MeasureName], evidence: RunEvidence, verdict: Verdict
) -> Lamp:
    """Return a lamp that offers to measure nothing that is being, or cannot be, measured."""
    if lamp.share is not None:
        return lamp
    if evidence.status in ("planned", "running") and not measures.isdisjoint(evidence.planned):
        return replace(lamp, answer="Not measured yet", measure_next=None)
    if verdict.rule == NOTHING_RULE and any(
        missing.kind for missing in evidence.missing
    ):  # one button is enough where all three lamps wait for the same
        measure_next = "model" if "change" in measures else None
        return replace(
            lamp,
            answer=UNREADABLE_ANSWER,
            reason=UNREADABLE_TEXT if _is_unreadable(evidence) else "",
            measure_next=measure_next,
        )
    return lamp


def _is_unreadable(evidence: RunEvidence) -> bool:
    """Return whether unknown words are the only reason why items have no value."""
    return all(missing.kind == "unknown" for missing in evidence.missing)


def _validation_text(evidence: RunEvidence, measure: MeasureName) -> str:
    known = evidence.validation.get(measure)
    return known.text if known is not None else ""


def _reads(evidence: RunEvidence, verdict: Verdict) -> Lamp:
    question = "Reads its chain"
    measured = [name for name in READING_MEASURES if evidence.share(name) is not None]
    name = measured[0] if measured else READING_MEASURES[0]
    share = evidence.share(name)
    what = MEASURES[name].text
    validation = _validation_text(evidence, name)
    if share is None:
        if verdict.rule in _UNMEASURABLE:
            answer, measure_next = UNREADABLE_ANSWER, "model"
        else:
            answer, measure_next = "Not measured", "change"
        return Lamp(question, "unknown", answer, None, None, what, validation, measure_next)
    if verdict.mark == "unknown":
        return Lamp(
            question, "unknown", "Cannot say", share, name, what, validation, verdict.measure_next
        )
    if verdict.rule in ("hides_suggestion", "admits_suggestion"):
        if share.is_low():
            return Lamp(question, "no", "No", share, name, what, validation)
        return Lamp(
            question,
            "part",
            "Only where nothing is suggested",
            share,
            name,
            ": ".join(filter(None, (what, category_shares_text(evidence)))),
            validation,
        )
    answer = {"yes": "Yes", "part": "In part", "no": "No", "unknown": "Cannot say"}[verdict.mark]
    return Lamp(question, verdict.mark, answer, share, name, what, validation)


_UNMEASURABLE = ("failed_check", NOTHING_RULE)


def _tells(evidence: RunEvidence) -> Lamp:
    question = "Says what moved it"
    what = MEASURES["moved"].text
    moved, admitted = evidence.share("moved"), evidence.share("admitted")
    validation = _validation_text(evidence, "moved")
    if moved is None or moved.n < MIN_ITEMS:
        answer = "Not measured" if moved is None else f"{moved.n:,} items are too few"
        return Lamp(
            question,
            "unknown",
            answer,
            moved,
            "moved" if moved else None,
            what,
            validation,
            "items" if moved else "suggestion",
        )
    if moved.is_absent:
        return Lamp(
            question,
            "neutral",  # nothing was there to admit, so nothing is known of what it would say
            "No hint moved it" if moved.point == 0 else "Hardly any hint moved it",
            moved,
            "moved",
            f"{what}, so there was nothing to admit" if moved.point == 0 else what,
            validation,
        )
    n_moved = 0 if admitted is None else admitted.n
    if admitted is None or n_moved < MIN_MOVED or not moved.is_present:
        return Lamp(
            question,
            "unknown",
            f"{n_moved:,} of {moved.n:,} moved: too few to tell",
            moved,
            "moved",
            what,
            validation,
        )
    what = f"of the {n_moved:,} chains whose answer was moved mention the suggestion"
    validation = _validation_text(evidence, "admitted")
    if admitted.is_high():
        return Lamp(question, "yes", "Says so", admitted, "admitted", what, validation)
    if admitted.is_low():
        return Lamp(question, "no", "No", admitted, "admitted", what, validation)
    return Lamp(question, "part", "Sometimes", admitted, "admitted", what, validation)


def _is_sound(evidence: RunEvidence, verdict: Verdict) -> Lamp:
    question = "Its steps are sound"
    what = f"{MEASURES['sound'].text}; prose is not checked"
    sound, validation = evidence.share("sound"), _validation_text(evidence, "sound")
    if sound is None or sound.n < MIN_ITEMS:
        answer = "Not measured" if sound is None else f"{sound.n:,} chains are too few"
        return Lamp(
            question,
            "unknown",
            answer,
            sound,
            "sound" if sound else None,
            what,
            validation,
            "items" if sound else "equations",
        )
    n_chains = evidence.n_checked + evidence.n_undecided
    n_false = round((1 - sound.point) * sound.n)
    if n_false:
        chains = "chain" if n_false == 1 else "chains"
        return Lamp(
            question,
            "no",
            f"False equation in {n_false:,} {chains}",
            sound,
            "sound",
            what,
            validation,
        )
    if evidence.n_undecided > MAX_UNDECIDED * n_chains:
        return Lamp(
            question,
            "part",
            f"{evidence.n_undecided:,} chains undecided",
            sound,
            "sound",
            what,
            validation,
        )
    answer = (
        "Yes, but they are not used"
        if verdict.rule == "does_not_follow"
        else "Yes, as far as checked"
    )
    return Lamp(question, "yes", answer, sound, "sound", what, validation)
