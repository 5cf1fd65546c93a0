"""The replies of a run that were cut off, and the option that lets them end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from cotlab.core.types import Plan
from cotlab.store.cut_replies import EVIDENCE_SQL, add_cut_replies
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog

_KEYS_PER_READ = 50_000
"""Requests that are looked up in the log at once."""


def cut_reply_records(store: Store, run_id: str, plan: Plan) -> list[dict[str, Any]]:
    """Return the replies of each largest number of tokens of which some were cut off."""
    options = {
        "--chain-tokens": plan.chain_tokens,
        "--answer-tokens": plan.answer_tokens,
        **{
            f"--set {spec.name}.max_tokens": spec.params["max_tokens"]
            for spec in plan.scorers
            if "max_tokens" in spec.params
        },
    }
    keys = store.query_columns(EVIDENCE_SQL, [run_id])["key"]
    with closing(ResponseLog(store.log_path)) as log:
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
                name for name, limit in options.items() if count.max_tokens in (limit, None)
            ],
        }
        for count in counts
        if count.n_cut_off
    ]


def cut_reply_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each record of a report; reports of old have none."""
    lines = []
    for record in report.get("cut_replies", []):
        limit_text = (
            "their limit of output tokens"
            if record["max_tokens"] is None
            else f"{record['max_tokens']:,} output tokens"
        )
        advice = f" Raise {' or '.join(record['options'])}." if record["options"] else ""
        lines.append(
            f"{record['cut_off']:,} of {record['replies']:,} replies were cut off at {limit_text}:"
            f" one that does not state its answer before has none.{advice}"
        )
    return lines
