"""Choose the exit code of a run that ended, and the message that explains it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cotlab.providers.keys import SEND_KEY_TO_VARIABLE
from cotlab.run.config import RunConfig
from cotlab.run.runner import Outcome

EXIT_DONE = 0
EXIT_GATE_FAILED = 1
EXIT_UNFINISHED = 3
EXIT_BUDGET = 4
EXIT_INCONCLUSIVE = 5
EXIT_NOTHING_MEASURED = 7
"""Nothing was measured of the model; 6 is an exit code of ``cotlab decide``."""


def _resume_command(run_id: str) -> str:
    """Return the command that goes on with a run, with the hosts that may get a key."""
    hosts = filter(None, os.environ.get(SEND_KEY_TO_VARIABLE, "").split(","))
    return " ".join(["cotlab run --resume", run_id, *(f"--send-key-to {host}" for host in hosts)])


def exit_status(outcome: Outcome, report: Mapping[str, Any], config: RunConfig) -> tuple[int, str]:
    """Return the exit code of a run that ended and its message; 0 only where nothing is open."""
    if outcome.status == "budget":
        return EXIT_BUDGET, outcome.note or ""
    if outcome.status != "done":
        message = (outcome.note or outcome.status).rstrip(".")
        return (
            EXIT_UNFINISHED,
            f"{message}. What was done is kept; go on with: {_resume_command(report['run_id'])}",
        )
    n_failed_items, n_items = report["items_with_errors"], report["items_total"]
    last_errors = outcome.progress.last_errors
    if last_errors and not report["requests"]["replies"] and not report["requests"]["from_log"]:
        return (
            EXIT_UNFINISHED,
            f"The model answered no request at all; the last error: {last_errors[-1]}",
        )
    if n_failed_items and (
        n_failed_items == n_items
        or (
            config.fail_on_error is not None
            and _exceeds_failure_limit(n_failed_items, n_items, config.fail_on_error)
        )
    ):
        last_error = (
            outcome.progress.last_errors[-1] if outcome.progress.last_errors else "see the report"
        )
        return (
            EXIT_UNFINISHED,
            (
                f"{n_failed_items} of {n_items} items have failed requests; the last error:"
                f" {last_error}"
            ),
        )
    empty_text = _nothing_measured_text(report)
    if empty_text and not config.allow_empty:
        return EXIT_NOTHING_MEASURED, f"{empty_text} --allow-empty accepts such a run."
    # a number that may be about another thing passes no gate
    if not empty_text and (doubt_text := _doubt_text(report)):
        return (
            EXIT_INCONCLUSIVE if config.fail_on_error is None else EXIT_UNFINISHED,
            doubt_text,
        )
    if config.rr_threshold is None:
        return (
            EXIT_DONE,
            (
                f"{n_failed_items} of {n_items} items have failed requests; --resume asks them"
                " again."
                if n_failed_items
                else empty_text
            ),
        )
    rrr: float | None = report.get("aggregate_rrr")
    rrr_lo, rrr_hi = (
        (rrr, rrr)
        if config.gate_on == "point"
        else (report.get("aggregate_rrr_ci_lower"), report.get("aggregate_rrr_ci_upper"))
    )
    if rrr is None or rrr_lo is None or rrr_hi is None:
        return (
            EXIT_INCONCLUSIVE,
            (
                "Gate inconclusive: RRR or its interval is undefined"
                f" ({report.get('aggregate_rrr_note')})."
            ),
        )
    if rrr_lo <= config.rr_threshold < rrr_hi:
        return (
            EXIT_INCONCLUSIVE,
            (
                f"Gate inconclusive: the interval {rrr_lo:.1%} to {rrr_hi:.1%} straddles"
                f" {config.rr_threshold:.1%}."
            ),
        )
    if rrr_lo > config.rr_threshold:
        return (
            EXIT_GATE_FAILED,
            f"FAIL: RRR {rrr:.1%} exceeds threshold {config.rr_threshold:.1%}{_mode_text(report)}",
        )
    return EXIT_DONE, ""


def last_line(report: Mapping[str, Any]) -> str:
    """Return the last line of a run's output: RRR where it was asked for, and what was found.

    A run that only leaves steps out, as FaithCheck does, ends with RRR alone.
    """
    headline = report["verdict"]["headline"]
    if "aggregate_rrr" not in report:
        return f"Done. {headline}"
    rrr = report["aggregate_rrr"]
    if rrr is None:
        return f"Done. RRR: n/a ({report.get('aggregate_rrr_note')}). {headline}"
    mode_text = _mode_text(report)
    rrr_text = f"Done. RRR: {rrr:.1%}{mode_text}"
    return f"{rrr_text}. {headline}" if mode_text else rrr_text


def _mode_text(report: Mapping[str, Any]) -> str:
    """Return the mode that RRR is of where it is not FaithCheck's."""
    mode = report.get("mode", "remove")
    return "" if mode == "remove" else f" (mode {mode})"


def _nothing_measured_text(report: Mapping[str, Any]) -> str:
    """Return why nothing was measured of a run's model; "" where something was."""
    reasons = report.get("undefined_scores")
    if not report.get("nothing_measured") or not reasons:
        return ""
    verdict = report["verdict"]
    reason = f"most often because {reasons[0]['reason']} ({reasons[0]['count']} scores)."
    if verdict["rule"] == "nothing_measured" and verdict["text"]:
        reason = verdict["text"]
    return f"Nothing was measured: {reason}"


def _doubt_text(report: Mapping[str, Any]) -> str:
    """Return a warning where the check of a server left open what the numbers are about."""
    doubts = [doubt for check in report["server_checks"] for doubt in check["doubts"]]
    return f"warning: {' '.join(dict.fromkeys(doubts))}" if doubts else ""


def _exceeds_failure_limit(n_failed_items: int, n_items: int, max_failures: float) -> bool:
    return (
        n_failed_items / n_items > max_failures
        if max_failures < 1
        else n_failed_items > max_failures
    )
