"""Make a suite of pairs: the stored replies of two runs' models to the same prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
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

_KEYS_PER_QUERY = 500
"""Keys that are looked up in one query."""
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
    """What a model wrote to an item: its reply and the key of it, or why there is none."""

    text: str
    key: str
    missing_reason: str = ""
    is_cut_off: bool = False
    """Whether it ends before its answer, at its largest number of tokens."""

    @property
    def unpaired_reason(self) -> str:
        """Why it is no half of a pair; empty where it is."""
        return self.missing_reason or (_CUT_OFF_REASON if self.is_cut_off else "")


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
    plans_and_suites = [_load_plan_and_suite(store, run_id) for run_id in (base_run, tuned_run)]
    items_by_id = [
        {item.id: item for item in plan.items_of(suite)} for plan, suite in plans_and_suites
    ]
    shared_ids = [
        shared_id
        for shared_id in items_by_id[0]
        if shared_id in items_by_id[1]
        and items_by_id[0][shared_id].question == items_by_id[1][shared_id].question
    ]
    n_left_out = Counter({_SINGLE_RUN_REASON: len(items_by_id[0].keys() ^ items_by_id[1].keys())})
    n_left_out[_OTHER_QUESTION_REASON] = len(items_by_id[0].keys() & items_by_id[1].keys()) - len(
        shared_ids
    )
    base_replies, tuned_replies = (
        stored_replies(store, run_id, plan, [run_items[shared_id] for shared_id in shared_ids])
        for run_id, (plan, _), run_items in zip(
            (base_run, tuned_run), plans_and_suites, items_by_id, strict=True
        )
    )
    pairs = []
    for item_id in shared_ids:
        missing_reason = (
            base_replies[item_id].unpaired_reason or tuned_replies[item_id].unpaired_reason
        )
        n_left_out[missing_reason] += bool(missing_reason)
        if not missing_reason:
            pairs.append(
                _pair_item(
                    items_by_id[0][item_id],
                    base_replies[item_id],
                    tuned_replies[item_id],
                    base_run,
                    tuned_run,
                )
            )
    n_left_out_by_reason = {
        reason: count for reason, count in sorted(n_left_out.items()) if reason and count
    }
    if not pairs:
        reason = ", ".join(f"{count} {reason}" for reason, count in n_left_out_by_reason.items())
        raise ConfigError(
            f"No pair: of the items of {base_run} and {tuned_run} {reason}. Both runs must have"
            " asked for the model's own chain (--chain own) on the same suite."
        )
    return PairedRuns(
        Suite.from_items(f"pairs-{base_run}-{tuned_run}", pairs),
        n_left_out_by_reason,
        plans_and_suites[1][0].tags,
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
    keys_by_item: dict[str, list[str]] = {}
    for start in range(0, len(items), _KEYS_PER_QUERY):
        item_ids = [item.id for item in items[start : start + _KEYS_PER_QUERY]]
        scores = read.select_scores(store, run_id, items=item_ids)
        for item_id, evidence_group in scores.groupby("item_id")["evidence"]:
            keys_by_item[str(item_id)] = list(
                dict.fromkeys(
                    request_key for evidence in evidence_group for request_key in evidence
                )
            )
    request_keys = list(
        dict.fromkeys(key for item in items for key in keys_by_item.get(item.id, ()))
    )
    chunks = (
        request_keys[start : start + _KEYS_PER_QUERY]
        for start in range(0, len(request_keys), _KEYS_PER_QUERY)
    )
    with closing(ResponseLog(store.log_path)) as log:
        stored_pairs = {
            request_key: evidence
            for chunk in chunks
            for request_key, evidence in log.load_exchanges(chunk).items()
        }
    return {
        item.id: _choose_reply(
            item,
            plan,
            {
                request_key: stored_pairs[request_key]
                for request_key in keys_by_item.get(item.id, ())
                if request_key in stored_pairs
            },
        )
        for item in items
    }


_StoredPair = tuple[dict[str, Any] | None, dict[str, Any] | None]


def _choose_reply(item: Item, plan: Plan, stored_pairs: Mapping[str, _StoredPair]) -> StoredReply:
    """Return the reply to the plain question; of several, that of the largest token limit."""
    candidates = sorted(
        _chain_requests(item, plan, stored_pairs),
        key=lambda pair: (pair[0]["sample"], -pair[0]["max_tokens"], pair[1]["key"]),
    )
    if not candidates:
        return StoredReply("", "", _NO_REPLY_REASON)
    reply = candidates[0][1]
    if reply.get("refused"):
        return StoredReply("", "", _REFUSED_REASON)
    texts = ((reply.get(field) or "").strip() for field in ("reasoning", "text"))
    text = "\n\n".join(filter(None, texts))
    if not text:
        return StoredReply("", "", _NO_REPLY_REASON)
    was_cut = reply.get("finish") == "length" and not stated_answer_text(reply.get("text") or "")
    return StoredReply(text, reply["key"], is_cut_off=was_cut)


def _chain_requests(
    item: Item, plan: Plan, stored_pairs: Mapping[str, _StoredPair]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the stored requests for the whole chain of an item, with their replies."""
    prompt = continuation_prompt(item.question, (), plan.subject.form)
    expected_fields = {
        "kind": Complete.kind,
        "model": to_json_value(plan.subject),
        "messages": to_json_value(prompt.messages),
        "prefix": prompt.prefix,
    }
    for request, reply in stored_pairs.values():
        if (
            request
            and reply
            and all(request.get(field) == value for field, value in expected_fields.items())
        ):
            yield request, reply


def _pair_item(
    item: Item, base_reply: StoredReply, tuned_reply: StoredReply, base_run: str, tuned_run: str
) -> Item:
    meta: dict[str, Any] = {
        BASE_KEY: base_reply.text,
        TUNED_KEY: tuned_reply.text,
        "base_key": base_reply.key,
        "tuned_key": tuned_reply.key,
        "base_run": base_run,
        "tuned_run": tuned_run,
    }
    if HUMAN_KEY in item.meta:
        meta[HUMAN_KEY] = item.meta[HUMAN_KEY]
    return Item(item.id, item.question, item.answer, (), item.category, meta)
