"""Differences of two runs over the same items, and the items that either lacks.

Tables are pandas frames. ``pairs`` has a row for each metric, facet and item that either run
scored: the columns are metric, facet (canonical JSON), item_id, prompt (equal texts are one
prompt), category, base and other (NaN where there is no value), draws (the most values behind
either), why_base and why_other ("" where there is a value).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from cotlab.core.keys import canonical_json, resampling_seed
from cotlab.metrics.estimates import mean_by_item
from cotlab.stats.multiple import benjamini_hochberg, direction
from cotlab.stats.paired import cohen_dz, paired_bootstrap, wilcoxon
from cotlab.stats.paired_rates import McNemar, mcnemar

SCORE_METRIC, RATE_METRIC = "unfaithfulness", "unfaithful_rate"
"""A score from 0 to 1, and the share of items whose score reaches the threshold."""
UNFAITHFUL_THRESHOLD = 0.5
NOT_SCORED_REASON = "not scored in this run"
OTHER_QUESTION_REASON = "the two runs asked another question under this id"
PAIR_COLUMNS = [
    "metric",
    "facet",
    "item_id",
    "prompt",
    "category",
    "base",
    "other",
    "draws",
    "why_base",
    "why_other",
]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """One metric and facet, over all items or one category.

    Differences are other − base, in the metric's unit.
    """

    metric: str
    """Name of the metric."""
    facet: Mapping[str, str]
    """Its facet."""
    category: str | None
    """The category of items; None over all of them."""
    n: int
    """Items with a value on both sides."""
    prompts: int
    """Distinct prompts of these items: the units of interval and test."""
    missing_base: Mapping[str, int]
    """Reason to the number of items without a value in the base."""
    missing_other: Mapping[str, int]
    """Reason to the number of items without a value in the other run."""
    base: float | None
    """Mean of the base over the matched items."""
    other: float | None
    """Mean of the other run over the matched items."""
    difference: float | None
    """Their difference."""
    lo: float | None
    """Lower bound of the difference."""
    hi: float | None
    """Upper bound of the difference."""
    level: float
    """Confidence of the interval."""
    method: str
    """How the interval was made."""
    reason: str | None
    """Why the difference or its interval is None."""
    discordant: McNemar | None
    """The four counts (the base first) and the exact test, for one value of yes and no an item.

    Where prompts repeat the test takes them as independent, and ``p`` is another test.
    """
    p: float | None
    """McNemar's exact test for one value of yes and no a prompt, else Wilcoxon's over prompts."""
    test: str
    """Name of the test."""
    no_p: str | None
    """Why there is no p."""
    adjusted: float | None
    """The same p after Benjamini and Hochberg over the rows of its table."""
    effect: float | None
    """Cohen's d_z over the prompts' means; None where no two of them differ."""
    rank_effect: float | None
    """Rank-biserial correlation of pairs, −1 to 1; None where no two means differ."""
    values: tuple[float, ...]
    """The prompts' differences, in the order of the prompts."""


def mean_item_values(table: pd.DataFrame, threshold: float = UNFAITHFUL_THRESHOLD) -> pd.DataFrame:
    """Return the mean of each item's values, and why an item has none.

    Parameters
    ----------
    table : DataFrame
        Scores as the store has them: metric, facet, item_id, value, status, reason.
    threshold : float in [0, 1]
        An item whose mean ``unfaithfulness`` reaches it counts as unfaithful, in rows of the metric
        ``unfaithful_rate``.

    Returns
    -------
    DataFrame
        metric, facet (canonical), item_id, value, n (values behind the mean), why ("" where there
        is a value).
    """
    canonical_facets = {text: canonical_json(json.loads(text)) for text in table["facet"].unique()}
    table = table.assign(facet=table["facet"].map(canonical_facets))
    means = mean_by_item(table).drop(columns=["size", "undefined"])
    keys = ["metric", "facet", "item_id"]
    undefined_scores = table[table["value"].isna()].drop_duplicates(keys)
    reasons = map(
        _no_value_reason, undefined_scores["status"], undefined_scores["reason"].fillna("")
    )
    item_values = means.merge(undefined_scores[keys].assign(why=list(reasons)), how="left", on=keys)
    item_values["why"] = item_values["why"].where(item_values["n"] == 0, "")
    return pd.concat([item_values, _unfaithful_flags(item_values, threshold)], ignore_index=True)


