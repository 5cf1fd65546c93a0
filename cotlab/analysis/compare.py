"""Compare stored runs with a base, item by item, from the store alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from cotlab.analysis.paired import (
    RATE,
    SCORED,
    THRESHOLD,
    DirectionRow,
    PairedRow,
    corrected,
    directions,
    mean_item_values,
    pair_runs,
    paired_rows,
)
from cotlab.analysis.view import run_view
from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest, to_json_value
from cotlab.core.registry import SCORERS
from cotlab.core.types import MetricCard, Plan
from cotlab.run.imports.mediation import COUNTED, NO_QUESTION
from cotlab.store import read
from cotlab.store.database import Store

_COLUMNS = ("metric", "facet", "item_id", "value", "status", "reason")
_VALUE_COLUMNS = ["metric", "facet", "item_id", "value", "n", "why"]
FAMILY = "Benjamini–Hochberg over all rows of this table"


@dataclass(frozen=True, slots=True)
class Change:
    """A setting in which two plans differ; "n/a" where one of them has none."""

    setting: str
    base: str
    other: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run against the base.

    Attributes
    ----------
    base, other : str
        Ids of runs.
    shared, only_base, only_other : int
        Items that both runs scored, and that one of them did.
    prompts : int
        Distinct questions among the items that are matched.
    unlike : int
        Shared ids under which the two asked another question: they are never matched.
    pairs : DataFrame
        As ``cotlab.analysis.paired`` says.
    rows : tuple of PairedRow
        Over all items, a row a metric and facet.
    alone_base, alone_other : tuple of str
        Metrics of which one run has a facet that the other has not.
    changes : tuple of Change
        Where the plans differ.
    """

    base: str
    other: str
    shared: int
    only_base: int
    only_other: int
    prompts: int
    unlike: int
    pairs: pd.DataFrame
    rows: tuple[PairedRow, ...]
    alone_base: tuple[str, ...]
    alone_other: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Several runs against one base; ``adjusted`` of every row is over the rows of all of them."""

    base: str
    comparisons: tuple[Comparison, ...]
    directions: tuple[DirectionRow, ...]


def compare_runs(
    store: Store,
    base: str,
    others: Sequence[str],
    *,
    scorers: Sequence[str] = (),
    metrics: Sequence[str] = (),
    threshold: float = THRESHOLD,
    seed: int | None = None,
) -> Compared:
    """Compare runs with a base over the items that they share.

    Parameters
    ----------
    store : Store
    base : str
        Id of the run that the others are held against.
    others : sequence of str
        At least one id, each other than the base.
    scorers, metrics : sequences of str
        Only these; all where empty.
    threshold : float in [0, 1]
        From which a score of unfaithfulness counts as unfaithful.
    seed : int, optional
        Of the resampling; that of the base's plan where it is not given.

    Raises
    ------
    UnknownName
        For a run that is not in the store.
    ConfigError
        If a run is compared with itself, or shares no item or no metric with the base.
    """
    others = list(dict.fromkeys(others))
    if not others or base in others:
        raise ConfigError(
            f"Nothing to compare: name a base and at least one other run (the base is {base!r})."
        )
    if not 0 <= threshold <= 1:
        raise ConfigError(f"The threshold of unfaithfulness must lie in [0, 1], got {threshold:g}.")
    first = _Side.read(store, base, scorers, metrics, threshold)
    comparisons = [
        _compare(
            first,
            _Side.read(store, other, scorers, metrics, threshold),
            first.plan.seed if seed is None else seed,
        )
        for other in others
    ]
    every = iter(corrected([row for comparison in comparisons for row in comparison.rows]))
    adjusted = [
        replace(comparison, rows=tuple(next(every) for _ in comparison.rows))
        for comparison in comparisons
    ]
    return Compared(base, tuple(adjusted), directions([comparison.rows for comparison in adjusted]))


def compare_by_category(store: Store, compared: Compared, *, seed: int | None = None) -> Compared:
    """Return the same comparisons with a row for each category, p corrected over all rows."""
    plans = [
        read.stored_plan(read.get_run(store, name))
        for name in (compared.base, *(c.other for c in compared.comparisons))
    ]
    rows = [
        paired_rows(
            c.pairs,
            yes_or_no=_flags(plans),
            seed=plans[0].seed if seed is None else seed,
            by_category=True,
        )
        for c in compared.comparisons
    ]
    every = iter(corrected([row for category_rows in rows for row in category_rows]))
    adjusted = [
        replace(c, rows=tuple(next(every) for _ in category_rows))
        for c, category_rows in zip(compared.comparisons, rows, strict=True)
    ]
    return Compared(compared.base, tuple(adjusted), ())


def metric_cards(plans: Sequence[Plan]) -> dict[str, MetricCard]:
    """Return the cards of the metrics that the plans' scorers give, by name."""
    names = dict.fromkeys(
        spec.name for plan in plans for spec in plan.scorers if spec.name in SCORERS
    )
    cards: dict[str, MetricCard] = {}
    for name in names:
        cards |= {
            card.name: card
            for card in (*SCORERS[name].cards, *(s.card for s in SCORERS[name].statistics))
        }
    return cards


