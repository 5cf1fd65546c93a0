"""The verdict on a run, from its evidence alone: refusals are tried first, then findings."""

from __future__ import annotations

from dataclasses import replace

from cotlab.analysis.verdict.findings import FINDINGS
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.refusals import REFUSALS
from cotlab.analysis.verdict.result import (
    Verdict,
    count_left_out,
    missing_scores_text,
    missing_sentence,
    note_sentences,
)
from cotlab.analysis.verdict.wording import Passage, noun_count, number, sentence


def judge_run(evidence: RunEvidence) -> Verdict:
    """Return the verdict on a run."""
    verdict = next(
        verdict for rule in (*REFUSALS, *FINDINGS) if (verdict := rule(evidence)) is not None
    )
    return _with_modifiers(verdict, evidence)


def _with_modifiers(verdict: Verdict, evidence: RunEvidence) -> Verdict:
    """Add what limits a finding; refusals stay as they are."""
    if verdict.mark == "unknown":
        return verdict
    headline, extra, limits = verdict.headline, [], list(verdict.limits)
    n_left_out = count_left_out(evidence)
    if n_left_out * 20 >= evidence.n_planned and n_left_out:
        headline = f"Of the items that could be measured, {headline[0].lower()}{headline[1:]}"
        extra.append(
            sentence(f"{n_left_out:,} of {noun_count(evidence.n_planned, 'item')} left out.")
        )
        extra.append(missing_sentence(evidence))
    if evidence.status != "done":
        headline = f"So far: {headline[0].lower()}{headline[1:]}"
        extra += note_sentences(evidence)
    control = evidence.text_control
    if evidence.net_change is not None and control is not None:
        extra.append(
            sentence("The control is not quite 0: ", number(control, evidence.control_name), ".")
        )
    wrong = evidence.share("wrong")
    if wrong is not None and wrong.lo > 0.5:
        extra.append(
            sentence(
                "Most answers are wrong: this is about where they come from, not whether they hold."
            )
        )
    if evidence.earlier is not None:
        link = Passage("An earlier run said otherwise", earlier_run=evidence.earlier.run)
        extra.append(sentence(link, f": {evidence.earlier.text}."))
    if missing := missing_scores_text(evidence):
        limits.append(missing)
    if evidence.given == "user":
        limits.append(
            "The model was given the chain as somebody else's. What it does with its own is not"
            " shown."
        )
    return replace(
        verdict,
        headline=headline,
        sentences=(*verdict.sentences, *filter(None, extra)),
        limits=tuple(limits),
    )
