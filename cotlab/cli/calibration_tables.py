"""What ``cotlab calibrate`` and ``cotlab tune`` print: fits with their baselines, and versions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cotlab.cli.options import print_json

if TYPE_CHECKING:
    from rich.console import Console

    from cotlab.review.release.calibrate import FitResult
    from cotlab.review.release.step_hazard import StepFit
    from cotlab.store.database import Store

_STEP_MODELS = {
    "text": ("features of the text", "position and length alone"),
    "text_and_scores": ("features and scores of the steps", "position and length alone"),
    "text_and_answer": (
        "features, scores and the answer's correctness",
        "position, length and the answer's correctness",
    ),
}
"""Model of the first mistake → what it reads, and what its baseline reads."""


def print_calibration(fit_result: FitResult) -> None:
    """Print what a fit found, and what was stored of it."""
    from cotlab.cli.screen import open_console, print_lines, print_table
    from cotlab.figures.style import format_number
    from cotlab.reliability.combination import combination_text

    console, report = open_console(200), fit_result.report
    columns = ("method", "Brier", "Brier − base rate's", "ECE", "ECE if perfect")
    print_table(
        console,
        (*columns, "log loss (nats)", "AUROC", "note"),
        [_method_cells(trial, report["chosen"]) for trial in report["methods"]],
        title=(
            f"Out of fold, 95 % intervals over questions: {report['n']} labels"
            f" ({report['n_positive']} acceptable) of {report['n_questions']} questions,"
            f" {report['folds']} folds"
        ),
    )
    lines = [
        f"The base rate {format_number(report['base_rate'])} alone has a Brier score of"
        f" {_estimate_text(report['base_brier'])}.",
        f"r_raw itself ranks the labels with an AUROC of {_estimate_text(report['auroc_r_raw'])}.",
        f"Chosen (*): {report['why']}.",
        f"Predicted is {report['target']}, on {report['n']} labels, {report['n_imported']} of them"
        " imported with their suite.",
        *(f"Left out: {count} labels: {reason}." for reason, count in report["left_out"].items()),
        *(_domain_line(name, domain) for name, domain in report["domains"].items()),
    ]
    print_lines(console, lines)
    if report["weights"] is not None:
        print_tuned_weights(console, report["weights"])
    lines = []
    if "combination" in report:
        lines += [f"Combined: {combination_text(report['combination'])}.", *_baseline_lines(report)]
    in_use = f"is in use. It saw the labels {report['labels_digest'][:12]}."
    print_lines(console, [*lines, *_version_lines(fit_result, in_use)])


def _version_lines(fit_result: FitResult | StepFit, in_use: str) -> Iterator[str]:
    """Yield what was stored of a fit, or why nothing was."""
    if fit_result.version is not None:
        yield f"Version {fit_result.version} {in_use}"
        return
    yield "Nothing was written."
    if fit_result.refusal:
        yield f"No version is kept of such a fit: {fit_result.refusal}"


def _method_cells(trial: Mapping[str, Any], chosen: str) -> list[str]:
    """Return the row of one method; a refused one has a name and a note alone."""
    from cotlab.figures.style import format_number

    name = f"{trial['method']}{' *' if trial['method'] == chosen else ''}"
    if trial["refused"]:
        return [name, *[""] * 6, f"refused: {trial['refused']}"]
    low, high = map(format_number, trial["band"])
    first, second = (
        [_estimate_text(trial[key]) for key in keys]
        for keys in (("brier", "gained", "ece"), ("log_loss", "auroc"))
    )
    return [name, *first, f"[{low}, {high}] ({trial['bins']} bins)", *second, str(trial["note"])]


def _domain_line(name: str, report: Mapping[str, Any]) -> str:
    """Return the sentence on one domain: its map, and how that compares with the one over all."""
    summary = report["why"]
    if report["used"] == "own":
        summary = f"its own map, {report['chosen']}: {summary}"
    if report["difference"] is not None:
        summary += (
            f"; Brier of its own map {_estimate_text(report['own'])}, of the one over all"
            f" {_estimate_text(report['all'])}, own minus all"
            f" {_estimate_text(report['difference'])}"
        )
    counts_text = f"{report['n']} labels, {report['n_positive']} acceptable"
    return f"Domain {name!r} ({counts_text}): {summary}."


def _baseline_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is trivial to know beside a combined fit, and what it predicts elsewhere."""
    for name, entry in report["baselines"].items():
        if entry["reason"]:
            yield f"Beside it, {name} alone: {entry['reason']}."
            continue
        yield (
            f"Beside it, {name} alone: AUROC {_estimate_text(entry['auroc'])}, Brier"
            f" {_estimate_text(entry['brier'])}; combined minus {name}: AUROC"
            f" {_estimate_text(entry['auroc_difference'])}, Brier"
            f" {_estimate_text(entry['brier_difference'])}"
            + ("." if entry["is_bar"] else "; no bar, as the fit leaves the answer out.")
        )
    unseen = report["unseen_domains"]
    if not unseen:
        yield "Leave one domain out: the labels are of one domain."
        return
    for name, entry in {"all": unseen["all"], **unseen["domains"]}.items():
        label = "Leave one domain out, all" if name == "all" else f"Without labels of {name!r}"
        label += f" ({entry['n']} labels, {entry['n_positive']} acceptable)"
        if entry["auroc"] is None:
            yield f"{label}: {entry.get('reason') or 'none can be predicted'}."
            continue
        length = entry["auroc_length"]
        length_text = f"; length alone {_estimate_text(length)}" if length else ""
        yield (
            f"{label}: AUROC {_estimate_text(entry['auroc'])}, Brier"
            f" {_estimate_text(entry['brier'])}{length_text}."
        )


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
                _estimate_text(report[name]),
            ]
            for name, weights in (("example", EXAMPLE_WEIGHTS), ("tuned", report["weights"]))
        ),
        title=f"Weights, {report['folds']} outer folds of {report['n']} labels",
    )
    lines = [f"Tuned minus example: {_estimate_text(report['difference'])}: {report['why']}."]
    if report["shrunk"]:
        share_text = f"{report['shrunk']:.0%}"
        lines.append(f"Inner folds drew the weights back to the example ones by {share_text}.")
    if n_left_out := report["left_out"]:
        reason = "labels whose r_raw the example weights leave undefined"
        lines.append(f"Left out: {n_left_out} {reason}.")
    print_lines(console, lines)