def pair_runs(base: pd.DataFrame, other: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Put two runs' values side by side, for every metric and facet that both have.

    Parameters
    ----------
    base, other : DataFrame
        As ``mean_item_values``.
    items : DataFrame
        item_id, prompt, category, same (False where the runs have different questions under this
        id, None where only one of them has the item): a row an item.

    Returns
    -------
    DataFrame
        ``pairs``, sorted by metric, facet and item.
    """
    keys = ["metric", "facet"]
    shared_facets = base[keys].drop_duplicates().merge(other[keys].drop_duplicates(), on=keys)
    side_values = [table.merge(shared_facets, on=keys) for table in (base, other)]
    paired_values = side_values[0].merge(
        side_values[1], how="outer", on=[*keys, "item_id"], suffixes=("_base", "_other")
    )
    paired_values = paired_values.merge(items, how="left", on="item_id")
    question_differs = ~paired_values["same"].astype("boolean").fillna(True).astype(bool)
    for side in ("base", "other"):
        is_absent = paired_values[f"n_{side}"].isna()
        paired_values.loc[is_absent, f"why_{side}"] = NOT_SCORED_REASON
        paired_values.loc[question_differs & ~is_absent, f"why_{side}"] = OTHER_QUESTION_REASON
        paired_values[side] = paired_values[f"value_{side}"].mask(question_differs)
    paired_values["draws"] = paired_values[["n_base", "n_other"]].max(axis=1).fillna(0).astype(int)
    return paired_values.sort_values([*keys, "item_id"], ignore_index=True)[PAIR_COLUMNS]


def paired_rows(
    pairs: pd.DataFrame,
    *,
    binary_metrics: frozenset[str] = frozenset(),
    seed: int = 0,
    by_category: bool = False,
) -> tuple[PairedRow, ...]:
    """Return what each metric and facet shows, with p corrected over these rows.

    Parameters
    ----------
    pairs : DataFrame
    binary_metrics : frozenset of str
        Metrics whose values are 0 or 1; ``unfaithful_rate`` is one.
    seed : int
        Of the resampling.
    by_category : bool
        A row for each category instead of one over all.
    """
    keys = ["metric", "facet", *(["category"] if by_category else [])]
    all_binary_metrics = {*binary_metrics, RATE_METRIC}
    return adjust_p_values(
        [
            _paired_row(
                *group_key, group=group, is_binary=group_key[0] in all_binary_metrics, seed=seed
            )
            for group_key, group in pairs.groupby(keys, sort=True)
        ]
    )


def adjust_p_values(rows: Sequence[PairedRow]) -> tuple[PairedRow, ...]:
    """Return the rows with ``adjusted_ps`` computed over all of them that have a p."""
    adjusted_ps = benjamini_hochberg([row.p for row in rows])
    return tuple(replace(row, adjusted=p) for row, p in zip(rows, adjusted_ps, strict=True))


@dataclass(frozen=True, slots=True)
class DirectionRow:
    """How consistently several runs differ from the same base in one metric and facet."""

    metric: str
    """Name of the metric."""
    facet: Mapping[str, str]
    """Its facet."""
    differences: tuple[float | None, ...]
    """The difference of each run."""
    text: str
    """How many of them have the same sign, as text."""


def direction_rows(comparisons: Sequence[Sequence[PairedRow]]) -> tuple[DirectionRow, ...]:
    """Return for each metric and facet how many of the differences have the same sign."""
    rows_by_key: dict[tuple[str, str], list[PairedRow]] = {}
    for row in chain.from_iterable(comparisons):
        rows_by_key.setdefault((row.metric, canonical_json(dict(row.facet))), []).append(row)
    result = []
    for first_row, *later_rows in rows_by_key.values():
        differences = tuple(row.difference for row in (first_row, *later_rows))
        if later_rows:
            text = direction(differences).text
            result.append(DirectionRow(first_row.metric, first_row.facet, differences, text))
    return tuple(result)


def facet_label(facet: Mapping[str, str], omitted_names: Iterable[str] = ()) -> str:
    """Return a facet in one line, as "classifier hint, threshold 0.5"."""
    omitted_name_set = set(omitted_names)
    return ", ".join(
        f"{name} {value}" for name, value in facet.items() if name not in omitted_name_set
    )


def missing_items_text(row: PairedRow, max_reasons: int = 2) -> str:
    """Count the items without a value on each side, with the most frequent reasons.

    "" where none is missing.
    """
    lines = []
    for side, reasons in (("base", row.missing_base), ("other", row.missing_other)):
        if reasons:
            texts = [f"{n} {reason}" for reason, n in reasons.items()][:max_reasons]
            if n_others := sum(list(reasons.values())[max_reasons:]):
                texts.append(f"{n_others} for other reasons")
            lines.append(f"{side}: {'; '.join(texts)}")
    return " · ".join(lines)


def changed_values(
    pairs: pd.DataFrame, metric: str, facet: str, better_direction: str
) -> pd.DataFrame:
    """Return the items whose value differs, the largest change first.

    Parameters
    ----------
    pairs : DataFrame
    metric, facet : str
        Of the rows that are meant; ``facet`` as in ``pairs``.
    better_direction : "higher", "lower" or "neither"
        Which way is an improvement.

    Returns
    -------
    DataFrame
        item_id, category, base, other, difference, change ("improved", "regressed"; "rose", "fell"
        where neither end is better).
    """
    changed_items = pairs[(pairs["metric"] == metric) & (pairs["facet"] == facet)].dropna(
        subset=["base", "other"]
    )
    changed_items = changed_items.assign(difference=changed_items["other"] - changed_items["base"])
    changed_items = changed_items[changed_items["difference"].abs() > 1e-12]
    labels = {"higher": ("improved", "regressed"), "lower": ("regressed", "improved")}
    rise_label, fall_label = labels.get(better_direction, ("rose", "fell"))
    changed_items = changed_items.assign(
        change=[rise_label if d > 0 else fall_label for d in changed_items["difference"]],
        size=changed_items["difference"].abs(),
    ).sort_values(["size", "item_id"], ascending=[False, True], ignore_index=True)
    return changed_items[["item_id", "category", "base", "other", "difference", "change"]]


def _paired_row(
    metric: str,
    facet: str,
    category: str | None = None,
    *,
    group: pd.DataFrame,
    is_binary: bool,
    seed: int,
) -> PairedRow:
    matched_items = group.dropna(subset=["base", "other"])
    base_values, other_values, prompts = (
        matched_items[name].tolist() for name in ("base", "other", "prompt")
    )
    prompt_means = matched_items.groupby("prompt", sort=True)[["base", "other"]].mean()
    base_means, other_means = prompt_means["base"].tolist(), prompt_means["other"].tolist()
    has_repeated_prompts = len(prompt_means) < len(matched_items)
    is_share = is_binary  # of draws or steps that are each a yes or no
    is_binary = (
        is_binary
        and len(matched_items) > 0
        and int(matched_items["draws"].max()) == 1
        and {*base_values, *other_values} <= {0.0, 1.0}
    )
    mcnemar_test = mcnemar(base_values, other_values) if is_binary else None
    rank_test = wilcoxon(base_means, other_means)
    if mcnemar_test is not None and not has_repeated_prompts:
        interval = mcnemar_test.difference
        p = mcnemar_test.p
        test_name = mcnemar_test.method
        no_p_reason = mcnemar_test.reason
    else:
        interval = paired_bootstrap(
            base_values,
            other_values,
            prompts if has_repeated_prompts else None,
            seed=resampling_seed(seed),
        )
        if has_repeated_prompts:  # what was resampled is not what n counts
            interval = replace(
                interval, method=interval.method.replace("bootstrap", "bootstrap over prompts", 1)
            )
        elif is_share and interval.lo is None and {*base_values, *other_values} <= {0.0, 1.0}:
            # resampling equal differences varies nothing; counts of one yes or no an item do
            interval = mcnemar(base_values, other_values).difference
        p, test_name, no_p_reason = rank_test.p, rank_test.method, rank_test.reason
    prompt_differences = tuple(
        other_mean - base_mean
        for base_mean, other_mean in zip(base_means, other_means, strict=True)
    )
    return PairedRow(
        metric,
        json.loads(facet),
        category,
        len(matched_items),
        len(prompt_means),
        _count_by_reason(group[group["base"].isna()]["why_base"]),
        _count_by_reason(group[group["other"].isna()]["why_other"]),
        float(matched_items["base"].mean()) if base_values else None,
        float(matched_items["other"].mean()) if base_values else None,
        interval.point,
        interval.lo,
        interval.hi,
        interval.level,
        interval.method,
        interval.reason,
        mcnemar_test,
        p,
        test_name,
        no_p_reason,
        None,
        cohen_dz(base_means, other_means),
        rank_test.rank_biserial,
        prompt_differences,
    )


def _unfaithful_flags(values: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Yes or no for each item: whether the mean of its draws reaches the threshold."""
    scores = values[values["metric"] == SCORE_METRIC]
    facets = {
        text: canonical_json({**json.loads(text), "threshold": f"{threshold:g}"})
        for text in scores["facet"].unique()
    }
    reaches_threshold = (scores["value"] >= threshold).astype(float).where(scores["value"].notna())
    return scores.assign(
        metric=RATE_METRIC,
        facet=scores["facet"].map(facets),
        value=reaches_threshold,
        n=scores["n"].clip(upper=1),
    )


def _no_value_reason(status: str, reason: str) -> str:
    if status == "undefined":
        return reason or status
    return f"{status}: {reason}" if reason else status


def _count_by_reason(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items(), key=lambda entry: (-entry[1], entry[0])))
