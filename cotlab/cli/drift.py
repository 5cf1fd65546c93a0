"""``cotlab drift``: compare runs with the items that a calibrator was fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cotlab.cli.options import JsonOption, acting_user, print_json

if TYPE_CHECKING:
    from cotlab.review.release.drift import DriftCheck
    from cotlab.review.release.reaudit import CalibratorQuality

EXIT_ALERT = 1


def drift_command(
    reference: Annotated[
        str, typer.Argument(help="The run that the calibrator saw; several ids joined by commas.")
    ],
    current: Annotated[list[str], typer.Argument(help="The runs that are held against it.")],
    feature: Annotated[
        list[str] | None, typer.Option(help="Only this feature, as C or r_raw; repeatable.")
    ] = None,
    ks: Annotated[float, typer.Option(help="A KS distance that matters, 0 to 1.")] = 0.2,
    psi: Annotated[float, typer.Option(help="A PSI that matters, in nats.")] = 0.2,
    alpha: Annotated[
        float,
        typer.Option(help="Of features that are called moved, the share that may be so by chance."),
    ] = 0.05,
    permutations: Annotated[
        int, typer.Option(min=1, help="Shuffles that the null is made of.")
    ] = 1999,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the shuffles and of the re-audit sample.")
    ] = 42,
    over: Annotated[
        str | None, typer.Option(help="One check for each value of this tag, or `time`: one a run.")
    ] = None,
    audit: Annotated[
        int,
        typer.Option(
            min=0, help="On an alert, queue so many released items to be looked at again."
        ),
    ] = 20,
    by: Annotated[str | None, typer.Option(help="Who asks; kept with the check.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare runs with a reference, feature by feature and jointly, and store the check.

    Exit code 1 on an alert.
    """
    from cotlab.review.release.drift import (
        drift_doubts,
        drift_json,
        drift_state,
        group_runs_for_drift,
        measure_drift,
        store_drift_check,
    )
    from cotlab.review.release.reaudit import NothingReleased, queue_reaudit
    from cotlab.store.database import Store

    store, requester = Store(), acting_user(by)
    reference_runs = [run for run in (name.strip() for name in reference.split(",")) if run]
    run_groups = group_runs_for_drift(store, current, over) if over else [("", tuple(current))]
    checks = [
        measure_drift(
            store,
            reference_runs,
            run_ids,
            features=feature or (),
            ks=ks,
            psi=psi,
            alpha=alpha,
            permutations=permutations,
            seed=seed,
            author=requester,
            label=label,
        )
        for label, run_ids in run_groups
    ]
    audit_lines = []
    for check in checks:
        store_drift_check(store, check)
        line = ""
        if check.alert and audit:
            try:
                queue_id, n_queued = queue_reaudit(
                    store, check.current, audit, author=requester, seed=seed
                )
                line = f"Re-audit: {n_queued} released items, drawn at random, wait in {queue_id}."
            except NothingReleased as error:
                line = f"Re-audit: {error}"
        audit_lines.append(line)
    if json:
        reports = [
            drift_json(check)
            | {"reaudit": line or None}
            | {"state": drift_state(check), "doubts": drift_doubts(check)}
            for check, line in zip(checks, audit_lines, strict=True)
        ]
        print_json(reports if over else reports[0])
    else:
        for check, line in zip(checks, audit_lines, strict=True):
            _print_drift_check(check, line)
    if any(check.alert for check in checks):
        raise typer.Exit(EXIT_ALERT)


def _print_drift_check(check: DriftCheck, reaudit_line: str) -> None:
    from cotlab.cli.screen import open_console, print_lines, print_table
    from cotlab.figures.style import format_number
    from cotlab.review.release.drift import drift_doubts, drift_state, uncompared_text

    console = open_console(160)
    title = f"{', '.join(check.current)} against {', '.join(check.reference)}"
    if check.label:
        title += f" ({check.label})"
    rows = []
    names_by_reason: dict[str, list[str]] = {}
    for feature in check.features:
        drift = feature.drift
        if drift.reason:
            names_by_reason.setdefault(drift.reason, []).append(feature.name)
            continue
        psi_numbers = (drift.psi.value, drift.psi.null_hi, feature.psi_adjusted)
        ks_numbers = (drift.ks.value, drift.ks.null_hi, feature.ks_adjusted)
        count_texts = (str(drift.n_reference), str(drift.n_current))
        number_texts = map(format_number, (*psi_numbers, *ks_numbers, drift.kl.value))
        rows.append((feature.name, *count_texts, *number_texts, "moved" if feature.alert else ""))
    print_table(console, _COLUMNS, rows, title=title, right_columns=_COLUMNS[1:-1])
    joint_drift = check.joint
    lines = [f"n/a ({reason}): {', '.join(names)}" for reason, names in names_by_reason.items()]
    lines += [
        f"Jointly: energy coefficient {format_number(joint_drift.energy.value)}, 95 % of shuffles"
        f" up to {format_number(joint_drift.energy.null_hi)}, p"
        f" {format_number(joint_drift.energy.p)}"
        + (f"; {joint_drift.reason}" if joint_drift.reason else ""),
        _quality_line(check.quality),
        f"{'ALERT' if check.alert else 'No alert'}. {check.reason}",
    ]
    if drift_state(check) == "unclear":
        doubts = "; ".join(drift_doubts(check))
        lines.append(f"This does not show that nothing drifted: {doubts}.")
    if uncompared := uncompared_text(check):
        lines.append(uncompared)
    print_lines(console, [*lines, *filter(None, (check.suggestion, reaudit_line))])


def _quality_line(quality: CalibratorQuality) -> str:
    """Return the sentence on Brier and ECE of the labels that were given since the fit."""
    from cotlab.figures.style import format_number, interval_text

    if quality.brier is None or quality.ece is None:
        return f"Brier and ECE since the fit: n/a ({quality.reason})"
    brier_text, ece_text = (
        interval_text(estimate["point"], estimate["lo"], estimate["hi"])
        for estimate in (quality.brier, quality.ece)
    )
    fit_text = f"at the fit {format_number(quality.fitted)}"
    if quality.is_worse:
        fit_text += ", worse than at the fit"
    line = (
        f"Since calibrator {quality.version} was fitted, n = {quality.n}: Brier {brier_text}"
        f" ({fit_text}), ECE {ece_text}"
    )
    if quality.band is not None:
        low, high = map(format_number, quality.band)
        line += f"; perfectly calibrated [{low}, {high}]"
    return line


_COLUMNS = (
    *("feature", "n ref.", "n cur."),
    *("PSI", "95 % null", "BH p", "KS", "95 % null ", "BH p ", "KL", ""),
)
