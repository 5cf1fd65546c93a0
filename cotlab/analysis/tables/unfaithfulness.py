"""Unfaithfulness as tables, from the scores of several runs: one row a point."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.paired import SCORED, THRESHOLD
from cotlab.stats.agreement import cohen_kappa
from cotlab.stats.intervals import Interval, log_ratio_interval, no_interval, t_interval, wilson
from cotlab.stats.paired import mcnemar

SIZES = {"chain_tokens": "tokens", "chain_characters": "characters", "chain_steps": "steps"}
RATIO, PROCESS, RESULT, JUDGE = "process_result_ratio", "process_words", "result_words", "judge_score"
BASE = "base"
"""The value of the tag condition that stands first on an axis, whatever else the run is tagged with."""
METRICS = (SCORED, *SIZES, RATIO, JUDGE)
SCORERS = ("unfaithfulness", "judge")
"""Any of them gives the figures something to show."""
FIRST = ("combined", "truncation", "early_answer", "hint", "process_result")
"""Classifiers in the order in which one of them is shown first."""
POINT_COLUMNS = ["group", "at", "point", "lo", "hi", "n", "n_undefined", "method", "confidence", "reason", "values"]
SWEEP = tuple(i / 20 for i in range(21))
"""Thresholds of the sweep, each 0.05."""


class Place(NamedTuple):
    """Where a run stands in a figure: its colour and its place on the axis."""

    group: str
    at: str


def places(runs: Mapping[str, tuple[str, Mapping[str, str]]], along: str, colour: str) -> dict[str, Place]:
    """The place of each run.

    Parameters
    ----------
    runs : mapping of a run's id to its model and tags
    along, colour : str
        "model", "run" or the name of a tag. A run that is tagged condition=base is at "base"; another without that tag is at
        the value of its tag condition, or at "no TAG".

    Returns
    -------
    dict of str to Place
        In the order of the axis: words first, then numbers by size. Two runs that would share a place are told apart by
        their ids in the group.
    """
    found = {run: Place(_named(run, *told, colour), _named(run, *told, along)) for run, told in runs.items()}
    taken = list(found.values())
    found = {run: Place(f"{p.group} ({run})", p.at) if taken.count(p) > 1 else p for run, p in found.items()}
    return dict(sorted(found.items(), key=lambda told: (*_order(told[1].at), _order(told[1].group))))


def ways(told: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """What runs (id to model and tags) can be laid out by: their tags, model and id."""
    tags = dict.fromkeys(name for _, own in told.values() for name in own)
    return [*tags, "model", "run"]


def first_ways(told: Mapping[str, tuple[str, Mapping[str, str]]]) -> tuple[str, str]:
    """What runs are laid out along, and coloured by, where nothing else is chosen."""
    known = ways(told)
    apart = len({model for model, _ in told.values()}) == len(told)
    coloured = apart and len(told) > 1 and "condition" in known
    return "epoch" if "epoch" in known else "model" if apart else "run", "condition" if coloured else "model"


def in_order(told: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """Runs (id to model and tags) in the order of their epochs, where they are tagged with any; else as they are given."""
    along, colour = first_ways(told)
    return list(places(told, along, colour)) if along == "epoch" else list(told)


def classifiers(values: pd.DataFrame) -> list[str]:
    """The classifiers that scored, the one that is shown first at the head."""
    found = sorted(str(name) for name in values[values["metric"] == SCORED]["name"].unique())
    return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def item_values(scores: Mapping[str, pd.DataFrame], categories: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """One row a run, metric, named facet and item.

    Returns
    -------
    DataFrame
        run, metric, name (the classifier's or the judge's, "" for others), item_id, category, value (mean of the defined
        draws, NaN where there is none), why.
    """
    frames = []
    for run, table in scores.items():
        own = table[table["metric"].isin(METRICS)]
        names = {text: _name(json.loads(text)) for text in own["facet"].unique()}
        own = own.assign(name=own["facet"].map(names))
        grouped = own.groupby(["metric", "name", "item_id"], sort=True)
        found = grouped.agg(value=("value", "mean"), why=("reason", "first")).reset_index()
        named = [categories.get(run, {}).get(item, "") for item in found["item_id"]]
        frames.append(found.assign(run=run, category=named))
    columns = ["run", "metric", "name", "item_id", "category", "value", "why"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def rate_points(
    values: pd.DataFrame, where: Mapping[str, Place], classifier: str, threshold: float = THRESHOLD
) -> pd.DataFrame:
    """The share of each run's items whose score reaches the threshold, with its Wilson interval."""
    own = values[(values["metric"] == SCORED) & (values["name"] == classifier)]
    return _points([(place, _rate(part, threshold), part) for place, part in _by_run(own, where)])


