"""The runs behind a validation: one a scorer and organism, in a store of its own, gone on with where it was left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.program import Scorer
from cotlab.core.types import Suite
from cotlab.run.config import RunConfig, config_again
from cotlab.run.launch import resume, start
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import Progress
from cotlab.validation.models import weights_digest

MODES = ["remove", "corrupt"]
MODEL_CHAIN_SCORERS = ("verification", "flags", "repair", "composite", "unfaithfulness")
"""Scorers that read a chain: on the suite's, which is the same for every model, they would say
nothing about the models."""


def statuses(store: Store) -> dict[str, str]:
    """The status of every run of a store, by its id."""
    if not store.path.exists():
        return {}
    known = read.list_runs(store)
    return dict(zip(known["id"], known["status"], strict=True))


def run_on(
    store: Store,
    scorer: Scorer,
    model: str,
    suite: Suite,
    known: Mapping[str, str],
    *,
    on_progress: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> str:
    """Measure ``suite`` on an organism with a scorer; the id of a run that is done.

    The id holds the items, the scorer with its version and options, and the organism's weights: a
    run is taken for done, or gone on with, only where none of them has changed. ``known`` are the
    store's ``statuses``; ``announce`` is told of a run that has something left to do.

    Raises
    ------
    CotlabError
        If the run was stopped.
    """
    chain = "own" if scorer.name in MODEL_CHAIN_SCORERS else "reference"
    what = digest(
        [suite.digest, scorer.version, dict(scorer.options), MODES, chain, weights_digest(model)]
    )
    run_id = f"{suite.name}-{model}-{scorer.name}-{what[:10]}"
    if known.get(run_id) == "done":
        return run_id
    if run_id not in known:
        # Every field is said, so that no environment variable of the machine changes what is
        # compared.
        plain = {
            name: field.get_default(call_default_factory=True)
            for name, field in RunConfig.model_fields.items()
        }
        config = config_again(
            plain, {"model": model, "scorer": [scorer.name], "mode": MODES, "chain": chain}
        )
        done = start(
            config, store, suite=suite, on_progress=on_progress, announce=announce, run_id=run_id
        )
    else:
        done = resume(run_id, {}, store, on_progress=on_progress, announce=announce)
    if done.status != "done":
        raise CotlabError(
            f"The run {run_id} ended as {done.status}: {done.outcome.note or ''} The same command goes on from"
            " there."
        )
    return run_id
