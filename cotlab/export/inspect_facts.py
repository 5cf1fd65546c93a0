"""Parts of an imported Inspect log that its run gives out again, and what it cannot give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cotlab.core.types import Item
from cotlab.suites.importers.logs import (
    EVALUATION_FIELDS,
    LOG_FACTS_KEY,
    TOO_LONG_KEY,
)

_NEVER_STORED = ("events", "stores", "arguments of the model", "role usage")


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