def plan_changes(
    base: Plan, other: Plan, more: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Change, ...]:
    """Return the settings in which two plans differ, by name.

    ``more`` holds further settings by name, as (base, other).
    """
    base_settings, other_settings = _flat_settings(base), _flat_settings(other)
    settings = {
        name: (base_settings.get(name, "n/a"), other_settings.get(name, "n/a"))
        for name in sorted({*base_settings, *other_settings})
    } | dict(more or {})
    return tuple(
        Change(name, *values) for name, values in settings.items() if values[0] != values[1]
    )


def comparison_json(compared: Compared) -> dict[str, Any]:
    """Everything but the single items, as JSON values."""
    return {
        "base": compared.base,
        "family": FAMILY,
        "comparisons": [
            {
                "other": c.other,
                "items_shared": c.shared,
                "items_only_base": c.only_base,
                "items_only_other": c.only_other,
                "items_with_another_question": c.unlike,
                "prompts": c.prompts,
                "rows": [
                    to_json_value({**asdict(row), "values": list(row.values)}) for row in c.rows
                ],
                "metrics_only_base": list(c.alone_base),
                "metrics_only_other": list(c.alone_other),
                "changes": [asdict(change) for change in c.changes],
            }
            for c in compared.comparisons
        ],
        "directions": [to_json_value(asdict(row)) for row in compared.directions],
    }


@dataclass(frozen=True, slots=True)
class _Side:
    """What is read of one run."""

    run_id: str
    plan: Plan
    code: str
    items: pd.DataFrame
    values: pd.DataFrame

    @classmethod
    def read(
        cls,
        store: Store,
        run_id: str,
        scorers: Sequence[str],
        metrics: Sequence[str],
        threshold: float,
    ) -> _Side:
        view = run_view(store, run_id)
        draws = [name for name, card in metric_cards([view.plan]).items() if card.level == "draw"]
        compared = sorted(view.metrics.difference(draws))
        items = read.items_of_run(store, run_id)
        items = items[items["id"].isin(view.items_with(*compared))]
        wanted = {SCORED if metric == RATE else metric for metric in metrics}
        tables = [
            mean_item_values(
                read.select_scores(
                    store, run_id, metrics=[metric], scorers=scorers or None, columns=_COLUMNS
                ),
                threshold,
            )
            for metric in compared
            if not wanted or metric in wanted
        ]
        values = (
            pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_VALUE_COLUMNS)
        )
        return cls(
            run_id,
            view.plan,
            view.code_version,
            items,
            values[values["metric"].isin(metrics)] if metrics else values,
        )


