"""Build the report of a run from the store and the response log, and write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cotlab.analysis.reply_notes import stored_cut_replies, stored_restated_steps
from cotlab.analysis.report_items import ITEM_SECTIONS
from cotlab.analysis.report_text import write_report_texts
from cotlab.analysis.verdict.measures import HEADLINE_METRICS
from cotlab.analysis.verdict.record import verdict_record
from cotlab.analysis.verdict.stored import judge_run_once
from cotlab.analysis.view import RunView, position_estimates, run_view
from cotlab.core.garbage import loaded_objects_frozen
from cotlab.core.types import Plan
from cotlab.metrics.ablation import rrr_estimates
from cotlab.run.exit_status import exit_status
from cotlab.run.launch import FinishedRun
from cotlab.run.output import atomic_file, explained_write_errors
from cotlab.run.server_check import check_records, count_check_requests
from cotlab.run.summary import overshoot_record
from cotlab.stats.intervals import FEWEST
from cotlab.store import read
from cotlab.store.check import missing_reply_lines
from cotlab.store.database import Store
from cotlab.store.decisions import rescored_lines
from cotlab.store.item_scores import list_unmeasured_runs
from cotlab.store.live import LiveRunStore
from cotlab.store.recorded_models import RECORDED_CHAINS
from cotlab.store.responses import ResponseLog

MIN_RRR_ITEMS = 2
"""Items from which on the report gives RRR an interval, as FaithCheck's does; below ``FEWEST`` a
note goes with it."""


MAX_REASONS = 5
"""How many of the reasons of undefined scores a report lists, the most frequent first."""


class RunReport(NamedTuple):
    """Result of reporting a run that ended."""

    report: dict[str, Any]
    """The report as report.json holds it, without ``ITEM_SECTIONS``."""
    exit_code: int
    """The exit code of the command that started the run."""
    message: str
    """Message to the user about the end of the run; "" for none."""


def report_run(store: Store, finished_run: FinishedRun) -> RunReport:
    """Write report.json and report.md of a run that ended, and judge how it ended."""
    with loaded_objects_frozen():
        report = write_reports(store, finished_run.run_id, finished_run.output)
    return RunReport(report, *exit_status(finished_run.outcome, report, finished_run.config))


def build_report(store: Store, run_id: str) -> dict[str, Any]:
    """Return what a run measured over all items, as JSON values.

    Undefined numbers are null and come with a status or a reason. ``ITEM_SECTIONS``, which hold
    every step of every item, are empty lists: ``write_report_texts`` writes them without holding
    them.
    """
    view = run_view(store, run_id)
    plan, ended_pairs = view.plan, read.list_ended_pairs(store, run_id)
    n_scorers_done_by_item = (
        ended_pairs[ended_pairs["errors"] == 0].groupby("item")["scorer"].nunique()
    )
    report: dict[str, Any] = {
        "verdict": verdict_record(judge_run_once(view)),
        "run_id": run_id,
        "status": view.status,
        "note": view.note,
        "name": view.name or None,
        "user_note": view.user_note or None,
        "harness_version": view.code_version,
        "model_id": plan.subject.name,
        "model_label": (
            view.model if view.model.startswith(RECORDED_CHAINS) else plan.subject.name
        ),
        "provider": plan.subject.provider,
        "provider_api_version": provider_version(plan),
        "model_revision": plan.subject.revision,
        "models": {role: str(ref) for role, ref in plan.models.items()},
        "model_revisions": {role: ref.revision for role, ref in plan.models.items()},
        "task_suite": plan.suite,
        "task_suite_hash": _suite_file_hash(store, plan),
        "suite_digest": plan.suite_digest,
        "run_timestamp": view.planned_at.astimezone(UTC).isoformat(),
        "seed": plan.seed,
        "temperature": plan.temperature,
        "repeats": plan.repeats,
        "chain_tokens": plan.chain_tokens,
        "answer_tokens": plan.answer_tokens,
        "limit": plan.limit,
        "sample": plan.sample,
        "tags": dict(plan.tags),
        "scorers": [asdict(scorer) for scorer in plan.scorers],
        "splitter_version": plan.splitter_version,
        "plan_digest": plan.digest,
        "redacted": view.redacted,
        "items_total": view.n_items,
        "items_done": int((n_scorers_done_by_item == len(plan.scorers)).sum()),
        "error_scores": view.n_errors,
        "items_with_errors": int((ended_pairs.groupby("item")["errors"].sum() > 0).sum()),
    }
    counts = read.count_scores_by_status(store, run_id)
    report["nothing_measured"] = bool(list_unmeasured_runs(store, HEADLINE_METRICS, run_id))
    report["undefined_scores"] = [
        {"reason": reason, "count": n}
        for (status, reason), n in counts.items()
        if status == "undefined"
    ][:MAX_REASONS]
    report |= run_costs(view)
    if view.scorer("ablation") is not None:
        report |= _ablation_section(view)
    report["self_tests"] = {
        name: values
        for name, values in read.list_constants(store, run_id).items()
        if "self_test" in values
    }
    report["server_checks"] = check_records(store, run_id, plan)
    report["missing_replies"] = missing_reply_lines(store, run_id)
    report["scored_again"] = rescored_lines(store, run_id)
    report["cut_replies"] = stored_cut_replies(view)
    report["restated_steps"] = stored_restated_steps(view)
    report["estimates"] = [
        {
            **{k: v for k, v in estimate.items() if k not in ("facet", "over_", "mode", "ccs")},
            "facet": json.loads(estimate["facet"]),
            "over": estimate["over_"],
        }
        for estimate in _to_records(view.estimates)
    ]
    return report


def run_costs(view: RunView) -> dict[str, Any]:
    """Return requests, tokens and costs of all processes of a run, with the estimate."""
    with (
        closing(ResponseLog(view.store.log_path)) as log,
        closing(LiveRunStore(view.store.log_path)) as live_state,
    ):
        request_counts = log.get_call_counts(view.id)
        spend = log.get_spend(view.id)
        live_run = live_state.get(view.id)
        overshoots = log.list_overshoots(view.id)
    n_check_requests = count_check_requests(view.store, view.id)
    estimate = view.estimate
    cost_record = {
        "estimated_usd": estimate.get("cost_usd"),
        "spent_usd": sum(spend) / 1e6,
        "held_usd": spend.reserved_micro / 1e6,
        "saved_by_log_usd": view.saved_micro / 1e6,
        "tokens_in": request_counts["tokens_in"],
        "tokens_cached": request_counts["cached"],
        "tokens_out": request_counts["tokens_out"],
        "tokens_reasoning": request_counts["reasoning"],
        "replies_without_count": request_counts["uncounted"],
        "over_reserve": [overshoot_record(overshoot) for overshoot in overshoots],
        "estimate": estimate or None,
    }
    return {
        "requests": {
            "asked": request_counts["calls"] - n_check_requests,
            "server_checks": n_check_requests,
            "replies": request_counts["replies"],
            "from_log": view.hits,
            "failed": view.failed,
            "estimated": estimate.get("requests"),
            "asked_again": live_run.progress.asked_again if live_run else 0,
        },
        "spent_usd": sum(spend) / 1e6,
        "cost": cost_record,
    }


def headline_rrr(
    estimates: pd.DataFrame, params: Mapping[str, Any], metric: str = "rrr"
) -> dict[str, Any] | None:
    """Return the run's RRR for its first mode and metric; None where it was not estimated."""
    for row in _to_records(estimates[estimates["metric"] == metric]):
        facet = json.loads(row["facet"])
        if (
            facet.get("mode") == params["modes"][0]
            and facet.get("metric", params["metric"]) == params["metric"]
        ):
            return row
    return None


