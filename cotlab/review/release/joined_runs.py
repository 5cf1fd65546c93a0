"""Join what several runs measured of the same chains: the suite's, or the model's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cotlab.review.labelling.judged_steps import measures_model_chains
from cotlab.review.labelling.truth import FROM_IMPORT, FROM_RATERS
from cotlab.review.release.features import (
    FURTHER_COLUMNS,
    NO_COMPOSITE_REASON,
    NUMERIC_COLUMNS,
    feature_table,
)
from cotlab.store import read
from cotlab.store.database import Store

JOINED_REASON = "another run has the same chain, with the same numbers: counted once"
"""Why a labelled item is no row of its own."""
SUITE_CHAIN = "suite"
"""Stands for the chains that a suite holds."""
_COMPOSITE_COLUMNS = ["status", "reason", "parts", "r_raw", "weight"]
"""Columns of one composite: they belong together."""
_FEATURES = [
    name
    for name in dict.fromkeys((*NUMERIC_COLUMNS, *FURTHER_COLUMNS))
    if name not in _COMPOSITE_COLUMNS
]
_LABEL_ORDER = {FROM_RATERS: 0, FROM_IMPORT: 1}


def chains_by_run(store: Store, runs: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return of each run the digest of its suite and whose chains it measures.

    Items of the same id, suite and chains in two runs are one chain.

    Returns
    -------
    dict
        Run → (digest, ``SUITE_CHAIN`` or, where its model wrote the chains, the run's id).

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    return {
        run: (
            str(read.get_run(store, run)["suite"]),
            run if measures_model_chains(store, run) else SUITE_CHAIN,
        )
        for run in dict.fromkeys(runs)
    }


def list_joined_runs(store: Store, runs: Sequence[str]) -> list[str]:
    """Return the runs that have chains of another of these runs, in their order."""
    chains = chains_by_run(store, runs)
    n_runs_by_chains = Counter(chains.values())
    return [run for run, key in chains.items() if n_runs_by_chains[key] > 1]


def first_known_values(table: pd.DataFrame, chains: Sequence[int]) -> pd.DataFrame:
    """Return the first known value of each column by chain, the rows in the order of the runs.

    Parameters
    ----------
    table : DataFrame
    chains : sequence of int
        Number of each row's chain.
    """
    return table.groupby(np.array(chains, dtype=int)).first()


def complete_features(store: Store, table: pd.DataFrame) -> pd.DataFrame:
    """Fill what a run did not measure of a chain with what another run of the table did.

    An r_raw is taken with its status, profile and weight, where the run itself has no composite.

    Parameters
    ----------
    store : Store
    table : DataFrame
        As ``feature_table`` returns it; further columns stay.
    """
    if table["run"].nunique() < 2:
        return table
    chains = pd.Series(_chain_numbers(store, table), index=table.index)
    known = table[_FEATURES].groupby(chains).transform("first")
    completed = table.assign(**{name: table[name].fillna(known[name]) for name in _FEATURES})
    composites = table[table["status"] == "ok"].set_axis(chains[table["status"] == "ok"])
    composites = composites[~composites.index.duplicated()]
    is_filled = (table["reason"] == NO_COMPOSITE_REASON) & chains.isin(composites.index)
    filled = composites.loc[chains[is_filled], _COMPOSITE_COLUMNS]
    for name in _COMPOSITE_COLUMNS:
        column = completed[name].copy()
        column[is_filled] = filled[name].to_numpy()
        completed[name] = column
    return completed


def complete_run_features(store: Store, runs: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Return the features of runs, completed by those of the others that have the same chains.

    Others that the store does not have are left out.
    """
    stored = set(read.list_runs(store)["id"]) if others else set()
    chains = chains_by_run(store, [*runs, *(run for run in others if run in stored)])
    selected = {chains[run] for run in runs}
    table = feature_table(store, [run for run, key in chains.items() if key in selected])
    completed = complete_features(store, table)
    return completed[completed["run"].isin(runs)].reset_index(drop=True)


def join_runs(store: Store, table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each chain and set of numbers; runs complete each other.

    Rows of a chain that differ in a number, as of two models, stay apart; so do those of which
    raters say different things. Of rows with the same numbers a rater's label comes before that of
    a suite's file, and a labelled one before one without.

    Parameters
    ----------
    store : Store
    table : DataFrame
        As ``feature_table``, with ``target`` and perhaps ``origin``.

    Returns
    -------
    DataFrame
        The rows that are left, with a new index.
    """
    if table["run"].nunique() < 2:
        return table
    completed = complete_features(store, table)
    numbers = completed[[*_FEATURES, *_COMPOSITE_COLUMNS]].assign(
        chain_number=_chain_numbers(store, table)
    )
    group = numbers.groupby(list(numbers.columns), dropna=False, sort=False).ngroup()
    has_target = completed["target"].notna()
    if "origin" in completed:
        order = completed["origin"].map(_LABEL_ORDER).astype(float)
    else:
        order = pd.Series(0.0, index=completed.index)
    order = order.where(has_target, 2.0)
    is_best = order == order.groupby(group).transform("min")
    target = completed["target"].map({True: 1, False: 0}).fillna(-1)
    rows = pd.DataFrame({"group": group, "target": target})[is_best].drop_duplicates().index
    return completed.loc[rows].reset_index(drop=True)


def _chain_numbers(store: Store, table: pd.DataFrame) -> list[int]:
    """Return a number for each row, the same for all rows of one chain."""
    chains = chains_by_run(store, table["run"].unique().tolist())
    number_by_key: dict[tuple[str, str, str], int] = {}
    return [
        number_by_key.setdefault((*chains[run], item), len(number_by_key))
        for run, item in zip(table["run"], table["item_id"], strict=True)
    ]
