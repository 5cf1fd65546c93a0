"""``cotlab drift``: are today's items still like those that the calibrator saw?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.cli.who import acting_user

if TYPE_CHECKING:
    from cotlab.review.release.drift_check import DriftCheck

ALERT = 1


def drift_command(
    reference: Annotated[
        str, typer.Argument(help="The run that the calibrator saw; several ids joined by commas.")
    ],
    current: Annotated[list[str], typer.Argument(help="The runs that are held against it.")],
    feature: Annotated[
        Optional[list[str]], typer.Option(help="Only this feature, as C or r_raw; repeatable.")
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
        Optional[str],
        typer.Option(help="One check for each value of this tag, or `time`: one a run."),
    ] = None,
    audit: Annotated[
        int,
        typer.Option(
            min=0, help="On an alert, queue so many released items to be looked at again."
        ),
    ] = 20,
    by: Annotated[Optional[str], typer.Option(help="Who asks; kept with the check.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Hold runs against a reference, feature by feature and jointly; keep what was found. Exit code 1 on an alert."""
    from cotlab.core.keys import canonical_json
    from cotlab.review.release.drift import drift_series, measure_drift
    from cotlab.review.release.drift_check import drift_json, store_drift_check
    from cotlab.review.release.reaudit import NothingReleased, reaudit
    from cotlab.store.database import Store

    store, requester = Store(), acting_user(by)
    runs = [run for run in (name.strip() for name in reference.split(",")) if run]
    groups = drift_series(store, current, over) if over else [("", tuple(current))]
    checks = [
        measure_drift(
            store,
            runs,
            part,
            features=feature or (),
            ks=ks,
            psi=psi,
            alpha=alpha,
            permutations=permutations,
            seed=seed,
            by=requester,
            label=label,
        )
        for label, part in groups
    ]
    audit_lines = []
    for check in checks:
        store_drift_check(store, check)
        line = ""
        if check.alert and audit:
            try:
                queue, n = reaudit(store, check.current, audit, by=requester, seed=seed)
                line = f"Re-audit: {n} released items, drawn at random, wait in {queue}."
            except NothingReleased as error:
                line = f"Re-audit: {error}"
        audit_lines.append(line)
    if json:
        reports = [
            drift_json(check) | {"reaudit": line or None}
            for check, line in zip(checks, audit_lines, strict=True)
        ]
        sys.stdout.write(canonical_json(reports if over else reports[0]) + "\n")
    else:
        for check, line in zip(checks, audit_lines, strict=True):
            _print_check(check, line)
    if any(check.alert for check in checks):
        raise typer.Exit(ALERT)


def _print_check(check: DriftCheck, reaudit: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.figures.style import format_number, interval_text

    console = Console(width=None if sys.stdout.isatty() else 160)
    title = f"{', '.join(check.current)} against {', '.join(check.reference)}" + (
        f" ({check.label})" if check.label else ""
    )
    table = Table(title=Text(title), title_justify="left")
    for name in _COLUMNS:
        table.add_column(
            name, justify="left" if name in ("feature", "") else "right", overflow="fold"
        )
    for feature in check.features:
        d = feature.drift
        if d.reason:
            continue
        table.add_row(
            *map(
                Text,
                (
                    feature.name,
                    str(d.n_reference),
                    str(d.n_current),
                    format_number(d.psi.value),
                    format_number(d.psi.null_hi),
                    format_number(feature.psi_adjusted),
                    format_number(d.ks.value),
                    format_number(d.ks.null_hi),
                    format_number(feature.ks_adjusted),
                    format_number(d.kl.value),
                    "moved" if feature.alert else "",
                ),
            )
        )
    console.print(table)
    gone: dict[str, list[str]] = {}
    for feature in check.features:
        if feature.drift.reason:
            gone.setdefault(feature.drift.reason, []).append(feature.name)
    lines = [f"n/a ({reason}): {', '.join(names)}" for reason, names in gone.items()]
    joint = check.joint
    lines.append(
        f"Jointly: energy coefficient {format_number(joint.energy.value)}, 95 % of shuffles up to"
        f" {format_number(joint.energy.null_hi)}, p {format_number(joint.energy.p)}"
        + (f"; {joint.reason}" if joint.reason else "")
    )
    quality = check.quality
    if quality.brier is not None and quality.ece is not None:
        brier, ece = (
            [estimate[key] for key in ("point", "lo", "hi")]
            for estimate in (quality.brier, quality.ece)
        )
        band = (
            ""
            if quality.band is None
            else (
                f"; perfectly calibrated [{format_number(quality.band[0])},"
                f" {format_number(quality.band[1])}]"
            )
        )
        worse = ", worse than at the fit" if quality.worse else ""
        lines.append(
            f"Since calibrator {quality.version} was fitted, n = {quality.n}: Brier"
            f" {interval_text(*brier)} (at the fit {format_number(quality.fitted)}{worse}), ECE"
            f" {interval_text(*ece)}{band}"
        )
    else:
        lines.append(f"Brier and ECE since the fit: n/a ({quality.reason})")
    lines.append(f"{'ALERT' if check.alert else 'No alert'}. {check.reason}")
    lines += [line for line in (check.suggestion, reaudit) if line]
    for line in lines:
        console.print(Text(line))


_COLUMNS = (
    "feature",
    "n ref.",
    "n cur.",
    "PSI",
    "95 % null",
    "BH p",
    "KS",
    "95 % null ",
    "BH p ",
    "KL",
    "",
)