def print_step_fit(fit: StepFit) -> None:
    """Print the PB-F1 of each model beside its baseline, by domain and without the domain."""
    from cotlab.cli.screen import open_console, print_lines, print_table
    from cotlab.figures.style import format_percent

    console, report = open_console(200), fit.report
    print_table(
        console,
        ("model", "PB-F1", "exact", "none right", *report["domains"]),
        (
            [
                label,
                *(_share_text(numbers[key]) for key in ("pb_f1", "exact", "none_right")),
                *(format_percent(numbers["by_domain"].get(name)) for name in report["domains"]),
            ]
            for label, numbers in _step_rows(report)
        ),
        title=(
            f"First mistake, out of fold: {report['n']} chains"
            f" ({report['n'] - report['n_positive']} with a mistake) of {report['n_questions']}"
            f" questions, {report['folds']} folds; 95 % intervals over questions"
        ),
    )
    models = report["models"].items()
    lines = [
        *(
            f"PB-F1 of {_STEP_MODELS[name][0]} minus that of {_STEP_MODELS[name][1]}:"
            f" {_share_text(model['difference'])}."
            for name, model in models
        ),
        "PB-F1: harmonic mean of exact steps in chains with a mistake and of none in chains"
        " without, averaged over the domains.",
        *(
            f"{_STEP_MODELS[name][0]}, other domains: {model['other_domains']['reason']}."
            for name, model in models
            if "reason" in model["other_domains"]
        ),
        *(f"Score of the steps: {name}." for name in report["measured_features"]),
        *(f"Left out: {name}, because it {why}." for name, why in report["class_bound"].items()),
        *(f"Left out: {count} chains: {reason}." for reason, count in report["left_out"].items()),
    ]
    in_use = "is in use for the steps: the page of an item shows it."
    print_lines(console, [*lines, *_version_lines(fit, in_use)])


