"""Score runs again by the scorers of this version, from stored replies and with no request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.core.program import Peers, Preparation, Program, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import RECORDED_ERROR, Failed, Reply, Request
from cotlab.core.types import Plan, ScorerSpec
from cotlab.metrics.asked_answers import program_of
from cotlab.run.plan import params_digest, params_of
from cotlab.run.summary import summarise
from cotlab.store import read, write
from cotlab.store.check import record_replies
from cotlab.store.database import Store
from cotlab.store.decisions import RESCORED, add_audit
from cotlab.store.live import LiveRunStore
from cotlab.store.responses import ResponseLog
from cotlab.store.write import EndedItem
from cotlab.text.steps import SPLITTER_VERSION


class Rescored(NamedTuple):
    """A run that older versions of its scorers scored."""

    run: str
    """Id of the run."""
    changes: str
    """Scorers with their versions, as in ``ablation 14 (now 15)``."""
    reason: str | None
    """Why it keeps its scores; None where it was scored again."""


def rescore_runs(store: Store) -> Iterator[Rescored]:
    """Score each run of older scorers again, the newest first; one that cannot be stays as it is.

    An item with a failed request may fail again; where an item without one needs a reply that is
    not stored, the whole run keeps its scores.
    """
    for row in read.list_runs(store).to_dict("records"):
        run, plan = str(row["id"]), read.plan_from_row(row)
        changes: list[str] = []
        reason = None
        try:
            if not (changes := version_changes(plan)):
                continue
            _rescore(store, run, plan, changes)
        except CotlabError as error:
            reason = str(error)
        yield Rescored(run, ", ".join(changes), reason)


def version_changes(plan: Plan) -> list[str]:
    """Return what computes other numbers now than when a run began, as in ``rrr 1 (now 2)``."""
    versions = [(spec.name, spec.version, SCORERS[spec.name].version) for spec in plan.scorers]
    versions.append(("step splitter", plan.splitter_version, SPLITTER_VERSION))
    return [f"{name} {before} (now {now})" for name, before, now in versions if before != now]


def _rescore(store: Store, run: str, old_plan: Plan, changes: list[str]) -> None:
    with closing(LiveRunStore(store.log_path)) as live_runs:
        live_run = live_runs.get(run)
    if live_run is not None and live_run.free_in_s > 0:
        raise ConfigError("it is running")
    if read.is_suite_redacted(store, old_plan.suite_digest):
        raise ConfigError("its texts are redacted")
    specs = [replace(spec, version=SCORERS[spec.name].version) for spec in old_plan.scorers]
    plan = replace(old_plan, scorers=tuple(specs), splitter_version=SPLITTER_VERSION)
    is_divided_otherwise = old_plan.splitter_version != SPLITTER_VERSION
    with closing(ResponseLog(store.log_path)) as log:
        results = [
            _score(store, run, plan, spec, log)
            for spec, old_spec in zip(specs, old_plan.scorers, strict=True)
            if is_divided_otherwise or spec.version != old_spec.version
        ]
    with store.writing() as connection:
        write.set_plan(connection, run, plan)
        for constants_row, ended_items in results:
            if constants_row is not None:
                write.set_constants(connection, run, *constants_row)
            write.add_ended(connection, run, ended_items)
        add_audit(connection, "cotlab", RESCORED, run, None, changes, "")
    summarise(store, run, plan)
    record_replies(store, run)


def _score(
    store: Store, run: str, plan: Plan, spec: ScorerSpec, log: ResponseLog
) -> tuple[tuple[str, str, Any] | None, list[EndedItem]]:
    """Return the constants of a scorer as they are stored, and its scores of the run's items."""
    scorer: Scorer = SCORERS[spec.name]
    suite = read.get_suite(store, plan.suite_digest)
    peers = Peers.from_suite(suite, plan.seed)
    constants: dict[str, Any] = {}
    constants_row = None
    if scorer.prepare is not None:
        constants, n_missing = _replay(scorer.prepare(suite, params_of(plan, spec)), log)
        if n_missing:
            raise ConfigError(f"{spec.name} needs replies for its preparation that are not stored")
        constants_row = (spec.name, params_digest(plan, spec, {}), constants)
    params, params_id = params_of(plan, spec, constants), params_digest(plan, spec, constants)
    pairs = read.list_ended_pairs(store, run)
    pairs = pairs[pairs["scorer"] == spec.name]
    n_errors_by_item = dict(zip(pairs["item"], pairs["errors"], strict=True))
    ended_items = []
    for item in suite.items:
        if item.id in n_errors_by_item:
            scores, n_missing = _replay(program_of(scorer, item, params, peers), log)
            if n_missing and not n_errors_by_item[item.id]:
                raise ConfigError(
                    f"{spec.name} needs a reply about item {item.id!r} that is not stored: a new"
                    " run asks for it"
                )
            ended_items.append(EndedItem(spec.name, spec.version, params_id, item.id, scores))
    return constants_row, ended_items


def _replay(program: Program | Preparation, log: ResponseLog) -> tuple[Any, int]:
    """Return the result of a program on stored replies, and how many were not stored."""
    n_missing = 0

    def stored_reply(request: Request) -> Reply:
        nonlocal n_missing
        reply = log.get(request.key)
        if reply is None:
            n_missing += 1
            return Failed(request.key, "the reply is not stored", 0)
        if reply.finish == RECORDED_ERROR and reply.text is None:
            return Failed(
                request.key, str(reply.sent.get("error")), 0, bool(reply.sent.get("unsupported"))
            )
        return reply

    try:
        requests = next(program)
        while True:
            requests = program.send([stored_reply(request) for request in requests])
    except StopIteration as end:
        return end.value, n_missing
