"""Mediation: how much of the answer's probability runs through the activations at the chain's positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.requests import Failed, Locate, Reply, Request, Response, Row, Source
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.ablation.scorer import WHITE_BOX
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation.interventions import (
    SOURCES,
    Asked,
    Donor,
    Place,
    Text,
    ask,
    chain_rows,
    chains_of,
    control_rows,
    own_rows,
    spans_of,
)
from cotlab.metrics.mediation.scores import Gap, Sheet, gap_of, none_of
from cotlab.metrics.mediation.self_test import self_test
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import CUE

OPTIONS: Mapping[str, Any] = {
    "chain": "reference", "sources": ("filler",), "control": "other", "layers": (), "donors": 4, "draws": 2, "subsets": 8,
}  # fmt: skip
SPARE, FEWEST = 4, 2
_SPAN = re.compile(r"all|\d{1,4}(-\d{1,4})?")
Replies = Mapping[str, Reply]


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where the model's states cannot be reached or an option is unknown."""
    if subject.provider not in WHITE_BOX:
        raise ConfigError(f"mediation patches activations, which {subject.provider} hides: --provider local or organism.")
    for name in options["sources"]:
        if name not in SOURCES:
            raise UnknownName("source", name, SOURCES)
    for span in options["layers"]:
        if not _SPAN.fullmatch(span) or (len(ends := span.split("-")) == 2 and int(ends[0]) > int(ends[1])):
            raise ConfigError(f"--layers takes a layer or a range, like 3 or 0-7, counted from 0; got {span!r}")


HEADLINE = {"source": "filler", "control": "other", "span": "all"}
HEADLINES = (
    *(Headline(name, HEADLINE) for name in ("cmi", "share", "mass_lost", "drop_cot", "density", "validity", "sequentiality")),
    Headline("bypass", HEADLINE, "lower"),
    Headline("drop_control", HEADLINE, "lower"),
    *(Headline(name, {}) for name in ("no_cot_drop", "self_shuffle", "text_placebo")),
)


@scorer(*cards.ALL, version=2, name="mediation", options=OPTIONS, prepare=self_test, headlines=HEADLINES, check=check)
def mediation(item: Item, params: Params, peers: Peers) -> Program:
    """Patch the chain's positions, and as many of the question's, and compare what the answer loses."""
    options = params.options
    facet = {"chain": options["chain"], "given": "prefix"}
    near = peers.after(item)[: options["donors"] + SPARE]
    chains, told = yield from chains_of((item, *near), params)
    gap = gap_of(told.get(item.id)) if told else None
    if gap or not chains[item.id]:
        keys = (told[item.id].key,) if told else ()
        return tuple(none_of(item, facet, options, *(gap or ("undefined", "the item has no chain")), keys))
    texts = {one.id: Text.of(one, chains[one.id], params) for one in (item, *near) if chains[one.id]}
    asks = {name: text.ask_answer(params) for name, text in texts.items()}
    said = yield from ask(asks.values())
    keys = (*((told[item.id].key,) if told else ()), asks[item.id].key)
    answer, gap = _answer(said[asks[item.id].key])
    if answer is None:
        return tuple(none_of(item, facet, options, *gap, keys))
    others = {one.id: _answer(said[asks[one.id].key])[0] if one.id in asks else None for one in near}
    text = texts[item.id]
    base, bare, where = text.logprob(params, answer), text.logprob(params, answer, CUE), text.locate(params)
    short_at = Locate(params.subject, text.messages, (text.question,), prefix=CUE)
    places = {name: texts[name].locate(params) for name in others if name in texts}
    crossed = {name: Locate(params.subject, text.messages, (texts[name].chain,), prefix=texts[name].prefix) for name in places}
    wanted: list[Request] = [base, bare, where, short_at, *places.values()]
    found = yield from ask([*wanted, *(crossed.values() if "interchange" in options["sources"] else ())])
    own, length = found[where.key], found[short_at.key]
    if isinstance(own, Failed) or own.located is None or isinstance(length, Failed) or length.located is None:
        why = gap_of(own) or gap_of(length) or ("undefined", "the chain cannot be located")
        return tuple(none_of(item, facet, options, *why, (*keys, where.key, short_at.key)))
    keys = (*keys, base.key, where.key, short_at.key)
    chain_at, question_at, _ = own.located.positions
    place = Place(text, chain_at, question_at, own.located.layers, len(length.located.pieces))
    seen = {
        name: [reply for replies, request in ((said, asks), (found, places), (found, crossed))
               if name in request and (reply := replies.get(request[name].key)) is not None]
        for name in others
    }  # fmt: skip
    seen = {name: ([told[name]] if told else []) + replies for name, replies in seen.items()}
    donors, why_none, walked = _donors(others, texts, seen, place, answer, options)
    spans = spans_of(place.layers, options["layers"])
    dots = text.logprob(params, answer, " ".join(["..."] * len(place.chain)) + "\n" + CUE)
    rows = {name: chain_rows(name, place, donors, spans, options, params.seed) for name in options["sources"]}
    controls = {name: control_rows(name, _control(name, options), place, donors, spans, options, params.seed) for name in rows}
    alone = own_rows(place, spans["all"], options, params.seed)
    batch = _requests([*alone, *(a for part in (*rows.values(), *controls.values()) for a in part)], text, params, answer)
    more = yield from ask([dots, *batch.values()])
    sheet = Sheet(item, facet, {r.key: r for r in told.values()} | said | found | more, keys, base, batch, walked, why_none)
    sheet.whole_text(bare, dots, min(1.0, len(question_at) / len(chain_at)), alone)
    for name in rows:
        sheet.source(name, _control(name, options), rows[name], controls[name], alone, tuple(spans), place)
    return tuple(sheet.scores)


