"""A verdict, and what its rules share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cotlab.analysis.verdict.measures import MIN_MOVED, READING_MEASURES, RunEvidence, Share
from cotlab.analysis.verdict.wording import Sentence, capitalised, noun_count, sentence

NOTHING_RULE = "nothing_measured"
"""Rule of a run in which no item has a value of any measure."""
Mark = Literal["yes", "part", "no", "unknown", "neutral"]
"""What a symbol says: blue check, grey half, vermillion triangle, grey question mark, grey dash."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may be believed of a model's chains, in one sentence and what it rests on."""

    rule: str
    """Name of the rule that applied."""
    mark: Mark
    """Symbol beside the headline."""
    headline: str
    """The finding, or why there is none."""
    short: str
    """The finding in a table of runs: "follows", "cannot say"."""
    sentences: tuple[Sentence, ...] = ()
    """What the finding rests on, with its numbers."""
    limits: tuple[str, ...] = ()
    """What it does not show."""
    measure_next: str | None = None
    """What to measure so that there is a finding: change, control, suggestion, equations."""


def headline_share(evidence: RunEvidence) -> Share | None:
    """Return the share that the headline is about."""
    return evidence.share(*READING_MEASURES) or evidence.share("moved")


def count_left_out(evidence: RunEvidence) -> int:
    """Return how many items ended without a value of the headline's measure."""
    share = headline_share(evidence)
    for name, other in evidence.shares.items():
        if other is share:
            return evidence.n_left_out.get(name, 0)
    return 0


def missing_sentence(evidence: RunEvidence) -> Sentence:
    """Return the reasons of missing values as a sentence; empty where none is missing."""
    text = missing_text(evidence)
    return sentence(capitalised(text)) if text else ()


def missing_text(evidence: RunEvidence) -> str:
    """Return the reasons of missing values with their counts; "" where none is missing."""
    reasons = []
    for entry in evidence.missing:
        scores = f" ({entry.n_scores:,} scores)" if entry.n_scores != entry.n_items else ""
        reasons.append(f"{entry.reason}: {noun_count(entry.n_items, 'item')}{scores}")
    return f"{'; '.join(reasons)}." if reasons else ""


def missing_scores_text(evidence: RunEvidence) -> str:
    """Return how many scores have no value in items that have one elsewhere; "" where none."""
    if evidence.n_scores_missing <= 0:
        return ""
    n_missing, n = evidence.n_scores_missing, evidence.n_scores
    return f"{n_missing:,} of {n:,} scores of changed steps have no value."


def note_sentences(evidence: RunEvidence) -> tuple[Sentence, ...]:
    """Return what stopped the run."""
    return (sentence(evidence.note),) if evidence.note else ()


def moves_enough(evidence: RunEvidence) -> bool:
    """Return whether a suggestion moved so many answers that their chains can be judged."""
    moved, admitted = evidence.share("moved"), evidence.share("admitted")
    return (
        moved is not None and moved.is_present and admitted is not None and admitted.n >= MIN_MOVED
    )
