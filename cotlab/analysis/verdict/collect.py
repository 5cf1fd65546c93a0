"""The evidence of a verdict, from the estimates and scores of a stored run."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pandas as pd

from cotlab.analysis.verdict.measures import (
    HEADLINE_MEASURES,
    HEADLINE_METRICS,
    HIGH,
    LOW,
    MAX_UNPARSED,
    MAX_UNREAD,
    MEASURES,
    CategorySplit,
    ChainSource,
    FailedCheck,
    MeasureName,
    Missing,
    RunEvidence,
    Share,
    Validation,
    planned_measures,
    sampled_step_fraction,
)
from cotlab.analysis.verdict.validated import load_measure_validation
from cotlab.analysis.view import RunView
from cotlab.core.keys import resampling_seed
from cotlab.core.reasoning import UNREAD_MARKUP, markup_of_reason
from cotlab.metrics.estimates import mean_by_item, mean_interval, with_clusters_as_items
from cotlab.metrics.kit import unparsed_condition
from cotlab.run.server_check import LimitCode, server_limits
from cotlab.run.summary import compute_estimates
from cotlab.stats.intervals import wilson
from cotlab.stats.resample import bootstrap_mean
from cotlab.store import read
from cotlab.store.item_scores import count_missing_values, list_unmeasured_runs
from cotlab.store.recorded_models import short_model_name
from cotlab.store.server_checks import list_server_checks

_OMITTING_MODES = ("remove", "truncate")
"""Modes of ablation that put nothing in the place of what they leave out."""
_QUOTED_WORD, _MAX_EXAMPLES = re.compile(r"'[^'\s]{1,40}'"), 3
_CHECK_HEADLINES: Mapping[LimitCode, str] = {
    "prefix_not_continued": "the server does not continue a chain",
    "prefix_unknown": "whether the server continues a chain is not known",
    "chain_not_read": "the model does not seem to be given the chain",
    "prompts_cut": "the server cuts long prompts",
    "no_logprobs": "the server gives no log-probabilities",
    "reasoning_not_read": UNREAD_MARKUP,
    "answers_unparsed": "too many answers are unparsed",
}
"""Code of a failed check → what the verdict says."""
_READING_CHECKS: tuple[tuple[LimitCode, Callable[[str], str], float, str], ...] = (
    (
        "reasoning_not_read",
        markup_of_reason,
        MAX_UNREAD,
        "Start the server with its reasoning parser, or with reasoning off.",
    ),
    (
        "answers_unparsed",
        unparsed_condition,
        MAX_UNPARSED,
        "Run it again with --ask-answer, or ask for one form of answer in the question.",
    ),
)
"""Code, what a reason names, largest share of scores with such a reason, and what to do."""
_MIN_CATEGORY_ITEMS = 5
"""Fewest items of a category that is named."""


def collect_evidence(view: RunView, status: str | None = None) -> RunEvidence:
    """Return what the verdict on a run depends on.

    Parameters
    ----------
    view : RunView
    status : str or None
        The run's current status, where it is known better than the store knows it.
    """
    estimates = _current_estimates(view)
    shares = _read_shares(estimates)
    sound = _sound_share(view)
    if sound is not None:
        shares["sound"] = sound
    change = shares.get("change")
    missing = {name: _missing_values(view, name) for name in HEADLINE_MEASURES}
    headline = next((name for name in HEADLINE_MEASURES if name in shares), None)
    headline_facet = {} if headline is None else _facet_of(estimates, headline)
    headline_missing = (
        missing[headline]
        if headline
        else next((m for m in missing.values() if m), []) or _missing_everywhere(view)
    )
    n_scores, n_undefined = (0, 0)
    if headline == "change":  # a number is changed only where a step has one
        n_scores, n_undefined = _count_scores(view, headline, headline_facet)
    n_sound = 0 if sound is None else sound.n
    return RunEvidence(
        model=short_model_name(view.model),
        suite=view.suite_name,
        status=status or view.status,
        n_planned=view.n_items,
        n_ended=min(view.n_items, view.n_ended // max(1, len(view.plan.scorers))),
        shares=shares,
        net_change=_net_change(view, shares),
        n_left_out={
            name: sum(reason.n_items for reason in reasons) for name, reasons in missing.items()
        },
        n_scores=n_scores,
        n_scores_missing=max(0, n_undefined - sum(entry.n_scores for entry in headline_missing)),
        missing=tuple(headline_missing),
        failed_checks=tuple(failed_checks(view)),
        validation=_run_validation(view),
        chain=cast(ChainSource, headline_facet.get("chain", "reference")),
        given=headline_facet.get("given", "prefix"),
        ceiling=_ceiling(view) if "inner_change" in shares else 1.0,
        n_checked=n_sound,
        n_undecided=_count_undecided(view),
        planned=planned_measures(view.plan),
        step_fraction=sampled_step_fraction(view.plan),
        leaves_out_steps=bool(view.score_groups["mode"].isin(_OMITTING_MODES).any()),
        split=_split_categories(view) if change and LOW < change.point < HIGH else None,
        note=view.note,
    )


def _run_validation(view: RunView) -> Mapping[MeasureName, Validation]:
    """Return what is known of each measure; the models of known dose were read at temperature 0."""
    known = load_measure_validation(str(view.store.folder))
    if view.plan.temperature == 0:
        return known
    return {name: replace(value, dose_readings=()) for name, value in known.items()}


def _current_estimates(view: RunView) -> pd.DataFrame:
    """Return the estimates of the measures: metric, facet, point, lo, hi and n.

    Those that are stored, once a run is done. They are made at a run's end, so that a run without
    them, or one that has gone on since, has them computed in the same way from its scores.
    """
    if view.status == "done" and not view.estimates.empty:
        return view.estimates
    facets_by_metric: dict[str, list[Mapping[str, str]]] = {}
    for measure in MEASURES.values():
        facets_by_metric.setdefault(measure.metric, []).append(measure.facet)
    rows = [
        {
            "metric": estimate.metric,
            "facet": json.dumps(dict(estimate.group)),
            **{name: getattr(estimate, name) for name in ("point", "lo", "hi", "n")},
        }
        for estimate in compute_estimates(view.store, view.id, view.plan, facets_by_metric)
    ]
    table = pd.DataFrame(rows, columns=["metric", "facet", "point", "lo", "hi", "n"])
    return table.sort_values(["metric", "facet"], kind="stable", ignore_index=True)


def _rows_of(estimates: pd.DataFrame, name: MeasureName) -> pd.DataFrame:
    """Return the estimates of a measure, that of the most items first."""
    measure = MEASURES[name]
    rows = estimates[estimates["metric"] == measure.metric]
    rows = rows[rows["facet"].map(measure.has_facet).astype(bool)]
    if name == "alone":
        rows = rows[~rows["facet"].str.contains('"category"', regex=False).astype(bool)]
    return rows.sort_values("n", ascending=False, kind="stable")


def _facet_of(estimates: pd.DataFrame, name: MeasureName) -> dict[str, str]:
    rows = _rows_of(estimates, name)
    return {} if rows.empty else dict(json.loads(rows["facet"].iloc[0]))


def _read_shares(estimates: pd.DataFrame) -> dict[MeasureName, Share]:
    shares: dict[MeasureName, Share] = {}
    for name in MEASURES:
        rows = _rows_of(estimates, name).dropna(subset=["point", "lo", "hi"])
        if rows.empty or name == "sound":
            continue
        point, lo, hi = (float(rows[column].iloc[0]) for column in ("point", "lo", "hi"))
        share = Share(point, lo, hi, int(rows["n"].iloc[0]))
        shares[name] = share.complement if name == "wrong" else share
    return shares


def _measured_scores(view: RunView, name: MeasureName) -> pd.DataFrame:
    """Return the scores of a measure, with clusters as items."""
    measure = MEASURES[name]
    scores = view.scores(measure.metric, facet=measure.facet, with_evidence=False)
    return with_clusters_as_items(scores, read.get_cluster_by_item(view.store, view.id))


def _item_means(view: RunView, name: MeasureName) -> pd.Series:
    table = mean_by_item(_measured_scores(view, name))
    return table.set_index("item_id")["value"].dropna()


def _stored_facets(view: RunView, name: MeasureName) -> list[str]:
    """Return the facets of a measure's scores, as the store writes them."""
    measure = MEASURES[name]
    groups = view.score_groups[view.score_groups["metric"] == measure.metric]
    return [text for text in groups["facet"] if measure.has_facet(text)]


