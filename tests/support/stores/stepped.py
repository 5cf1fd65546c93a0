"""A store whose chains have labelled first mistakes, which their equations show or do not."""

from __future__ import annotations

import numpy as np

from cotlab.core.types import Item, Score, Step, Suite
from cotlab.metrics.verification import FIRST_MISTAKE
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from tests.support.stores import add_run


def fill_stepped(
    store: Store,
    run: str = "run-1",
    *,
    n: int = 160,
    visible: float = 0.9,
    seed: int = 0,
    category: str = "sums",
    recall: float | None = None,
) -> Suite:
    """Half of the chains have a mistake; ``visible`` of the mistakes are a false equation.

    With ``recall`` a metric names that share of the mistakes, and a step of one in ten chains
    without a mistake.
    """
    rng = np.random.default_rng(seed)
    items, ended = [], []
    for number in range(n):
        n_steps, total = int(rng.integers(3, 7)), int(rng.integers(2, 20))
        mistake = int(rng.integers(0, n_steps)) if number % 2 else None
        question = f"Ann has {total} coins and gets some more, {number} times. How many has she?"
        texts = []
        for step in range(n_steps):
            more = int(rng.integers(2, 30))
            is_false = step == mistake and rng.random() < visible
            texts.append(f"She gets {more}: {total} + {more} = {total + more + is_false}.")
            total += more + is_false
        steps = tuple(Step(i, text) for i, text in enumerate(texts))
        meta = {"first_mistake": mistake, "answer_correct": mistake is None}
        items.append(Item(f"i{number}", question, None, steps, category, meta))
        scores = [Score("flag_rate", f"i{number}", 0.0)]
        if recall is not None:
            is_found = rng.random() < (0.1 if mistake is None else recall)
            named = float(rng.integers(0, n_steps)) if mistake is None else float(mistake)
            scores.append(
                Score("first_mistake_step", f"i{number}", named)
                if is_found
                else Score(
                    "first_mistake_step",
                    f"i{number}",
                    None,
                    status="undefined",
                    reason=FIRST_MISTAKE.none_reason,
                )
            )
        ended.append(EndedItem("flags", 1, "p", f"i{number}", tuple(scores)))
    suite = Suite.from_items("coins", items)
    add_run(store, run, suite, ended, scorers=("flags", "verification"))
    return suite
