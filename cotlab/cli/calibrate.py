"""``cotlab calibrate``, ``cotlab tune``: fit probabilities and weights on people's labels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.calibration_tables import (
    print_calibration,
    print_step_fit,
    print_tuned_weights,
    print_versions,
)
from cotlab.cli.options import JsonOption, acting_user, print_json

if TYPE_CHECKING:
    from cotlab.review.release.calibrate import FitResult
    from cotlab.review.release.step_hazard import StepFit

RunsArgument = Annotated[
    Optional[list[str]],
    typer.Argument(metavar="RUN…", help="Runs with labels; none means every one."),
]
AuthorOption = Annotated[
    Optional[str],
    typer.Option(help="Who does it (default: who is logged in here); kept in the audit."),
]
TargetOption = Annotated[
    str,
    typer.Option(
        help="What is predicted: answer_and_chain (the answer is right and the chain sound),"
        " chain_sound, chain_sound_given_correct (among right answers) or faithful."
    ),
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Seed of the folds and the resampling.")
]


def calibrate_command(
    run: RunsArgument = None,
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
    steps: Annotated[
        bool,
        typer.Option(
            "--steps",
            help="Fit the probability of the first mistake at each step, on labelled steps.",
        ),
    ] = False,
    domain_intercepts: Annotated[
        bool,
        typer.Option(
            "--domain-intercepts",
            help="combined: an intercept for each domain (suite, where items have none).",
        ),
    ] = False,
    without: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="FEATURE",
            help=(
                "combined: leave out a feature, or a family (length, wording, numbers, overlap,"
                " answer, equations, answer_correctness, a scorer); may be repeated."
            ),
        ),
    ] = None,
    target: TargetOption = "answer_and_chain",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure, and write nothing.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the versions; fit nothing.")
    ] = False,
    rollback: Annotated[
        Optional[int], typer.Option(metavar="VERSION", help="Put this version back into use.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; a rollback needs it, and it is kept.")] = "",
    by: AuthorOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Fit the map from r_raw to the probability of acceptable reasoning on labels, and use it."""
    from cotlab.core.errors import ConfigError
    from cotlab.review.release import calibrate as calibration
    from cotlab.review.release.step_hazard import fit_step_hazard
    from cotlab.store.calibrators import CHAIN_KIND, STEP_KIND
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
            calibration.roll_back_calibrator(store, rollback, author=acting_user(by), reason=reason)
        print_versions(store, STEP_KIND if steps else CHAIN_KIND, as_json=json)
        return
    if steps:
        if (method, weights, objective, domain) != ("auto", "example", "brier", False):
            raise ConfigError("--steps takes no --method, --weights, --objective and no --domain")
        step_fit = fit_step_hazard(
            store, run or None, author=acting_user(by), dry_run=dry_run, note=reason, seed=seed
        )
        if json:
            print_json(_fit_record(step_fit))
        else:
            print_step_fit(step_fit)
        _exit_without_version(step_fit, dry_run=dry_run)
        return
    fit_result = calibration.calibrate_runs(
        store,
        run or None,
        author=acting_user(by),
        method=method,
        weights=weights,
        objective=objective,
        domain=domain,
        without=without or (),
        domain_intercepts=domain_intercepts,
        target=target,
        dry_run=dry_run,
        note=reason,
        seed=seed,
    )
    if json:
        print_json(_fit_record(fit_result))
    else:
        print_calibration(fit_result)
    _exit_without_version(fit_result, dry_run=dry_run)


def tune_command(
    run: RunsArgument = None,
    objective: Annotated[
        str, typer.Option(help="auc: rank the labels; brier: predict them after a logistic map.")
    ] = "auc",
    target: TargetOption = "answer_and_chain",
    apply: Annotated[
        bool, typer.Option("--apply", help="Fit the next calibrator with the tuned weights.")
    ] = False,
    domain: Annotated[
        bool,
        typer.Option("--domain", help="Tune on each domain (suite, where items have none) too."),
    ] = False,
    by: AuthorOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Tune the composite's weights on labels, and compare them with the example weights."""
    from cotlab.cli.screen import open_console, print_lines
    from cotlab.review.release import calibrate as calibration
    from cotlab.review.release.fit_report import tuned_report
    from cotlab.store.database import Store

    store = Store()
    options: dict[str, Any] = {"objective": objective, "target": target, "seed": seed}
    runs = run or None
    report = tuned_report(calibration.tune_weights_on_runs(store, runs, **options))
    weights_by_domain = calibration.tune_weights_by_domain(store, runs, **options) if domain else {}
    report_by_domain = {
        name: {"reason": weights} if isinstance(weights, str) else tuned_report(weights)
        for name, weights in weights_by_domain.items()
    }
    fit_result = (
        calibration.calibrate_runs(store, runs, author=acting_user(by), weights="tuned", **options)
        if apply
        else None
    )
    if json:
        no_fit: dict[str, Any] = {"version": None, "refusal": "", "report": None}
        fit_record = _fit_record(fit_result) if fit_result else no_fit
        print_json({"tuned": report, "domains": report_by_domain, **fit_record})
    else:
        console = open_console(200)
        print_tuned_weights(console, report)
        for name, domain_report in report_by_domain.items():
            how = domain_report.get("reason") or "by cotlab run --set composite.weights=FILE:"
            print_lines(console, [f"Domain {name!r}: {how}"])
            if "reason" not in domain_report:
                print_tuned_weights(console, domain_report)
        if fit_result is not None:
            print_calibration(fit_result)
    if fit_result is not None:
        _exit_without_version(fit_result)


def _fit_record(fit_result: FitResult | StepFit) -> dict[str, Any]:
    return {key: getattr(fit_result, key) for key in ("version", "refusal", "report")}


def _exit_without_version(fit_result: FitResult | StepFit, *, dry_run: bool = False) -> None:
    """Exit with code 1 where a version was to be kept and is not."""
    from cotlab.run.exit_status import EXIT_GATE_FAILED

    if fit_result.refusal and not dry_run:
        sys.stderr.write(f"error: No version is kept: {fit_result.refusal}\n")
        raise typer.Exit(EXIT_GATE_FAILED)
