"""How often a model restates the step that was removed, so that removing it looks harmless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cotlab.analysis.tables.chains import original_step_texts
from cotlab.analysis.view import LoggedExchange, RunView
from cotlab.store import read
from cotlab.text.restatement import is_restated
from cotlab.text.steps import SPLITTER_VERSION

_ITEMS_PER_READ = 64
"""Items whose replies are read from the log at once."""


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
    items = {item.id: item for item in read.get_suite(view.store, view.suite).items}
    scores = view.scores("accuracy_delta", facet={"mode": "remove"})
    scores = scores[scores["step"].notna() & (scores["evidence"].map(len) >= 2)]
    baseline_rows = dict(iter(view.scores("baseline_correct").groupby("item_id", sort=False)))
    groups = list(scores.groupby("item_id", sort=False))
    for start in range(0, len(groups), _ITEMS_PER_READ):
        chunk = groups[start : start + _ITEMS_PER_READ]
        keys = {str(evidence[1]) for _, rows in chunk for evidence in rows["evidence"]}
        for item_id, _ in chunk:
            if from_model and item_id in baseline_rows:
                keys.update(baseline_rows[item_id]["evidence"].iloc[0])
        exchanges = view.exchanges(tuple(keys))
        for item_id, rows in chunk:
            steps = original_step_texts(
                items[str(item_id)],
                baseline_rows.get(item_id, scores.iloc[:0]),
                from_model,
                partial(_select_exchanges, exchanges),
            )
            for evidence, step_index in zip(rows["evidence"], map(int, rows["step"]), strict=True):
                text = _reply_text(exchanges.get(evidence[1]))
                if text is not None and step_index < len(steps):
                    verdict = is_restated(steps[step_index], text)
                    if verdict is not None:
                        yield verdict


def _select_exchanges(
    exchanges: Mapping[str, LoggedExchange], keys: Sequence[str]
) -> dict[str, LoggedExchange]:
    return {key: exchanges[key] for key in keys if key in exchanges}


def _reply_text(exchange: LoggedExchange | None) -> str | None:
    """Return reasoning and text of a reply; None where they are not stored in full."""
    reply = None if exchange is None else exchange[1]
    if not reply or not isinstance(reply.get("text"), str) or reply.get("refused"):
        return None
    return f"{reply.get('reasoning') or ''}\n{reply['text']}"


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
