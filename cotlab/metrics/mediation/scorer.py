"""Mediation: how much of the answer's probability the states at the chain's positions carry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.requests import Failed, Locate, PatchRow, Reply, Request, Response, Source
from cotlab.core.types import Item, ModelRef
from cotlab.core.vocabulary import CHAINS, IN_PROCESS, SOURCES
from cotlab.metrics.kit import MissingReason, ask, missing_reply
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation.interventions import (
    Donor,
    LocatedText,
    PatchRequest,
    Text,
    chain_rows,
    control_rows,
    item_chains,
    source_free_rows,
    spans_of,
)
from cotlab.metrics.mediation.scores import MediationScores, undefined_scores
from cotlab.metrics.mediation.self_test import self_test
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import CUE

OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is patched", choices=CHAINS),
    "sources": Option(
        ("filler",), "where the patched states come from", choices=SOURCES, entry="source"
    ),
    "control": Option(
        "other", "whose runs the control's states come from", choices=("other", "own")
    ),
    "layers": Option((), "layers or ranges of layers that are patched; all spans where empty"),
    "donors": Option(4, "other items that states are taken from", lo=2, hi=64),
    "draws": Option(2, "random draws of each control", lo=1, hi=64),
    "subsets": Option(8, "random subsets, shuffles and noises of each chain", lo=1, hi=256),
}
SPARE, MIN_DONORS = 4, 2
_SPAN = re.compile(r"all|\d{1,4}(-\d{1,4})?")  # "all", "3", "0-7"
Replies = Mapping[str, Reply]


def validate_white_box(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where the model's states cannot be reached, or a layer is no number or range."""
    if subject.provider not in IN_PROCESS:
        raise ConfigError(
            f"mediation patches activations, which {subject.provider} hides: --provider local or"
            " organism."
        )
    for span in options["layers"]:
        if not _SPAN.fullmatch(span) or (
            len(ends := span.split("-")) == 2 and int(ends[0]) > int(ends[1])
        ):
            raise ConfigError(
                f"--layers takes a layer or a range, like 3 or 0-7, counted from 0; got {span!r}"
            )


HEADLINE = {"source": "filler", "control": "other", "span": "all"}
HEADLINES = (
    *(
        Headline(name, HEADLINE)
        for name in (
            "cmi",
            "share",
            "mass_lost",
            "drop_cot",
            "density",
            "validity",
            "sequentiality",
        )
    ),
    Headline("bypass", HEADLINE, "lower"),
    Headline("drop_control", HEADLINE, "lower"),
    *(Headline(name, {}) for name in ("no_cot_drop", "self_shuffle", "text_placebo")),
)


@scorer(
    *cards.ALL,
    version=2,
    name="mediation",
    options=OPTIONS,
    prepare=self_test,
    headlines=HEADLINES,
    check=validate_white_box,
)
def mediation(item: Item, params: Params, peers: Peers) -> Program:
    """Patch the chain's positions and as many of the question's; compare what the answer loses."""
    options = params.options
    facet = {"chain": options["chain"], "given": "prefix"}
    near = peers.donors_for(item)[: options["donors"] + SPARE]
    chains, chain_replies = yield from item_chains((item, *near), params)
    missing_reason = missing_reply(chain_replies.get(item.id)) if chain_replies else None
    if missing_reason or not chains[item.id]:
        keys = (chain_replies[item.id].key,) if chain_replies else ()
        return undefined_scores(
            item,
            facet,
            options,
            missing_reason or ("undefined", "the item has no chain"),
            keys,
        )
    texts = {
        candidate.id: Text.of(candidate, chains[candidate.id], params)
        for candidate in (item, *near)
        if chains[candidate.id]
    }
    answer_requests = {name: text.ask_answer(params) for name, text in texts.items()}
    answer_replies = yield from ask(answer_requests.values())
    keys = (*((chain_replies[item.id].key,) if chain_replies else ()), answer_requests[item.id].key)
    answer, missing_reason = _answer(answer_replies[answer_requests[item.id].key])
    if answer is None:
        return undefined_scores(item, facet, options, missing_reason, keys)
    others = {
        candidate.id: (
            _answer(answer_replies[answer_requests[candidate.id].key])[0]
            if candidate.id in answer_requests
            else None
        )
        for candidate in near
    }
    text = texts[item.id]
    base, bare, where = (
        text.logprob(params, answer),
        text.logprob(params, answer, CUE),
        text.locate(params),
    )
    short_at = Locate(params.subject, text.messages, (text.question,), prefix=CUE)
    places = {name: texts[name].locate(params) for name in others if name in texts}
    crossed = {
        name: Locate(params.subject, text.messages, (texts[name].chain,), prefix=texts[name].prefix)
        for name in places
    }
    base_requests: list[Request] = [base, bare, where, short_at, *places.values()]
    base_replies = yield from ask(
        [*base_requests, *(crossed.values() if "interchange" in options["sources"] else ())]
    )
    located_reply, length = base_replies[where.key], base_replies[short_at.key]
    if (
        isinstance(located_reply, Failed)
        or located_reply.located is None
        or isinstance(length, Failed)
        or length.located is None
    ):
        reason = (
            missing_reply(located_reply)
            or missing_reply(length)
            or ("undefined", "the chain cannot be located")
        )
        return undefined_scores(item, facet, options, reason, (*keys, where.key, short_at.key))
    keys = (*keys, base.key, where.key, short_at.key)
    chain_at, question_at, _ = located_reply.located.positions
    located_text = LocatedText(
        text, chain_at, question_at, located_reply.located.layers, len(length.located.pieces)
    )
    donor_replies = {
        name: [
            reply
            for replies, request in (
                (answer_replies, answer_requests),
                (base_replies, places),
                (base_replies, crossed),
            )
            if name in request and (reply := replies.get(request[name].key)) is not None
        ]
        for name in others
    }
    donor_replies = {
        name: ([chain_replies[name]] if chain_replies else []) + replies
        for name, replies in donor_replies.items()
    }
    donors, no_donor, donor_keys = _donors(
        others, texts, donor_replies, located_text, answer, options
    )
    spans = spans_of(located_text.layers, options["layers"])
    dots = text.logprob(params, answer, " ".join(["..."] * len(located_text.chain)) + "\n" + CUE)
    rows = {
        name: chain_rows(name, located_text, donors, spans, options, params.seed)
        for name in options["sources"]
    }
    controls = {
        name: control_rows(
            name, _control(name, options), located_text, donors, spans, options, params.seed
        )
        for name in rows
    }
    free_rows = source_free_rows(located_text, spans["all"], options, params.seed)
    batch = _requests(
        [*free_rows, *(a for part in (*rows.values(), *controls.values()) for a in part)],
        text,
        params,
        answer,
    )
    patch_replies = yield from ask([dots, *batch.values()])
    replies = {reply.key: reply for reply in chain_replies.values()}
    item_scores = MediationScores(
        item,
        facet,
        replies | answer_replies | base_replies | patch_replies,
        keys=keys,
        base=base,
        batch=batch,
        donor_keys=donor_keys,
        no_donor=no_donor,
    )
    item_scores.text_scores(bare, dots, min(1.0, len(question_at) / len(chain_at)), free_rows)
    for name in rows:
        item_scores.source(
            name,
            _control(name, options),
            rows[name],
            controls[name],
            free_rows,
            tuple(spans),
            located_text,
        )
    return tuple(item_scores.scores)


