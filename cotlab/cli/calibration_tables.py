"""What ``cotlab calibrate`` prints: methods, baselines and versions as tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cotlab.cli.baseline_lines import baseline_lines, stored_estimate_text
from cotlab.cli.tuned_weights import print_tuned_weights

if TYPE_CHECKING:
    from rich.console import Console

    from cotlab.review.release.calibrate import FitResult
    from cotlab.store.database import Store


def print_calibration(fit_result: FitResult) -> None:
    """Print what a fit found, and what was stored of it."""
    from cotlab.cli.screen import open_console, print_lines
    from cotlab.figures.style import format_number
    from cotlab.reliability.combination import combination_text

    console, report = open_console(200), fit_result.report
    _print_methods(console, report)
    print_lines(
        console,
        [
            (
                f"The base rate {format_number(report['base_rate'])} alone has a Brier score of"
                f" {stored_estimate_text(report['base_brier'])}."
            ),
            (
                "r_raw itself ranks the labels with an AUROC of"
                f" {stored_estimate_text(report['auroc_r_raw'])}."
            ),
            f"Chosen (*): {report['why']}.",
            (
                f"Predicted is {report['target']}, on {report['n']} labels,"
                f" {report['n_imported']} of them imported with their suite."
            ),
            *(
                f"Left out: {count} labels: {reason}."
                for reason, count in report["left_out"].items()
            ),
            *(_domain_line(name, domain) for name, domain in report["domains"].items()),
        ],
    )
    if report["weights"] is not None:
        print_tuned_weights(console, report["weights"])
    lines = []
    if "combination" in report:
        lines.append(f"Combined: {combination_text(report['combination'])}.")
        lines += list(baseline_lines(report))
    if fit_result.version is None:
        lines.append("Nothing was written.")
        if fit_result.refusal:
            lines.append(f"No version is kept of such a fit: {fit_result.refusal}")
    else:
        labels_digest = report["labels_digest"][:12]
        lines.append(f"Version {fit_result.version} is in use. It saw the labels {labels_digest}.")
    print_lines(console, lines)


def _domain_line(name: str, report: Mapping[str, Any]) -> str:
    """Return the sentence on one domain: its map, and how that compares with the one over all."""
    summary = report["why"]
    if report["used"] == "own":
        summary = f"its own map, {report['chosen']}: {summary}"
    if report["difference"] is not None:
        summary += (
            f"; Brier of its own map {stored_estimate_text(report['own'])}, of the one over all"
            f" {stored_estimate_text(report['all'])}, own minus all"
            f" {stored_estimate_text(report['difference'])}"
        )
    counts_text = f"{report['n']} labels, {report['n_positive']} acceptable"
    return f"Domain {name!r} ({counts_text}): {summary}."


def _print_methods(console: Console, report: Mapping[str, Any]) -> None:
    from cotlab.cli.screen import print_table

    heading_by_key = {
        "method": "method",
        "brier": "Brier",
        "gained": "Brier − base rate's",
        "ece": "ECE",
        "band": "ECE if perfect",
        "log_loss": "log loss (nats)",
        "auroc": "AUROC",
        "note": "note",
    }
    counts_text = f"{report['n']} labels ({report['n_positive']} acceptable)"
    title = (
        f"Out of fold, 95 % intervals over questions: {counts_text} of {report['n_questions']}"
        f" questions, {report['folds']} folds"
    )
    table_rows = (
        [_method_cell(trial, key, report) for key in heading_by_key] for trial in report["methods"]
    )
    print_table(console, heading_by_key.values(), table_rows, title=title)


def _method_cell(trial: Mapping[str, Any], key: str, report: Mapping[str, Any]) -> str:
    """Return one cell of the table of methods; a refused one has a name and a note alone."""
    from cotlab.figures.style import format_number

    if key == "method":
        return f"{trial['method']}{' *' if trial['method'] == report['chosen'] else ''}"
    if trial["refused"]:
        return f"refused: {trial['refused']}" if key == "note" else ""
    if key == "note":
        return str(trial["note"])
    if key == "band":
        low, high = map(format_number, trial["band"])
        return f"[{low}, {high}] ({trial['bins']} bins)"
    return stored_estimate_text(trial[key])


def print_versions(store: Store, as_json: bool) -> None:
    """Print the stored calibrators."""
    import json

    from cotlab.cli.screen import open_console, print_table
    from cotlab.core.keys import canonical_json
    from cotlab.store.calibrators import list_calibrators

    rows: list[list[str]] = []
    records: list[dict[str, Any]] = []
    for row in list_calibrators(store).to_dict("records"):
        report = json.loads(row["report"])
        chosen_method = next(
            trial for trial in report["methods"] if trial["method"] == row["method"]
        )
        records.append(
            {key: row[key] for key in ("method", "labels_digest", "made_by", "note")}
            | {key: int(row[key]) for key in ("version", "n", "n_positive")}
            | {key: chosen_method[key] for key in ("brier", "ece")}
            | {key: report[key] for key in ("domains", "weights")}
            | {"current": bool(row["current"]), "made_at": row["made_at"].isoformat()}
        )
        rows.append(
            [
                f"{row['version']}" + " (in use)" * bool(row["current"]),
                row["method"],
                f"{row['n']} ({row['n_positive']})",
                stored_estimate_text(chosen_method["brier"]),
                stored_estimate_text(chosen_method["ece"]),
                _weights_kind(report),
                row["labels_digest"][:12],
                f"{row['made_at']:%Y-%m-%d %H:%M}",
                row["made_by"],
                row["note"],
            ]
        )
    if as_json:
        sys.stdout.write(canonical_json(records) + "\n")
        return
    columns = (
        *("version", "method", "labels (acceptable)", "Brier", "ECE", "weights"),
        *("labels seen", "made (UTC)", "by", "note"),
    )
    title = "Versions, the newest first"
    if not rows:
        title = "No calibrator yet: cotlab calibrate RUN fits one"
    print_table(open_console(200), columns, rows, title=title)


def _weights_kind(report: Mapping[str, Any]) -> str:
    if "combination" in report:
        return "combined"
    return "example" if report["weights"] is None else "tuned"
