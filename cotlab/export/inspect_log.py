"""A run as a log of Inspect AI: its samples, replies, scores, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from cotlab.analysis.compare import metric_cards
from cotlab.analysis.view import RunView, run_view
from cotlab.core.errors import ConfigError, MissingExtra
from cotlab.core.requests import RECORDED_ERROR, Response
from cotlab.core.types import Item
from cotlab.metrics.consistency import HOLDOUT_DIFFERENCE
from cotlab.run.imports.pairs import stored_replies
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.suites.importers.logs import EVALUATION_FIELDS, LOG_FACTS_KEY, TOO_LONG_KEY

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

SCORE_PREFIX = "cotlab/"
"""Begins the name of each score of ours among the scores of a sample."""
ITEMS_AT_A_TIME = 5_000
"""Items whose scores are read at once."""
_REASON_BY_STATUS = {"refused": "refusal", "error": "scoring_failed"}
_STOP_REASON_BY_FINISH = {"length": "max_tokens"}
_STOP_REASONS = ("stop", "max_tokens", "model_length", "tool_calls", "content_filter")


_NEVER_STORED = ("events", "stores", "arguments of the model", "role usage")


class WrittenLog(NamedTuple):
    """What a log holds that was written."""

    n_samples: int
    """Samples."""
    n_scores: int
    """Our scores in them."""
    left_out: tuple[str, ...]
    """What the log that the run was imported from held, and this one does not."""


def write_inspect_log(store: Store, run_id: str, path: Path) -> WrittenLog:
    """Write a run as a log that Inspect reads; return its samples and our scores in them.

    Raises
    ------
    ConfigError
        If the file is neither ``.eval`` nor ``.json``, or the run kept hashes instead of texts.
    MissingExtra
        If inspect-ai is not installed.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ModuleNotFoundError as import_error:
        raise MissingExtra("A log of Inspect", "inspect-ai") from import_error
    if path.suffix not in (".eval", ".json"):
        raise ConfigError(f"--output {path}: a log of Inspect is a file .eval or .json.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--output {path}: there is no folder {path.absolute().parent}.")
    log = build_inspect_log(store, run_id)
    write_eval_log(log, str(path.absolute()))
    samples = log.samples or []
    n_scores = sum(
        name.startswith(SCORE_PREFIX) for sample in samples for name in sample.scores or ()
    )
    left_out = (log.eval.metadata or {})["cotlab"]["left_out"]
    return WrittenLog(len(samples), n_scores, tuple(left_out))


def build_inspect_log(store: Store, run_id: str) -> EvalLog:
    """Return a run as a log of Inspect: a sample an item, our scores beside those it came with.

    A score of ours is named ``cotlab/METRIC``, with the facet pairs in which scores of the metric
    differ; of a metric of steps it is the mean, with each step in its metadata. One without a value
    is unscored, as Inspect calls it, with its reason.
    """
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalError,
        EvalLog,
        EvalPlan,
        EvalResults,
        EvalSpec,
        EvalStats,
    )

    view = run_view(store, run_id)
    if view.redacted or read.is_suite_redacted(store, view.suite):
        raise ConfigError(f"Run {run_id} kept hashes instead of texts: Inspect needs the texts.")
    plan, suite = view.plan, read.get_suite(store, view.suite)
    items = plan.items_of(suite)
    samples = [
        sample
        for start in range(0, len(items), ITEMS_AT_A_TIME)
        for sample in _samples(store, view, items[start : start + ITEMS_AT_A_TIME])
    ]
    facts = log_facts_of(suite.items)
    provenance = {
        "run_id": run_id,
        "status": view.status,
        "note": view.note,
        "code_version": view.code_version,
        "plan": json.loads(view.plan_json),
        "plan_digest": view.plan_digest,
        "suite_digest": view.suite,
        "left_out": left_out_names(items, facts),
    }
    given_results = log_part(facts, "results", EvalResults)
    given_stats = log_part(facts, "stats", EvalStats) or EvalStats()
    given_fields = evaluation_fields(facts)
    packages = {**facts.get("eval", {}).get("packages", {}), "cotlab": view.code_version}
    sample_ids = list(dict.fromkeys(sample.id for sample in samples))
    return EvalLog(
        status="success" if view.status == "done" else "cancelled",
        eval=EvalSpec.model_validate(
            {
                **given_fields,
                "eval_id": view.plan_digest[:22],
                "run_id": run_id,
                "task_id": view.suite[:22],
                "created": view.planned_at.isoformat(),
                "task": plan.tags.get("task", plan.suite),
                "dataset": EvalDataset(
                    name=plan.suite, samples=len(sample_ids), sample_ids=sample_ids
                ),
                "model": _model_name(view),
                "config": EvalConfig(epochs=max((sample.epoch for sample in samples), default=1)),
                "packages": packages,
                "metadata": {"cotlab": provenance},
            }
        ),
        plan=log_part(facts, "plan", EvalPlan) or EvalPlan(),
        error=log_part(facts, "error", EvalError),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=sum(not sample.error for sample in samples),
            scores=[*(given_results.scores if given_results else ()), *_result_scores(view)],
        ),
        stats=EvalStats(
            started_at=view.planned_at.isoformat(),
            completed_at=view.ended_at.isoformat() if view.ended_at else "",
            model_usage=given_stats.model_usage,
        ),
        samples=samples,
    )