def _control(source: str, options: Mapping[str, Any]) -> str:
    """Return the control of a source; the literal source is always its own control."""
    return "own" if source == "literal" else str(options["control"])


def _answer(reply: Reply) -> tuple[str | None, MissingReason]:
    """Return the model's own answer as it stands after the cue, without its end of sentence."""
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return None, missing_reason or ("error", "no reply")
    first, broken, _ = (reply.text or "").partition("\n")
    if reply.finish == "length" and not broken:
        return None, ("undefined", "the model's answer was cut off before its line ended")
    answer = first.rstrip().rstrip(".").rstrip()
    return (
        (answer, ("undefined", ""))
        if answer.strip()
        else (None, ("undefined", "the model gave no answer after the cue"))
    )


def _donors(
    others: Mapping[str, str | None],
    texts: Mapping[str, Text],
    donor_replies: Mapping[str, Sequence[Reply]],
    located_text: LocatedText,
    answer: str,
    options: Mapping[str, Any],
) -> tuple[list[Donor], MissingReason, list[str]]:
    """Return the next items with another answer and enough chain, or why there are too few.

    Enough is half as long a chain. ``donor_replies`` holds the replies about each item: the last
    are where its text lies, and where its chain lies in this item's.
    """
    donors: list[Donor] = []
    donor_keys: list[str] = []
    for name, theirs in others.items():
        if len(donors) == options["donors"]:
            break
        replies = donor_replies[name]
        failed = next(
            (reply for reply in replies if isinstance(reply, Failed) and not reply.unsupported),
            None,
        )
        if failed is not None:
            return (
                [],
                ("error", f"a donor's request failed: {failed.error}"),
                [*donor_keys, failed.key],
            )
        locations = [
            reply.located
            for reply in replies
            if isinstance(reply, Response) and reply.located is not None
        ]
        crossing = "interchange" in options["sources"]
        if (
            theirs is None
            or any(missing_reply(reply) for reply in replies)
            or len(locations) < 1 + crossing
        ):
            continue
        donor_keys += [reply.key for reply in replies]
        mine, other = (final_answer(CUE + text) or text.strip() for text in (answer, theirs))
        chain, question, _ = locations[0].positions
        if same_answer(mine, other) is False and 2 * len(chain) >= len(located_text.chain):
            donors.append(
                Donor(texts[name], chain, question, locations[1].positions[0] if crossing else ())
            )
    if len(donors) < MIN_DONORS:
        reason = (
            f"{len(donors)} of {len(others)} near items have another answer and enough chain: two"
            " are needed"
        )
        return [], ("undefined", reason), donor_keys
    return donors, ("undefined", ""), donor_keys


def _requests(
    patch_requests: Sequence[PatchRequest], text: Text, params: Params, answer: str
) -> dict[Source, Any]:
    """Build one request a source, with each of its rows once."""
    rows: dict[Source, dict[PatchRow, None]] = {}
    for request in patch_requests:
        rows.setdefault(request.source, {})[request.row] = None
    return {
        source: text.patched(params, answer, source, list(source_rows))
        for source, source_rows in rows.items()
    }
