"""The ``cotlab`` command: its subcommands, and how errors are reported."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

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
    organisms,
    published,
    reports,
    suites,
    validate,
)
from cotlab.core.errors import EXTRAS, ConfigError, CotlabError, MissingExtra, StoreError
from cotlab.run.secrets import load_secrets

INTERRUPTED = 130
"""Exit code of the command line's package for Ctrl-C; ours is that of an unfinished run."""
_FROM_CONFIGURATION = ("run", "plan", "config")


class _Commands(TyperGroup):
    """The commands of cotlab; those made from the configuration are loaded when they are used.

    Loading the configuration takes longer than many a command.
    """

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name."""
        if "run" not in self._known:
            from cotlab.cli import reference, run

            self._known.update(typer.main.get_group(run.app).commands)
            self._known["config"] = typer.main.get_group(reference.app)
        return self._known

    @commands.setter
    def commands(self, known: MutableMapping[str, Any]) -> None:
        self._known = known

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(dict.fromkeys([*_FROM_CONFIGURATION, *self._known]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name; None where there is none."""
        return self._known.get(cmd_name) or self.commands.get(cmd_name)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo_command)
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
app.command("next-labels")(labels.next_labels_command)
app.add_typer(suites.app, name="suites")
app.add_typer(decide.policy_app, name="policy")
app.add_typer(organisms.app, name="organisms")
app.add_typer(published.mediation_app, name="mediation")
app.add_typer(labels.app, name="labels")
app.add_typer(published.unfaithfulness_app, name="unfaithfulness")


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
    """Accept the options before any command."""


@cache
def command() -> Callable[[], object]:
    """Return the command line, built once a process: that takes longer than many a command."""
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
    """Refuse arguments that are not text, unless they name a file: names and reasons are stored.

    Raises
    ------
    ConfigError
        If an argument is not UTF-8.
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
