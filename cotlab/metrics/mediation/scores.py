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
from cotlab.metrics.mediation.interventions import KEEPS, LocatedText, PatchRequest

MissingReason = tuple[Status, str]
Value = tuple[float | None, str]
"""A value, or None and the reason for it."""


def missing_reason_of(reply: Reply | None) -> MissingReason | None:
    """Status and reason where a reply gives nothing to read."""
    if isinstance(reply, Failed):
        return "undefined" if reply.unsupported else "error", reply.error
    return ("refused", "the model refused") if reply is not None and reply.refused else None


def undefined_scores(
    item: Item,
    facet: Mapping[str, str],
    options: Mapping[str, Any],
    status: Status,
    reason: str,
    evidence: Sequence[str] = (),
) -> Iterator[Score]:
    """What is told of an item that cannot be measured: every score it would have had, once, without a value."""
    for card in cards.ITEM_CARDS:
        yield card.score(item, None, facet=facet, status=status, reason=reason, evidence=evidence)
    for source in options["sources"]:
        source_facet = {
            **facet,
            "source": source,
            "control": "own" if source == "literal" else options["control"],
        }
        for card in (cards.OVER_SPANS, cards.SPANS_DEFINED, cards.NO_COT_EFFECT):
            yield card.score(
                item, None, facet=source_facet, status=status, reason=reason, evidence=evidence
            )
        for card in (*cards.SPAN_CARDS, *cards.INDEX_CARDS):
            yield card.score(
                item,
                None,
                facet={**source_facet, "span": "all"},
                status=status,
                reason=reason,
                evidence=evidence,
            )
        for keep in KEEPS:
            subset_facet = {**source_facet, "span": "all", "keep": str(keep)}
            yield cards.SUBSET_CMI.score(
                item, None, facet=subset_facet, status=status, reason=reason, evidence=evidence
            )


