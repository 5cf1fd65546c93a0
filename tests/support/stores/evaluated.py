"""Stores of labelled chains with metrics of known worth: one ranks the chains perfectly, one by
chance, one the wrong way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, MetricCard, Score, Step, Suite
from cotlab.store.database import Store
from cotlab.store.write import EndedItem
from tests.support import stores

N_CHAINS, N_STEPS = 60, 4
FIRST_MISTAKE_STEP: MetricCard = next(
    card for card in SCORERS["verification"].cards if card.name == "first_mistake_step"
)
DOMAINS = ("algebra", "geometry")


def is_sound(k: int) -> bool:
    """Two of three chains."""
    return k % 3 != 0


def is_right(k: int) -> bool:
    """Every answer of a sound chain, and that of half of the faulty ones."""
    return is_sound(k) or (k // 3) % 4 < 2


def suite(name: str = "judged", n: int = N_CHAINS, *, sound: Sequence[bool] | None = None) -> Suite:
    """Chains whose first mistake, if any, is in step k mod 4; faulty ones are longer."""
    items = []
    for k in range(n):
        good = is_sound(k) if sound is None else sound[k]
        steps = tuple(Step(i, "x" * (10 + k % 7 + (not good))) for i in range(N_STEPS))
        meta = {"first_mistake": None if good else k % N_STEPS, "answer_correct": is_right(k)}
        items.append(Item(f"i{k:03}", f"{name} {k}?", "1", steps, DOMAINS[k % 2], meta))
    return Suite.from_items(name, items)


def values(kind: str, n: int = N_CHAINS, seed: int = 0) -> list[float | None]:
    """Scores in [0, 1]: ``perfect``, ``weak``, ``chance``, ``constant`` or ``missing``."""
    rng = np.random.default_rng(seed)
    noise = rng.random(n)
    sound = np.array([is_sound(k) for k in range(n)])
    table: Mapping[str, Sequence[float | None]] = {
        "perfect": list(0.5 * sound + 0.5 * noise),
        "weak": list(0.2 * sound + 0.8 * noise),
        "chance": list(noise),
        "constant": [0.5] * n,
        "missing": [None] * n,
    }
    return [None if value is None else float(value) for value in table[kind]]


def add_run(
    store: Store,
    run: str,
    suite: Suite,
    metrics: Mapping[str, Sequence[float | None]],
    *,
    facet: Mapping[str, str] | None = None,
    named_steps: Sequence[int | None] = (),
    own_chains: bool = False,
) -> None:
    """A run of the scorer ``verification`` with these values an item; None is undefined.

    ``named_steps``: the step that it names first, -1 for none, None for no result.
    """
    pairs = tuple(sorted({**(facet or {}), **({"chain": "own"} if own_chains else {})}.items()))
    ended = []
    for k, item in enumerate(suite.items):
        scores = [_score(name, item, column[k], pairs) for name, column in metrics.items()]
        if named_steps:
            scores.append(_named_step(item, named_steps[k], dict(pairs)))
        ended.append(EndedItem("verification", 1, "p", item.id, tuple(scores)))
    stores.add_run(store, run, suite, ended, scorers=("verification",))


def _score(name: str, item: Item, value: float | None, pairs: tuple[tuple[str, str], ...]) -> Score:
    if value is not None:
        return Score(name, item.id, value, facet=pairs)
    reason = "not measured"
    return Score(name, item.id, None, facet=pairs, status="undefined", reason=reason)


def _named_step(item: Item, step: int | None, facet: Mapping[str, str]) -> Score:
    if step is not None and step >= 0:
        return FIRST_MISTAKE_STEP.score(item, step, facet=facet)
    reason = FIRST_MISTAKE_STEP.none_reason if step == -1 else "no verifier applies"
    return FIRST_MISTAKE_STEP.score(item, None, facet=facet, reason=reason)
