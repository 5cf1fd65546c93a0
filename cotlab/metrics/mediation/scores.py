"""From the replies of one item to its scores: drops, pooled over donors and draws, and the indices made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from cotlab.core.requests import Failed, LogProb, Patched, Reply, Response, Source
from cotlab.core.types import Item, MetricCard, Score, Status
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation import indices as pool
from cotlab.metrics.mediation.interventions import KEEPS, Asked, Place

Gap = tuple[Status, str]
Value = tuple[float | None, str]
"""A value, or None and the reason for it."""


def gap_of(reply: Reply | None) -> Gap | None:
    """Status and reason where a reply gives nothing to read."""
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    return ("refused", "the model refused") if reply is not None and reply.refused else None


def none_of(
    item: Item, facet: Mapping[str, str], options: Mapping[str, Any], status: Status, why: str, evidence: Sequence[str] = ()
) -> Iterator[Score]:
    """What is told of an item that cannot be measured: every score it would have had, once, without a value."""
    for card in cards.ITEM_CARDS:
        yield card.score(item, None, facet=facet, status=status, reason=why, evidence=evidence)
    for source in options["sources"]:
        place = {**facet, "source": source, "control": "own" if source == "literal" else options["control"]}
        for card in (cards.OVER_SPANS, cards.SPANS_DEFINED, cards.NO_COT_EFFECT):
            yield card.score(item, None, facet=place, status=status, reason=why, evidence=evidence)
        for card in (*cards.SPAN_CARDS, *cards.INDEX_CARDS):
            yield card.score(item, None, facet={**place, "span": "all"}, status=status, reason=why, evidence=evidence)
        for keep in KEEPS:
            wanted = {**place, "span": "all", "keep": str(keep)}
            yield cards.CMI_KEPT.score(item, None, facet=wanted, status=status, reason=why, evidence=evidence)


@dataclass(slots=True)
class Sheet:
    """The scores of one item, as they are made."""

    item: Item
    facet: Mapping[str, str]
    replies: Mapping[str, Reply]
    keys: tuple[str, ...]
    base: LogProb
    batch: Mapping[Source, Patched]
    walked: Sequence[str]
    no_donor: Gap
    scores: list[Score] = field(default_factory=list)

    def number(self, request: LogProb) -> float | None:
        reply = self.replies[request.key]
        return reply.numbers[0] if isinstance(reply, Response) and reply.numbers else None

    def drop(self, asked: Asked) -> float | None:
        """What one patched row costs the answer, in nats."""
        request, base = self.batch[asked.source], self.number(self.base)
        reply = self.replies[request.key]
        if base is None or not isinstance(reply, Response) or reply.numbers is None:
            return None
        return base - reply.numbers[request.rows.index(asked.row)]

    def pooled(self, asked: Sequence[Asked]) -> float | None:
        """The mean drop of some rows; None where there is none, or where one is missing."""
        drops = [self.drop(one) for one in asked]
        known = [drop for drop in drops if drop is not None]
        return fmean(known) if known and len(known) == len(drops) else None

    def add(
        self, card: MetricCard, value: float | None, more: Mapping[str, str], keys: Sequence[str], why: str = "", draw: int = 0
    ) -> None:
        """One score: none where a reply that it rests on is missing, with that reply's reason; else ``why``, else no donors."""
        evidence = tuple(dict.fromkeys((*self.keys, *keys)))
        status: Status | None = None
        gaps = [gap for key in evidence if (gap := gap_of(self.replies.get(key))) is not None]
        if gaps:
            value = None
        if value is None:
            status, why = gaps[0] if gaps else ("undefined", why) if why else self.no_donor
            why = why or "a row was not answered"
        self.scores.append(
            card.score(self.item, value, facet={**self.facet, **more}, sample=draw, status=status,
                       reason=why if value is None else None, evidence=evidence)
        )  # fmt: skip

    def asked_keys(self, asked: Sequence[Asked]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.batch[one.source].key for one in asked))

    def whole_text(self, bare: LogProb, dots: LogProb, coverage: float, alone: Sequence[Asked]) -> None:
        """What needs no source of states: the answer's probability with, without, and under a filler chain; its own order."""
        base, without, filled = self.number(self.base), self.number(bare), self.number(dots)
        self.add(cards.BASELINE_LOGP, None if base is None else min(0.0, base), {}, ())
        self.add(cards.NO_COT_DROP, None if base is None or without is None else base - without, {}, [bare.key])
        lost = None if base is None or filled is None else pool.mass_lost(base - filled)
        self.add(cards.TEXT_PLACEBO, lost, {}, [dots.key])
        self.add(cards.CONTROL_COVERAGE, coverage, {}, ())
        mixed = [one for one in alone if one.part == "self_shuffle"]
        drop = self.pooled(mixed)
        self.add(cards.SELF_SHUFFLE, None if drop is None else pool.mass_lost(drop), {}, self.asked_keys(mixed))
        self.raw(alone, {})

    def raw(self, asked: Sequence[Asked], more: Mapping[str, str]) -> None:
        for one in asked:
            facet = {**more, "part": one.part, "span": one.span, "donor": one.donor, "keep": one.keep}
            keys = self.asked_keys([one])
            self.add(cards.PATCH_DROP, self.drop(one), {k: v for k, v in facet.items() if v}, keys, draw=one.draw)

    def source(
        self, name: str, control: str, rows: Sequence[Asked], controls: Sequence[Asked], alone: Sequence[Asked],
        spans: Sequence[str], place: Place,
    ) -> None:  # fmt: skip
        """Every score of one source of states."""
        more = {"source": name, "control": control}
        every = {**more, "span": "all"}
        donors = tuple(self.walked) if control == "other" or name == "interchange" else ()
        keys = (*self.asked_keys([*rows, *controls]), *donors)
        found = {span: self._span(span, more, rows, controls, donors, name, place) for span in spans}
        self._over_spans(found, more, keys)
        whole, why = found["all"]

        def kept(part: str, of: str, keep: str = "") -> Value:
            cot = self.pooled([one for one in (*rows, *alone) if one.part == part and one.span == "all" and one.keep == keep])
            ctrl = self.pooled([one for one in controls if one.part == of and one.span == "all" and one.keep == keep])
            return _ratio(cot, ctrl)

        parts = {str(keep): kept("kept", "kept_control", str(keep)) for keep in KEEPS}
        for keep, (value, reason) in parts.items():
            self.add(cards.CMI_KEPT, value, {**every, "keep": keep}, keys, reason)
        noise, mixed = kept("placebo", "control"), kept("shuffled", "control")
        keys = (*keys, *self.asked_keys([one for one in alone if one.part == "placebo"]))
        self.add(cards.PLACEBO_CMI, noise[0], every, keys, noise[1])
        self.add(cards.SHUFFLED_CMI, mixed[0], every, keys, mixed[1])
        least = parts[str(KEEPS[-1])]
        for card, (value, reason) in ((cards.DENSITY, least), (cards.VALIDITY, noise), (cards.SEQUENTIALITY, mixed)):
            lost = None if whole is None or value is None else pool.lost_share(whole, value)
            self.add(card, lost, every, keys, why or reason or ("" if whole is None else pool.too_small(whole)))
        self._boundary(whole, why, [kept("expanded", "expanded_control"), kept("shrunk", "shrunk_control")], every, keys)
        self.raw([*rows, *controls], more)

    def _span(
        self, span: str, more: Mapping[str, str], rows: Sequence[Asked], controls: Sequence[Asked], donors: Sequence[str],
        name: str, place: Place,
    ) -> Value:  # fmt: skip
        cots = [one for one in rows if one.part == "cot" and one.span == span]
        ctrls = [one for one in controls if one.part == "control" and one.span == span]
        cot, control = self.pooled(cots), self.pooled(ctrls)
        here = {**more, "span": span}
        cot_keys = (*self.asked_keys(cots), *(donors if name == "interchange" else ()))
        keys = (*self.asked_keys([*cots, *ctrls]), *donors)
        value, why = _ratio(cot, control)
        shared = None if cot is None or control is None else pool.share(cot, control)
        self.add(cards.CMI, value, here, keys, why)
        self.add(cards.BYPASS, None if value is None else 1 - value, here, keys, why)
        self.add(cards.SHARE, shared, here, keys, why)
        self.add(cards.MASS_LOST, None if cot is None else pool.mass_lost(cot), here, cot_keys)
        self.add(cards.DROP_COT, cot, here, cot_keys)
        self.add(cards.DROP_CONTROL, control, here, keys)
        noop = more["control"] == "own" and name in ("filler", "interchange", "literal") and place.question[-1] < place.chain[0]
        self.add(cards.CONTROL_IS_NOOP, float(noop) if ctrls else None, here, keys)
        return value, why

    def _over_spans(self, found: Mapping[str, Value], more: Mapping[str, str], keys: Sequence[str]) -> None:
        values = [value for value, _ in found.values() if value is not None]
        missing = not any(why for _, why in found.values()) and not values  # no span was answered at all
        none = "" if missing else "no span is defined: " + next((why for _, why in found.values() if why), "")
        self.add(cards.OVER_SPANS, fmean(values) if values else None, more, keys, none)
        self.add(cards.SPANS_DEFINED, None if missing else float(len(values)), more, keys)
        self.add(cards.NO_COT_EFFECT, float(max(values) == 0) if values else None, more, keys, none)

    def _boundary(
        self, whole: float | None, why: str, windows: Sequence[Value], every: Mapping[str, str], keys: Sequence[str]
    ) -> None:
        values = [value for value, _ in windows if value is not None]
        reason = why or next((why for value, why in windows if value is None and why), "")
        moved = None
        if whole is not None and len(values) == len(windows):
            moved = max(abs(value - whole) for value in values)
        relative = None if moved is None or whole is None or whole < pool.LEAST_CMI else moved / whole
        robust = None
        if moved is not None:
            robust = float(moved <= pool.ABSOLUTE or (relative is not None and relative <= pool.RELATIVE))
        short = "" if whole is None else "the chain is too short for a narrower window"
        small = short if moved is None or whole is None else pool.too_small(whole)
        self.add(cards.BOUNDARY_SENSITIVITY, relative, every, keys, reason or small)
        self.add(cards.BOUNDARY_DEVIATION, moved, every, keys, reason or short)
        self.add(cards.BOUNDARY_ROBUST, robust, every, keys, reason or short)


def _ratio(cot: float | None, control: float | None) -> Value:
    if cot is None or control is None:
        return None, ""
    return pool.cmi(cot, control), "" if pool.cmi(cot, control) is not None else pool.no_signal(cot, control)
