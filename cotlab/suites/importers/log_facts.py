"""What an Inspect log says of itself beside its samples: plan, scorers, results, statistics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cotlab.suites.importers.log_samples import MAX_MESSAGE_CHARACTERS, json_value

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

EVALUATION_FIELDS = (
    *("task_version", "task_args", "solver", "solver_args", "tags", "model_generate_config"),
    *("revision", "packages", "scorers", "metrics"),
)
"""Fields of a log's ``eval`` that are kept; arguments of the model may hold keys, and are not."""
LOG_FIELDS = ("plan", "results", "stats", "error")
"""Parts of a log that are kept."""
LOG_FACTS_KEY = "inspect_log"
"""Key of the meta of a log's first item under which its facts are."""
TOO_LONG_KEY = "left_out"
"""Key of the parts that are left out for their length."""


def log_facts(log: EvalLog) -> dict[str, Any]:
    """Return what a log says of itself, as JSON values, by the names that Inspect has for it.

    A part of more than ``MAX_MESSAGE_CHARACTERS`` characters is left out, and named.
    """
    evaluation = log.eval.model_dump(mode="json", include=set(EVALUATION_FIELDS), exclude_none=True)
    facts: dict[str, Any] = {"eval": json_value(evaluation)}
    for name in LOG_FIELDS:
        part = getattr(log, name)
        if part is not None:
            facts[name] = json_value(part.model_dump(mode="json", exclude_none=True))
    too_long = [
        name
        for name, part in facts.items()
        if len(json.dumps(part, ensure_ascii=False)) > MAX_MESSAGE_CHARACTERS
    ]
    short_facts = {name: part for name, part in facts.items() if name not in too_long and part}
    return {**short_facts, **({TOO_LONG_KEY: too_long} if too_long else {})}
