"""Runs of a validation: one for each scorer and organism, resumed where they were stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.errors import CotlabError
from cotlab.core.keys import digest
from cotlab.core.program import Headline, Scorer
from cotlab.core.types import Suite
from cotlab.run.config import RunConfig, config_again
from cotlab.run.launch import resume, start
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import Progress
from cotlab.validation.models import weights_digest

MODES = ["remove", "corrupt"]


def statuses(store: Store) -> dict[str, str]:
    """Return the status of every run of a store, by its id."""
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
    chain: str = "reference",
    on_progress: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> str:
    """Measure ``suite`` on an organism with a scorer.

    The run's id holds the items, the scorer with its version and options, the chain, and the
    organism's weights: a run counts as done, or is resumed, only where none of them has changed.

    Parameters
    ----------
    store : Store
    scorer : Scorer
    model : str
        One of ``ORGANISMS``.
    suite : Suite
    known : mapping of run id to status
        From ``statuses``.
    chain : str
        ``reference``, or ``own`` for metrics that read the chain as a text (``Headline.chain``).
    on_progress : callable of Progress
    announce : callable of str
        Called with the id of a run that has something left to do.

    Returns
    -------
    str
        The id of a run that is done.

    Raises
    ------
    CotlabError
        If the run was stopped.
    """
    what = digest(
        [suite.digest, scorer.version, dict(scorer.options), MODES, chain, weights_digest(model)]
    )
    run_id = f"{suite.name}-{model}-{scorer.name}-{what[:10]}"
    if known.get(run_id) == "done":
        return run_id
    if run_id not in known:
        # Every field is given, so that no environment variable changes what is compared.
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
            f"The run {run_id} ended as {done.status}: {done.outcome.note or ''} The same"
            " command goes on from there."
        )
    return run_id


Floats = NDArray[np.float64]
_NUMBER = r"[−-]?\d+(\.\d+)?(e[−-]?\d+)?"
"""Matches a number in a reason, such as "-1.5e-3"."""


def facet_contains(facet: str, required: Mapping[str, str]) -> bool:
    """Return whether a facet (canonical JSON) has every required pair."""
    pairs = json.loads(facet)
    return all(pairs.get(name) == value for name, value in required.items())


def headline_values(scores: pd.DataFrame, headline: Headline, ids: Sequence[str]) -> Floats:
    """Return the headline's value of each item: the mean of its defined scores.

    Parameters
    ----------
    scores : DataFrame
        ``metric``, ``facet``, ``item_id``, ``value``.
    headline : Headline
    ids : sequence of str
        Items, in the order of the result.

    Returns
    -------
    ndarray (n_items,), in the metric's unit
        NaN where an item has no defined score: undefined, not 0.
    """
    chosen = _chosen(scores, headline)
    means = chosen.groupby("item_id")["value"].mean()
    return np.asarray(
        means.reindex(list(ids)).to_numpy(dtype=float, na_value=np.nan), dtype=np.float64
    )


def undefined_reason(scores: pd.DataFrame, headline: Headline) -> str | None:
    """Return the most common reason among the headline's scores without a value.

    Reasons that differ in their numbers only count as one, with "…" for the numbers.

    Parameters
    ----------
    scores : DataFrame
        ``metric``, ``facet``, ``value``, ``reason``.
    headline : Headline

    Returns
    -------
    str or None
        None where every score has a value.
    """
    chosen = _chosen(scores, headline)
    reasons = chosen.loc[chosen["value"].isna(), "reason"].dropna().astype(str)
    if reasons.empty:
        return None
    alike = reasons.str.replace(_NUMBER, "…", regex=True)
    commonest = str(alike.value_counts().index[0])
    matching = reasons[alike == commonest].unique()
    return str(matching[0]) if len(matching) == 1 else commonest


def _chosen(scores: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    rows = scores[scores["metric"] == headline.metric]
    facets = {text: facet_contains(text, headline.facet) for text in rows["facet"].unique()}
    return rows[rows["facet"].map(facets).astype(bool)]