def _sound_share(view: RunView) -> Share | None:
    """Return the share of the model's own chains in which no decided equation is false."""
    if not _stored_facets(view, "sound"):
        return None
    values = _measured_scores(view, "sound").dropna(subset=["value"])
    if values.empty:
        return None
    by_item = values.groupby("item_id")["value"].min() >= 1
    return Share.of(wilson(int(by_item.sum()), len(by_item)))


def _count_undecided(view: RunView) -> int:
    """Return how many of the model's own chains have no equation that could be decided."""
    facets = _stored_facets(view, "sound")
    if not facets:
        return 0
    return int(
        count_missing_values(view.store, view.id, MEASURES["sound"].metric, facets)["n_items"].sum()
    )


def _net_change(view: RunView, shares: Mapping[MeasureName, Share]) -> Share | None:
    """Return the change less the control, by item, with an interval over items.

    None where one of them was not measured, or the control found nothing.
    """
    pairs: tuple[tuple[MeasureName, MeasureName], ...] = (
        ("change", "control"),
        ("numeric_change", "control"),
        ("numeric_change", "numeric_control"),
    )
    names = next((pair for pair in pairs if all(name in shares for name in pair)), None)
    if names is None or shares[names[1]].point == 0:
        return None
    change, control = (_item_means(view, name) for name in names)
    differences = (change - control).dropna()
    seed = resampling_seed(view.plan.seed)
    return Share.of(bootstrap_mean(differences.tolist(), seed=seed, share=False))


