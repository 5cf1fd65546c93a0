"""The outcome of a run as JUnit XML, which build servers show as tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from cotlab.core.text_safety import printable_line
from cotlab.run.exit_status import EXIT_DONE, EXIT_GATE_FAILED, EXIT_INCONCLUSIVE

_GATE_CODES = (EXIT_DONE, EXIT_GATE_FAILED, EXIT_INCONCLUSIVE)
"""Exit codes of a run that ended; with others no gate was reached."""
_PROPERTIES = (
    *("run_id", "model_id", "provider", "task_suite", "task_suite_hash", "harness_version"),
    *("seed", "temperature", "metric", "mode", "ccs_threshold", "aggregate_rrr"),
    *("aggregate_rrr_ci_lower", "aggregate_rrr_ci_upper", "spent_usd"),
)
"""Fields of the report that are kept beside the tests."""


def render_junit(
    report: Mapping[str, Any], exit_code: int, message: str, rr_threshold: float | None
) -> str:
    """Return JUnit XML: a test that the run ended, and one of the gate where it has one.

    A failed gate is a failure; a run that did not end, and a gate that is inconclusive, are
    errors: none of them passes.

    Parameters
    ----------
    report : mapping
        The report of the run.
    exit_code : int
        Of the command.
    message : str
        Message to the user about the end of the run.
    rr_threshold : float, optional
        RRR above which the gate fails; None without a gate.
    """
    is_ended = exit_code in _GATE_CODES
    outcomes = [("run", "" if is_ended else "error")]
    if rr_threshold is not None and is_ended:
        outcome_by_code = {EXIT_GATE_FAILED: "failure", EXIT_INCONCLUSIVE: "error"}
        outcomes.append((f"RRR at most {rr_threshold:.1%}", outcome_by_code.get(exit_code, "")))
    counts = {f"{kind}s": 0 for kind in ("failure", "error")}
    for _, outcome in outcomes:
        if outcome:
            counts[f"{outcome}s"] += 1
    totals = {"tests": str(len(outcomes)), **{name: str(n) for name, n in counts.items()}}
    suite_name = printable_line(f"cotlab {report['model_id']} on {report['task_suite']}")
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": suite_name, "timestamp": report["run_timestamp"], **totals}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in _PROPERTIES:
        if report.get(name) is not None:
            value = printable_line(report[name])
            ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for name, outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", {"classname": suite_name, "name": name})
        if outcome:
            ElementTree.SubElement(case, outcome, {"message": printable_line(message)})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
