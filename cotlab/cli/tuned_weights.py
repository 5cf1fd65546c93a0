"""Print weights that were tuned on labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cotlab.cli.baseline_lines import stored_estimate_text

if TYPE_CHECKING:
    from rich.console import Console


def print_tuned_weights(console: Console, report: Mapping[str, Any]) -> None:
    """Print tuned weights beside the example ones, and whether they are better."""
    from cotlab.cli.screen import print_lines, print_table
    from cotlab.figures.style import format_number
    from cotlab.stats.composite import EXAMPLE_WEIGHTS

    objective_labels = {"auc": "AUROC (higher is better)", "brier": "Brier score (lower is better)"}
    print_table(
        console,
        ("weights", *EXAMPLE_WEIGHTS, objective_labels[report["objective"]]),
        (
            [
                name,
                *(format_number(weights[part]) for part in EXAMPLE_WEIGHTS),
                stored_estimate_text(report[name]),
            ]
            for name, weights in (("example", EXAMPLE_WEIGHTS), ("tuned", report["weights"]))
        ),
        title=f"Weights, {report['folds']} outer folds of {report['n']} labels",
    )
    lines = [f"Tuned minus example: {stored_estimate_text(report['difference'])}: {report['why']}."]
    if report["shrunk"]:
        share_text = f"{report['shrunk']:.0%}"
        lines.append(f"Inner folds drew the weights back to the example ones by {share_text}.")
    if report["left_out"]:
        n_left_out = report["left_out"]
        lines.append(
            f"Left out: {n_left_out} labels whose r_raw the example weights leave undefined."
        )
    print_lines(console, lines)


def print_domain_weights(console: Console, name: str, report: Mapping[str, Any]) -> None:
    """Print the weights of one domain, or why it has none."""
    from cotlab.cli.screen import print_lines

    if "reason" in report:
        print_lines(console, [f"Domain {name!r}: {report['reason']}"])
        return
    print_lines(console, [f"Domain {name!r}, by cotlab run --set composite.weights=FILE:"])
    print_tuned_weights(console, report)
