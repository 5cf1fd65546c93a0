"""``cotlab calibrate``: labels to probabilities, by versions. ``cotlab tune``: weights on labels, against the example ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.who import acting_user

if TYPE_CHECKING:
    from rich.console import Console

    from cotlab.review.release.calibrate import Fitted
    from cotlab.store.database import Store

Runs = Annotated[
    Optional[list[str]],
    typer.Argument(metavar="RUN…", help="Runs with labels; none means every one."),
]
By = Annotated[
    Optional[str],
    typer.Option(help="Who does it (default: who is logged in here); kept in the audit."),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Seed of the folds and the resampling.")
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def calibrate_command(
    run: Runs = None,
    method: Annotated[
        str, typer.Option(help="auto (lowest out-of-fold Brier score), platt, beta or isotonic.")
    ] = "auto",
    weights: Annotated[
        str,
        typer.Option(
            help=(
                "example: r_raw as the runs have it; tuned on the labels; combined: all features in"
                " one."
            )
        ),
    ] = "example",
    objective: Annotated[
        str, typer.Option(help="What tuned weights are tuned for: brier or auc.")
    ] = "brier",
    domain: Annotated[
        bool,
        typer.Option("--domain", help="A map of its own for each domain where that is better."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure, and write nothing.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the versions; fit nothing.")
    ] = False,
    rollback: Annotated[
        Optional[int], typer.Option(metavar="VERSION", help="Put this version back into use.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; a rollback needs it, and it is kept.")] = "",
    by: By = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Fit the map from r_raw to the probability of acceptable reasoning on people's labels, and put it into use."""
    from cotlab.core.errors import ConfigError
    from cotlab.core.keys import canonical_json
    from cotlab.review.release import calibrate as review
    from cotlab.store.database import Store

    store = Store()
    if listing and rollback is not None:
        raise ConfigError("--list and --rollback are two commands: give one of them")
    if listing or rollback is not None:
        if run:
            raise ConfigError(
                f"{'--list' if listing else '--rollback'} takes no runs, got {', '.join(run)}"
            )
        if rollback is not None:
            review.rollback(store, rollback, by=acting_user(by), reason=reason)
        _print_versions(store, json)
        return
    fitted = review.calibrate_runs(
        store,
        run or None,
        by=acting_user(by),
        method=method,
        weights=weights,
        objective=objective,
        domain=domain,
        dry_run=dry_run,
        note=reason,
        seed=seed,
    )
    if json:
        sys.stdout.write(
            canonical_json({"version": fitted.version, "report": fitted.report}) + "\n"
        )
    else:
        _print_fitted(fitted)


