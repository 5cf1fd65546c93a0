"""Two runs over the same items: the differences of their paired values, and what each side lacks.

Tables are pandas frames. ``pairs`` has a row for each metric, facet and item that either run
scored: the columns are metric, facet (canonical JSON), item_id, prompt (equal texts are one
prompt), category, base and other (NaN where there is no value), draws (the most values behind
either), why_base and why_other ("" where there is a value).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cotlab.core.keys import canonical_json
from cotlab.core.rng import derive_seed
from cotlab.metrics.ablation.redundancy import mean_by_item
from cotlab.stats.multiple import benjamini_hochberg, direction
from cotlab.stats.paired import cohen_dz, paired_bootstrap, wilcoxon
from cotlab.stats.paired_rates import McNemar, mcnemar

SCORED, RATE = "unfaithfulness", "unfaithful_rate"
"""A score from 0 to 1, and the share of items whose score reaches the threshold."""
THRESHOLD = 0.5
NOT_SCORED, OTHER_QUESTION = (
    "not scored in this run",
    "the two runs asked another question under this id",
)
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

    Attributes
    ----------
    n, prompts : int
        Items with a value on both sides, and how many distinct prompts they have: the units of
        interval and test.
    missing_base, missing_other : mapping of reason to the number of items
    base, other, difference, lo, hi : float or None
        Means over the matched items; ``reason`` says why a part is None.
    discordant : McNemar or None
        Only for values of yes and no, one an item: the four counts (the base is the first) and the
        exact test. Where prompts repeat it takes them as independent, so ``p`` is another test
        then.
    p, test, no_p : float or None, its name, and why there is none
        McNemar's exact test where there is one value of yes and no a prompt, else Wilcoxon's over
        the prompts' means.
    adjusted : float or None
        The same p after Benjamini and Hochberg over the rows of its table.
    effect, rank_effect : float or None
        Cohen's d_z, the mean difference in standard deviations of the differences, and the
        rank-biserial correlation of pairs, −1 to 1; both over the prompts' means, None where no two
        of them differ.
    values : tuple of float
        The prompts' differences, in the order of the prompts.
    """

    metric: str
    facet: Mapping[str, str]
    category: str | None
    n: int
    prompts: int
    missing_base: Mapping[str, int]
    missing_other: Mapping[str, int]
    base: float | None
    other: float | None
    difference: float | None
    lo: float | None
    hi: float | None
    level: float
    method: str
    reason: str | None
    discordant: McNemar | None
    p: float | None
    test: str
    no_p: str | None
    adjusted: float | None
    effect: float | None
    rank_effect: float | None
    values: tuple[float, ...]