def sweep_points(values: pd.DataFrame, where: Mapping[str, Place], classifier: str, threshold: float) -> pd.DataFrame:
    """The same share at each threshold of ``SWEEP`` and at the chosen one; a group is a run here."""
    own = values[(values["metric"] == SCORED) & (values["name"] == classifier)]
    tables = []
    for place, part in _by_run(own, where):
        named = Place(_apart(place, where), "")
        for step in sorted({*SWEEP, threshold}):
            tables.append(_points([(named, _rate(part, step), part)]).assign(threshold=step, chosen=threshold))
    found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*POINT_COLUMNS, "threshold", "chosen"])
    return found.assign(scores=found["values"], values=None)  # behind a rate at a threshold no single value stands


def category_points(values: pd.DataFrame, where: Mapping[str, Place], classifier: str, threshold: float) -> pd.DataFrame:
    """The same share within each category; the group is the run, the place the category."""
    own = values[(values["metric"] == SCORED) & (values["name"] == classifier) & (values["category"] != "")]
    rows = []
    for category, part in own.groupby("category", sort=True):
        for place, some in _by_run(part, where):
            named = Place(_apart(place, where), str(category))
            rows.append((named, _rate(some, threshold), some))
    return _points(rows)


def kappa_pairs(values: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Cohen's kappa and McNemar's exact test of each two classifiers, over the responses of all runs that both scored.

    Responses of several runs to the same items are not independent: there kappa has no interval, and nothing is tested.
    """
    own = values[values["metric"] == SCORED]
    wide = own.pivot_table(index=["run", "item_id"], columns="name", values="value")
    rows = []
    for one, other in combinations(sorted(wide.columns), 2):
        both = wide[[one, other]].dropna()
        first, second = (both[one] >= threshold).tolist(), (both[other] >= threshold).tolist()
        found = cohen_kappa(first, second) if first else no_interval(None, 0, "no response was scored by both")
        told, again = "", both.index.get_level_values("item_id").has_duplicates
        if again and found.point is not None:
            found = no_interval(found.point, found.n, "the same items in several runs are not independent: choose one run")
        if first and not again:
            test = mcnemar(first, second)
            only = sum(a and not b for a, b in zip(first, second, strict=True))
            other_only = sum(b and not a for a, b in zip(first, second, strict=True))
            p = "n/a" if test.p is None else f"{test.p:.3g}"
            told = f"Only {one}: {only}; only {other}: {other_only}; McNemar exact p = {p}"
        why = (found.reason or "").replace("the first rater", one).replace("the second rater", other) or None
        rows.append((one, other, found.point, found.lo, found.hi, len(first), found.method, why, told))
    return pd.DataFrame(rows, columns=["one", "other", "point", "lo", "hi", "n", "method", "reason", "mcnemar"])


def size_points(values: pd.DataFrame, where: Mapping[str, Place], metric: str) -> pd.DataFrame:
    """The mean of one of ``SIZES`` in each run with its t interval."""
    own = values[values["metric"] == metric]
    rows = [(place, t_interval(part["value"].dropna().tolist()), part) for place, part in _by_run(own, where)]
    return _points(rows).assign(measure=SIZES[metric])


def ratio_points(values: pd.DataFrame, where: Mapping[str, Place]) -> pd.DataFrame:
    """The geometric mean of process over result words in each run; ``n_zero`` counts items without a ratio above 0."""
    rows, zeros = [], []
    for place, part in _by_run(values[values["metric"] == RATIO], where):
        known = part["value"].dropna().tolist()
        rows.append((place, log_ratio_interval(known), part))
        zeros.append(len(part) - sum(value > 0 for value in known))
    return _points(rows).assign(n_zero=zeros)


def judge_points(values: pd.DataFrame, where: Mapping[str, Place], stored: Mapping[tuple[str, str], Interval]) -> pd.DataFrame:
    """The mean score of each judge in each run: the stored estimate, else the mean over items with its t interval.

    Where one judge scored, ``code`` is the place of a group among all groups, so that it looks as in figures with more of them.
    """
    own = values[values["metric"] == JUDGE]
    rows = []
    for (run, judge), part in own.groupby(["run", "name"], sort=False):
        if run not in where:
            continue
        found = stored.get((str(run), str(judge))) or t_interval(part["value"].dropna().tolist())
        place = where[str(run)]
        several = own["name"].nunique() > 1
        rows.append((Place(str(judge) if several else place.group, place.at), found, part))
    order = {place.at: k for k, place in enumerate(where.values())}
    found = _points(sorted(rows, key=lambda row: order[row[0].at]))
    groups = list(dict.fromkeys(place.group for place in where.values()))
    known = set(found["group"]) <= set(groups)
    return found.assign(code=[groups.index(name) for name in found["group"]]) if known else found


def stored_means(run: str, estimates: pd.DataFrame) -> dict[tuple[str, str], Interval]:
    """The stored mean of each judge of a run, by run and judge."""
    found = estimates[estimates["metric"] == "judge_mean"].to_dict("records")
    return {(run, str(json.loads(e["facet"]).get("judge", ""))): _interval(e) for e in found}


def _interval(e: Mapping[Any, Any]) -> Interval:
    point, lo, hi = (None if pd.isna(e[name]) else float(e[name]) for name in ("point", "lo", "hi"))
    reason = None if pd.isna(e["reason"]) else str(e["reason"])
    return Interval(point, lo, hi, int(e["n"]), str(e["method"]), float(e["confidence"]), reason)


def _by_run(values: pd.DataFrame, where: Mapping[str, Place]) -> list[tuple[Place, pd.DataFrame]]:
    of = {str(run): part for run, part in values.groupby("run", sort=False)}
    return [(place, of[run]) for run, place in where.items() if run in of]


def _apart(place: Place, where: Mapping[str, Place]) -> str:
    """A run's group and place in one name, without the part that is the same in all of several runs."""
    groups, ends = {p.group for p in where.values()}, {p.at for p in where.values()}
    if len(groups) == 1 < len(ends):
        return place.at
    return place.group if len(ends) == 1 < len(groups) else " · ".join(dict.fromkeys(place))


def _rate(part: pd.DataFrame, threshold: float) -> Interval:
    known = part["value"].dropna()
    if known.empty:
        why = part["why"].dropna()
        return no_interval(None, 0, str(why.iloc[0]) if len(why) else "no response has a score of this classifier")
    return wilson(int((known >= threshold).sum()), len(known))


def _points(rows: Sequence[tuple[Place, Interval, pd.DataFrame]]) -> pd.DataFrame:
    found: list[dict[str, Any]] = []
    for place, told, part in rows:
        known = part["value"].dropna().tolist()
        found.append({
            "group": place.group, "at": place.at, "point": told.point, "lo": told.lo, "hi": told.hi, "n": told.n,
            "n_undefined": len(part) - len(known), "method": told.method, "confidence": told.level, "reason": told.reason,
            "values": known if len(known) <= 20 else None,
        })  # fmt: skip
    return pd.DataFrame(found, columns=POINT_COLUMNS)


def _named(run: str, model: str, tags: Mapping[str, str], by: str) -> str:
    if by in ("model", "run"):
        return model if by == "model" else run
    if tags.get("condition") == BASE:
        return BASE
    if by in tags:
        return f"{by} {tags[by]}" if _number(tags[by]) is not None else tags[by]
    return tags.get("condition", f"no {by}")


def _name(facet: Mapping[str, str]) -> str:
    return str(facet.get("classifier", facet.get("judge", "")))


def _number(text: str) -> float | None:
    found = re.fullmatch(r"(?:\D*\s)?(\d+(?:\.\d+)?)", text)
    return float(found[1]) if found else None


def _order(text: str) -> tuple[bool, float, str]:
    number = _number(text)
    return number is not None, number or 0.0, text
