"""The verdict on a stored run, as JSON values and as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.verdict.earlier_runs import find_earlier_difference
from cotlab.analysis.verdict.lamps import Lamp, make_lamps
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.next_step import next_step_text
from cotlab.analysis.verdict.result import Verdict
from cotlab.analysis.verdict.verdicts import judge_run
from cotlab.analysis.verdict.wording import noun_count, percent, percent_number, plain_text
from cotlab.analysis.view import RunView

MARK_SIGNS = {"yes": "●", "part": "◐", "no": "▲", "unknown": "?", "neutral": "–"}
"""The symbol of each mark in plain text; a word stands beside it."""


@dataclass(frozen=True)
class RunVerdict:
    """The verdict on a run with what it was made from."""

    evidence: RunEvidence
    """Shares, checks and reasons."""
    verdict: Verdict
    """The sentence."""
    lamps: tuple[Lamp, Lamp, Lamp]
    """The three questions beside it."""


def judge_stored_run(view: RunView, status: str | None = None) -> RunVerdict:
    """Return the verdict on a run of the store.

    Parameters
    ----------
    view : RunView
    status : str or None
        The run's current status, where it is known better than the store knows it.
    """
    evidence = collect_evidence(view, status)
    verdict = judge_run(evidence)
    is_finding = evidence.status == "done" and verdict.mark != "unknown"
    if is_finding and (earlier := find_earlier_difference(view, evidence)):
        evidence = replace(evidence, earlier=earlier)
    return judge_evidence(evidence)


def judge_evidence(evidence: RunEvidence) -> RunVerdict:
    """Return the verdict on a run's evidence, with its lamps."""
    verdict = judge_run(evidence)
    return RunVerdict(evidence, verdict, make_lamps(evidence, verdict))


def verdict_record(result: RunVerdict) -> dict[str, Any]:
    """Return a verdict as JSON values: rule, mark, headline, text, limits, next step, lamps."""
    verdict = result.verdict
    return {
        "rule": verdict.rule,
        "mark": verdict.mark,
        "headline": verdict.headline,
        "text": plain_text(verdict.sentences),
        "limits": list(verdict.limits),
        "next_step": next_step_text(verdict, result.evidence),
        "lamps": [
            {
                "question": lamp.question,
                "mark": lamp.mark,
                "answer": lamp.answer,
                "share": None if lamp.share is None else asdict(lamp.share),
                "measure": lamp.measure,
                "what": lamp.what,
                "validation": lamp.validation,
            }
            for lamp in result.lamps
        ],
    }


def verdict_lines(record: Mapping[str, Any]) -> list[str]:
    """Return a stored verdict as lines: headline, sentences, limits, next step, and each lamp.

    Parameters
    ----------
    record : mapping
        As ``verdict_record`` gives it.
    """
    lines = [f"{MARK_SIGNS[record['mark']]} {record['headline']}"]
    next_step = record.get("next_step")  # reports of earlier versions have none
    next_line = f"Next: {next_step}" if next_step else ""
    lines += [text for text in (record["text"], " ".join(record["limits"]), next_line) if text]
    for lamp in record["lamps"]:
        share_text = ""
        if lamp["share"] is not None:
            share = lamp["share"]
            bounds = f"{percent_number(share['lo'])}, {percent_number(share['hi'])}"
            share_text = f": {percent(share['point'])} [{bounds}] {lamp['what']}"
            share_text += f", n = {noun_count(share['n'], 'item')}"
        lines.append(f"{lamp['question']}: {MARK_SIGNS[lamp['mark']]} {lamp['answer']}{share_text}")
    return lines
