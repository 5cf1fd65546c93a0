"""Three lamps beside a verdict: is the chain read, what moved the answer, the steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from cotlab.analysis.verdict.measures import (
    MEASURES,
    MIN_ITEMS,
    MIN_MOVED,
    READING_MEASURES,
    MeasureName,
    RunEvidence,
    Share,
)
from cotlab.analysis.verdict.verdicts import NOTHING_RULE, Mark, Verdict, category_shares_text
from cotlab.analysis.verdict.wording import noun_count

MAX_UNDECIDED = 0.2
"""Share of undecided chains above which the lamp of sound steps stays grey."""
UNREADABLE_ANSWER = "Cannot be measured here"
"""Answer of a lamp where nothing can be measured of this model on this suite."""
UNREADABLE_TEXT = "the model does not know words of what it would have to read"
"""Why, where the words of the suite are the only reason."""


class _Question(NamedTuple):
    """The question of a lamp."""

    text: str
    measures: tuple[MeasureName, ...]
    """Measures, any of which lights it; the first one's validation stands on a dark one."""
    measure_next: str
    """What would light it where nothing is measured."""


_READS = _Question("Reads its chain", READING_MEASURES, "change")
_TELLS = _Question("Says what moved it", ("moved",), "suggestion")
_SOUND = _Question("Its steps are sound", ("sound",), "equations")


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
        return "" if ends is None else f"0 %: {ends[0]}; 100 %: {ends[1]}"

    @property
    def tested_measure(self) -> MeasureName:
        """The measure whose validation stands on the lamp: of its share, or of what is missing."""
        return self.measure or _question(self.question).measures[0]


def _question(text: str) -> _Question:
    return next(question for question in (_READS, _TELLS, _SOUND) if question.text == text)


def make_lamps(evidence: RunEvidence, verdict: Verdict) -> tuple[Lamp, Lamp, Lamp]:
    """Return the lamps of a run, always the same three."""
    reads, tells, sound = (
        _without_offer(lamp, evidence, verdict)
        for lamp in (_reads(evidence, verdict), _tells(evidence), _is_sound(evidence, verdict))
    )
    return reads, _without_praise(tells, reads), _without_praise(sound, reads)


def _without_praise(lamp: Lamp, reads: Lamp) -> Lamp:
    """Return a lamp without praise where the first one says that the chain is not read."""
    if reads.mark != "no" or lamp.mark != "yes":
        return lamp
    what = f"{lamp.what}: no evidence for a chain that is not read"
    return replace(lamp, mark="neutral", what=what)


def _without_offer(lamp: Lamp, evidence: RunEvidence, verdict: Verdict) -> Lamp:
    """Return a lamp that offers to measure nothing that is being, or cannot be, measured."""
    if lamp.share is not None:
        return lamp
    measures, kinds = _question(lamp.question).measures, [m.kind for m in evidence.missing]
    if evidence.status in ("planned", "running") and set(measures) & set(evidence.planned):
        return replace(lamp, answer="Not measured yet", measure_next=None)
    if verdict.rule == NOTHING_RULE and any(kinds):
        reason = UNREADABLE_TEXT if all(kind == "unknown" for kind in kinds) else ""
        # one button is enough where all three lamps wait for the same
        measure_next = "model" if "change" in measures else None
        return replace(lamp, answer=UNREADABLE_ANSWER, reason=reason, measure_next=measure_next)
    return lamp


def _lamp(
    evidence: RunEvidence,
    question: _Question,
    mark: Mark,
    answer: str,
    measure: MeasureName | None = None,
    what: str = "",
    measure_next: str | None = None,
) -> Lamp:
    """Return a lamp with the share of its measure, and what is known of that."""
    tested = measure or question.measures[0]
    known = evidence.validation.get(tested)
    return Lamp(
        question.text,
        mark,
        answer,
        None if measure is None else evidence.share(measure),
        measure,
        what or MEASURES[tested].text,
        "" if known is None else known.text,
        measure_next,
    )


