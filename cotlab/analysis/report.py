"""Build the report of a run from the store and the response log, and write it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.markdown import render_markdown
from cotlab.analysis.view import RunView, position_estimates, run_view
from cotlab.core.keys import digest
from cotlab.core.types import Plan
from cotlab.metrics.ablation.redundancy import rrr_estimates, step_means
from cotlab.run.exit_status import exit_status
from cotlab.run.launch import Finished
from cotlab.run.summary import over_reserve
from cotlab.stats.intervals import FEWEST
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import LiveState
from cotlab.store.responses import ResponseLog

MIN_N = 2
"""Items from which on the report gives RRR an interval, as FaithCheck's does; below ``FEWEST`` a
note goes with it."""


class RunReport(NamedTuple):
    """What a run that ended leaves its caller with."""

    report: dict[str, Any]
    """The report, as report.json holds it."""
    code: int
    """The exit code of the command that started the run."""
    message: str
    """What to tell the user about the end of the run; "" where there is nothing to add."""


def report_run(store: Store, finished: Finished) -> RunReport:
    """Write report.json and report.md of a run that ended, and judge how it ended."""
    report = write_reports(store, finished.run_id, finished.output)
    return RunReport(report, *exit_status(finished.outcome, report, finished.config))


def build_report(store: Store, run_id: str) -> dict[str, Any]:
    """Return everything a run measured, as JSON values.

    Undefined numbers are null and come with a status or a reason.
    """
    view = run_view(store, run_id)
    plan, ended = view.plan, read.ended_pairs(store, run_id)
    scored = ended[ended["errors"] == 0].groupby("item")["scorer"].nunique()
    head: dict[str, Any] = {
        "run_id": run_id,
        "status": view.status,
        "note": view.note,
        "harness_version": view.code_version,
        "model_id": plan.subject.name,
        "provider": plan.subject.provider,
        "provider_api_version": _api(plan),
        "model_revision": plan.subject.revision,
        "models": {role: str(ref) for role, ref in plan.models.items()},
        "task_suite": plan.suite,
        "task_suite_hash": _file_hash(store, plan),
        "suite_digest": plan.suite_digest,
        "run_timestamp": view.planned_at.astimezone(UTC).isoformat(),
        "seed": plan.seed,
        "temperature": plan.temperature,
        "repeats": plan.repeats,
        "limit": plan.limit,
        "tags": dict(plan.tags),
        "scorers": [
            {"name": s.name, "version": s.version, "params": dict(s.params)} for s in plan.scorers
        ],
        "plan_digest": plan.digest,
        "redacted": view.redacted,
        "items_total": view.n_items,
        "items_done": int((scored == len(plan.scorers)).sum()),
        "error_scores": view.n_errors,
        "items_with_errors": int((ended.groupby("item")["errors"].sum() > 0).sum()),
    }
    head |= costs(view)
    if view.scorer("ablation") is not None:
        head |= _ablation(view)
    head["self_tests"] = {
        name: values
        for name, values in read.prepared(store, run_id).items()
        if "self_test" in values
    }
    head["estimates"] = [
        {
            **{k: v for k, v in e.items() if k not in ("facet", "over_", "mode", "ccs")},
            "facet": json.loads(e["facet"]),
            "over": e["over_"],
        }
        for e in _records(view.estimates)
    ]
    return head


def costs(view: RunView) -> dict[str, Any]:
    """Return requests, tokens and money of all processes of a run, with what was estimated."""
    log, live = ResponseLog(view.store.log_path), LiveState(view.store.log_path)
    try:
        counts, spend, live_run = log.counts(view.id), log.spend(view.id), live.get(view.id)
        overshoots = log.overshoots(view.id)
    finally:
        log.close()
        live.close()
    estimate = view.estimate
    cost = {
        "estimated_usd": estimate.get("cost_usd"),
        "spent_usd": sum(spend) / 1e6,
        "held_usd": spend.reserved / 1e6,
        "saved_by_log_usd": view.saved_micro / 1e6,
        "tokens_in": counts["tokens_in"],
        "tokens_cached": counts["cached"],
        "tokens_out": counts["tokens_out"],
        "tokens_reasoning": counts["reasoning"],
        "replies_without_count": counts["uncounted"],
        "over_reserve": [over_reserve(one) for one in overshoots],
        "estimate": estimate or None,
    }
    return {
        "requests": {
            "asked": counts["calls"],
            "replies": counts["replies"],
            "from_log": view.hits,
            "failed": view.failed,
            "estimated": estimate.get("requests"),
            "asked_again": live_run.progress.asked_again if live_run else 0,
        },
        "spent_usd": sum(spend) / 1e6,
        "cost": cost,
    }


def headline_rrr(
    estimates: pd.DataFrame, params: Mapping[str, Any], metric: str = "rrr"
) -> dict[str, Any] | None:
    """Return the run's RRR for its first mode and metric; None where it was not estimated."""
    for row in _records(estimates[estimates["metric"] == metric]):
        facet = json.loads(row["facet"])
        if (
            facet.get("mode") == params["modes"][0]
            and facet.get("metric", params["metric"]) == params["metric"]
        ):
            return row
    return None


