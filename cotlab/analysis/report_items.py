"""The items of a report of step ablation: the scores of their steps, and the model's replies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from cotlab.analysis.view import RunView
from cotlab.core.keys import digest
from cotlab.core.types import CCS_METRICS
from cotlab.metrics.ablation import step_means
from cotlab.store import read
from cotlab.store.feature_scores import ScoreGroup
from cotlab.store.responses import ResponseLog
from cotlab.store.step_scores import read_group_scores

ITEM_SECTIONS = ("items", "further_scores")
"""Sections of a report that grow with the number of items."""
_ITEMS_PER_READ = 500
"""Items whose replies are read from the log at once."""


class _ItemRows(NamedTuple):
    """The first draws of one item."""

    item_id: str
    step_scores: list[dict[str, Any]]
    evidence: list[Sequence[str]]


@dataclass(frozen=True, slots=True)
class StepTable:
    """The first draw of each step of one metric, as columns sorted by item and step."""

    metric: str
    """Name of the metric."""
    item_ids: list[str]
    """Item of each entry; those of one item stand together."""
    steps: list[int | None]
    """Step; None where the score is of no step."""
    scores: list[float | None]
    """Mean over the step's draws; None where there is none."""
    statuses: list[str]
    """Status of the first draw."""
    reasons: list[str | None]
    """Reason of the first draw."""
    evidence: Sequence[Sequence[str]]
    """Requests behind the first draw; empty where they were not read."""

    def item_slices(self) -> Iterator[tuple[str, slice]]:
        """Yield each item with the entries that are its own."""
        start = 0
        for item_id, group in itertools.groupby(self.item_ids):
            stop = start + sum(1 for _ in group)
            yield item_id, slice(start, stop)
            start = stop

    def rows(self) -> Iterator[_ItemRows]:
        """Yield the scores of each item as the records of a report."""
        for item_id, entries in self.item_slices():
            records: list[dict[str, Any]] = []
            for step, score, status, reason in zip(
                self.steps[entries],
                self.scores[entries],
                self.statuses[entries],
                self.reasons[entries],
                strict=True,
            ):
                record = {"step_index": step, "score": score, "metric": self.metric}
                reason_part = {"reason": reason} if score is None else {}
                records.append(record | {"status": status} | reason_part)
            yield _ItemRows(item_id, records, list(self.evidence[entries]))


class FurtherScores(NamedTuple):
    """The scores of another mode or another metric than those of the report's aggregate."""

    mode: str
    """Mode of the ablation."""
    metric: str
    """Name of the metric."""
    table: StepTable
    """The scores."""

    @property
    def items(self) -> Iterator[dict[str, Any]]:
        """The items: ``item_id`` and ``step_scores``."""
        return (
            {"item_id": item.item_id, "step_scores": item.step_scores} for item in self.table.rows()
        )


def report_items(view: RunView) -> Iterator[dict[str, Any]]:
    """Yield each item with the scores of its steps and the texts of the replies behind them.

    Scores are those of the first mode and the chosen metric, each the mean over its draws; texts
    those of the first draw, None where the log does not hold them. Replies are read of
    ``_ITEMS_PER_READ`` items at a time.
    """
    params = _ablation_params(view)
    items = _first_draws(view, params["modes"][0], params["metric"], with_evidence=True).rows()
    with closing(ResponseLog(view.store.log_path)) as log:
        while block := list(itertools.islice(items, _ITEMS_PER_READ)):
            keys = {key for item in block for evidence in item.evidence for key in evidence}
            texts = _reply_texts(log, sorted(keys), is_redacted=view.redacted)
            for item in block:
                yield {
                    "item_id": item.item_id,
                    "step_scores": item.step_scores,
                    **_outputs(item, texts),
                }


def further_scores(view: RunView) -> Iterator[FurtherScores]:
    """Yield the items of each other mode and metric that the run has scores of."""
    params = _ablation_params(view)
    main = (params["modes"][0], params["metric"])
    groups = view.score_groups
    scored = {*zip(groups["mode"], groups["metric"], strict=True)}
    for mode, metric in itertools.product(params["modes"], CCS_METRICS):
        if (mode, metric) != main and (mode, metric) in scored:
            table = _first_draws(view, mode, metric, with_evidence=False)
            yield FurtherScores(mode, metric, table)


def _ablation_params(view: RunView) -> Mapping[str, Any]:
    spec = view.scorer("ablation")
    assert spec is not None
    return spec.params


