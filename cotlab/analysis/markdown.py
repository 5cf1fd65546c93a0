"""The report of a run as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cotlab.analysis.readable import composite_lines, decimal_text, readable_estimate
from cotlab.analysis.reply_notes import cut_reply_lines, restated_step_lines
from cotlab.analysis.verdict.record import verdict_lines
from cotlab.core.text_safety import escape_report
from cotlab.run.summary import cost_warnings


def render_markdown(report: Mapping[str, Any]) -> str:
    """Return the report as Markdown: the aggregate, then every item's steps ranked by CCS."""
    has_model = report["model_label"] == report["model_id"]
    lines = [
        "# FaithCheck Report",
        "",
        *_verdict_section(report),
        f"**Model:** {escape_report(report['model_label'])}",
        f"**Provider:** {report['provider'] if has_model else 'none'}",
        f"**Harness Version:** {escape_report(report['harness_version'])}",
        f"**Run Timestamp:** {report['run_timestamp']}",
        f"**Seed:** {report['seed']} | **Temperature:** {float(report['temperature'])}",
        f"**Task Suite Hash:** `{report['task_suite_hash']}`",
        f"**Suite:** {escape_report(report['task_suite'])}",
        f"**Run:** {report['run_id']} ({report['status']})",
        *([f"**Name:** {escape_report(report['name'])}"] if report.get("name") else []),
        *([f"**Note:** {escape_report(report['user_note'])}"] if report.get("user_note") else []),
        *(f"**Self-test:** {escape_report(line)}" for line in self_test_lines(report)),
        *(f"**Server check:** {escape_report(line)}" for line in server_check_lines(report)),
        *(f"**Missing replies:** {line}" for line in report.get("missing_replies", ())),
        *(f"**Scores:** {line}" for line in report.get("scored_again", ())),
        *(f"**Cut replies:** {line}" for line in cut_reply_lines(report)),
        *(f"**Restated steps:** {line}" for line in restated_step_lines(report)),
        *(f"**Composite:** {escape_report(line)}" for line in composite_lines(report["estimates"])),
        *(f"**Cost warning:** {escape_report(line)}" for line in cost_warnings(report["cost"])),
    ]
    if "aggregate_rrr" not in report:
        return "\n".join([*lines, "", *_aggregate_lines(report)]) + "\n"
    lines += [
        f"**Aggregate RRR:** {_percent_text(report['aggregate_rrr'])}",
        "",
        "## Aggregate Metrics",
        "",
        (
            f"- RRR ({report['metric']}, {report['mode']}, CCS < {report['ccs_threshold']}): "
            f"{_percent_text(report['aggregate_rrr'])} {_rrr_interval_text(report)}"
        ),
    ]
    if report["aggregate_rrr_note"]:
        lines.append(f"- Note: {report['aggregate_rrr_note']}")
    lines += [
        (
            f"- Items: {report['items_done']} of {report['items_total']}; scores with an error:"
            f" {report['error_scores']}"
        ),
        "",
    ]
    lines += [
        *_aggregate_lines(report),
        "",
        "## Step Positions",
        "",
        "A step's index counts from 0, as in report.json; the dashboard numbers steps from 1.",
        "",
    ]
    positions = sorted(
        report["step_position_rankings"], key=lambda position: position["step_index"]
    )
    lines += _table_lines(
        ("Step Index", "Mean CCS", "95% interval", "Variance", "Items"),
        [
            (
                position["step_index"],
                _decimal_text(position["mean_ccs"]),
                _bounds_text(position["ci_lower"], position["ci_upper"]),
                _decimal_text(position["variance_ccs"]),
                position["count"],
            )
            for position in positions
        ],
    )
    lines += ["", "## Per-Item Step Rankings", ""]
    for item in report["items"]:
        lines += item_lines(item)
    return "\n".join(lines)