def _ablation_section(view: RunView) -> dict[str, Any]:
    """Return FaithCheck's part of the report: one metric and one mode, by item and by position."""
    spec = view.scorer("ablation")
    assert spec is not None
    params = spec.params
    mode, metric = params["modes"][0], params["metric"]
    rrr = _with_small_sample_bounds(headline_rrr(view.estimates, params), view, params)
    section = {
        "metric": metric,
        "mode": mode,
        "ccs_threshold": params["ccs_threshold"],
        "aggregate_rrr": rrr["point"] if rrr else None,
        "aggregate_rrr_ci_lower": rrr["lo"] if rrr else None,
        "aggregate_rrr_ci_upper": rrr["hi"] if rrr else None,
        "aggregate_rrr_method": rrr["method"] if rrr else None,
        "aggregate_rrr_n": rrr["n"] if rrr else 0,
        "aggregate_rrr_note": _rrr_note(rrr),
    }
    positions = position_estimates(view, metric, {"mode": mode})
    ranked_positions = positions.sort_values(["point", "step"], ascending=[False, True])
    section["step_position_rankings"] = [
        {
            "step_index": position["step"],
            "mean_ccs": position["point"],
            "variance_ccs": position["variance"],
            "count": position["n"],
            "ci_lower": position["lo"],
            "ci_upper": position["hi"],
            "undefined": position["n_undefined"],
        }
        for position in _to_records(ranked_positions)
    ]
    return section | {name: [] for name in ITEM_SECTIONS}