def _first_draws(view: RunView, mode: str, metric: str, *, with_evidence: bool) -> StepTable:
    """Return the first draw of each step of a metric, each score the mean over its draws."""
    groups = view.score_groups
    groups = groups[(groups["mode"] == mode) & (groups["metric"] == metric)]
    if len(groups) == 1:
        group = ScoreGroup(*groups[["scorer", "metric", "facet"]].iloc[0])
        draws = read_group_scores(view.store, view.id, group, with_evidence=with_evidence)
        if (table := _only_draws(metric, draws)) is not None:
            return table
    scores = read.select_scores(
        view.store, view.id, metrics=[metric], facet={"mode": mode}, with_evidence=with_evidence
    )
    is_first = (scores["sample"] == 0).to_numpy(dtype=bool, na_value=False)
    if is_first.all() and _has_one_score_a_step(scores):
        first_draws = scores
        means = scores["value"].to_numpy() + 0.0  # the sum of one number, which is never -0.0
    else:
        first_draws = scores[is_first]
        mean_by_step = {
            (step_mean.item_id, int(step_mean.step)): step_mean.value
            for step_mean in step_means(scores).itertuples()
        }
        means = np.array(
            [
                np.nan if pd.isna(step) else mean_by_step[item_id, int(step)]
                for item_id, step in zip(first_draws["item_id"], first_draws["step"], strict=True)
            ],
            dtype=float,
        )
    means = np.where(first_draws["step"].isna(), np.nan, means)
    return StepTable(
        metric,
        first_draws["item_id"].tolist(),
        first_draws["step"].to_numpy(dtype=object, na_value=None).tolist(),
        [None if math.isnan(mean) else mean for mean in means.tolist()],
        first_draws["status"].tolist(),
        first_draws["reason"].astype(object).where(first_draws["reason"].notna(), None).tolist(),
        first_draws["evidence"].tolist() if with_evidence else [()] * len(means),
    )


def _only_draws(metric: str, draws: pa.Table) -> StepTable | None:
    """Return the scores of one group where each step has one draw; None where it has several."""
    columns = {name: draws[name].to_numpy() for name in draws.column_names if name != "evidence"}
    items, steps = columns["item_id"], columns["step"]
    has_no_step = np.isnan(steps.astype(float))
    is_same_step = (steps[1:] == steps[:-1]) | (has_no_step[1:] & has_no_step[:-1])
    if (columns["sample"] != 0).any() or (is_same_step & (items[1:] == items[:-1])).any():
        return None
    means = columns["value"].astype(float) + 0.0  # the sum of one number, which is never -0.0
    scores = means.astype(object)
    scores[np.isnan(means) | has_no_step] = None
    return StepTable(
        metric,
        items.tolist(),
        draws["step"].to_pylist() if has_no_step.any() else steps.tolist(),
        scores.tolist(),
        columns["status"].tolist(),
        columns["reason"].tolist(),
        draws["evidence"].to_pylist() if "evidence" in draws.column_names else [()] * len(items),
    )


def _has_one_score_a_step(scores: pd.DataFrame) -> bool:
    """Return whether no two of the scores, which are sorted by item and step, are of one step."""
    if scores["facet"].nunique() > 1 or scores["scorer"].nunique() > 1:
        return False
    items, steps = scores["item_id"].to_numpy(), scores["step"].to_numpy(dtype=float, na_value=-1)
    return not bool(((items[1:] == items[:-1]) & (steps[1:] == steps[:-1])).any())


def _outputs(item: _ItemRows, reply_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the model's answers to an item: those of the first draw of each step."""
    ablated_texts, baseline_text = {}, None
    for record, evidence in zip(item.step_scores, item.evidence, strict=True):
        if record["step_index"] is not None and len(evidence) == 2:
            baseline_text, ablated_texts[str(record["step_index"])] = map(reply_texts.get, evidence)
    return {"baseline_output": baseline_text, "ablated_outputs": ablated_texts}


def _reply_texts(log: ResponseLog, keys: Sequence[str], *, is_redacted: bool) -> dict[str, str]:
    """Return the text of each reply by its key; its SHA-256 where it was redacted."""
    texts = {}
    for key, (_, reply) in log.load_exchanges(keys, with_requests=False).items():
        if reply is not None:
            text = reply.get("text", "")
            text_hash = reply.get("text_sha256") or (digest(text) if is_redacted else None)
            texts[key] = f"sha256:{text_hash}" if text_hash else text
    return texts
