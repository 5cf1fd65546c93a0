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
from cotlab.run.config import RunConfig, resumed_config
from cotlab.run.launch import resume_run, start_run
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import RunProgress
from cotlab.validation.models import weights_digest

VALIDATION_MODES = ["remove", "corrupt"]


def status_by_run_id(store: Store) -> dict[str, str]:
    """Return the status of every run of a store, by its id."""
    if not store.path.exists():
        return {}
    runs = read.list_runs(store)
    return dict(zip(runs["id"], runs["status"], strict=True))


def run_on_organism(
    store: Store,
    scorer: Scorer,
    model: str,
    suite: Suite,
    status_by_run: Mapping[str, str],
    *,
    chain_source: str = "reference",
    on_progress: Callable[[RunProgress], None] = lambda p: None,
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
        One of ``ORGANISMS_FOLDER``.
    suite : Suite
    status_by_run : mapping of run id to status
        From ``statuses``.
    chain_source : str
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
    setup_digest = digest(
        [
            suite.digest,
            scorer.version,
            dict(scorer.options),
            VALIDATION_MODES,
            chain_source,
            weights_digest(model),
        ]
    )
    run_id = f"{suite.name}-{model}-{scorer.name}-{setup_digest[:10]}"
    if status_by_run.get(run_id) == "done":
        return run_id
    if run_id not in status_by_run:
        # Every field is given, so that no environment variable changes what is compared.
        default_by_field = {
            name: field.get_default(call_default_factory=True)
            for name, field in RunConfig.model_fields.items()
        }
        config = resumed_config(
            default_by_field,
            {
                "model": model,
                "scorer": [scorer.name],
                "mode": VALIDATION_MODES,
                "chain": chain_source,
            },
        )
        finished_run = start_run(
            config, store, suite=suite, on_progress=on_progress, announce=announce, run_id=run_id
        )
    else:
        finished_run = resume_run(run_id, {}, store, on_progress=on_progress, announce=announce)
    if finished_run.status != "done":
        raise CotlabError(
            f"The run {run_id} ended as {finished_run.status}: {finished_run.outcome.note or ''}"
            " The same command goes on from there."
        )
    return run_id


Floats = NDArray[np.float64]
_NUMBER_PATTERN = r"[−-]?\d+(\.\d+)?(e[−-]?\d+)?"
"""Matches a number in a reason, such as "-1.5e-3"."""


def facet_contains(facet: str, required_pairs: Mapping[str, str]) -> bool:
    """Return whether a facet (canonical JSON) has every required pair."""
    facet_values = json.loads(facet)
    return all(facet_values.get(name) == value for name, value in required_pairs.items())


def headline_values(scores: pd.DataFrame, headline: Headline, item_ids: Sequence[str]) -> Floats:
    """Return the headline's value of each item: the mean of its defined scores.

    Parameters
    ----------
    scores : DataFrame
        ``metric``, ``facet``, ``item_id``, ``value``.
    headline : Headline
    item_ids : sequence of str
        Items, in the order of the result.

    Returns
    -------
    ndarray (n_items,), in the metric's unit
        NaN where an item has no defined score: undefined, not 0.
    """
    headline_scores = _headline_scores(scores, headline)
    means = headline_scores.groupby("item_id")["value"].mean()
    return np.asarray(
        means.reindex(list(item_ids)).to_numpy(dtype=float, na_value=np.nan), dtype=np.float64
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
    headline_scores = _headline_scores(scores, headline)
    reasons = headline_scores.loc[headline_scores["value"].isna(), "reason"].dropna().astype(str)
    if reasons.empty:
        return None
    reasons_without_numbers = reasons.str.replace(_NUMBER_PATTERN, "…", regex=True)
    common_reason = str(reasons_without_numbers.value_counts().index[0])
    matching_reasons = reasons[reasons_without_numbers == common_reason].unique()
    return str(matching_reasons[0]) if len(matching_reasons) == 1 else common_reason


def _headline_scores(scores: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    rows = scores[scores["metric"] == headline.metric]
    is_match_by_facet = {
        text: facet_contains(text, headline.facet) for text in rows["facet"].unique()
    }
    return rows[rows["facet"].map(is_match_by_facet).astype(bool)]