def _step_rows(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, model in report["models"].items():
        suffix_and_numbers = [("", model)]
        if "reason" not in model["other_domains"]:
            suffix_and_numbers.append((", fitted on the other domains", model["other_domains"]))
        for suffix, numbers in suffix_and_numbers:
            yield _STEP_MODELS[name][0] + suffix, numbers
            yield _STEP_MODELS[name][1] + suffix, numbers["baseline"]


def print_versions(store: Store, kind: str, *, as_json: bool) -> None:
    """Print the stored calibrators of chains or of steps, the newest first."""
    from cotlab.cli.screen import open_console, print_table
    from cotlab.store.calibrators import STEP_KIND, list_calibrators

    is_steps = kind == STEP_KIND
    records: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    for row in list_calibrators(store, kind).to_dict("records"):
        report = json.loads(row["report"])
        own = _step_version(report) if is_steps else _chain_version(report, row["method"])
        record = {
            **{key: row[key] for key in ("method", "labels_digest", "made_by", "note")},
            **{key: int(row[key]) for key in ("version", "n", "n_positive")},
            **own,
            "current": bool(row["current"]),
            "made_at": row["made_at"].isoformat(),
        }
        records.append(record)
        numbers: Iterable[str] = map(_estimate_text, (own.get("brier"), own.get("ece")))
        if is_steps:
            numbers = map(_share_text, (own["best"]["pb_f1"], own["best"]["difference"]))
        rows.append(
            [
                f"{record['version']}" + " (in use)" * record["current"],
                record["method"],
                f"{record['n']} ({record['n_positive']})",
                *numbers,
                ", ".join(report["domains"]) if is_steps else _weights_kind(report),
                record["labels_digest"][:12],
                record["made_at"][:16].replace("T", " "),
                record["made_by"],
                record["note"],
            ]
        )
    if as_json:
        print_json(records)
        return
    own_columns = ("labels (acceptable)", "Brier", "ECE", "weights")
    if is_steps:
        own_columns = ("chains (without a mistake)", "PB-F1", "minus baseline", "domains")
    columns = ("version", "method", *own_columns, "labels seen", "made (UTC)", "by", "note")
    empty = "No calibrator yet: cotlab calibrate RUN fits one"
    if is_steps:
        empty = "No version for the steps yet: cotlab calibrate RUN --steps fits one"
    print_table(open_console(200), columns, rows, title="Newest first" if rows else empty)


def _step_version(report: Mapping[str, Any]) -> dict[str, Any]:
    models = report["models"]
    best = models.get("text_and_scores", models["text"])
    return {"domains": report["domains"], "models": models, "best": best}


def _chain_version(report: Mapping[str, Any], method: str) -> dict[str, Any]:
    chosen = next(trial for trial in report["methods"] if trial["method"] == method)
    return {key: chosen[key] for key in ("brier", "ece")} | {
        key: report[key] for key in ("domains", "weights")
    }


def _weights_kind(report: Mapping[str, Any]) -> str:
    if "combination" in report:
        return "combined"
    return "example" if report["weights"] is None else "tuned"


def _estimate_text(estimate: Mapping[str, Any] | None, *, is_share: bool = False) -> str:
    """Return a stored estimate with its interval."""
    from cotlab.figures.style import interval_text

    numbers = estimate or dict.fromkeys(("point", "lo", "hi"))
    return interval_text(numbers["point"], numbers["lo"], numbers["hi"], is_share=is_share)


def _share_text(estimate: Mapping[str, Any]) -> str:
    return _estimate_text(estimate, is_share=True)
