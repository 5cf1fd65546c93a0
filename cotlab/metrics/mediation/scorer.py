"""Mediation: how much of the answer's probability the states at the chain's positions carry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.requests import Failed, Locate, PatchRow, Reply, Request, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import (
    CHAINS,
    DEFAULT_CONTROL,
    IN_PROCESS_PROVIDERS,
    MEDIATION_CONTROLS,
    MEDIATION_SOURCES,
    Item,
    ModelRef,
)
from cotlab.metrics.kit import MissingReason, ask, chain_from_reply, missing_reply_reason
from cotlab.metrics.mediation import cards
from cotlab.metrics.mediation.controls import (
    NeutralText,
    control_coverage,
    control_rows,
    control_sources,
    locate_neutral_text,
)
from cotlab.metrics.mediation.interventions import (
    ChainText,
    Donor,
    LocatedText,
    PatchKey,
    PatchRequest,
    chain_rows,
    collect_chains,
    layers_by_span,
    source_free_rows,
)
from cotlab.metrics.mediation.scores import MediationScores, undefined_scores
from cotlab.metrics.mediation.self_test import run_self_test
from cotlab.text.answers.extract import same_answer
from cotlab.text.answers.targets import answer_as_written, answer_to
from cotlab.text.edits.ablations import dots_text
from cotlab.text.prompts.chain import FINAL_ANSWER_CUE

OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is patched", choices=CHAINS),
    "sources": Option(
        ("filler",), "where the patched states come from", choices=MEDIATION_SOURCES, entry="source"
    ),
    "control": Option(
        DEFAULT_CONTROL,
        "what the control patches, and with whose states",
        choices=MEDIATION_CONTROLS,
    ),
    "layers": Option((), "layers or ranges of layers that are patched; all spans where empty"),
    "donors": Option(4, "other items that states are taken from", lo=2, hi=64),
    "draws": Option(2, "random draws of each control", lo=1, hi=64),
    "subsets": Option(8, "random subsets, shuffles and noises of each chain", lo=1, hi=256),
}
N_SPARE_DONORS, MIN_DONORS = 4, 2
_LAYER_SPAN_PATTERN = re.compile(r"all|\d{1,4}(-\d{1,4})?")  # "all", "3", "0-7"


def validate_white_box(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where the model's states cannot be reached, or a layer is no number or range."""
    if subject.provider not in IN_PROCESS_PROVIDERS:
        raise ConfigError(
            f"mediation patches activations, which {subject.provider} hides: --provider local or"
            " organism."
        )
    for span in options["layers"]:
        if not _LAYER_SPAN_PATTERN.fullmatch(span) or (
            len(ends := span.split("-")) == 2 and int(ends[0]) > int(ends[1])
        ):
            raise ConfigError(
                f"--layers takes a layer or a range, like 3 or 0-7, counted from 0; got {span!r}"
            )


HEADLINE_FACET = {"source": "filler", "control": DEFAULT_CONTROL, "span": "all"}
_HEADLINE_METRICS = (
    "cmi",
    "mass_lost",
    "drop_cot",
    "density",
    "validity",
    "sequentiality",
)
HEADLINES = (
    *(Headline(name, HEADLINE_FACET) for name in _HEADLINE_METRICS),
    Headline("bypass", HEADLINE_FACET, "lower"),
    *(Headline(name, {}) for name in ("no_cot_drop", "self_shuffle", "text_placebo")),
)


