"""``cotlab suites``: check a suite, make the organisms' own, divide one, import other formats."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from cotlab.cli.commands import Commands
from cotlab.core.errors import UnknownName

if TYPE_CHECKING:
    from cotlab.core.types import Suite

app = Commands(no_args_is_help=True, help="Check, make, divide and import suites.")
MAX_LISTED_DEFECTS = 20


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="A JSONL suite, or the name of a shipped one.")],
    chain: Annotated[
        Literal["own", "auto", "reference"],
        typer.Option(
            help="own: items may lack a reference chain; auto: all may, reference: none may."
        ),
    ] = "auto",
) -> None:
    """Say what is wrong with a suite, line by line, or how much it holds."""
    from cotlab.suites.jsonl import load_suite
    from cotlab.suites.shipped import find_suite

    suite = load_suite(find_suite(path), chain=chain)
    step_counts = [len(item.steps) for item in suite.items]
    print(
        f"{suite.name}: {len(suite.items)} items, {min(step_counts)} to {max(step_counts)} steps,"
        f" digest {suite.digest}"
    )


@app.command()
def make(
    name: Annotated[str, typer.Argument(help="What to make: wordproblems or operations.")],
    output: Annotated[Path, typer.Option(help="File to write.")],
    items: Annotated[int, typer.Option(help="How many items.", min=1, max=100_000)] = 300,
    seed: Annotated[int, typer.Option(help="Another seed, other items.", min=0)] = 0,
) -> None:
    """Write a generated suite: fresh items in the organisms' language.

    Both have the same questions: the chains of wordproblems restate the total in every step, those
    of operations state only what changes it.
    """
    from cotlab.suites.operations import make_operations_suite
    from cotlab.suites.wordproblems import make_suite

    make_by_name: dict[str, Callable[..., Suite]] = {
        "wordproblems": make_suite,
        "operations": make_operations_suite,
    }
    if name not in make_by_name:
        raise UnknownName("generator", name, tuple(make_by_name))
    _write_and_print(make_by_name[name](items, seed), output)


@app.command()
def split(
    path: Annotated[str, typer.Argument(help="A JSONL suite, or the name of a shipped one.")],
    first: Annotated[Path, typer.Option(help="File for the first part.")],
    second: Annotated[Path, typer.Option(help="File for the rest.")],
    share: Annotated[float, typer.Option(help="Share of the questions in the first part.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Another seed, another division.", min=0)] = 0,
) -> None:
    """Divide a suite in two by question: fit on one part, and test on the other."""
    from cotlab.core.errors import ConfigError
    from cotlab.suites.jsonl import load_suite
    from cotlab.suites.shipped import find_suite
    from cotlab.suites.split import split_by_question

    try:
        suites = split_by_question(load_suite(find_suite(path), chain="own"), share, seed=seed)
    except ValueError as error:
        raise ConfigError(f"{path} is not divided: {error}") from error
    for suite, output in zip(suites, (first, second), strict=True):
        _write_and_print(suite, output)


@app.command("import")
def import_suite(
    path: Annotated[
        Path,
        typer.Argument(
            help="JSON, JSON Lines, CSV, Parquet, a log of Inspect, or a folder of such files."
        ),
    ],
    output: Annotated[Path, typer.Option(help="The suite to write.")],
    form: Annotated[
        Optional[str],
        typer.Option(
            "--format",
            help="The format, where it is not the one that the file looks like: cotlab, rows,"
            " inspect, gsm8k, math, processbench, prm800k, mr-gsm8k, prmbench, faithcot-bench,"
            " bonafide or lm-eval.",
        ),
    ] = None,
    question: Annotated[
        Optional[str],
        typer.Option(help="Column of the question; a.b is the field b of a, a.0 its first entry."),
    ] = None,
    answer: Annotated[Optional[str], typer.Option(help="Column of the right answer.")] = None,
    options: Annotated[
        Optional[str], typer.Option(help="Column of the options, or A,B,C: one an option.")
    ] = None,
    count_from: Annotated[
        Optional[int],
        typer.Option(help="From where a whole-number answer counts the options.", min=0, max=1),
    ] = None,
    chain: Annotated[Optional[str], typer.Option(help="Column of the chain.")] = None,
    chains: Annotated[
        Optional[str], typer.Option(help="Column of several chains of one question.")
    ] = None,
    model_answer: Annotated[
        Optional[str], typer.Option(help="Column of the model's answer, to keep it.")
    ] = None,
    correct: Annotated[
        Optional[str], typer.Option(help="Column of whether that answer is correct.")
    ] = None,
    id_column: Annotated[
        Optional[str], typer.Option("--id", help="Column of the id (default: the position).")
    ] = None,
    category: Annotated[Optional[str], typer.Option(help="Column of the category.")] = None,
    good_lines: Annotated[
        bool, typer.Option("--good-lines", help="Import the good lines, and name the others.")
    ] = False,
) -> None:
    """Turn a file of any format into a suite.

    Format and columns are those that the file looks like; say what is otherwise. The name "" leaves
    a column out.
    """
    from cotlab.core.errors import SuiteErrors
    from cotlab.suites.importers.door import detect_form
    from cotlab.suites.importers.formats import import_suite_file
    from cotlab.text.steps import split_steps

    named = {
        "question": question,
        "answer": answer,
        "options": options,
        "chain": chain,
        "chains": chains,
        "model_answer": model_answer,
        "correct": correct,
        "id": id_column,
        "category": category,
        "count_from": count_from,
    }
    columns = {role: name for role, name in named.items() if name is not None}
    detected = detect_form(path).corrected(form, columns)
    print(f"{path} is read as {detected.text}")
    n_left_out = 0
    try:
        suite = import_suite_file(detected, path, split=split_steps)
    except SuiteErrors as defects:
        if not good_lines or not defects.n_good_lines:
            raise
        suite = import_suite_file(detected, path, split=split_steps, good_lines=True)
        for text in defects.groups[:MAX_LISTED_DEFECTS]:
            print(f"Left out: {text}", file=sys.stderr)
        n_left_out = len({(error.path, error.line, error.raw) for error in defects.errors})
    _write_and_print(suite, output, n_left_out)


def _write_and_print(suite: Suite, output: Path, n_left_out: int = 0) -> None:
    from cotlab.suites.jsonl import write_suite

    write_suite(suite, output)
    left_out_text = f", {n_left_out} left out" if n_left_out else ""
    print(f"{output}: {len(suite.items)} items{left_out_text}, digest {suite.digest}")