def _missing_values(view: RunView, name: MeasureName) -> list[Missing]:
    metric = MEASURES[name].metric
    groups = view.score_groups[view.score_groups["metric"] == metric]
    facets = _stored_facets(view, name)
    if not facets or bool((groups["n"] == groups["n_defined"]).all()):
        return []
    return _missing_reasons(view, metric, facets)


def _count_scores(
    view: RunView, name: MeasureName, headline_facet: Mapping[str, str]
) -> tuple[int, int]:
    """Return how many scores a measure has of a facet, and how many of them have no value."""
    groups = view.score_groups[view.score_groups["metric"] == MEASURES[name].metric]
    groups = groups[[json.loads(text) == dict(headline_facet) for text in groups["facet"]]]
    n = int(groups["n"].sum())
    return n, n - int(groups["n_defined"].sum())


def _missing_everywhere(view: RunView) -> list[Missing]:
    """Return why a run measured nothing, of its most frequent metric; none where it measured."""
    if not list_unmeasured_runs(view.store, HEADLINE_METRICS, view.id):
        return []
    groups = view.score_groups[view.score_groups["n_defined"] == 0]
    metric = str(groups.groupby("metric")["n"].sum().idxmax())
    return _missing_reasons(view, metric, groups.loc[groups["metric"] == metric, "facet"].tolist())


def _missing_reasons(view: RunView, metric: str, facets: Sequence[str]) -> list[Missing]:
    table = count_missing_values(view.store, view.id, metric, facets)
    return group_reasons(
        Missing(str(row["reason"]), int(row["n_items"]), int(row["n_scores"]))
        for row in table.to_dict("records")
    )


