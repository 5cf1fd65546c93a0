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
from cotlab.stats.paired_rates import mcnemar

SIZES = {"chain_tokens": "tokens", "chain_characters": "characters", "chain_steps": "steps"}
RATIO, PROCESS, RESULT, JUDGE = (
    "process_result_ratio",
    "process_words",
    "result_words",
    "judge_score",
)
BASE = "base"
"""The value of the tag condition that stands first on an axis, whatever else the run is tagged
with."""
METRICS = (SCORED, *SIZES, RATIO, JUDGE)
SCORERS = ("unfaithfulness", "judge")
"""Any of them gives the figures something to show."""
CLASSIFIER_ORDER = ("combined", "truncation", "early_answer", "hint", "process_result")
"""Classifiers in the order in which one of them is shown first."""
POINT_COLUMNS = [
    "group",
    "at",
    "point",
    "lo",
    "hi",
    "n",
    "n_undefined",
    "method",
    "confidence",
    "reason",
    "values",
]
SWEEP = tuple(i / 20 for i in range(21))
"""Thresholds of the sweep, each 0.05."""


class AxisPosition(NamedTuple):
    """Where a run stands in a figure."""

    group: str
    at: str


def axis_positions(
    runs: Mapping[str, tuple[str, Mapping[str, str]]], along: str, colour: str
) -> dict[str, AxisPosition]:
    """Return the position of each run.

    Parameters
    ----------
    runs : mapping of a run's id to its model and tags
    along, colour : str
        "model", "run" or the name of a tag. A run that is tagged condition=base is at "base";
        another without that tag is at the value of its tag condition, or at "no TAG".

    Returns
    -------
    dict of str to Place
        In the order of the axis: words first, then numbers by size. Two runs that would share a
        place are told apart by their ids in the group.
    """
    positions = {
        run: AxisPosition(_named(run, *entry, colour), _named(run, *entry, along))
        for run, entry in runs.items()
    }
    used_positions = list(positions.values())
    positions = {
        run: AxisPosition(f"{p.group} ({run})", p.at) if used_positions.count(p) > 1 else p
        for run, p in positions.items()
    }
    return dict(
        sorted(positions.items(), key=lambda entry: (*_order(entry[1].at), _order(entry[1].group)))
    )


