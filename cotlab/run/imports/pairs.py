"""Make a suite of pairs: the stored replies of two runs' models to the same prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.core.keys import to_json_value
from cotlab.core.requests import Complete
from cotlab.core.types import Item, Plan, Suite
from cotlab.metrics.judge import BASE_KEY, HUMAN_KEY, TUNED_KEY
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.responses import ResponseLog
from cotlab.text.answers.markers import stated_answer_text
from cotlab.text.prompts.chain import continuation_prompt

_ITEMS_PER_QUERY = 500
"""Items whose scores are read at once."""
_SINGLE_RUN_REASON, _OTHER_QUESTION_REASON = "in one run only", "with another question"
_NO_REPLY_REASON, _REFUSED_REASON = "without a kept reply", "refused"
_CUT_OFF_REASON = "cut off before the answer"


class PairedRuns(NamedTuple):
    """Pairs of two runs: suite, items left out by reason, and tags of the fine-tuned run."""

    suite: Suite
    """One item for each pair."""
    n_left_out_by_reason: Mapping[str, int]
    """Items that have no pair, by reason."""
    tags: Mapping[str, str]
    """Tags that group the fine-tuned run."""

    def left_out_message(self) -> str:
        """Return what was left out, in one line; empty where nothing was."""
        if not self.n_left_out_by_reason:
            return ""
        reasons_text = ", ".join(
            f"{count} {reason}" for reason, count in self.n_left_out_by_reason.items()
        )
        return (
            f"{len(self.suite.items)} pairs; {sum(self.n_left_out_by_reason.values())} items are"
            f" left out: {reasons_text}."
        )


class StoredReply(NamedTuple):
    """What a model wrote to an item: reply and key, or why it is no half of a pair."""

    text: str
    key: str
    unpaired_reason: str = ""


def paired_suite(store: Store, base_run: str, tuned_run: str) -> PairedRuns:
    """Return the items that two runs share, with the chains that both models wrote themselves.

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
        differ, that lacks a kept reply in one of them, or whose reply was cut off before its
        answer is left out and counted. ``tags`` are the fine-tuned run's.

    Raises
    ------
    UnknownName
        If there is no such run.
    ConfigError
        If the two are one run, one is imported or kept hashes instead of texts, or no pair is left.
    """
    if base_run == tuned_run:
        raise ConfigError("--base-run and --tuned-run name the same run: a pair is of two.")
    plans, items_by_id = list[Plan](), list[dict[str, Item]]()
    for run_id in (base_run, tuned_run):
        plan, suite = _load_plan_and_suite(store, run_id)
        plans.append(plan)
        items_by_id.append({item.id: item for item in plan.items_of(suite)})
    base_items, tuned_items = items_by_id
    common_ids = [item_id for item_id in base_items if item_id in tuned_items]
    shared_ids = [k for k in common_ids if base_items[k].question == tuned_items[k].question]
    n_left_out = Counter(
        {
            _SINGLE_RUN_REASON: len(base_items.keys() ^ tuned_items.keys()),
            _OTHER_QUESTION_REASON: len(common_ids) - len(shared_ids),
        }
    )
    replies = [
        stored_replies(store, run_id, plan, [items[k] for k in shared_ids])
        for run_id, plan, items in zip((base_run, tuned_run), plans, items_by_id, strict=True)
    ]
    pairs = []
    for item_id in shared_ids:
        base_reply, tuned_reply = (run_replies[item_id] for run_replies in replies)
        if reason := base_reply.unpaired_reason or tuned_reply.unpaired_reason:
            n_left_out[reason] += 1
            continue
        item = base_items[item_id]
        meta = {
            BASE_KEY: base_reply.text,
            TUNED_KEY: tuned_reply.text,
            "base_key": base_reply.key,
            "tuned_key": tuned_reply.key,
            "base_run": base_run,
            "tuned_run": tuned_run,
            **({HUMAN_KEY: item.meta[HUMAN_KEY]} if HUMAN_KEY in item.meta else {}),
        }
        pairs.append(replace(item, steps=(), meta=meta))
    n_left_out_by_reason = {reason: count for reason, count in sorted(n_left_out.items()) if count}
    if not pairs:
        reasons = ", ".join(f"{count} {reason}" for reason, count in n_left_out_by_reason.items())
        raise ConfigError(
            f"No pair: of the items of {base_run} and {tuned_run} {reasons}. Both runs must have"
            " asked for the model's own chain (--chain own) on the same suite."
        )
    return PairedRuns(
        Suite.from_items(f"pairs-{base_run}-{tuned_run}", pairs),
        n_left_out_by_reason,
        plans[1].tags,
    )


def _load_plan_and_suite(store: Store, run_id: str) -> tuple[Plan, Suite]:
    row = read.get_run(store, run_id)
    plan = read.plan_from_row(row)
    if row["redacted"] or read.is_suite_redacted(store, plan.suite_digest):
        raise ConfigError(
            f"Run {run_id} kept hashes instead of texts: there is nothing to compare."
        )
    return plan, read.get_suite(store, plan.suite_digest)


def stored_replies(
    store: Store, run_id: str, plan: Plan, items: Sequence[Item]
) -> dict[str, StoredReply]:
    """Return what the run's model wrote to each item when asked for a chain; its first draw."""
    replies = {}
    with closing(ResponseLog(store.log_path)) as log:
        for start in range(0, len(items), _ITEMS_PER_QUERY):
            some_items = items[start : start + _ITEMS_PER_QUERY]
            scores = read.select_scores(store, run_id, items=[item.id for item in some_items])
            evidence_by_item = {
                str(item_id): dict.fromkeys(key for keys in evidence for key in keys)
                for item_id, evidence in scores.groupby("item_id")["evidence"]
            }
            for item in some_items:
                exchanges = log.load_exchanges(list(evidence_by_item.get(item.id, ())))
                replies[item.id] = _choose_reply(item, plan, exchanges.values())
    return replies


_Exchange = tuple[dict[str, Any] | None, dict[str, Any] | None]


def _choose_reply(item: Item, plan: Plan, exchanges: Iterable[_Exchange]) -> StoredReply:
    """Return the reply to the plain question; of several, that of the largest token limit."""
    prompt = continuation_prompt(item.question, (), plan.subject.form)
    expected_fields = {
        "kind": Complete.kind,
        "model": to_json_value(plan.subject),
        "messages": to_json_value(prompt.messages),
        "prefix": prompt.prefix,
    }
    candidates = [
        (request["sample"], -request["max_tokens"], reply["key"], reply)
        for request, reply in exchanges
        if request
        and reply
        and all(request.get(field) == value for field, value in expected_fields.items())
    ]
    if not candidates:
        return StoredReply("", "", _NO_REPLY_REASON)
    *_, key, reply = min(candidates, key=lambda candidate: candidate[:3])
    if reply.get("refused"):
        return StoredReply("", "", _REFUSED_REASON)
    texts = ((reply.get(field) or "").strip() for field in ("reasoning", "text"))
    text = "\n\n".join(filter(None, texts))
    if not text:
        return StoredReply("", "", _NO_REPLY_REASON)
    was_cut = reply.get("finish") == "length" and not stated_answer_text(reply.get("text") or "")
    return StoredReply(text, key, _CUT_OFF_REASON if was_cut else "")
