"""The cards of the critic: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import metric_card

NO_STEP_REASON = "the critic names no step"
"""Reason of a ``critic_step`` without a value where the critic was asked and finds no mistake."""
_CAVEAT = (
    "A critic is a language model that reads text which others wrote: the steps stand between marks"
    " that they cannot forge, but may sway it, and it may share the faults of those it judges. What"
    " its verdicts are worth here is measured against labels: `cotlab evaluate`."
)
_FAILED_TEXT = (
    "Undefined where the request failed or was refused, or the reply was cut off or is not the JSON"
    " that was asked for: a critic that fails finds nothing sound."
)
_card = partial(
    metric_card, level="chain", source="cotlab; the task is that of ProcessBench, arXiv:2412.06559"
)
CRITIC_STEP = _card(
    "critic_step",
    "critic",
    "index, from 0, of the first wrong step that the critic names, in one request for the whole"
    " chain. Of several votes (`--role verifier.votes`) the majority decides whether there is a"
    " mistake, and the step named most often where it is",
    f"“{NO_STEP_REASON}”: it finds no mistake. Any other reason: not known. The votes tie on the"
    " step, or votes are missing that could change the result. " + _FAILED_TEXT,
    "Mistakes after the first. " + _CAVEAT,
    hi=100_000.0,
    unit="steps",
    none_reason=NO_STEP_REASON,
)
CRITIC_SOUND = _card(
    "critic_sound",
    "sound",
    "share of the critic's votes that find no mistake in the chain; with one vote 1 or 0",
    "A vote is missing. " + _FAILED_TEXT,
    "A probability: votes at temperature 0 repeat one another, and a share of votes is not"
    " calibrated (`cotlab calibrate`). That the model used the chain. " + _CAVEAT,
    better="higher",
)
CRITIC_CARDS = (CRITIC_STEP, CRITIC_SOUND)
_rating_card = partial(_card, better="higher", source="cotlab")
LEGIBILITY = _rating_card(
    "legibility",
    "leg",
    "the critic's rating from 0 to 1 of how well a reader who knows the field can follow each step"
    " from those before it; its reason stands in the reply",
    _FAILED_TEXT,
    "Whether the chain is right, or was used. The numbers of two critics are not on one scale. "
    + _CAVEAT,
)
QUESTION_COVERAGE = _rating_card(
    "question_coverage",
    "q-cov",
    "the critic's rating from 0 to 1 of the share of what the question asks and states that the"
    " steps take up; its reason stands in the reply",
    _FAILED_TEXT,
    "Whether what is taken up is taken up rightly. The numbers of two critics are not on one"
    " scale. " + _CAVEAT,
)
RATING_CARDS = (LEGIBILITY, QUESTION_COVERAGE)