@scorer(
    *cards.ALL_CARDS,
    version=15,
    name="mediation",
    options=OPTIONS,
    prepare=run_self_test,
    headlines=HEADLINES,
    check=validate_white_box,
)
def mediation(item: Item, params: Params, peers: Peers) -> Program:
    """Patch the chain's positions, and a control's; compare what the answer loses."""
    options = params.options
    facet = {"chain": options["chain"], "given": "prefix"}
    near_items = peers.donors_for(item, options["donors"] + N_SPARE_DONORS)
    chains, chain_replies = yield from collect_chains((item, *near_items), params)
    undefined_item_scores = partial(undefined_scores, item, facet, options)
    keys: tuple[str, ...] = (chain_replies[item.id].key,) if chain_replies else ()
    if not chains[item.id]:
        no_chain_reason: MissingReason = ("undefined", "the item has no chain")
        if chain_replies:
            no_chain_reason = chain_from_reply(chain_replies[item.id]).whole().missing_reason
        return undefined_item_scores(no_chain_reason, keys)
    text_by_item = {
        candidate.id: ChainText.from_item(candidate, chains[candidate.id], params)
        for candidate in (item, *near_items)
        if chains[candidate.id]
    }
    answer_requests = {name: text.answer_request(params) for name, text in text_by_item.items()}
    answer_replies = yield from ask(answer_requests.values())
    keys = (*keys, answer_requests[item.id].key)
    answer, missing_reason = _read_model_answer(answer_replies[answer_requests[item.id].key])
    if answer is None:
        return undefined_item_scores(missing_reason, keys)
    answer_by_donor = {
        candidate.id: (
            _read_model_answer(answer_replies[answer_requests[candidate.id].key])[0]
            if candidate.id in answer_requests
            else None
        )
        for candidate in near_items
    }
    text = text_by_item[item.id]
    base_request = text.logprob_request(params, answer)
    bare_request = text.logprob_request(params, answer, FINAL_ANSWER_CUE)
    locate_request = text.locate_request(params)
    bare_locate_request = Locate(
        params.subject, text.messages, (text.question_span,), prefix=FINAL_ANSWER_CUE
    )
    donor_locate_requests = {
        name: text_by_item[name].locate_request(params)
        for name in answer_by_donor
        if name in text_by_item
    }
    crossed_requests = {
        name: Locate(
            params.subject,
            text.messages,
            (text_by_item[name].chain_span,),
            prefix=text_by_item[name].prefix,
        )
        for name in donor_locate_requests
        if "interchange" in options["sources"]
    }
    base_replies = yield from ask(
        [
            base_request,
            bare_request,
            locate_request,
            bare_locate_request,
            *donor_locate_requests.values(),
            *crossed_requests.values(),
        ]
    )
    located_reply = base_replies[locate_request.key]
    bare_reply = base_replies[bare_locate_request.key]
    if (
        isinstance(located_reply, Failed)
        or located_reply.located is None
        or isinstance(bare_reply, Failed)
        or bare_reply.located is None
    ):
        reason = (
            missing_reply_reason(located_reply)
            or missing_reply_reason(bare_reply)
            or ("undefined", "the chain cannot be located")
        )
        return undefined_item_scores(reason, (*keys, locate_request.key, bare_locate_request.key))
    keys = (*keys, base_request.key, locate_request.key, bare_locate_request.key)
    chain_positions, question_positions, _ = located_reply.located.positions
    located_text = LocatedText(
        text,
        chain_positions,
        question_positions,
        located_reply.located.layers,
        len(bare_reply.located.pieces),
    )
    replies = {reply.key: reply for reply in chain_replies.values()}
    replies |= answer_replies | base_replies
    donor_requests: tuple[Mapping[str, Request], ...] = (
        answer_requests,
        donor_locate_requests,
        crossed_requests,
    )
    donor_replies = {
        name: [
            *([chain_replies[name]] if chain_replies else []),
            *(
                replies[request_by_item[name].key]
                for request_by_item in donor_requests
                if name in request_by_item
            ),
        ]
        for name in answer_by_donor
    }
    donors, no_donor_reason, donor_keys = _choose_donors(
        item,
        near_items,
        answer_by_donor,
        text_by_item,
        donor_replies,
        located_text,
        answer,
        options,
    )
    neutral_text: NeutralText | None = None
    if options["control"] == "neutral" and donors:
        neutral_text, neutral_reason, neutral_replies = yield from locate_neutral_text(
            located_text, donors, answer, params
        )
        replies |= neutral_replies
        donor_keys = [*donor_keys, *neutral_replies]
        no_donor_reason = no_donor_reason if neutral_text else neutral_reason
    spans = layers_by_span(located_text.n_layers, options["layers"])
    filler_request = text.logprob_request(
        params,
        answer,
        dots_text(len(located_text.chain_positions)) + "\n" + FINAL_ANSWER_CUE,
    )
    rows_by_source = {
        name: chain_rows(name, located_text, donors, spans, options, params.seed)
        for name in options["sources"]
    }
    control_name_by_source = {
        name: "own" if name == "literal" else options["control"] for name in rows_by_source
    }
    control_sources_by_source = {
        name: control_sources(name, control, located_text, donors, options, neutral_text)
        for name, control in control_name_by_source.items()
    }
    control_rows_by_source = {
        name: control_rows(control, sources, located_text, spans, options, params.seed)
        for (name, control), sources in zip(
            control_name_by_source.items(), control_sources_by_source.values(), strict=True
        )
    }
    free_rows = source_free_rows(located_text, spans["all"], options, params.seed)
    source_rows = [
        row for part in (*rows_by_source.values(), *control_rows_by_source.values()) for row in part
    ]
    request_by_key = _build_patched_requests([*free_rows, *source_rows], text, params, answer)
    replies |= yield from ask([filler_request, *request_by_key.values()])
    item_scores = MediationScores(
        item,
        facet,
        replies,
        keys=keys,
        base_request=base_request,
        base_request_by_prefix=(
            {neutral_text.prefix: neutral_text.base_request} if neutral_text else {}
        ),
        request_by_key=request_by_key,
        donor_keys=donor_keys,
        no_donor_reason=no_donor_reason,
    )
    item_scores.add_text_scores(
        bare_request,
        filler_request,
        control_coverage(
            next(iter(control_sources_by_source.values())), located_text, question_positions
        ),
        free_rows,
    )
    for name, control in control_name_by_source.items():
        item_scores.add_source_scores(
            name,
            control,
            rows_by_source[name],
            control_rows_by_source[name],
            free_rows,
            tuple(spans),
            located_text,
        )
    return tuple(item_scores.scores)


