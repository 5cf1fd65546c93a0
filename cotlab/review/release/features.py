"""Feature vectors of runs: the data of calibrators, decisions and drift checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cotlab.core.keys import digest
from cotlab.metrics.composite.scorer import FEATURES, PROFILES
from cotlab.reliability.calibrator import COMBINED
from cotlab.stats.composite import COMPONENTS
from cotlab.store import read
from cotlab.store.database import Store

EXTRA_FEATURES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "ccs_corrupt": ("ablation", "answer_change", {"mode": "corrupt"}),
    "mass_lost": ("mediation", "mass_lost", {"source": "filler", "span": "all"}),
    "bypass": ("mediation", "bypass", {"source": "filler", "span": "all"}),
}
"""Numbers beside the composite's features, where the run measured them: (scorer, metric, facet). A
step's is averaged over the item's chain."""
COMPOSITE_COLUMNS = {"r_raw": "r_raw", "weight": "weight_defined", "correct": "answer_correct"}
"""Columns that come from the composite → its metrics."""
NUMBERS = (*COMPOSITE_COLUMNS, *FEATURES, *EXTRA_FEATURES)
"""Every numeric column of ``feature_table``."""
NO_COMPOSITE = "the run has no composite: measure it with --profile phase3"
"""Reason of a missing r_raw in a run without composite."""


def feature_table(store: Store, runs: Sequence[str]) -> pd.DataFrame:
    """Return one row for each item that a run has scores of.

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
        ``parts`` that its profile combines ("CVFRD", "" where unknown), ``chain`` that it is of
        ("reference", "own", "" where unknown) and the columns ``NUMBERS``: floats, NaN where there
        is no value. Ordered as the runs are given and by the items' position in their suite.

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
    """Return item → mean value of one number, by the composite where it has it."""

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


UNLABELLED = (
    "of this item {defined} are defined, and the calibrator's labelled items have {labelled}: label"
    " items like this one and fit a calibrator on them too"
)
"""Reason of a missing r_cal: no labelled item has the same components."""
UNKNOWN = (
    "which parts the labelled items of calibrator {version} have cannot be known any more: fit one"
    " anew with cotlab calibrate RUN"
)
"""Reason of a missing r_cal: the components of the labelled items are unknown."""
_MAX_SETS = 3
"""Sets of components that a reason names; further ones are counted."""


def defined_parts(
    features: pd.DataFrame,
    weights: Mapping[str, float] | None = None,
    combination: Mapping[str, Any] | None = None,
) -> list[tuple[str, ...]]:
    """Return for each row the components with a value among those of its r_cal.

    The mean of two components is another score than the mean of five: a map fitted on one says
    nothing of the other.

    Parameters
    ----------
    features : DataFrame
    weights : mapping of part to weight, optional
        The calibrator's; a component without weight changes nothing. Without it each row's r_raw
        combines its profile's components.
    combination : mapping, optional
        ``Combination.params``; r_cal rests on its features then.
    """
    if combination is not None:
        names = tuple(sorted(combination["features"]))  # the store does not keep their order
    elif weights is not None:
        names = tuple(part for part in COMPONENTS if weights.get(part, 0.0) > 0)
    else:
        names = COMPONENTS
    known = {
        name: features[name].notna().to_numpy() if name in features else [False] * len(features)
        for name in names
    }
    composed = (
        features["parts"].tolist()
        if weights is None and combination is None and "parts" in features
        else []
    )
    profiles = composed or [""] * len(features)
    return [
        tuple(name for name in names if known[name][k] and (not profile or name in profile))
        for k, profile in enumerate(profiles)
    ]


def count_defined_parts(sets: Sequence[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Count labelled items by set of components, most frequent first: ``parts`` and ``n``."""
    return [{"parts": list(parts), "n": n} for parts, n in Counter(sets).most_common()]


def uncalibrated_reasons(features: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """Return why a calibrator does not apply to each row; "" where it does.

    It applies where labelled items have the same defined components. ``row`` is the calibrator's;
    where its report does not have ``defined_parts``, it applies to no row.
    """
    labelled = (row["report"] or {}).get("defined_parts")
    if labelled is None:
        return [UNKNOWN.format(version=row["version"])] * len(features)
    sets = {frozenset(entry["parts"]) for entry in labelled}
    names = [f"{', '.join(entry['parts']) or 'none'} ({entry['n']})" for entry in labelled]
    more = [f"{len(names) - _MAX_SETS} other sets"] if len(names) > _MAX_SETS else []
    listed = " or ".join([*names[:_MAX_SETS], *more])
    rows = defined_parts(features, row["weights"], row["params"].get(COMBINED))
    return [
        (
            ""
            if frozenset(parts) in sets
            else UNLABELLED.format(defined=", ".join(parts) or "no parts", labelled=listed)
        )
        for parts in rows
    ]
