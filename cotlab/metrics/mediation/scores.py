"""From the replies of one item to its scores: pooled drops, and the indices made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cotlab.core.requests import LogProb, Patched, Response, Source
from cotlab.core.types import Item, MetricCard, Score
from cotlab.metrics.kit import ItemScores, MissingReason
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation.interventions import KEEPS, LocatedText, PatchRequest

LEAST_NATS = 1e-2
"""Below this the two drops together are no signal: a ratio of them would be one of rounding errors.
"""
LEAST_CMI = 0.05
"""Below this CMI an index that divides by it is undefined."""
RELATIVE, ABSOLUTE = 0.15, 0.02
"""A boundary is robust where the sensitivity is at most the first, or the deviation at most the
second."""
Value = tuple[float | None, str]
"""A value, or None and the reason for it."""


def cmi(cot: float, control: float) -> float | None:
    """Return max(0, Δcot − Δctrl) / (Δcot + Δctrl) of pooled drops in nats, each clamped at 0.

    None where their sum is no signal.
    """
    cot, control = max(0.0, cot), max(0.0, control)
    return None if cot + control < LEAST_NATS else max(0.0, cot - control) / (cot + control)


def share(cot: float, control: float) -> float | None:
    """Return Δcot / (|Δcot| + |Δctrl|), signed, in [−1, 1]; None where that sum is no signal."""
    return None if abs(cot) + abs(control) < LEAST_NATS else cot / (abs(cot) + abs(control))


def mass_lost(drop: float) -> float:
    """Return the share of the answer's probability that is lost, 1 − exp(−Δ), in [0, 1).

    A drop below 0 counts as 0.
    """
    return -math.expm1(-max(0.0, drop))


def relative_loss(total: float, part: float) -> float | None:
    """Return max(0, total − part) / total of two CMIs; None where total is below ``LEAST_CMI``."""
    return None if total < LEAST_CMI else max(0.0, total - part) / total


def no_signal(cot: float, control: float) -> str:
    """Return why `cmi` is undefined."""
    total = max(0.0, cot) + max(0.0, control)
    return f"no signal: both drops together are {total:.2g} nat, below {LEAST_NATS:g}"


def too_small(total: float) -> str:
    """Return why `relative_loss` is undefined."""
    return f"CMI is {total:.2g}, below {LEAST_CMI:g}: nothing to take a share of"


def undefined_scores(
    item: Item,
    facet: Mapping[str, str],
    options: Mapping[str, Any],
    missing_reason: MissingReason,
    keys: Sequence[str] = (),
) -> tuple[Score, ...]:
    """Return every score of an item that cannot be measured, once, without a value."""
    scores = ItemScores(item, facet)
    scores.add_missing(cards.ITEM_CARDS, missing_reason, on=keys)
    for source in options["sources"]:
        control = "own" if source == "literal" else options["control"]
        more = {"source": source, "control": control}
        source_cards = (cards.OVER_SPANS, cards.SPANS_DEFINED, cards.NO_COT_EFFECT)
        scores.add_missing(source_cards, missing_reason, on=keys, facet=more)
        more["span"] = "all"
        scores.add_missing(
            (*cards.SPAN_CARDS, *cards.INDEX_CARDS), missing_reason, on=keys, facet=more
        )
        for keep in KEEPS:
            kept = {**more, "keep": str(keep)}
            scores.add_missing([cards.SUBSET_CMI], missing_reason, on=keys, facet=kept)
    return tuple(scores.scores)


@dataclass(slots=True, kw_only=True)
class MediationScores(ItemScores):
    """The scores of one item, as they are made from patched log-probabilities."""

    keys: tuple[str, ...]
    """Request keys that every score rests on."""
    base: LogProb
    """The request for the answer's log-probability without a patch."""
    batch: Mapping[Source, Patched]
    """The request of each source."""
    donor_keys: Sequence[str]
    """Request keys that the choice of donors rests on."""
    no_donor: MissingReason
    """Why there are no donors, where there are none."""

    def number(self, request: LogProb) -> float | None:
        """Return the log-probability that a request was answered with."""
        reply = self.replies[request.key]
        return reply.numbers[0] if isinstance(reply, Response) and reply.numbers else None

    def drop(self, patch: PatchRequest) -> float | None:
        """Return what one patched row costs the answer, in nats."""
        request, base = self.batch[patch.source], self.number(self.base)
        reply = self.replies[request.key]
        if base is None or not isinstance(reply, Response) or reply.numbers is None:
            return None
        return base - reply.numbers[request.rows.index(patch.row)]

    def pooled(self, patches: Sequence[PatchRequest]) -> float | None:
        """Return the mean drop of some rows; None where there is none, or where one is missing."""
        drops = [self.drop(patch) for patch in patches]
        known = [drop for drop in drops if drop is not None]
        return fmean(known) if known and len(known) == len(drops) else None

    def record(
        self,
        card: MetricCard,
        value: float | None,
        more: Mapping[str, str],
        keys: Sequence[str],
        reason: str = "",
        draw: int = 0,
    ) -> None:
        """Add one score; its reason is that of a missing reply, else ``reason``, else no donors."""
        on = (*self.keys, *keys)
        missing_reason: str | MissingReason = reason
        if value is None and not reason and not self.first_missing(on):
            missing_reason = self.no_donor[0], self.no_donor[1] or "a row was not answered"
        self.add(card, value, on=on, reason=missing_reason, sample=draw, facet=more)

    def request_keys(self, patches: Sequence[PatchRequest]) -> tuple[str, ...]:
        """Return the keys of the requests that hold some rows."""
        return tuple(dict.fromkeys(self.batch[patch.source].key for patch in patches))

    def text_scores(
        self, bare: LogProb, dots: LogProb, coverage: float, free_rows: Sequence[PatchRequest]
    ) -> None:
        """Add what needs no source of states.

        The answer's probability with, without and under a filler chain, and with a shuffled one.
        """
        base, without, filled = self.number(self.base), self.number(bare), self.number(dots)
        self.record(cards.BASELINE_LOGP, None if base is None else min(0.0, base), {}, ())
        self.record(
            cards.NO_COT_DROP,
            None if base is None or without is None else base - without,
            {},
            [bare.key],
        )
        mass = None if base is None or filled is None else mass_lost(base - filled)
        self.record(cards.TEXT_PLACEBO, mass, {}, [dots.key])
        self.record(cards.CONTROL_COVERAGE, coverage, {}, ())
        mixed = [patch for patch in free_rows if patch.part == "self_shuffle"]
        drop = self.pooled(mixed)
        self.record(
            cards.SELF_SHUFFLE,
            None if drop is None else mass_lost(drop),
            {},
            self.request_keys(mixed),
        )
        self.raw(free_rows, {})

    def raw(self, patches: Sequence[PatchRequest], more: Mapping[str, str]) -> None:
        """Add the drop of each row."""
        for patch in patches:
            facet = {
                **more,
                "part": patch.part,
                "span": patch.span,
                "donor": patch.donor,
                "keep": patch.keep,
            }
            keys = self.request_keys([patch])
            self.record(
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
        """Add every score of one source of states."""
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
            self.record(cards.SUBSET_CMI, value, {**every, "keep": keep}, keys, reason)
        noise, mixed = cmi_of_rows("placebo", "control"), cmi_of_rows("shuffled", "control")
        keys = (
            *keys,
            *self.request_keys([patch for patch in free_rows if patch.part == "placebo"]),
        )
        self.record(cards.PLACEBO_CMI, noise[0], every, keys, noise[1])
        self.record(cards.SHUFFLED_CMI, mixed[0], every, keys, mixed[1])
        least = subsets[str(KEEPS[-1])]
        for card, (value, reason) in (
            (cards.DENSITY, least),
            (cards.VALIDITY, noise),
            (cards.SEQUENTIALITY, mixed),
        ):
            relative = None if full_cmi is None or value is None else relative_loss(full_cmi, value)
            self.record(
                card,
                relative,
                every,
                keys,
                cause or reason or ("" if full_cmi is None else too_small(full_cmi)),
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
        shared = None if cot is None or control is None else share(cot, control)
        self.record(cards.CMI, value, here, keys, reason)
        self.record(cards.BYPASS, None if value is None else 1 - value, here, keys, reason)
        self.record(cards.SHARE, shared, here, keys, reason)
        self.record(cards.MASS_LOST, None if cot is None else mass_lost(cot), here, cot_keys)
        self.record(cards.DROP_COT, cot, here, cot_keys)
        self.record(cards.DROP_CONTROL, control, here, keys)
        noop = (
            more["control"] == "own"
            and name in ("filler", "interchange", "literal")
            and located_text.question[-1] < located_text.chain[0]
        )
        self.record(cards.CONTROL_IS_NOOP, float(noop) if ctrls else None, here, keys)
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
        self.record(cards.OVER_SPANS, fmean(values) if values else None, more, keys, none)
        self.record(cards.SPANS_DEFINED, None if missing else float(len(values)), more, keys)
        self.record(
            cards.NO_COT_EFFECT, float(max(values) == 0) if values else None, more, keys, none
        )

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
            None if moved is None or full_cmi is None or full_cmi < LEAST_CMI else moved / full_cmi
        )
        robust = None
        if moved is not None:
            robust = float(moved <= ABSOLUTE or (relative is not None and relative <= RELATIVE))
        short = "" if full_cmi is None else "the chain is too short for a narrower window"
        small = short if moved is None or full_cmi is None else too_small(full_cmi)
        self.record(cards.BOUNDARY_SENSITIVITY, relative, every, keys, reason or small)
        self.record(cards.BOUNDARY_DEVIATION, moved, every, keys, reason or short)
        self.record(cards.BOUNDARY_ROBUST, robust, every, keys, reason or short)


def _ratio(cot: float | None, control: float | None) -> Value:
    if cot is None or control is None:
        return None, ""
    return cmi(cot, control), ("" if cmi(cot, control) is not None else no_signal(cot, control))
