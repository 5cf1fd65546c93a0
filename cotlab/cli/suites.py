"""``cotlab suites``: check a suite, make the organisms' own, import other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from cotlab.core.errors import UnknownName

app = typer.Typer(no_args_is_help=True, help="Check, make and import suites.")
KINDS = ("gsm8k", "qa", "inspect")


@app.command()
def check(
    path: Annotated[str, typer.Argument(help="A JSONL suite, or the name of a shipped one.")],
    chain: Annotated[
        str, typer.Option(help="own: items may lack a reference chain.")
    ] = "reference",
) -> None:
    """Say what is wrong with a suite, line by line, or how much it holds."""
    from cotlab.suites.jsonl import load_suite
    from cotlab.suites.shipped import find_suite

    if chain not in ("reference", "own"):
        raise UnknownName("chain", chain, ("reference", "own"))
    suite = load_suite(find_suite(path), chain="own" if chain == "own" else "reference")
    steps = [len(item.steps) for item in suite.items]
    print(
        f"{suite.name}: {len(suite.items)} items, {min(steps)} to {max(steps)} steps, digest"
        f" {suite.digest}"
    )


@app.command()
def make(
    name: Annotated[str, typer.Argument(help="What to make: wordproblems.")],
    output: Annotated[Path, typer.Option(help="File to write.")],
    items: Annotated[int, typer.Option(help="How many items.", min=1, max=100_000)] = 300,
    seed: Annotated[int, typer.Option(help="Another seed, other items.", min=0)] = 0,
) -> None:
    """Write a generated suite: fresh items in the organisms' language."""
    from cotlab.suites.jsonl import write_suite
    from cotlab.suites.wordproblems import make_suite

    if name != "wordproblems":
        raise UnknownName("generator", name, ("wordproblems",))
    suite = make_suite(items, seed)
    write_suite(suite, output)
    print(f"{output}: {len(suite.items)} items, digest {suite.digest}")


@app.command("import")
def import_suite(
    kind: Annotated[str, typer.Argument(help="gsm8k, qa or inspect.")],
    path: Annotated[Path, typer.Argument(help="The file to import.")],
    output: Annotated[Path, typer.Option(help="The suite to write.")],
    question: Annotated[str, typer.Option(help="qa: the question's field.")] = "question",
    chain: Annotated[str, typer.Option(help="qa: the chain's field.")] = "chain",
    answer: Annotated[str, typer.Option(help="qa: the answer's field.")] = "answer",
    id_field: Annotated[
        Optional[str], typer.Option("--id", help="qa: the id's field (default: the line's number).")
    ] = None,
) -> None:
    """Turn another format into a suite."""
    from cotlab.suites.importers import question_answer as importers
    from cotlab.suites.jsonl import write_suite
    from cotlab.text.steps import split_steps

    if kind == "gsm8k":
        suite = importers.import_gsm8k(path)
    elif kind == "qa":
        suite = importers.import_qa(
            path, question=question, chain=chain, answer=answer, id=id_field, split=split_steps
        )
    elif kind == "inspect":
        from cotlab.suites.importers.logs import import_inspect

        suite = import_inspect(path, split=split_steps)
    else:
        raise UnknownName("format", kind, KINDS)
    write_suite(suite, output)
    print(f"{output}: {len(suite.items)} items, digest {suite.digest}")