def _model_name(view: RunView) -> str:
    subject = view.plan.subject
    return subject.name if subject.provider == "recorded" else str(subject)


def _samples(store: Store, view: RunView, items: Sequence[Item]) -> Iterator[EvalSample]:
    """Yield the samples of some items."""
    stored = stored_replies(store, view.id, view.plan, items)
    with closing(ResponseLog(store.log_path)) as log:
        responses = {item_id: log.get(reply.key) for item_id, reply in stored.items() if reply.key}
    scores = read.select_scores(
        store, view.id, items=[item.id for item in items], with_evidence=False
    )
    tables = dict(iter(scores.groupby("item_id")))
    for item in items:
        yield _sample(view, item, responses.get(item.id), tables.get(item.id))


def _sample(
    view: RunView, item: Item, response: Response | None, scores: pd.DataFrame | None
) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score
    from pydantic import TypeAdapter

    meta = item.meta
    is_recorded = "sample_id" in meta and "epoch" in meta
    message_list: TypeAdapter[Any] = TypeAdapter(list[ChatMessage])
    task_input: Any = meta.get("input", item.question) if is_recorded else item.question
    reply = _assistant_message(response)
    messages = meta.get("messages") if is_recorded else None
    if messages is None:
        messages = [{"role": "user", "content": item.question}, *([reply] if reply else [])]
    output = ModelOutput(model=_model_name(view))
    if response is not None and reply:
        stop_reason = _STOP_REASON_BY_FINISH.get(response.finish, response.finish)
        if stop_reason not in _STOP_REASONS:
            stop_reason = "unknown"
        given_message = recorded_message(meta) if is_recorded else None
        choice = {"message": given_message or reply, "stop_reason": stop_reason}
        output = ModelOutput.model_validate(
            {"model": response.model or _model_name(view), "choices": [choice]}
        )
        if is_recorded:
            output.completion = str(meta.get("reply", output.completion))
        usage = response.usage
        if usage.tokens_in is not None and usage.tokens_out is not None:
            output.usage = ModelUsage(
                input_tokens=usage.tokens_in,
                output_tokens=usage.tokens_out,
                total_tokens=usage.tokens_in + usage.tokens_out,
                reasoning_tokens=usage.reasoning,
            )
    given_scores = {
        name: Score.model_validate({**values, "value": _score_value(values.get("value"))})
        for name, values in meta.get("inspect_scores", {}).items()
    }
    error = meta.get("error") if is_recorded else None
    traceback = str(meta.get("error_traceback", ""))
    metadata = meta.get("metadata", {}) if is_recorded else dict(meta)
    if item.steps:
        metadata = metadata | {"reference_cot": [step.text for step in item.steps]}
    return EvalSample(
        id=meta["sample_id"] if is_recorded else item.id,
        epoch=int(meta["epoch"]) if is_recorded else 1,
        input=task_input
        if isinstance(task_input, str)
        else message_list.validate_python(task_input),
        choices=meta.get("choices"),
        target=meta.get("targets") or item.answer or "",
        messages=message_list.validate_python(messages),
        output=output,
        scores={**given_scores, **_cotlab_scores(view, scores)},
        metadata=metadata,
        error=EvalError(message=error, traceback=traceback, traceback_ansi=traceback)
        if error
        else None,
        uuid=meta.get("uuid"),
        model_usage=meta.get("usage", {}) if is_recorded else {},
        **(meta.get("times", {}) if is_recorded else {}),
    )


def _score_value(value: Any) -> Any:
    return float("nan") if value is None else value  # Inspect's own mark of what is unscored


def _assistant_message(response: Response | None) -> dict[str, Any] | None:
    """Return a reply as a message of Inspect; None where there is none."""
    if response is None or response.finish == RECORDED_ERROR:
        return None
    text: dict[str, Any] = {"type": "text", "text": response.text or ""}
    reasoning = {"type": "reasoning", "reasoning": response.reasoning}
    return {
        "role": "assistant",
        "content": [reasoning, text] if response.reasoning else text["text"],
        "source": "generate",
    }


def _cotlab_scores(view: RunView, table: pd.DataFrame | None) -> dict[str, Any]:
    """Return the scores of one item by the name that they have in Inspect."""
    from inspect_ai.scorer import Score

    if table is None:
        return {}
    names = _score_names(view)
    scores: dict[str, Any] = {}
    for (metric, facet), group in table.groupby(["metric", "facet"], sort=True):
        if (name := names.get((str(metric), str(facet)))) is None:
            continue
        values = group["value"].dropna()
        first_undefined: dict[Any, Any] = next(
            iter(group[group["value"].isna()].to_dict("records")), {}
        )
        metadata: dict[str, Any] = {
            "scorer": str(group["scorer"].iloc[0]),
            "metric": str(metric),
            "facet": json.loads(str(facet)),
        }
        if len(group) > 1 or group["step"].notna().any():
            metadata |= {"n": len(values), "n_undefined": len(group) - len(values)}
            metadata["scores"] = [_score_record(row) for row in group.to_dict("records")]
        if len(values):
            scores[name] = Score(value=float(values.mean()), metadata=metadata)
        else:
            status = str(first_undefined["status"])
            scores[name] = Score.unscored(
                reason=_REASON_BY_STATUS.get(status, status),
                explanation=str(first_undefined["reason"]),
                metadata=metadata,
            )
    return scores


