"""The verdict on a stored run, as JSON values and as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from cotlab.analysis.compare import compare_runs
from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.verdict.lamps import Lamp, make_lamps
from cotlab.analysis.verdict.measures import (
    HEADLINE_MEASURES,
    MEASURES,
    EarlierDifference,
    RunEvidence,
)
from cotlab.analysis.verdict.pair_differences import (
    HeadlineDifference,
    difference_text,
    headline_differences,
)
from cotlab.analysis.verdict.verdicts import Verdict, judge_run, next_step_text
from cotlab.analysis.verdict.wording import noun_count, percent, percent_number, plain_text
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.store import read

_MAX_EARLIER_RUNS = 5
"""Most earlier runs that are tried, the newest first; one with a shared measure is compared."""
_LAMP_FIELDS = ("question", "mark", "answer", "share", "measure", "what", "validation")
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
    if is_finding and (earlier := _earlier_difference(view, evidence)):
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
        "lamps": [{name: asdict(lamp)[name] for name in _LAMP_FIELDS} for lamp in result.lamps],
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


def _earlier_difference(view: RunView, evidence: RunEvidence) -> EarlierDifference | None:
    """Return how the last earlier run with one of a verdict's measures differs beyond chance.

    Both are paired by item, p corrected over the measures that both have. None where they do not
    differ, or where the store has no such run that is done.
    """
    metrics = [MEASURES[name].metric for name in HEADLINE_MEASURES if name in evidence.shares]
    for earlier in islice(_earlier_runs(view), _MAX_EARLIER_RUNS if metrics else 0):
        try:
            (comparison,) = compare_runs(
                view.store, earlier, [view.id], metrics=metrics
            ).comparisons
        except ConfigError:  # it measured none of them
            continue
        differences, _ = headline_differences(comparison, evidence.validation)
        measured = [
            entry
            for entry in differences
            if entry.measure in HEADLINE_MEASURES and entry.difference.point is not None
        ]
        if measured:
            return _largest_difference(earlier, measured)
    return None


def _earlier_runs(view: RunView) -> list[str]:
    """Return the ids of runs of this model and suite that were started before, the newest first."""
    runs = read.list_runs(view.store)
    is_earlier = (
        (runs["model"] == view.model)
        & (runs["suite"] == view.suite)
        & (runs["status"] == "done")
        & (runs["planned_at"] < view.planned_at)
        & ~runs["is_archived"].astype(bool)
    )
    return [str(run) for run in runs[is_earlier].sort_values("planned_at", ascending=False)["id"]]


def _largest_difference(
    earlier: str, measured: list[HeadlineDifference]
) -> EarlierDifference | None:
    differing = [entry for entry in measured if entry.is_beyond_chance]
    if not differing:
        return None
    entry = max(differing, key=lambda entry: abs(entry.difference.point or 0.0))
    before, now = (percent(side.point or 0.0) for side in (entry.base, entry.other))
    label = MEASURES[entry.measure].compared.rpartition(": ")[2]
    return EarlierDifference(
        earlier,
        f"{label[0].lower()}{label[1:]}, {before} there and {now} here"
        f" ({difference_text(entry.difference)} points, paired, n = {entry.row.n:,})",
    )