@dataclass(slots=True)
class ItemScores:
    """The scores of one item, as they are made."""

    item: Item
    facet: Mapping[str, str]
    replies: Mapping[str, Reply]
    keys: tuple[str, ...]
    base: LogProb
    batch: Mapping[Source, Patched]
    donor_keys: Sequence[str]
    no_donor: MissingReason
    scores: list[Score] = field(default_factory=list)

    def number(self, request: LogProb) -> float | None:
        reply = self.replies[request.key]
        return reply.numbers[0] if isinstance(reply, Response) and reply.numbers else None

    def drop(self, patch: PatchRequest) -> float | None:
        """What one patched row costs the answer, in nats."""
        request, base = self.batch[patch.source], self.number(self.base)
        reply = self.replies[request.key]
        if base is None or not isinstance(reply, Response) or reply.numbers is None:
            return None
        return base - reply.numbers[request.rows.index(patch.row)]

    def pooled(self, patches: Sequence[PatchRequest]) -> float | None:
        """The mean drop of some rows; None where there is none, or where one is missing."""
        drops = [self.drop(patch) for patch in patches]
        known = [drop for drop in drops if drop is not None]
        return fmean(known) if known and len(known) == len(drops) else None

    def add(
        self,
        card: MetricCard,
        value: float | None,
        more: Mapping[str, str],
        keys: Sequence[str],
        reason: str = "",
        draw: int = 0,
    ) -> None:
        """One score: none where a reply that it rests on is missing, with that reply's reason; else ``why``, else no donors."""
        evidence = tuple(dict.fromkeys((*self.keys, *keys)))
        status: Status | None = None
        gaps = [
            missing_reason
            for key in evidence
            if (missing_reason := missing_reason_of(self.replies.get(key))) is not None
        ]
        if gaps:
            value = None
        if value is None:
            status, reason = gaps[0] if gaps else ("undefined", reason) if reason else self.no_donor
            reason = reason or "a row was not answered"
        self.scores.append(
            card.score(
                self.item,
                value,
                facet={**self.facet, **more},
                sample=draw,
                status=status,
                reason=reason if value is None else None,
                evidence=evidence,
            )
        )

    def request_keys(self, patches: Sequence[PatchRequest]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.batch[patch.source].key for patch in patches))

    def text_scores(
        self, bare: LogProb, dots: LogProb, coverage: float, free_rows: Sequence[PatchRequest]
    ) -> None:
        """What needs no source of states: the answer's probability with, without, and under a filler chain; its own order."""
        base, without, filled = self.number(self.base), self.number(bare), self.number(dots)
        self.add(cards.BASELINE_LOGP, None if base is None else min(0.0, base), {}, ())
        self.add(
            cards.NO_COT_DROP,
            None if base is None or without is None else base - without,
            {},
            [bare.key],
        )
        mass = None if base is None or filled is None else pool.mass_lost(base - filled)
        self.add(cards.TEXT_PLACEBO, mass, {}, [dots.key])
        self.add(cards.CONTROL_COVERAGE, coverage, {}, ())
        mixed = [patch for patch in free_rows if patch.part == "self_shuffle"]
        drop = self.pooled(mixed)
        self.add(
            cards.SELF_SHUFFLE,
            None if drop is None else pool.mass_lost(drop),
            {},
            self.request_keys(mixed),
        )
        self.raw(free_rows, {})

    def raw(self, patches: Sequence[PatchRequest], more: Mapping[str, str]) -> None:
        for patch in patches:
            facet = {
                **more,
                "part": patch.part,
                "span": patch.span,
                "donor": patch.donor,
                "keep": patch.keep,
            }
            keys = self.request_keys([patch])
            self.add(
                cards.PATCH_DROP,
                self.drop(patch),
                {k: v for k, v in facet.items() if v},
                keys,
                draw=patch.draw,
            )

    def source(
        self,
        name: str,
        control: str,
        rows: Sequence[PatchRequest],
        controls: Sequence[PatchRequest],
        free_rows: Sequence[PatchRequest],
        spans: Sequence[str],
        located_text: LocatedText,
    ) -> None:
        """Every score of one source of states."""
        more = {"source": name, "control": control}
        every = {**more, "span": "all"}
        donors = tuple(self.donor_keys) if control == "other" or name == "interchange" else ()
        keys = (*self.request_keys([*rows, *controls]), *donors)
        by_span = {
            span: self._span(span, more, rows, controls, donors, name, located_text)
            for span in spans
        }
        self._over_spans(by_span, more, keys)
        full_cmi, cause = by_span["all"]

        def cmi_of_rows(part: str, of: str, keep: str = "") -> Value:
            cot = self.pooled(
                [
                    patch
                    for patch in (*rows, *free_rows)
                    if patch.part == part and patch.span == "all" and patch.keep == keep
                ]
            )
            ctrl = self.pooled(
                [
                    patch
                    for patch in controls
                    if patch.part == of and patch.span == "all" and patch.keep == keep
                ]
            )
            return _ratio(cot, ctrl)

        subsets = {str(keep): cmi_of_rows("kept", "kept_control", str(keep)) for keep in KEEPS}
        for keep, (value, reason) in subsets.items():
            self.add(cards.SUBSET_CMI, value, {**every, "keep": keep}, keys, reason)
        noise, mixed = cmi_of_rows("placebo", "control"), cmi_of_rows("shuffled", "control")
        keys = (
            *keys,
            *self.request_keys([patch for patch in free_rows if patch.part == "placebo"]),
        )
        self.add(cards.PLACEBO_CMI, noise[0], every, keys, noise[1])
        self.add(cards.SHUFFLED_CMI, mixed[0], every, keys, mixed[1])
        least = subsets[str(KEEPS[-1])]
        for card, (value, reason) in (
            (cards.DENSITY, least),
            (cards.VALIDITY, noise),
            (cards.SEQUENTIALITY, mixed),
        ):
            relative = (
                None if full_cmi is None or value is None else pool.relative_loss(full_cmi, value)
            )
            self.add(
                card,
                relative,
                every,
                keys,
                cause or reason or ("" if full_cmi is None else pool.too_small(full_cmi)),
            )
        self._boundary(
            full_cmi,
            cause,
            [cmi_of_rows("expanded", "expanded_control"), cmi_of_rows("shrunk", "shrunk_control")],
            every,
            keys,
        )
        self.raw([*rows, *controls], more)

    def _span(
        self,
        span: str,
        more: Mapping[str, str],
        rows: Sequence[PatchRequest],
        controls: Sequence[PatchRequest],
        donors: Sequence[str],
        name: str,
        located_text: LocatedText,
    ) -> Value:
        cots = [patch for patch in rows if patch.part == "cot" and patch.span == span]
        ctrls = [patch for patch in controls if patch.part == "control" and patch.span == span]
        cot, control = self.pooled(cots), self.pooled(ctrls)
        here = {**more, "span": span}
        cot_keys = (*self.request_keys(cots), *(donors if name == "interchange" else ()))
        keys = (*self.request_keys([*cots, *ctrls]), *donors)
        value, reason = _ratio(cot, control)
        shared = None if cot is None or control is None else pool.share(cot, control)
        self.add(cards.CMI, value, here, keys, reason)
        self.add(cards.BYPASS, None if value is None else 1 - value, here, keys, reason)
        self.add(cards.SHARE, shared, here, keys, reason)
        self.add(cards.MASS_LOST, None if cot is None else pool.mass_lost(cot), here, cot_keys)
        self.add(cards.DROP_COT, cot, here, cot_keys)
        self.add(cards.DROP_CONTROL, control, here, keys)
        noop = (
            more["control"] == "own"
            and name in ("filler", "interchange", "literal")
            and located_text.question[-1] < located_text.chain[0]
        )
        self.add(cards.CONTROL_IS_NOOP, float(noop) if ctrls else None, here, keys)
        return value, reason

    def _over_spans(
        self, by_span: Mapping[str, Value], more: Mapping[str, str], keys: Sequence[str]
    ) -> None:
        values = [value for value, _ in by_span.values() if value is not None]
        missing = (
            not any(reason for _, reason in by_span.values()) and not values
        )  # no span was answered at all
        none = (
            ""
            if missing
            else "no span is defined: "
            + next((reason for _, reason in by_span.values() if reason), "")
        )
        self.add(cards.OVER_SPANS, fmean(values) if values else None, more, keys, none)
        self.add(cards.SPANS_DEFINED, None if missing else float(len(values)), more, keys)
        self.add(cards.NO_COT_EFFECT, float(max(values) == 0) if values else None, more, keys, none)

    def _boundary(
        self,
        full_cmi: float | None,
        cause: str,
        windows: Sequence[Value],
        every: Mapping[str, str],
        keys: Sequence[str],
    ) -> None:
        values = [value for value, _ in windows if value is not None]
        reason = cause or next((cause for value, cause in windows if value is None and cause), "")
        moved = None
        if full_cmi is not None and len(values) == len(windows):
            moved = max(abs(value - full_cmi) for value in values)
        relative = (
            None
            if moved is None or full_cmi is None or full_cmi < pool.LEAST_CMI
            else moved / full_cmi
        )
        robust = None
        if moved is not None:
            robust = float(
                moved <= pool.ABSOLUTE or (relative is not None and relative <= pool.RELATIVE)
            )
        short = "" if full_cmi is None else "the chain is too short for a narrower window"
        small = short if moved is None or full_cmi is None else pool.too_small(full_cmi)
        self.add(cards.BOUNDARY_SENSITIVITY, relative, every, keys, reason or small)
        self.add(cards.BOUNDARY_DEVIATION, moved, every, keys, reason or short)
        self.add(cards.BOUNDARY_ROBUST, robust, every, keys, reason or short)


def _ratio(cot: float | None, control: float | None) -> Value:
    if cot is None or control is None:
        return None, ""
    return pool.cmi(cot, control), (
        "" if pool.cmi(cot, control) is not None else pool.no_signal(cot, control)
    )
