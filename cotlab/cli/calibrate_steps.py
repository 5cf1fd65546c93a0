"""``cotlab calibrate --steps``: fit the probability of the first mistake at each step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotlab.review.release.step_hazard import StepFit
    from cotlab.store.database import Store

_MODEL_LABELS = {
    "text": "features of the text",
    "text_and_scores": "features and scores of the steps",
    "text_and_answer": "features, scores and the answer's correctness",
}
_BASELINE_LABELS = {
    "text": "position and length alone",
    "text_and_scores": "position and length alone",
    "text_and_answer": "position, length and the answer's correctness",
}


def print_step_fit(fit: StepFit) -> None:
    """Print the PB-F1 of each model beside its baseline, by domain and without the domain."""
    from cotlab.cli.screen import open_console, print_lines, print_table

    console, report = open_console(200), fit.report
    n_mistaken = report["n"] - report["n_positive"]
    print_table(
        console,
        ("model", "PB-F1", "exact", "none right", *report["domains"]),
        (
            [
                label,
                *(_estimate_text(numbers[key]) for key in ("pb_f1", "exact", "none_right")),
                *(_percent(numbers["by_domain"].get(name)) for name in report["domains"]),
            ]
            for label, numbers in _rows(report)
        ),
        title=(
            f"First mistake, out of fold: {report['n']} chains ({n_mistaken} with a mistake) of"
            f" {report['n_questions']} questions, {report['folds']} folds; in percent, 95 %"
            " intervals over questions"
        ),
    )
    lines = [
        *(
            f"PB-F1 of {_MODEL_LABELS[name]} minus that of {_BASELINE_LABELS[name]}:"
            f" {_estimate_text(model['difference'])}."
            for name, model in report["models"].items()
        ),
        "PB-F1: harmonic mean of exact steps in chains with a mistake and of none in chains"
        " without, averaged over the domains.",
        *(
            f"{_MODEL_LABELS[name]}, other domains: {model['other_domains']['reason']}."
            for name, model in report["models"].items()
            if "reason" in model["other_domains"]
        ),
        *(f"Score of the steps: {name}." for name in report["measured_features"]),
        *(f"Left out: {name}, because it {why}." for name, why in report["class_bound"].items()),
        *(f"Left out: {count} chains: {reason}." for reason, count in report["left_out"].items()),
    ]
    if fit.version is None:
        lines.append("Nothing was written.")
        if fit.refusal:
            lines.append(f"No version is kept of such a fit: {fit.refusal}")
    else:
        lines.append(
            f"Version {fit.version} is in use for the steps: the page of an item shows it."
        )
    print_lines(console, lines)


def _rows(report: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    rows = []
    for name, model in report["models"].items():
        other_domains = model["other_domains"]
        rows += [(_MODEL_LABELS[name], model), (_BASELINE_LABELS[name], model["baseline"])]
        if "reason" not in other_domains:
            rows += [
                (f"{_MODEL_LABELS[name]}, fitted on the other domains", other_domains),
                (
                    f"{_BASELINE_LABELS[name]}, fitted on the other domains",
                    other_domains["baseline"],
                ),
            ]
    return rows


def print_step_versions(store: Store, *, as_json: bool) -> None:
    """Print the versions of models of the steps, the newest first."""
    import sys

    from cotlab.cli.screen import open_console, print_table
    from cotlab.core.keys import canonical_json
    from cotlab.store.calibrators import STEP_KIND, list_calibrators

    records: list[dict[str, Any]] = []
    for row in list_calibrators(store, STEP_KIND).to_dict("records"):
        report = json.loads(row["report"])
        records.append(
            {key: row[key] for key in ("method", "labels_digest", "made_by", "note")}
            | {key: int(row[key]) for key in ("version", "n", "n_positive")}
            | {"domains": report["domains"], "models": report["models"]}
            | {"best": report["models"].get("text_and_scores", report["models"]["text"])}
            | {"current": bool(row["current"]), "made_at": row["made_at"].isoformat()}
        )
    if as_json:
        sys.stdout.write(canonical_json(records) + "\n")
        return
    print_table(
        open_console(200),
        (
            "version",
            "chains (without a mistake)",
            "PB-F1",
            "minus baseline",
            "domains",
            "made",
            "by",
        ),
        (
            [
                f"{record['version']}" + " (in use)" * record["current"],
                f"{record['n']} ({record['n_positive']})",
                _estimate_text(record["best"]["pb_f1"]),
                _estimate_text(record["best"]["difference"]),
                ", ".join(record["domains"]),
                record["made_at"][:16],
                record["made_by"],
            ]
            for record in records
        ),
        title="Versions for the steps, the newest first"
        if records
        else "No version for the steps yet: cotlab calibrate RUN --steps fits one",
    )


def _estimate_text(estimate: Mapping[str, Any]) -> str:
    from cotlab.figures.style import interval_text

    percents = [
        None if estimate[key] is None else 100 * estimate[key] for key in ("point", "lo", "hi")
    ]
    return interval_text(*percents)


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f}"
