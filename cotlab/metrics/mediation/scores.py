"""From the replies of one item to its scores: pooled drops, and the indices made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from statistics import fmean
from typing import Any

from cotlab.core.requests import LogProb, Patched, Response
from cotlab.core.types import Item, MetricCard, Score
from cotlab.metrics.kit import ItemScores, MissingReason
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation.controls import DONOR_CONTROLS
from cotlab.metrics.mediation.indices import (
    MAX_DEVIATION,
    MAX_SENSITIVITY,
    MIN_CMI,
    ValueOrReason,
    apply_if_defined,
    cmi_against,
    cmi_reason,
    has_no_effect,
    mass_lost,
    relative_cmi_loss,
    share_against,
    share_reason,
    too_small_reason,
)
from cotlab.metrics.mediation.interventions import (
    KEEP_SHARES,
    LocatedText,
    PatchKey,
    PatchRequest,
)


def undefined_scores(
    item: Item,
    facet: Mapping[str, str],
    options: Mapping[str, Any],
    missing_reason: MissingReason,
    keys: Sequence[str] = (),
) -> tuple[Score, ...]:
    """Return every score of an item that cannot be measured, once, without a value."""
    scores = ItemScores(item, facet)
    scores.add_missing(cards.ITEM_CARDS, missing_reason, rests_on=keys)
    for source in options["sources"]:
        control = "own" if source == "literal" else options["control"]
        source_facet = {"source": source, "control": control}
        source_cards = (cards.CMI_OVER_SPANS, cards.SPANS_DEFINED, cards.NO_COT_EFFECT)
        scores.add_missing(source_cards, missing_reason, rests_on=keys, facet=source_facet)
        source_facet["span"] = "all"
        scores.add_missing(
            (*cards.SPAN_CARDS, *cards.INDEX_CARDS),
            missing_reason,
            rests_on=keys,
            facet=source_facet,
        )
        for keep in KEEP_SHARES:
            keep_facet = {**source_facet, "keep": str(keep)}
            scores.add_missing(cards.SUBSET_CARDS, missing_reason, rests_on=keys, facet=keep_facet)
    return tuple(scores.scores)


@dataclass(slots=True, kw_only=True)
class MediationScores(ItemScores):
    """The scores of one item, as they are made from patched log-probabilities."""

    base_request: LogProb
    """The request for the answer's log-probability without a patch."""
    base_request_by_prefix: Mapping[str, LogProb]
    """The same of each other text that a control patches, by its prefix."""
    request_by_key: Mapping[PatchKey, Patched]
    """The request of each patched text and source."""
    donor_keys: Sequence[str]
    """Request keys that the choice of donors rests on."""
    no_donor_reason: MissingReason
    """Why there are no donors, where there are none."""

    def log_probability(self, request: LogProb) -> float | None:
        """Return the log-probability that a request was answered with."""
        reply = self.replies[request.key]
        return reply.numbers[0] if isinstance(reply, Response) and reply.numbers else None

    def row_drop(self, patch: PatchRequest) -> float | None:
        """Return what one patched row costs the answer, in nats."""
        request = self.request_by_key[patch.request_key]
        base_request = self.base_request_by_prefix.get(patch.prefix, self.base_request)
        base_logp = self.log_probability(base_request)
        reply = self.replies[request.key]
        if base_logp is None or not isinstance(reply, Response) or reply.numbers is None:
            return None
        return base_logp - reply.numbers[request.rows.index(patch.row)]

    def mean_drop(self, patches: Sequence[PatchRequest]) -> float | None:
        """Return the mean drop of some rows; None where there is none, or where one is missing."""
        drops = [self.row_drop(patch) for patch in patches]
        defined_drops = [drop for drop in drops if drop is not None]
        return fmean(defined_drops) if defined_drops and len(defined_drops) == len(drops) else None

    def add_score(
        self,
        card: MetricCard,
        value: float | None,
        extra_facet: Mapping[str, str],
        keys: Sequence[str],
        reason: str = "",
        draw: int = 0,
    ) -> None:
        """Add one score; its reason is that of a missing reply, else ``reason``, else no donors."""
        rests_on = (*self.keys, *keys)
        missing_reason: str | MissingReason = reason
        if value is None and not reason and not self.first_missing_reason(rests_on):
            missing_reason = (
                self.no_donor_reason[0],
                self.no_donor_reason[1] or "a row was not answered",
            )
        self.add(card, value, rests_on=keys, reason=missing_reason, sample=draw, facet=extra_facet)

    def request_keys(self, patches: Sequence[PatchRequest]) -> tuple[str, ...]:
        """Return the keys of the requests that hold some rows."""
        bases = [
            self.base_request_by_prefix[patch.prefix].key
            for patch in patches
            if patch.prefix in self.base_request_by_prefix
        ]
        patched = (self.request_by_key[patch.request_key].key for patch in patches)
        return tuple(dict.fromkeys((*patched, *bases)))

    def add_text_scores(
        self,
        bare_request: LogProb,
        filler_request: LogProb,
        coverage: float,
        free_rows: Sequence[PatchRequest],
    ) -> None:
        """Add what needs no source of states.

        The answer's probability with, without and under a filler chain, and with a shuffled one.
        """
        base_logp = self.log_probability(self.base_request)
        bare_logp = self.log_probability(bare_request)
        filler_logp = self.log_probability(filler_request)
        self.add_score(
            cards.BASELINE_LOGP, None if base_logp is None else min(0.0, base_logp), {}, ()
        )
        self.add_score(
            cards.NO_COT_DROP, apply_if_defined(sub, base_logp, bare_logp), {}, [bare_request.key]
        )
        mass_loss = apply_if_defined(mass_lost, apply_if_defined(sub, base_logp, filler_logp))
        self.add_score(cards.TEXT_PLACEBO, mass_loss, {}, [filler_request.key])
        self.add_score(cards.CONTROL_COVERAGE, coverage, {}, ())
        shuffled_rows = _select_rows(free_rows, "self_shuffle")
        mass_loss = apply_if_defined(mass_lost, self.mean_drop(shuffled_rows))
        self.add_score(cards.SELF_SHUFFLE, mass_loss, {}, self.request_keys(shuffled_rows))
        self.add_raw_drops(free_rows, {})

    def add_raw_drops(
        self, patches: Sequence[PatchRequest], source_facet: Mapping[str, str]
    ) -> None:
        """Add the drop of each row."""
        for patch in patches:
            names = ("part", "span", "donor", "keep")
            facet = {**source_facet, **{name: getattr(patch, name) for name in names}}
            facet = {name: value for name, value in facet.items() if value}
            keys = self.request_keys([patch])
            self.add_score(cards.PATCH_DROP, self.row_drop(patch), facet, keys, draw=patch.draw)

    def add_source_scores(
        self,
        source_name: str,
        control: str,
        rows: Sequence[PatchRequest],
        control_rows: Sequence[PatchRequest],
        free_rows: Sequence[PatchRequest],
        spans: Sequence[str],
        located_text: LocatedText,
    ) -> None:
        """Add every score of one source of states."""
        source_facet = {"source": source_name, "control": control}
        all_layers_facet = {**source_facet, "span": "all"}
        source_donor_keys = (
            tuple(self.donor_keys)
            if control in DONOR_CONTROLS or source_name == "interchange"
            else ()
        )
        keys = (*self.request_keys([*rows, *control_rows]), *source_donor_keys)
        cmi_by_span = {
            span: self._add_span_scores(
                span, source_facet, rows, control_rows, source_donor_keys, source_name, located_text
            )
            for span in spans
        }
        self._add_span_summary(cmi_by_span, source_facet, keys)
        full_cmi, full_cmi_reason = cmi_by_span["all"]

        def cmi_of_rows(part: str, control_part: str, keep: str = "") -> ValueOrReason:
            cot_rows = _select_rows((*rows, *free_rows), part, keep=keep)
            selected_controls = _select_controls(control, control_rows, control_part, keep=keep)
            return _cmi_or_reason(
                control, self.mean_drop(cot_rows), self.mean_drop(selected_controls)
            )

        cmi_by_keep = {
            str(keep): cmi_of_rows("kept", "kept_control", str(keep)) for keep in KEEP_SHARES
        }
        for keep, (value, reason) in cmi_by_keep.items():
            keep_facet = {**all_layers_facet, "keep": keep}
            self.add_score(cards.SUBSET_CMI, value, keep_facet, keys, reason)
            for card, patches in (
                (cards.SUBSET_DROP, _select_rows(rows, "kept", keep=keep)),
                (
                    cards.SUBSET_CONTROL_DROP,
                    _select_controls(control, control_rows, "kept_control", keep=keep),
                ),
            ):
                self.add_score(card, self.mean_drop(patches), keep_facet, keys)
        noise_cmi = cmi_of_rows("placebo", "control")
        shuffled_cmi = cmi_of_rows("shuffled", "control")
        keys = (*keys, *self.request_keys(_select_rows(free_rows, "placebo")))
        self.add_score(cards.PLACEBO_CMI, noise_cmi[0], all_layers_facet, keys, noise_cmi[1])
        self.add_score(cards.SHUFFLED_CMI, shuffled_cmi[0], all_layers_facet, keys, shuffled_cmi[1])
        smallest_subset_cmi = cmi_by_keep[str(KEEP_SHARES[-1])]
        for card, (value, reason) in (
            (cards.DENSITY, smallest_subset_cmi),
            (cards.VALIDITY, noise_cmi),
            (cards.SEQUENTIALITY, shuffled_cmi),
        ):
            relative_drop = apply_if_defined(relative_cmi_loss, full_cmi, value)
            small_reason = "" if full_cmi is None else too_small_reason(full_cmi)
            self.add_score(
                card,
                relative_drop,
                all_layers_facet,
                keys,
                full_cmi_reason or reason or small_reason,
            )
        window_cmis = [cmi_of_rows(part, f"{part}_control") for part in ("expanded", "shrunk")]
        self._add_boundary_scores(full_cmi, full_cmi_reason, window_cmis, all_layers_facet, keys)
        self.add_raw_drops([*rows, *control_rows], source_facet)

    def _add_span_scores(
        self,
        span: str,
        source_facet: Mapping[str, str],
        rows: Sequence[PatchRequest],
        control_rows: Sequence[PatchRequest],
        source_donor_keys: Sequence[str],
        source_name: str,
        located_text: LocatedText,
    ) -> ValueOrReason:
        cot_rows = _select_rows(rows, "cot", span)
        control = source_facet["control"]
        selected_controls = _select_controls(control, control_rows, "control", span)
        cot_drop, control_drop = self.mean_drop(cot_rows), self.mean_drop(selected_controls)
        span_facet = {**source_facet, "span": span}
        cot_keys = (
            *self.request_keys(cot_rows),
            *(source_donor_keys if source_name == "interchange" else ()),
        )
        keys = (*self.request_keys([*cot_rows, *selected_controls]), *source_donor_keys)
        value, reason = _cmi_or_reason(control, cot_drop, control_drop)
        self.add_score(cards.CMI, value, span_facet, keys, reason)
        self.add_score(cards.BYPASS, None if value is None else 1 - value, span_facet, keys, reason)
        share, no_share_reason = None, ""
        if cot_drop is not None and control_drop is not None:
            share = share_against(control, cot_drop, control_drop)
            no_share_reason = share_reason(control, cot_drop, control_drop)
        self.add_score(cards.SHARE, share, span_facet, keys, no_share_reason)
        self.add_score(cards.MASS_LOST, apply_if_defined(mass_lost, cot_drop), span_facet, cot_keys)
        self.add_score(cards.DROP_COT, cot_drop, span_facet, cot_keys)
        self.add_score(cards.DROP_CONTROL, control_drop, span_facet, keys)
        is_noop = (
            control == "own"
            and source_name in ("filler", "interchange", "literal")
            and located_text.question_positions[-1] < located_text.chain_positions[0]
        )
        self.add_score(
            cards.CONTROL_IS_NOOP, float(is_noop) if selected_controls else None, span_facet, keys
        )
        return value, reason

    def _add_span_summary(
        self,
        cmi_by_span: Mapping[str, ValueOrReason],
        source_facet: Mapping[str, str],
        keys: Sequence[str],
    ) -> None:
        values = [value for value, _ in cmi_by_span.values() if value is not None]
        first_reason = next((reason for _, reason in cmi_by_span.values() if reason), "")
        is_unanswered = not first_reason and not values  # no span was answered at all
        no_span_reason = "" if is_unanswered else f"no span is defined: {first_reason}"
        control = source_facet["control"]
        no_effect = float(has_no_effect(control, max(values))) if values else None
        self.add_score(
            cards.CMI_OVER_SPANS,
            fmean(values) if values else None,
            source_facet,
            keys,
            no_span_reason,
        )
        self.add_score(
            cards.SPANS_DEFINED, None if is_unanswered else float(len(values)), source_facet, keys
        )
        self.add_score(cards.NO_COT_EFFECT, no_effect, source_facet, keys, no_span_reason)

    def _add_boundary_scores(
        self,
        full_cmi: float | None,
        full_cmi_reason: str,
        window_cmis: Sequence[ValueOrReason],
        all_layers_facet: Mapping[str, str],
        keys: Sequence[str],
    ) -> None:
        values = [value for value, _ in window_cmis if value is not None]
        reason = full_cmi_reason or next(
            (
                full_cmi_reason
                for value, full_cmi_reason in window_cmis
                if value is None and full_cmi_reason
            ),
            "",
        )
        largest_change = None
        if full_cmi is not None and len(values) == len(window_cmis):
            largest_change = max(abs(value - full_cmi) for value in values)
        sensitivity = (
            None
            if largest_change is None or full_cmi is None or full_cmi < MIN_CMI
            else largest_change / full_cmi
        )
        is_robust = None
        if largest_change is not None:
            is_robust = float(
                largest_change <= MAX_DEVIATION
                or (sensitivity is not None and sensitivity <= MAX_SENSITIVITY)
            )
        short_reason = "" if full_cmi is None else "the chain is too short for a narrower window"
        small_reason = (
            short_reason
            if largest_change is None or full_cmi is None
            else too_small_reason(full_cmi)
        )
        self.add_score(
            cards.BOUNDARY_SENSITIVITY, sensitivity, all_layers_facet, keys, reason or small_reason
        )
        self.add_score(
            cards.BOUNDARY_DEVIATION, largest_change, all_layers_facet, keys, reason or short_reason
        )
        self.add_score(
            cards.BOUNDARY_ROBUST, is_robust, all_layers_facet, keys, reason or short_reason
        )


def _cmi_or_reason(
    control: str, cot_drop: float | None, control_drop: float | None
) -> ValueOrReason:
    if cot_drop is None or control_drop is None:
        return None, ""
    drops = cot_drop, control_drop
    return cmi_against(control, *drops), cmi_reason(control, *drops)


def _select_controls(
    control: str,
    patches: Sequence[PatchRequest],
    part: str,
    span: str = "all",
    keep: str = "",
) -> list[PatchRequest]:
    """Return a control's rows; those of ``total``, which has one size, whatever is asked for."""
    if control == "total":
        return list(patches)
    return _select_rows(patches, part, span, keep)


def _select_rows(
    patches: Sequence[PatchRequest], part: str, span: str = "all", keep: str = ""
) -> list[PatchRequest]:
    return [
        patch for patch in patches if (patch.part, patch.span, patch.keep) == (part, span, keep)
    ]