def _score_record(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": None if pd.isna(row["step"]) else int(row["step"]),
        "draw": int(row["sample"]),
        "value": None if pd.isna(row["value"]) else float(row["value"]),
        "status": row["status"],
        "reason": None if pd.isna(row["reason"]) else row["reason"],
    }


def _score_names(view: RunView) -> dict[tuple[str, str], str]:
    """Return the name in Inspect of each metric and facet: pairs that all share are left out."""
    cards = metric_cards([view.plan])
    names: dict[tuple[str, str], str] = {}
    for metric, group in view.score_groups.groupby("metric"):
        card = cards.get(str(metric))
        if card is None or card.level == "draw" or metric == HOLDOUT_DIFFERENCE.name:
            continue
        facets = {text: json.loads(text) for text in sorted(set(group["facet"]))}
        pairs = [set(facet.items()) for facet in facets.values()]
        shared = set.intersection(*pairs)
        for text, facet in facets.items():
            varying = [f"{k}={v}" for k, v in sorted(facet.items()) if (k, v) not in shared]
            suffix = f"[{','.join(varying)}]" if varying else ""
            names[str(metric), text] = f"{SCORE_PREFIX}{metric}{suffix}"
    return names


def _result_scores(view: RunView) -> Iterator[Any]:
    """Yield the estimates of a run: means with the bounds of their intervals."""
    from inspect_ai.log import EvalMetric, EvalScore

    names = _score_names(view)
    for row in view.estimates.to_dict("records"):
        name = names.get((row["metric"], row["facet"]), f"{SCORE_PREFIX}{row['metric']}")
        values = {"mean": row["point"], "interval_low": row["lo"], "interval_high": row["hi"]}
        yield EvalScore(
            name=name,
            scorer="cotlab",
            scored_samples=int(row["n"]),
            unscored_samples=int(row["n_undefined"]),
            metrics={
                key: EvalMetric(name=key, value=float(value))
                for key, value in values.items()
                if not pd.isna(value)
            },
            metadata={
                "facet": json.loads(row["facet"]),
                "method": row["method"],
                "over": row["over_"],
                "confidence": row["confidence"],
                "reason": None if pd.isna(row["reason"]) else row["reason"],
            },
        )


def log_facts_of(items: Iterable[Item]) -> Mapping[str, Any]:
    """Return what the imported log says of itself; empty for another run."""
    found: Any = next(
        (item.meta[LOG_FACTS_KEY] for item in items if LOG_FACTS_KEY in item.meta), {}
    )
    return found if isinstance(found, Mapping) else {}


def evaluation_fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``eval`` that the log had, without those of the run."""
    given = facts.get("eval", {})
    fields = {name: given[name] for name in EVALUATION_FIELDS if name in given}
    fields.pop("packages", None)
    return fields


def log_part(facts: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    """Return a part of the log, as Inspect's own type; None where there is none that it reads."""
    if not (given := facts.get(name)):
        return None
    try:
        return kind.model_validate(_with_nan_metrics(given) if name == "results" else given)
    except ValueError:
        return None


def left_out_names(items: Iterable[Item], facts: Mapping[str, Any]) -> list[str]:
    """Return what the log held and its run cannot give out again, in words."""
    items = list(items)
    if not any("sample_id" in item.meta for item in items):
        return []
    n_files = sum(
        len(item.meta.get(key, ())) for item in items for key in ("files_given", "files_shown")
    )
    n_long = sum("message_characters" in item.meta for item in items)
    names = list(_NEVER_STORED)
    if n_files:
        names.append(f"the content of {n_files} files, which the messages name")
    if n_long:
        names.append(f"the messages of {n_long} samples, for their length")
    if not facts:
        names.append("plan, results and statistics, which the import did not keep")
    return [*names, *(f"{name}, for its length" for name in facts.get(TOO_LONG_KEY, ()))]


def recorded_message(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the model's last message as the log held it: reasoning, redaction, submitting call."""
    if isinstance(output := meta.get("output"), dict):
        return output
    messages = meta.get("messages") or ()
    turns = [message for message in messages if message.get("role") == "assistant"]
    return turns[-1] if turns else None


def _with_nan_metrics(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return results whose metrics without a value are NaN, as Inspect marks them."""
    scores = [
        {
            **score,
            "metrics": {
                name: {**metric, "value": float("nan")} if metric.get("value") is None else metric
                for name, metric in score.get("metrics", {}).items()
            },
        }
        for score in results.get("scores", ())
    ]
    return {**results, "scores": scores}
