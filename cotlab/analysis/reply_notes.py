"""What the replies of a run leave open: those that were cut off, and steps that they restate.

Both are computed once and kept in the store when the run ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

from cotlab.analysis.tables.chains import reply_step_texts
from cotlab.analysis.view import LoggedExchange, RunView
from cotlab.store import read
from cotlab.store.cut_replies import EVIDENCE_SQL, add_cut_replies
from cotlab.store.removed_steps import chain_keys_by_item, removed_step_replies
from cotlab.store.responses import ResponseLog
from cotlab.store.run_results import ResultKind, RunState, keep_results, read_results
from cotlab.text.restatement import is_restated
from cotlab.text.steps import SPLITTER_VERSION

RULES_VERSION = "1"
"""Raised whenever a run would have other notes."""
_KEYS_PER_READ = 50_000
"""Requests that are looked up in the log at once."""
_ROWS_PER_READ = 2048
"""Scores whose replies are read from the log at once."""


def stored_cut_replies(view: RunView) -> list[dict[str, Any]]:
    """Return the replies of a run that were cut off, as ``cut_reply_records`` does."""
    records: list[dict[str, Any]] = _stored_value(view, "cut_replies", cut_reply_records)
    return records


def stored_restated_steps(view: RunView) -> dict[str, Any] | None:
    """Return how many replies restate a removed step, as ``restated_step_record`` does."""
    record: dict[str, Any] | None = _stored_value(view, "restated_steps", restated_step_record)
    return record


def _stored_value(view: RunView, kind: ResultKind, compute: Callable[[RunView], Any]) -> Any:
    """Return what is kept of a run; else compute it and keep it, where the run has ended."""
    state = RunState(view.id, view.revision, view.status)
    text = read_results(view.store, kind, [state], RULES_VERSION).get(state)
    if text is not None:
        with suppress(ValueError):  # what cannot be read is computed anew
            return json.loads(text)
    value = compute(view)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    keep_results(view.store, kind, {state: text}, RULES_VERSION)
    return value


def cut_reply_records(view: RunView) -> list[dict[str, Any]]:
    """Return the replies of each largest number of tokens of which some were cut off.

    ``options`` are those of a command that let them end.
    """
    plan = view.plan
    limits = {"--chain-tokens": plan.chain_tokens, "--answer-tokens": plan.answer_tokens}
    for spec in plan.scorers:
        if "max_tokens" in spec.params:
            limits[f"--set {spec.name}.max_tokens"] = spec.params["max_tokens"]
    keys = view.store.query_columns(EVIDENCE_SQL, [view.id])["key"]
    with closing(ResponseLog(view.store.log_path)) as log:
        counts = add_cut_replies(
            count
            for start in range(0, len(keys), _KEYS_PER_READ)
            for count in log.count_cut_replies(keys.slice(start, _KEYS_PER_READ).to_pylist())
        )
    return [
        {
            "max_tokens": count.max_tokens,
            "replies": count.n_replies,
            "cut_off": count.n_cut_off,
            "options": [
                name for name, limit in limits.items() if count.max_tokens in (limit, None)
            ],
        }
        for count in counts
        if count.n_cut_off
    ]


def cut_reply_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each record of a report; reports of old have none."""
    lines = []
    for record in report.get("cut_replies", []):
        limit_text = "their limit of output tokens"
        if record["max_tokens"] is not None:
            limit_text = f"{record['max_tokens']:,} output tokens"
        advice = f" Raise {' or '.join(record['options'])}." if record["options"] else ""
        lines.append(
            f"{record['cut_off']:,} of {record['replies']:,} replies were cut off at {limit_text}:"
            f" one that does not state its answer before has none.{advice}"
        )
    return lines


def restated_step_record(view: RunView) -> dict[str, Any] | None:
    """Return how many replies without a step restate it; None where no step was removed.

    Counted are the replies whose texts are stored in full, where the step states something that
    can be recognised. A reply is its text and its reasoning.
    """
    spec = view.scorer("ablation")
    if spec is None or "remove" not in spec.params["modes"]:
        return None
    verdicts = list(_restatements(view, spec.params["chain"] == "own"))
    reason = None if verdicts else "no reply is stored in full with a step that it could restate"
    return {
        "mode": "remove",
        "replies": len(verdicts),
        "restating": sum(verdicts),
        "share": sum(verdicts) / len(verdicts) if verdicts else None,
        "reason": reason,
    }


def _restatements(view: RunView, from_model: bool) -> Iterator[bool]:
    """Yield of each reply to a chain without a step whether it restates the step."""
    is_divided_otherwise = from_model and view.plan.splitter_version != SPLITTER_VERSION
    if is_divided_otherwise or read.is_suite_redacted(view.store, view.suite):
        return
    rows = removed_step_replies(view.store, view.id, view.suite)
    keys_by_item = chain_keys_by_item(view.store, view.id) if from_model else {}
    with closing(ResponseLog(view.store.log_path)) as log:
        for start in range(0, len(rows), _ROWS_PER_READ):
            block = rows.slice(start, _ROWS_PER_READ).to_pylist()
            chains = {row["item_id"]: keys_by_item.get(row["item_id"], ()) for row in block}
            keys = [row["key"] for row in block]
            keys += [key for chain in chains.values() for key in chain]
            exchanges = log.load_exchanges(keys, with_requests=False)
            steps_by_item = {
                item_id: reply_step_texts(exchanges[key] for key in chain if key in exchanges)
                for item_id, chain in chains.items()
            }
            for row in block:
                steps, step = steps_by_item[row["item_id"]], row["step"]
                chain_text = steps[step] if step < len(steps) else None
                step_text = chain_text if from_model else row["text"]
                text = _reply_text(exchanges.get(row["key"]))
                if text is not None and step_text is not None:
                    verdict = is_restated(step_text, text)
                    if verdict is not None:
                        yield verdict


def _reply_text(exchange: LoggedExchange | None) -> str | None:
    """Return reasoning and text of a reply; None where they are empty or not stored in full."""
    reply = None if exchange is None else exchange[1]
    if not reply or not isinstance(reply.get("text"), str) or reply.get("refused"):
        return None
    return f"{reply.get('reasoning') or ''}\n{reply['text']}".strip() or None


def restated_step_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence about the restated steps; none where no step was removed."""
    record = report.get("restated_steps")
    if record is None:
        return []
    if record["share"] is None:
        return [f"How often replies restate the removed step is unknown: {record['reason']}."]
    line = (
        f"{record['restating']:,} of {record['replies']:,} replies without a step"
        f" ({record['share']:.0%}) restate that step."
    )
    if record["restating"]:
        line += (
            " Where a model restates what was removed, removing it changes little whether or not"
            " the model uses the step."
        )
    return [line]


def restated_step_warnings(report: Mapping[str, Any]) -> list[str]:
    """Return the sentence where at least one reply restates the removed step."""
    is_restated_once = bool((report.get("restated_steps") or {}).get("restating"))
    return restated_step_lines(report) if is_restated_once else []