def _control(source: str, options: Mapping[str, Any]) -> str:
    """The literal source is the seed's whole formula, its own control included."""
    return "own" if source == "literal" else str(options["control"])


def _answer(reply: Reply) -> tuple[str | None, Gap]:
    """The model's own answer as it stands after the cue, its end of sentence left out."""
    gap = gap_of(reply)
    if gap is not None or isinstance(reply, Failed):
        return None, gap or ("error", "no reply")
    first, broken, _ = (reply.text or "").partition("\n")
    if reply.finish == "length" and not broken:
        return None, ("undefined", "the model's answer was cut off before its line ended")
    answer = first.rstrip().rstrip(".").rstrip()
    return (answer, ("undefined", "")) if answer.strip() else (None, ("undefined", "the model gave no answer after the cue"))


def _donors(
    others: Mapping[str, str | None], texts: Mapping[str, Text], seen: Mapping[str, Sequence[Reply]], place: Place,
    answer: str, options: Mapping[str, Any],
) -> tuple[list[Donor], Gap, list[str]]:  # fmt: skip
    """The next items on the ring with another answer and at least half as long a chain; else why there are too few.

    ``seen`` holds what was replied about each: the last are where its text lies, and where its chain lies in this item's.
    """
    kept: list[Donor] = []
    walked: list[str] = []
    for name, theirs in others.items():
        if len(kept) == options["donors"]:
            break
        replies = seen[name]
        dead = next((reply for reply in replies if isinstance(reply, Failed) and not reply.unsupported), None)
        if dead is not None:
            return [], ("error", f"a donor's request failed: {dead.error}"), [*walked, dead.key]
        found = [reply.located for reply in replies if isinstance(reply, Response) and reply.located is not None]
        crossing = "interchange" in options["sources"]
        if theirs is None or any(gap_of(reply) for reply in replies) or len(found) < 1 + crossing:
            continue
        walked += [reply.key for reply in replies]
        mine, other = (final_answer(CUE + text) or text.strip() for text in (answer, theirs))
        chain, question, _ = found[0].positions
        if same_answer(mine, other) is False and 2 * len(chain) >= len(place.chain):
            kept.append(Donor(texts[name], chain, question, found[1].positions[0] if crossing else ()))
    if len(kept) < FEWEST:
        why = f"{len(kept)} of {len(others)} near items have another answer and enough chain: two are needed"
        return [], ("undefined", why), walked
    return kept, ("undefined", ""), walked


def _requests(asked: Sequence[Asked], text: Text, params: Params, answer: str) -> dict[Source, Any]:
    """One request a source, its rows each once."""
    rows: dict[Source, dict[Row, None]] = {}
    for one in asked:
        rows.setdefault(one.source, {})[one.row] = None
    return {source: text.patched(params, answer, source, list(found)) for source, found in rows.items()}
