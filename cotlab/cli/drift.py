"""``cotlab drift``: are today's items still like those that the calibrator saw?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cotlab.cli.who import who

if TYPE_CHECKING:
    from cotlab.review.release.drift import DriftCheck

ALERT = 1


def drift(
    reference: Annotated[str, typer.Argument(help="The run that the calibrator saw; several ids joined by commas.")],
    current: Annotated[list[str], typer.Argument(help="The runs that are held against it.")],
    feature: Annotated[Optional[list[str]], typer.Option(help="Only this feature, as C or r_raw; repeatable.")] = None,
    ks: Annotated[float, typer.Option(help="A KS distance that matters, 0 to 1.")] = 0.2,
    psi: Annotated[float, typer.Option(help="A PSI that matters, in nats.")] = 0.2,
    alpha: Annotated[float, typer.Option(help="Of features that are called moved, the share that may be so by chance.")] = 0.05,
    permutations: Annotated[int, typer.Option(min=1, help="Shuffles that the null is made of.")] = 1999,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the shuffles and of the re-audit sample.")] = 42,
    over: Annotated[Optional[str], typer.Option(help="One check for each value of this tag, or `time`: one a run.")] = None,
    audit: Annotated[int, typer.Option(min=0, help="On an alert, queue so many released items to be looked at again.")] = 20,
    by: Annotated[Optional[str], typer.Option(help="Who asks; kept with the check.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Hold runs against a reference, feature by feature and jointly; keep what was found. Exit code 1 on an alert."""
    from cotlab.core.keys import canonical_json
    from cotlab.review.release.drift import as_json, keep, measure, series
    from cotlab.review.release.reaudit import NothingReleased, reaudit
    from cotlab.store.database import Store

    store, asks = Store(), who(by)
    runs = [run for run in (one.strip() for one in reference.split(",")) if run]
    parts = series(store, current, over) if over else [("", tuple(current))]
    checks = [
        measure(store, runs, part, features=feature or (), ks=ks, psi=psi, alpha=alpha, permutations=permutations, seed=seed,
                by=asks, label=label)
        for label, part in parts
    ]  # fmt: skip
    told = []
    for check in checks:
        keep(store, check)
        line = ""
        if check.alert and audit:
            try:
                queue, n = reaudit(store, check.current, audit, by=asks, seed=seed)
                line = f"Re-audit: {n} released items, drawn at random, wait in {queue}."
            except NothingReleased as error:
                line = f"Re-audit: {error}"
        told.append(line)
    if json:
        found = [as_json(check) | {"reaudit": line or None} for check, line in zip(checks, told, strict=True)]
        sys.stdout.write(canonical_json(found if over else found[0]) + "\n")
    else:
        for check, line in zip(checks, told, strict=True):
            _show(check, line)
    if any(check.alert for check in checks):
        raise typer.Exit(ALERT)


def _show(check: DriftCheck, reaudit: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.figures.style import interval_text, number

    console = Console(width=None if sys.stdout.isatty() else 160)
    title = f"{', '.join(check.current)} against {', '.join(check.reference)}" + (f" ({check.label})" if check.label else "")
    table = Table(title=Text(title), title_justify="left")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("feature", "") else "right", overflow="fold")
    for one in check.features:
        d = one.drift
        if d.reason:
            continue
        table.add_row(
            *map(Text, (
                one.name, str(d.n_reference), str(d.n_current), number(d.psi.value), number(d.psi.null_hi),
                number(one.psi_adjusted), number(d.ks.value), number(d.ks.null_hi), number(one.ks_adjusted),
                number(d.kl.value), "moved" if one.alert else "",
            ))
        )  # fmt: skip
    console.print(table)
    gone: dict[str, list[str]] = {}
    for one in check.features:
        if one.drift.reason:
            gone.setdefault(one.drift.reason, []).append(one.name)
    lines = [f"n/a ({reason}): {', '.join(names)}" for reason, names in gone.items()]
    joint = check.joint
    lines.append(
        f"Jointly: energy coefficient {number(joint.energy.value)}, 95 % of shuffles up to {number(joint.energy.null_hi)}, "
        f"p {number(joint.energy.p)}" + (f"; {joint.reason}" if joint.reason else "")
    )
    told = check.quality
    if told.brier is not None and told.ece is not None:
        brier, ece = ([held[key] for key in ("point", "lo", "hi")] for held in (told.brier, told.ece))
        band = "" if told.band is None else f"; perfectly calibrated [{number(told.band[0])}, {number(told.band[1])}]"
        worse = ", worse than at the fit" if told.worse else ""
        lines.append(
            f"Since calibrator {told.version} was fitted, n = {told.n}: Brier {interval_text(*brier)} (at the fit "
            f"{number(told.fitted)}{worse}), ECE {interval_text(*ece)}{band}"
        )
    else:
        lines.append(f"Brier and ECE since the fit: n/a ({told.reason})")
    lines.append(f"{'ALERT' if check.alert else 'No alert'}. {check.reason}")
    lines += [line for line in (check.suggestion, reaudit) if line]
    for line in lines:
        console.print(Text(line))


_COLUMNS = ("feature", "n ref.", "n cur.", "PSI", "95 % null", "BH p", "KS", "95 % null ", "BH p ", "KL", "")
