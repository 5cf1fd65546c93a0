"""``cotlab evaluate``: which signals tell on labelled chains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cotlab.cli.commands import Command
from cotlab.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from cotlab.analysis.evaluation.results import Evaluation, SignalResult, TargetResult

RUN_OPTIONS = ("--fit", "--test")
"""Options that take several runs, as ``--fit A B`` or ``--fit A --fit B``."""
MAX_ROWS = 20
"""Most signals listed for a target without --all."""


class EvaluateCommand(Command):
    """The command, with options that take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        repeated: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in RUN_OPTIONS else ""
            elif option and repeated[-1] != option:
                repeated.append(option)
            repeated.append(arg)
        return super().parse_args(ctx, repeated)


def evaluate_command(
    run: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="RUN…", help="Runs with labelled chains; those on one suite are joined by item."
        ),
    ] = None,
    fit: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="RUN…",
            help="Fit combined features and the hazard of a mistake on the labels of these runs.",
        ),
    ] = None,
    test: Annotated[
        Optional[list[str]],
        typer.Option(metavar="RUN…", help="Report the fits, and all metrics, on these runs alone."),
    ] = None,
    domain_intercepts: Annotated[
        bool,
        typer.Option("--domain-intercepts", help="Give each domain an intercept in every fit."),
    ] = False,
    target: Annotated[
        Optional[list[str]],
        typer.Option(
            help=(
                "chain_sound (T1), chain_sound_given_correct (T2), answer_and_chain or faithful;"
                " repeatable. All that have labels by default."
            )
        ),
    ] = None,
    metric: Annotated[
        Optional[list[str]],
        typer.Option(help="Only metrics whose name starts so; repeatable. Baselines stay."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the resampling and of `random`.")
    ] = 0,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"List every signal, not only the first {MAX_ROWS}.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compare every stored metric of runs with the labels of their chains. Nothing is asked."""
    from cotlab.analysis.evaluation.measure import evaluate_runs
    from cotlab.analysis.evaluation.results import evaluation_json
    from cotlab.cli.screen import open_console
    from cotlab.core.errors import ConfigError
    from cotlab.review.labelling.truth import TARGETS
    from cotlab.store.database import Store

    targets, metrics = target or tuple(TARGETS), metric or ()
    if fit and test and not run:
        from cotlab.analysis.evaluation.held_out import evaluate_fit

        evaluation = evaluate_fit(
            Store(),
            fit,
            test,
            targets=targets,
            metrics=metrics,
            domain_intercepts=domain_intercepts,
            seed=seed,
        )
    elif run and not (fit or test or domain_intercepts):
        evaluation = evaluate_runs(Store(), run, targets=targets, metrics=metrics, seed=seed)
    else:
        raise ConfigError("give RUN… alone, or both --fit RUN… and --test RUN…")
    if json:
        print_json(evaluation_json(evaluation))
    else:
        _print_evaluation(open_console(200), evaluation, show_all)


def _print_evaluation(console: Console, evaluation: Evaluation, show_all: bool) -> None:
    from cotlab.cli.screen import print_lines, print_table

    for result in evaluation.targets:
        for columns, rows, note in _target_tables(result, None if show_all else MAX_ROWS):
            if rows:
                print_table(console, columns, rows, title=result.target)
                print_lines(console, [note] if note else [])
        n_hidden = 0 if show_all else len(result.signals) - MAX_ROWS
        if n_hidden > 0:
            console.print(f"{n_hidden} more with a lower AUROC, or undefined: --all lists them.")
    left_out = (f"{name} is not evaluated: {why}." for name, why in evaluation.left_out.items())
    print_lines(console, [*left_out, *evaluation.notes])


Tables = Iterator[tuple[tuple[str, ...], list[tuple[str, ...]], str]]


def _target_tables(result: TargetResult, n_rows: int | None) -> Tables:
    """Yield columns, rows and note of each table on a target; of long ones the first rows."""
    from cotlab.analysis.evaluation.results import auroc_text, headline
    from cotlab.core.text_safety import printable_line

    def difference_texts(signal: SignalResult, names: tuple[str, ...]) -> list[str]:
        found = signal.differences
        return [auroc_text(found[n], signed=True) if n in found else "" for n in names]

    signals = result.signals[:n_rows]
    yield (
        ("metric", "AUROC", "over length", "over answer", "TPR 1 %", "TPR 5 %")
        + ("n", "undefined", "what it says"),
        [
            (
                printable_line(signal.name),
                auroc_text(signal.auroc),
                *difference_texts(signal, ("length", "answer_correct")),
                *(auroc_text(signal.measures[name]) for name in ("tpr_at_1", "tpr_at_5")),
                *map(str, (signal.n, signal.n_undefined)),
                f"{signal.verdict}, lower is sounder" if signal.is_flipped else signal.verdict,
            )
            for signal in signals
        ],
        f"{printable_line(headline(result))}\n{result.what}. {result.n} chains of"
        f" {result.n_questions} questions; {result.n_false} to be found. AUROC .5 is chance. TPR:"
        " share of those found where 1 % or 5 % of the others are flagged too.",
    )
    yield (
        ("probability", "Brier", "ECE", "AUROC over length", "over length + answer"),
        [
            (
                signal.name,
                *(auroc_text(signal.calibration[name]) for name in ("brier", "ece")),
                *difference_texts(signal, ("length only", "length + answer")),
            )
            for signal in signals
            if signal.calibration
        ],
        "",
    )
    yield (
        ("first wrong step", "exact", "none right", "PB-F1", "difference", "n", "undefined"),
        [
            (
                printable_line(location.name),
                *map(auroc_text, (location.measures.exact, location.measures.none_right)),
                auroc_text(location.measures.pb_f1),
                ", ".join(
                    f"{auroc_text(difference, signed=True)} against {name}"
                    for name, difference in location.differences.items()
                ),
                *map(str, (location.n, location.n_undefined)),
            )
            for location in result.locations
        ],
        "PB-F1: harmonic mean of both shares, averaged over the domains that have both kinds of"
        " chain.",
    )
    yield (
        ("metric", "run", "other run", "AUROC", "its AUROC", "difference", "n", "the same"),
        [
            (
                *map(printable_line, (row.signal, row.first, row.second)),
                *map(auroc_text, (row.first_auroc, row.second_auroc)),
                auroc_text(row.difference, signed=True),
                str(row.difference.n),
                "chains" if row.is_same_chains else "questions",
            )
            for row in result.run_differences[:n_rows]
        ],
        "AUROC of the other run minus that of the run; n counts questions.",
    )