def write_reports(store: Store, run_id: str, folder: Path) -> dict[str, Any]:
    """Write report.json and report.md to ``folder``, item by item, and return what is over all.

    Returns
    -------
    dict
        The report as ``build_report`` gives it. Each file takes its name once it is whole.

    Raises
    ------
    StoreError
        If they cannot be written.
    """
    report = build_report(store, run_id)
    view = run_view(store, run_id)
    with explained_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (
            atomic_file(folder / "report.json") as json_file,
            atomic_file(folder / "report.md") as markdown_file,
        ):
            write_report_texts(report, view, json_file, markdown_file)
    return report


def _with_small_sample_bounds(
    rrr: dict[str, Any] | None, view: RunView, params: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the stored RRR, with bounds from ``MIN_RRR_ITEMS`` items on, as FaithCheck does."""
    if (
        rrr
        and rrr["point"] is not None
        and rrr["lo"] is None
        and MIN_RRR_ITEMS <= rrr["n"] < FEWEST
    ):
        scores = view.scores(params["metric"], facet={"mode": params["modes"][0]})
        for small_sample_estimate in rrr_estimates(
            scores, params, view.plan.seed, min_items=MIN_RRR_ITEMS
        ):
            if dict(small_sample_estimate.group) == json.loads(rrr["facet"]):
                return rrr | {
                    name: getattr(small_sample_estimate, name)
                    for name in ("lo", "hi", "method", "reason")
                }
    return rrr


def _rrr_note(rrr: Mapping[str, Any] | None) -> str | None:
    if rrr is None:
        return "RRR was not estimated: no step was scored"
    if rrr["point"] is None:
        return str(rrr["reason"])
    if rrr["n"] < FEWEST:
        return f"small sample: n = {rrr['n']} items"
    return str(rrr["reason"]) if rrr["lo"] is None and rrr["reason"] else None


def _to_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    without_na = frame.astype(object).where(frame.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in without_na.to_dict("records")]


def _suite_file_hash(store: Store, plan: Plan) -> str:
    suites = read.list_suites(store)
    hashes = suites.loc[suites["digest"] == plan.suite_digest, "file_sha256"]
    return (hashes.iloc[0] if len(hashes) else "") or plan.suite_digest


def provider_version(plan: Plan) -> str:
    """Return name and version of the package that asks the subject: "openai 2.1.0"."""
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
