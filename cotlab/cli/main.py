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
from cotlab.cli import (
    backup,
    calibrate,
    compare,
    decide,
    doctor,
    drift,
    evaluate,
    exchange,
    first_use,
    labels,
    organisms,
    reports,
    runs,
    search,
    suites,
)
from cotlab.cli.commands import Commands
from cotlab.core.errors import PACKAGES_BY_EXTRA, ConfigError, CotlabError, MissingExtra, StoreError
from cotlab.core.text_safety import printable_line, printable_text
from cotlab.run.secrets import load_secrets

INTERRUPTED_EXIT_CODE = 130
"""Exit code of the command line's package for Ctrl-C; ours is that of an unfinished run."""
_CONFIG_COMMANDS = ("run", "plan", "config")


class _CommandGroup(TyperGroup):
    """The commands of cotlab; those made from the configuration are loaded when they are used.

    Loading the configuration takes longer than many a command.
    """

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name."""
        if "run" not in self._known_commands:
            from cotlab.cli import reference, run

            self._known_commands.update(typer.main.get_group(run.app).commands)
            self._known_commands["config"] = typer.main.get_group(reference.app)
        return self._known_commands

    @commands.setter
    def commands(self, named_commands: MutableMapping[str, Any]) -> None:
        self._known_commands = named_commands

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(dict.fromkeys([*_CONFIG_COMMANDS, *self._known_commands]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name; None where there is none."""
        return self._known_commands.get(cmd_name) or self.commands.get(cmd_name)


app = Commands(
    cls=_CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(first_use.demo_command)
app.command("report")(reports.report_command)
app.command("compare")(compare.compare_command)
app.command("evaluate", cls=evaluate.EvaluateCommand)(evaluate.evaluate_command)
app.command("decide")(decide.decide_command)
app.command("calibrate")(calibrate.calibrate_command)
app.command("tune")(calibrate.tune_command)
app.command("search")(search.search_command)
app.command("figures")(reports.figures_command)
app.command("doctor")(doctor.doctor_command)
app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)
app.command("app")(first_use.app_command)
app.command("validate")(organisms.validate_command)
app.command("drift")(drift.drift_command)
app.command("import")(exchange.import_command)
app.command("export")(exchange.export_command)
app.command("next-labels")(labels.next_labels_command)
app.add_typer(runs.app, name="runs")
app.add_typer(suites.app, name="suites")
app.add_typer(decide.policy_app, name="policy")
app.add_typer(organisms.app, name="organisms")
app.add_typer(labels.app, name="labels")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"cotlab {__version__}")
        raise typer.Exit()


@app.callback(help="Find out whether a model's chain of thought can be trusted.")
def _root_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Accept the options before any command."""


@cache
def build_command() -> Callable[[], object]:
    """Return the command line, built once a process: that takes longer than many a command."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line.

    A CotlabError becomes one message and exit code 2, or 3 where the store is at fault; an error of
    the operating system, such as a full disk, becomes one message and exit code 3. A bug crashes
    loudly with its traceback and exit code 3: 1 is kept for a failed gate.
    """
    sys.excepthook = _exit_with_traceback
    try:
        _validate_encoding(sys.argv[1:])
        load_secrets()
        build_command()()  # not app(): that would replace sys.excepthook
    except CotlabError as error:
        print(f"error: {printable_text(str(error))}", file=sys.stderr)
        sys.exit(3 if isinstance(error, StoreError) else 2)
    except OSError as error:  # a full disk, a file that may not be read
        file_text = f"{printable_line(error.filename)}: " if error.filename else ""
        print(f"error: {file_text}{printable_line(error.strerror or error)}", file=sys.stderr)
        sys.exit(3)
    except ModuleNotFoundError as import_error:
        package = (import_error.name or "").partition(".")[0]
        if not any(package in packages for packages in PACKAGES_BY_EXTRA.values()):
            raise
        print(f"error: {MissingExtra('This command', package)}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as interruption:
        if isinstance(interruption, SystemExit) and interruption.code != INTERRUPTED_EXIT_CODE:
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
    for argument in arguments:
        is_invalid = (
            not argument.isascii() and argument.encode("utf-8", "replace").decode() != argument
        )
        if is_invalid and (len(argument) > 200 or not Path(argument).exists()):
            raise ConfigError(
                f"{ascii(argument)} is not UTF-8 text: type it in a terminal that speaks UTF-8"
            )


def _exit_with_traceback(
    error_type: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    sys.__excepthook__(error_type, error, traceback)
    sys.exit(3)
