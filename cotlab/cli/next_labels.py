"""``cotlab next-labels``: which items to label next, and a queue of them."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from cotlab.cli.who import acting_user


def next_labels_command(
    run: Annotated[list[str], typer.Argument(help="Runs whose items may be asked for.")],
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="How many items.")] = 20,
    epsilon: Annotated[float, typer.Option(help="How near to a threshold r_cal must be.")] = 0.1,
    threshold: Annotated[
        Optional[list[float]], typer.Option(help="Instead of the policy's thresholds; repeatable.")
    ] = None,
    unscored: Annotated[
        float, typer.Option(min=0, max=1, help="The share for items without r_cal.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    queue: Annotated[Optional[str], typer.Option(help="Make a queue of this name.")] = None,
    by: Annotated[Optional[str], typer.Option(help="Who makes the queue.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Choose unlabelled items near the decision boundary that differ from each other."""
    from cotlab.core.errors import ConfigError
    from cotlab.core.keys import canonical_json
    from cotlab.review.labelling.acquisition import queue_selection, select_items_to_label
    from cotlab.store.database import Store

    if not 0 < epsilon <= 1 or not all(0 <= value <= 1 for value in threshold or ()):
        raise ConfigError("--epsilon lies above 0 and up to 1, --threshold in [0, 1]")
    store = Store()
    selection = select_items_to_label(
        store, run, k, epsilon=epsilon, thresholds=threshold or (), unscored=unscored, seed=seed
    )
    queue_id = queue_selection(store, selection, queue, by=acting_user(by)) if queue else None
    rows = [
        {**row, "r_cal": None if row["r_cal"] != row["r_cal"] else row["r_cal"]}
        for row in selection.items.to_dict("records")
    ]
    if json:
        output = {
            "items": rows,
            "thresholds": list(selection.thresholds),
            "epsilon": selection.epsilon,
            "near": selection.near,
            "said": selection.note,
            "queue": queue_id,
        }
        sys.stdout.write(canonical_json(output) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.figures.style import format_number

    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table()
    for name in ("run", "item", "r_cal", "why"):
        table.add_column(name, justify="right" if name == "r_cal" else "left", overflow="fold")
    for row in rows:
        table.add_row(
            *map(
                Text,
                (
                    str(row["run"]),
                    str(row["item_id"]),
                    format_number(row["r_cal"]),
                    str(row["why"]),
                ),
            )
        )
    console.print(table)
    near = ", ".join(f"{value:g}" for value in selection.thresholds)
    console.print(
        Text(f"{selection.near} unlabelled items lie within {selection.epsilon:.2g} of {near}.")
    )
    if selection.note:
        console.print(Text(f"Note: {selection.note}."))
    if queue_id:
        console.print(Text(f"Queue {queue_id}: label it on the page Label."))