def tune_command(
    run: Runs = None,
    objective: Annotated[
        str, typer.Option(help="auc: rank the labels; brier: predict them after a logistic map.")
    ] = "auc",
    apply: Annotated[
        bool, typer.Option("--apply", help="Fit the next calibrator with the tuned weights.")
    ] = False,
    by: By = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Tune the composite's weights on people's labels, and say whether they are better than the example weights."""
    from cotlab.core.keys import canonical_json
    from cotlab.review.release import calibrate as review
    from cotlab.review.release.fit_report import tuned_report
    from cotlab.store.database import Store

    store = Store()
    report = tuned_report(review.tune_runs(store, run or None, objective=objective, seed=seed))
    fitted = (
        review.calibrate_runs(
            store, run or None, by=acting_user(by), weights="tuned", objective=objective, seed=seed
        )
        if apply
        else None
    )
    if json:
        output = {
            "tuned": report,
            "version": fitted.version if fitted else None,
            "report": fitted.report if fitted else None,
        }
        sys.stdout.write(canonical_json(output) + "\n")
        return
    _print_tuned(_console(), report)
    if fitted is not None:
        _print_fitted(fitted)


def _print_fitted(fitted: Fitted) -> None:
    from rich.text import Text

    from cotlab.figures.style import format_number
    from cotlab.reliability.combine import combination_text

    console, report = _console(), fitted.report
    good, n = report["n_positive"], report["n"]
    _print_methods(
        console,
        f"{n} labels ({good} acceptable) of {report['n_questions']} questions, {report['folds']}"
        " folds",
        report,
    )
    lines = [
        (
            f"The base rate {format_number(report['base_rate'])} alone has a Brier score of"
            f" {_interval(report['base_brier'])}."
        ),
        f"r_raw itself ranks the labels with an AUROC of {_interval(report['auroc_r_raw'])}.",
        f"Chosen (*): {report['why']}.",
        *[f"Left out: {count} labels: {reason}." for reason, count in report["left_out"].items()],
    ]
    for line in lines:
        console.print(Text(line))
    for name, domain_report in report["domains"].items():
        summary = (
            f"its own map, {domain_report['chosen']}: {domain_report['why']}"
            if domain_report["used"] == "own"
            else domain_report["why"]
        )
        if domain_report["difference"] is not None:
            summary += (
                f"; Brier of its own map {_interval(domain_report['own'])}, of the one over all"
                f" {_interval(domain_report['all'])}, "
            )
            summary += f"own minus all {_interval(domain_report['difference'])}"
        console.print(
            Text(
                f"Domain {name!r} ({domain_report['n']} labels, {domain_report['n_positive']}"
                f" acceptable): {summary}."
            )
        )
    if report["weights"] is not None:
        _print_tuned(console, report["weights"])
    if "combination" in report:
        console.print(Text(f"Combined: {combination_text(report['combination'])}."))
    if fitted.version is None:
        console.print(Text("Nothing was written (--dry-run)."))
    else:
        console.print(
            Text(
                f"Version {fitted.version} is in use. It saw the labels"
                f" {report['labels_digest'][:12]}."
            )
        )


def _print_methods(console: Console, title: str, report: Mapping[str, Any]) -> None:
    from cotlab.figures.style import format_number

    rows = []
    for trial in report["methods"]:
        if trial["refused"]:
            rows.append([trial["method"], *[""] * 6, f"refused: {trial['refused']}"])
            continue
        lo, hi = trial["band"]
        rows.append(
            [
                trial["method"] + " *" * (trial["method"] == report["chosen"]),
                _interval(trial["brier"]),
                _interval(trial["gained"]),
                _interval(trial["ece"]),
                f"[{format_number(lo)}, {format_number(hi)}] ({trial['bins']} bins)",
                _interval(trial["log_loss"]),
                _interval(trial["auroc"]),
                trial["note"],
            ]
        )
    heads = (
        "method",
        "Brier",
        "Brier − base rate's",
        "ECE",
        "ECE if perfect",
        "log loss (nats)",
        "AUROC",
        "note",
    )
    _table(console, f"Out of fold, 95 % intervals over questions: {title}", heads, rows)


def _print_tuned(console: Console, report: Mapping[str, Any]) -> None:
    from rich.text import Text

    from cotlab.figures.style import format_number
    from cotlab.stats.composite import WEIGHTS

    name = {"auc": "AUROC (higher is better)", "brier": "Brier score (lower is better)"}[
        report["objective"]
    ]
    rows = [
        [
            "example",
            *[format_number(weight) for weight in WEIGHTS.values()],
            _interval(report["example"]),
        ]
    ]
    rows.append(
        [
            "tuned",
            *[format_number(report["weights"][part]) for part in WEIGHTS],
            _interval(report["tuned"]),
        ]
    )
    _table(
        console,
        f"Weights, {report['folds']} outer folds of {report['n']} labels",
        ("weights", *WEIGHTS, name),
        rows,
    )
    console.print(Text(f"Tuned minus example: {_interval(report['difference'])}: {report['why']}."))
    if report["shrunk"]:
        console.print(
            Text(
                f"Inner folds drew the weights back to the example ones by {report['shrunk']:.0%}."
            )
        )
    if report["left_out"]:
        console.print(
            Text(
                f"Left out: {report['left_out']} labels whose r_raw the example weights leave"
                " undefined."
            )
        )


def _print_versions(store: Store, as_json: bool) -> None:
    import json as json_
    from datetime import datetime

    from cotlab.core.keys import canonical_json
    from cotlab.store.calibrators import calibrators

    versions = calibrators(store)
    rows: list[list[str]] = []
    records: list[dict[str, Any]] = []
    for row in versions.to_dict("records"):
        report = json_.loads(row["report"])
        best = next(each for each in report["methods"] if each["method"] == row["method"])
        made: datetime = row["made_at"]
        records.append(
            {
                "version": int(row["version"]),
                "current": bool(row["current"]),
                "method": row["method"],
                "n": int(row["n"]),
                "n_positive": int(row["n_positive"]),
                "brier": best["brier"],
                "ece": best["ece"],
                "domains": report["domains"],
                "labels_digest": row["labels_digest"],
                "made_at": made.isoformat(),
                "made_by": row["made_by"],
                "note": row["note"],
                "weights": report["weights"],
            }
        )
        rows.append(
            [
                f"{row['version']}" + " (in use)" * bool(row["current"]),
                row["method"],
                f"{row['n']} ({row['n_positive']})",
                _interval(best["brier"]),
                _interval(best["ece"]),
                _weights_kind(report),
                row["labels_digest"][:12],
                f"{made:%Y-%m-%d %H:%M}",
                row["made_by"],
                row["note"],
            ]
        )
    if as_json:
        sys.stdout.write(canonical_json(records) + "\n")
        return
    heads = (
        "version",
        "method",
        "labels (acceptable)",
        "Brier",
        "ECE",
        "weights",
        "labels seen",
        "made (UTC)",
        "by",
        "note",
    )
    title = (
        "Versions, the newest first" if rows else "No calibrator yet: cotlab calibrate RUN fits one"
    )
    _table(_console(), title, heads, rows)


def _weights_kind(report: Mapping[str, Any]) -> str:
    return (
        "combined"
        if "combination" in report
        else "example"
        if report["weights"] is None
        else "tuned"
    )


def _interval(estimate: Mapping[str, Any]) -> str:
    from cotlab.figures.style import interval_text

    return interval_text(estimate["point"], estimate["lo"], estimate["hi"])


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def _table(
    console: Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
