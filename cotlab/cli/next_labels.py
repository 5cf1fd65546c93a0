"""``cotlab next-labels``: which items to label next, and a queue of them."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from cotlab.cli.who import who


def next_labels(
    run: Annotated[list[str], typer.Argument(help="Runs whose items may be asked for.")],
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="How many items.")] = 20,
    epsilon: Annotated[float, typer.Option(help="How near to a threshold r_cal must be.")] = 0.1,
    threshold: Annotated[Optional[list[float]], typer.Option(help="Instead of the policy's thresholds; repeatable.")] = None,
    unscored: Annotated[float, typer.Option(min=0, max=1, help="The share for items without r_cal.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    queue: Annotated[Optional[str], typer.Option(help="Make a queue of this name.")] = None,
    by: Annotated[Optional[str], typer.Option(help="Who makes the queue.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Choose unlabelled items near the decision boundary that differ from each other."""
    from cotlab.core.errors import ConfigError
    from cotlab.core.keys import canonical_json
    from cotlab.review.labelling.acquisition import queue_of, wanted
    from cotlab.store.database import Store

    if not 0 < epsilon <= 1 or not all(0 <= one <= 1 for one in threshold or ()):
        raise ConfigError("--epsilon lies above 0 and up to 1, --threshold in [0, 1]")
    store = Store()
    found = wanted(store, run, k, epsilon=epsilon, thresholds=threshold or (), unscored=unscored, seed=seed)
    made = queue_of(store, found, queue, by=who(by)) if queue else None
    rows = [{**row, "r_cal": None if row["r_cal"] != row["r_cal"] else row["r_cal"]} for row in found.items.to_dict("records")]
    if json:
        told = {"items": rows, "thresholds": list(found.thresholds), "epsilon": found.epsilon, "near": found.near,
                "said": found.said, "queue": made}  # fmt: skip
        sys.stdout.write(canonical_json(told) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from cotlab.figures.style import number

    console = Console(width=None if sys.stdout.isatty() else 140)
    table = Table()
    for name in ("run", "item", "r_cal", "why"):
        table.add_column(name, justify="right" if name == "r_cal" else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, (str(row["run"]), str(row["item_id"]), number(row["r_cal"]), str(row["why"]))))
    console.print(table)
    near = ", ".join(f"{one:g}" for one in found.thresholds)
    console.print(Text(f"{found.near} unlabelled items lie within {found.epsilon:.2g} of {near}."))
    if found.said:
        console.print(Text(f"Note: {found.said}."))
    if made:
        console.print(Text(f"Queue {made}: label it on the page Label."))
