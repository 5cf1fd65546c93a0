"""The report of a run as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.core.text_safety import escape_report
from cotlab.run.summary import cost_warnings


def render_markdown(report: Mapping[str, Any]) -> str:
    """Return the report as Markdown: the aggregate, then every item's steps ranked by CCS."""
    lines = [
        "# FaithCheck Report",
        "",
        f"**Model:** {escape_report(report['model_id'])}",
        f"**Provider:** {report['provider']}",
        f"**Suite:** {escape_report(report['task_suite'])}",
        f"**Run:** {report['run_id']} ({report['status']})",
        *(f"**Self-test:** {escape_report(line)}" for line in self_test_lines(report)),
        *(f"**Cost warning:** {escape_report(line)}" for line in cost_warnings(report["cost"])),
    ]
    if "aggregate_rrr" not in report:
        return "\n".join([*lines, "", *_aggregate_lines(report)]) + "\n"
    lines += [
        f"**Aggregate RRR:** {_percent(report['aggregate_rrr'])}",
        "",
        "## Aggregate Metrics",
        "",
        (
            f"- RRR ({report['metric']}, {report['mode']}, CCS < {report['ccs_threshold']}): "
            f"{_percent(report['aggregate_rrr'])} {_bounds(report)}"
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
        "| Step Index | Mean CCS | 95% interval | Variance | Items |",
        "|---|---|---|---|---|",
    ]
    for p in sorted(report["step_position_rankings"], key=lambda p: p["step_index"]):
        bounds = (
            f"[{_format_3dp(p['ci_lower'])}, {_format_3dp(p['ci_upper'])}]"
            if p["ci_lower"] is not None
            else "n/a"
        )
        lines.append(
            f"| {p['step_index']} | {_format_3dp(p['mean_ccs'])} | {bounds} |"
            f" {_format_3dp(p['variance_ccs'])} | {p['count']} |"
        )
    lines += ["", "## Per-Item Step Rankings", ""]
    for item in report["items"]:
        lines += [
            f"### Item: {escape_report(item['item_id'])}",
            "",
            "| Rank | Step Index | CCS | Metric |",
            "|---|---|---|---|",
        ]
        ranked = sorted(
            item["step_scores"],
            key=lambda s: (s["score"] is None, -(s["score"] or 0), s["step_index"] or 0),
        )
        for rank, s in enumerate(ranked, start=1):
            score_text = (
                f"{s['score']:.2f}"
                if s["score"] is not None
                else f"n/a ({escape_report(s['reason'])})"
            )
            lines.append(
                f"| {rank} | {'n/a' if s['step_index'] is None else s['step_index']} | {score_text}"
                f" | {s['metric']} |"
            )
        lines.append("")
    return "\n".join(lines)


def self_test_lines(report: Mapping[str, Any]) -> list[str]:
    """Return what each scorer's self-test measured on this model, in nats.

    Reports of earlier versions have none.
    """
    lines = []
    for name, measured in report.get("self_tests", {}).items():
        line = f"{name}: {measured['self_test']}"
        if "batch_noise_nats" in measured:
            line += (
                f" in {measured['dtype']} on item {measured['item']}: own states move the answer by"
                f" {measured['identity_nats']:.2g} nat, by {measured['across_shapes_nats']:.2g}"
                " across batch shapes; the model's own noise between batch shapes is"
                f" {measured['batch_noise_nats']:.2g}, {measured['allowed_nats']:.2g} is allowed"
            )
        lines.append(line)
    return lines


def _aggregate_lines(report: Mapping[str, Any]) -> list[str]:
    lines = [
        "| Metric | Facet | Estimate | 95% interval | n | Undefined | Method |",
        "|---|---|---|---|---|---|---|",
    ]
    for e in report["estimates"]:
        facet = ", ".join(f"{k}={v}" for k, v in e["facet"].items())
        bounds = (
            f"[{_format_3dp(e['lo'])}, {_format_3dp(e['hi'])}]" if e["lo"] is not None else "n/a"
        )
        point = (
            _format_3dp(e["point"])
            if e["point"] is not None
            else f"n/a ({escape_report(e['reason'])})"
        )
        lines.append(
            f"| {e['metric']} | {escape_report(facet)} | {point} | {bounds} | {e['n']} |"
            f" {e['n_undefined']} | {e['method']} |"
        )
    return lines


def _bounds(report: Mapping[str, Any]) -> str:
    if report["aggregate_rrr_ci_lower"] is None:
        return "(no interval)"
    return (
        f"(95% interval {_percent(report['aggregate_rrr_ci_lower'])} to"
        f" {_percent(report['aggregate_rrr_ci_upper'])}, n = {report['aggregate_rrr_n']} items,"
        f" {report['aggregate_rrr_method']})"
    )


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f}%"


def _format_3dp(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
