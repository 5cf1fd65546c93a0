"""How often a model restates the step that was removed, so that removing it looks harmless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from cotlab.analysis.tables.chains import reply_step_texts
from cotlab.analysis.view import LoggedExchange, RunView
from cotlab.store import read
from cotlab.store.removed_steps import chain_keys_by_item, removed_step_replies
from cotlab.store.responses import ResponseLog
from cotlab.text.restatement import is_restated
from cotlab.text.steps import SPLITTER_VERSION

_ROWS_PER_READ = 2048
"""Scores whose replies are read from the log at once."""


def restated_step_record(view: RunView) -> dict[str, Any] | None:
    """Return how many replies without a step restate it; None where no step was removed.

    Counted are the replies whose texts are stored in full, where the step states something that
    can be recognised. A reply is its text and its reasoning.
    """
    spec = view.scorer("ablation")
    if spec is None or "remove" not in spec.params["modes"]:
        return None
    verdicts = list(_verdicts(view, spec.params["chain"] == "own"))
    n_restating = sum(verdicts)
    return {
        "mode": "remove",
        "replies": len(verdicts),
        "restating": n_restating,
        "share": n_restating / len(verdicts) if verdicts else None,
        "reason": None
        if verdicts
        else "no reply is stored in full with a step that it could restate",
    }


def _verdicts(view: RunView, from_model: bool) -> Iterator[bool]:
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
            keys = [row["key"] for row in block] + [
                key for chain in chains.values() for key in chain
            ]
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