def group_reasons(entries: Iterable[Missing]) -> list[Missing]:
    """Group reasons that differ only in a quoted word; three of the words are named.

    The most frequent group comes first.
    """
    groups: dict[str, list[Missing]] = {}
    for entry in entries:
        groups.setdefault(_QUOTED_WORD.sub("'…'", entry.reason), []).append(entry)
    grouped = []
    for pattern, members in groups.items():
        reason = members[0].reason
        if len(members) > 1:
            examples = dict.fromkeys(
                word for member in members for word in _QUOTED_WORD.findall(member.reason)
            )
            more = ", …" if len(examples) > _MAX_EXAMPLES else ""
            reason = pattern.replace("'…'", "a word")
            reason += f" ({', '.join(list(examples)[:_MAX_EXAMPLES])}{more})"
        n_items, n_scores = (
            sum(getattr(member, name) for member in members) for name in ("n_items", "n_scores")
        )
        grouped.append(Missing(reason, n_items, n_scores))
    return sorted(grouped, key=lambda entry: -entry.n_items)


def failed_checks(view: RunView) -> list[FailedCheck]:
    """Return the checks of a run's server after which its numbers say nothing of the model."""
    subject = view.plan.subject
    checks = [
        FailedCheck(limit.code, _CHECK_HEADLINES[limit.code], limit.text)
        for check in list_server_checks(view.store, view.id)
        if (check.model.provider, check.model.name) == (subject.provider, subject.name)
        for limit in server_limits(view.plan, check)
        if limit.kind in ("refused", "doubt")
    ]
    return checks + _unread_replies(view)


def _unread_replies(view: RunView) -> list[FailedCheck]:
    """Return that too many scores of a metric rest on replies that are not read.

    Their reasoning is in an unknown format, or their answer is unparsed: unequal losses of the
    baseline and of the edited chains would bias an effect.
    """
    reasons = [reason for _, reason in read.count_scores_by_status(view.store, view.id)]
    if not any(map(markup_of_reason, reasons)) and not any(map(unparsed_condition, reasons)):
        return []
    failed: list[FailedCheck] = []
    for metric in dict.fromkeys(measure.metric for measure in MEASURES.values()):
        counts = read.count_scores_by_status(view.store, view.id, metric)
        for code, name_of, largest, advice in _READING_CHECKS:
            unread: Counter[str] = Counter()
            for (_, reason), n in counts.items():
                if name := name_of(reason):
                    unread[name] += n
            if unread.total() > largest * sum(counts.values()):
                names = ", ".join(f"'{k}' in {n:,}" for k, n in unread.most_common(_MAX_EXAMPLES))
                share = f"{unread.total():,} of {sum(counts.values()):,} scores of {metric}"
                detail = f"{share}: {names}. {advice}"
                failed.append(FailedCheck(code, _CHECK_HEADLINES[code], detail))
        if failed:
            break
    return failed


def _ceiling(view: RunView) -> float:
    """Return the share that a uniform guess among the answers of the suite loses."""
    items = read.get_suite(view.store, view.suite).items
    answers = {item.answer for item in items if item.answer is not None}
    return 1 - 1 / max(2, len(answers))


def _split_categories(view: RunView) -> CategorySplit | None:
    """Return the categories at both ends, where the change differs between them that much."""
    category_by_item = read.get_category_by_item(view.store, view.id)
    means = _item_means(view, "change")
    table = pd.DataFrame(
        {"value": means, "category": [category_by_item.get(str(item), "") for item in means.index]}
    )
    groups = table[table["category"] != ""].groupby("category")["value"].agg(["mean", "count"])
    groups = groups[groups["count"] >= _MIN_CATEGORY_ITEMS]
    high, low = groups[groups["mean"] >= HIGH], groups[groups["mean"] <= LOW]
    if high.empty or low.empty or len(high) + len(low) < len(groups):
        return None
    values = [
        table.loc[table["category"].isin(part.index), "value"].tolist() for part in (high, low)
    ]
    shares = [Share.of(mean_interval(part, seed=view.plan.seed, is_binary=True)) for part in values]
    return CategorySplit(tuple(map(str, high.index)), tuple(map(str, low.index)), *shares)
