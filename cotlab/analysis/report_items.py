"""The items of a report of step ablation: the scores of their steps, and the model's replies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from cotlab.analysis.view import RunView
from cotlab.core.keys import digest
from cotlab.core.types import CCS_METRICS
from cotlab.store.feature_scores import ScoreGroup
from cotlab.store.responses import ResponseLog
from cotlab.store.step_scores import read_group_scores

ITEM_SECTIONS = ("items", "further_scores")
"""Sections of a report that grow with the number of items."""
_ITEMS_PER_READ = 500
"""Items whose replies are read from the log at once."""


class StepScore(NamedTuple):
    """The first draw of one step."""

    step: int | None
    """Step; None where the score is of no step."""
    score: float | None
    """Mean over the step's draws; None where there is none."""
    status: str
    """Status of the first draw."""
    reason: str | None
    """Reason of the first draw."""
    evidence: Sequence[str] = ()
    """Requests behind the first draw; empty where they were not read."""


class ItemScores(NamedTuple):
    """The scores of one metric in one item."""

    item_id: str
    """Id of the item."""
    metric: str
    """Name of the metric."""
    steps: list[StepScore]
    """Its steps in order."""
    outputs: Mapping[str, Any] = {}
    """The model's answers, where the report has them."""

    def as_json(self) -> dict[str, Any]:
        """Return the item as a report has it."""
        records = [
            {
                "step_index": step.step,
                "score": step.score,
                "metric": self.metric,
                "status": step.status,
                **({"reason": step.reason} if step.score is None else {}),
            }
            for step in self.steps
        ]
        return {"item_id": self.item_id, "step_scores": records, **self.outputs}


class FurtherScores(NamedTuple):
    """The scores of another mode or another metric than those of the report's aggregate."""

    mode: str
    """Mode of the ablation."""
    metric: str
    """Name of the metric."""
    items: Iterator[ItemScores]
    """The items."""


def report_items(view: RunView) -> Iterator[ItemScores]:
    """Yield each item with the scores of its steps and the texts of the replies behind them.

    Scores are those of the first mode and the chosen metric; texts those of the first draw, None
    where the log does not hold them. Replies are read of ``_ITEMS_PER_READ`` items at a time.
    """
    params = _ablation_params(view)
    items = _item_scores(view, params["modes"][0], params["metric"], with_evidence=True)
    with closing(ResponseLog(view.store.log_path)) as log:
        while block := list(itertools.islice(items, _ITEMS_PER_READ)):
            keys = {key for item in block for step in item.steps for key in step.evidence}
            texts = _reply_texts(log, sorted(keys), is_redacted=view.redacted)
            for item in block:
                yield item._replace(outputs=_outputs(item, texts))


def further_scores(view: RunView) -> Iterator[FurtherScores]:
    """Yield the items of each other mode and metric that the run has scores of."""
    params, groups = _ablation_params(view), view.score_groups
    main = (params["modes"][0], params["metric"])
    scored = {*zip(groups["mode"], groups["metric"], strict=True)}
    for mode, metric in itertools.product(params["modes"], CCS_METRICS):
        if (mode, metric) != main and (mode, metric) in scored:
            items = _item_scores(view, mode, metric, with_evidence=False)
            yield FurtherScores(mode, metric, items)


def _ablation_params(view: RunView) -> Mapping[str, Any]:
    spec = view.scorer("ablation")
    assert spec is not None
    return spec.params


def _item_scores(
    view: RunView, mode: str, metric: str, *, with_evidence: bool
) -> Iterator[ItemScores]:
    """Yield the first draw of each step of a metric by item, each score the mean of its draws."""
    groups = view.score_groups
    groups = groups[(groups["mode"] == mode) & (groups["metric"] == metric)]
    tables = [
        read_group_scores(view.store, view.id, ScoreGroup(*names), with_evidence=with_evidence)
        for names in groups[["scorer", "metric", "facet"]].itertuples(index=False, name=None)
    ]
    if not tables:
        return
    draws = pa.concat_tables(tables).to_pandas(types_mapper={pa.int32(): pd.Int64Dtype()}.get)
    if len(tables) > 1:
        draws = draws.sort_values(["item_id", "step"], kind="stable")
    means = draws["value"] + 0.0  # the sum of one number, which is never -0.0
    if (draws["sample"] > 0).any():
        means = draws.groupby(["item_id", "step"], dropna=False)["value"].transform("mean")
    is_first = draws["sample"] == 0
    draws, means = draws[is_first], means[is_first].where(draws["step"].notna())
    reasons = draws["reason"].astype(object).where(draws["reason"].notna(), None)
    columns = [
        draws["step"].to_numpy(dtype=object, na_value=None).tolist(),
        [None if math.isnan(mean) else mean for mean in means.tolist()],
        draws["status"].tolist(),
        reasons.tolist(),
        *([draws["evidence"].tolist()] if with_evidence else []),
    ]
    steps = map(StepScore, *columns)
    for item_id, group in itertools.groupby(draws["item_id"].tolist()):
        yield ItemScores(item_id, metric, list(itertools.islice(steps, sum(1 for _ in group))))


def _outputs(item: ItemScores, reply_texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the model's answers to an item: those of the first draw of each step."""
    ablated_texts, baseline_text = {}, None
    for step in item.steps:
        if step.step is not None and len(step.evidence) == 2:
            baseline_text, ablated_texts[str(step.step)] = map(reply_texts.get, step.evidence)
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
