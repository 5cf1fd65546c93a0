"""The ``cotlab`` command: what there is to type, and how an error is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

from cotlab import __version__
from cotlab.cli import app as dashboard
from cotlab.cli import (
    calibrate,
    compare,
    decide,
    demo,
    doctor,
    drift,
    figures,
    labels,
    mediation,
    next_labels,
    organisms,
    plan,
    reports,
    run,
    suites,
    unfaithfulness,
    validate,
)
from cotlab.core.errors import EXTRAS, ConfigError, CotlabError, MissingExtra, StoreError
from cotlab.run.secrets import load_secrets

INTERRUPTED = 130
"""What the command line's package makes of Ctrl-C; with us that is a run that could not finish."""
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run_command)
app.command("demo")(demo.demo_command)
app.command("plan")(plan.plan_command)
app.command("report")(reports.report_command)
app.command("runs")(reports.runs_command)
app.command("compare")(compare.compare_command)
app.command("decide")(decide.decide_command)
app.command("calibrate")(calibrate.calibrate_command)
app.command("tune")(calibrate.tune_command)
app.command("figures")(figures.figures_command)
app.command("doctor")(doctor.doctor_command)
app.command("app")(dashboard.app_command)
app.command("validate")(validate.validate_command)
app.command("drift")(drift.drift_command)
app.command("next-labels")(next_labels.next_labels_command)
app.add_typer(suites.app, name="suites")
app.add_typer(decide.policy_app, name="policy")
app.add_typer(organisms.app, name="organisms")
app.add_typer(mediation.app, name="mediation")
app.add_typer(labels.app, name="labels")
app.add_typer(unfaithfulness.app, name="unfaithfulness")


def _version(requested: bool) -> None:
    if requested:
        print(f"cotlab {__version__}")
        raise typer.Exit()


@app.callback(help="Find out whether a model's chain of thought can be trusted.")
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options before any command."""


@cache
def command() -> Callable[[], object]:
    """The command line, put together once a process: reading the options of all commands takes longer than many a command."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line.

    A CotlabError becomes one message and exit code 2, or 3 where the store is at fault. A bug
    crashes loudly with its traceback and exit code 3: 1 is kept for a failed gate.
    """
    sys.excepthook = _crash
    try:
        _validate_encoding(sys.argv[1:])
        load_secrets()
        command()()  # not app(): that would put its own hook in the place of ours
    except CotlabError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, StoreError) else 2)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if not any(package in packages for packages in EXTRAS.values()):
            raise
        print(f"error: {MissingExtra('This command', package)}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        print(
            "interrupted; a run that had begun goes on with: cotlab run --resume RUN",
            file=sys.stderr,
        )
        sys.exit(3)


def _validate_encoding(arguments: Sequence[str]) -> None:
    """Names and reasons are kept as text, so no word may hold bytes that are none; only the name of a file may.

    Raises
    ------
    ConfigError
        If one does.
    """
    for word in arguments:
        odd = not word.isascii() and word.encode("utf-8", "replace").decode() != word
        if odd and (len(word) > 200 or not Path(word).exists()):
            raise ConfigError(
                f"{ascii(word)} is not UTF-8 text: type it in a terminal that speaks UTF-8"
            )


def _crash(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    sys.__excepthook__(kind, error, at)
    sys.exit(3)