def _ablation(view: RunView) -> dict[str, Any]:
    """Return FaithCheck's part of the report: one metric and one mode, by item and by position."""
    spec = view.scorer("ablation")
    assert spec is not None
    params = spec.params
    mode, metric = params["modes"][0], params["metric"]
    selected = view.scores(metric, facet={"mode": mode})
    rrr = _with_small_n(headline_rrr(view.estimates, params), selected, params, view.plan.seed)
    section = {
        "metric": metric,
        "mode": mode,
        "ccs_threshold": params["ccs_threshold"],
        "aggregate_rrr": rrr["point"] if rrr else None,
        "aggregate_rrr_ci_lower": rrr["lo"] if rrr else None,
        "aggregate_rrr_ci_upper": rrr["hi"] if rrr else None,
        "aggregate_rrr_method": rrr["method"] if rrr else None,
        "aggregate_rrr_n": rrr["n"] if rrr else 0,
        "aggregate_rrr_note": _note(rrr),
    }
    positions = position_estimates(view, metric, {"mode": mode})
    section["step_position_rankings"] = [
        {
            "step_index": p["step"],
            "mean_ccs": p["point"],
            "variance_ccs": p["variance"],
            "count": p["n"],
            "ci_lower": p["lo"],
            "ci_upper": p["hi"],
            "undefined": p["n_undefined"],
        }
        for p in sorted(
            _records(positions),
            key=lambda p: (-(p["point"] if p["point"] is not None else -1), p["step"]),
        )
    ]
    texts = _texts(view, selected)
    means = {(m.item_id, int(m.step)): m.value for m in step_means(selected).itertuples()}
    first = selected[selected["sample"] == 0]
    rows: dict[str, list[dict[str, Any]]] = {}
    for record in _records(first[["item_id", "step", "status", "reason", "evidence"]]):
        rows.setdefault(record["item_id"], []).append(record)
    section["items"] = [
        _item(item_id, records, means, texts, metric) for item_id, records in rows.items()
    ]
    return section


def _item(
    item_id: str,
    rows: Sequence[Mapping[str, Any]],
    means: Mapping[tuple[str, int], float],
    texts: Mapping[str, str],
    metric: str,
) -> dict[str, Any]:
    """Return one item: step scores are means over draws, outputs those of the first draw."""
    steps, outputs, baseline = [], {}, None
    for row in rows:
        if row["step"] is None:
            steps.append(
                {
                    "step_index": None,
                    "score": None,
                    "metric": metric,
                    "status": row["status"],
                    "reason": row["reason"],
                }
            )
            continue
        step = int(row["step"])
        value = means[item_id, step]
        score = None if pd.isna(value) else float(value)
        entry: dict[str, Any] = {
            "step_index": step,
            "score": score,
            "metric": metric,
            "status": row["status"],
        }
        if score is None:
            entry["reason"] = row["reason"]
        steps.append(entry)
        if len(row["evidence"]) == 2:
            baseline = texts.get(row["evidence"][0])
            outputs[str(step)] = texts.get(row["evidence"][1])
    return {
        "item_id": item_id,
        "step_scores": steps,
        "baseline_output": baseline,
        "ablated_outputs": outputs,
    }


def _texts(view: RunView, rows: pd.DataFrame) -> dict[str, str]:
    """Return the text of each reply behind the scores by key; its SHA-256 where it was redacted."""
    keys = sorted({key for evidence in rows["evidence"] for key in evidence})
    log, texts = ResponseLog(view.store.log_path), {}
    try:
        for start in range(0, len(keys), 500):
            for key, (_, reply) in log.requests(keys[start : start + 500]).items():
                if reply is None:
                    continue
                text = reply.get("text", "")
                hashed = reply.get("text_sha256") or (digest(text) if view.redacted else None)
                texts[key] = f"sha256:{hashed}" if hashed else text
    finally:
        log.close()
    return texts


def write_reports(store: Store, run_id: str, folder: Path) -> dict[str, Any]:
    """Write report.json and report.md to ``folder`` and return the report."""
    report = build_report(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(
        json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
    )
    (folder / "report.md").write_text(render_markdown(report), "utf-8")
    return report


def _with_small_n(
    rrr: dict[str, Any] | None, scores: pd.DataFrame, params: Mapping[str, Any], seed: int
) -> dict[str, Any] | None:
    """Return the stored RRR, with bounds from ``MIN_N`` items on, as FaithCheck's report has."""
    if (
        rrr is None
        or rrr["point"] is None
        or rrr["lo"] is not None
        or not MIN_N <= rrr["n"] < FEWEST
    ):
        return rrr
    for small in rrr_estimates(scores, params, seed, min_items=MIN_N):
        if dict(small.group) == json.loads(rrr["facet"]):
            return {
                **rrr,
                "lo": small.lo,
                "hi": small.hi,
                "method": small.method,
                "reason": small.reason,
            }
    return rrr


def _note(rrr: Mapping[str, Any] | None) -> str | None:
    if rrr is None:
        return "RRR was not estimated: no step was scored"
    if rrr["point"] is None:
        return str(rrr["reason"])
    if rrr["n"] < FEWEST:
        return f"small sample: n = {rrr['n']} items"
    return str(rrr["reason"]) if rrr["lo"] is None and rrr["reason"] else None


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(k): None if pd.api.types.is_scalar(v) and pd.isna(v) else v for k, v in row.items()}
        for row in frame.to_dict("records")
    ]


def _file_hash(store: Store, plan: Plan) -> str:
    known = read.list_suites(store)
    hashes = known.loc[known["digest"] == plan.suite_digest, "file_sha256"]
    return (hashes.iloc[0] if len(hashes) else "") or plan.suite_digest


def _api(plan: Plan) -> str:
    import importlib.metadata as metadata

    package = {
        "openai_compat": "openai",
        "openai": "openai",
        "anthropic": "anthropic",
        "google": "google-genai",
        "organism": "transformers",
        "local": "transformers",
    }.get(plan.subject.provider, "cotlab")
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package