def _table_lines(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return a table of Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def item_lines(item: Mapping[str, Any]) -> list[str]:
    """Return the steps of an item of the report, ranked by CCS."""
    ranked_steps = sorted(
        item["step_scores"],
        key=lambda step: (step["score"] is None, -(step["score"] or 0), step["step_index"] or 0),
    )
    rows = [
        (
            rank,
            "n/a" if step["step_index"] is None else step["step_index"],
            f"n/a ({escape_report(step['reason'])})"
            if step["score"] is None
            else f"{step['score']:.4f}",
            step["metric"],
        )
        for rank, step in enumerate(ranked_steps, start=1)
    ]
    table = _table_lines(("Rank", "Step Index", "CCS", "Metric"), rows)
    return [f"### Item: {escape_report(item['item_id'])}", "", *table, ""]


def _verdict_section(report: Mapping[str, Any]) -> list[str]:
    """Return the verdict as a section; reports of earlier versions have none."""
    if "verdict" not in report:
        return []
    record = report["verdict"]
    headline, *lines = map(escape_report, verdict_lines(record))
    n_lamps = len(record["lamps"])
    texts, lamps = lines[:-n_lamps], lines[-n_lamps:]
    paragraphs = [line for text in texts for line in (text, "")]
    return [f"## {headline}", "", *paragraphs, *(f"- {lamp}" for lamp in lamps), ""]


def server_check_lines(report: Mapping[str, Any]) -> list[str]:
    """Return what was found of each server, then each caution; reports of old have none."""
    lines = []
    for check in report.get("server_checks", []):
        address = f" at {check['base_url']}" if check["base_url"] else ""
        address += " by raw text" if check.get("endpoint") == "completions" else ""
        result = "; ".join(check["lines"])
        lines.append(f"{check['model']}{address} ({check['checked_at'][:16]}): {result}")
        lines += [f"Caution: {caution}" for caution in check["cautions"]]
    return lines


def self_test_lines(report: Mapping[str, Any]) -> list[str]:
    """Return what each scorer's self-test measured on this model, in nats.

    Reports of earlier versions have none.
    """
    lines = []
    for name, measurements in report.get("self_tests", {}).items():
        line = f"{name}: {measurements['self_test']}"
        if "batch_noise_nats" in measurements:
            line += (
                f" in {measurements['dtype']} on item {measurements['item']}: own states move the"
                f" answer by {measurements['identity_nats']:.2g} nat, by"
                f" {measurements['across_shapes_nats']:.2g} across batch shapes; the model's own"
                f" noise between batch shapes is {measurements['batch_noise_nats']:.2g},"
                f" {measurements['allowed_nats']:.2g} is allowed"
            )
        lines.append(line)
    return lines


def _aggregate_lines(report: Mapping[str, Any]) -> list[str]:
    rows = []
    for stored_estimate in report["estimates"]:
        estimate = readable_estimate(stored_estimate)
        point_text = decimal_text(stored_estimate["metric"], estimate["point"])
        if estimate["point"] is None:
            point_text = f"n/a ({escape_report(estimate['reason'])})"
        rows.append(
            (
                estimate["metric"],
                escape_report(", ".join(f"{k}={v}" for k, v in estimate["facet"].items())),
                point_text,
                _bounds_text(estimate["lo"], estimate["hi"]),
                estimate["n"],
                estimate["n_undefined"],
                estimate["method"],
            )
        )
    heads = ("Metric", "Facet", "Estimate", "95% interval", "Items", "Undefined scores", "Method")
    return _table_lines(heads, rows)


def _bounds_text(lo: float | None, hi: float | None) -> str:
    return "n/a" if lo is None else f"[{_decimal_text(lo)}, {_decimal_text(hi)}]"


def _rrr_interval_text(report: Mapping[str, Any]) -> str:
    if report["aggregate_rrr_ci_lower"] is None:
        return "(no interval)"
    return (
        f"(95% interval {_percent_text(report['aggregate_rrr_ci_lower'])} to"
        f" {_percent_text(report['aggregate_rrr_ci_upper'])}, n = {report['aggregate_rrr_n']}"
        f" items, {report['aggregate_rrr_method']})"
    )


def _percent_text(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f}%"


def _decimal_text(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