def _reads(evidence: RunEvidence, verdict: Verdict) -> Lamp:
    name = next((name for name in READING_MEASURES if evidence.share(name) is not None), None)
    share = None if name is None else evidence.share(name)
    if share is None:
        if verdict.rule in ("failed_check", NOTHING_RULE):
            return _lamp(evidence, _READS, "unknown", UNREADABLE_ANSWER, measure_next="model")
        next_measure = _READS.measure_next
        return _lamp(evidence, _READS, "unknown", "Not measured", measure_next=next_measure)
    mark, what, measure_next = verdict.mark, "", verdict.measure_next
    answer = {"yes": "Yes", "part": "In part", "no": "No"}.get(mark, "Cannot say")
    if verdict.rule in ("hides_suggestion", "admits_suggestion"):
        mark, answer = (
            ("no", "No") if share.is_low() else ("part", "Only where nothing is suggested")
        )
        if mark == "part" and name is not None:
            what = ": ".join(filter(None, (MEASURES[name].text, category_shares_text(evidence))))
    return _lamp(evidence, _READS, mark, answer, name, what, measure_next)


def _too_few(evidence: RunEvidence, question: _Question, noun: str) -> Lamp | None:
    """Return the lamp of a measure that too few items have, or none; None where enough have it."""
    (measure,) = question.measures
    share = evidence.share(measure)
    if share is None:
        next_measure = question.measure_next
        return _lamp(evidence, question, "unknown", "Not measured", measure_next=next_measure)
    if share.n < MIN_ITEMS:
        answer = f"{share.n:,} {noun} are too few"
        return _lamp(evidence, question, "unknown", answer, measure, measure_next="items")
    return None


def _tells(evidence: RunEvidence) -> Lamp:
    moved, admitted = evidence.share("moved"), evidence.share("admitted")
    few = _too_few(evidence, _TELLS, "items")
    if few is not None or moved is None:
        assert few is not None
        return few
    if moved.is_absent:  # nothing was there to admit, so nothing is known of what it would say
        if moved.point:
            return _lamp(evidence, _TELLS, "neutral", "Hardly any hint moved it", "moved")
        what = f"{MEASURES['moved'].text}, so there was nothing to admit"
        return _lamp(evidence, _TELLS, "neutral", "No hint moved it", "moved", what)
    n_moved = 0 if admitted is None else admitted.n
    if admitted is None or n_moved < MIN_MOVED or not moved.is_present:
        answer = f"{n_moved:,} of {moved.n:,} moved: too few to tell"
        return _lamp(evidence, _TELLS, "unknown", answer, "moved")
    mark: Mark = "yes" if admitted.is_high() else "no" if admitted.is_low() else "part"
    answer = {"yes": "Says so", "no": "No", "part": "Sometimes"}[mark]
    what = f"of the {n_moved:,} chains whose answer was moved mention the suggestion"
    return _lamp(evidence, _TELLS, mark, answer, "admitted", what)


def _is_sound(evidence: RunEvidence, verdict: Verdict) -> Lamp:
    what, sound = f"{MEASURES['sound'].text}; prose is not checked", evidence.share("sound")
    few = _too_few(evidence, _SOUND, "chains")
    if few is not None or sound is None:
        assert few is not None
        return replace(few, what=what)
    n_chains = evidence.n_checked + evidence.n_undecided
    mark: Mark = "yes"
    answer = "Yes, as far as checked"
    if n_false := round((1 - sound.point) * sound.n):
        mark, answer = "no", f"False equation in {noun_count(n_false, 'chain')}"
    elif evidence.n_undecided > MAX_UNDECIDED * n_chains:
        mark, answer = "part", f"{evidence.n_undecided:,} chains undecided"
    elif verdict.rule == "does_not_follow":
        answer = "Yes, but they are not used"
    return _lamp(evidence, _SOUND, mark, answer, "sound", what)
