"""The feature vectors of runs as one table: what calibrators are fitted on, decisions rest on and drift is looked for in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from cotlab.core.keys import digest
from cotlab.metrics.composite.scorer import FEATURES, PROFILES
from cotlab.store import read
from cotlab.store.database import Store

EXTRA_FEATURES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "ccs_corrupt": ("ablation", "answer_change", {"mode": "corrupt"}),
    "mass_lost": ("mediation", "mass_lost", {"source": "filler", "span": "all"}),
    "bypass": ("mediation", "bypass", {"source": "filler", "span": "all"}),
}
"""Numbers beside the composite's features, where the run measured them; a step's is averaged over
the item's chain."""
COMPOSITE_COLUMNS = {"r_raw": "r_raw", "weight": "weight_defined", "correct": "answer_correct"}
NUMBERS = (*COMPOSITE_COLUMNS, *FEATURES, *EXTRA_FEATURES)
"""Every column of numbers that ``feature_table`` has."""
NO_COMPOSITE = "the run has no composite: measure it with --profile phase3"


def feature_table(store: Store, runs: Sequence[str]) -> pd.DataFrame:
    """One row for each item that a run has scores of.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.

    Returns
    -------
    DataFrame
        ``run, item_id, domain`` (the item's category, "" without), ``question`` (digest of its
        text: items with the same one belong into one fold), ``status`` and ``reason`` of r_raw,
        ``parts`` that its profile composes it of ("CVFRD", "" where it does not say), ``chain``
        that it is of ("reference", "own", "" where it does not say) and the columns ``NUMBERS``:
        floats, NaN where there is no value. Ordered as the runs are given and by the items' place
        in their suite.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    tables = [_of_run(store, run_id) for run_id in dict.fromkeys(runs)]
    columns = [
        "run",
        "item_id",
        "domain",
        "question",
        "status",
        "reason",
        "parts",
        "chain",
        *NUMBERS,
    ]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def _of_run(store: Store, run_id: str) -> pd.DataFrame:
    read.get_run(store, run_id)
    metrics = {
        *COMPOSITE_COLUMNS.values(),
        "feature",
        *(metric for _, metric, _ in (*FEATURES.values(), *EXTRA_FEATURES.values())),
    }
    scores = read.run_scores(store, run_id, metrics=sorted(metrics))
    items = read.items_of_run(store, run_id)
    table = pd.DataFrame(
        {
            "run": run_id,
            "item_id": items["id"],
            "domain": items["category"].fillna(""),
            "question": [digest(text) for text in items["question"]],
        }
    )
    facets = {text: json.loads(text) for text in scores["facet"].unique()}
    columns = {}
    for name in NUMBERS:
        columns[name] = table["item_id"].map(_means(scores, facets, name)).astype(float)
    raw = scores[scores["metric"] == "r_raw"].drop_duplicates("item_id").set_index("item_id")
    table["status"] = table["item_id"].map(raw["status"]).astype(object).fillna("undefined")
    table["reason"] = (
        table["item_id"]
        .map(raw["reason"])
        .astype(object)
        .where(table["item_id"].isin(raw.index), NO_COMPOSITE)
    )
    profile = (
        raw["facet"]
        .map(lambda text: facets[text].get("profile", ""))
        .map(lambda name: PROFILES.get(name, ""))
    )
    table["parts"] = table["item_id"].map(profile).astype(object).fillna("")
    chain = raw["facet"].map(lambda text: facets[text].get("chain", ""))
    table["chain"] = table["item_id"].map(chain).astype(object).fillna("")
    return table.assign(**columns)


def _means(scores: pd.DataFrame, facets: Mapping[str, Mapping[str, str]], name: str) -> pd.Series:
    """The value of one number by item: the composite's where it has it, else that of the scorer it comes from."""

    def chosen(metric: str, scorer: str | None, facet: Mapping[str, str]) -> pd.DataFrame:
        rows = scores[scores["metric"] == metric]
        if scorer is not None:
            rows = rows[rows["scorer"] == scorer]
        return rows[
            rows["facet"].map(lambda text: facet.items() <= facets[text].items()).astype(bool)
        ]

    if name in COMPOSITE_COLUMNS:
        rows = chosen(COMPOSITE_COLUMNS[name], None, {})
    else:
        scorer, metric, facet = {**FEATURES, **EXTRA_FEATURES}[name]
        rows = (
            chosen("feature", None, {"feature": name})
            if name in FEATURES
            else chosen(metric, scorer, facet)
        )
        if rows.empty:
            rows = chosen(metric, scorer, facet)
    return rows.groupby("item_id")["value"].mean()
