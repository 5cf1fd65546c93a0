"""Feature vectors of runs: the data of calibrators, decisions and drift checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.metrics.composite import COMPONENTS_BY_PROFILE, FEATURE_SOURCES, FeatureSource
from cotlab.metrics.text_features import NAME as TEXT_FEATURES
from cotlab.reliability.combination import DOMAIN_FEATURE
from cotlab.reliability.maps import COMBINED_METHOD
from cotlab.stats.composite import COMPONENT_NAMES
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.feature_scores import load_feature_scores
from cotlab.suites.importers.records import CORRECT_KEY
from cotlab.text.chain_features.chain import FAMILIES

ANSWER_FEATURE = "answer_correct"
"""Whether the chain's answer is right, by the item's ground truth, else as its file says."""
LENGTH_FEATURES = ("text_characters", "text_steps")
"""What the baseline ``length`` is fitted on."""
CAUSAL_SOURCES: Mapping[str, FeatureSource] = {
    "ccs_corrupt": ("ablation", "answer_change", {"mode": "corrupt"}),
    "mass_lost": ("mediation", "mass_lost", {"source": "filler", "span": "all"}),
}
VERIFIER_SOURCES: Mapping[str, FeatureSource] = {
    "critic_sound": ("critic", "critic_sound", {}),
    "legibility": ("rubric", "legibility", {}),
    "question_coverage": ("rubric", "question_coverage", {}),
    "process_reward_min": ("process_reward", "process_reward_min", {}),
    "process_reward_product": ("process_reward", "process_reward_product", {}),
    "process_reward_last": ("process_reward", "process_reward_last", {}),
}
TEXT_SOURCES: Mapping[str, FeatureSource] = {
    name: (TEXT_FEATURES, name, {}) for names in FAMILIES.values() for name in names
}
COMBINED_SOURCES: Mapping[str, FeatureSource] = {
    **{name: FEATURE_SOURCES[name] for name in (*COMPONENT_NAMES, "agreement", "coverage")},
    **CAUSAL_SOURCES,
    "arithmetic_ok": ("verification", "arithmetic_ok", {}),
    **VERIFIER_SOURCES,
    **TEXT_SOURCES,
}
"""Feature → (scorer, metric, facet); beside them ``ANSWER_FEATURE``."""
_FAMILY_BY_TEXT_FEATURE = {name: family for family, names in FAMILIES.items() for name in names}
FAMILY_BY_FEATURE: Mapping[str, str] = {
    **{
        name: _FAMILY_BY_TEXT_FEATURE.get(name, scorer)
        for name, (scorer, _, _) in COMBINED_SOURCES.items()
    },
    ANSWER_FEATURE: "answer_correctness",
}
"""Feature → its family: of the text features their own, else the scorer."""
COMBINED_FEATURES = tuple(FAMILY_BY_FEATURE)
"""Every feature that a combined fit may read."""


EXTRA_FEATURES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    **CAUSAL_SOURCES,
    "bypass": ("mediation", "bypass", {"source": "filler", "span": "all"}),
    "numeric_change": ("robustness", "perturbed_answer_change", {"perturbation": "numeric"}),
    "hint_followed": ("unfaithfulness", "hint_followed", {}),
}
"""Numbers beside the composite's features, where the run measured them: (scorer, metric, facet). A
step's is averaged over the item's chain."""
COMPOSITE_COLUMNS = {"r_raw": "r_raw", "weight": "weight_defined", "correct": "answer_correct"}
"""Columns that come from the composite → its metrics."""
NUMERIC_COLUMNS = (*COMPOSITE_COLUMNS, *FEATURE_SOURCES, *EXTRA_FEATURES)
"""Numeric columns that drift is watched in."""
FURTHER_COLUMNS = tuple(name for name in COMBINED_FEATURES if name not in NUMERIC_COLUMNS)
"""Columns that combined fits read besides."""
CUT_OFF_STATUSES = ("error", "refused", "stopped")
"""Statuses of an r_raw whose item was not measured to the end, so that no fit reads it."""
NO_COMPOSITE_REASON = "the run has no composite: measure it with --profile phase3"
"""Reason of a missing r_raw in a run without composite."""


UNLABELLED_REASON = (
    "of this item {defined} are defined, and the calibrator's labelled items have {labelled}: label"
    " items like this one and fit a calibrator on them too"
)
"""Reason of a missing r_cal: no labelled item has the same components."""
UNKNOWN_COMPONENTS_REASON = (
    "which parts the labelled items of calibrator {version} have cannot be known any more: fit one"
    " anew with cotlab calibrate RUN"
)
"""Reason of a missing r_cal: the components of the labelled items are unknown."""
_MAX_LISTED_SETS = 3
"""Sets of components that a reason names; further ones are counted."""


def measured_features(
    table: pd.DataFrame, *, without: Sequence[str] = (), by_domain: bool = False
) -> tuple[str, ...]:
    """Return the features of a table that some row has, in the order of ``COMBINED_FEATURES``.

    Parameters
    ----------
    table : DataFrame
    without : sequence of str
        Features, or families of them, to leave out.
    by_domain : bool
        Add an intercept for each domain.

    Raises
    ------
    UnknownName
        If there is no such feature or family.
    """
    families = dict.fromkeys(FAMILY_BY_FEATURE.values())
    for name in without:
        if name not in FAMILY_BY_FEATURE and name not in families:
            raise UnknownName("feature", name, [*families, *COMBINED_FEATURES])
    names = [
        name
        for name, family in FAMILY_BY_FEATURE.items()
        if not {name, family} & set(without) and name in table and table[name].notna().any()
    ]
    return (*names, *([DOMAIN_FEATURE] if by_domain else []))


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
        ``run, item_id, domain`` (the item's category, "" without),
        ``domain_or_suite`` (the category, the suite's name without), ``question`` (digest of its
        text: items with the same one belong into one fold), ``status`` and ``reason`` of r_raw,
        ``parts`` that its profile combines ("CVFRD", "" where unknown), ``chain`` that it is of
        ("reference", "own", "" where unknown) and the columns ``NUMERIC_COLUMNS`` and
        ``FURTHER_COLUMNS``: floats, NaN where there is no value. Ordered as the runs are given and
        by the items' position in their suite.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    tables = [_load_run_features(store, run_id) for run_id in dict.fromkeys(runs)]
    columns = [
        "run",
        "item_id",
        "domain",
        DOMAIN_FEATURE,
        "question",
        "status",
        "reason",
        "parts",
        "chain",
        *NUMERIC_COLUMNS,
        *FURTHER_COLUMNS,
    ]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def _load_run_features(store: Store, run_id: str) -> pd.DataFrame:
    """Return the features of a run, from the cache where it and its suite have not changed."""
    run = read.get_run(store, run_id)
    [(suite_added_us,)] = store.query_rows(
        "SELECT max(epoch_us(added_at)) FROM suites WHERE digest = ?", [run["suite"]]
    )
    return _cached_run_features(store.folder, tuple(run.items()), suite_added_us)


@lru_cache(maxsize=8)
def _cached_run_features(
    folder: Path, row: tuple[tuple[str, Any], ...], suite_added_us: int | None
) -> pd.DataFrame:
    """Return the features of a run; a suite is added anew where it was redacted before."""
    run = dict(row)
    sources = {**FEATURE_SOURCES, **EXTRA_FEATURES, **COMBINED_SOURCES}
    metrics = {
        *COMPOSITE_COLUMNS.values(),
        "feature",
        *(metric for _, metric, _ in sources.values()),
    }
    scores = load_feature_scores(
        Store(folder),
        str(run["id"]),
        sorted(metrics),
        status_metric=COMPOSITE_COLUMNS["r_raw"],
        meta_key=CORRECT_KEY,
    )
    items = scores.items
    questions = items["question"].tolist()
    question_ids = {text: digest(text) for text in set(questions)}
    table = pd.DataFrame(
        {
            "run": str(run["id"]),
            "item_id": items["id"],
            "domain": items["category"].fillna(""),
            DOMAIN_FEATURE: items["category"].fillna("").replace("", str(run["suite_name"])),
            "question": [question_ids[text] for text in questions],
        }
    )
    facet_by_text = {text: json.loads(text) for _, _, text in scores.groups}
    item_ids = table["item_id"]
    composite_rows = scores.composites.drop_duplicates("item_id").set_index("item_id")
    profiles = composite_rows["facet"].map(
        lambda text: COMPONENTS_BY_PROFILE.get(facet_by_text[text].get("profile", ""), "")
    )
    table["status"] = item_ids.map(composite_rows["status"]).astype(object).fillna("undefined")
    table["reason"] = (
        item_ids.map(composite_rows["reason"])
        .astype(object)
        .where(item_ids.isin(composite_rows.index), NO_COMPOSITE_REASON)
    )
    table["parts"] = item_ids.map(profiles).astype(object).fillna("")
    table["chain"] = _measured_chains(item_ids, composite_rows, facet_by_text)
    facets = [facet_by_text[group.facet] for group in scores.groups]
    rows_by_group = scores.values.groupby("group").indices

    def groups_of(metric: str, facet: Mapping[str, str] = {}, scorer: str = "") -> list[int]:
        return [
            index
            for index, group in enumerate(scores.groups)
            if group.metric == metric
            and scorer in ("", group.scorer)
            and facet.items() <= facets[index].items()
        ]

    def mean_by_item(name: str) -> NDArray[np.float64]:
        """Return the mean of one number for each item, NaN without, by the composite's score."""
        if name in COMPOSITE_COLUMNS:
            groups = groups_of(COMPOSITE_COLUMNS[name])
        else:
            scorer, metric, facet = sources[name]
            of_composite = groups_of("feature", {"feature": name}) * (name not in TEXT_SOURCES)
            groups = of_composite or groups_of(metric, facet, scorer)
        rows = [rows_by_group[group] for group in groups if group in rows_by_group]
        selected = scores.values.iloc[np.sort(np.concatenate(rows)) if rows else []]
        means = selected.groupby("position")["value"].mean()
        return np.asarray(means.reindex(items["position"]), dtype=float)

    mean_columns = {name: mean_by_item(name) for name in (*NUMERIC_COLUMNS, *COMBINED_SOURCES)}
    is_right = items["field"].map({"true": 1.0, "false": 0.0}).astype(float)
    mean_columns[ANSWER_FEATURE] = np.where(
        np.isnan(mean_columns["correct"]),
        is_right.where(table["chain"] == "reference"),
        mean_columns["correct"],
    )
    return pd.concat([table, pd.DataFrame(mean_columns, table.index)], axis=1)


