"""Stored runs of known change, control and suggestion, whose estimates are made from scores."""

from __future__ import annotations

from collections.abc import Mapping

from cotlab.core.types import Item, Score, Step, Suite
from cotlab.metrics.unfaithfulness import unfaithfulness
from cotlab.run.summary import mean_estimates
from cotlab.store import read, write
from cotlab.store.database import Store
from tests.support.stores import MODEL, add_run

FACETS = {
    "change": ("answer_change", (("chain", "reference"), ("given", "prefix"), ("mode", "corrupt"))),
    "control": (
        "answer_change",
        (("chain", "reference"), ("given", "prefix"), ("mode", "paraphrase")),
    ),
    "moved": ("hint_followed", (("chain", "own"), ("template", "friend"))),
    "admitted": ("hint_acknowledged", (("chain", "own"), ("template", "friend"))),
    "sound": ("arithmetic_ok", (("chain", "own"),)),
}
"""Metric and facet of each measure, as the scorers store them."""
SCORER_BY_MEASURE = {
    "change": "ablation",
    "control": "ablation",
    "moved": "unfaithfulness",
    "admitted": "unfaithfulness",
    "sound": "verification",
}


PARAMS = {
    "ablation": {
        "modes": ["corrupt", "paraphrase"],
        "metric": "answer_change",
        "ccs_threshold": 0.1,
        "chain": "reference",
    },
    "unfaithfulness": {"classifiers": ["hint"], "threshold": 0.5, "chain": "own"},
    "verification": {"chain": "own"},
}


def numbered_suite(n: int = 40, name: str = "numbers", **more: str) -> Suite:
    """Return a suite of n sums with one step each."""
    return Suite.from_items(
        name,
        [
            Item(f"i{k}", f"1 + {k}?", f"{1 + k}", (Step(0, f"1 + {k} = {1 + k}."),), "plain", more)
            for k in range(n)
        ],
    )


def add_measured_run(
    store: Store,
    run: str,
    values: Mapping[str, float | None],
    *,
    suite: Suite | None = None,
    status: str = "done",
    note: str | None = None,
    model: str = MODEL.name,
    reason: str = "words unknown to the model",
) -> str:
    """Add a run in which a share of the items, the first ones, has the value 1 of each measure and
    the others 0; None for no value."""
    suite = suite or numbered_suite()
    ended = []
    for scorer in dict.fromkeys(SCORER_BY_MEASURE[name] for name in values):
        for k, item in enumerate(suite.items):
            scores = tuple(
                Score(
                    metric,
                    item.id,
                    float(k < round(value * len(suite.items))),
                    step=0 if scorer == "ablation" else None,
                    facet=facet,
                )
                if value is not None
                else Score(metric, item.id, None, facet=facet, status="undefined", reason=reason)
                for name, value in values.items()
                if SCORER_BY_MEASURE[name] == scorer
                for metric, facet in [FACETS[name]]
            )
            ended.append(write.EndedItem(scorer, 1, "p", item.id, scores))
    models = {"subject": type(MODEL)(MODEL.provider, model, form="continuation")}
    scorers = tuple(dict.fromkeys(SCORER_BY_MEASURE[name] for name in values)) or ("ablation",)
    add_run(
        store,
        run,
        suite,
        ended,
        models=models,
        scorers=scorers,
        status=status,
        note=note,
        params=PARAMS,
    )
    binary = frozenset(metric for metric, _ in FACETS.values())
    assert {"hint_followed"} <= {card.name for card in unfaithfulness.cards}
    estimates = mean_estimates(read.select_scores(store, run, metrics=sorted(binary)), 0, binary)
    with store.writing() as connection:
        write.set_estimates(connection, run, estimates)
    return run