def _read_model_answer(reply: Reply) -> tuple[str | None, MissingReason]:
    """Return the model's own answer as it stands after the cue, without its end of sentence."""
    missing_reason = missing_reply_reason(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        return None, missing_reason or ("error", "no reply")
    first_line, line_break, _ = (reply.text or "").partition("\n")
    if reply.finish == "length" and not line_break:
        return None, ("undefined", "the model's answer was cut off before its line ended")
    answer = first_line.rstrip().rstrip(".").rstrip()
    if not printable_line(answer):
        return None, ("undefined", "the model gave no answer after the cue")
    return answer, ("undefined", "")


def _choose_donors(
    item: Item,
    near_items: Sequence[Item],
    answer_by_donor: Mapping[str, str | None],
    texts: Mapping[str, ChainText],
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
    for near_item in near_items:
        name, donor_answer = near_item.id, answer_by_donor[near_item.id]
        if len(donors) == options["donors"]:
            break
        replies = donor_replies[name]
        for reply in replies:
            if isinstance(reply, Failed) and not reply.unsupported:
                reason = f"a donor's request failed: {reply.error}"
                return [], ("error", reason), [*donor_keys, reply.key]
        locations = [
            reply.located
            for reply in replies
            if isinstance(reply, Response) and reply.located is not None
        ]
        needs_crossing = "interchange" in options["sources"]
        if (
            donor_answer is None
            or any(missing_reply_reason(reply) for reply in replies)
            or len(locations) < 1 + needs_crossing
        ):
            continue
        donor_keys += [reply.key for reply in replies]
        chain, question, _ = locations[0].positions
        has_other_answer = answers_differ(item, answer, near_item, donor_answer)
        if has_other_answer and 2 * len(chain) >= len(located_text.chain_positions):
            donors.append(
                Donor(
                    texts[name],
                    chain,
                    question,
                    locations[1].positions[0] if needs_crossing else (),
                )
            )
    if len(donors) < MIN_DONORS:
        reason = (
            f"{len(donors)} of {len(answer_by_donor)} near items have another answer and enough"
            " chain: two are needed"
        )
        return [], ("undefined", reason), donor_keys
    return donors, ("undefined", ""), donor_keys


def answers_differ(item: Item, answer: str, donor: Item, donor_answer: str) -> bool:
    """Whether a donor's answer is another one, in its words and by the options of each item.

    "b" of two items is one text, whatever their options say: a donor's states would carry it.
    """
    replies = [(item, FINAL_ANSWER_CUE + answer), (donor, FINAL_ANSWER_CUE + donor_answer)]
    return all(
        same_answer(*(read(of_item, reply) or reply for of_item, reply in replies)) is not True
        for read in (answer_as_written, answer_to)
    )


def _build_patched_requests(
    patch_requests: Sequence[PatchRequest], text: ChainText, params: Params, answer: str
) -> dict[PatchKey, Any]:
    """Build one request a text and source, with each of its rows once."""
    rows_by_key: dict[PatchKey, dict[PatchRow, None]] = {}
    for request in patch_requests:
        rows_by_key.setdefault(request.request_key, {})[request.row] = None
    return {
        key: text.patched_request(params, answer, key.source, list(rows), key.prefix or None)
        for key, rows in rows_by_key.items()
    }