def mean_item_values(table: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
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
    canonical = {text: canonical_json(json.loads(text)) for text in table["facet"].unique()}
    table = table.assign(facet=table["facet"].map(canonical))
    means = mean_by_item(table).drop(columns=["size", "undefined"])
    gaps = table[table["value"].isna()]
    reasons = gaps["status"].where(gaps["status"] != "undefined", "") + gaps["reason"].fillna(
        ""
    ).map(_after)
    first_reasons = (
        reasons.groupby([gaps["metric"], gaps["facet"], gaps["item_id"]])
        .first()
        .rename("why")
        .reset_index()
    )
    merged = means.merge(first_reasons, how="left", on=["metric", "facet", "item_id"])
    merged["why"] = [
        _reason_text(text) if n == 0 else ""
        for text, n in zip(merged["why"], merged["n"], strict=True)
    ]
    return pd.concat([merged, _judged(merged, threshold)], ignore_index=True)


def pair_runs(base: pd.DataFrame, other: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Put two runs' values side by side, for every metric and facet that both have.

    Parameters
    ----------
    base, other : DataFrame
        As ``item_values``.
    items : DataFrame
        item_id, prompt, category, same (False where the two runs asked another question under this
        id, None where only one of them has the item): a row an item.

    Returns
    -------
    DataFrame
        ``pairs``, sorted by metric, facet and item.
    """
    keys = ["metric", "facet"]
    shared = base[keys].drop_duplicates().merge(other[keys].drop_duplicates(), on=keys)
    sides = [table.merge(shared, on=keys) for table in (base, other)]
    merged = sides[0].merge(
        sides[1], how="outer", on=[*keys, "item_id"], suffixes=("_base", "_other")
    )
    merged = merged.merge(items, how="left", on="item_id")
    differs = ~merged["same"].astype("boolean").fillna(True).astype(bool)
    for side in ("base", "other"):
        absent = merged[f"n_{side}"].isna()
        merged.loc[absent, f"why_{side}"] = NOT_SCORED
        merged.loc[differs & ~absent, f"why_{side}"] = OTHER_QUESTION
        merged[side] = merged[f"value_{side}"].mask(differs)
    merged["draws"] = merged[["n_base", "n_other"]].max(axis=1).fillna(0).astype(int)
    return merged.sort_values([*keys, "item_id"], ignore_index=True)[PAIR_COLUMNS]


def paired_rows(
    pairs: pd.DataFrame,
    *,
    yes_or_no: frozenset[str] = frozenset(),
    seed: int = 0,
    by_category: bool = False,
) -> tuple[PairedRow, ...]:
    """Return what each metric and facet shows, with p corrected over these rows.

    Parameters
    ----------
    pairs : DataFrame
    yes_or_no : frozenset of str
        Metrics whose values are 0 or 1; ``unfaithful_rate`` is one.
    seed : int
        Of the resampling.
    by_category : bool
        A row for each category instead of one over all.
    """
    keys = ["metric", "facet", *(["category"] if by_category else [])]
    rows = []
    for names, group in pairs.groupby(keys, sort=True):
        metric, facet, category = names if by_category else (*names, None)
        rows.append(
            _row(
                str(metric),
                str(facet),
                category,
                group,
                metric in yes_or_no or metric == RATE,
                seed,
            )
        )
    return corrected(rows)


def corrected(rows: Sequence[PairedRow]) -> tuple[PairedRow, ...]:
    """Return the rows with ``adjusted`` computed over all of them that have a p."""
    adjusted = benjamini_hochberg([row.p for row in rows])
    return tuple(replace(row, adjusted=p) for row, p in zip(rows, adjusted, strict=True))


@dataclass(frozen=True, slots=True)
class DirectionRow:
    """How consistently several runs differ from the same base in one metric and facet."""

    metric: str
    facet: Mapping[str, str]
    differences: tuple[float | None, ...]
    text: str


def directions(comparisons: Sequence[Sequence[PairedRow]]) -> tuple[DirectionRow, ...]:
    """Return for each metric and facet how many of the differences have the same sign."""
    by: dict[tuple[str, str], list[PairedRow]] = {}
    for rows in comparisons:
        for row in rows:
            by.setdefault((row.metric, canonical_json(dict(row.facet))), []).append(row)
    result = []
    for same in by.values():
        differences = tuple(row.difference for row in same)
        if len(same) > 1:
            result.append(
                DirectionRow(
                    same[0].metric, same[0].facet, differences, direction(differences).text
                )
            )
    return tuple(result)


def facet_label(facet: Mapping[str, str], without: Iterable[str] = ()) -> str:
    """Return a facet in one line, as "classifier hint, threshold 0.5"."""
    left_out = set(without)
    return ", ".join(f"{name} {value}" for name, value in facet.items() if name not in left_out)


def missing_text(row: PairedRow, limit: int = 2) -> str:
    """Count the items without a value on each side, with the most frequent reasons.

    "" where none is missing.
    """
    lines = []
    for side, reasons in (("base", row.missing_base), ("other", row.missing_other)):
        if reasons:
            named = "; ".join(f"{n} {reason}" for reason, n in list(reasons.items())[:limit])
            rest = sum(list(reasons.values())[limit:])
            lines.append(f"{side}: {named}{f'; {rest} for other reasons' if rest else ''}")
    return " · ".join(lines)


def changed_values(pairs: pd.DataFrame, metric: str, facet: str, better: str) -> pd.DataFrame:
    """Items whose value differs, the largest change first.

    Parameters
    ----------
    pairs : DataFrame
    metric, facet : str
        Of the rows that are meant; ``facet`` as in ``pairs``.
    better : "higher", "lower" or "neither"
        Which way is an improvement.

    Returns
    -------
    DataFrame
        item_id, category, base, other, difference, change ("improved", "regressed"; "rose", "fell"
        where neither end is better).
    """
    selected = pairs[(pairs["metric"] == metric) & (pairs["facet"] == facet)].dropna(
        subset=["base", "other"]
    )
    selected = selected.assign(difference=selected["other"] - selected["base"])
    selected = selected[selected["difference"].abs() > 1e-12]
    labels = {"higher": ("improved", "regressed"), "lower": ("regressed", "improved")}.get(
        better, ("rose", "fell")
    )
    selected["change"] = [labels[0] if d > 0 else labels[1] for d in selected["difference"]]
    selected = selected.assign(size=selected["difference"].abs()).sort_values(
        ["size", "item_id"], ascending=[False, True]
    )
    return selected[["item_id", "category", "base", "other", "difference", "change"]].reset_index(
        drop=True
    )


def _row(
    metric: str, facet: str, category: Any, group: pd.DataFrame, binary: bool, seed: int
) -> PairedRow:
    matched = group.dropna(subset=["base", "other"])
    first, second, prompts = (
        matched["base"].tolist(),
        matched["other"].tolist(),
        matched["prompt"].tolist(),
    )
    by_prompt = matched.groupby("prompt", sort=True)[["base", "other"]].mean()
    means, others = by_prompt["base"].tolist(), by_prompt["other"].tolist()
    repeated = len(by_prompt) < len(matched)
    binary = binary and len(matched) > 0 and int(matched["draws"].max()) == 1
    counts = mcnemar(first, second) if binary else None
    ranks = wilcoxon(means, others)
    if counts is not None and not repeated:
        interval, p, test, no_p = counts.difference, counts.p, counts.method, counts.reason
    else:
        seed = derive_seed("paired", seed, metric, facet, str(category))
        interval = paired_bootstrap(first, second, prompts if repeated else None, seed=seed)
        if repeated:  # what was resampled is not what n counts
            interval = replace(
                interval, method=interval.method.replace("bootstrap", "bootstrap over prompts", 1)
            )
        p, test, no_p = ranks.p, ranks.method, ranks.reason
    values = tuple(b - a for a, b in zip(means, others, strict=True))
    return PairedRow(
        metric,
        json.loads(facet),
        None if category is None else str(category),
        len(matched),
        len(by_prompt),
        _counted(group[group["base"].isna()]["why_base"]),
        _counted(group[group["other"].isna()]["why_other"]),
        float(matched["base"].mean()) if first else None,
        float(matched["other"].mean()) if first else None,
        interval.point,
        interval.lo,
        interval.hi,
        interval.level,
        interval.method,
        interval.reason,
        counts,
        p,
        test,
        no_p,
        None,
        cohen_dz(means, others).point,
        ranks.rank_biserial,
        values,
    )


def _judged(values: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Yes or no for each item: whether the mean of its draws reaches the threshold."""
    scores = values[values["metric"] == SCORED]
    facets = {
        text: canonical_json({**json.loads(text), "threshold": f"{threshold:g}"})
        for text in scores["facet"].unique()
    }
    reached = (scores["value"] >= threshold).astype(float).where(scores["value"].notna())
    return scores.assign(
        metric=RATE, facet=scores["facet"].map(facets), value=reached, n=scores["n"].clip(upper=1)
    )


def _after(reason: str) -> str:
    return f": {reason}" if reason else ""


def _reason_text(text: Any) -> str:
    return str(text).removeprefix(": ") if isinstance(text, str) and text else "undefined"


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    counts = pd.Series(list(reasons), dtype="object").value_counts(sort=False)
    return {
        str(reason): int(n)
        for reason, n in sorted(counts.items(), key=lambda entry: (-int(entry[1]), str(entry[0])))
    }
