"""The exit code of a run that ended, and the message that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.run.config import RunConfig
from cotlab.run.runner import Outcome

DONE, GATE_FAILED, USAGE, UNFINISHED, BUDGET, INCONCLUSIVE = 0, 1, 2, 3, 4, 5


def exit_status(outcome: Outcome, report: Mapping[str, Any], config: RunConfig) -> tuple[int, str]:
    """Return the exit code of a run that ended and its message; 0 only where nothing is open."""
    if outcome.status == "budget":
        return BUDGET, outcome.note or ""
    if outcome.status != "done":
        message = (outcome.note or outcome.status).rstrip(".")
        return (
            UNFINISHED,
            f"{message}. What was done is kept; go on with: cotlab run --resume {report['run_id']}",
        )
    bad, total = report["items_with_errors"], report["items_total"]
    errors = outcome.progress.last_errors
    if errors and not report["requests"]["replies"] and not report["requests"]["from_log"]:
        return UNFINISHED, f"The model answered no request at all; the last error: {errors[-1]}"
    if bad and (
        bad == total
        or (config.fail_on_error is not None and _too_many(bad, total, config.fail_on_error))
    ):
        last = (
            outcome.progress.last_errors[-1] if outcome.progress.last_errors else "see the report"
        )
        return UNFINISHED, f"{bad} of {total} items have failed requests; the last error: {last}"
    if config.rr_threshold is None:
        return (
            DONE,
            (
                f"{bad} of {total} items have failed requests; --resume asks them again."
                if bad
                else ""
            ),
        )
    rrr: float | None = report.get("aggregate_rrr")
    lo, hi = (
        (rrr, rrr)
        if config.gate_on == "point"
        else (report.get("aggregate_rrr_ci_lower"), report.get("aggregate_rrr_ci_upper"))
    )
    if rrr is None or lo is None or hi is None:
        return (
            INCONCLUSIVE,
            (
                "Gate inconclusive: RRR or its interval is undefined"
                f" ({report.get('aggregate_rrr_note')})."
            ),
        )
    if lo <= config.rr_threshold < hi:
        return (
            INCONCLUSIVE,
            (
                f"Gate inconclusive: the interval {lo:.1%} to {hi:.1%} straddles"
                f" {config.rr_threshold:.1%}."
            ),
        )
    if lo > config.rr_threshold:
        return GATE_FAILED, f"Gate failed: RRR {rrr:.1%} exceeds {config.rr_threshold:.1%}."
    return DONE, ""


def rrr_line(report: Mapping[str, Any]) -> str:
    """Return the last line of a run's output, with RRR."""
    if report.get("aggregate_rrr") is None:
        return f"Done. RRR: n/a ({report.get('aggregate_rrr_note', 'no ablation in this run')})"
    return f"Done. RRR: {report['aggregate_rrr']:.1%}"


def _too_many(bad: int, total: int, allowed: float) -> bool:
    return bad / total > allowed if allowed < 1 else bad > allowed