def _compare(base: _Side, other: _Side, seed: int) -> Comparison:
    items = _matched(base.items, other.items)
    shared = items["same"].notna()
    same = items["same"].map(lambda value: value is True)
    unlike = int((shared & ~same).sum())
    if not shared.any() or unlike == int(shared.sum()):
        raise ConfigError(
            f"Runs {base.run_id!r} and {other.run_id!r} share no item: {base.plan.suite} and"
            f" {other.plan.suite}. Items are matched by their id and question, so compare runs on"
            " one suite."
        )
    pairs = pair_runs(base.values, other.values, items)
    if pairs.empty:
        raise ConfigError(
            f"Runs {base.run_id!r} and {other.run_id!r} share no metric: {_scorers(base)} and"
            f" {_scorers(other)}."
        )
    binary = _flags([base.plan, other.plan])
    ids = {side.run_id: set(side.items["id"]) for side in (base, other)}
    return Comparison(
        base.run_id,
        other.run_id,
        int(shared.sum()),
        len(ids[base.run_id] - ids[other.run_id]),
        len(ids[other.run_id] - ids[base.run_id]),
        int(items[same]["prompt"].nunique()),
        unlike,
        pairs,
        paired_rows(pairs, yes_or_no=binary, seed=seed),
        _metrics_missing_in(base.values, other.values),
        _metrics_missing_in(other.values, base.values),
        plan_changes(base.plan, other.plan, {"code version": (base.code, other.code)}),
    )


def _flags(plans: Sequence[Plan]) -> frozenset[str]:
    return frozenset(name for name, card in metric_cards(plans).items() if card.flag)


def _matched(base: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the items of both runs with prompt and category.

    ``same`` is None where only one run has the item.
    """
    merged = base[["id", "question", "category"]].merge(
        other[["id", "question", "category"]], how="outer", on="id", suffixes=("", "_other")
    )
    rows = []
    for row in merged.to_dict("records"):
        questions = [
            None if pd.isna(row[name]) else str(row[name])
            for name in ("question", "question_other")
        ]
        prompts = [_prompt(text, str(row["id"])) for text in questions if text is not None]
        category = next(
            (str(row[name]) for name in ("category", "category_other") if not pd.isna(row[name])),
            "",
        )
        same = prompts[0] == prompts[1] and COUNTED not in questions if len(prompts) == 2 else None
        rows.append((str(row["id"]), prompts[0], category, same))
    return pd.DataFrame(rows, columns=["item_id", "prompt", "category", "same"])


def _prompt(question: str, item_id: str) -> str:
    """Return what distinguishes prompts: a question's digest, the item's id where there is none."""
    if question == NO_QUESTION:
        return item_id
    return question if question.startswith("sha256:") else f"sha256:{digest(question)}"


def _metrics_missing_in(table: pd.DataFrame, other: pd.DataFrame) -> tuple[str, ...]:
    keys = ["metric", "facet"]
    merged = (
        table[keys]
        .drop_duplicates()
        .merge(other[keys].drop_duplicates(), how="left", on=keys, indicator=True)
    )
    return tuple(sorted(merged[merged["_merge"] == "left_only"]["metric"].unique()))


def _scorers(side: _Side) -> str:
    return ", ".join(dict.fromkeys(spec.name for spec in side.plan.scorers)) or "no scorer"


def _flat_settings(plan: Plan) -> dict[str, str]:
    settings: dict[str, Any] = {
        "suite": plan.suite,
        "suite digest": plan.suite_digest,
        "seed": plan.seed,
        "temperature": plan.temperature,
        "repeats": plan.repeats,
        "limit": "all" if plan.limit is None else plan.limit,
    }
    settings |= {f"tag {name}": value for name, value in plan.tags.items()}
    for role, model in plan.models.items():
        settings |= {
            f"{role}": str(model),
            f"{role} revision": model.revision or "n/a",
            f"{role} form": model.form,
        }
        settings |= {f"{role} address": model.base_url} if model.base_url else {}
    for spec in plan.scorers:
        settings |= {
            f"{spec.name} version": spec.version,
            **{f"{spec.name}.{k}": to_json_value(v) for k, v in spec.params.items()},
        }
    return {name: str(value) for name, value in settings.items()}