def layout_options(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return what runs (id to model and tags) can be laid out by: tags, model and id."""
    tags = dict.fromkeys(name for _, run_tags in runs.values() for name in run_tags)
    return [*tags, "model", "run"]


def default_layout(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> tuple[str, str]:
    """Return what runs are laid out along, and coloured by, by default."""
    known = layout_options(runs)
    apart = len({model for model, _ in runs.values()}) == len(runs)
    coloured = apart and len(runs) > 1 and "condition" in known
    return (
        "epoch" if "epoch" in known else "model" if apart else "run",
        "condition" if coloured else "model",
    )


def order_by_epoch(runs: Mapping[str, tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return runs (id to model and tags) in the order of their epochs; as given without any."""
    along, colour = default_layout(runs)
    return list(axis_positions(runs, along, colour)) if along == "epoch" else list(runs)


def classifier_names(values: pd.DataFrame) -> list[str]:
    """Return the classifiers that scored, the default one first."""
    names = sorted(str(name) for name in values[values["metric"] == SCORED]["name"].unique())
    return sorted(
        names,
        key=lambda name: (
            CLASSIFIER_ORDER.index(name) if name in CLASSIFIER_ORDER else len(CLASSIFIER_ORDER)
        ),
    )


def collect_item_values(
    scores: Mapping[str, pd.DataFrame], categories: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return one row a run, metric, named facet and item.

    Returns
    -------
    DataFrame
        run, metric, name (the classifier's or the judge's, "" for others), item_id, category, value
        (mean of the defined draws, NaN where there is none), why.
    """
    frames = []
    for run, table in scores.items():
        rows = table[table["metric"].isin(METRICS)]
        names = {text: _name(json.loads(text)) for text in rows["facet"].unique()}
        rows = rows.assign(name=rows["facet"].map(names))
        grouped = rows.groupby(["metric", "name", "item_id"], sort=True)
        means = grouped.agg(value=("value", "mean"), why=("reason", "first")).reset_index()
        named = [categories.get(run, {}).get(item, "") for item in means["item_id"]]
        frames.append(means.assign(run=run, category=named))
    columns = ["run", "metric", "name", "item_id", "category", "value", "why"]
    return (
        pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
    )


def rate_points(
    values: pd.DataFrame,
    where: Mapping[str, AxisPosition],
    classifier: str,
    threshold: float = THRESHOLD,
) -> pd.DataFrame:
    """Return the share of each run's items at or above the threshold, with a Wilson interval."""
    scored = values[(values["metric"] == SCORED) & (values["name"] == classifier)]
    return _points(
        [(position, _rate(part, threshold), part) for position, part in _by_run(scored, where)]
    )


def sweep_points(
    values: pd.DataFrame, where: Mapping[str, AxisPosition], classifier: str, threshold: float
) -> pd.DataFrame:
    """Return the same share at each threshold of ``SWEEP`` and at the chosen one, by run."""
    scored = values[(values["metric"] == SCORED) & (values["name"] == classifier)]
    tables = []
    for position, part in _by_run(scored, where):
        named = AxisPosition(_position_label(position, where), "")
        for step in sorted({*SWEEP, threshold}):
            tables.append(
                _points([(named, _rate(part, step), part)]).assign(threshold=step, chosen=threshold)
            )
    table = (
        pd.concat(tables, ignore_index=True)
        if tables
        else pd.DataFrame(columns=[*POINT_COLUMNS, "threshold", "chosen"])
    )
    return table.assign(
        scores=table["values"], values=None
    )  # behind a rate at a threshold no single value stands


def category_points(
    values: pd.DataFrame, where: Mapping[str, AxisPosition], classifier: str, threshold: float
) -> pd.DataFrame:
    """Return the same share within each category, by run."""
    scored = values[
        (values["metric"] == SCORED) & (values["name"] == classifier) & (values["category"] != "")
    ]
    rows = []
    for category, part in scored.groupby("category", sort=True):
        for position, some in _by_run(part, where):
            named = AxisPosition(_position_label(position, where), str(category))
            rows.append((named, _rate(some, threshold), some))
    return _points(rows)


def kappa_pairs(values: pd.DataFrame, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Return Cohen's kappa and McNemar's exact test of each two classifiers.

    Responses of several runs to the same items are not independent: there kappa has no interval,
    and nothing is tested.
    """
    scored = values[values["metric"] == SCORED]
    wide = scored.pivot_table(index=["run", "item_id"], columns="name", values="value")
    rows = []
    for left, right in combinations(sorted(wide.columns), 2):
        both = wide[[left, right]].dropna()
        first, second = (both[left] >= threshold).tolist(), (both[right] >= threshold).tolist()
        kappa = (
            cohen_kappa(first, second)
            if first
            else no_interval(None, 0, "no response was scored by both")
        )
        test_note, again = "", both.index.get_level_values("item_id").has_duplicates
        if again and kappa.point is not None:
            kappa = no_interval(
                kappa.point,
                kappa.n,
                "the same items in several runs are not independent: choose one run",
            )
        if first and not again:
            test = mcnemar(first, second)
            only = sum(a and not b for a, b in zip(first, second, strict=True))
            other_only = sum(b and not a for a, b in zip(first, second, strict=True))
            p = "n/a" if test.p is None else f"{test.p:.3g}"
            test_note = f"Only {left}: {only}; only {right}: {other_only}; McNemar exact p = {p}"
        reason = (kappa.reason or "").replace("the first rater", left).replace(
            "the second rater", right
        ) or None
        rows.append(
            (
                left,
                right,
                kappa.point,
                kappa.lo,
                kappa.hi,
                len(first),
                kappa.method,
                reason,
                test_note,
            )
        )
    return pd.DataFrame(
        rows, columns=["one", "other", "point", "lo", "hi", "n", "method", "reason", "mcnemar"]
    )


def size_points(
    values: pd.DataFrame, where: Mapping[str, AxisPosition], metric: str
) -> pd.DataFrame:
    """Return the mean of one of ``SIZES`` in each run with its t interval."""
    scored = values[values["metric"] == metric]
    rows = [
        (position, t_interval(part["value"].dropna().tolist()), part)
        for position, part in _by_run(scored, where)
    ]
    return _points(rows).assign(measure=SIZES[metric])


def ratio_points(values: pd.DataFrame, where: Mapping[str, AxisPosition]) -> pd.DataFrame:
    """Return the geometric mean of process over result words in each run.

    ``n_zero`` counts items without a ratio above 0.
    """
    rows, zeros = [], []
    for position, part in _by_run(values[values["metric"] == RATIO], where):
        known = part["value"].dropna().tolist()
        rows.append((position, log_ratio_interval(known), part))
        zeros.append(len(part) - sum(value > 0 for value in known))
    return _points(rows).assign(n_zero=zeros)


def judge_points(
    values: pd.DataFrame,
    where: Mapping[str, AxisPosition],
    stored: Mapping[tuple[str, str], Interval],
) -> pd.DataFrame:
    """Return the mean score of each judge in each run, as stored or over items.

    Where one judge scored, ``code`` is the place of a group among all groups, so that it looks as
    in figures with more of them.
    """
    scored = values[values["metric"] == JUDGE]
    rows = []
    for (run, judge), part in scored.groupby(["run", "name"], sort=False):
        if run not in where:
            continue
        result = stored.get((str(run), str(judge))) or t_interval(part["value"].dropna().tolist())
        position = where[str(run)]
        several = scored["name"].nunique() > 1
        rows.append(
            (AxisPosition(str(judge) if several else position.group, position.at), result, part)
        )
    order = {position.at: k for k, position in enumerate(where.values())}
    result = _points(sorted(rows, key=lambda row: order[row[0].at]))
    groups = list(dict.fromkeys(position.group for position in where.values()))
    known = set(result["group"]) <= set(groups)
    return result.assign(code=[groups.index(name) for name in result["group"]]) if known else result


def stored_means(run: str, estimates: pd.DataFrame) -> dict[tuple[str, str], Interval]:
    """Return the stored mean of each judge of a run, by run and judge."""
    rows = estimates[estimates["metric"] == "judge_mean"].to_dict("records")
    return {(run, str(json.loads(e["facet"]).get("judge", ""))): _interval(e) for e in rows}


def _interval(e: Mapping[Any, Any]) -> Interval:
    point, lo, hi = (None if pd.isna(e[name]) else float(e[name]) for name in ("point", "lo", "hi"))
    reason = None if pd.isna(e["reason"]) else str(e["reason"])
    return Interval(point, lo, hi, int(e["n"]), str(e["method"]), float(e["confidence"]), reason)


def _by_run(
    values: pd.DataFrame, where: Mapping[str, AxisPosition]
) -> list[tuple[AxisPosition, pd.DataFrame]]:
    of = {str(run): part for run, part in values.groupby("run", sort=False)}
    return [(position, of[run]) for run, position in where.items() if run in of]


def _position_label(position: AxisPosition, where: Mapping[str, AxisPosition]) -> str:
    """Return a run's group and position as one name, without what all runs share."""
    groups, ends = {p.group for p in where.values()}, {p.at for p in where.values()}
    if len(groups) == 1 < len(ends):
        return position.at
    return position.group if len(ends) == 1 < len(groups) else " · ".join(dict.fromkeys(position))


def _rate(part: pd.DataFrame, threshold: float) -> Interval:
    known = part["value"].dropna()
    if known.empty:
        reasons = part["why"].dropna()
        return no_interval(
            None,
            0,
            str(reasons.iloc[0]) if len(reasons) else "no response has a score of this classifier",
        )
    return wilson(int((known >= threshold).sum()), len(known))


def _points(rows: Sequence[tuple[AxisPosition, Interval, pd.DataFrame]]) -> pd.DataFrame:
    records: list[dict[str, Any]] = []
    for position, interval, part in rows:
        known = part["value"].dropna().tolist()
        records.append(
            {
                "group": position.group,
                "at": position.at,
                "point": interval.point,
                "lo": interval.lo,
                "hi": interval.hi,
                "n": interval.n,
                "n_undefined": len(part) - len(known),
                "method": interval.method,
                "confidence": interval.level,
                "reason": interval.reason,
                "values": known if len(known) <= 20 else None,
            }
        )
    return pd.DataFrame(records, columns=POINT_COLUMNS)


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
    match_ = re.fullmatch(r"(?:\D*\s)?(\d+(?:\.\d+)?)", text)
    return float(match_[1]) if match_ else None


def _order(text: str) -> tuple[bool, float, str]:
    number = _number(text)
    return number is not None, number or 0.0, text