def _measured_chains(
    item_ids: pd.Series,
    composite_rows: pd.DataFrame,
    facet_by_text: Mapping[str, Mapping[str, str]],
) -> pd.Series:
    """Return whose chain each item's r_raw is of, else its other scores where they agree."""

    def read_chain(text: str) -> str:
        return str(facet_by_text[text].get("chain", ""))

    chains = item_ids.map(composite_rows["facet"].map(read_chain)).astype(object)
    other_chains = {read_chain(text) for text in facet_by_text} - {""}
    return chains.fillna(other_chains.pop() if len(other_chains) == 1 else "")


def defined_components(
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
    if combination is not None and "families" in combination:
        return _defined_families(features, combination["families"])
    if combination is not None:
        component_names = tuple(
            sorted(combination["features"])
        )  # the store does not keep their order
    elif weights is not None:
        component_names = tuple(part for part in COMPONENT_NAMES if weights.get(part, 0.0) > 0)
    else:
        component_names = COMPONENT_NAMES
    is_defined = features.reindex(columns=list(component_names)).notna().to_numpy()
    uses_profile = weights is None and combination is None and "parts" in features
    profiles = features["parts"] if uses_profile else [""] * len(features)
    return [
        tuple(
            name
            for name, has_value in zip(component_names, row, strict=True)
            if has_value and (not profile or name in profile)
        )
        for row, profile in zip(is_defined, profiles, strict=True)
    ]


def _defined_families(
    features: pd.DataFrame, family_by_feature: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """Return for each row the families of which it has a feature."""
    is_defined_by_family = {
        family: features.reindex(
            columns=[name for name, of in family_by_feature.items() if of == family]
        )
        .notna()
        .any(axis=1)
        .to_numpy()
        for family in sorted(set(family_by_feature.values()))
    }
    return [
        tuple(family for family, is_defined in is_defined_by_family.items() if is_defined[row])
        for row in range(len(features))
    ]


def count_component_sets(component_sets: Sequence[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Count labelled items by set of components, most frequent first: ``parts`` and ``n``."""
    return [{"parts": list(parts), "n": n} for parts, n in Counter(component_sets).most_common()]


def uncalibrated_reasons(features: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """Return why a calibrator does not apply to each row; "" where it does.

    It applies where labelled items have the same defined components. ``row`` is the calibrator's;
    where its report does not have ``defined_parts``, it applies to no row.
    """
    labelled_sets = (row["report"] or {}).get("defined_parts")
    if labelled_sets is None:
        return [UNKNOWN_COMPONENTS_REASON.format(version=row["version"])] * len(features)
    known_sets = {frozenset(entry["parts"]) for entry in labelled_sets}
    set_texts = [f"{', '.join(entry['parts']) or 'none'} ({entry['n']})" for entry in labelled_sets]
    more_texts = (
        [f"{len(set_texts) - _MAX_LISTED_SETS} other sets"]
        if len(set_texts) > _MAX_LISTED_SETS
        else []
    )
    sets_text = " or ".join([*set_texts[:_MAX_LISTED_SETS], *more_texts])
    component_sets = defined_components(
        features, row["weights"], row["params"].get(COMBINED_METHOD)
    )
    return [
        (
            ""
            if frozenset(components) in known_sets
            else UNLABELLED_REASON.format(
                defined=", ".join(components) or "no parts", labelled=sets_text
            )
        )
        for components in component_sets
    ]
