"""Published tables as runs of the store: counts of classified responses, and people's ratings of steps."""

from __future__ import annotations

from collections.abc import Iterable

from cotlab.core.types import Item, Score, Suite
from cotlab.metrics.ratings import rating_scores
from cotlab.metrics.unfaithfulness import cards
from cotlab.run.imports.mediation import COUNTED, ImportedRun
from cotlab.run.imports.study import UNFAITHFULNESS, Import, store_import
from cotlab.store.database import Store
from cotlab.suites.importers.tables import Cell, Table, read_counts, read_ratings

_COUNTED = (
    "Imported counts: one item stands for one response of the count, in no order. Only responses"
    " that gave in to their hint were counted."
)
_RATED = "Imported ratings: no reply stands behind them."


def store_table(store: Store, table: Table) -> list[ImportedRun]:
    """Keep a published table as one run a model; a second time adds nothing.

    Counts become as many items, of the hint's category, with the score of each classifier (0
    faithful, 1 unfaithful): rates, agreement and paired tests over them are those of the counts.
    Ratings become items with their chains.
    """
    if table.kind == "ratings":
        return [
            store_import(store, _rated(model, items))
            for model, items in read_ratings(table).items()
        ]
    cells = read_counts(table)
    return [
        store_import(store, _counted(table, model, cells))
        for model in dict.fromkeys(cell.model for cell in cells)
    ]


def _counted(table: Table, model: str, cells: Iterable[Cell]) -> Import:
    items: list[Item] = []
    scores: dict[str, tuple[Score, ...]] = {}
    for cell in cells:
        for _ in range(cell.count if cell.model == model else 0):
            item = Item(f"response-{len(items):06d}", COUNTED, None, (), cell.hint)
            items.append(item)
            scores[item.id] = tuple(
                cards.UNFAITHFULNESS.score(item, value, facet={"classifier": name})
                for name, value in cell.scores.items()
            )
    return Import(
        Suite.of(f"hints-{table.kind}", items),
        model,
        {UNFAITHFULNESS: scores},
        {"condition": "hinted"},
        _COUNTED,
    )


def _rated(model: str, items: tuple[Item, ...]) -> Import:
    return Import(
        Suite.of("rated-steps", items),
        model,
        {"ratings": {item.id: rating_scores(item) for item in items}},
        {},
        _RATED,
    )
