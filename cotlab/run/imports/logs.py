"""Make a run of an imported log: its chains are the model's own, its replies are in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.core.keys import digest
from cotlab.core.requests import RECORDED_ERROR, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import DRAW_KEY, RECORDED_PROVIDER, Item, Suite
from cotlab.metrics.kit import ask_chain
from cotlab.run.config import RunConfig, read_config
from cotlab.run.launch import start_run
from cotlab.run.plan import params_of
from cotlab.run.resolved import ResolvedRun
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.suites.importers.logs import InspectLog

RECORDED_SCORERS = ("flags", "verification", "tool_trace", "repair", "text_features")
"""Scorers that read a chain as it is; all others ask the model, which a log cannot answer."""
DEFAULT_SCORERS = RECORDED_SCORERS[:3]
TAG_NAMES = ("task", "file", "eval_id", "created", "status", "solver", "temperature")
"""What a log says of itself and a run keeps as tags."""
MAX_ERROR_CHARS = 500
"""Characters of a sample's error that are shown."""


class ImportedRun(NamedTuple):
    """An imported run of the store."""

    run_id: str
    """Name of the run."""
    suite: str
    """Name of its suite."""
    model: str
    """Name of its model."""
    is_new: bool
    """Whether it was not there before."""


def store_inspect_log(
    store: Store,
    log: InspectLog,
    scorers: Sequence[str] = DEFAULT_SCORERS,
    *,
    tags: Mapping[str, str] | None = None,
) -> ImportedRun:
    """Score the chains of a log and keep them as a run; a second time adds nothing.

    Replies go to the response log under the keys of the requests for the model's own chain, so that
    whatever reads a run's replies finds them. The n-th sample with one question is draw n of it.

    Parameters
    ----------
    store : Store
    log : InspectLog
    scorers : sequence of str
        Of ``RECORDED_SCORERS``.
    tags : mapping, optional
        Beside those that say where the log comes from.

    Raises
    ------
    ConfigError
        If a scorer would have to ask the model, or only hashes of texts are to be kept.
    """
    for name in scorers:
        if name not in RECORDED_SCORERS:
            raise ConfigError(
                f"--scorer {name} asks the model, and a log answers nothing that was not asked:"
                f" choose of {', '.join(RECORDED_SCORERS)}."
            )
    suite = _recorded_suite(log)
    config = _recorded_config(log, suite, scorers, tags or {})
    if config.redact_prompts:
        raise ConfigError(
            "An imported log is kept with its texts: leave out --redact-prompts"
            " (COTLAB_REDACT_PROMPTS)."
        )
    run_id = f"import-{digest([suite.digest, config.model, list(scorers), config.tag])[:12]}"
    with store.writing() as connection:
        is_new = not write.has_run(connection, run_id)
    if is_new:
        _put_replies(store, log, suite, config)
        start_run(config, store, suite=suite, run_id=run_id)
    plan = read.plan_from_row(read.get_run(store, run_id))
    return ImportedRun(run_id, plan.suite, plan.subject.name, is_new)


def _recorded_suite(log: InspectLog) -> Suite:
    """Return the items without chains, which are the model's own, with numbers of their draws."""
    n_asked: Counter[str] = Counter()
    items: list[Item] = []
    for item in log.items:
        draw = n_asked[item.question]
        n_asked[item.question] += 1
        meta = {**item.meta, **({DRAW_KEY: draw} if draw else {})}
        items.append(replace(item, steps=(), meta=meta))
    return Suite.from_items(log.task, items)


def _recorded_config(
    log: InspectLog, suite: Suite, scorers: Sequence[str], tags: Mapping[str, str]
) -> RunConfig:
    header = {"task": log.task, **log.header}
    revision = digest([suite.digest, dict(log.replies)])[:16]
    fields: dict[str, Any] = {
        "provider": RECORDED_PROVIDER,
        "model": f"{log.model}@{revision}",
        "chain": "own",
        "scorer": list(scorers),
        "embedder": "none",
        "tag": {name: header[name] for name in TAG_NAMES if name in header} | dict(tags),
    }
    return read_config(fields)


def _put_replies(store: Store, log: InspectLog, suite: Suite, config: RunConfig) -> None:
    """Store each reply under the key of the request by which the run asks for it."""
    resolved = ResolvedRun(config)
    models = {role: provider.ref for role, provider in resolved.open_providers().items()}
    plan = resolved.plan(suite, models)
    params = params_of(plan, plan.scorers[0])
    exchanges = []
    for item in plan.items_of(suite):
        response = log.replies.get(item.id) or _recorded_error(item)
        if response is None:
            continue
        request = ask_chain(params, item.question, sample=int(item.meta.get(DRAW_KEY, 0)))
        exchanges.append((request, replace(response, key=request.key)))
    with closing(ResponseLog(store.log_path)) as response_log:
        response_log.put(exchanges, "")


def _recorded_error(item: Item) -> Response | None:
    """Return the error in which a sample ended before a reply; None where it ended in none."""
    if "error" not in item.meta:
        return None
    message = printable_line(str(item.meta["error"]))[:MAX_ERROR_CHARS]
    return Response("", finish=RECORDED_ERROR, sent={"error": f"logged by Inspect: {message}"})
