"""A suite of pairs: what the models of two runs wrote to the same prompts, out of the replies that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Complete
from cotlab.core.types import Item, Plan, Suite
from cotlab.metrics.judge.scorer import BASE, HUMAN, TUNED
from cotlab.run.imports.mediation import is_imported
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.text.prompts.chain import ask_rest

_CHUNK = 500
"""Keys that are looked up in one query."""
_SINGLE_RUN, _OTHER, _NONE, _REFUSED = (
    "in one run only",
    "with another question",
    "without a kept reply",
    "refused",
)


class Paired(NamedTuple):
    """Pairs of two runs: the suite, how many items were left out and why, and what groups the fine-tuned run."""

    suite: Suite
    left_out: Mapping[str, int]
    tags: Mapping[str, str]

    def left_out_message(self) -> str:
        """What was left out, in one line; empty where nothing was."""
        if not self.left_out:
            return ""
        listed = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
        return (
            f"{len(self.suite.items)} pairs; {sum(self.left_out.values())} items are left out:"
            f" {listed}."
        )


class _Written(NamedTuple):
    """What a model wrote to an item: its reply and the key of it, or why there is none."""

    text: str
    key: str
    missing_reason: str = ""


def paired_suite(store: Store, base_run: str, tuned_run: str) -> Paired:
    """The items that two runs share, each with what both models wrote when they were asked for their own chain.

    Parameters
    ----------
    store : Store
    base_run, tuned_run : str
        Ids of two runs that asked their models for chains of their own.

    Returns
    -------
    Paired
        Items in the order of the base run's suite: same id, question and answer, without steps;
        ``meta`` holds both responses, the request keys and runs that they come from, and a person's
        score where the base run's item has one. An item that only one run has, whose questions
        differ, or that lacks a kept reply in one of them is left out and counted. ``tags`` are the
        fine-tuned run's.

    Raises
    ------
    UnknownName
        If there is no such run.
    ConfigError
        If the two are one run, one is imported or kept hashes instead of texts, or no pair is left.
    """
    if base_run == tuned_run:
        raise ConfigError("--base-run and --tuned-run name the same run: a pair is of two.")
    sides = [_side(store, run) for run in (base_run, tuned_run)]
    items = [{item.id: item for item in suite.items[: plan.limit]} for plan, suite in sides]
    shared = [i for i in items[0] if i in items[1] and items[0][i].question == items[1][i].question]
    left_out = Counter({_SINGLE_RUN: len(items[0].keys() ^ items[1].keys())})
    left_out[_OTHER] = len(items[0].keys() & items[1].keys()) - len(shared)
    base, tuned = (
        _written(store, run, plan, [of[i] for i in shared])
        for run, (plan, _), of in zip((base_run, tuned_run), sides, items, strict=True)
    )
    pairs = []
    for name in shared:
        missing = base[name].missing_reason or tuned[name].missing_reason
        left_out[missing] += bool(missing)
        if not missing:
            pairs.append(_pair(items[0][name], base[name], tuned[name], base_run, tuned_run))
    counted = {reason: count for reason, count in sorted(left_out.items()) if reason and count}
    if not pairs:
        reason = ", ".join(f"{count} {reason}" for reason, count in counted.items())
        raise ConfigError(
            f"No pair: of the items of {base_run} and {tuned_run} {reason}. Both runs must have"
            " asked for the model's own chain (--chain own) on the same suite."
        )
    return Paired(Suite.of(f"pairs-{base_run}-{tuned_run}", pairs), counted, sides[1][0].tags)


def _side(store: Store, run: str) -> tuple[Plan, Suite]:
    row = read.get_run(store, run)
    plan = read.stored_plan(row)
    if is_imported(plan):
        raise ConfigError(f"Run {run} was imported: no replies of its model are kept.")
    if row["redacted"] or read.is_redacted(store, plan.suite_digest):
        raise ConfigError(f"Run {run} kept hashes instead of texts: there is nothing to compare.")
    return plan, read.get_suite(store, plan.suite_digest)


def _written(store: Store, run: str, plan: Plan, items: Sequence[Item]) -> dict[str, _Written]:
    """What the run's model wrote to each item when it was asked for a whole chain; its first draw."""
    keys: dict[str, list[str]] = {}
    for at in range(0, len(items), _CHUNK):
        ids = [item.id for item in items[at : at + _CHUNK]]
        columns = ("item_id", "evidence")
        for name, group in read.select_scores(store, run, items=ids, columns=columns).groupby(
            "item_id"
        )["evidence"]:
            keys[str(name)] = list(dict.fromkeys(k for entry in group for k in entry))
    requested = list(dict.fromkeys(key for item in items for key in keys.get(item.id, ())))
    chunks = (requested[at : at + _CHUNK] for at in range(0, len(requested), _CHUNK))
    log = ResponseLog(store.log_path)
    try:
        stored = {k: entry for chunk in chunks for k, entry in log.requests(chunk).items()}
    finally:
        log.close()
    return {
        item.id: _choose_reply(
            item, plan, {k: stored[k] for k in keys.get(item.id, ()) if k in stored}
        )
        for item in items
    }


_StoredPair = tuple[dict[str, Any] | None, dict[str, Any] | None]


def _choose_reply(item: Item, plan: Plan, stored: Mapping[str, _StoredPair]) -> _Written:
    """The reply to the plain question, of the request that allowed the longest where there are several."""
    candidates = sorted(
        _chains(item, plan, stored),
        key=lambda pair: (pair[0]["sample"], -pair[0]["max_tokens"], pair[1]["key"]),
    )
    if not candidates:
        return _Written("", "", _NONE)
    reply = candidates[0][1]
    if reply.get("refused"):
        return _Written("", "", _REFUSED)
    text = "\n\n".join(
        part.strip()
        for part in (reply.get("reasoning"), reply.get("text"))
        if part and part.strip()
    )
    return _Written(text, reply["key"]) if text else _Written("", "", _NONE)


def _chains(
    item: Item, plan: Plan, stored: Mapping[str, _StoredPair]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The kept requests that ask the run's model for the whole chain of an item, with their replies."""
    prompt = ask_rest(item.question, (), plan.subject.form)
    for request, reply in stored.values():
        if (
            request is None
            or reply is None
            or request["kind"] != Complete.kind
            or request["model"] != to_json_value(plan.subject)
        ):
            continue
        if (
            request["messages"] == to_json_value(prompt.messages)
            and request["prefix"] == prompt.prefix
        ):
            yield request, reply


def _pair(item: Item, base: _Written, tuned: _Written, base_run: str, tuned_run: str) -> Item:
    meta: dict[str, Any] = {
        BASE: base.text,
        TUNED: tuned.text,
        "base_key": base.key,
        "tuned_key": tuned.key,
        "base_run": base_run,
        "tuned_run": tuned_run,
    }
    if HUMAN in item.meta:
        meta[HUMAN] = item.meta[HUMAN]
    return Item(item.id, item.question, item.answer, (), item.category, meta)
